# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts/check_arrows.py finds in a tree of folders, and what it lets pass."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check_arrows.py"

TABLE = """
| folder | may include and link | what it is |
|---|---|---|
| `Low` | | |
| `Middle` | `Low` | |
| `High` | `Low`, `Middle` | |
| `Products` | `Low` | |
| `Products/*` | `Low`, `Products` | |
"""


@pytest.fixture
def tree(tmp_path):
    """Writes files, and returns what the script says: its status and its lines."""

    def check(files, table=TABLE):
        for name, text in {"docs/Architecture.md": table, **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run(
            [sys.executable, SCRIPT, tmp_path], capture_output=True, text=True
        )
        assert not done.stderr
        return done.returncode, done.stdout.splitlines()

    return check


def include(name):
    return f'// A banner.\n#include "{name}"\n'


def test_arrows_of_the_table_are_legal(tree):
    assert tree(
        {
            "include/nm_sparse/Low/A.h": "",
            "include/nm_sparse/Low/Deep/B.h": include("nm_sparse/Low/A.h"),
            "lib/Middle/C.cpp": include("nm_sparse/Low/Deep/B.h"),
            "lib/High/D.cpp": include("nm_sparse/Made.h"),
            "lib/Products/Shared.h": include("nm_sparse/Low/A.h"),
            "lib/Products/One/One.cpp": include("../Shared.h"),
            "lib/High/CMakeLists.txt": "nm_sparse_add_library(High D.cpp\n"
            "  DEPENDS Gen\n  LINK_LIBS Middle Foreign)\n",
            "lib/Middle/CMakeLists.txt": "nm_sparse_add_library(Middle C.cpp)\n",
        }
    ) == (0, [])


@pytest.mark.parametrize(
    "path, name, why",
    [
        (
            "lib/Low/A.cpp",
            "nm_sparse/High/H.h",
            "Low may use nothing, and not High",
        ),
        (
            "include/nm_sparse/Middle/Deep/A.h",
            "nm_sparse/High/H.h",
            "Middle may use Low, and not High",
        ),
        (
            "include/nm_sparse/Low/A.td",
            "nm_sparse/High/H.h",
            "Low may use nothing, and not High",
        ),
        (
            "lib/Products/One/One.cpp",
            "../Two/Two.h",
            "Products/One may use Low, Products, and not Products/Two",
        ),
        (
            "lib/New/A.cpp",
            "nm_sparse/High/H.h",
            "New has no row in docs/Architecture.md: give it one",
        ),
    ],
)
def test_an_include_that_is_not_in_the_table(tree, path, name, why):
    files = {
        path: include(name).replace("#", "" if path.endswith("td") else "#"),
        "include/nm_sparse/High/H.h": "",
        "lib/Products/Two/Two.h": "",
    }
    status, lines = tree(files)
    assert status == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"{path}:2: includes ")
    assert why in lines[0]


def test_a_library_that_is_not_in_the_table(tree):
    status, lines = tree(
        {
            "lib/Low/A.cpp": "",
            "lib/Low/CMakeLists.txt": "# LINK_LIBS Middle\n"
            "nm_sparse_add_library(LowLibrary A.cpp\n"
            "  LINK_LIBS Foreign\n            HighLibrary)\n",
            "lib/High/CMakeLists.txt": "add_library(HighLibrary STATIC H.cpp)\n",
        }
    )
    assert status == 1
    assert lines == [
        "lib/Low/CMakeLists.txt:4: Low links HighLibrary; Low may use nothing, and "
        "not High: see the table in docs/Architecture.md"
    ]


def test_a_row_that_names_one_above_it(tree):
    table = TABLE.replace("| `Low` | |", "| `Low` | `High` |")
    status, lines = tree({}, table)
    assert status == 1
    assert "docs/Architecture.md:4: the row of Low names High" in lines[0]


def test_a_circle_of_folders(tree):
    status, lines = tree(
        {
            "lib/Low/One/A.h": include("../Two/B.h"),
            "lib/Low/Two/B.h": "",
            "lib/Low/Two/C.h": include("../Three/D.h"),
            "lib/Low/Three/D.h": include("../One/A.h"),
        }
    )
    assert status == 1
    assert len(lines) == 1
    assert "Low/One -> Low/Two -> Low/Three -> Low/One" in lines[0]
    assert "lib/Low/One/A.h:2, lib/Low/Two/C.h:2, lib/Low/Three/D.h:2" in lines[0]


def test_a_folder_of_many_files(tree):
    files = {f"lib/Low/F{i}.cpp": "" for i in range(30)}
    assert tree(files) == (0, [])
    status, lines = tree({"lib/Low/G.h": ""})
    assert status == 1
    assert lines[0].startswith("lib/Low:1: 31 files, legal are 30")


def test_a_long_file(tree):
    status, lines = tree({"lib/Low/Long.cpp": "// A line.\n" * 401})
    assert status == 1
    assert lines[0].startswith("lib/Low/Long.cpp:401: 401 lines, legal are 400")


def test_repository():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts/check_arrows.py finds in a tree of folders, and what it lets pass."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "check_arrows.py"

TABLE = """
| folder | may include and link | what it is |
|---|---|---|
| `Low` | | |
| `Middle` | `Low` | |
| `High` | `Low`, `Middle` | |
| `Products` | `Low` | |
| `Products/*` | `Low`, `Products` | |
| `nm_sparse/low` | | |
| `nm_sparse/alone` | `nm_sparse/low` | |
| `nm_sparse/high` | `nm_sparse/low`, `nm_sparse/alone` | |
| `nm_sparse/__init__` | `nm_sparse/high` | |
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


def test_imports_of_the_table_are_legal(tree):
    assert tree(
        {
            "python/nm_sparse/__init__.py": "from .high import f\n",
            "python/nm_sparse/low/__init__.py": "from . import a\n",
            "python/nm_sparse/low/a.py": "import numpy\nfrom .b import c\n",
            "python/nm_sparse/low/b.py": "",
            "python/nm_sparse/alone.py": "from nm_sparse.low import a, b\n",
            "python/nm_sparse/high/__init__.py": "from ..low.a import c\n",
            "python/nm_sparse/high/d.py": "from .. import alone\nimport nm_sparse.low",
        }
    ) == (0, [])


@pytest.mark.parametrize(
    "path, line, target, why",
    [
        ("low/a.py", "from ..high import d", "high/d.py", "may use nothing, and not"),
        ("low/a.py", "import nm_sparse.high.d", "high/d.py", "may use nothing"),
        ("low/a.py", "from .. import alone", "alone.py", "may use nothing"),
        ("low/a.py", "from nm_sparse.alone import f", "alone.py", "may use nothing"),
        ("alone.py", "from . import high", "high/__init__.py", "may use nm_sparse/low"),
        ("new/a.py", "from ..high import d", "high/d.py", "nm_sparse/new has no row"),
    ],
)
def test_an_import_that_is_not_in_the_table(tree, path, line, target, why):
    modules = ["__init__", "low/__init__", "alone", "high/__init__", "high/d"]
    files = {f"python/nm_sparse/{name}.py": "" for name in modules}
    # Inside of a function, too.
    files[f"python/nm_sparse/{path}"] = f"def f():\n    {line}\n"
    status, lines = tree(files)
    assert status == 1
    assert len(lines) == 1
    start = f"python/nm_sparse/{path}:2: imports python/nm_sparse/{target}; "
    assert lines[0].startswith(start) and why in lines[0]


@pytest.mark.parametrize("folder", ["lib/Low", "bench", "python/tests/files"])
def test_a_folder_of_many_files(tree, folder):
    ending = "cpp" if folder == "lib/Low" else "py"
    files = {f"{folder}/f{i}.{ending}": "" for i in range(30)}
    assert tree(files) == (0, [])
    status, lines = tree({f"{folder}/g.{ending}": ""})
    assert status == 1
    assert lines[0].startswith(f"{folder}:1: 31 files, legal are 30")


def test_a_long_file(tree):
    status, lines = tree({"lib/Low/Long.cpp": "// A line.\n" * 401})
    assert status == 1
    assert lines[0].startswith("lib/Low/Long.cpp:401: 401 lines, legal are 400")


def test_repository():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout

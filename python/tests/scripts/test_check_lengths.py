# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The limits on the length of files and functions in `make lint`."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "check_lengths.py"


def check(folder):
    return subprocess.run(
        [sys.executable, SCRIPT, folder], capture_output=True, text=True
    )


CPP = [
    f"{folder}/File{ending}"
    for folder in ("lib/GPU", "include/nm_sparse", "tools")
    for ending in (".cpp", ".h", ".td")
]
PYTHON = ["python/nm_sparse/cli/file.py", "bench/file.py", "scripts/file.py"]


@pytest.mark.parametrize("name", CPP + PYTHON)
def test_long_file(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text("// A line.\n" * 400)
    assert check(tmp_path).returncode == 0
    path.write_text("// A line.\n" * 401)
    done = check(tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{name}: 401 lines, legal are 400:")


@pytest.mark.parametrize("name", ["unittests/Test.cpp", "lib/table.json"])
def test_other_files_may_be_long(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text("a line\n" * 1000)
    assert check(tmp_path).returncode == 0


def test_repository():
    done = check(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not shutil.which("clang-tidy-22"), reason="no clang-tidy-22")
@pytest.mark.parametrize("lines, legal", [(78, True), (90, False)])
def test_long_function(tmp_path, lines, legal):
    source = tmp_path / "function.cpp"
    body = "".join("  x += 1;\n" for _ in range(lines))
    source.write_text(f"void add(int &x) {{\n{body}}}\n")
    done = subprocess.run(
        ["clang-tidy-22", f"--config-file={ROOT / '.clang-tidy'}", source, "--"],
        capture_output=True,
        text=True,
    )
    assert ("readability-function-size" in done.stdout) != legal, done.stdout
    assert (done.returncode == 0) == legal

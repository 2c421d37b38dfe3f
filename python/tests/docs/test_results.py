# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of bench/results: each is read by a page, a test or a decision."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import result_readers  # noqa: E402


def test_each_file_is_read():
    found = result_readers.readers(ROOT)
    assert found, "bench/results is empty"
    assert not [name for name, readers in found.items() if not readers]


def test_the_readme_says_by_whom():
    text = (ROOT / "bench/results/README.md").read_text("utf-8")
    assert result_readers.page(ROOT) in text


def test_names_are_whole(tmp_path):
    results = tmp_path / "bench/results"
    results.mkdir(parents=True)
    (tmp_path / "README.md").write_text("see h200-one-2 and `other.json`", "utf-8")
    for name in ("h200-one.json", "h200-one-2.json", "other.json"):
        (results / name).write_text("{}", "utf-8")
    assert result_readers.readers(tmp_path) == {
        "h200-one-2.json": ["README.md"],
        "h200-one.json": [],
        "other.json": ["README.md"],
    }

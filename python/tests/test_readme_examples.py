# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python examples of README.md and python/README.md work."""

import re
from pathlib import Path

import numpy as np
import pytest

from nm_sparse.library import available

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not available(), reason="the library is not built")


def only_block(page):
    """The code of a page that has one block of Python."""
    (block,) = re.findall(
        r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S
    )
    return block


def test_quick_start(capsys):
    torch = pytest.importorskip("torch")
    names = {}
    exec(only_block(ROOT / "README.md"), names)
    report, y = names["report"], names["y"]
    assert report.converted == ["0", "2"]
    assert all(one.speedup > 1 for row in report.rows for one in row.predictions)
    assert str(report) in capsys.readouterr().out
    assert y.shape == (4, 2048) and bool(torch.isfinite(y).all())


def test_example_of_the_package(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(only_block(ROOT / "python/README.md"), names)
    dense = names["packed"].to_dense()
    expected = dense.astype(np.float64).sum(1)
    error = np.abs(names["y"] - expected).max()
    assert error < 1e-3 * np.abs(expected).max()
    assert (tmp_path / "weight.safetensors").is_file()
    assert "predicted_us" in capsys.readouterr().out

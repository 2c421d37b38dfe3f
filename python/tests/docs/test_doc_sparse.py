# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables that scripts/doc_sparse.py makes of 2:4 and V:N:M."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
import doc_sparse  # noqa: E402


def layer(us, **more):
    found = {"tokens": 16, "k": 64, "n": 128, "type": "f16", "product": "wgmma_sp"}
    return {**found, "drawn": False, "us": us, "cublas_us": 12.0, **more}


def kernel(us, run, **more):
    found = {"tokens": 2048, "k": 64, "n": 128, "v": 64, "m": 8, "us": us, "run": run}
    return {**found, "cublas_us": 12.0, **more}


@pytest.fixture
def write(tmp_path):
    def write(**lists):
        path = tmp_path / "results.json"
        path.write_text(json.dumps({"gpu": "H200", **lists}))
        return path

    return write


def test_newest_run(write):
    layers = [
        layer(6.0, cusparselt_us=9.0),
        layer(12.0, cusparselt_us=9.0, tokens=1),
        layer(4.0, cusparselt_us=6.0, run=2),
        layer(8.0, run=2, drawn=True, tokens=300),
        layer(5.0, cusparselt_us=6.0, run=1),
    ]
    text = doc_sparse.pairs_page(write(layers=layers))
    assert "| 2 to 16 | 3.00x (3.00-3.00, 1) | 1.50x (1.50-1.50, 1) |  |  |" in text
    assert "| 257 to 1023 |  |  | 1.50x (1.50-1.50, 1) |  |" in text
    assert "| all | 3.00x (3.00-3.00, 1) | 1.50x" in text
    assert "| 1 |" not in text
    assert text.endswith("`results.json`, run 2: H200.")
    # Rows of the first run have no number.
    text = doc_sparse.pairs_page(write(layers=layers[:2]))
    assert "| all | 1.41x (1.00-2.00, 2) |" in text
    assert text.endswith("`results.json`: H200.")


def test_drawn_layers(write):
    layers = [layer(8.0, drawn=True), layer(6.0)]
    text = doc_sparse.pairs_drawn_page(write(layers=layers))
    assert text.splitlines()[2:] == [
        "| 16 x 64 x 128 | f16 | `wgmma_sp` | 8.0 | 12.0 | 1.50x |  |  |"
    ]


def test_bytes(write):
    rows = [
        layer(4.0, type="i8", dense_us=12.0),
        layer(6.0, type="i8", dense_us=12.0),
        layer(6.0, type="i8", tokens=1),
    ]
    text = doc_sparse.bytes_page(write(bytes=rows))
    assert "| type | 2 to 16 tokens |" in text
    assert "| i8 | 2.45x (2.00-3.00, 2) |" in text


def test_levels(write):
    kernels = [
        kernel(3.0, 1),
        kernel(6.0, 2),
        kernel(5.0, 1, v=128),
        kernel(4.0, 2),
        kernel(2.0, 3, without="products"),
        kernel(1.0, 3, overlapped=True),
    ]
    path = write(kernels=kernels)
    text = doc_sparse.levels_page(path)
    assert "| V | 2:8, 75 % sparse |" in text
    assert "| 64 | 3.00x (3.00-3.00, 1) |" in text
    assert text.endswith("`results.json`, run 1, 2: H200.")
    text = doc_sparse.levels_layers_page(path)
    assert "| 2048 x 64 x 128 | 4 us, 3.00x | 5 us, 2.40x |" in text


def test_nothing_recorded(tmp_path):
    for page in doc_sparse.PAGES.values():
        assert page(tmp_path / "none.json") == doc_sparse.report.NONE

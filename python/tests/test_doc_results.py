# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables that scripts/doc_results.py makes of nm-run's reports."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import doc_results  # noqa: E402


def bench(name, speedup, **more):
    return {
        "file": f"configs/{name}.mlir",
        "size": 4096,
        "chip": "sm_90a",
        "time": {"median_us": 100.0},
        "tflops_dense_equivalent": 500.0,
        "cublas_us": 100.0 * speedup,
        "cublas": {"version": 120805},
        "speedup": speedup,
        "passed": True,
        "checks": [{"kind": "f32", "relative_error": 1e-7}],
        **more,
    }


@pytest.fixture
def folder(tmp_path):
    runs = [
        bench("f16_s75_L128_token_4096x4096x4096_plain", 1.75),
        bench("f16_s50_L128_token_4096x4096x4096_plain", 1.25),
        bench("f16_s75_L128_feature_4096x4096x4096_linear", 3.25),
        bench("f16_s75_L128_token_4096x4096x4096_gelu", 1.5),
        bench("f16_s75_L128_feature_256x1024x4096_plain", 0.5),
        {"arguments": "configs/other.mlir --check", "error": "ended by signal 9"},
    ]
    report = {"commit": "abc", "command": "nm-run --batch l --jobs 1", "runs": runs}
    (tmp_path / "batch.json").write_text(json.dumps(report))
    single = {"commit": "abc", "gpu": "Some GPU", **bench("layer", 2.0)}
    (tmp_path / "single.json").write_text(json.dumps(single))
    (tmp_path / "unrelated.json").write_text(json.dumps([1, 2]))
    return tmp_path


def test_headline_holds_the_plain_products_of_one_shape(folder):
    text = doc_results.headline(folder)
    assert "| f16 | 128 | token-major | 175 | 100 us, 1.25x | 100 us, 1.75x |" in text
    assert "sm_90a" in text and "commit `abc`" in text
    assert "0.50x" not in text and "1.50x" not in text
    assert "| f16 | 128 | feature-major | 325 |" in text and "3.25x" in text


def test_headline_has_each_product_once(folder):
    more = [
        bench(f"f16_s{sparsity}_L128_{layout}_4096x4096x4096_product", 4.0 + i)
        for i, (sparsity, layout) in enumerate(
            [("50", "token"), ("50", "feature"), ("50", "mixed")]
        )
    ]
    other = {"commit": "def", "command": "nm-run --batch l", "runs": more}
    (folder / "most.json").write_text(json.dumps(other))
    text = doc_results.headline(folder)
    assert text.count("| type |") == 1
    assert "| 50 % sparse, 16:32 |" in text
    assert "| f16 | 128 | token-major | 400 | 100 us, 4.00x | most |" in text
    assert "commit `def`" in text and "commit `abc`" not in text


def test_everything_holds_failures_and_other_inputs(folder):
    text = doc_results.everything(folder)
    assert "### 256x1024x4096, plain" in text and "0.50x" in text
    assert "5 runs compared with the float64 product, 5 within tolerance" in text
    assert "`other.mlir`: ended by signal 9" in text
    assert "| layer.mlir | 4096 | 100.0 | 500 | 200 | 2.00x |" in text
    assert "Some GPU" in text


def test_no_report(tmp_path):
    assert doc_results.headline(tmp_path) == doc_results.NONE
    assert doc_results.everything(tmp_path) == doc_results.NONE

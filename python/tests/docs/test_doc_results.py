# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables that scripts/doc_results.py makes of nm-run's reports."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
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


def test_summary_holds_the_named_rows_and_where_they_come_from(folder):
    text = doc_results.headline(folder, doc_results.SUMMARY)
    assert "| f16 | 128 | token-major | 175 | 100 us, 1.25x | 100 us, 1.75x |" in text
    assert "commit `abc`" in text
    only = doc_results.headline(folder, [("f16", 128, "feature")])
    assert "feature-major" in only and "token-major" not in only
    assert doc_results.headline(folder, [("f32", 1, "token")]) == doc_results.NONE


def record(folder, name, date, speedup, cases):
    """A report of bench/run.py: `cases` are pairs of sparsity and layout."""
    runs = [
        bench(f"f16_s{sparsity}_L128_{layout}_4096x4096x4096_product", speedup)
        for sparsity, layout in cases
    ]
    header = {"commit": name, "command": "bench/run.py", "suites": ["cubes"]}
    if date:
        header["date"] = date
    (folder / f"{name}.json").write_text(json.dumps({**header, "runs": runs}))


def test_headline_has_each_product_once(folder):
    record(folder, "new", "2026-11-22", 4.0, [("50", "token"), ("50", "mixed")])
    # The most products, and the last name, but of the day before.
    every = [("50", layout) for layout in ("token", "mixed", "feature")]
    record(folder, "old", "2026-11-21", 3.0, every)
    text = doc_results.headline(folder)
    assert text.count("| type |") == 1
    assert "| 50 % sparse, 16:32 |" in text
    assert "| f16 | 128 | token-major | 400 | 100 us, 4.00x | new |" in text
    assert "| f16 | 128 | feature-major | 300 | 100 us, 3.00x | old |" in text
    # Reports without the model's choices count where there are no others.
    assert "commit `new`" in text and "commit `old`" in text
    assert "commit `abc`" not in text
    assert text.count("* `") == 2


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        # Reports of one day that do not say when: the last name.
        (("b", "2026-11-21"), ("c", "2026-11-21")),
        (("c", "2026-11-21"), ("b", "2026-11-21T03:00:00Z")),
        (("c", "2026-11-21T03:00:00Z"), ("b", "2026-11-21T20:00:00Z")),
        (("c", "2026-11-21T20:00:00Z"), ("b", "2026-11-22")),
        (("c", None), ("b", "2025-01-01")),
    ],
)
def test_the_newest_report_wins(tmp_path, older, newer):
    record(tmp_path, *older, 2.0, [("50", "token"), ("50", "mixed")])
    record(tmp_path, *newer, 4.0, [("50", "token")])
    text = doc_results.headline(tmp_path)
    assert f"token-major | 400 | 100 us, 4.00x | {newer[0]} |" in text


def test_a_part_of_a_row_does_not_hide_it(tmp_path):
    record(tmp_path, "a", "2026-11-21", 2.0, [("50", "token"), ("75", "token")])
    record(tmp_path, "b", "2026-11-22", 4.0, [("50", "token")])
    text = doc_results.headline(tmp_path)
    assert "| a |" in text and "4.00x" not in text and "commit `b`" not in text


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


def test_mutants_that_are_not_found_are_named_by_reason():
    missing = [("a", "barrier", 3, "why"), ("a", "barrier", 7, "why")]
    missing += [("a", "fence", 5, "why"), ("b", "fence", 9, "other")]
    names = ("kernel", "operation", "line", "reason")
    report = {
        "by_operation": {"barrier": {"mutants": 6, "found": 4}},
        "mutants": 8,
        "found": 4,
        "not_found": [dict(zip(names, row)) for row in missing],
        "no_mistakes": [],
    }
    text = doc_results.mutants(report)
    assert "| `barrier` | 6 | 4 |" in text and "| all | 8 | 4 |" in text
    assert "| why | `barrier` (2), `fence` (1) | 3 | 1 |" in text
    assert "| other | `fence` (1) | 1 | 1 |" in text

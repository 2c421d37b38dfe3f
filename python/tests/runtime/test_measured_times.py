# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predictions give way to what a database of measured schedules has."""

import json

import pytest

from nm_sparse import compiler
from nm_sparse.bindings import library as native
from nm_sparse.encoding import Encoding
from nm_sparse.layers.specs import LinearSpec
from nm_sparse.predict import compile_advice
from nm_sparse.runtime.program import advise, compile

TOKENS = 64
SPEC = LinearSpec("#nm_sparse.encoding<2:4, dim = 1>", 512, 1024, "f16")

# Without the compiler there are no times to compare; CI builds it first.
pytestmark = pytest.mark.skipif(
    not native.available(), reason="no library of the compiler"
)


@pytest.fixture(name="database")
def fixture_database(tmp_path):
    """A database with the model's choice, which makes it faster than it is."""
    arguments = ["-", "-o", "-", "--gpu=h200", f"--tokens={TOKENS}", "--candidates=1"]
    (product,) = json.loads(compiler.run(arguments, SPEC.mlir()).text)
    best = min(product["candidates"], key=lambda one: one["predicted_us"])
    entry = {**product["tuning"], "schedule": best["schedule"], "us": 1.25}
    entry.update(spread=0.0, dense_us=2.5, compiler="", driver="")
    path = tmp_path / "tuned.jsonl"
    path.write_text(json.dumps(entry) + "\n")
    return path


def test_advise_has_what_was_measured(database):
    found = advise(512, 1024, "f16", [TOKENS, 4096], ["2:4"], gpu="h200",
                   tuned=database)  # fmt: skip
    sparse = [row for row in found["patterns"] if row["pattern"] == "2:4"]
    few, many = (
        [time for row in sparse for time in row["times"] if time["tokens"] == count]
        for count in (TOKENS, 4096)
    )
    assert {one.get("measured_us") for one in few} == {1.25}
    assert {one.get("measured_dense_us") for one in few} == {2.5}
    assert not any("measured_us" in one for one in many)


def test_predictions_say_which_times_were_measured(database, monkeypatch):
    monkeypatch.setenv("NM_SPARSE_TUNED", str(database))
    pattern = Encoding.parse("2:4, dim = 1")
    few, many = compile_advice((512, 1024), "f16", pattern, [TOKENS, 4096])
    assert tuple(few) == (TOKENS, 2.5, 1.25) and few.is_measured
    assert many.tokens == 4096 and not many.is_measured and many.dense_us > 0
    # Nobody has measured an A100.
    assert not many.is_estimated
    (other,) = compile_advice((512, 1024), "f16", pattern, [4096], chip="sm_80")
    assert other.is_estimated and not other.is_measured


def test_warnings_go_by_what_was_measured(database):
    entry = json.loads(database.read_text())
    asked = {"gpu": "h200", "tokens": [TOKENS], "tuned": database}
    assert not compile(SPEC, **asked).warnings
    database.write_text(json.dumps({**entry, "us": 3.0}) + "\n")
    assert "3.0 us measured; the dense product takes 2.5 us, which is faster" in str(
        compile(SPEC, **asked).warnings
    )


def test_databases_that_are_not_there_are_told(monkeypatch, tmp_path):
    monkeypatch.setenv("NM_SPARSE_TUNED", str(tmp_path / "none.jsonl"))
    pattern = Encoding.parse("2:4, dim = 1")
    with pytest.raises(compiler.CompileError, match="cannot read .*none.jsonl"):
        compile_advice((512, 1024), "f16", pattern, [TOKENS])

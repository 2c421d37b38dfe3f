# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose schedules were measured."""

import json
import os
import time

import pytest

from nm_sparse import compiler
from nm_sparse.bindings import library as native
from nm_sparse.compiler import CompileError
from nm_sparse.layers.specs import LinearSpec
from nm_sparse.runtime import databases
from nm_sparse.runtime.program import compile

pytestmark = pytest.mark.skipif(
    not native.available(), reason="no library of the compiler"
)

SPEC = LinearSpec("#nm_sparse.encoding<8:32, block = [1, 64], dim = 1>", 128, 256)
TOKENS = 256


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NM_SPARSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NM_SPARSE_TUNED", raising=False)
    return tmp_path


def candidates(gpu=None):
    """The problem of the layer, and schedules for it, the model's best one first."""
    arguments = ["-", "-o", "-", f"--tokens={TOKENS}", "--candidates=3"]
    arguments += [f"--gpu={gpu}"] if gpu else []
    (product,) = json.loads(compiler.run(arguments, SPEC.mlir()).text)
    ranked = sorted(product["candidates"], key=lambda one: one["predicted_us"])
    return product["tuning"], [one["schedule"] for one in ranked]


def write(path, problem, schedule, us=1.0):
    rest = {"spread": 0, "dense_us": 0, "compiler": "", "driver": ""}
    line = {**problem, "schedule": schedule, "us": us, **rest}
    path.write_text(json.dumps(line) + "\n")


def kernels(**options):
    return compile(SPEC, tokens=[TOKENS], **options).ptx


def test_measured_schedules_are_taken(folder, monkeypatch):
    problem, (best, *others) = candidates()
    write(folder / "a.jsonl", problem, others[-1])
    model, measured = kernels(), kernels(tuned=[folder / "a.jsonl"])
    assert measured != model
    # A file of that name with other contents is no entry of the cache.
    write(folder / "a.jsonl", problem, best)
    assert kernels(tuned=[folder / "a.jsonl"]) == model
    write(folder / "b.jsonl", problem, others[-1], us=0.5)
    names = [str(folder / name) for name in ("a.jsonl", "b.jsonl")]
    monkeypatch.setenv("NM_SPARSE_TUNED", os.pathsep.join(names))
    assert kernels() == measured
    assert kernels(tuned=[]) == model
    assert kernels(tuned=[], use_cache=False) == model
    # One that options name takes the place of the variable.
    path = folder / "a.jsonl"
    assert kernels(options=[f"--tuned={path}"]) == model
    assert kernels(tuned=str(path)) == kernels(tuned=path) == model


def test_databases_that_cannot_be_read_are_named(folder):
    with pytest.raises(CompileError, match="cannot read .*none.jsonl"):
        kernels(tuned=[folder / "none.jsonl"])
    (folder / "a.jsonl").write_text('{"version": 3}\n')
    with pytest.raises(
        CompileError, match="a.jsonl:1: this compiler reads versions 1 and 2"
    ):
        kernels(tuned=[folder / "a.jsonl"])


def test_schedules_that_are_not_legal_are_ignored(folder):
    problem, _ = candidates()
    write(folder / "a.jsonl", problem, "#nm_tile.schedule<of_old = 1>")
    made = compile(SPEC, tokens=[TOKENS], tuned=[folder / "a.jsonl"])
    assert made.ptx == kernels()


@pytest.fixture
def shipped(folder, monkeypatch):
    """A folder in the place of that of the package."""
    monkeypatch.setattr(databases, "_FOLDERS", (folder / "none", folder / "tuned"))
    databases.shipped.cache_clear()
    (folder / "tuned").mkdir()
    yield folder / "tuned"
    databases.shipped.cache_clear()


def test_the_database_of_the_package_is_taken(shipped, folder, monkeypatch):
    problem, (*_, last) = candidates("h200")
    write(shipped / "h200.jsonl", problem, last)
    model, measured = kernels(gpu="h200", tuned=[]), kernels(gpu="h200")
    assert measured != model
    assert measured == kernels(gpu="h200", tuned=shipped / "h200.jsonl")
    # Another GPU has none; what is named, even if it is nothing, takes its place.
    other = compile(SPEC, gpu="h100", tokens=[TOKENS])
    assert not any("tuned" in argument for argument in other.arguments)
    unknown = compile(SPEC, chip="sm_90a", tokens=[TOKENS])
    assert not any("tuned" in argument for argument in unknown.arguments)
    assert kernels(gpu="h200", options=["--tuned="]) == model
    monkeypatch.setenv("NM_SPARSE_TUNED", "")
    assert kernels(gpu="h200") == model
    (folder / "a.jsonl").write_text("")
    monkeypatch.setenv("NM_SPARSE_TUNED", str(folder / "a.jsonl"))
    assert kernels(gpu="h200") == model


def test_the_package_has_a_database(monkeypatch):
    monkeypatch.delenv("NM_SPARSE_TUNED", raising=False)
    assert databases.shipped("h100") is None and databases.shipped("") is None
    (own,) = databases.choose(None, (), "h200")
    assert own == databases.shipped("h200") and os.path.getsize(own) > 1000
    assert databases.choose([], (), "h200") == databases.choose(None, (), None) == []


def test_databases_are_read_once(folder, monkeypatch):
    path = folder / "large.jsonl"
    path.write_text("\n" * (8 << 20))
    first = databases.digest(str(path))
    reads = []
    monkeypatch.setattr("builtins.open", lambda *args: reads.append(args))
    began = time.perf_counter()
    assert {databases.digest(str(path)) for _ in range(1000)} == {first}
    assert time.perf_counter() - began < 1  # a thousand layers, a millisecond each
    assert not reads
    monkeypatch.undo()
    # Another size, another time, another file.
    path.write_text("\n")
    second = databases.digest(str(path))
    path.write_text(" ")
    os.utime(path, ns=(1, 1))
    third = databases.digest(str(path))
    assert len({first, second, third}) == 3
    path.unlink()
    assert databases.digest(str(path)) == ""

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The databases that ship: all entries are of this compiler."""

import json
import random
from pathlib import Path

import pytest
from candidate_schedules import compile_with, list_products

import nm_sparse as nm
from nm_sparse.bindings import library as native
from nm_sparse.encoding import Encoding
from nm_sparse.layers.specs import LinearSpec

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "share/nm_sparse/tuned").glob("*.jsonl"))
pytestmark = pytest.mark.skipif(
    not native.available(), reason="no library of the compiler"
)


def entries(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_there_are_some():
    assert [path.stem for path in FILES] == ["h200"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_entries_are_of_one_gpu_and_faster_than_nothing(path):
    listed = entries(path)
    keys = {json.dumps({k: e[k] for k in sorted(e) if k in PROBLEM}) for e in listed}
    assert len(keys) == len(listed), "a problem has two entries"
    for entry in listed:
        assert entry["gpu"] == path.stem
        assert 0 < entry["us"] and 0 <= entry["spread"] < 0.5


PROBLEM = "encoding storage type x y patches batch inputs outputs tokens".split()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("seed", range(4))
def test_drawn_entries_are_taken(path, seed, tmp_path):
    entry = random.Random(seed).choice(entries(path))
    sizes = entry["outputs"], entry["inputs"]
    encoding = Encoding.parse(entry["encoding"]).mlir()
    spec = LinearSpec(encoding, *sizes, entry["type"])
    (product,) = list_products(spec.mlir(), [entry["tokens"]], gpu=path.stem)
    problem = product["tuning"]
    assert problem == {key: entry[key] for key in problem}
    own = dict(gpu=path.stem, tokens=[entry["tokens"]], use_cache=False)
    program = nm.compile(spec, tuned=path, **own)
    assert "ignores" not in program.warnings
    alone, is_taken = compile_with(spec, entry, tmp_path / "one.jsonl")
    assert is_taken and program.ptx == alone.ptx

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From how many tokens on layers of a model multiply by dense copies, and why."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dense_cases import layer_of, mlp_of, numbers  # noqa: E402
from export_cases import needs_library  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.bindings.library import LibraryNotFoundError  # noqa: E402
from nm_sparse.compiler import CompileError  # noqa: E402
from nm_sparse.torch import NMLinear, share_input_, use_dense_  # noqa: E402
from nm_sparse.torch.models.dense_plan import COUNTS, choose  # noqa: E402


class Model(nn.Module):
    """Outputs say which layer is which: 8 and 16 of q and k, 24 of gate and up."""

    def __init__(self):
        super().__init__()
        self.attention = nn.Identity()
        self.attention.q, self.attention.k = layer_of(32, 8), layer_of(32, 16)
        share_input_(self.attention, ("q", "k"))
        self.mlp = mlp_of(32, 24, "silu", (None,) * 3)[0]
        self.out = layer_of(32, 40, bias=True)
        self.half()


NAMES = ["attention.q", "attention.k", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
NAMES += ["out"]


class Predictor:
    """Microseconds that are told for each number of outputs: of a dense layer 100, of a
    sparse one what grows with each number of tokens."""

    def __init__(self, first, step):
        self.first, self.step, self.calls = first, step, []

    def __call__(self, shape, dtype, encoding, tokens, chip):
        assert dtype == "f16" and str(encoding) in ("2:4, dim = 1", "4:8, dim = 1")
        assert tuple(tokens) == COUNTS
        self.calls.append((shape, chip))
        first = self.first[shape[0]]
        if isinstance(first, Exception):
            raise first
        return [(n, 100.0, first + at * self.step) for at, n in enumerate(tokens)]


def test_numbers_are_found_for_each_operator():
    model = Model()
    # Sums of q and k are 150 + 20 * at, of the MLP 230 + 30 * at.
    predictor = Predictor({8: 50, 16: 100, 24: 80, 32: 70, 40: -500}, 10)
    report = use_dense_(model, predictor=predictor, chip="sm_90a")
    together = {"attention.q": COUNTS[3], "attention.k": COUNTS[3]}
    together.update(dict.fromkeys(NAMES[2:5], COUNTS[3]), out=None)
    assert numbers(model) == together == report.dense_from
    assert set(predictor.calls) == {((n, k), "sm_90a") for n, k in (
        (8, 32), (16, 32), (24, 32), (32, 24), (40, 32))}  # fmt: skip
    assert len(predictor.calls) == 5  # of gate and up one
    rows = {row.name: row for row in report.rows}
    assert list(rows) == NAMES
    assert rows["out"].reason == "sparse is predicted to be faster for 1 to 4096 tokens"
    said = "sparse is predicted to be no faster from 8 on"
    assert {rows[name].reason for name in NAMES[:5]} == {said}
    assert rows["out"].copy_bytes == 0 and rows["attention.k"].copy_bytes == 16 * 32 * 2
    assert rows["out"].weight_bytes == 40 * 32 // 2 * (2 + 1)
    assert report.copy_bytes == 2 * 32 * (8 + 16 + 3 * 24)
    text = str(report)
    assert text.splitlines()[2].split()[:5] == ["attention.q", "8", "tokens", "0", "+"]
    assert "5 of 6 layers use dense copies, which take 0.0 MiB beside 0.0 MiB" in text
    # Asked again, the same; then others, and none.
    assert use_dense_(model, predictor=predictor).dense_from == together
    assert set(use_dense_(model, 7).dense_from.values()) == {7}
    off = use_dense_(model, None)
    assert set(off.dense_from.values()) == {None} and off.copy_bytes == 0
    assert {row.reason for row in off.rows} == {"as asked"}


def test_layers_that_stay():
    model = Model()
    model.byte = NMLinear(8, 8, "2:4", dtype=torch.int8)
    model.wide = NMLinear(8, 8, "2:4", dtype=torch.float64)
    model.hooked = layer_of(8, 8)
    weight = model.hooked.weight.detach()
    del model.hooked.weight
    model.hooked.weight = weight
    predictor = Predictor({24: 10, 32: 10, 40: CompileError("too odd")}, 100)
    found = use_dense_(
        model, filter_fn=lambda layer, name: name != "attention.k", predictor=predictor
    )
    operator = "it is one operator with attention.k, which stays"
    assert {row.name: row.reason for row in found.rows if not row.dense_from} == {
        "attention.q": operator,
        "attention.k": "filter_fn leaves it",
        "out": "no times are predicted for it: too odd",
        "byte": "layers of torch.int8 have no kernels to choose from",
        "wide": "layers of torch.float64 have no kernels to choose from",
        "hooked": "its weight is sharded, or computed by a hook; undo that first",
    }
    assert model.mlp.down_proj.dense_from == COUNTS[1]
    # One that has a number does not keep others from theirs.
    model.attention.k.dense_from = 9
    found = use_dense_(model, 5, lambda layer, name: name != "attention.k")
    assert found.dense_from["attention.k"] == 9
    assert found.dense_from["attention.q"] == 5
    use_dense_(model, None, lambda layer, name: name == "out")
    assert found.dense_from == {**numbers(model), "out": 5}


@pytest.mark.parametrize("tokens", [0, -1, True, False, "x", 2.0])
def test_wrong_numbers_are_named(tokens):
    model = Model()
    said = f"tokens is {tokens!r}: legal is 'auto', a number from 1 on, or None"
    with pytest.raises(EncodingError, match=said):
        use_dense_(model, tokens)
    assert set(numbers(model).values()) == {None}


def test_without_the_library_nothing_changes(monkeypatch):
    model = Model()
    monkeypatch.setenv("NM_SPARSE_LIBRARY", "/nowhere")
    with pytest.raises(LibraryNotFoundError):
        use_dense_(model)
    assert set(numbers(model).values()) == {None}
    assert set(use_dense_(model, 3).dense_from.values()) == {3}


def test_the_least_number_is_chosen():
    rng = np.random.default_rng(0)
    for count in range(200):
        is_dense = (rng.random(len(COUNTS)) < count / 200).tolist()
        found, why = choose(is_dense)
        if found is None:
            assert not is_dense[-1]
            assert why.endswith("for 4096 tokens") == any(is_dense)
            continue
        at = COUNTS.index(found)
        assert all(is_dense[at:]) and (at == 0 or not is_dense[at - 1])
    assert choose([True] * len(COUNTS))[0] == 1
    assert COUNTS == tuple(sorted(set(COUNTS)))


@needs_library
def test_the_compiler_is_asked():
    model = nn.Module()
    model.few = NMLinear(4096, 14336, "8:16", bias=False, dtype=torch.float16)
    model.many = NMLinear(
        4096, 4096, "8:32, block = [1, 128]", bias=False, dtype=torch.float16
    )
    found = use_dense_(model, chip="sm_90a").dense_from
    assert found["many"] is None and 1 < found["few"] <= 2048

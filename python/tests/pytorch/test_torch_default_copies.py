# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dense copies that `sparsify_` gives layers that are slower for some tokens, and what
`fuse_` makes of their numbers."""

import copy
import dataclasses
import json

import pytest

torch = pytest.importorskip("torch")

from dense_cases import mlp_of, numbers  # noqa: E402
from export_cases import needs_library  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    NMSparseConfig,
    fuse_,
    sparsify_,
    use_dense_,
)
from nm_sparse.torch.models.dense_plan import COUNTS  # noqa: E402

TOKENS = (1, 16, 512, 2048)


class Attention(nn.Module):
    """Outputs say which layer is which."""

    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(32, n) for n in (8, 16, 24))

    def forward(self, x):
        return self.q_proj(x), self.k_proj(x), self.v_proj(x)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (
            nn.Linear(*size, bias=False) for size in ((32, 48), (32, 48), (48, 32))
        )
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.attention, self.mlp, self.out = Attention(), MLP(), nn.Linear(32, 40)


class Predictor:
    """Microseconds: 100 of a dense layer; of a sparse one 50, and 130 from the number
    of tokens on that is told for its number of outputs; None: never."""

    def __init__(self, slower_from, slow=130.0):
        self.slower_from, self.slow, self.calls = slower_from, slow, []

    def __call__(self, shape, dtype, encoding, tokens, chip):
        self.calls.append((shape, dtype, tuple(tokens), chip))
        first = self.slower_from[shape[0]]
        return [
            (n, 100.0, self.slow if first is not None and n >= first else 50.0)
            for n in tokens
        ]


def test_layers_that_are_slower_for_some_tokens_get_copies():
    model = Model()
    predictor = Predictor({8: 512, 16: None, 24: 1, 48: 17, 32: 600, 40: 3000})
    report = sparsify_(model, NMSparseConfig("4:8"), predictor=predictor, chip="sm_90a")
    assert numbers(model) == {
        "attention.q_proj": 512,
        "attention.k_proj": None,  # always faster
        "mlp.gate_proj": 24,
        "mlp.up_proj": 24,
        "mlp.down_proj": 768,
        "out": None,  # slower for none of the config's tokens
    }
    assert report.left_dense == {
        "attention.v_proj": "sparse is predicted to be no faster for 1, 16, 512, 2048 "
        "tokens"
    }
    asked = [call for call in predictor.calls if call[2] == COUNTS]
    assert len(asked) == 3 and {call[3] for call in asked} == {"sm_90a"}
    rows = {row.name: row for row in report.rows}
    assert rows["mlp.up_proj"].dense_from == 24
    assert rows["mlp.up_proj"].copy_bytes == 4 * 48 * 32
    assert rows["out"].dense_from is None and rows["out"].copy_bytes == 0
    plain = json.loads(json.dumps(report.to_dict()))["rows"]
    assert [row["dense_from"] for row in plain] == [512, None, None, 24, 24, 768, None]
    text = str(report)
    assert "sparse, dense copy from 24 tokens on" in text
    assert "4 of these multiply many tokens by dense copies, which take 0.0 MiB" in text
    assert "dense_copies=False in the config makes none" in text


@pytest.mark.parametrize(
    "change", [{"dense_copies": False}, {"keep_slower": True}, {"tokens": (1, 8)}]
)
def test_no_copies_where_that_is_asked_for(change):
    model, config = Model(), NMSparseConfig("4:8")
    predictor = Predictor(dict.fromkeys((8, 16, 24, 48, 32, 40), 512))
    report = sparsify_(
        model, dataclasses.replace(config, **change), predictor=predictor
    )
    assert set(numbers(model).values()) == {None} and len(numbers(model)) == 7
    assert "dense cop" not in str(report)
    fuse_(model, predictor=predictor)
    assert set(numbers(model).values()) == {None}
    assert all(call[2] != COUNTS for call in predictor.calls)


def test_fuse_gives_operators_one_number():
    model = Model()
    first = {8: 512, 16: None, 24: 2048, 48: 16, 32: 3000, 40: 100}
    sparsify_(model, NMSparseConfig("4:8"), predictor=Predictor(first))
    alone = numbers(model)
    assert alone["attention.v_proj"] == 2048 and alone["mlp.down_proj"] is None
    # Sums of q, k, v: 150, 230 from 512 on, 310 from 2048 on, dense 300. Those of the
    # MLP: 310 from 16 on, dense 300.
    predictor = Predictor(first)
    fused = copy.deepcopy(model)
    report = fuse_(fused, predictor=predictor, chip="sm_90a")
    assert len(report.fused) == 2
    assert [row.dense_from for row in report.rows] == [2048, 16]
    assert "mlp: gated MLP, with dense copies from 16 tokens on" in str(report)
    together = {name: 2048 if "attention" in name else 16 for name in alone}
    assert numbers(fused) == {**together, "out": 128}
    assert {call[0][0] for call in predictor.calls} == {8, 16, 24, 48, 32}
    # Twice as slow is not made up for: the operator follows q alone.
    fused = copy.deepcopy(model)
    fuse_(fused, predictor=Predictor(first, slow=300.0))
    assert numbers(fused)["attention.k_proj"] == 512
    # The other way round they are found at once.
    other = Model()
    fuse_(other)
    report = sparsify_(other, NMSparseConfig("4:8"), predictor=Predictor(first))
    assert numbers(other) == {**together, "out": 128}
    assert all(row.dense_from for row in report.rows)


def test_numbers_of_the_user_stay():
    first = dict.fromkeys((8, 16, 24, 48, 32, 40), 512)
    model = Model()
    sparsify_(model, NMSparseConfig("4:8"), predictor=Predictor(first))
    model.attention.q_proj.dense_from = 7
    model.mlp.up_proj.dense_from = None
    before = numbers(model)
    fuse_(model, predictor=Predictor(first))
    assert numbers(model) == before
    use_dense_(model, None)
    fuse_(model, predictor=Predictor(first))
    assert set(numbers(model).values()) == {None}
    # Where one layer must have no copy, its operator has none.
    model = Model()
    fuse_(model)
    plain = NMSparseConfig("4:8", dense_copies=False)
    configs = {"*.up_proj": plain, "*": NMSparseConfig("4:8")}
    sparsify_(model, configs, predictor=Predictor(first))
    found = numbers(model)
    assert {found[f"mlp.{one}_proj"] for one in ("gate", "up", "down")} == {None}
    assert found["attention.q_proj"] == found["out"] == 512


def test_without_the_library_numbers_stay(monkeypatch):
    model = Model()
    predictor = Predictor({8: 512, 16: None, 24: None, 48: 16, 32: 100, 40: 100})
    sparsify_(model, NMSparseConfig("4:8"), predictor=predictor)
    before = numbers(model)
    monkeypatch.setenv("NM_SPARSE_LIBRARY", "/nowhere")
    assert len(fuse_(model).fused) == 2
    assert numbers(model) == before


def test_times_that_cannot_be_predicted_leave_no_copy():
    class Failing(Predictor):
        def __call__(self, shape, dtype, encoding, tokens, chip):
            if tuple(tokens) == COUNTS:
                raise EncodingError("too many")
            return super().__call__(shape, dtype, encoding, tokens, chip)

    model = Model()
    first = dict.fromkeys((8, 16, 24, 48, 32, 40), 512)
    report = sparsify_(model, NMSparseConfig("4:8"), predictor=Failing(first))
    assert set(numbers(model).values()) == {None} and len(report.converted) == 7


def test_a_budget_gives_copies_too():
    model = nn.Sequential(nn.Linear(32, 48), nn.Linear(48, 32))
    predictor = Predictor({48: 512, 32: None}, slow=110.0)
    report = sparsify_(
        model, ["2:4"], budget=1.0, calibration=[torch.randn(64, 32)], tokens=(1, 512),
        predictor=predictor, dtype="f16", progress=False,
    )  # fmt: skip
    assert numbers(model) == {"0": 512, "1": None}
    assert [row.dense_from for row in report.rows] == [512, None]
    assert {call[1] for call in predictor.calls} == {"f16"}


@pytest.mark.parametrize("wrong", ["yes", 512, None])
def test_a_wrong_choice_is_named(wrong):
    with pytest.raises(EncodingError, match=f"dense_copies is {wrong!r}: legal is"):
        NMSparseConfig("4:8", dense_copies=wrong)


def test_marks_are_of_each_layer():
    mlp, _ = mlp_of(32, 24, "silu", (None,) * 3)
    assert not any(layer.is_dense_from_timed for layer in mlp.children())
    mlp.up_proj.is_dense_from_timed = True
    assert copy.deepcopy(mlp).up_proj.is_dense_from_timed
    mlp.up_proj.dense_from = None
    assert not mlp.up_proj.is_dense_from_timed


@needs_library
def test_the_compiler_is_asked():
    layer = nn.Linear(2048, 4096, bias=False).half()
    model = nn.ModuleDict({"few": layer, "many": copy.deepcopy(layer)})
    configs = {
        "few": NMSparseConfig("8:16"),
        "many": NMSparseConfig("8:32, block = [1, 128]"),
    }
    report = sparsify_(model, configs, chip="sm_90a")
    found = {row.name: row.dense_from for row in report.rows}
    assert found["many"] is None and 1 < found["few"] <= 512
    assert found == numbers(model)
    assert use_dense_(model, chip="sm_90a").dense_from == found

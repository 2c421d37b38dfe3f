# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sparsify_: which layers of a model become sparse, and what the report says."""

import copy
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.utils import parametrizations, prune  # noqa: E402

import nm_sparse as nm  # noqa: E402
from nm_sparse import Encoding, EncodingError  # noqa: E402
from nm_sparse.predict import MeasuredTime  # noqa: E402
from nm_sparse.torch import NMLinear, NMSparseConfig, sparsify_  # noqa: E402

CONFIG = NMSparseConfig("2:4")


class Block(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Model(nn.Module):
    def __init__(self, layers=2, width=16):
        super().__init__()
        torch.manual_seed(0)
        self.tokens = nn.Embedding(10, width)
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, 10, bias=False)

    def forward(self, ids):
        x = self.tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def constant(times):
    """A predictor that knows (dense, sparse) from some numbers of tokens on."""

    def predictor(shape, dtype, encoding, tokens, chip):
        assert dtype == "f32" and encoding.dim == 1 and len(shape) == 2
        return [(n, *times[max(one for one in times if one <= n)]) for n in tokens]

    return predictor


def test_all_layers():
    model = Model().eval()
    dense, ids = copy.deepcopy(model), torch.arange(10)
    report = sparsify_(model, CONFIG)
    names = [f"layers.{i}.{side}" for i in range(2) for side in ("up", "down")]
    names.append("head")
    assert report.converted == names and report.left_dense == {}
    for row in report.rows:
        old, new = dense.get_submodule(row.name), model.get_submodule(row.name)
        assert isinstance(new, NMLinear) and not new.training
        weight = old.weight.detach().numpy()
        pruned = nm.prune(weight, Encoding(2, 4, dim=1))
        assert np.array_equal(new.to_dense().weight.detach().numpy(), pruned)
        share, _ = nm.kept_magnitude(weight, pruned)
        assert row.kept_magnitude == pytest.approx(share)
        assert row.shape == weight.shape and row.encoding == "2:4"
        assert row.dense_bytes == weight.nbytes
        assert row.packed_bytes == weight.nbytes // 2 + weight.size // 2
        old.weight.data.copy_(torch.from_numpy(pruned))
    torch.testing.assert_close(model(ids), dense(ids))
    again = sparsify_(model, CONFIG)
    assert again.rows == () and "0 of 0 " in str(again)


def test_filter_and_patterns():
    model = Model(layers=3)
    report = sparsify_(
        model,
        {
            "head": None,
            "layers.0.*": NMSparseConfig("1:4"),
            "layers.*": CONFIG,
            "layers.1.*": NMSparseConfig("1:2"),
            "absent": None,
        },
        filter_fn=lambda module, name: (
            not name.endswith("down") and module.bias is not None
        ),
    )
    assert report.converted == [f"layers.{i}.up" for i in range(3)]
    assert [model.layers[i].up.encoding.m for i in range(3)] == [4, 4, 4]
    assert [model.layers[i].up.encoding.n for i in range(3)] == [1, 2, 2]
    assert report.left_dense["head"] == "the config leaves 'head' dense"
    assert report.left_dense["layers.0.down"] == "filter_fn leaves it dense"
    assert report.unused_patterns == ("layers.1.*", "absent")
    assert "no layer for: layers.1.*, absent" in str(report)
    report = sparsify_(Model(), {"layers.1.up": CONFIG})
    assert report.converted == ["layers.1.up"]
    assert report.left_dense["head"] == "no pattern of the config matches its name"
    assert [row.encoding for row in report.rows].count(None) == 4


def test_layers_that_cannot_be_replaced():
    class Special(nn.Linear):
        def forward(self, x):
            return super().forward(x.tanh())

    model = Model()
    model.head.weight = model.tokens.weight
    model.special = Special(8, 8)
    model.normed = parametrizations.weight_norm(nn.Linear(8, 8))
    model.masked = prune.l1_unstructured(nn.Linear(8, 8), "weight", 0.5)
    model.hooked = nn.Linear(8, 8)
    model.hooked.register_forward_hook(lambda *_: None)
    model.meta = nn.Linear(8, 8, device="meta")
    model.short = nn.Linear(3, 8)
    model.attention = nn.MultiheadAttention(8, 2)
    view = nn.Linear(8, 8)
    view.weight = nn.Parameter(model.hooked.weight.data.t())
    model.view = view
    before = {name: id(module) for name, module in model.named_modules()}
    report = sparsify_(model, {"layers.*": None, "*": CONFIG})
    reasons = report.left_dense
    assert report.converted == []
    assert reasons["head"] == "it shares its weight with tokens.weight"
    assert reasons["special"] == (
        "it is a Special, not a plain nn.Linear: its forward is not x W^T + b"
    )
    assert reasons["normed"] == "it has parametrizations; remove them first"
    assert "computed by a hook of torch.nn.utils" in reasons["masked"]
    assert reasons["hooked"] == "it has hooks, which the sparse layer would not call"
    assert reasons["meta"] == "it is on the meta device; load the weights first"
    assert reasons["short"] == "its 3 inputs are less than a window of 4"
    assert reasons["attention.out_proj"] == (
        "its weight is read outside of its forward, by MultiheadAttention attention"
    )
    assert reasons["view"] == "it shares its weight with hooked.weight"
    assert {name: id(module) for name, module in model.named_modules()} == before
    wide = sparsify_(Model(), NMSparseConfig("2:4, block = [1, 128]"))
    assert wide.left_dense["head"] == "its 10 outputs are less than a panel of 128"
    # f32 values and an index of 4 bytes for each are more than the dense weight.
    long = nn.ModuleList([nn.Linear(70000, 1)])
    report = sparsify_(long, NMSparseConfig("60000:70000"))
    assert report.left_dense["0"] == "packed it takes 480078 bytes, dense 280000"
    kept = sparsify_(long, NMSparseConfig("60000:70000", keep_slower=True))
    assert kept.converted == ["0"] and isinstance(long[0], NMLinear)


def test_a_layer_in_two_places_is_replaced_in_both():
    model = Model()
    model.layers[1] = model.layers[0]
    model.again = model.layers[0].up
    report = sparsify_(model, CONFIG)
    assert report.converted == ["layers.0.up", "layers.0.down", "head"]
    assert model.again is model.layers[0].up is model.layers[1].up
    assert isinstance(model.again, NMLinear)


def test_predictions_decide():
    times = {1: (10.0, 9.0), 16: (10.0, 20.0)}
    both = NMSparseConfig("2:4", tokens=(1, 16))
    report = sparsify_(Model(), both, predictor=constant(times))
    assert len(report.converted) == 5
    assert [one.speedup for one in report.rows[0].predictions] == [10 / 9, 0.5]
    assert "10.0 -> 20.0" in str(report) and "us, 16 tokens" in str(report)
    assert {row.dense_from for row in report.rows} == {16}
    slow = NMSparseConfig("2:4", tokens=(16,))
    model = Model()
    report = sparsify_(model, slow, predictor=constant(times))
    assert report.converted == [] and isinstance(model.head, nn.Linear)
    reason = "sparse is predicted to be no faster for 16 tokens"
    assert set(report.left_dense.values()) == {reason}
    assert report.rows[0].predictions and report.note == ""
    kept = NMSparseConfig("2:4", tokens=(16,), keep_slower=True)
    assert len(sparsify_(model, kept, predictor=constant(times)).converted) == 5


def test_a_report_is_plain_data():
    times = {count: (10.0, 5.0) for count in CONFIG.tokens}
    report = sparsify_(
        Model(), {"head": None, "*": CONFIG}, predictor=constant(times), chip="sm_90a"
    )
    plain = json.loads(json.dumps(report.to_dict()))
    assert [row["name"] for row in plain["rows"]] == [row.name for row in report.rows]
    assert plain["rows"][0]["predictions"][0] == {
        "tokens": 1,
        "dense_us": 10.0,
        "sparse_us": 5.0,
        "dense_elements_us": None,
        "is_measured": False,
        "is_estimated": False,
    }
    assert plain["size"] == {"total": 9856, "sparse": 8192, "dense": []}
    lines = str(report).splitlines()
    assert lines[0] == "83.1 % of the model's bytes are sparse: 0.0 of 0.0 MiB"
    assert (
        lines[2].split()
        == (
            "layer outputs x inputs encoding kept KiB us, 1 tokens us, 16 tokens "
            "us, 512 tokens us, 2048 tokens result"
        ).split()
    )
    assert lines[-1].startswith("4 of 5 layers are sparse; their weights take")
    assert any("dense: the config leaves 'head' dense" in line for line in lines)


def test_without_a_predictor_the_report_says_so(monkeypatch):
    monkeypatch.setenv("NM_SPARSE_LIBRARY", "/nowhere")
    report = sparsify_(Model(), CONFIG)
    assert report.converted and report.rows[0].predictions == ()
    assert "no times are predicted" in report.note
    assert "library is missing (NM_SPARSE_LIBRARY is '/nowhere'" in str(report)


def test_types_and_scores():
    model = Model()
    scores = {
        name: torch.rand_like(module.weight)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
    }
    dense = copy.deepcopy(model)
    config = NMSparseConfig("2:4", dtype=torch.bfloat16, score=scores)
    report = sparsify_(model, config, predictor=lambda *_: [])
    assert len(report.converted) == 5
    up = model.layers[1].up
    assert up.values.dtype == up.bias.dtype == torch.bfloat16
    expected = nm.prune(scores["layers.1.up"].sqrt().numpy(), Encoding(2, 4, dim=1))
    kept = up.to_dense().weight != 0
    assert np.array_equal(kept.numpy(), expected != 0)
    report = sparsify_(dense, NMSparseConfig("2:4", score=lambda w: w.abs()))
    assert len(report.converted) == 5


def test_nothing_is_replaced_when_one_layer_fails():
    model = Model()
    before = dict(model.named_modules())
    with pytest.raises(EncodingError, match="^layers.0.down: score has no importances"):
        sparsify_(
            model,
            NMSparseConfig("2:4", score={"layers.0.up": torch.ones(32, 16)}),
        )
    with pytest.raises(EncodingError, match=r"^head: scores are \[1\]: legal is a ten"):

        def score(weight):
            return weight.abs() if len(weight) != 10 else torch.ones(1)

        sparsify_(model, NMSparseConfig("2:4", score=score))
    assert dict(model.named_modules()) == before


def test_arguments_must_fit():
    with pytest.raises(TypeError, match="use NMLinear.from_dense"):
        sparsify_(nn.Linear(8, 8), CONFIG)
    with pytest.raises(TypeError, match="config is a int: legal is an NMSparseConfig"):
        sparsify_(Model(), 24)
    with pytest.raises(TypeError, match="'head' is a int: legal is an NMSparseConfig"):
        sparsify_(Model(), {"head": 24})
    with pytest.raises(EncodingError, match="encoding '24'"):
        sparsify_(Model(), "24")
    with pytest.raises(TypeError, match="pattern is 1: legal is a str"):
        sparsify_(Model(), {1: CONFIG})
    with pytest.raises(
        EncodingError, match="dtype is torch.int8: legal is torch.float"
    ):
        NMSparseConfig("2:4", dtype=torch.int8)
    with pytest.raises(EncodingError, match="score is 'wanda': legal is 'magnitude'"):
        NMSparseConfig("2:4", score="wanda")
    with pytest.raises(EncodingError, match="tokens are .0,.: legal are positive"):
        NMSparseConfig("2:4", tokens=(0,))
    with pytest.raises(EncodingError, match="encoding is free"):
        NMSparseConfig(Encoding.free())
    assert NMSparseConfig(Encoding(2, 4)) == NMSparseConfig("#nm_sparse.encoding<2:4>")


def test_frozen_layers_stay_frozen():
    model = Model().requires_grad_(False)
    sparsify_(model, CONFIG)
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_layers_of_torch_that_read_their_weights_still_work():
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    report = sparsify_(model, CONFIG)
    assert report.converted == [f"layers.{i}.linear{j}" for i in (0, 1) for j in (1, 2)]
    x = torch.randn(2, 5, 16)
    dense = copy.deepcopy(model)
    for block in dense.layers:
        block.linear1 = block.linear1.to_dense()
        block.linear2 = block.linear2.to_dense()
    with torch.no_grad():
        torch.testing.assert_close(model(x), dense(x))


def test_state_of_a_sparse_model():
    model = Model()
    sparsify_(model, CONFIG)
    other = Model()
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict(model.state_dict())
    sparsify_(other, NMSparseConfig("2:4", score=lambda w: torch.ones_like(w)))
    other.load_state_dict(model.state_dict())
    ids = torch.arange(10)
    assert torch.equal(other(ids), model(ids))
    torch.testing.assert_close(
        torch.compile(model, backend="aot_eager", fullgraph=True)(ids), model(ids)
    )


def test_a_report_says_what_was_measured():
    def measured(shape, dtype, encoding, tokens, chip):
        return [MeasuredTime(count, 10.0, 5.0) for count in tokens]

    report = sparsify_(Model(), {"head": None, "*": CONFIG}, predictor=measured)
    (row, *_) = [row for row in report.rows if row.is_converted]
    assert row.predictions and all(one.is_measured for one in row.predictions)
    assert "10.0 -> 5.0 (measured)" in str(report)

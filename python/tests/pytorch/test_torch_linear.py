# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NMLinear: a linear layer with a packed weight, as a module."""

import copy
import io
import json
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch_cases import ENCODINGS, ragged_shape  # noqa: E402

import nm_sparse as nm  # noqa: E402
from nm_sparse import Encoding, EncodingError  # noqa: E402
from nm_sparse.torch import NMLinear  # noqa: E402
from nm_sparse.torch.weight.spec import ACTIVATIONS  # noqa: E402

EACH = pytest.mark.parametrize("e", ENCODINGS, ids=str)


def dense_layer(e, seed, bias=True, dtype=torch.float32):
    torch.manual_seed(seed)
    n, k = ragged_shape(np.random.default_rng(seed), e)
    return nn.Linear(k, n, bias=bias, dtype=dtype)


@EACH
@pytest.mark.parametrize("bias", [False, True])
def test_from_dense_and_back(e, bias):
    linear = dense_layer(e, 1, bias).eval()
    layer = NMLinear.from_dense(linear, e)
    back = layer.to_dense()
    assert type(back) is nn.Linear and not layer.training and not back.training
    pruned = nm.prune(linear.weight.detach().numpy(), e)
    assert np.array_equal(back.weight.detach().numpy(), pruned)
    assert (back.in_features, back.out_features) == (
        linear.in_features,
        linear.out_features,
    )
    x = torch.randn(2, 3, linear.in_features)
    torch.testing.assert_close(layer(x), back(x))
    if bias:
        assert torch.equal(layer.bias, linear.bias) and layer.bias is not linear.bias
    again = NMLinear.from_dense(back, e, prune=False)
    torch.testing.assert_close(again.to_dense().weight, back.weight)
    names = list(nm.packed_shapes(layer.encoding, tuple(linear.weight.shape)))
    bias_name = ["bias"] if bias else []
    assert [*layer.state_dict()] == [*names, *bias_name, "_extra_state"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation):
    linear = dense_layer(ENCODINGS[1], 2)
    layer = NMLinear.from_dense(linear, ENCODINGS[1], activation=activation)
    x = torch.randn(4, linear.in_features)
    torch.testing.assert_close(layer(x), layer.to_dense()(x))
    assert ("activation" in repr(layer)) == (activation != "none")


def test_scores_and_order_are_those_given():
    e = Encoding(2, 4, (1, 2), dim=1, order="shuffled")
    linear = nn.Linear(12, 6)
    perm = torch.tensor([5, 0, 3, 1, 4, 2])
    scores = torch.rand(6, 12)
    layer = NMLinear.from_dense(linear, e, scores, perm=perm)
    assert torch.equal(layer.perm, perm.int())
    kept = layer.to_dense().weight != 0
    expected = nm.prune(scores.sqrt().numpy(), e, perm=perm.numpy()) != 0
    assert np.array_equal(kept.numpy(), expected)
    with pytest.raises(EncodingError, match="weight is not 2:4 in the order that was"):
        NMLinear.from_dense(linear, e, prune=False)


def test_it_says_what_it_is():
    text = "8:32, block = [1, 128]"
    layer = NMLinear(64, 128, text, bias=False)
    assert repr(layer) == (
        f"NMLinear(in_features=64, out_features=128, encoding='{text}', bias=False)"
    )
    assert layer.weight.shape == (128, 64) and layer.weight.dtype == torch.float32
    assert layer.weight.components["values"] is layer.values
    with pytest.raises(EncodingError, match="encoding '8/32' has '/'"):
        NMLinear(64, 128, "8/32")
    with pytest.raises(EncodingError, match="activation is 'tanh'"):
        NMLinear(64, 128, text, activation="tanh")


@EACH
def test_state_dict_of_a_new_layer(e):
    linear = dense_layer(e, 3)
    layer = NMLinear.from_dense(linear, e)
    x = torch.randn(5, linear.in_features)
    new = NMLinear(linear.in_features, linear.out_features, e)
    new.weight.validate()
    assert torch.equal(new(x), torch.zeros(5, linear.out_features))
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    new.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(new(x), layer(x))
    meta = NMLinear(linear.in_features, linear.out_features, e, device="meta")
    meta.load_state_dict(layer.state_dict(), assign=True)
    assert torch.equal(meta(x), layer(x))


def test_safetensors_round_trip(tmp_path):
    files = pytest.importorskip("safetensors.torch")
    model = nn.Sequential(NMLinear.from_dense(nn.Linear(16, 8), "2:4"), nn.ReLU())
    files.save_model(model, str(tmp_path / "model.safetensors"))
    new = nn.Sequential(NMLinear(16, 8, "2:4"), nn.ReLU())
    files.load_model(new, str(tmp_path / "model.safetensors"))
    x = torch.randn(3, 16)
    assert torch.equal(new(x), model(x))


def error_of(model, state):
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(RuntimeError) as raised:
        model.load_state_dict(state)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    return str(raised.value)


def test_checkpoints_that_do_not_fit():
    def model(text, inputs=16):
        return nn.ModuleDict({"up": NMLinear.from_dense(nn.Linear(inputs, 8), text)})

    own = model("2:4")
    assert (
        "up: the checkpoint has #nm_sparse.encoding<1:2, dim = 1> of shape [8, 16], "
        "the layer #nm_sparse.encoding<2:4, dim = 1> of shape [8, 16]: make the layer"
    ) in error_of(own, model("1:2").state_dict())
    assert "of shape [8, 15], the layer" in error_of(own, model("2:4", 15).state_dict())
    dense = nn.ModuleDict({"up": nn.Linear(16, 8)}).state_dict()
    assert "up: the checkpoint has a dense weight: load it" in error_of(own, dense)
    state = own.state_dict()
    state["up.index"] = torch.full_like(state["up.index"], 3)
    assert "up: index of window 0, panel 0 is [3, 3]" in error_of(own, state)
    state = own.state_dict()
    state["up.index"] = state["up.index"].long()
    assert "up: index is [8, 8] of torch.int64" in error_of(own, state)
    state = own.state_dict()
    del state["up.index"]
    with pytest.raises(RuntimeError, match='Missing key.*"up.index"'):
        own.load_state_dict(state)
    state = own.state_dict()
    state["up._extra_state"] = torch.zeros(3, dtype=torch.uint8)
    assert "_extra_state that no NMLinear has written" in error_of(own, state)
    state["up._extra_state"] = "text"
    assert "_extra_state that no NMLinear has written" in error_of(own, state)
    with pytest.raises(EncodingError, match="make the layer with the encoding"):
        own["up"].set_extra_state(model("1:2")["up"].get_extra_state())
    stored = own["up"].get_extra_state()
    assert json.loads(bytes(stored.tolist())) == {
        "encoding": "#nm_sparse.encoding<2:4, dim = 1>",
        "shape": [8, 16],
    }


def test_unsigned_positions_of_numpy_are_loaded():
    e = Encoding(1, 300, dim=1)
    weight = np.zeros((3, 300), np.float32)
    weight[range(3), [0, 299, 280]] = 1
    packed = nm.encode(weight, e)
    state = {name: torch.from_numpy(part) for name, part in packed.components.items()}
    assert state["index"].dtype == torch.uint16
    layer = NMLinear(300, 3, e, bias=False)
    layer.load_state_dict(state, strict=False)
    assert np.array_equal(layer.to_dense().weight.detach().numpy(), weight)


@EACH
def test_copies(e):
    layer = NMLinear.from_dense(dense_layer(e, 4), e, activation="relu")
    x = torch.randn(3, layer.in_features)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(x), layer(x)) and repr(other) == repr(layer)
        assert other.values is not layer.values
        with torch.no_grad():
            other.values.mul_(2)
        assert not torch.equal(other.to_dense()[0].weight, layer.to_dense()[0].weight)


def test_conversions():
    layer = NMLinear.from_dense(nn.Linear(24, 10), "2:4, order = shuffled")
    x = torch.randn(3, 24)
    y = layer(x)
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        other = copy.deepcopy(layer).to(dtype)
        assert other.index.dtype == torch.uint8 and other.perm.dtype == torch.int32
        torch.testing.assert_close(other(x.to(dtype)).float(), y, rtol=0.02, atol=0.02)
    meta = copy.deepcopy(layer).to("meta")
    assert {t.device.type for t in meta.state_dict().values()} == {"meta", "cpu"}
    assert meta(x.to("meta")).shape == y.shape
    with pytest.raises(EncodingError, match="x is torch.float64 and the weight torch"):
        layer(x.double())


def test_trained_or_not():
    linear = nn.Linear(8, 4).requires_grad_(False)
    layer = NMLinear.from_dense(linear, "2:4")
    assert not layer.weight.requires_grad and not layer.bias.requires_grad
    assert not layer.to_dense().weight.requires_grad
    narrow = NMLinear(8, 4, "2:4", dtype=torch.float8_e4m3fn)
    assert not narrow.weight.requires_grad and narrow.bias.dtype == torch.float32
    assert narrow(torch.ones(2, 8)).shape == (2, 4)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
@EACH
def test_training_keeps_the_pattern(e, optimizer):
    linear = dense_layer(e, 5)
    layer = NMLinear.from_dense(linear, e, activation="silu")
    steps = optimizer(layer.parameters(), lr=0.05, weight_decay=0.1)
    x, before = torch.randn(16, layer.in_features), layer.to_dense()[0].weight.clone()
    target = torch.randn(16, layer.out_features)
    losses = []
    for _ in range(5):
        loss = F.mse_loss(layer(x), target)
        steps.zero_grad()
        loss.backward()
        steps.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    layer.weight.validate()
    after = layer.to_dense()[0].weight
    assert torch.equal(after != 0, before != 0) and not torch.equal(after, before)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.up = NMLinear.from_dense(
            nn.Linear(20, 32), "2:4, block = [1, 8]", activation="gelu"
        )
        self.down = NMLinear.from_dense(nn.Linear(32, 20), "2:4, order = shuffled")

    def forward(self, x):
        return x + self.down(self.up(x))


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict):
    model, x = Model().eval().requires_grad_(False), torch.randn(4, 6, 20)
    tokens = torch.export.Dim("tokens", min=2, max=64)
    program = torch.export.export(
        model, (x,), dynamic_shapes={"x": {1: tokens}}, strict=strict
    )
    nodes = [n for n in program.graph.nodes if "nm_sparse.linear" in str(n.target)]
    assert len(nodes) == 2 and all("encoding" in node.args[3] for node in nodes)
    other = torch.randn(4, 9, 20)
    torch.testing.assert_close(program.module()(other), model(other))
    assert {"up.weight", "down.weight"} <= set(program.state_dict)
    lowered = program.run_decompositions()
    assert any("nm_sparse.linear" in str(n.target) for n in lowered.graph.nodes)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    torch.testing.assert_close(torch.export.load(file).module()(other), model(other))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_of_a_model(dynamic):
    model = Model()
    torch._dynamo.reset()
    compiled = torch.compile(
        model, backend="aot_eager", fullgraph=True, dynamic=dynamic
    )
    for shape in ((3, 20), (2, 5, 20)):
        x = torch.randn(shape)
        torch.testing.assert_close(compiled(x), model(x))
    compiled(x).sum().backward()
    grads = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    torch.testing.assert_close(grads, [p.grad for p in model.parameters()])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = compiled(x)
    torch.testing.assert_close(half, model(x), rtol=0.05, atol=0.05)


def test_inductor():
    # Nothing around the operator: that would be compiled as C++, which takes long.
    model, x = Model(), torch.randn(20, 3).t()
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: model.down(model.up(x)), fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model.down(model.up(x)))


def test_checkpointed_and_functional_calls():
    from torch.utils.checkpoint import checkpoint

    model, x = Model(), torch.randn(3, 20, requires_grad=True)
    checkpoint(model, x, use_reentrant=False).sum().backward()
    grad = x.grad.clone()
    x.grad = None
    model(x).sum().backward()
    torch.testing.assert_close(grad, x.grad)
    parameters = {name: 2 * p.detach() for name, p in model.named_parameters()}
    doubled = torch.func.functional_call(
        model.up, {"weight": parameters["up.weight"]}, x
    )
    assert not torch.equal(doubled, model.up(x))

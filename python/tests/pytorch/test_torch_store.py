# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that hold their weights as bitmaps: state, copies, conversions, graphs."""

import copy
import io
import pickle

import pytest

torch = pytest.importorskip("torch")

from storage_cases import draw_weight, same_bits  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.utils import prune  # noqa: E402
from torch_cases import random_weight  # noqa: E402

from nm_sparse import Encoding, EncodingError, Level  # noqa: E402
from nm_sparse.torch import GatedMLP, NMLinear, export_mlir, share_input_  # noqa: E402

ENCODINGS = [
    Encoding(2, 4, dim=1),
    Encoding(3, 7, (1, 5), dim=1),
    Encoding(1, 32, dim=1),  # whose bitmaps differ by the size of elements
    Encoding(2, 4, (1, 3), dim=1, order="shuffled"),
    Encoding(4, 8, (1, 32), dim=1, inner=Level(2, 4)),
]
EACH = pytest.mark.parametrize("e", ENCODINGS, ids=str)


def make(e, seed=0, dtype=torch.float32, activation="none", **options):
    """A layer in canonical form, and the same one that holds bitmaps."""
    packed, _ = random_weight(e, seed, dtype, (45, 70))
    bias = torch.randn(45, generator=torch.Generator().manual_seed(seed)).to(dtype)
    layer = NMLinear.from_packed(packed, bias, activation).eval()
    return layer, copy.deepcopy(layer).store_("bitmap")


def same_state(first, second):
    first, second = first.state_dict(), second.state_dict()
    return list(first) == list(second) and all(
        same_bits(first[name], second[name]) for name in first
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_layer_goes_back_and_forth(seed):
    packed = draw_weight(seed)
    layer = NMLinear.from_packed(packed)
    before = copy.deepcopy(layer)
    assert layer.store_("bitmap") is layer and layer.storage == "bitmap"
    last = "inner_index" if packed.encoding.inner else "index"
    names = ["bits" if name == last else name for name in packed.components]
    assert list(layer.store_("bitmap").weight.components) == names
    assert same_state(layer, before)
    for name, part in layer.weight.canonical().components.items():
        assert same_bits(part, packed.components[name])
    layer.store_("canonical")
    assert layer.storage == "canonical" and same_state(layer, before)
    assert layer.weight.components["values"] is layer.values
    assert not layer.weight.requires_grad


@EACH
def test_it_computes_the_same(e):
    for activation in ("none", "silu"):
        layer, stored = make(e, 1, activation=activation)
        x = torch.randn(2, 3, 70)
        assert torch.equal(stored(x), layer(x))
        dense, same = layer.to_dense(), stored.to_dense()
        for one, other in zip(dense.parameters(), same.parameters()):
            assert torch.equal(one, other)
        assert repr(stored) == repr(layer)[:-1] + ", storage=bitmap)"
        x.requires_grad_()
        grads = [torch.autograd.grad(one(x).sum(), x)[0] for one in (layer, stored)]
        torch.testing.assert_close(*grads)


@EACH
def test_copies(e):
    layer, stored = make(e, 2)
    file = io.BytesIO()
    torch.save(stored, file)
    file.seek(0)
    for other in (
        copy.deepcopy(stored),
        pickle.loads(pickle.dumps(stored)),
        torch.load(file, weights_only=False),
    ):
        assert other.storage == "bitmap" and same_state(other, layer)
        other.values.mul_(2)
        assert not same_state(other, stored)


@EACH
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_conversions(e, dtype):
    layer, stored = make(e, 3)
    assert stored.to(dtype) is stored
    layer.to(dtype)
    assert stored.storage == ("canonical" if dtype == torch.float64 else "bitmap")
    assert stored.values.dtype == stored.bias.dtype == dtype
    assert same_state(stored, layer)
    x = torch.randn(3, 70).to(dtype)
    assert torch.equal(stored(x), layer(x))
    # To elements of 16 bits, and back.
    assert same_state(stored.to(torch.bfloat16).float(), layer.bfloat16().float())
    meta = stored.to("meta")
    assert meta(x.float().to("meta")).shape == (3, 45)
    assert list(meta.state_dict()) == list(layer.state_dict())


def test_layers_in_a_model_are_converted():
    model = nn.Sequential(*make(ENCODINGS[2], 4), nn.Linear(45, 4)).half()
    assert [layer.values.dtype for layer in model[:2]] == [torch.float16] * 2
    assert same_state(*model[:2])


@pytest.mark.parametrize("is_assigned", [False, True])
@EACH
def test_state_between_storages(e, is_assigned):
    layer, stored = make(e, 5)
    other, _ = make(e, 6)
    memory = [part.data_ptr() for part in stored.components()]
    stored.load_state_dict(other.state_dict(), assign=is_assigned)
    assert stored.storage == "bitmap" and same_state(stored, other)
    if not is_assigned:  # CUDA graphs read it there
        assert [part.data_ptr() for part in stored.components()] == memory
    layer.load_state_dict(stored.state_dict(), assign=is_assigned)
    assert same_state(layer, stored)


@EACH
def test_state_of_another_type(e):
    layer, stored = make(e, 7)
    half = copy.deepcopy(layer).half()
    stored.load_state_dict(half.state_dict())
    layer.load_state_dict(half.state_dict())
    assert stored.values.dtype == torch.float32 and same_state(stored, layer)
    stored.load_state_dict(half.state_dict(), assign=True)
    assert stored.values.dtype == torch.float16 and same_state(stored, half)
    meta = copy.deepcopy(stored).to("meta")
    meta.load_state_dict(layer.state_dict(), assign=True)
    assert meta.storage == "bitmap" and same_state(meta, layer)
    with pytest.raises(
        RuntimeError, match="values are torch.float64: legal in bitmaps"
    ):
        stored.load_state_dict(copy.deepcopy(layer).double().state_dict(), assign=True)


def test_parts_of_a_state():
    layer, stored = make(ENCODINGS[0], 8)
    other, _ = make(ENCODINGS[0], 8)
    other.values.mul_(2)
    state = other.state_dict()
    with pytest.raises(RuntimeError, match='Missing key.* in state_dict: "index"'):
        stored.load_state_dict({n: x for n, x in state.items() if n != "index"})
    stored.load_state_dict({"values": state["values"]}, strict=False)
    layer.load_state_dict({"values": state["values"]}, strict=False)
    assert same_state(stored, layer)
    found = stored.load_state_dict({}, strict=False)
    assert sorted(found.missing_keys) == ["_extra_state", "bias", "index", "values"]
    assert same_state(stored, layer)


def test_states_that_do_not_fit():
    layer, stored = make(ENCODINGS[0], 9)
    before = copy.deepcopy(stored)

    def error_of(state):
        with pytest.raises(RuntimeError) as raised:
            stored.load_state_dict(state)
        assert same_state(stored, before)
        return str(raised.value)

    state = layer.state_dict()
    state["index"] = torch.full_like(state["index"], 3)
    assert "index of window 0, panel 0 is [3, 3]" in error_of(state)
    dense = nn.Linear(70, 45).state_dict()
    assert "the checkpoint has a dense weight" in error_of(dense)
    state = layer.state_dict()
    del state["index"]
    assert "values is [1] of torch.float32: a weight [45, 70] needs" in error_of(
        {**state, "values": torch.zeros(1)}
    )
    kept = {"bits": stored.bits}
    assert 'Unexpected key(s) in state_dict: "bits"' in error_of({**state, **kept})
    assert 'Unexpected key(s) in state_dict: "bits"' in error_of(
        {**layer.state_dict(), **kept, "values": layer.values}
    )


def test_safetensors(tmp_path):
    files = pytest.importorskip("safetensors.torch")
    layer, stored = make(ENCODINGS[4], 10)
    files.save_model(nn.Sequential(stored), str(tmp_path / "a"))
    new = nn.Sequential(make(ENCODINGS[4], 11)[1])
    files.load_model(new, str(tmp_path / "a"))
    assert same_state(new[0], layer)


def test_forms_that_do_not_exist():
    layer, stored = make(ENCODINGS[0], 12)
    with pytest.raises(EncodingError, match="storage is 'code': legal is canonical, b"):
        layer.store_("code")
    with pytest.raises(EncodingError, match="values are torch.float64: legal in bitma"):
        layer.double().store_("bitmap")
    e = Encoding(4, 8, (1, 8), dim=1, inner=Level(2, 4))
    with pytest.raises(EncodingError, match=r"block is \[1, 8\]: bitmaps of two"):
        make(e)
    prune.identity(stored, "weight")
    with pytest.raises(EncodingError, match="weight is no parameter: remove the param"):
        stored.store_("canonical")


def test_training_is_refused():
    layer, stored = make(ENCODINGS[0], 13)
    layer.weight.requires_grad_()
    assert not copy.deepcopy(layer).store_("bitmap").values.requires_grad
    x = torch.randn(2, 70)
    stored.requires_grad_()
    with pytest.raises(EncodingError, match=r"values ask for gradients, .* store_\('c"):
        stored(x)
    with torch.no_grad():
        assert torch.equal(stored(x), layer(x))
    stored.store_("canonical")
    stored(x).sum().backward()
    layer(x).sum().backward()
    assert torch.equal(stored.weight.grad.values, layer.weight.grad.values)


def test_inference_mode():
    layer, _ = make(ENCODINGS[0], 14)
    with torch.inference_mode():
        layer.store_("bitmap")
    state = make(ENCODINGS[0], 15)[0].state_dict()
    layer.load_state_dict(state)
    assert all(torch.equal(layer.state_dict()[name], x) for name, x in state.items())


class Block(nn.Module):
    """A gated MLP, and layers that share their input."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        names = ("q_proj", "k_proj", "v_proj")
        for name in names:
            setattr(self, name, NMLinear.from_dense(nn.Linear(24, 24), "2:4"))
        layers = [
            NMLinear.from_dense(nn.Linear(*size, bias=False), "2:4")
            for size in ((24, 40), (24, 40), (40, 24))
        ]
        self.mlp = GatedMLP(*layers)
        share_input_(self, names)
        self.eval().requires_grad_(False)

    def forward(self, x):
        return self.mlp(self.q_proj(x) + self.k_proj(x) * self.v_proj(x))

    def store(self, *names):
        for name, layer in self.named_modules():
            if isinstance(layer, NMLinear) and (not names or name in names):
                layer.store_("bitmap")
        return self


def test_parts_of_transformer_blocks():
    block, x = Block(), torch.randn(2, 3, 24)
    y = block(x)
    stored = copy.deepcopy(block).store()
    torch.testing.assert_close(stored(x), y)
    assert stored.mlp.obstacle() is None
    # One of several layers: gate and up become two products.
    some = copy.deepcopy(block).store("k_proj", "mlp.up_proj")
    assert some.mlp.obstacle() == "gate_proj and up_proj are stored in different forms"
    torch.testing.assert_close(some(x), y)


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict):
    block, x = Block().store(), torch.randn(4, 5, 24)
    if strict:  # which does not trace a wrapped forward
        block = block.mlp
    program = torch.export.export(block, (x,), strict=strict)
    targets = " ".join(str(node.target) for node in program.graph.nodes)
    assert "nm_sparse.gated_mlp" in targets
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    torch.testing.assert_close(torch.export.load(file).module()(x), block(x))


def test_mlir():
    block, x = Block(), torch.randn(5, 24)
    wanted = export_mlir(block, (x,))
    found = export_mlir(copy.deepcopy(block).store(), (x,))
    assert found.text == wanted.text
    for one, other in zip(found.operands((x,)), wanted.operands((x,))):
        if isinstance(one, torch.Tensor):
            assert torch.equal(one, other)
        else:
            assert one.values.tobytes() == other.values.tobytes()
            assert one.index.tobytes() == other.index.tobytes()


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(dynamic):
    block, x = Block(), torch.randn(3, 24)
    y = block(x)
    torch._dynamo.reset()
    compiled = torch.compile(
        block, backend="aot_eager", fullgraph=True, dynamic=dynamic
    )
    for form in ("canonical", "bitmap"):
        for layer in block.modules():
            if isinstance(layer, NMLinear):
                layer.store_(form)
        torch.testing.assert_close(compiled(x), y)
    x.requires_grad_()
    grads = [torch.autograd.grad(one(x).sum(), x)[0] for one in (compiled, block)]
    torch.testing.assert_close(*grads)

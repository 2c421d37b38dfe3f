# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers whose values are K-major: conversions, products, state, copies, graphs."""

import copy
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from storage_cases import random_bits, same_bits  # noqa: E402
from torch import nn  # noqa: E402
from torch_cases import as_array, ragged_shape, random_weight  # noqa: E402

import nm_sparse as nm  # noqa: E402
from nm_sparse import Encoding, EncodingError, Level  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    Geometry,
    LinearSpec,
    NMConv2d,
    NMLinear,
    PackedWeight,
    export_mlir,
)
from nm_sparse.torch.layers import halved_ops  # noqa: E402
from nm_sparse.torch.layers.joined import join_  # noqa: E402
from nm_sparse.torch.weight.joined import can_join  # noqa: E402
from nm_sparse.torch.weight.spec import DTYPE_NAMES, DTYPES  # noqa: E402
from nm_sparse.torch.weight.storage import from_storage, to_storage  # noqa: E402
from nm_sparse.torch.weight.stored_forms import StoredForm  # noqa: E402

LINEAR = torch.ops.nm_sparse.linear.default
ENCODINGS = [
    Encoding(2, 4, dim=1),
    Encoding(3, 7, (1, 5), dim=1),
    Encoding(1, 3, (2, 3), dim=1),
    Encoding(8, 32, (1, 16), dim=1),
    Encoding(300, 400, (1, 4), dim=1),  # positions of 16 bits
]
EACH = pytest.mark.parametrize("e", ENCODINGS, ids=str)
OTHERS = [
    (Encoding(4, 8, (1, 32), dim=1, inner=Level(2, 4)), "of two levels"),
    (Encoding(2, 4, (1, 3), dim=1, order="shuffled"), "shuffled"),
]


def specs_of(packed):
    """Those of a weight in canonical form, and with K-major values."""
    own = packed.encoding, packed.shape, DTYPE_NAMES[packed.dtype], "none"
    return [LinearSpec(*own, form) for form in ("canonical", "k_major")]


def make(e, seed=0, dtype=torch.float32, activation="none"):
    """A layer in canonical form, and the same one with K-major values."""
    packed, _ = random_weight(e, seed, dtype, (45, 70))
    bias = torch.randn(45, generator=torch.Generator().manual_seed(seed)).to(dtype)
    layer = NMLinear.from_packed(packed, bias, activation).eval()
    return layer, copy.deepcopy(layer).store_("k_major")


def same_state(first, second):
    first, second = first.state_dict(), second.state_dict()
    return list(first) == list(second) and all(
        same_bits(first[name], second[name]) for name in first
    )


@EACH
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_forms_go_back_and_forth(e, dtype):
    rng = np.random.default_rng(len(str(e)))
    packed = random_bits(e, ragged_shape(rng, e), dtype, rng)
    canonical, k_major = specs_of(packed)
    parts = list(packed.components.values())
    stored = to_storage(parts, canonical, "k_major")
    legal = list(k_major.components.values())
    assert [(part.shape, part.dtype) for part in stored] == legal
    assert list(k_major.components) == ["values", "index"]
    plain = packed.to_packed()
    values, index = nm.pack_k_major(
        e, plain.values, plain.index, *reversed(packed.shape)
    )
    assert as_array(stored[0], values).tobytes() == values.tobytes()
    assert stored[1] is parts[1]
    back = from_storage(stored, k_major)
    assert all(map(same_bits, back, parts)) and back[1] is parts[1]
    assert back[0].is_contiguous() and stored[0].is_contiguous()
    fake = [part.to("meta") for part in stored]
    for found, wanted in zip(from_storage(fake, k_major), back):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)


@pytest.mark.parametrize("shape", [(0, 8), (8, 0), (0, 0), (1, 32)])
def test_conversions_copy_values(shape):
    """Also where a weight is empty, or has one output: its transpose is itself."""
    packed, _ = random_weight(ENCODINGS[0], 0, torch.float16, shape)
    canonical, k_major = specs_of(packed)
    parts = list(packed.components.values())
    stored = to_storage(parts, canonical, "k_major")
    back = from_storage(stored, k_major)
    assert all(map(same_bits, back, parts))
    memory = [one[0].untyped_storage()._cdata for one in (parts, stored, back)]
    assert len(set(memory)) == 3


@EACH
def test_it_computes_the_same(e):
    for activation in ("none", "silu"):
        layer, stored = make(e, 1, activation=activation)
        x = torch.randn(2, 3, 70)
        assert torch.equal(stored(x), layer(x))
        assert torch.equal(F.linear(x, stored.weight), F.linear(x, layer.weight))
        dense, same = layer.to_dense(), stored.to_dense()
        for one, other in zip(dense.parameters(), same.parameters()):
            assert torch.equal(one, other)
        assert repr(stored) == repr(layer)[:-1] + ", storage=k_major)"
        x.requires_grad_()
        grads = [torch.autograd.grad(one(x).sum(), x)[0] for one in (layer, stored)]
        torch.testing.assert_close(*grads)


@EACH
def test_the_operator(e):
    packed, _ = random_weight(e, 2, torch.float32, (45, 50))
    canonical, k_major = specs_of(packed)
    parts, x = list(packed.components.values()), torch.randn(3, 50)
    stored = to_storage(parts, canonical, "k_major")
    y = LINEAR(x, parts, None, canonical.text)
    assert torch.equal(LINEAR(x, stored, None, k_major.text), y)
    x.requires_grad_()
    torch.library.opcheck(LINEAR, (x, stored, None, k_major.text))
    compiled = torch.compile(LINEAR, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x, stored, None, k_major.text), y)
    with pytest.raises(EncodingError, match="weight has components .* the spec says"):
        LINEAR(x, parts, None, k_major.text)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        half = LINEAR(x, stored, None, k_major.text)
        assert torch.equal(half, LINEAR(x, parts, None, canonical.text))


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
        assert other.storage == "k_major" and same_state(other, layer)
        other.values.mul_(2)
        assert not same_state(other, stored)
    assert same_state(stored.store_("canonical"), layer)
    assert same_state(stored.store_("bitmap").store_("k_major"), layer)


@EACH
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_conversions_of_types(e, dtype):
    layer, stored = make(e, 3)
    stored.to(dtype)
    layer.to(dtype)
    assert stored.storage == stored.weight.storage == "k_major"
    assert stored.values.dtype == stored.bias.dtype == dtype
    assert same_state(stored, layer)
    x = torch.randn(3, 70).to(dtype)
    assert torch.equal(stored(x), layer(x))
    meta = stored.to("meta")
    assert meta(x.to("meta")).shape == (3, 45)
    assert list(meta.state_dict()) == list(layer.state_dict())


@pytest.mark.parametrize("is_assigned", [False, True])
@EACH
def test_state(e, is_assigned):
    layer, stored = make(e, 5)
    other, _ = make(e, 6)
    memory = [part.data_ptr() for part in stored.components()]
    stored.load_state_dict(other.state_dict(), assign=is_assigned)
    assert stored.storage == "k_major" and same_state(stored, other)
    if not is_assigned:  # CUDA graphs read it there
        assert [part.data_ptr() for part in stored.components()] == memory
    layer.load_state_dict(stored.state_dict(), assign=is_assigned)
    assert same_state(layer, stored)
    stored.weight.validate()


def test_what_is_added_stays_zero():
    """Kernels rely on it, whatever is done to the weight."""
    _, stored = make(ENCODINGS[0], 7)
    weight = stored.weight.detach()
    rows = weight.canonical().values.shape[0]
    assert rows % 16

    def added(one):
        assert one.storage == "k_major"
        return torch.count_nonzero(one.values[:, rows:]) == 0

    weight.add_(1)
    assert added(weight) and torch.count_nonzero(weight.values) == rows * 45
    assert added(weight / weight) and added(torch.full_like(weight, 3.0))
    torch._foreach_add_([weight], 1.0)
    assert added(weight) and added(torch._foreach_div([weight], [weight])[0])
    weight.normal_()
    assert added(weight)
    weight.copy_(torch.tensor(2.0))
    assert added(weight) and weight.values[0, 0] == 2
    weight.validate()
    weight.values[3, rows] = 1
    with pytest.raises(EncodingError, match=f"not .0 behind the {rows} rows that are"):
        weight.validate()


def test_training_is_refused():
    layer, stored = make(ENCODINGS[0], 8)
    layer.weight.requires_grad_()
    assert not copy.deepcopy(layer).store_("k_major").values.requires_grad
    stored.requires_grad_()
    x = torch.randn(2, 70)
    with pytest.raises(EncodingError, match=r"values ask for gradients, .* store_\('c"):
        stored(x)
    # A square weight whose K-major values have the shape of canonical ones.
    square = NMLinear.from_dense(nn.Linear(32, 16), "2:4")
    wanted = square.weight.to_dense().detach()
    square.store_("k_major").requires_grad_()
    assert torch.equal(square.weight.to_dense(), wanted)
    with pytest.raises(EncodingError, match="stored as 'k_major' by a dense tensor"):
        square.weight.detach().copy_(wanted)
    with pytest.raises(EncodingError, match="stored as 'k_major', which cannot be sl"):
        square.weight.detach()[:4]


def test_forms_that_do_not_exist():
    for e, said in OTHERS:
        message = f"encoding is {said}: legal for K-major values is one n:m level"
        with pytest.raises(EncodingError, match=message):
            LinearSpec(e, (64, 64), "f16", storage="k_major")
        packed, _ = random_weight(e, 9, torch.float32)
        with pytest.raises(EncodingError, match=message):
            NMLinear.from_packed(packed).store_("k_major")
        with pytest.raises(EncodingError, match=message):
            to_storage(packed.parts, packed.spec, "k_major")


@pytest.mark.parametrize("elements", ["e4m3", "int8"])
def test_elements_with_scales(elements):
    dense = nn.Linear(64, 48)
    layer = NMLinear.from_dense(dense, "2:4", elements=elements, activations=elements)
    wanted, x = copy.deepcopy(layer), torch.randn(5, 64)
    y = layer(x)
    layer.store_("k_major")
    assert layer.values.shape == (48, 32) and layer.values.dtype.itemsize == 1
    assert list(layer.weight.components) == ["values", "index", "scale"]
    assert torch.equal(layer(x), y) and same_state(layer, wanted)
    both = [one.weight.dequantize() for one in (layer, wanted)]
    assert torch.equal(both[0].to_dense(), both[1].to_dense())
    again = layer.weight.dequantize().stored("k_major").quantize(elements)
    assert again.storage == "k_major" and same_bits(again.scale, layer.scale)


@pytest.mark.parametrize("elements", [None, "int8"])
def test_halves(elements):
    """Gate and up are parts of the whole weight, and weights themselves."""
    own = {} if elements is None else dict(elements=elements)
    layer = NMLinear.from_dense(nn.Linear(70, 128), "2:4, block = [1, 8]", **own)
    wanted = layer.weight.dequantize().to_dense().chunk(2)
    stored = layer.store_("k_major")
    spec = LinearSpec.parse(stored.spec)
    halves = halved_ops.halves_of(stored.components(), spec)
    half = halved_ops.half_spec(spec)
    assert half.storage == "k_major"
    for parts, dense in zip(halves, wanted):
        named = dict(zip(half.components, parts))
        shapes = [(part.shape, part.dtype) for part in parts]
        assert shapes == list(half.components.values())
        assert parts[0].untyped_storage()._cdata == (
            stored.values.untyped_storage()._cdata
        )
        weight = PackedWeight(
            named, half.encoding, half.shape, "k_major", dtype=stored.weight.dtype
        )
        assert torch.equal(weight.dequantize().to_dense(), dense)


def test_layers_are_not_joined():
    layers = [NMLinear.from_dense(nn.Linear(64, 64), "2:4") for _ in range(2)]
    specs = [LinearSpec.parse(one.store_("k_major").spec) for one in layers]
    assert not can_join(specs) and not join_(layers)
    bitmaps = [LinearSpec.parse(one.store_("bitmap").spec) for one in layers]
    assert can_join(bitmaps)


@pytest.mark.parametrize(
    "of_layer, storage",
    [
        ("2:4", "canonical"),
        ("2:4", "bitmap"),
        ("2:4", "k_major"),
        ("1:4", "k_major"),
        ("[4:8, block = [1, 16]], [2:4]", "canonical"),
    ],
)
def test_kernels_that_read_it(of_layer, storage):
    """By the encoding of a layer, or by one that all weights of it are of, too."""
    e, encoding = (Encoding(text, dim=1) for text in (of_layer, "2:4"))
    packed, _ = random_weight(e, 11, torch.float16, (48, 72))
    spec = LinearSpec(e, (48, 72), "f16")
    wanted = packed.to_dense()
    names = [{"name": name} for name in ("values", "index")]
    kernels = StoredForm(
        spec,
        {"encoding": encoding.mlir(), "components": names, "packed_layout": 12},
    )
    assert kernels.storage == "k_major"
    assert kernels.reads(storage) == (storage == "k_major" and e == encoding)
    parts = kernels.store(packed.stored(storage).parts, storage)
    read = LinearSpec(encoding, (48, 72), "f16", storage="k_major")
    found = PackedWeight(
        dict(zip(read.components, parts)), encoding, (48, 72), "k_major"
    )
    assert torch.equal(found.to_dense(), wanted)


def test_kernels_of_other_layouts():
    from nm_sparse.torch.weight.stored_forms import storage_of

    with pytest.raises(EncodingError, match="layout 10, .* 1, 2, 4, 6, 7, 8, 12$"):
        storage_of(10)


def test_convolutions():
    torch.manual_seed(0)
    conv = NMConv2d.from_dense(nn.Conv2d(8, 12, 3, padding=1), "2:4")
    x = torch.randn(2, 8, 5, 6)
    with torch.no_grad():
        y = conv(x)
        stored = copy.deepcopy(conv).store_("k_major")
        assert stored.storage == "k_major" and torch.equal(stored(x), y)
    assert list(stored.state_dict()) == list(conv.state_dict())
    assert stored.geometry == Geometry((3, 3), padding=(1, 1, 1, 1))


@pytest.mark.parametrize("strict", [False, True])
def test_exports(strict):
    layer, stored = make(ENCODINGS[1], 12, activation="silu")
    x = torch.randn(4, 70)
    program = torch.export.export(stored, (x,), strict=strict)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    assert torch.equal(torch.export.load(file).module()(x), layer(x))
    wanted, found = (export_mlir(one, (x,)) for one in (layer, stored))
    assert found.text == wanted.text
    for one, other in zip(found.operands((x,)), wanted.operands((x,))):
        if isinstance(one, torch.Tensor):
            assert torch.equal(one, other)
        else:
            assert one.values.tobytes() == other.values.tobytes()
            assert one.index.tobytes() == other.index.tobytes()

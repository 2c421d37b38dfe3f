# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of 8 bits with scales as tensors, and layers that have them, on the CPU."""

import copy
import io
import json
import pickle

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from scaled_cases import ELEMENTS, LARGEST, rounded, scaled_layer, wanted  # noqa: E402
from torch import nn  # noqa: E402
from torch_cases import ENCODINGS, random_weight  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import NMLinear, PackedWeight  # noqa: E402
from nm_sparse.torch.weight.spec import ACTIVATIONS  # noqa: E402

EACH = pytest.mark.parametrize("e", ENCODINGS, ids=str)
BOTH = pytest.mark.parametrize("elements", ELEMENTS)


def same(a, b):
    return all(
        x.dtype == y.dtype and torch.equal(x.view(torch.uint8), y.view(torch.uint8))
        for x, y in zip(a.components.values(), b.components.values(), strict=True)
    )


@EACH
@BOTH
@pytest.mark.parametrize("scales", ["output", "tensor"])
def test_rounding(e, elements, scales):
    packed, dense = random_weight(e, 3, torch.float32)
    dense *= torch.logspace(-3, 1, len(dense))[:, None]
    packed = PackedWeight.from_dense(dense, e, getattr(packed, "perm", None))
    weight = packed.quantize(elements, scales)
    assert (weight.elements, weight.dtype) == (elements, torch.float32)
    assert weight.shape == dense.shape and weight.has_scale
    largest = dense.abs().amax(1)
    largest = largest if scales == "output" else largest.amax().expand(len(dense))
    torch.testing.assert_close(weight.scale, largest / LARGEST[elements])
    found = weight.to_dense()
    per_output = rounded(dense, elements, weight.scale[:, None].double())
    torch.testing.assert_close(found, per_output.float(), rtol=1e-6, atol=0)
    assert not found[dense == 0].any()
    weight.validate()
    assert torch.equal(weight.dequantize().to_dense(), found)
    assert not weight.dequantize().has_scale
    again = packed.quantize(elements, scale=weight.scale)
    assert same(again, weight)


@EACH
@BOTH
def test_forms_and_copies(e, elements):
    weight = random_weight(e, 1, torch.float32)[0].quantize(elements)
    dense = weight.to_dense()
    file = io.BytesIO()
    torch.save(weight, file)
    file.seek(0)
    for other in (
        copy.deepcopy(weight),
        pickle.loads(pickle.dumps(weight)),
        torch.load(file, weights_only=True),
        weight.clone(),
        weight.detach(),
        weight.to("cpu", copy=True),
    ):
        assert type(other) is PackedWeight and same(other, weight)
        assert torch.equal(other.to_dense(), dense) and other.dtype == torch.float32
    if not e.is_shuffled and (e.inner is None or e.block[1] % 32 == 0):
        bitmap = weight.stored("bitmap")
        assert torch.equal(bitmap.to_dense(), dense)
        assert same(bitmap.canonical(), weight)
    half = weight.to(torch.bfloat16)
    assert half.dtype == torch.bfloat16 and same(half, weight)
    assert torch.equal(half.to_dense(), dense.bfloat16())
    assert weight.to("meta").has_scale
    with pytest.raises(EncodingError, match="float types of 16 bits or more"):
        weight.to(torch.float8_e4m3fn)


def test_it_is_read_as_a_dense_tensor():
    weight = random_weight(ENCODINGS[0], 1, torch.float32)[0].quantize("e4m3")
    dense, x = weight.to_dense(), torch.randn(3, weight.shape[1])
    for read in (
        lambda w: w.abs(),
        lambda w: w * 2,
        lambda w: w + w,
        lambda w: w.norm(),
        lambda w: w.T,
        lambda w: torch._foreach_mul([w], 2)[0],
        lambda w: F.linear(x, w),
        lambda w: torch.equal(w, dense),
    ):
        found, expected = read(weight), read(dense)
        if isinstance(found, torch.Tensor):
            torch.testing.assert_close(found, expected)
        assert torch.as_tensor(found).shape == torch.as_tensor(expected).shape
    other = random_weight(ENCODINGS[0], 1, torch.float32)[0]
    for write in (
        lambda: weight.mul_(2),
        lambda: torch._foreach_add_([weight], 1),
        lambda: weight.copy_(dense),
        lambda: weight.copy_(other),
        lambda: weight.copy_(other.quantize("int8")),
    ):
        with pytest.raises(EncodingError, match="scale"):
            write()
    assert torch.equal(weight.to_dense(), dense)
    other.copy_(weight)  # which has room for the products
    assert torch.equal(other.to_dense(), dense)
    again = torch.zeros_like(weight)
    assert again.has_scale and not again.to_dense().any()
    again.copy_(weight)
    assert same(again, weight)
    with pytest.raises(EncodingError, match="dequantize"):
        weight.to_packed()


@EACH
def test_slices(e):
    rows, width = e.m * e.block[0], e.block[1]
    whole = random_weight(e, 4, torch.float32, (4 * width, 4 * rows))[0]
    weight = whole.quantize("e4m3")
    dense = weight.to_dense()
    part = weight[:, rows : 3 * rows]
    assert part.has_scale and torch.equal(part.to_dense(), dense[:, rows : 3 * rows])
    if e.is_shuffled:
        return
    for one, own in zip(weight.split(2 * width), dense.split(2 * width)):
        assert torch.equal(one.to_dense(), own) and len(one.scale) == len(own)
        one.validate()


def test_wrong_weights_are_named():
    packed = random_weight(ENCODINGS[0], 1, torch.float32)[0]
    weight = packed.quantize("e4m3")
    parts = weight.components
    make = PackedWeight.from_components
    cases = [
        (lambda: packed.quantize("e5m2"), "elements is 'e5m2': legal is 'e4m3'"),
        (lambda: packed.quantize("e4m3", "row"), "scales is 'row': legal is 'output'"),
        (lambda: weight.quantize("int8"), "call dequantize\\(\\) first"),
        (lambda: packed.quantize("e4m3", scale=torch.ones(2)), "scale is \\[2\\]"),
        (lambda: make(parts, weight.encoding, weight.shape), "dtype is None"),
        (
            lambda: make({**parts, "scale": parts["scale"][1:]}, weight.encoding,
                         weight.shape, torch.float32),
            "needs \\[",
        ),
        (
            lambda: make({**packed.components, "scale": parts["scale"]},
                         weight.encoding, weight.shape, torch.float32),
            "legal are elements of torch.float8_e4m3fn or torch.int8",
        ),
    ]  # fmt: skip
    for call, said in cases:
        with pytest.raises(EncodingError, match=said):
            call()
    weight.scale[1] = 0
    with pytest.raises(EncodingError, match="scale of output 1 is 0.0"):
        weight.validate()


@EACH
@BOTH
@pytest.mark.parametrize("activations", ["same", "rounded", "static"])
def test_layers(e, elements, activations):
    kind = "same" if activations == "same" else elements
    layer = scaled_layer(e, elements, activations=kind)
    if activations == "static":
        layer.set_input_scale(2.5 / LARGEST[elements])
    x = torch.randn(2, 3, 64)
    for y in (x, x[0], x[0, 0], x[:, :0]):
        found = layer(y)
        assert found.shape == (*y.shape[:-1], 48)
        torch.testing.assert_close(found.double(), wanted(y, layer), rtol=1e-4,
                                   atol=1e-5)  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS)
@BOTH
def test_activations_and_gradients(elements, activation):
    layer = scaled_layer(elements=elements, activation=activation)
    x = torch.randn(4, 64, requires_grad=True)
    y = layer(x)
    torch.testing.assert_close(y.double(), wanted(x, layer), rtol=1e-4, atol=1e-5)
    dy = torch.randn_like(y)
    y.backward(dy)
    # As if x were what it is rounded to, and that its gradient.
    other = rounded(x.detach(), elements).requires_grad_()
    bias = layer.bias.detach().double().requires_grad_()
    dense = layer.weight.to(torch.float64).to_dense()
    z = F.linear(other, dense, bias)
    kinds = {"relu": F.relu, "silu": F.silu, "none": lambda z: z, "gelu": F.gelu}
    kinds["gelu_tanh"] = lambda z: F.gelu(z, approximate="tanh")
    kinds[activation](z).backward(dy.double())
    torch.testing.assert_close(x.grad.double(), other.grad, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(
        layer.bias.grad.double(), bias.grad, rtol=1e-3, atol=1e-4
    )


def test_checkpointed():
    layer, x = scaled_layer(activation="silu"), torch.randn(3, 64, requires_grad=True)
    layer(x).sum().backward()
    found, x.grad = x.grad, None
    run = torch.utils.checkpoint.checkpoint
    run(layer, x, use_reentrant=False).sum().backward()
    torch.testing.assert_close(x.grad, found)


def test_weights_are_not_trained():
    for activations in ("same", "e4m3"):
        layer = scaled_layer(activations=activations)
        assert not layer.weight.requires_grad and layer.bias.requires_grad
        x = torch.randn(2, 64)
        layer.requires_grad_(True)
        with pytest.raises(
            EncodingError, match="weight requires gradients, and has el"
        ):
            layer(x)
        with torch.no_grad():
            layer(x)


@BOTH
@pytest.mark.parametrize("activations", ["same", "rounded"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(elements, activations, dynamic):
    kind = "same" if activations == "same" else elements
    layer = scaled_layer(elements=elements, activations=kind, activation="silu")
    norm = nn.RMSNorm(64)
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda x: layer(norm(x)), backend="aot_eager", fullgraph=True, dynamic=dynamic
    )
    for tokens in (3, 7) if dynamic else (3,):
        x = torch.randn(tokens, 64, requires_grad=True)
        compiled(x).square().sum().backward()
        found, x.grad = x.grad, None
        layer(norm(x)).square().sum().backward()
        torch.testing.assert_close(found, x.grad, rtol=1e-3, atol=1e-4)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), layer(norm(x)))


def test_compiled_by_inductor():
    layer, norm = scaled_layer(), nn.RMSNorm(64)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: layer(norm(x)), fullgraph=True)
    x = torch.randn(3, 64)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), layer(norm(x)), rtol=0.02, atol=0.02)


def test_exported_and_mapped():
    layer, x = scaled_layer(activation="gelu").requires_grad_(False), torch.randn(4, 64)
    program = torch.export.export(
        layer, (x,), dynamic_shapes=({0: torch.export.Dim("tokens", max=64)},)
    )
    y = torch.randn(7, 64)
    torch.testing.assert_close(program.module()(y), layer(y))
    z = torch.randn(3, 5, 64)
    torch.testing.assert_close(torch.vmap(layer)(z), layer(z))
    torch.testing.assert_close(torch.vmap(layer, 1, 1)(z), layer(z))
    layer.set_input_scale(0.02)
    torch.testing.assert_close(torch.vmap(layer)(z), layer(z))


def test_autocast():
    layer, x = scaled_layer(), torch.randn(3, 64)
    with torch.no_grad():
        plain = layer(x)
        with torch.autocast("cpu", torch.bfloat16):
            y = layer(x)
        assert y.dtype == torch.bfloat16
        torch.testing.assert_close(y.float(), plain, rtol=0.02, atol=0.02)
        layer.activations = "same"
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16
    with pytest.raises(EncodingError, match="legal is the same type"):
        scaled_layer()(x.bfloat16())


def test_types():
    layer = scaled_layer()
    layer.set_input_scale(0.01)
    before = layer.weight.clone()
    x = torch.randn(3, 64)
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.float32):
        layer.to(dtype)
        assert layer.weight.dtype == dtype and same(layer.weight, before)
        assert layer.input_scale.dtype == torch.float32
        y = layer(x.to(dtype))
        assert y.dtype == dtype
        torch.testing.assert_close(y.double(), wanted(x.to(dtype), layer), rtol=0.02,
                                   atol=0.02)  # fmt: skip
    assert layer.to("meta").input_scale.is_meta


def test_states():
    safetensors = pytest.importorskip("safetensors.torch")
    layer = scaled_layer()
    layer.set_input_scale(0.01)
    state = safetensors.load(safetensors.save(layer.state_dict()))
    names = {"values", "index", "scale", "bias", "input_scale", "_extra_state"}
    assert set(state) == names and state["values"].dtype == torch.float8_e4m3fn
    said = json.loads(bytes(state["_extra_state"].tolist()))
    assert said["elements"] == "e4m3"
    x = torch.randn(2, 64)
    for assign in (False, True):
        other = NMLinear(64, 48, "2:4", elements="e4m3", activations="e4m3")
        assert not other.weight.to_dense().any() and bool((other.scale == 1).all())
        other.load_state_dict(state, assign=assign)
        assert torch.equal(other(x), layer(x))
    stored = copy.deepcopy(layer).store_("bitmap")
    assert torch.equal(stored(x), layer(x)) and stored.scale.shape == (48,)
    stored.load_state_dict(state)
    assert same(stored.weight.canonical(), layer.weight)
    clone = pickle.loads(pickle.dumps(layer))
    assert torch.equal(clone(x), layer(x)) and not clone.weight.requires_grad
    dense = layer.to_dense()
    assert torch.equal(dense.weight, layer.weight.to_dense())
    plain = NMLinear.from_dense(nn.Linear(64, 48), "2:4")
    for target, given, said in (
        (plain, state, "the layer has none"),
        (plain, {k: v for k, v in state.items() if k[0] != "_"}, "the layer has none"),
        (layer, plain.state_dict(), "the layer elements of e4m3"),
        (layer, {"values": plain.values, "index": plain.index}, "load it before"),
    ):
        with pytest.raises(RuntimeError, match=said):
            target.load_state_dict(given, strict=False)


def test_layers_say_what_they_are():
    layer = scaled_layer(elements="int8")
    assert "elements=int8, activations=int8" in repr(layer)
    assert (layer.elements, layer.activations) == ("int8", "int8")
    layer.activations = "same"
    for wrong in ("e4m3", "f16", None):
        with pytest.raises(EncodingError, match="legal is 'same' or 'int8'"):
            layer.activations = wrong
    plain = NMLinear.from_dense(nn.Linear(64, 48), "2:4")
    assert (plain.elements, plain.activations) == (None, "same")
    with pytest.raises(EncodingError, match="legal is 'same', as kernels"):
        plain.activations = "e4m3"
    for wrong in (0, -1.0, float("inf"), float("nan")):
        with pytest.raises(EncodingError, match="legal is a number from 2"):
            layer.set_input_scale(wrong)
    assert "elements=e4m3" in repr(scaled_layer().weight)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of 8 bits with scales by compiled kernels, in the emulator, and as modules of
one input call them."""

import types

import pytest

torch = pytest.importorskip("torch")

from export_cases import needs_library  # noqa: E402
from scaled_cases import (  # noqa: E402
    ELEMENTS,
    as_bytes,
    emulated,
    parts_of,
    scaled_layer,
    wanted,
)
from shared_cases import operators  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.runtime.emulator import emulate  # noqa: E402
from nm_sparse.runtime.function import PreparedWeight  # noqa: E402
from nm_sparse.torch import GatedMLP, quantize_tokens, shared_linear  # noqa: E402
from nm_sparse.torch.layers import (  # noqa: E402
    kernels,
    scaled_dense,
    scaled_eager,
    scaled_kernels,
)
from nm_sparse.torch.layers.ops import activate  # noqa: E402
from nm_sparse.torch.layers.scaled_kernels import find_layers  # noqa: E402
from nm_sparse.torch.weight.stored_forms import STORED  # noqa: E402

BOTH = pytest.mark.parametrize("elements", ELEMENTS)
SCALED = torch.ops.nm_sparse.scaled_linear.default
SHARED = torch.ops.nm_sparse.scaled_linear_shared.default
GATED = torch.ops.nm_sparse.scaled_gated_mlp.default
STRAIGHT = torch.ops.nm_sparse.straight_through_linear.default


CHECKS = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
NAMES = ["scaled_gated_mlp", "scaled_linear"]


def close(found, expected, tolerance=0.02):
    error = (found.double() - expected).abs().max() / expected.abs().max()
    assert float(error) < tolerance


@pytest.fixture
def fresh(hopper):
    """Programs are found anew, for another chip than that of other tests."""
    scaled_kernels.find_scaled.cache_clear()
    yield hopper
    scaled_kernels.find_scaled.cache_clear()


@pytest.mark.slow
@needs_library
@BOTH
@pytest.mark.parametrize("e", ["2:4", "1:4", "[4:8, block = [1, 32]], [2:4]"])
@pytest.mark.parametrize("is_static", [False, True])
def test_one_layer(fresh, e, elements, is_static):
    layer = scaled_layer(e, elements, activation="gelu_tanh", dtype=torch.bfloat16)
    if is_static:
        layer.set_input_scale(0.02)
    x = torch.randn(5, 64, dtype=torch.bfloat16)
    rounded, x_scale = quantize_tokens(x, elements, layer.input_scale)
    kind = "tensor" if is_static else "token"
    made = find_layers(parts_of([layer]), kind, False, fresh)
    (found,) = emulated(made, rounded, x_scale, [layer])
    assert found.dtype == torch.bfloat16
    close(found, wanted(x, layer))
    with torch.no_grad():
        close(found, layer(x).double(), 0.01)
    launches = made.program.manifest["functions"]
    assert all(len(one["launches"]) == 1 for one in launches if "launches" in one)


@pytest.mark.slow
@needs_library
@BOTH
def test_several_layers(fresh, elements):
    own = dict(elements=elements, dtype=torch.float16)
    layers = [scaled_layer(n=n, bias=n > 32, seed=n, **own) for n in (64, 32, 48)]
    x = torch.randn(3, 64, dtype=torch.float16)
    rounded, x_scale = quantize_tokens(x, elements)
    made = find_layers(parts_of(layers), "token", False, fresh)
    for y, layer in zip(emulated(made, rounded, x_scale, layers), layers):
        close(y, wanted(x, layer), 0.005)


@pytest.mark.slow
@needs_library
def test_a_gated_mlp(fresh):
    gate, up = (scaled_layer(bias=False, seed=i, dtype=torch.float16) for i in range(2))
    x = torch.randn(3, 64, dtype=torch.float16)
    rounded, x_scale = quantize_tokens(x)
    found = parts_of([gate, up])
    found[0] = (*found[0][:2], found[0][2].with_activation("silu"))
    made = find_layers(found, "token", True, fresh)
    (y,) = emulated(made, rounded, x_scale, [gate, up])
    close(y, wanted(x, gate, "silu") * wanted(x, up), 0.005)


@pytest.mark.slow
@needs_library
@BOTH
def test_inputs_that_are_not_rounded(fresh, elements):
    """Kernels read products of elements and scales, made once."""
    layer = scaled_layer(
        elements=elements, activations="same", dtype=torch.float16, activation="relu"
    )
    x = torch.randn(3, 64, dtype=torch.float16)
    made = kernels.find_kernels.__wrapped__(layer.linear_spec.canonical, True, fresh)
    assert not made.reads("canonical") and not made.reads("bitmap")
    stored = STORED.get(layer.components(), made)
    assert stored[0].dtype == torch.float16
    assert STORED.get(layer.components(), made)[0] is stored[0]
    weight = PreparedWeight(tuple(map(as_bytes, stored)), None)
    out = as_bytes(torch.zeros(3, 48, dtype=torch.float16))
    bias = as_bytes(layer.bias)
    (found,) = emulate(made.program, as_bytes(x), weight, bias, out)
    close(torch.from_numpy(found), wanted(x, layer), 0.005)


@needs_library
def test_patterns_without_kernels(fresh):
    """They say so once, and are multiplied by dense copies."""
    layer = scaled_layer("2:4, block = [1, 4], order = shuffled")
    with pytest.warns(RuntimeWarning, match="has no kernels for them"):
        assert find_layers(parts_of([layer]), "token", False, fresh) is None
    assert find_layers(parts_of([layer.double()]), "token", False, fresh) is None


@BOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dense_copies(monkeypatch, elements, dtype):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    monkeypatch.setattr(scaled_kernels, "find_layers", lambda *operands: None)
    monkeypatch.setattr(STORED, "_forms", {})
    e = "2:4, block = [1, 4], order = shuffled"
    layer = scaled_layer(e, elements, n=44, activation="relu", dtype=dtype)
    x = torch.randn(2, 3, 64, dtype=dtype)
    rounded, x_scale = quantize_tokens(x, elements)
    monkeypatch.setattr(scaled_dense, "_is_aligned", lambda *operands: False)
    (y,) = scaled_kernels.run_scaled(rounded, x_scale, parts_of([layer]))
    assert y.dtype == dtype and y.shape == (2, 3, 44)
    close(y, wanted(x, layer))
    (forms,) = STORED._forms.values()
    (form,) = forms.values()
    assert form.parts[0].dtype == layer.values.dtype
    (again,) = scaled_kernels.run_scaled(rounded, x_scale, parts_of([layer]))
    assert torch.equal(again, y)
    layer.dense_from = 1
    layer.dense_from = None  # which gives it back
    assert not any(STORED._forms.values())


def test_one_input_is_rounded_once():
    layers = [scaled_layer(n=n, seed=n) for n in (32, 48)]
    x = torch.randn(2, 3, 64)
    names = operators(lambda: shared_linear(x, layers))
    assert names.count("scaled_linear_shared") == 1 and "scaled_linear" not in names
    for y, layer in zip(shared_linear(x, layers), layers):
        torch.testing.assert_close(y, layer(x))
    layers[1].activations = "same"
    for y, layer in zip(shared_linear(x, layers), layers):
        torch.testing.assert_close(y, layer(x))
    layers[1].activations = "e4m3"
    x.requires_grad_()
    sum(y.sum() for y in shared_linear(x, layers)).backward()
    found, x.grad = x.grad, None
    sum(layer(x).sum() for layer in layers).backward()
    torch.testing.assert_close(found, x.grad)


@BOTH
def test_a_gated_mlp_as_a_module(elements):
    own = dict(elements=elements, bias=False)
    gate, up = (scaled_layer(k=64, n=96, seed=i, **own) for i in range(2))
    down = scaled_layer(k=96, n=64, seed=3, **own)
    mlp = GatedMLP(gate, up, down)
    x = torch.randn(2, 3, 64)
    names = operators(lambda: mlp(x))
    assert [n for n in names if n[:6] == "scaled"] == NAMES
    inside = wanted(x, gate, "silu") * wanted(x, up)
    with torch.no_grad():
        expected = down(inside.float())
        torch.testing.assert_close(mlp(x), expected, rtol=1e-3, atol=1e-3)
    x.requires_grad_()
    mlp(x).square().sum().backward()
    found, x.grad = x.grad, None
    down(activate(gate(x), "silu") * up(x)).square().sum().backward()
    torch.testing.assert_close(found, x.grad, rtol=1e-3, atol=1e-3)
    up.activations = "same"
    assert mlp.obstacle() == "gate_proj and up_proj have other activations"
    torch.testing.assert_close(mlp(x), down(activate(gate(x), "silu") * up(x)))
    for layer in (gate, up, down):
        layer.activations = "same"
    torch.testing.assert_close(mlp(x), down(activate(gate(x), "silu") * up(x)))
    torch._dynamo.reset()
    compiled = torch.compile(mlp, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), mlp(x))


def operands_of(layer, x):
    rounded, x_scale = quantize_tokens(x, layer.elements)
    parts = [part.detach() for part in layer.components()]
    return rounded, x_scale, parts, layer.bias.detach(), layer.spec


@BOTH
def test_opcheck(elements):
    layer, x = scaled_layer(elements=elements, activation="gelu"), torch.randn(3, 64)
    own = operands_of(layer, x)
    # torch compares no elements of f8.
    some = CHECKS if elements == "e4m3" else CHECKS + ("test_schema",)
    torch.library.opcheck(SCALED, own, test_utils=some)
    rounded, x_scale, parts, bias, spec = own
    several = parts * 2, [len(parts)] * 2, [bias, None], f"[{spec},{spec}]"
    torch.library.opcheck(SHARED, (rounded, x_scale, *several), test_utils=some)
    torch.library.opcheck(
        GATED, (rounded, x_scale, parts, parts, spec), test_utils=some
    )
    x, bias = x.requires_grad_(), bias.clone().requires_grad_()
    torch.library.opcheck(
        STRAIGHT, (x, rounded, x_scale, parts, bias, spec), test_utils=some
    )


def test_wrong_operands_are_named():
    layer, x = scaled_layer(), torch.randn(3, 64)
    rounded, x_scale, parts, bias, spec = operands_of(layer, x)
    plain = layer.linear_spec.dequantized.text
    cases = (
        ((x, x_scale, parts, bias, spec), "x is torch.float32 and the elements of"),
        ((rounded[:, 1:], x_scale, parts, bias, spec), "x has shape \\[3, 63\\]"),
        ((rounded, x_scale[1:], parts, bias, spec), "x_scale is \\[2, 1\\]: legal is"),
        ((rounded, x_scale.half(), parts, bias, spec), "x_scale is torch.float16"),
        ((rounded, x_scale, parts[:-1], bias, spec), "weight has components"),
        ((rounded, x_scale, parts, bias.half(), spec), "bias is \\[48\\] of"),
        ((rounded, x_scale, parts, bias, plain), "spec has elements None"),
    )
    for operands, said in cases:
        with pytest.raises(EncodingError, match=said):
            SCALED(*operands)
    with pytest.raises(EncodingError, match="call the layer, or detach"):
        SCALED(rounded, x_scale, parts, bias.requires_grad_(), spec)


class Kernels:
    """In the place of kernels that are called directly."""

    def __init__(self, layers):
        self.outputs = [layer.out_features for layer in layers]
        self.layers, self.calls = layers, 0
        self.function = types.SimpleNamespace(
            direct=self.direct, writes_to_arguments=True
        )

    def direct(self, stream, rows, *rest):
        self.calls += 1
        count = len(self.layers)
        x_scale, results = rest[count], rest[len(rest) - count :]
        assert rows.ndim == 2 and x_scale.shape in ((len(rows),), (1,))
        for y, layer in zip(results, self.layers):
            parts = layer.components()
            scale = x_scale if len(x_scale) == len(rows) else x_scale.expand(len(rows))
            operands = rows, scale[:, None], parts, layer.bias, layer.spec
            y.copy_(SCALED(*operands))
        return results


@pytest.mark.parametrize("is_static", [False, True])
def test_eager_calls(monkeypatch, is_static):
    """Kernels are found once, and again when something has changed."""
    layers = [scaled_layer(n=n, seed=n) for n in (32, 48)]
    made = []

    def find(found, kind, gated, device):
        assert kind == ("tensor" if is_static else "token") and not gated
        made.append(Kernels(layers[: len(found)]))
        return made[-1]

    monkeypatch.setattr(scaled_eager, "find_layers", find)
    monkeypatch.setattr(scaled_eager, "stored_weights", lambda made, found: [
        [weight[0]] for weight, _, _ in found
    ])  # fmt: skip
    monkeypatch.setattr(scaled_eager, "is_plain_call", lambda x: True)
    monkeypatch.setattr(
        torch._C, "_cuda_getCurrentRawStream", lambda device: 7, raising=False
    )
    if is_static:
        for layer in layers:
            layer.set_input_scale(0.02)
    with torch.no_grad():
        for x in (torch.randn(3, 64), torch.randn(2, 2, 64), torch.randn(64)):
            y = layers[0](x)
            torch.testing.assert_close(y.double(), wanted(x, layers[0]), rtol=1e-4,
                                       atol=1e-5)  # fmt: skip
            assert y.dtype == torch.float32
        assert len(made) == 1 and made[0].calls == 3
        both = shared_linear(x, layers)
        for y, layer in zip(both, layers):
            torch.testing.assert_close(y.double(), wanted(x, layer), rtol=1e-4,
                                       atol=1e-5)  # fmt: skip
        assert len(made) == 2
        layers[0].scale.mul_(2)
        y = layers[0](x)
        torch.testing.assert_close(y.double(), wanted(x, layers[0]), rtol=1e-4,
                                   atol=1e-5)  # fmt: skip
        assert len(made) == 3
        layers[0].dense_from = 2
        layers[0](x)
        calls = sum(one.calls for one in made)
        layers[0](torch.randn(2, 64))  # by the operator, which has the copy
        assert sum(one.calls for one in made) == calls
    layers[0](x.requires_grad_()).sum().backward()
    assert sum(one.calls for one in made) == calls

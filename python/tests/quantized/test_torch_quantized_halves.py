# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gated MLPs of 8 bits whose gate and up are the halves of one weight."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import scaled_cases  # noqa: E402
from export_cases import needs_library  # noqa: E402
from scaled_cases import ELEMENTS, emulated  # noqa: E402
from shared_cases import operators, packed  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse.torch import HalvedMLP, LinearSpec, quantize_tokens  # noqa: E402
from nm_sparse.torch.layers import halved_ops, scaled_kernels  # noqa: E402
from nm_sparse.torch.weight.shared_spec import with_activation  # noqa: E402

BOTH = pytest.mark.parametrize("elements", ELEMENTS)
GATED = torch.ops.nm_sparse.scaled_gated_linear.default


def module(elements, encoding="2:4", activations=None, storage="bitmap"):
    torch.manual_seed(5)
    own = dict(elements=elements, activations=activations or elements)
    gate_up = packed(64, 192, encoding, **own).store_(storage)
    return HalvedMLP(gate_up, packed(96, 64)).eval()


@pytest.fixture
def fresh(hopper):
    """Programs are found anew, for another chip than that of other tests."""
    scaled_kernels.find_scaled.cache_clear()
    yield hopper
    scaled_kernels.find_scaled.cache_clear()


def by_layers(mlp, x):
    first, second = mlp.gate_up_proj(x).chunk(2, -1)
    return mlp.down_proj(nn.functional.silu(first) * second)


@BOTH
@pytest.mark.parametrize("storage", ["canonical", "bitmap"])
def test_one_operator(elements, storage):
    mlp, x = module(elements, storage=storage), torch.randn(2, 3, 64)
    assert "scaled_gated_linear" in operators(lambda: mlp(x))
    found = []

    def backend(graph, _):
        found.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    torch._dynamo.reset()
    with torch.no_grad():
        wanted = by_layers(mlp, x)
        torch.testing.assert_close(mlp(x), wanted)
        run = torch.compile(mlp, fullgraph=True, backend=backend)
        torch.testing.assert_close(run(x), wanted)
        mlp.gate_up_proj.set_input_scale(0.01)
        torch.testing.assert_close(mlp(x), by_layers(mlp, x))
    assert any("scaled_gated_linear" in name for name in found)
    y = mlp(x.requires_grad_())  # by layers, which have gradients
    y.sum().backward()
    assert x.grad is not None and bool(x.grad.any())


def test_what_stays_apart():
    for mlp, reason in (
        (module("e4m3", activations="same"), "and its input has none"),
        (
            module("e4m3", "8:32, block = [1, 128]", storage="canonical"),
            "do not divide",
        ),
    ):
        assert reason in mlp.obstacle()
        x = torch.randn(2, 64)
        assert "scaled_gated_linear" not in operators(lambda mlp=mlp, x=x: mlp(x))


def test_operator():
    layer = module("int8").gate_up_proj
    x, x_scale = torch.randint(-9, 9, (3, 64), dtype=torch.int8), torch.rand(3, 1)
    spec = with_activation(layer.spec, "gelu")
    own = x, x_scale, [part.detach() for part in layer.operands()], spec
    torch.library.opcheck(GATED, own)
    with torch.no_grad():
        products = halved_ops.scaled_products(*own)
        torch.testing.assert_close(GATED(*own), products)


@needs_library
@BOTH
def test_kernels_read_halves_of_bitmaps(fresh, elements, monkeypatch):
    """Through the emulator: what a GPU would be given, and would compute."""
    layer = module(elements).gate_up_proj
    spec = LinearSpec.parse(with_activation(layer.spec, "silu"))
    made, layers = halved_ops.scaled_halves(layer.components(), spec, "token", fresh)
    assert made.outputs == [96]
    for (weight, _, half), place in zip(layers, (0, 1)):
        assert half.shape == (96, 64)
        for part, whole in zip(weight, layer.components()):
            memory = whole.untyped_storage().data_ptr()
            assert part.untyped_storage().data_ptr() == memory
            assert part.data_ptr() == whole.data_ptr() + place * part.nbytes
    x = torch.randn(5, 64)
    rounded, x_scale = quantize_tokens(x, elements)
    monkeypatch.setattr(scaled_cases, "parts_of", lambda _: layers)
    (found,) = emulated(made, rounded, x_scale, SimpleNamespace())
    with torch.no_grad():
        wanted = GATED(rounded, x_scale, layer.components(), spec.text)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)

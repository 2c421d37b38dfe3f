# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of one input whose weights lie one behind the other."""

import copy
import random

import pytest

torch = pytest.importorskip("torch")

from export_cases import needs_library  # noqa: E402
from shared_cases import as_bits, operators, packed  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.runtime.emulator import emulate  # noqa: E402
from nm_sparse.runtime.function import PreparedWeight  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    LinearSpec,
    share_input_,
    shared_linear,
    store_for_kernels_,
)
from nm_sparse.torch.layers import joined, kernels  # noqa: E402
from nm_sparse.torch.weight.joined import as_one, can_join, join  # noqa: E402

JOINED = torch.ops.nm_sparse.linear_joined.default
SIZES = (96, 32, 64)


def layers_of(encoding="2:4", bias=True, elements=None, dtype=torch.float32):
    own = {} if elements is None else dict(elements=elements, activations=elements)
    torch.manual_seed(3)
    return [
        packed(64, n, encoding, bias, **own).to(dtype).eval().store_("bitmap")
        for n in SIZES
    ]


def operands(layers):
    parts = [layer.operands() for layer in layers]
    weights = [part for one in parts for part in one]
    counts = [len(one) for one in parts]
    spec = f"[{','.join(layer.spec for layer in layers)}]"
    return weights, counts, [layer.bias for layer in layers], spec


@pytest.fixture
def joins(monkeypatch):
    """Layers on the CPU are joined, too."""
    monkeypatch.setattr(joined, "_reads_bitmaps", lambda *_: True)


def test_tensors_as_one():
    made = join([torch.randn(n, 3) for n in (2, 4, 1)])
    one = as_one(made)
    assert torch.equal(one, torch.cat(made)) and one.data_ptr() == made[0].data_ptr()
    assert as_one(made[1:]).shape == (5, 3)
    for others in (made[::-1], made[::2], [made[0], made[1].clone()],
                   [one[:, :2], one[:, 2:]]):  # fmt: skip
        assert as_one(others) is None


@pytest.mark.parametrize("elements", [None, "e4m3", "int8"])
@pytest.mark.parametrize("bias", [False, True])
@torch.no_grad()
def test_layers(joins, elements, bias):
    layers = layers_of(bias=bias, elements=elements)
    x = torch.randn(2, 5, 64)
    wanted = [layer(x) for layer in layers]
    states = [copy.deepcopy(layer.state_dict()) for layer in layers]
    assert not joined.are_joined(x, layers)
    assert joined.join_(layers) and joined.are_joined(x, layers)
    assert not joined.are_joined(x, layers[:2])
    run = lambda: shared_linear(x, layers)  # noqa: E731
    assert "linear_joined" in operators(run)
    for found, one in zip(run(), wanted):
        torch.testing.assert_close(found, one)
    names = []

    def backend(graph, _):
        names.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(run, fullgraph=True, backend=backend)()
    assert any("linear_joined" in name for name in names)
    for found, one in zip(compiled, wanted):
        torch.testing.assert_close(found, one)
    for layer, state in zip(layers, states):
        for name, one in layer.state_dict().items():
            assert torch.equal(one, state[name])
    one = joined.joined_layer(
        [
            (layer.operands(), layer.bias, LinearSpec.parse(layer.spec))
            for layer in layers
        ]
    )
    assert one[2].shape == (sum(SIZES), 64)
    for part, first in zip(one[0], layers[0].components()):
        assert part.data_ptr() == first.data_ptr()
    copied = copy.deepcopy(layers)
    assert not joined.are_joined(x, copied)
    for found, one in zip(shared_linear(x, copied), wanted):
        torch.testing.assert_close(found, one)
    layers[1].to(torch.float64)
    assert not joined.are_joined(x, layers)


@pytest.mark.parametrize("seed", range(12))
@torch.no_grad()
def test_drawn_layers(joins, seed):
    draw = random.Random(seed)
    torch.manual_seed(seed)
    patterns = ("2:4", "1:4", "8:16", "4:16", "3:7", "16:32", "2:8, block = [1, 32]")
    encoding, bias = draw.choice(patterns), draw.random() < 0.5
    k = draw.randint(1, 40) * draw.choice([4, 7, 16])
    elements = draw.choice([None, "e4m3", "int8"])
    own = {} if elements is None else dict(elements=elements, activations=elements)
    layers = [
        packed(k, 32 * draw.randint(1, 6), encoding, bias, **own).eval()
        for _ in range(draw.randint(2, 4))
    ]
    x = torch.randn(*draw.choice([(1,), (3,), (2, 5), (0,)]), k)
    wanted = [layer.store_("bitmap")(x) for layer in layers]
    assert joined.join_(layers)
    for found, one in zip(shared_linear(x, layers), wanted):
        torch.testing.assert_close(found, one)


@pytest.mark.parametrize("elements", [None, "int8"])
def test_operator(joins, elements):
    layers = layers_of(elements=elements)
    x, x_scale = torch.randn(3, 64), None
    if elements is not None:
        x, x_scale = torch.randint(-9, 9, (3, 64), dtype=torch.int8), torch.rand(3, 1)
    own = [[p.detach() if isinstance(p, torch.Tensor) else p for p in one]
           if isinstance(one, list) else one for one in operands(layers)]  # fmt: skip
    own[2] = [bias.detach() for bias in own[2]]
    torch.library.opcheck(JOINED, (x, x_scale, *own))
    with torch.no_grad():
        before = JOINED(x, x_scale, *own)
        assert joined.join_(layers)
        torch.testing.assert_close(JOINED(x, x_scale, *operands(layers)), before)
        own = [(one.operands(), one.bias, LinearSpec.parse(one.spec)) for one in layers]
        weight, bias, spec = joined.joined_layer(own)
        if elements is None:
            whole = torch.ops.nm_sparse.linear(x, weight, bias, spec.text)
        else:
            run = torch.ops.nm_sparse.scaled_linear
            whole = run(x, x_scale, weight, bias, spec.text)
        torch.testing.assert_close(whole, before)
    wide = torch.randn(3, 64, requires_grad=True)
    if elements is None:
        with pytest.raises(EncodingError, match="requires gradients, and has none"):
            JOINED(wide, None, *operands(layers))


def test_what_cannot_be_joined(joins):
    specs = [LinearSpec.parse(layer.spec) for layer in layers_of()]
    assert can_join(specs)
    assert not can_join(specs[:1])
    wrong = [
        layers_of("4:8")[0],
        packed(64, 96).eval(),  # canonical
        packed(64, 80).store_("bitmap"),
        packed(128, 96).store_("bitmap"),
        packed(64, 96, activation="relu").store_("bitmap"),
        packed(64, 96).half().store_("bitmap"),
    ]
    for layer in wrong:
        assert not can_join([*specs, LinearSpec.parse(layer.spec)])
    layers = layers_of()
    layers[2].dense_from = 8
    assert not joined.join_(layers)
    layers = layers_of()
    layers[1].bias = None
    assert not joined.join_(layers)


def test_gradients_and_exports_are_of_layers(joins):
    layers = layers_of(bias=False)
    assert joined.join_(layers)
    x = torch.randn(3, 64, requires_grad=True)
    sum(y.sum() for y in shared_linear(x, layers)).backward()
    dense = sum(layer.weight.to_dense().sum(0) for layer in layers)
    torch.testing.assert_close(x.grad, dense.expand(3, -1), rtol=1e-4, atol=1e-5)

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            return shared_linear(x, list(self.layers))

    with torch.no_grad():
        graph = torch.export.export(Module(), (x.detach(),)).graph
    names = [str(node.target) for node in graph.nodes]
    assert not any("linear_joined" in name for name in names)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert not joined.are_joined(x, layers)


@needs_library
def test_kernels_read_the_joined_weight(hopper):
    """Through the emulator: what a GPU would be given, and would compute."""
    layers = layers_of("8:16", dtype=torch.float16)
    made = kernels.find_kernels(
        LinearSpec.parse(layers[0].spec.replace("96", "192")).canonical, True, hopper
    )
    assert made.reads("bitmap")
    with torch.no_grad():
        wanted = torch.cat([layer(torch.eye(64).half()) for layer in layers], -1)
        parts = zip(*[join(one) for one in zip(*[w.weight.parts for w in layers])])
        own = [
            (list(one), layer.bias, LinearSpec.parse(layer.spec))
            for one, layer in zip(parts, layers)
        ]
        biases = join([layer.bias for layer in layers])
        own = [(one, bias, spec) for (one, _, spec), bias in zip(own, biases)]
        weight, bias, spec = joined.joined_layer(own)
    assert spec.canonical.shape == (192, 64)
    x = torch.eye(64).half()
    y = torch.full((64, 192), float("nan")).half()
    whole = PreparedWeight(tuple(map(as_bits, weight)), None)
    (found,) = emulate(made.program, as_bits(x), whole, as_bits(bias), as_bits(y))
    torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=0.01, atol=0.01)


class Attention(nn.Module):
    def __init__(self, q, k, v):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = q, k, v

    def forward(self, x):
        return self.q_proj(x), self.k_proj(x), self.v_proj(x)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("elements", [None, "e4m3", "int8"])
@pytest.mark.parametrize("bias", [False, True])
@torch.no_grad()
def test_on_a_gpu(elements, bias):
    own = {} if elements is None else dict(elements=elements, activations=elements)
    layers = [
        packed(512, n, "2:4", bias, **own).to("cuda", torch.bfloat16).eval()
        for n in (512, 128, 256)
    ]
    module = Attention(*layers)
    share_input_(module)
    store_for_kernels_(module)
    assert {layer.eager_shared.joined for layer in layers} == {3}
    for tokens in (1, 9, 300):
        x = torch.randn(2, tokens, 512, device="cuda", dtype=torch.bfloat16)
        wanted = [layer(x) for layer in layers]
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with torch.cuda.stream(stream):
            shared_linear(x, layers)
        stream.synchronize()
        with torch.cuda.graph(graph):
            captured = shared_linear(x, layers)
        graph.replay()
        torch._dynamo.reset()
        compiled = torch.compile(shared_linear, fullgraph=True)(x, layers)
        for one, two, right in zip(captured, compiled, wanted):
            # Sums may be of other parts; code of torch may round x to other elements.
            for found in (one, two):
                error = (found - right).float().norm() / right.float().norm()
                assert float(error) < (0.005 if elements is None else 0.02)

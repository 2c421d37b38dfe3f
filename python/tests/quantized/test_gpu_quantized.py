# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of 8 bits on a GPU: quantization of x, eager calls on streams, compiled
graphs. Skipped without a GPU."""

import random

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from nm_sparse.bindings import library  # noqa: E402
from nm_sparse.torch import NMLinear, quantize_tokens  # noqa: E402
from nm_sparse.torch.weight.quantize import quantize_by_operators  # noqa: E402
from nm_sparse.torch.weight.scales import LARGEST  # noqa: E402
from nm_sparse.torch.weight.spec import ELEMENTS  # noqa: E402
from nm_sparse.torch.weight.token_layout import is_feature_major  # noqa: E402

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or not library.available(),
    reason="needs a GPU and the compiler's library",
)
BOTH = pytest.mark.parametrize("elements", ["e4m3", "int8"])
PANELS = "16:32, block = [1, 128]"
ROWS = ((1, 1), (1, 33), (5, 4096), (7, 14336), (3, 18944), (2, 65537))


def operator(x, layer):
    """By torch's dispatcher, and quantization by its operators."""
    kind = ELEMENTS[layer.activations]
    rounded, scale = quantize_by_operators(x, kind, layer.input_scale)
    own = layer.operands(), layer.bias, layer.spec
    return torch.ops.nm_sparse.scaled_linear(rounded, scale, *own)


@BOTH
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_rows(elements, dtype):
    """The kernel is the operators, to the bit."""
    for tokens, k in ROWS:
        x = torch.randn(tokens, k, dtype=dtype, device="cuda")
        x *= torch.logspace(-3, 2, tokens, device="cuda")[:, None].to(dtype)
        x[0, : k // 2] = 0
        for scale in (None, torch.tensor(0.01, device="cuda")):
            found = quantize_tokens(x, elements, scale)
            plain = quantize_by_operators(x, ELEMENTS[elements], scale)
            for one, other in zip(found, plain):
                assert torch.equal(one.float(), other.float()), (tokens, k, scale)


@BOTH
@pytest.mark.parametrize("seed", range(6))
def test_calls(elements, seed):
    """Eager calls, on streams, too, and compiled ones are the operator."""
    torch._dynamo.reset()
    draw = random.Random(seed)
    torch.manual_seed(seed)
    n, k = 16 * draw.randint(1, 40), 16 * draw.randint(1, 40)
    if seed == 0:
        k = 8192  # a row that compiled graphs give to the kernel
    linear = nn.Linear(k, n, dtype=torch.bfloat16, device="cuda")
    own = dict(elements=elements, activations=elements)
    layer = NMLinear.from_dense(linear, "2:4", **own).eval()
    if draw.random() < 0.4:
        layer.set_input_scale(3.0 / LARGEST[ELEMENTS[elements]])
    with torch.no_grad():
        for tokens in (1, 7, draw.randint(2, 600), 4096):
            x = torch.randn(tokens, k, dtype=torch.bfloat16, device="cuda")
            wanted = operator(x, layer)
            for _ in range(3):
                assert torch.equal(layer(x), wanted)
            assert torch.equal(layer(x[None])[0], wanted)
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                found = layer(x)
            side.synchronize()
            assert torch.equal(found, wanted)
        run = torch.compile(layer, fullgraph=True, dynamic=False)
        # Code of torch may be a bit off, and round to the next element.
        close = (run(x) - wanted).float().norm() / wanted.float().norm()
        assert float(close) < 0.02


@BOTH
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_columns(elements, dtype):
    """The kernel that stores elements feature-major is the operators, to the bit."""
    more = ((16, 8192), (17, 4096), (100, 1000), (129, 4100), (1025, 4096), (4096, 512))
    for tokens, k in (*ROWS, *more):
        x = torch.randn(tokens, k, dtype=dtype, device="cuda")
        x *= torch.logspace(-3, 2, tokens, device="cuda")[:, None].to(dtype)
        x[0, : k // 2] = 0
        for scale in (None, torch.tensor(0.01, device="cuda")):
            found = quantize_tokens(x, elements, scale, feature_major=True)
            plain = quantize_by_operators(x, ELEMENTS[elements], scale)
            assert is_feature_major(found[0]) == (k > 1)
            for one, other in zip(found, plain):
                assert torch.equal(one.float(), other.float()), (tokens, k, scale)
    x[1, 2] = float("nan")
    _, scale = quantize_tokens(x, elements, feature_major=True)
    assert bool(scale[1].isnan()) and int(scale.isnan().sum()) == 1


@BOTH
def test_panels_read_features(elements):
    """The operator computes the same from either layout; eager, captured and compiled
    calls use what they ask for."""
    torch._dynamo.reset()
    linear = nn.Linear(2048, 1024, dtype=torch.bfloat16, device="cuda")
    own = dict(elements=elements, activations=elements)
    layer = NMLinear.from_dense(linear, PANELS, **own).eval()
    product = torch.ops.nm_sparse.scaled_linear
    about = layer.operands(), layer.bias, layer.spec
    with torch.no_grad():
        for tokens in (1, 3, 17, 100, 600, 2500):
            x = torch.randn(tokens, 2048, dtype=torch.bfloat16, device="cuda")
            plain = product(*quantize_tokens(x, elements), *about)
            given = quantize_tokens(x, elements, feature_major=True)
            assert torch.equal(product(*given, *about), plain), tokens
            for _ in range(2):
                assert torch.equal(layer(x), plain), tokens
            assert torch.equal(layer(x[None])[0], plain)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                found = layer(x)
            graph.replay()
            torch.cuda.synchronize()
            assert torch.equal(found, plain), tokens
        for dynamic in (False, True):
            run = torch.compile(layer, fullgraph=True, dynamic=dynamic)
            close = (run(x) - plain).float().norm() / plain.float().norm()
            assert float(close) < 0.02


def test_first_call_of_many_tokens():
    """What captured calls of few tokens need is loaded by a call of so many that they
    are multiplied by a dense copy."""
    linear = nn.Linear(2048, 1024, dtype=torch.bfloat16, device="cuda")
    layer = NMLinear.from_dense(linear, PANELS, elements="e4m3", activations="e4m3")
    layer.eval().dense_from = 512
    with torch.no_grad():
        layer(torch.randn(600, 2048, dtype=torch.bfloat16, device="cuda"))
        few = torch.randn(64, 2048, dtype=torch.bfloat16, device="cuda")
        wanted = layer(few)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = layer(few)
        graph.replay()
        torch.cuda.synchronize()
    assert torch.equal(found, wanted)

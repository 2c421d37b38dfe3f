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

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or not library.available(),
    reason="needs a GPU and the compiler's library",
)
BOTH = pytest.mark.parametrize("elements", ["e4m3", "int8"])
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

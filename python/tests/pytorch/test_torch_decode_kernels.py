# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled kernels of layers that hold a second form of their weight: in the emulator,
and on a GPU."""

import itertools
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from dense_cases import layer_of  # noqa: E402
from export_cases import needs_library  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse.runtime.emulator import emulate  # noqa: E402
from nm_sparse.runtime.program import PreparedWeight  # noqa: E402
from nm_sparse.torch import LinearSpec, NMLinear  # noqa: E402
from nm_sparse.torch.layers import kernels  # noqa: E402
from nm_sparse.torch.weight.token_counts import settled  # noqa: E402

CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.slow
@needs_library
@pytest.mark.parametrize(
    "encoding, dtype, is_other",
    [
        ("16:32", torch.float32, True),
        ("8:32", torch.float32, True),
        ("3:7", torch.float32, True),
        ("[4:8, block = [1, 64]], [2:4]", torch.float32, True),
        ("1:4", torch.float16, True),
        ("1:4", torch.bfloat16, True),
        ("2:4", torch.float16, False),
        ("8:32, block = [1, 32]", torch.float32, False),
        ("2:4, order = shuffled", torch.float32, False),
    ],
)
def test_compiled_kernels_read_their_form(encoding, dtype, is_other):
    """Through the emulator: what a GPU would be given, and would compute, on both sides
    of the limit."""
    rng = torch.Generator().manual_seed(3)
    n, k, most = 136, 200, 5
    linear = nn.Linear(k, n, dtype=dtype)
    layer = NMLinear.from_dense(linear, encoding, activation="silu")
    layer.decode_to = most
    spec = LinearSpec.parse(layer.call_spec).canonical
    both = {
        tokens: kernels.LinearKernels(
            settled(spec, torch.empty(tokens, k)), True, "sm_90a", "h200"
        )
        for tokens in (1, most, most + 1)
    }
    assert both[1].key == both[most].key
    assert (both[1].key != both[most + 1].key) == is_other
    for tokens, made in both.items():
        parts = made.store(layer.components())
        x = torch.randn(tokens, k, generator=rng).to(dtype)
        y = torch.full((tokens, n), float("nan"), dtype=dtype)
        flat = [_bits(t) for t in (x, *parts, layer.bias.detach(), y)]
        whole = PreparedWeight(tuple(flat[1:-2]), None)
        (out,) = emulate(made.program, flat[0], whole, *flat[-2:])
        got = torch.from_numpy(out).view(dtype)
        torch.testing.assert_close(got, layer(x), rtol=1e-2, atol=1e-2)


def _bits(tensor):
    plain = tensor.contiguous()
    return (plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain).numpy()


@needs_library
def test_graphs_have_kernels_of_their_own_number(monkeypatch):
    """They read the form of the others for few tokens."""
    monkeypatch.setattr(kernels, "chip_of", lambda device: "sm_90a")
    monkeypatch.setattr(kernels, "device_gpu_of", lambda device: "h200")
    kernels.find_kernels.cache_clear()
    few = LinearSpec("16:32", (64, 64), "f32", decode_to=8)
    many = LinearSpec("16:32", (64, 64), "f32")
    device, found = torch.device("cpu"), {}
    for spec, tokens in itertools.product((few, many), (None, 3)):
        own = replace(spec, tokens=tokens)
        found[spec.decode_to, tokens] = kernels.find_kernels(own, False, device)
    assert found[8, None].key == found[8, 3].key != found[None, None].key
    assert found[None, None].key == found[None, 3].key
    assert "--tokens=3" in found[8, 3].program.arguments
    assert "--tokens=1,2,4,8" in found[8, None].program.arguments
    kernels.find_kernels.cache_clear()


@CUDA
@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize(
    "text, dtype",
    [("16:32", torch.float32), ("8:32", torch.float32), ("1:4", torch.float16)],
)
def test_on_a_gpu(text, dtype, is_stored):
    """Both forms, as they are and captured, while weights change."""
    torch.manual_seed(0)
    layer = layer_of(256, 192, text, bias=True, activation="gelu")
    layer.to(dtype).cuda().eval().requires_grad_(False)
    layer.decode_to = 16
    if is_stored:
        layer.store_("bitmap")
    xs = [torch.randn(n, 256, dtype=dtype, device="cuda") for n in (1, 16, 17)]
    tolerance = dict(rtol=2e-2, atol=2e-2)
    graphs = []
    for x in xs:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            layer(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = layer(x)
        graphs.append((graph, result, x))
    for at in (0, 2, 1):
        state = {
            key: 1.5 * part if key.endswith("values") else part
            for key, part in layer.state_dict().items()
        }
        layer.load_state_dict(state)
        layer(xs[at])  # either writes both forms anew
        for graph, result, x in graphs:
            graph.replay()
            wanted = layer.to_dense()(x)
            torch.testing.assert_close(result, wanted, **tolerance)
            torch.testing.assert_close(layer(x), wanted, **tolerance)

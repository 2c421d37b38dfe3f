# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels on a GPU, called from Python: layers drawn at random, streams, graphs, and
arrays of other libraries. Skipped without a GPU."""

import copy
import functools
import gc
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import nm_sparse as nm  # noqa: E402
from nm_sparse.bindings import library  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    NMLinear,
    NMSparseConfig,
    sparsify_,
)

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or not library.available(),
    reason="needs a GPU and the compiler's library",
)

ACTIVATIONS = {
    "none": lambda y: y,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda y: F.gelu(y, approximate="tanh"),
    "silu": F.silu,
}
# Relative to the largest output: roundings of the inputs are in both products, that
# of the output is in one.
TOLERANCES = {torch.float16: 2e-3, torch.bfloat16: 1e-2, torch.float32: 1e-5}


def draw_encoding(draw):
    kind = draw.choice(("element", "vector", "block", "v:n:m", "2:4", "shuffled"))
    n, m = draw.choice(((2, 4), (8, 16), (1, 4), (3, 7), (5, 13), (16, 32), (8, 32)))
    length = draw.choice((8, 16, 24, 32, 40, 64, 128))
    return {
        "element": f"{n}:{m}",
        "2:4": "2:4",
        "vector": f"{n}:{m}, block = [1, {length}]",
        "block": f"{n}:{m}, block = [{draw.choice((8, 16, 32))}, {length}]",
        "v:n:m": f"[{draw.choice(('4:5', '4:8', '4:7'))}, block = [1, 64]], [2:4]",
        "shuffled": f"{n}:{m}, block = [1, {length}], order = shuffled",
    }[kind]


def draw_tokens(draw, x, k):
    """x [tokens, K] in strides that a caller may have."""
    kind = draw.choice(("plain", "plain", "three", "transposed", "rows", "offset"))
    if kind == "three":
        return x.reshape(1, *x.shape)
    if kind == "transposed":
        return x.t().contiguous().t()
    if kind == "rows":
        return torch.cat([x, x], dim=1)[:, :k]
    if kind == "offset":
        return torch.cat([x.new_zeros(1), x.flatten()])[1:].view_as(x)
    return x


def poison(shape, dtype):
    """Leaves NaN in the memory that the next tensor of this size is given."""
    torch.full(shape, float("nan"), dtype=dtype, device="cuda")


@pytest.mark.parametrize("seed", range(40))
def test_drawn_layer(seed):
    draw = random.Random(seed)
    torch.manual_seed(seed)
    encoding, dtype = draw_encoding(draw), draw.choice(list(TOLERANCES))
    n, k = draw.randint(1, 700), draw.randint(1, 900)
    tokens = draw.choice((1, 2, draw.randint(3, 64), draw.randint(65, 700)))
    activation = draw.choice(list(ACTIVATIONS))
    dense = torch.nn.Linear(k, n, bias=draw.random() < 0.5, dtype=dtype, device="cuda")
    layer = NMLinear.from_dense(dense, encoding, activation=activation)
    x = draw_tokens(draw, torch.randn(tokens, k, dtype=dtype, device="cuda"), k)
    poison((tokens, n), dtype)
    y = layer(x)
    bias = None if layer.bias is None else layer.bias.detach().double()
    weight = layer.weight.to_dense().detach().double()
    wanted = ACTIVATIONS[activation](F.linear(x.double(), weight, bias))
    said = f"{encoding} {n}x{k}, {tokens} tokens, {dtype}, {activation}"
    assert y.shape == wanted.shape and y.dtype == dtype, said
    error = float((y.detach().double() - wanted).abs().max() / wanted.abs().max())
    assert error <= TOLERANCES[dtype], f"{said}: {error:.2g}"


def make_layer(encoding="2:4", size=256, dtype=torch.float16):
    dense = torch.nn.Linear(size, size, dtype=dtype, device="cuda")
    return NMLinear.from_dense(dense, encoding)


def check(layer, x, y):
    wanted = F.linear(x.double(), layer.weight.to_dense().detach().double())
    wanted = wanted + layer.bias.detach().double()
    error = (y.double() - wanted).abs().max() / wanted.abs().max()
    assert float(error) <= TOLERANCES[y.dtype]


@pytest.mark.parametrize("encoding", ["2:4", "8:16", "8:32, block = [1, 64]"])
def test_capture_of_the_first_call(encoding):
    """Kernels are loaded, and weights stored, while a graph is captured."""
    layer = make_layer(encoding)
    x = torch.randn(48, 256, dtype=torch.float16, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        with torch.cuda.graph(graph):
            y = layer(x)
        for _ in range(2):
            x.normal_()
            y.fill_(float("nan"))
            graph.replay()
            check(layer, x, y)


@pytest.mark.parametrize("encoding", ["2:4", "8:16"])
def test_graphs_see_trained_weights(encoding):
    layer = make_layer(encoding)
    x = torch.randn(48, 256, dtype=torch.float16, device="cuda")
    layer(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layer(x).detach()
    with torch.no_grad():
        layer.values.mul_(-2)
    graph.replay()
    check(layer, x, y)


@pytest.mark.parametrize("encoding", ["2:4", "5:8", "8:32, block = [1, 64]"])
def test_streams(encoding):
    """What one stream makes, others use; memory is not given away too early."""
    layer = make_layer(encoding, 1024)
    streams = [torch.cuda.Stream() for _ in range(3)]
    x = torch.randn(300, 1024, dtype=torch.float16, device="cuda")
    torch.cuda.synchronize()
    with torch.no_grad():
        for _ in range(3):
            found = []
            for stream in streams:
                with torch.cuda.stream(stream):
                    found.append(layer(x))
            torch.cuda.synchronize()
            for y in found:
                check(layer, x, y)
            layer.values.neg_()


def test_a_changed_weight_is_used():
    layer = make_layer("8:16")
    x = torch.randn(5, 256, dtype=torch.float16, device="cuda")
    with torch.no_grad():
        check(layer, x, layer(x))
        layer.values.mul_(3)
        check(layer, x, layer(x))
        other = make_layer("8:16")
        layer.load_state_dict(other.state_dict())
        check(other, x, layer(x))
        check(other, x, copy.deepcopy(layer)(x))
        check(other, x, layer.cpu().cuda()(x))


def test_calls_that_torch_transforms():
    """Which kernels must not compute behind the back of torch."""
    layer = make_layer("2:4").requires_grad_(False)
    dense = layer.to_dense()
    x = torch.randn(6, 5, 256, dtype=torch.float16, device="cuda")
    close = functools.partial(torch.testing.assert_close, rtol=1e-2, atol=1e-2)
    close(layer(x), dense(x))
    close(torch.vmap(layer)(x), dense(x))
    seen = []

    class Modes(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    with Modes():
        close(layer(x), dense(x))
    assert any("nm_sparse" in name for name in seen)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert layer(mode.from_tensor(x)).shape == x.shape
    twice = {name: 2 * part for name, part in layer.named_parameters()}
    close(torch.func.functional_call(layer, twice, (x,)), 2 * dense(x))
    with torch.inference_mode():
        close(layer(x), dense(x))
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    close(torch.jit.trace(layer, (x,))(x), dense(x))
    y = layer(x.float().requires_grad_().half())
    assert y.requires_grad


def test_memory_of_dropped_layers_is_free():
    x = torch.randn(5, 1024, dtype=torch.float16, device="cuda")
    sizes = []
    for _ in range(3):
        layer = make_layer("8:16", 1024)
        with torch.no_grad():
            layer(x)
        del layer
        gc.collect()
        make_layer("8:16", 16)(x[:, :16])  # which drops what is no longer used
        sizes.append(torch.cuda.memory_allocated())
    assert sizes[2] == sizes[1]


def test_operator():
    layer = make_layer("2:4", 64)
    spec = layer.spec
    x = torch.randn(3, 7, 64, dtype=torch.float16, device="cuda", requires_grad=True)
    torch.library.opcheck(
        torch.ops.nm_sparse.linear.default, (x, layer.operands(), layer.bias, spec)
    )


def test_compiled_and_exported():
    model = torch.nn.Sequential(make_layer("2:4"), torch.nn.ReLU(), make_layer("8:16"))
    x = torch.randn(9, 256, dtype=torch.float16, device="cuda")
    with torch.no_grad():
        wanted = model(x)
        compiled = torch.compile(model, fullgraph=True)
        torch.testing.assert_close(compiled(x), wanted, rtol=1e-2, atol=1e-2)
        exported = torch.export.export(model, (x,)).module()
        torch.testing.assert_close(exported(x), wanted, rtol=1e-2, atol=1e-2)
        fast = torch.compile(model, mode="reduce-overhead")
        for _ in range(3):
            torch.testing.assert_close(fast(x), wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("encoding", ["2:4", "8:32, block = [1, 128]", "8:16"])
def test_gradients(encoding):
    layer = make_layer(encoding, 128, torch.float32)
    dense = layer.to_dense()
    x = torch.randn(20, 128, device="cuda", requires_grad=True)
    (y, wanted) = (one(x).square().sum() for one in (layer, dense))
    found = torch.autograd.grad(y, [x, layer.bias, layer.weight])
    x_grad, bias_grad, weight_grad = torch.autograd.grad(
        wanted, [x, dense.bias, dense.weight]
    )
    torch.testing.assert_close(found[0], x_grad, rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(found[1], bias_grad, rtol=1e-2, atol=1e-2)
    wanted = weight_grad * (dense.weight != 0)
    torch.testing.assert_close(found[2].to_dense(), wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("encoding", ["16:32, block = [1, 128]", "2:4", "8:16"])
def test_the_first_call_is_on_another_stream(encoding):
    """Without a wait for what packs the layer: kernels must not keep a form of the
    weight that was made of unfinished data."""
    dense = torch.nn.Linear(4096, 4096, device="cuda", dtype=torch.float16)
    layer = NMLinear.from_dense(dense, encoding)
    masked = layer.to_dense()
    x = torch.randn(77, 4096, device="cuda", dtype=torch.float16)
    with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
        layer(x)
    torch.cuda.synchronize()
    with torch.no_grad():
        torch.testing.assert_close(layer(x), masked(x), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("encoding", ["2:4", "8:16", "8:32, block = [1, 64]"])
def test_programs_on_arrays_of_cupy(encoding):
    cupy = pytest.importorskip("cupy")
    e = nm.Encoding.parse(f"{encoding}, dim = 1")
    program = nm.compile(nm.LinearSpec(e.mlir(), 96, 192, bias=True))
    rng = np.random.default_rng(3)
    weight = nm.prune(rng.standard_normal((96, 192)).astype(np.float16), e)
    x = rng.standard_normal((33, 192)).astype(np.float16)
    bias = rng.standard_normal(96).astype(np.float16)
    out = cupy.full((33, 96), cupy.nan, dtype=cupy.float16)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        arrays = cupy.asarray(x), nm.pack(weight, e), cupy.asarray(bias), out
        result = program(*arrays)
        stream.synchronize()
    wanted = x.astype(np.float64) @ weight.astype(np.float64).T + bias
    np.testing.assert_allclose(cupy.asnumpy(result), wanted, rtol=1e-2, atol=3e-2)


def test_programs_without_a_destination():
    e = nm.Encoding.parse("8:32, block = [1, 64], dim = 1")
    text = f"""
func.func @product(%x: tensor<?x192xf16>, %w: tensor<96x192xf16, {e.mlir()}>)
    -> tensor<?x96xf16> {{
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %tokens = tensor.dim %x, %c0 : tensor<?x192xf16>
  %empty = tensor.empty(%tokens) : tensor<?x96xf16>
  %filled = linalg.fill ins(%zero : f16) outs(%empty : tensor<?x96xf16>)
      -> tensor<?x96xf16>
  %y = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                       affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<?x192xf16>, tensor<96x192xf16, {e.mlir()}>)
      outs(%filled : tensor<?x96xf16>) -> tensor<?x96xf16>
  return %y : tensor<?x96xf16>
}}
"""
    program = nm.compile(text)
    weight = nm.prune(torch.randn(96, 192).half(), e)
    packed = nm.pack(weight, e)
    for tokens in (1, 40, 333):
        x = torch.randn(tokens, 192, dtype=torch.float16, device="cuda")
        y = program(x, packed)
        wanted = F.linear(x.double(), weight.double().cuda())
        error = (y.double() - wanted).abs().max() / wanted.abs().max()
        assert float(error) <= TOLERANCES[torch.float16]


def test_wrong_arguments_are_named():
    layer = make_layer("2:4", 64)
    with pytest.raises(Exception, match="65"):
        layer(torch.randn(3, 65, dtype=torch.float16, device="cuda"))
    e = nm.Encoding.parse("2:4, dim = 1")
    program = nm.compile(nm.LinearSpec(e.mlir(), 64, 64))
    packed = nm.pack(nm.prune(torch.randn(64, 64).half(), e), e)
    x = torch.randn(3, 64, dtype=torch.float16, device="cuda")
    with pytest.raises(nm.OperandError, match="argument"):
        program(x, packed, torch.empty(3, 65, dtype=torch.float16, device="cuda"))
    with pytest.raises(nm.OperandError, match="host"):
        program(x, packed, torch.empty(3, 64, dtype=torch.float16))


def test_no_tokens():
    layer = make_layer("2:4", 64)
    x = torch.empty(0, 64, dtype=torch.float16, device="cuda")
    assert layer(x).shape == (0, 64)


@pytest.mark.parametrize("activation", ["none", "gelu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_cuda(dtype, activation):
    linear = torch.nn.Linear(96, 64, dtype=dtype, device="cuda")
    layer = NMLinear.from_dense(linear, "8:32, block = [1, 32]", activation=activation)
    dense = layer.to_dense()
    x = torch.randn(3, 5, 96, dtype=dtype, device="cuda", requires_grad=True)
    y, expected = layer(x), dense(x)
    torch.testing.assert_close(y, expected, rtol=0.02, atol=0.02)
    (grad,) = torch.autograd.grad(y.sum(), x)
    (same,) = torch.autograd.grad(expected.sum(), x)
    torch.testing.assert_close(grad, same, rtol=0.03, atol=0.03)
    compiled = torch.compile(layer, fullgraph=True)
    torch.testing.assert_close(compiled(x), y)
    on_cpu = NMLinear.from_dense(linear.cpu(), "8:32, block = [1, 32]")
    assert torch.equal(on_cpu.values, layer.values.cpu())
    assert torch.equal(on_cpu.index, layer.index.cpu())


def test_cuda_graphs_and_autocast():
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)
    ).cuda()
    sparsify_(model, NMSparseConfig("2:4", keep_slower=True))
    x = torch.randn(16, 64, device="cuda")
    with torch.no_grad():
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            model(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = model(x)
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.testing.assert_close(y, model(x))
        with torch.autocast("cuda", dtype=torch.float16):
            half = model(x)
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.float(), y, rtol=0.02, atol=0.02)

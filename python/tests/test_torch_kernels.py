# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From tensors to a compiled program: storage, caching, and what runs without one."""

import gc
import types
import warnings

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch_cases import ENCODINGS, random_weight  # noqa: E402

from nm_sparse import Encoding, Packed, library  # noqa: E402
from nm_sparse.emulator import emulate  # noqa: E402
from nm_sparse.program import PreparedWeight, compile  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    LinearSpec,
    NMLinear,
    NMSparseConfig,
    PackedWeight,
    kernels,
    sparsify_,
)
from nm_sparse.torch.storage import to_storage  # noqa: E402

needs_library = pytest.mark.skipif(
    not library.available(), reason="no library of the compiler"
)
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class StandIn(kernels.LinearKernels):
    """Kernels that multiply by the dense weight, and keep their operands."""

    def __init__(self, dense, storage):
        self.dense, self.storage, self.calls = dense, storage, []

    def made_for(self, spec):
        self.spec, self.encoding = spec, spec.encoding
        self.names = kernels._stored_names(spec, self.storage)
        return self

    def __call__(self, x, parts, bias, stream):
        assert x.ndim == 2 and x.is_contiguous()
        assert all(part.is_contiguous() for part in parts)
        self.calls.append([*parts])
        return F.linear(x, self.dense, bias)


@pytest.fixture
def weight():
    return random_weight(Encoding(2, 4, (1, 2), dim=1), 3, torch.float32)


@pytest.fixture
def install(monkeypatch):
    """Puts a stand-in in the place of compiled kernels."""

    def put(stand_in):
        made = []

        def find(spec, has_bias, device):
            made.append((spec, has_bias))
            return stand_in.made_for(spec)

        monkeypatch.setattr(kernels, "find_kernels", find)
        monkeypatch.setattr(kernels, "stream_of", lambda x: 0)
        monkeypatch.setattr(kernels, "_stored", kernels._Stored())
        return made

    return put


def as_bits(tensor):
    """A tensor as an array of numpy, of bf16 its bits."""
    plain = tensor.contiguous()
    return (plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain).numpy()


def run(packed, x, bias=None, name="f32"):
    spec = LinearSpec(packed.encoding, packed.shape, name)
    return kernels.run_linear(x, list(packed.components.values()), bias, spec)


@pytest.mark.parametrize("storage", ["canonical", "bitmap"])
def test_a_program_gets_its_storage(weight, install, storage):
    packed, dense = weight
    program = StandIn(dense, storage)
    made = install(program)
    n, k = packed.shape
    bias = torch.randn(n)
    for x in (torch.randn(2, 3, k), torch.randn(k), torch.randn(k, 5).t()):
        torch.testing.assert_close(run(packed, x, bias), F.linear(x, dense, bias))
    assert run(packed, torch.randn(0, k)).shape == (0, n)
    spec = LinearSpec(packed.encoding, (n, k), "f32")
    assert set(made) == {(spec, True), (spec, False)} and len(program.calls) == 3
    expected = to_storage(list(packed.components.values()), spec, storage)
    for parts in program.calls:
        for part, one in zip(parts, expected):
            # Kernels take integers as signed ones.
            assert part.dtype in (torch.float32, torch.int8, torch.int32)
            assert torch.equal(part, one.view(part.dtype))
    first, last = program.calls[0], program.calls[-1]
    assert all(a is b for a, b in zip(first, last)) or storage == "canonical"


def test_a_stored_form_follows_its_weight(weight, install):
    packed, dense = weight
    program = StandIn(dense, "bitmap")
    install(program)
    x = torch.randn(2, packed.shape[1])
    run(packed, x)
    with torch.no_grad():
        packed.components["values"].mul_(2)
    run(packed, x)
    run(packed, x)
    before, after, again = (parts[0] for parts in program.calls)
    assert torch.equal(after, 2 * before) and again is after
    assert len(kernels._stored._forms) == 1
    # A view of the same memory is the same weight; another weight has another form.
    alias = {name: part.detach() for name, part in packed.components.items()}
    run(PackedWeight(alias, packed.encoding, packed.shape), x)
    assert program.calls[-1][0] is after
    other = packed.to(torch.float32, copy=True)
    run(other, x)
    assert program.calls[-1][0] is not after and len(kernels._stored._forms) == 2
    del other
    gc.collect()
    with torch.no_grad():
        packed.components["values"].add_(0)
    run(packed, x)
    assert len(kernels._stored._forms) == 1  # that of the weight that lives


def test_graphs_use_what_is_kept_of_weights_that_are_not_trained(
    weight, install, monkeypatch
):
    packed, dense = weight
    program = StandIn(dense, "bitmap")
    install(program)
    x = torch.randn(2, packed.shape[1])
    run(packed, x)
    monkeypatch.setattr(kernels, "_is_captured", lambda tensor: True)
    run(packed, x)
    kept, captured = (parts[0] for parts in program.calls)
    assert captured is kept
    # A trained weight, and one that has changed, are stored by the graph.
    packed.components["values"].requires_grad_()
    run(packed, x)
    packed.components["values"].requires_grad_(False).mul_(2)
    run(packed, x)
    trained, changed = (parts[0] for parts in program.calls[2:])
    assert trained is not kept and torch.equal(trained, kept)
    assert torch.equal(changed, 2 * kept)
    layer = NMLinear(8, 8, "2:4")
    assert layer.operands()[0] is layer.values
    with torch.no_grad():
        assert not layer.operands()[0].requires_grad


def test_inference_tensors_are_not_kept(weight, install):
    packed, dense = weight
    program = StandIn(dense, "bitmap")
    install(program)
    with torch.inference_mode():
        copied = packed.to(torch.float32, copy=True)
        run(copied, torch.randn(2, packed.shape[1]))
        copied.components["values"].mul_(2)
        run(copied, torch.randn(2, packed.shape[1]))
    assert torch.equal(program.calls[1][0], 2 * program.calls[0][0])
    assert not kernels._stored._forms


def test_a_form_is_waited_for_on_other_streams(monkeypatch):
    log = []
    made_on, other = (
        types.SimpleNamespace(
            cuda_stream=number, wait_event=lambda event: log.append(event)
        )
        for number in (1, 2)
    )
    part = types.SimpleNamespace(device="cuda:0", record_stream=log.append)
    form = kernels._Form(None, [], [part], 1, "made")
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: made_on)
    assert form.use() == [part] and not log
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: other)
    assert form.use() == [part] and log == ["made", other]


def test_components_that_begin_anywhere_are_copied(weight, install):
    packed, dense = weight
    program = StandIn(dense, "canonical")
    install(program)
    part = packed.components["values"]
    moved = torch.empty(part.numel() + 1)[1:].view_as(part).copy_(part)
    assert moved.data_ptr() % 16 != 0
    parts = {**packed.components, "values": moved}
    run(
        PackedWeight(parts, packed.encoding, packed.shape),
        torch.randn(2, packed.shape[1]),
    )
    (stored,) = program.calls
    assert stored[0].data_ptr() % 16 == 0 and torch.equal(stored[0], part)


@needs_library
def test_results_on_the_cpu_have_their_type():
    text = """
#w = #nm_sparse.encoding<2:4, dim = 1>
func.func @f(%x: tensor<2x8xbf16>, %w: tensor<16x8xbf16, #w>) -> tensor<2x16xbf16> {
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<2x16xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%empty : tensor<2x16xbf16>)
      -> tensor<2x16xbf16>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                                      affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<2x8xbf16>, tensor<16x8xbf16, #w>)
      outs(%init : tensor<2x16xbf16>) -> tensor<2x16xbf16>
  return %y : tensor<2x16xbf16>
}"""
    packed, dense = random_weight(Encoding(2, 4, dim=1), 5, torch.bfloat16, (16, 8))
    parts = {name: as_bits(part) for name, part in packed.components.items()}
    x = torch.randn(2, 8, dtype=torch.bfloat16)
    weight = Packed(parts, packed.encoding, (16, 8), "bf16")
    y = compile(text)(x, weight)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y, x @ dense.t(), rtol=0.05, atol=0.05)


def test_types_without_kernels_are_unpacked(install):
    install(None)
    for dtype, name in ((torch.float64, "f64"), (torch.float8_e5m2, "f8E5M2")):
        packed, dense = random_weight(ENCODINGS[0], 1, dtype)
        x = torch.randn(2, packed.shape[1], dtype=torch.float64)
        y = run(packed, x, name=name)
        torch.testing.assert_close(y, F.linear(x, dense.double()))


def test_without_the_library_it_warns_once(weight, monkeypatch):
    packed, dense = weight
    monkeypatch.setenv("NM_SPARSE_LIBRARY", "/nowhere")
    monkeypatch.setattr(kernels, "chip_of", lambda device: "sm_80")
    kernels.find_kernels.cache_clear()
    x = torch.randn(2, packed.shape[1])
    with pytest.warns(RuntimeWarning, match="NM_SPARSE_LIBRARY is '/nowhere'"):
        y = run(packed, x)
    torch.testing.assert_close(y, F.linear(x, dense))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(packed, x)
    kernels.find_kernels.cache_clear()


@needs_library
@pytest.mark.parametrize(
    "encoding, dtype, tokens",
    [
        ("2:4", torch.float16, 5),
        ("8:16", torch.bfloat16, 1),
        ("8:32, block = [1, 128]", torch.float16, 37),
        ("[4:10, block = [1, 64]], [2:4]", torch.float16, 3),
        ("1:4, block = [4, 4]", torch.float32, 9),
        ("2:4, order = shuffled", torch.float16, 2),
    ],
)
def test_compiled_kernels_read_what_is_stored(encoding, dtype, tokens):
    """Through the emulator: what a GPU would be given, and would compute."""
    rng = torch.Generator().manual_seed(3)
    n, k = 136, 200
    linear = nn.Linear(k, n, dtype=dtype)
    layer = NMLinear.from_dense(linear, encoding, activation="silu")
    spec = LinearSpec.parse(layer._specs[dtype])
    made = kernels.LinearKernels(spec, has_bias=True, chip="sm_90a")
    parts = made.store([getattr(layer, name) for name in layer._names])
    x = torch.randn(tokens, k, generator=rng).to(dtype)
    y = torch.full((tokens, n), float("nan"), dtype=dtype)
    flat = [as_bits(t) for t in (x, *parts, layer.bias.detach(), y)]
    (out,) = emulate(made.program, flat[0], PreparedWeight(tuple(flat[1:-2]), None),
                      flat[-2], flat[-1])  # fmt: skip
    got = torch.from_numpy(out).view(dtype)
    torch.testing.assert_close(got, layer(x), rtol=1e-2, atol=1e-2)


@CUDA
@pytest.mark.parametrize("activation", ["none", "gelu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_cuda(dtype, activation):
    linear = nn.Linear(96, 64, dtype=dtype, device="cuda")
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


@CUDA
def test_cuda_graphs_and_autocast():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32)).cuda()
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

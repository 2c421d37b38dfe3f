# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From tensors to a compiled program: storage, caching, and what runs without one."""

import gc
import threading
import types
import warnings
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch_cases import ENCODINGS, random_weight  # noqa: E402

from nm_sparse import Encoding, Level, Packed  # noqa: E402
from nm_sparse.bindings import library  # noqa: E402
from nm_sparse.runtime.emulator import emulate  # noqa: E402
from nm_sparse.runtime.program import PreparedWeight, compile  # noqa: E402
from nm_sparse.torch import LinearSpec, NMLinear, PackedWeight  # noqa: E402
from nm_sparse.torch.layers import kernels  # noqa: E402
from nm_sparse.torch.weight import stored_forms  # noqa: E402
from nm_sparse.torch.weight.storage import to_storage  # noqa: E402
from nm_sparse.torch.weight.stored_forms import STORED  # noqa: E402

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
        self.names = list(replace(spec, storage=self.storage).components)
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
        monkeypatch.setattr(STORED, "_forms", {})
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
    before = program.calls[0][0].clone()
    with torch.no_grad():
        packed.components["values"].mul_(2)
    run(packed, x)
    run(packed, x)
    first, after, again = (parts[0] for parts in program.calls)
    # In the same memory, which CUDA graphs read.
    assert torch.equal(after, 2 * before) and first is after and again is after
    assert len(STORED._forms) == 1
    # A view of the same memory is the same weight; another weight has another form.
    alias = {name: part.detach() for name, part in packed.components.items()}
    run(PackedWeight(alias, packed.encoding, packed.shape), x)
    assert program.calls[-1][0] is after
    other = packed.to(torch.float32, copy=True)
    run(other, x)
    assert program.calls[-1][0] is not after and len(STORED._forms) == 2
    del other
    gc.collect()
    with torch.no_grad():
        packed.components["values"].add_(0)
    run(packed, x)
    assert len(STORED._forms) == 1  # that of the weight that lives


def test_graphs_use_what_is_kept_of_weights_that_are_not_trained(
    weight, install, monkeypatch
):
    packed, dense = weight
    program = StandIn(dense, "bitmap")
    install(program)
    x = torch.randn(2, packed.shape[1])
    run(packed, x)
    monkeypatch.setattr(stored_forms, "_is_captured", lambda tensor: True)
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
    trained = layer.operands()[0]
    assert trained.requires_grad and trained.data_ptr() == layer.values.data_ptr()
    with torch.no_grad():
        assert layer.operands()[0] is layer.values
        layer.weight.mul_(2)
        assert trained._version == layer.values._version > 0


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
    assert not STORED._forms


class Stream:
    """A stream that notes in a log what it is told."""

    def __init__(self, number, log):
        self.cuda_stream, self.log, self.events = number, log, 0

    def wait_event(self, event):
        self.log.append((self.cuda_stream, "waits for", event))

    def record_event(self):
        self.events += 1
        return (self.cuda_stream, self.events)


def test_a_form_is_waited_for_on_other_streams(monkeypatch):
    log = []
    first, second, third = (Stream(number, log) for number in (1, 2, 3))
    part = types.SimpleNamespace(
        device="cuda:0",
        is_cuda=True,
        record_stream=lambda stream: log.append((stream.cuda_stream, "keeps")),
        copy_=lambda new: log.append(("copied", new)),
    )

    def on(stream):
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
        log.clear()

    on(first)
    form = stored_forms._Form(None, [part])
    assert form.use() == [part] and not log
    on(second)
    assert form.use() == [part]
    assert log == [(2, "waits for", (1, 1)), (2, "keeps")]
    log.clear()
    assert form.use() == [part] and log == [(2, "waits for", (1, 1))]
    # It is written behind all that may read it, and read behind that.
    on(third)
    form.write(["new"])
    waits = [(3, "waits for", (1, 2)), (3, "waits for", (2, 1))]
    assert log == [*waits, (3, "keeps"), ("copied", "new")]
    log.clear()
    assert form.use() == [part] and not log
    for stream in (first, second):
        on(stream)
        assert form.use() == [part]
        assert log == [(stream.cuda_stream, "waits for", (3, 1))]


def test_a_form_is_written_anew_outside_of_inference_mode(weight, install):
    packed, dense = weight
    program = StandIn(dense, "bitmap")
    install(program)
    x = torch.randn(2, packed.shape[1])
    with torch.inference_mode():
        run(packed, x)
    packed.components["values"].mul_(2)
    run(packed, x)
    with torch.inference_mode():
        packed.components["values"].mul_(2)
        run(packed, x)
    (parts,) = {id(parts[0]): parts for parts in program.calls}.values()
    expected = to_storage(list(packed.components.values()), program.spec, "bitmap")
    assert torch.equal(parts[0], expected[0]) and not parts[0].is_inference()


def test_components_of_a_form_are_its_own(install):
    """An index that is replaced is not written to, and graphs read the new one."""
    e = Encoding(4, 8, (1, 32), dim=1, inner=Level(2, 4))
    packed, dense = random_weight(e, 3, torch.float32, (40, 24))
    program = StandIn(dense, "bitmap")
    install(program)
    x, parts = torch.randn(2, 24), dict(packed.components)
    run(packed, x)
    old, kept = parts["index"], parts["index"].clone()
    parts["index"] = old.flip(0).contiguous()
    run(PackedWeight(parts, e, packed.shape), x)
    first, second = (call[program.names.index("index")] for call in program.calls)
    assert first is second and torch.equal(second, parts["index"].view(torch.int8))
    assert torch.equal(old, kept) and not torch.equal(old, parts["index"])


def test_activations_share_a_form(weight):
    packed, dense = weight
    parts, stored = list(packed.components.values()), stored_forms.StoredForms()
    first, second = (
        StandIn(dense, "bitmap").made_for(
            LinearSpec(packed.encoding, packed.shape, "f32", activation)
        )
        for activation in ("none", "silu")
    )
    assert stored.get(parts, first)[0] is stored.get(parts, second)[0]


def test_threads_store_a_form_once(weight, install):
    packed, dense = weight
    program = StandIn(dense, "bitmap")
    install(program)
    x = torch.randn(2, packed.shape[1])
    stored = []
    make = program.store
    program.store = lambda *operands: stored.append(1) or make(*operands)
    threads = [threading.Thread(target=run, args=(packed, x)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stored) == 1 and len(program.calls) == 8


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
    parts = made.store(layer.components())
    x = torch.randn(tokens, k, generator=rng).to(dtype)
    y = torch.full((tokens, n), float("nan"), dtype=dtype)
    flat = [as_bits(t) for t in (x, *parts, layer.bias.detach(), y)]
    (out,) = emulate(made.program, flat[0], PreparedWeight(tuple(flat[1:-2]), None),
                      flat[-2], flat[-1])  # fmt: skip
    got = torch.from_numpy(out).view(dtype)
    torch.testing.assert_close(got, layer(x), rtol=1e-2, atol=1e-2)

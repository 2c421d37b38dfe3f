# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What calls of programs refuse, share between threads, and do with memory and streams
of a GPU; the GPU is a stand-in. Skipped where there is no library of the compiler."""

import concurrent.futures
import contextlib
import gc
import types

import numpy as np
import pytest

from nm_sparse import Encoding, EncodingError, compiler, direct, pack, prune
from nm_sparse.bindings import library as native
from nm_sparse.compiler import CompileError
from nm_sparse.interop.operands import (
    OperandError,
    numpy_type,
    open_operand,
    torch_memory,
)
from nm_sparse.layers.specs import LinearSpec
from nm_sparse.runtime import cache, function
from nm_sparse.runtime.emulator import emulate
from nm_sparse.runtime.program import PreparedWeight, compile

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not native.available(), reason="no library of the compiler"),
]


class OnGPU:
    """An array that says that it is on GPU 0."""

    def __init__(self, shape, typestr="<f2", strides=None, stream=None):
        self.nbytes = 0
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "strides": strides,
            "data": (256, False),
            "stream": stream,
            "version": 3,
        }


def make(encoding="2:4", n=16, k=32, seed=0, **fields):
    """A program of a layer, its packed weight, and the dense one."""
    e = Encoding.parse(f"{encoding}, dim = 1")
    rng = np.random.default_rng(seed)
    weight = prune(rng.standard_normal((n, k)).astype(np.float16), e)
    return compile(LinearSpec(e.mlir(), n, k, **fields)), pack(weight, e), weight


def test_elements_of_the_same_size_are_told_apart():
    program, packed, _ = make()
    x, out = np.ones((2, 32), np.float16), np.zeros((2, 16), np.float16)
    with pytest.raises(OperandError, match="0 of @linear has elements of i16: legal"):
        program(x.view(np.int16), packed, out)
    with pytest.raises(OperandError, match="3 of the kernels of @linear has elements"):
        emulate(program, x, packed, out.view(np.int16))
    with pytest.raises(OperandError, match="is list: legal in the emulator"):
        emulate(program, [1], packed, out)
    with pytest.raises(OperandError, match="takes 3 arguments, got 2"):
        emulate(program, x, packed)
    # numpy has no bf16: its bits are legal.
    assert open_operand(x.view(np.uint16), "x").fits("bf16")


def test_results_are_not_written_to_what_is_read_only():
    program, packed, _ = make()
    x, out = np.ones((2, 32), np.float16), np.zeros((2, 16), np.float16)
    x.flags.writeable = False
    program(x, packed, out)
    out.flags.writeable = False
    with pytest.raises(OperandError, match="2 of @linear is read-only, and a result"):
        program(x, packed, out)
    assert emulate(program, x, packed, out)[0].shape == out.shape  # of its own


def test_weights_of_another_encoding_are_no_weights_of_the_program():
    """2:4 and 4:8 have components of the same shapes."""
    program, packed, _ = make("4:8")
    other = make("2:4")[1]
    assert {n: a.shape for n, a in packed.components.items()} == {
        n: a.shape for n, a in other.components.items()
    }
    x, out = np.ones((2, 32), np.float16), np.zeros((2, 16), np.float16)
    with pytest.raises(EncodingError, match=r"packed as 2:4, dim = 1: @linear takes"):
        program(x, other, out)
    with pytest.raises(EncodingError, match=r"is \[8, 32\] of f16: the program takes"):
        program(x, make(n=8)[1], out)


def test_weights_that_kernels_read_as_another_pattern_are_taken():
    """All weights of 1:4 are 2:4, too."""
    program, packed, weight = make("1:4")
    x, out = np.ones((2, 32), np.float16), np.zeros((2, 16), np.float16)
    np.testing.assert_allclose(program(x, packed, out), x @ weight.T, atol=2e-2)


def test_the_emulator_is_no_gpu_to_compile_for():
    text = "#nm_sparse.encoding<2:4, dim = 1>"
    program = compile(LinearSpec(text, 16, 32), chip="sm_80")
    packed = make()[1]
    x, out = np.ones((0, 32), np.float16), np.zeros((0, 16), np.float16)
    assert emulate(program, x, packed, out)[0].shape == (0, 16)
    native._device_info.cache_clear()
    assert (
        native.device_info() is None
        and compile(LinearSpec(text, 16, 32)).chip == "sm_90a"
    )


def test_numbers_are_no_arguments_of_calls():
    text = """
#w = #nm_sparse.encoding<2:4>
func.func @f(%x: tensor<2x8xf32>, %w: tensor<8x16xf32, #w>, %s: f32,
             %out: tensor<2x16xf32>) -> tensor<2x16xf32> {
  %zero = linalg.fill ins(%s : f32) outs(%out : tensor<2x16xf32>) -> tensor<2x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<2x8xf32>, tensor<8x16xf32, #w>)
      outs(%zero : tensor<2x16xf32>) -> tensor<2x16xf32>
  return %y : tensor<2x16xf32>
}"""
    program = compile(text)
    packed = pack(np.zeros((8, 16), np.float32), Encoding(2, 4))
    x, out = np.ones((2, 8), np.float32), np.zeros((2, 16), np.float32)
    with pytest.raises(OperandError, match="is a number, f32: legal in calls from"):
        program(x, packed, np.float32(1), out)


def test_threads_share_a_program():
    program, packed, weight = make()

    def call(i):
        x = np.full((1 + i % 3, 32), i, np.float16)
        out = np.empty((len(x), 16), np.float16)
        np.testing.assert_allclose(
            program(x, packed, out).astype(float),
            x.astype(float) @ weight.astype(float).T,
            rtol=1e-2,
            atol=0.1,
        )
        return program.handle

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        handles = set(pool.map(call, range(200)))
    assert len(handles) == 1


def test_each_weight_of_a_function_is_placed_in_its_own_form(monkeypatch):
    program, packed, _ = make()
    called, like = program["linear"], OnGPU((2, 32))
    stored = []
    monkeypatch.setattr(function, "place", lambda array, element, like: OnGPU((1,)))

    def prepare(weight, number=0, like=None):
        stored.append(number)
        return PreparedWeight((OnGPU((1,)),), packed)

    monkeypatch.setattr(called, "prepare", prepare)
    first = called._on_device(packed, 0, like)
    assert called._on_device(packed, 0, like) is first and stored == [0]
    assert called._on_device(packed, 1, like) is not first and stored == [0, 1]
    # What was prepared on the host is copied once, too.
    host = PreparedWeight((np.zeros(1),), packed)
    assert called._on_device(host, 0, like) is called._on_device(host, 0, like)
    assert called._on_device(first, 0, like) is first and stored == [0, 1, 0]
    assert len(called._placed) == 3
    del host
    gc.collect()
    assert len(called._placed) == 2


def test_no_tokens_have_results_of_no_rows(monkeypatch):
    """Outputs in another order are put into memory of the call."""
    program, packed, _ = make("2:4, block = [1, 8], order = shuffled")
    called, stream = program["linear"], 4096
    given, views = [], []

    def allocator(operand, stream):
        return lambda size: given.append((size, stream)) or OnGPU((size,), "|u1")

    monkeypatch.setattr(function, "allocator", allocator)
    monkeypatch.setattr(function, "as_view", lambda *view: views.append(view) or "y")
    kinds = {"i8": "|u1", "i32": "<i4", "f16": "<f2"}
    prepared = called.prepare(packed)
    (weight,) = called.weights
    parts = [
        OnGPU(array.shape, kinds[open_operand(array, "a part").dtype])
        for array in prepared.arrays
    ]
    assert len(parts) == len(weight["components"])
    x, out = OnGPU((0, 32)), OnGPU((0, 16))
    y = called(x, PreparedWeight(tuple(parts), packed), out, stream=stream)
    assert y == "y" and given == [(0, stream)]
    ((_, _, shape, _, element),) = views
    assert shape == (0, 16) and element == "f16"
    with pytest.raises(OperandError, match="was given an array of the shape"):
        called(OnGPU((3, 8)), PreparedWeight(tuple(parts), packed), out, stream=stream)


def test_arrays_on_a_gpu():
    operand = open_operand(OnGPU((2, 3), strides=(16, 2)), "x")
    assert operand.strides == (8, 1) and operand.device == 0
    with pytest.raises(OperandError, match=r"x has strides of \[7, 2\] bytes: legal"):
        open_operand(OnGPU((2, 3), strides=(7, 2)), "x")
    assert numpy_type("bf16") == "uint16" and numpy_type("f16") == "float16"
    for kind, name in enumerate(native.KINDS):
        assert native.element_of_kind(kind) == name and np.dtype(numpy_type(name))
    with pytest.raises(native.RuntimeFailure, match="elements of kind -1: legal are"):
        native.element_of_kind(-1)


@pytest.mark.parametrize(
    "status, error", [(-1, OperandError), (1, native.RuntimeFailure)]
)
def test_wrong_sizes_are_told_from_failures(monkeypatch, status, error):
    torch = types.SimpleNamespace(
        Tensor=type("Tensor", (), {"get_device": lambda tensor: 3}),
        nn=types.SimpleNamespace(Parameter=None),
        empty=lambda size, dtype: dtype,
        _C=types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 100 + device),
    )
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    given = []

    def prepare(handle, number, addresses, samples, slots, results, allocate, fail):
        given.append((samples, slots, results))
        return fail

    def launch(fail, stream, *arguments):
        given.append((stream, *arguments))
        return fail(status) if arguments == ("wrong",) else arguments[0]

    program = types.SimpleNamespace(handle=0)
    launcher = types.ModuleType("launcher")
    launcher.prepare, launcher.launch = prepare, launch
    monkeypatch.setattr(direct, "torch_dtype", lambda element: element)
    monkeypatch.setattr(direct, "launcher", lambda: None)
    assert direct.direct_call(program, 0, ["f16"], [0], [0])(0, "x") is None
    monkeypatch.setattr(direct, "launcher", lambda: launcher)
    assert direct.direct_call(program, 0, ["f16"], [0], [])(0, "x") is None
    call = direct.direct_call(program, 0, ["f16"], [0], [0])
    assert given == [(("f16",), (0,), (0,))]
    # This torch has no functions for C: the current stream is asked in Python.
    tensor = torch.Tensor()
    assert call(5, tensor) is tensor and call(None, tensor) is tensor
    assert given[1:] == [(5, tensor), (103, tensor)]
    assert call(None, "on no GPU") is None
    with pytest.raises(error):
        call(5, "wrong")
    direct._use_exchange.cache_clear()


def test_memory_is_of_the_stream_that_kernels_are_on(monkeypatch):
    """The allocator of torch gives memory to the stream that is current."""
    current, taken = [7], []

    @contextlib.contextmanager
    def on(stream):
        before, current[0] = current[0], stream
        yield
        current[0] = before

    torch = types.SimpleNamespace(
        uint8="uint8",
        device=lambda kind, number: (kind, number),
        empty=lambda size, dtype, device: taken.append((size, device, current[0])),
        _C=types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: current[0]),
        cuda=types.SimpleNamespace(
            stream=on,
            ExternalStream=lambda address, device: address,
            default_stream=lambda device: 0,
        ),
    )
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    for stream in (7, 9, 0):
        torch_memory(1, stream, 64)
        assert taken[-1] == (64, ("cuda", 1), stream) and current == [7]


def test_the_library_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("NM_SPARSE_LIBRARY", str(tmp_path))
    assert not native.available()
    (tmp_path / "libnm_sparse.so").write_bytes(b"no library")
    with pytest.raises(native.LibraryNotFoundError, match="cannot be loaded"):
        native.library()


def test_programs_are_destroyed_by_the_library_that_made_them(monkeypatch):
    program, *_ = make()
    destroyed = []
    own = types.SimpleNamespace(
        nmsProgramCreate=lambda *arguments: 5, nmsProgramDestroy=destroyed.append
    )
    monkeypatch.setattr("nm_sparse.runtime.program.library", lambda: own)
    assert program.handle == program.handle == 5
    monkeypatch.setattr("nm_sparse.runtime.program.library", native.library)
    del program
    gc.collect()
    assert destroyed == [5]


@pytest.mark.parametrize("option", ["--emit=cubin", "--candidates=1", "-o=other"])
def test_options_that_make_something_else(option):
    spec = LinearSpec("#nm_sparse.encoding<2:4, dim = 1>", 16, 32)
    with pytest.raises(CompileError) as raised:
        compile(spec, options=[option], use_cache=False)
    assert str(raised.value)


def test_what_files_of_options_say_is_not_kept(monkeypatch):
    spec = LinearSpec("#nm_sparse.encoding<2:4, dim = 1>", 16, 32)
    made = compiler.Output("", "", {"kernels": b"", "manifest": b'{"functions": []}'})
    monkeypatch.setattr(compiler, "run", lambda *arguments: made)
    monkeypatch.setattr(cache, "read", lambda name: pytest.fail("was read"))
    monkeypatch.setattr(cache, "write", lambda name, entry: pytest.fail("was kept"))
    with pytest.raises(StopIteration):  # of a manifest without functions
        compile(spec, options=["--bind", "w=weights.safetensors"])

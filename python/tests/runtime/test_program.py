# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs compiled and called from Python: on the CPU, and their kernels in the
emulator. Skipped where there is no library of the compiler."""

import ctypes
import dataclasses
import gc
import weakref

import numpy as np
import pytest
from launched_tensors import Exchange, OnHost, Tensor, launcher  # noqa: F401

from nm_sparse import Encoding, EncodingError, encode, pack, prune
from nm_sparse.bindings import library as native
from nm_sparse.compiler import CompileError
from nm_sparse.interop.operands import NativeArrays, Operand, OperandError
from nm_sparse.layers.activation_text import ACTIVATIONS
from nm_sparse.layers.specs import LinearSpec
from nm_sparse.runtime import emulator
from nm_sparse.runtime.emulator import emulate
from nm_sparse.runtime.program import PreparedWeight, advise, compile

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not native.available(), reason="no library of the compiler"),
]

ENCODINGS = [
    "2:4",
    "8:16",
    "5:13, block = [1, 8]",
    "2:4, block = [4, 4]",
    "8:32, block = [1, 128]",
    "[4:10, block = [1, 64]], [2:4]",
    "free",
    "free, block = [1, 32]",
    "2:4, block = [1, 8], order = shuffled",
]


def make_layer(encoding, seed, dtype=np.float16, **fields):
    """A program, its packed weight, the dense one, x, bias and the result."""
    rng = np.random.default_rng(seed)
    n, k, m = (
        int(rng.integers(low, high)) for low, high in ((9, 200), (9, 150), (1, 9))
    )
    e = Encoding.parse(f"{encoding}, dim = 1")
    spec = LinearSpec(e.mlir(), n, k, {2: "f16", 4: "f32"}[dtype().nbytes], **fields)
    free = {"density": 0.4} if e.is_free else {}
    weight = prune(rng.standard_normal((n, k)).astype(dtype) / 8, e, **free)
    x = rng.standard_normal((m, k)).astype(dtype)
    bias = rng.standard_normal(n).astype(dtype)
    y = x.astype(np.float64) @ weight.astype(np.float64).T
    return compile(spec), pack(weight, e), x, bias, y


def close(got, expected):
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=2e-3, atol=4e-3)


@pytest.mark.parametrize("seed, encoding", list(enumerate(ENCODINGS)))
def test_a_layer_on_the_cpu_and_in_the_emulator(seed, encoding):
    program, packed, x, _, expected = make_layer(encoding, seed)
    out = np.full(expected.shape, np.nan, np.float16)
    y = program(x, packed, out)
    # Shuffled outputs are put in order on their way to an array of their own.
    assert (y is out) == ("shuffled" not in encoding)
    close(y, expected)
    out[...] = np.nan
    (emulated,) = emulate(program, x, packed, out)
    close(emulated, expected)


@pytest.mark.parametrize("seed, activation", list(enumerate(ACTIVATIONS)))
def test_bias_and_activations(seed, activation):
    program, packed, x, bias, y = make_layer(
        "2:4", 40 + seed, np.float32, bias=True, activation=activation
    )
    v = y + bias
    tanh = np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3))
    erf = np.vectorize(__import__("math").erf)(v / np.sqrt(2))
    expected = {
        "none": v,
        "relu": np.maximum(v, 0),
        "silu": v / (1 + np.exp(-v)),
        "gelu": v * (1 + erf) / 2,
        "gelu_tanh": v * (1 + tanh) / 2,
    }[activation]
    out = np.empty(v.shape, np.float32)
    np.testing.assert_allclose(program(x, packed, bias, out), expected, atol=2e-5)


def test_a_result_that_is_no_argument():
    text = """
#w = #nm_sparse.encoding<2:4>
func.func @f(%x: tensor<3x8xf32>, %w: tensor<8x16xf32, #w>,
             %init: tensor<3x16xf32>) -> (tensor<3x16xf32>, tensor<3x16xf32>) {
  %y = linalg.matmul ins(%x, %w : tensor<3x8xf32>, tensor<8x16xf32, #w>)
      outs(%init : tensor<3x16xf32>) -> tensor<3x16xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x16xf32>
  %none = linalg.fill ins(%zero : f32) outs(%e : tensor<3x16xf32>)
      -> tensor<3x16xf32>
  %z = linalg.matmul ins(%x, %w : tensor<3x8xf32>, tensor<8x16xf32, #w>)
      outs(%none : tensor<3x16xf32>) -> tensor<3x16xf32>
  return %y, %z : tensor<3x16xf32>, tensor<3x16xf32>
}"""
    rng = np.random.default_rng(1)
    e = Encoding(2, 4)
    weight = prune(rng.standard_normal((8, 16)).astype(np.float32), e)
    x = rng.standard_normal((3, 8)).astype(np.float32)
    program = compile(text)
    init = np.ones((3, 16), np.float32)
    y, z = program["f"](x, pack(weight, e), init)
    np.testing.assert_allclose(z, x @ weight, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(y, z + 1, rtol=1e-4, atol=1e-5)
    assert y is init and program["f"].results_in == [3, None]
    with pytest.raises(KeyError, match="no function @g; there are f"):
        program["g"]


def test_what_the_compiler_says():
    program, *_ = make_layer("8:32, block = [1, 64]", 3)
    assert ".visible .entry" in program.ptx and program.chip == "sm_90a"
    assert "best of" in program.explain()
    (advice,) = program.advise([16, 300])
    tokens = [time["tokens"] for time in advice["patterns"][0]["times"]]
    assert advice["outputs"] == program["linear"].weights[0]["shape"][0]
    assert tokens == [16, 300]
    dense, sparse = advise(4096, 4096, "f16", [2048], ["8:32, block = [1, 128]"])[
        "patterns"
    ][:2]
    assert sparse["times"][0]["predicted_us"] < dense["times"][0]["predicted_us"]


@pytest.mark.parametrize(
    "text, options, status, message",
    [
        ("func.func @f(", [], 1, "expected"),
        ("func.func @f() { return }", [], 1, "no contraction with an encoded weight"),
        ("", ["--tokens=none"], 2, "--tokens"),
        ("", ["--chip=sm_12"], 2, "is not a known chip"),
    ],
)
def test_what_the_compiler_refuses(text, options, status, message):
    with pytest.raises(CompileError, match=message) as raised:
        compile(text, options=options)
    assert raised.value.status == status
    assert not str(raised.value).startswith("nm-compile")


def test_wrong_arguments():
    program, packed, x, _, y = make_layer("2:4", 5)
    out = np.zeros(y.shape, np.float16)
    with pytest.raises(OperandError, match="@linear takes 3 arguments, got 2"):
        program(x, packed)
    with pytest.raises(OperandError, match="a weight of @linear is ndarray"):
        program(x, out, out)
    with pytest.raises(OperandError, match="was given an array of the shape"):
        program(x[:, :-1], packed, out)
    with pytest.raises(OperandError, match="elements of f32: legal is f16"):
        program(x.astype(np.float32), packed, out)
    with pytest.raises(OperandError, match="argument 0 of @linear is list"):
        program([[1.0]], packed, out)
    with pytest.raises(OperandError, match="elements of complex64"):
        program(x.astype(np.complex64), packed, out)
    other = pack(np.zeros((8, 8), np.float16), Encoding(2, 4, dim=1))
    with pytest.raises(EncodingError, match=r"the weight is \[8, 8\] of f16"):
        program.prepare(other)
    e = Encoding(3, 4, dim=1)
    dense = np.ones(packed.shape, np.float16)
    dense[:, ::4] = 0
    with pytest.raises(EncodingError, match="nonzero"):
        program.prepare(encode(dense, e))


def test_specs():
    text = "#nm_sparse.encoding<8:32, block = [1, 128], dim = 1>"
    spec = LinearSpec(text, 64, 32, "bf16", True, "gelu")
    assert LinearSpec.from_json(spec.to_json()) == spec
    for fields, message in (
        ((text, 0, 32), "outputs is 0: legal is an integer from 1 on"),
        ((text, 8, "32"), "inputs is '32'"),
        ((text, 8, 32, "f64"), "dtype is 'f64'"),
        ((text, 8, 32, "f16", True, "tanh"), "activation is 'tanh'"),
        (("2:4", 8, 32), "has dim 0"),
    ):
        with pytest.raises(EncodingError, match=message):
            LinearSpec(*fields)
    with pytest.raises(EncodingError, match="is no spec of a layer"):
        LinearSpec.from_json('{"outputs": 3}')


def use_launcher(monkeypatch, launch):
    """The emulator calls `launch(handle, number, operands, workspace)` in the place of
    the library's function."""
    operands = []

    class Recording(NativeArrays):
        def __init__(self, found):
            super().__init__(found)
            operands[:] = found

    def replacement(handle, number, arrays, count, where, stream):
        return launch(handle, number, operands, where)

    monkeypatch.setattr(emulator, "NativeArrays", Recording)
    monkeypatch.setattr(
        emulator,
        "library",
        lambda: _Replaced(native.library(), nmsProgramLaunch=replacement),
    )


@pytest.mark.parametrize("is_exchanged", [False, True])
def test_the_launcher_of_tensors(monkeypatch, launcher, is_exchanged):  # noqa: F811
    program, packed, x, _, expected = make_layer("8:32, block = [1, 128]", 11)
    out = np.full(expected.shape, np.nan, np.float16)
    lib = native.library()
    functions = lib.nmsProgramCall, lib.nmsSetDevice
    addresses = tuple(ctypes.cast(f, ctypes.c_void_p).value for f in functions)
    exchange = Exchange(stream=None)
    if is_exchanged:
        assert launcher.use_exchange(exchange.capsule, Tensor, OnHost)

    def launch(handle, number, operands, where):
        kinds = [f"type {i}" for i in range(len(operands))]
        tensors = [Tensor(one, None, kind) for one, kind in zip(operands, kinds)]

        def allocate(device, stream, size):
            assert device == 0 and stream == 0
            return Tensor(Operand(0, where, (size,), (1,), "", None), None, None)

        def fail(status):
            raise ValueError(f"{status}: {native.last_error()}")

        slots = (0, tuple(range(1, len(tensors) - 1)), len(tensors) - 1)
        call = launcher.prepare(
            handle, number, addresses, tuple(tensors), slots, (2,), allocate, fail
        )
        first, *parts, last = tensors
        stream = None if is_exchanged else 0
        good = (call, stream, first, tuple(parts), last)
        astray = dataclasses.replace(operands[-1], address=where + 8)
        for i, wrong in enumerate(
            (
                Tensor(operands[-1], None, "another type"),
                Tensor(astray, None, kinds[-1]),
                OnHost(operands[-1], None, kinds[-1]),
                type("NoTensor", (), {"dtype": kinds[-1]})(),
            )
        ):
            assert launcher.launch(*good[:-1], wrong) is None, i
        assert launcher.launch(*good[:-1]) is None
        assert launcher.launch(*good[:3], tuple(parts[1:]), last) is None
        assert launcher.launch(*good[:3], parts, last) is None
        if not is_exchanged:
            assert launcher.launch(call, None, *good[2:]) is None
        other = Tensor(operands[0], None, kinds[0])
        other.shape = tuple(size + 1 for size in other.shape)
        with pytest.raises(ValueError, match="-1: .*argument 0 of @linear"):
            launcher.launch(call, stream, other, *good[3:])
        weight = PreparedWeight(tuple(parts), None)
        assert launcher.launch(call, stream, first, weight, last) is last
        assert bool(exchange.asked) == is_exchanged
        arguments = None, tuple(parts), None
        bound = launcher.bind(call, 0, arguments, last.shape[-1:])
        first.new_empty = lambda *shape: last if shape == last.shape else None
        assert launcher.launch_bound(bound, first) == ([last] if is_exchanged else None)
        if not is_exchanged:
            assert launcher.launch(*good) is last
        return 0

    use_launcher(monkeypatch, launch)
    (emulated,) = emulate(program, x, packed, out)
    close(emulated, expected)


def test_direct_calls_keep_their_program(launcher):  # noqa: F811
    pytest.importorskip("torch")
    program, *_ = make_layer("2:4", 3)
    direct_call, kept = program["linear"].direct, weakref.ref(program)
    del program
    gc.collect()
    assert kept() is not None and direct_call(0, 1, 2, 3) is None
    del direct_call
    gc.collect()
    assert kept() is None


def test_what_the_launcher_is_prepared_for(launcher):  # noqa: F811
    tensor = Tensor(Operand(0, 16, (3,), (1,), "", None), None, "f16")
    for slots, results in (((0, 2), (0,)), ((0, 1), ()), ((0, 1), (2,)), ((), (0,))):
        with pytest.raises(ValueError, match="legal are functions of at most 64"):
            launcher.prepare(0, 0, (0, 0), (tensor,) * 2, slots, results, 0, 0)
    with pytest.raises(ValueError, match="at most 64 arguments"):
        launcher.prepare(0, 0, (0, 0), (tensor,) * 65, (0,), (0,), 0, 0)
    assert not launcher.use_exchange(Exchange(None, major=2).capsule, Tensor, OnHost)
    with pytest.raises(TypeError, match="at least 2 arguments"):
        launcher.launch()


class _Replaced:
    """A library with other functions."""

    def __init__(self, library, **functions):
        self._library, self._functions = library, functions

    def __getattr__(self, name):
        return self._functions.get(name) or getattr(self._library, name)

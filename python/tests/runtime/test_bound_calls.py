# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the C module does for layers that are called again and again: calls whose
weights stay the same, and whether they do. A program and tensors are stand-ins."""

import ctypes
import types

import pytest
from launched_tensors import Exchange, OnHost, Tensor, launcher  # noqa: F401

from nm_sparse.bindings import library as native

pytestmark = pytest.mark.skipif(
    not native.available(), reason="no library of the compiler"
)

N, K = 24, 32
REFUSED, FAILED = -1, 3
CALL = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(native.Array),
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
)  # fmt: skip
SET = ctypes.CFUNCTYPE(None, ctypes.c_int)
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p,
)  # fmt: skip
DEVICE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


class Program:
    """In the place of a program of these arguments: keeps what it is called with."""

    def __init__(self, module, slots, results, types):
        self.module, self.calls, self.status = module, [], 0
        self._functions = CALL(self._call), SET(lambda device: None)
        self.exchange = Exchange(stream=None)
        assert module.use_exchange(self.exchange.capsule, Tensor, OnHost)
        self.call = module.prepare(
            0, 0, tuple(address(one) for one in self._functions),
            tuple(Tensor.of((1,), kind) for kind in types), slots, results, None,
            self._fail,
        )  # fmt: skip

    def _call(self, program, function, arrays, count, allocate, context, stream):
        read = [arrays[i] for i in range(count)]
        self.calls.append([
            (one.data, tuple(one.sizes[: one.rank]), tuple(one.strides[: one.rank]))
            for one in read
        ])  # fmt: skip
        self.stream = stream
        return self.status

    def _fail(self, status):
        raise RuntimeError(f"status {status}")


def seen(tensor, shape=None):
    """As `Program` keeps a tensor, whose rows have one behind the other."""
    shape = tensor.shape if shape is None else shape
    return tensor.data_ptr(), shape, Tensor.of(shape, None).stride()


@pytest.fixture
def layer(launcher):  # noqa: F811
    """A layer of x, a weight of two parts, a bias and y, and its bound call."""
    program = Program(launcher, (0, (1, 2), 3, 4), (3,), ["x", "x", "i", "x", "x"])
    weight = Tensor.of((K // 2, N), "x"), Tensor.of((K // 2, N), "i")
    bias = Tensor.of((N,), "x")
    bound = launcher.bind(program.call, 5, (None, weight, bias, None), (N,))
    return types.SimpleNamespace(
        program=program, weight=weight, bias=bias, bound=bound, launch=launcher
    )


@pytest.mark.parametrize("shape", [(K,), (7, K), (2, 1, 3, K)])
def test_bound_calls(layer, shape):
    x = Tensor.of(shape, "x")
    (y,) = layer.launch.launch_bound(layer.bound, x)
    assert y.shape == (*shape[:-1], N) and layer.program.stream == 5
    rows = 1
    for size in shape[:-1]:
        rows *= size
    weight = [seen(part) for part in layer.weight]
    own = seen(x, (rows, K)), *weight, seen(layer.bias), seen(y, (rows, N))
    assert layer.program.calls == [list(own)]
    apart = Tensor.of(shape, "x", tuple(2 * one for one in x.stride()))
    layer.launch.launch_bound(layer.bound, apart)
    assert layer.program.calls[1][0][0] not in (x.data_ptr(), apart.data_ptr())


def test_what_bound_calls_decline(layer):
    class Another(Tensor):
        pass

    x = Tensor.of((3, K), "x")
    host = OnHost(types.SimpleNamespace(sizes=(3, K), strides=(K, 1), address=64),
                  None, "x")  # fmt: skip
    astray = Tensor.of((3, K), "x")
    astray._address += 8
    other = Another(types.SimpleNamespace(sizes=(3, K), strides=(K, 1), address=64),
                    None, "x")  # fmt: skip
    for wrong in (
        Tensor.of((3, K), "f"), Tensor.of((), "x"), Tensor.of((0, K), "x"), host,
        astray, other, None,
    ):  # fmt: skip
        assert layer.launch.launch_bound(layer.bound, wrong) is None
    assert layer.launch.launch_bound(layer.bound, x, x, x) is None
    assert not layer.program.calls
    layer.program.status = REFUSED
    assert layer.launch.launch_bound(layer.bound, x) is None
    layer.program.status = FAILED
    with pytest.raises(RuntimeError, match="status 3"):
        layer.launch.launch_bound(layer.bound, x)
    with pytest.raises(TypeError, match="at least 2"):
        layer.launch.launch_bound(layer.bound)


def test_no_memory(layer, monkeypatch):
    def new_empty(self, *shape):
        raise MemoryError(shape)

    monkeypatch.setattr(Tensor, "new_empty", new_empty)
    with pytest.raises(MemoryError):
        layer.launch.launch_bound(layer.bound, Tensor.of((3, K), "x"))
    assert not layer.program.calls


def test_what_cannot_be_bound(layer):
    weight, bias, bind = layer.weight, layer.bias, layer.launch.bind
    call = layer.program.call
    for arguments, outputs in (
        ((None, weight, bias), (N,)),
        ((None, weight, bias, None), (N, N)),
        ((None, weight[:1], bias, None), (N,)),
        ((None, None, bias, None), (N,)),
        ((None, weight, weight[1], None), (N,)),
        ((None, weight, bias, bias), (N,)),
        ((bias, weight, bias, None), (N,)),
    ):
        assert bind(call, 5, arguments, outputs) is None


@pytest.mark.parametrize("has_scales", [True, False])
def test_rounded_calls(launcher, has_scales):  # noqa: F811
    """x is rounded to memory that the program reads."""
    kinds = ["e", "e", "s", "x"]
    program = Program(launcher, (0, (1,), 2, 3), (3,), kinds)
    weight, scale = (Tensor.of((K, N), "e"),), Tensor.of((1,), "s")
    own = None if has_scales else scale
    bound = launcher.bind(program.call, 5, (None, weight, own, None), (N,))
    launched, state = [], types.SimpleNamespace(device=0, status=0)

    def read(values, i, kind):
        return ctypes.cast(values[i], ctypes.POINTER(kind))[0]

    def launch(function, *rest):
        grid, (threads, *_, shared, stream, values, extra) = rest[:3], rest[3:]
        pointers = [read(values, i, ctypes.c_void_p) for i in range(3)]
        numbers = read(values, 3, ctypes.c_int32), read(values, 4, ctypes.c_float)
        last = read(values, 5, ctypes.c_int64), read(values, 6, ctypes.c_void_p)
        launched.append((function, grid, threads, shared, stream, pointers))
        assert numbers == (K, 0.5) and last == (1 << 40, None) and not extra
        return state.status

    def device(out):
        out[0] = state.device
        return 0

    functions = LAUNCH(launch), DEVICE(device)
    scales = ("scales", None) if has_scales else ("address", scale.data_ptr())
    values = (
        ("x", None), ("out", None), scales, ("i32", K), ("fp32", 0.5),
        ("i64", 1 << 40), ("address", 0),
    )  # fmt: skip
    drivers = tuple(address(one) for one in functions)
    rounder = launcher.rounder(drivers, 77, 128, 48, K, values, "kept")
    x = Tensor.of((2, 3, K), "x")
    (y,) = launcher.launch_rounded(bound, rounder, x)
    assert y.shape == (2, 3, N) and program.stream == 5
    ((function, grid, threads, shared, stream, pointers),) = launched
    assert (function, grid, threads, shared, stream) == (77, (6, 1, 1), 128, 48, 5)
    rows, part, factors, result = program.calls[0]
    assert rows == (pointers[1], (6, K), (K, 1)) and part == seen(weight[0])
    assert pointers[0] == x.data_ptr() and result == seen(y, (6, N))
    if has_scales:
        assert factors == (pointers[2], (6,), (1,))
        assert pointers[2] == pointers[1] + 6 * K
    else:
        assert factors == seen(scale) and pointers[2] == scale.data_ptr()

    apart = Tensor.of((2, K), "x", (2 * K, 1))
    astray = Tensor.of((2, K), "x")
    astray._address += 8
    for wrong in (
        apart, astray, Tensor.of((0, K), "x"), Tensor.of((2, K + 16), "x"),
        Tensor.of((2, K), "f"), Tensor.of((), "x"), "x",
    ):  # fmt: skip
        assert launcher.launch_rounded(bound, rounder, wrong) is None
    state.device = 1  # another one is current
    assert launcher.launch_rounded(bound, rounder, x) is None
    assert len(launched) == 1
    state.device, state.status = 0, 1
    assert launcher.launch_rounded(bound, rounder, x) is None
    assert len(program.calls) == 1

    for wrong in ((), values[1:], (*values, ("f64", 1.0)), (*values, 3)):
        with pytest.raises(ValueError, match="no arguments of a kernel"):
            launcher.rounder(drivers, 77, 128, 48, K, wrong, None)
    with pytest.raises(TypeError, match="3 arguments"):
        launcher.launch_rounded(bound, rounder)


def test_what_is_watched(launcher):  # noqa: F811
    exchange = Exchange(stream=None)
    assert launcher.use_exchange(exchange.capsule, Tensor, OnHost)
    part, bias = Tensor.of((3, 4), "x"), Tensor.of((4,), "x")
    weight = types.SimpleNamespace(values=part)
    layers = [
        types.SimpleNamespace(_parameters={"weight": weight, "bias": one})
        for one in (bias, None)
    ]
    places = (
        (0, "_parameters", "weight", weight), (0, "_parameters", "bias", bias),
        (1, "_parameters", "bias", None), (weight, "values", None, part),
    )  # fmt: skip

    def watch():
        return launcher.watch(2, places)

    first = watch()
    assert launcher.unchanged(first, layers) and launcher.unchanged(first, (*layers,))
    assert not launcher.unchanged(first, layers[:1])
    assert not launcher.unchanged(first, layers[::-1])
    for owner, name, value in (
        (part, "_version", 1), (part, "_address", 32), (part, "shape", (4, 3)),
        (part, "dtype", "f"), (bias, "_strides", (2,)), (weight, "values", bias),
    ):  # fmt: skip
        before, first = getattr(owner, name), watch()
        setattr(owner, name, value)
        assert not launcher.unchanged(first, layers), name
        setattr(owner, name, before)
        assert launcher.unchanged(first, layers), name
    bias._version = 1  # kernels read it anew
    assert launcher.unchanged(first, layers)
    layers[1]._parameters["bias"] = bias
    assert not launcher.unchanged(first, layers)
    del layers[1]._parameters
    assert not launcher.unchanged(first, layers)
    assert launcher.watch(1, places) is None  # there is no second
    assert launcher.watch(2, ((weight, "values", None, "no tensor"),)) is None
    assert launcher.watch(2, (3,)) is None
    with pytest.raises(TypeError, match="2 arguments"):
        launcher.unchanged(first)

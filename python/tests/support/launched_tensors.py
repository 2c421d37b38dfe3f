# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C module that launches, and tensors for it that need neither torch nor a GPU."""

import ctypes
import itertools

import pytest

from nm_sparse import direct
from nm_sparse.bindings import library as native
from nm_sparse.interop.operands import Operand

_addresses = itertools.count(1 << 20, 1 << 16)


class Tensor:
    """What the launcher asks of a tensor of torch, in memory of the emulator."""

    def __init__(self, operand, array, dtype):
        self.shape, self._strides = operand.sizes, operand.strides
        self._address, self.array, self.dtype = operand.address, array, dtype

    def stride(self):
        return self._strides

    def data_ptr(self):
        return self._address

    def get_device(self):
        return 0

    # Calls with bound arguments want these, too. No address is read.

    _version = 0

    @staticmethod
    def of(shape, dtype, strides=None):
        size, found = 1, []
        for one in reversed(shape):
            found.insert(0, size)
            size *= one
        strides = tuple(found) if strides is None else strides
        operand = Operand(0, next(_addresses), tuple(shape), strides, "", None)
        return Tensor(operand, None, dtype)

    def new_empty(self, *shape):
        return Tensor.of(shape, self.dtype)

    def contiguous(self):
        return Tensor.of(self.shape, self.dtype)


class Exchange:
    """What torch offers to read tensors by in C, for `Tensor` above: a capsule."""

    class View(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("device", ctypes.c_int32 * 2),
            ("rank", ctypes.c_int32),
            ("type", ctypes.c_uint8 * 4),
            ("sizes", ctypes.POINTER(ctypes.c_int64)),
            ("strides", ctypes.POINTER(ctypes.c_int64)),
            ("offset", ctypes.c_uint64),
        ]

    def __init__(self, stream, major=1):
        self.codes, self.asked, self._keep = {}, [], []
        describe = ctypes.PYFUNCTYPE(
            ctypes.c_int, ctypes.py_object, ctypes.POINTER(Exchange.View)
        )(self._describe)
        find = ctypes.PYFUNCTYPE(
            ctypes.c_int, ctypes.c_int32, ctypes.c_int32,
            ctypes.POINTER(ctypes.c_void_p),
        )(lambda kind, device, out: self._find(kind, device, out, stream))  # fmt: skip
        table = (ctypes.c_uint64 * 7)(major | 3 << 32)
        functions = [ctypes.cast(f, ctypes.c_void_p).value for f in (describe, find)]
        table[5], table[6] = functions
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p,
        ]  # fmt: skip
        self._name = b"dlpack_exchange_api"
        self._keep += [describe, find, table]
        self.capsule = make(ctypes.addressof(table), self._name, None)

    def _describe(self, tensor, out):
        self.asked.append(tensor)
        sizes, strides = (
            (ctypes.c_int64 * max(1, len(one)))(*one)
            for one in (tensor.shape, tensor.stride())
        )
        self._keep += [sizes, strides]
        view = out.contents
        # The offset and the data are parts of the address.
        view.data, view.offset = tensor.data_ptr() - 16, 16
        view.device[:] = [2, tensor.get_device()]
        view.rank = len(tensor.shape)
        view.type[:] = [self.codes.setdefault(tensor.dtype, len(self.codes)), 8, 1, 0]
        view.sizes, view.strides = sizes, strides
        return 0

    def _find(self, kind, device, out, stream):
        assert (kind, device) == (2, 0)
        out[0] = stream
        return 0


class OnHost(Tensor):
    """A tensor that is not on a GPU."""

    def get_device(self):
        return -1


@pytest.fixture
def launcher():
    module = native.launcher()
    if module is None:
        pytest.skip("the library has no launcher beside it")
    _forget(module)  # what other tests have set
    yield module
    _forget(module)


def _forget(module):
    module.use_exchange(None, None, None)
    direct._use_exchange.cache_clear()

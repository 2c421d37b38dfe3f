# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stand-in for cupy whose arrays lie in the memory of the emulator, so that calls on
"a GPU" run without one. `install` puts it in the place of cupy."""

import contextlib
import sys
import types

import numpy as np

from nm_sparse.bindings.library import library, use_emulator
from nm_sparse.runtime import emulator


class Memory:
    """Bytes in the memory of the emulator."""

    def __init__(self, size):
        self.ptr = library().mgpuMemAlloc(max(size, 1), None, False)

    def __del__(self):
        library().mgpuMemFree(self.ptr, None)


class Device(contextlib.nullcontext):
    id = 0

    def __init__(self, ordinal=0):
        super().__init__()


class ndarray:
    """A part of a Memory: `strides` are bytes, as in numpy."""

    def __init__(self, memory, address, shape, dtype, strides=None):
        self.memory, self.shape, self.dtype = memory, tuple(shape), np.dtype(dtype)
        self.strides = strides or np.empty(self.shape, self.dtype).strides
        self.data, self.device = types.SimpleNamespace(ptr=address), Device()
        self.__cuda_array_interface__ = {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "strides": self.strides,
            "data": (address, False),
            "version": 3,
        }

    @property
    def nbytes(self):
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def get(self):
        steps = sum((n - 1) * step for n, step in zip(self.shape, self.strides))
        flat = np.empty(0 if 0 in self.shape else steps + self.dtype.itemsize, np.uint8)
        if flat.size:
            library().mgpuMemcpy(flat.ctypes.data, self.data.ptr, flat.size, None)
        found = np.ndarray(self.shape, self.dtype, flat, strides=self.strides)
        return found.copy()

    def copy(self):
        return asarray(self.get())

    def view(self, dtype):
        flat = self.shape[:-1] + (self.shape[-1] * self.dtype.itemsize,)
        size = np.dtype(dtype).itemsize
        shape = flat[:-1] + (flat[-1] // size,)
        return ndarray(self.memory, self.data.ptr, shape, dtype)

    def __getitem__(self, part):
        """Of one dimension, or rows of several."""
        first, last, _ = part.indices(self.shape[0])
        address = self.data.ptr + first * self.strides[0]
        shape = (max(last - first, 0), *self.shape[1:])
        return ndarray(self.memory, address, shape, self.dtype, self.strides)

    @property
    def T(self):
        address, strides = self.data.ptr, self.strides[::-1]
        return ndarray(self.memory, address, self.shape[::-1], self.dtype, strides)


def empty(shape, dtype):
    shape = shape if isinstance(shape, tuple) else (shape,)
    memory = Memory(int(np.prod(shape)) * np.dtype(dtype).itemsize)
    return ndarray(memory, memory.ptr, shape, dtype)


def asarray(array):
    """A copy of an array of numpy."""
    array = np.ascontiguousarray(array)
    made = empty(array.shape, array.dtype)
    if array.nbytes:
        library().mgpuMemcpy(made.data.ptr, array.ctypes.data, array.nbytes, None)
    return made


def as_strided(array, shape, strides):
    return ndarray(array.memory, array.data.ptr, shape, array.dtype, strides)


def ascontiguousarray(array):
    is_contiguous = array.strides == np.empty(array.shape, array.dtype).strides
    return array if is_contiguous else array.copy()


def install(monkeypatch):
    """Has the package see this module as cupy, and run programs in the emulator."""
    stream = types.SimpleNamespace(ptr=0, synchronize=lambda: None)
    cupy = types.ModuleType("cupy")
    cupy.ndarray, cupy.empty, cupy.asarray = ndarray, empty, asarray
    cupy.asnumpy, cupy.ascontiguousarray = ndarray.get, ascontiguousarray
    cupy.lib = types.SimpleNamespace(
        stride_tricks=types.SimpleNamespace(as_strided=as_strided)
    )
    cupy.cuda = types.SimpleNamespace(
        Device=Device, ExternalStream=Device, get_current_stream=lambda: stream
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    use_emulator("sm_90a")


def emulated(program):
    """The program with code for the emulator in place of PTX."""
    program.ptx = emulator._image(program).decode()
    return program

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The packing of the C++ runtime library, called on numpy arrays.

Tests that use it are skipped without NM_BUILD_DIR, a build that holds
lib/libnm_sparse_runtime.so.
"""

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest
from strategies import bits_of

LIBRARY = Path(os.environ.get("NM_BUILD_DIR", ""), "lib", "libnm_sparse_runtime.so")
pytestmark = pytest.mark.skipif(
    "NM_BUILD_DIR" not in os.environ or not LIBRARY.exists(),
    reason="no build of the runtime library",
)

# NmsKind of Base/Kind.h
KINDS = {"f32": 0, "f16": 1, "bf16": 2, "i8": 3, "f8E4M3FN": 6, "f8E5M2": 7}


class PackLevel(ctypes.Structure):
    """NmsPackLevel of Packing/Packing.h."""

    _fields_ = [(name, ctypes.c_int64) for name in "n m bk bn".split()]


class PackSpec(ctypes.Structure):
    """NmsPackSpec of Packing/Packing.h."""

    _fields_ = [("levels", PackLevel * 2)] + [
        (name, ctypes.c_int64)
        for name in "levelCount batch k outputs strideB strideK strideN kind".split()
    ]


class Component(ctypes.Structure):
    """NmsComponent of Packing/Packing.h."""

    _fields_ = [("name", ctypes.c_char_p)] + [
        (name, ctypes.c_int64) for name in "batch rows columns elementBytes".split()
    ]


def spec_of(weight, e, dtype):
    """The runtime's view of a weight."""
    shape, rank = weight.shape, weight.ndim
    strides = [s // weight.itemsize for s in np.empty(shape, weight.dtype).strides]
    outputs_dim = 2 * rank - 3 - e.dim
    levels = (PackLevel * 2)(
        *(PackLevel(level.n, level.m, *level.block) for level in e.levels)
    )
    return ctypes.byref(
        PackSpec(
            levels, len(e.levels),
            shape[0] if rank == 3 else 1, shape[e.dim], shape[outputs_dim],
            strides[0] if rank == 3 else 0, strides[e.dim], strides[outputs_dim],
            KINDS[dtype],
        )
    )  # fmt: skip


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def pointers(components):
    arrays = list(components.values())
    return (ctypes.c_void_p * len(arrays))(*(pointer(a) for a in arrays))


def bitmap_spec(e, values, k, n, dtype):
    """The runtime's view of a weight of which `values` are those of either form."""
    levels = (PackLevel * 2)(PackLevel(e.n, e.m, *e.block))
    batch = values.shape[0] if e.dim == 1 else 1
    return ctypes.byref(PackSpec(levels, 1, batch, k, n, 0, 0, 0, KINDS[dtype]))


def assert_same_bits(got, expected):
    for one, other in zip(got, expected):
        assert np.array_equal(bits_of(one), bits_of(other))


def descriptors(*arrays):
    """A list of memref descriptors, whose data begin at element 3."""
    made = [
        (ctypes.c_int64 * (3 + 2 * a.ndim))(
            0, a.ctypes.data - 3 * a.itemsize, 3,
            *a.shape, *(stride // a.itemsize for stride in a.strides)
        )
        for a in arrays
    ]  # fmt: skip
    return (ctypes.c_void_p * len(made))(*(ctypes.addressof(d) for d in made)), made


def call_memrefs(runtime, name, rank, sources, targets, params):
    lists = [descriptors(*arrays) for arrays in (sources, targets)]
    numbers = (ctypes.c_int64 * len(params))(*params)
    getattr(runtime, name)(ctypes.c_int64(rank), *(d for d, _ in lists), numbers)

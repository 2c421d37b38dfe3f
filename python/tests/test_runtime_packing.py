# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The packing of the C++ runtime library equals the reference, bit for bit.

Skipped without NM_BUILD_DIR, a build that holds lib/libnm_sparse_runtime.so.
"""

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import bits_of, sparse_weights

from nm_sparse import Encoding, EncodingError, Packed, decode, encode

LIBRARY = Path(os.environ.get("NM_BUILD_DIR", ""), "lib", "libnm_sparse_runtime.so")
pytestmark = pytest.mark.skipif(
    "NM_BUILD_DIR" not in os.environ or not LIBRARY.exists(),
    reason="no build of the runtime library",
)

KINDS = {"f32": 0, "f16": 1, "bf16": 2, "i8": 3}  # NmsKind of Runtime/Base.h


class PackSpec(ctypes.Structure):
    """NmsPackSpec of Runtime/Packing.h."""

    _fields_ = [
        (name, ctypes.c_int64)
        for name in "n m bk bn batch k outputs strideB strideK strideN".split()
    ] + [("kind", ctypes.c_int32), ("indexBytes", ctypes.c_int32)]


@pytest.fixture(scope="module")
def runtime():
    library = ctypes.CDLL(str(LIBRARY))
    library.nmsLastError.restype = ctypes.c_char_p
    return library


def spec_of(packed):
    """The runtime's view of the weight that `packed` stands for."""
    e, shape = packed.encoding, packed.shape
    rank, itemsize = len(shape), packed.values.itemsize
    strides = [s // itemsize for s in np.empty(shape, packed.values.dtype).strides]
    outputs_dim = 2 * rank - 3 - e.dim
    return PackSpec(
        e.n, e.m, *e.block,
        shape[0] if rank == 3 else 1, shape[e.dim], shape[outputs_dim],
        strides[0] if rank == 3 else 0, strides[e.dim], strides[outputs_dim],
        KINDS[packed.dtype], packed.index.itemsize,
    )  # fmt: skip


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


@settings(max_examples=200, deadline=None)
@given(case=sparse_weights(types=tuple(KINDS)))
def test_pack_and_unpack_equal_the_reference(runtime, case):
    weight, encoding, dtype = case
    if weight.size == 0:
        return
    expected = encode(weight, encoding, dtype)
    spec = spec_of(expected)
    values, index = (np.full_like(a, 77) for a in (expected.values, expected.index))
    status = runtime.nmsPack(
        ctypes.byref(spec), pointer(weight), pointer(values), pointer(index)
    )
    assert status == 0, runtime.nmsLastError()
    assert np.array_equal(index, expected.index)
    assert np.array_equal(bits_of(values), bits_of(expected.values))

    back = np.full_like(weight, 77)
    status = runtime.nmsUnpack(
        ctypes.byref(spec), pointer(values), pointer(index), pointer(back)
    )
    assert status == 0, runtime.nmsLastError()
    assert np.array_equal(bits_of(back), bits_of(decode(expected)))


def test_both_reject_the_same_weight(runtime):
    encoding = Encoding(2, 4, (1, 2))
    weight = np.zeros((8, 6), np.float32)
    packed = encode(weight, encoding)
    weight[4:7, 5] = 1
    with pytest.raises(EncodingError, match="window 1 of panel 2"):
        encode(weight, encoding)
    status = runtime.nmsPack(
        ctypes.byref(spec_of(packed)),
        pointer(weight),
        pointer(packed.values),
        pointer(packed.index),
    )
    assert status != 0
    message = runtime.nmsLastError().decode()
    assert "window 1" in message and "panel 2" in message, message


def test_both_reject_the_same_positions(runtime):
    weight = np.zeros((8, 6), np.float32)
    packed = encode(weight, Encoding(2, 4, (1, 2)))
    packed.index[2:4, 1] = (3, 3)
    broken = Packed(packed.values, packed.index, packed.encoding, (8, 6), "f32")
    with pytest.raises(EncodingError, match="window 1, panel 1"):
        decode(broken)
    status = runtime.nmsUnpack(
        ctypes.byref(spec_of(packed)),
        pointer(packed.values),
        pointer(packed.index),
        pointer(weight),
    )
    assert status != 0 and b"window 1" in runtime.nmsLastError()

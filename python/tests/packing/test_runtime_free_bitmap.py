# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime's bitmaps of free elements equal the reference, bit for bit.

Skipped without NM_BUILD_DIR, as test_runtime_packing.
"""

import ctypes

import numpy as np
import pytest
import runtime_packing as packing
import test_free_bitmap as cases
from free_bitmap_oracle import pack_free_bitmap, unpack_free_bitmap
from hypothesis import given, settings
from runtime_packing import pointer, spec_of
from strategies import bits_of

from nm_sparse import Encoding, EncodingError

pytestmark = packing.pytestmark


@pytest.fixture(scope="module", autouse=True)
def sizes(runtime):
    runtime.nmsCountFreeBitmap.restype = ctypes.c_int64
    runtime.nmsRuntimeCountFreeBitmap.restype = ctypes.c_int64


def unpack(library, spec, values, bits, dense):
    """The message of nmsUnpackFreeBitmap, None without an error."""
    size = ctypes.c_int64(values.size)
    arrays = (pointer(array) for array in (values, bits, dense))
    status = library.nmsUnpackFreeBitmap(spec, size, *arrays)
    return library.nmsLastError().decode() if status else None


@settings(max_examples=100, deadline=None)
@given(case=cases.free_elements(types=tuple(packing.KINDS)))
def test_both_make_the_same_bitmaps(runtime, case):
    weight, encoding, dtype = case
    expected = pack_free_bitmap(encoding, weight)
    spec = spec_of(weight, encoding, dtype)
    assert runtime.nmsCountFreeBitmap(spec, pointer(weight)) == expected[0].size
    got = [np.full_like(array, 77) for array in expected]
    arrays = [pointer(array) for array in (weight, *got)]
    assert runtime.nmsPackFreeBitmap(spec, *arrays) == 0, runtime.nmsLastError()
    packing.assert_same_bits(got, expected)
    back = np.full_like(weight, 77)
    assert not unpack(runtime, spec, *got, back)
    assert np.array_equal(bits_of(back), bits_of(weight))


@pytest.mark.parametrize("damage, message", cases.DAMAGE)
def test_both_reject_the_same_bitmaps(runtime, damage, message):
    encoding, values, bits = cases.damaged_case()
    dense = np.zeros(cases.SHAPE, np.float16)
    spec = spec_of(dense, encoding, "f16")
    damage(values, bits)
    with pytest.raises(EncodingError, match=message) as info:
        unpack_free_bitmap(encoding, values, bits, cases.SHAPE)
    found = unpack(runtime, spec, values, bits, dense)
    if "value other than" in message:
        assert "has a value other than +0 that the weight has no place for" in found
    else:
        assert found == f"unpack free bitmap: {info.value}"


def test_stored_zeros_are_legal(runtime):
    encoding, values, bits = cases.damaged_case()
    dense = np.ones(cases.SHAPE, np.float16)
    zeros = np.zeros_like(values)
    assert not unpack(runtime, spec_of(dense, encoding, "f16"), zeros, bits, dense)
    assert not dense.any()


def test_sizes_are_checked(runtime):
    encoding, values, bits = cases.damaged_case()
    dense = np.zeros(cases.SHAPE, np.float16)
    spec = spec_of(dense, encoding, "f16")
    assert "but there are" in unpack(runtime, spec, values[:-256], bits, dense)
    more = np.concatenate([values, values[:256]])
    assert "but the bits name" in unpack(runtime, spec, more, bits, dense)
    found = unpack(runtime, spec, values[:-1], bits, dense)
    assert "they are pieces of 32 outputs, which have 256" in found
    for other, found in (
        (Encoding(2, 4, dim=1), "needs one free level, n = m = 0, got 2:4"),
        (Encoding.free(block=(1, 2), dim=1), "blocks of 1 x 2 have no bitmaps"),
    ):
        spec = spec_of(dense, other, "f16")
        assert runtime.nmsCountFreeBitmap(spec, pointer(dense)) == -1
        assert found in runtime.nmsLastError().decode()
        assert found in unpack(runtime, spec, values, bits, dense)


def call(library, name, rank, dense, components, params):
    (descriptor, *_), kept = packing.descriptors(dense)
    lists, also = packing.descriptors(*components)
    numbers = (ctypes.c_int64 * len(params))(*params)
    pointers = [ctypes.c_void_p(descriptor)] + [lists] * bool(components)
    result = getattr(library, name)(ctypes.c_int64(rank), *pointers, numbers)
    del kept, also
    return result


def test_memrefs(runtime, raised):
    encoding, *expected = cases.damaged_case()
    weight = unpack_free_bitmap(encoding, *expected, cases.SHAPE)
    params = [1, packing.KINDS["f16"], 1, 0, 0, 1, 1]
    size = call(runtime, "nmsRuntimeCountFreeBitmap", 3, weight, [], params)
    assert size == expected[0].size
    got = [np.full_like(array, 77) for array in expected]
    call(runtime, "nmsRuntimePackFreeBitmap", 3, weight, got, params)
    packing.assert_same_bits(got, expected)
    back = np.full_like(weight, 77)
    call(runtime, "nmsRuntimeUnpackFreeBitmap", 3, back, got, params)
    assert np.array_equal(bits_of(back), bits_of(weight))
    assert not raised
    call(
        runtime, "nmsRuntimePackFreeBitmap", 3, weight, [got[0][:-256], got[1]], params
    )
    call(
        runtime, "nmsRuntimeUnpackFreeBitmap", 3, back, [got[0], got[1][:, :1]], params
    )
    call(runtime, "nmsRuntimePackFreeBitmap", 3, weight, got, [0, *params[1:]])
    assert "has room for" in raised[0]
    assert "bits has other tiles than a weight of 300 x 40" in raised[1]
    assert "dim = 0 is not legal for rank 3" in raised[2]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The packing of the C++ runtime library equals the reference, bit for bit.

Skipped without NM_BUILD_DIR, a build that holds lib/libnm_sparse_runtime.so.
"""

import ctypes

import bitmap_oracle as bitmap
import hypothesis.strategies as st
import numpy as np
import pytest
import test_bitmap as cases
from hypothesis import given, settings
from runtime_packing import (
    KINDS,
    Component,
    assert_same_bits,
    bitmap_spec,
    call_memrefs,
    pointer,
    pointers,
    pytestmark,  # noqa: F401
    spec_of,
)
from strategies import bits_of, dense_weights, free_weights, sparse_weights

from nm_sparse import Encoding, EncodingError, Level, decode, encode
from nm_sparse.reference import prune


@settings(max_examples=300, deadline=None)
@given(case=sparse_weights(types=tuple(KINDS)))
def test_pack_and_unpack_equal_the_reference(runtime, case):
    weight, encoding, dtype = case
    if weight.size == 0:
        return
    expected = encode(weight, encoding, dtype).components
    spec = spec_of(weight, encoding, dtype)
    got = {name: np.full_like(a, 77) for name, a in expected.items()}
    status = runtime.nmsPack(spec, pointer(weight), pointers(got))
    assert status == 0, runtime.nmsLastError()
    for name, component in expected.items():
        assert np.array_equal(bits_of(got[name]), bits_of(component)), name

    back = np.full_like(weight, 77)
    status = runtime.nmsUnpack(spec, pointers(got), pointer(back))
    assert status == 0, runtime.nmsLastError()
    want = decode(encode(weight, encoding, dtype))
    assert np.array_equal(bits_of(back), bits_of(want))


@settings(max_examples=50, deadline=None)
@given(case=sparse_weights(types=tuple(KINDS)))
def test_components_equal_the_reference(runtime, case):
    weight, encoding, dtype = case
    expected = encode(weight, encoding, dtype).components
    spec = spec_of(weight, encoding, dtype)
    assert runtime.nmsComponentCount(spec) == len(expected)
    for number, (name, array) in enumerate(expected.items()):
        c = Component()
        number = ctypes.c_int64(number)
        assert runtime.nmsDescribeComponent(spec, number, ctypes.byref(c)) == 0
        assert c.name.decode() == name and c.elementBytes == array.itemsize
        lead = (c.batch,) if weight.ndim == 3 else ()
        assert (*lead, c.rows, c.columns) == array.shape


@settings(max_examples=300, deadline=None)
@given(case=dense_weights(types=tuple(KINDS)))
def test_prune_equals_the_reference(runtime, case):
    weight, encoding, dtype = case
    got = np.full_like(weight, 77)
    spec = spec_of(weight, encoding, dtype)
    assert runtime.nmsPrune(spec, pointer(weight), pointer(got)) == 0
    assert np.array_equal(bits_of(got), bits_of(prune(weight, encoding, dtype)))


@pytest.mark.parametrize("encoding, where", [
    (Encoding(2, 4, (1, 2)), "window 1 of panel 2 has 3"),
    (Encoding(3, 4, (1, 2), inner=Level(2, 3)), "window 1 of inner panel 5 has 3"),
])  # fmt: skip
def test_both_reject_the_same_weight(runtime, encoding, where):
    weight = np.zeros((8, 6), np.float32)
    packed = encode(weight, encoding)
    weight[4:7, 5] = 1
    with pytest.raises(EncodingError, match=where) as info:
        encode(weight, encoding)
    status = runtime.nmsPack(
        spec_of(weight, encoding, "f32"), pointer(weight), pointers(packed.components)
    )
    assert status != 0
    assert runtime.nmsLastError().decode() == f"pack: {info.value}"


@pytest.mark.parametrize("name", ["index", "inner_index"])
def test_both_reject_the_same_positions(runtime, name):
    encoding = Encoding(2, 4, (1, 2), inner=Level(2, 2))
    weight = np.zeros((8, 6), np.float32)
    packed = encode(weight, encoding)
    packed.components[name][2:4, 1] = (3, 3)
    with pytest.raises(EncodingError, match=f"{name} of window 1, panel 1"):
        decode(packed)
    status = runtime.nmsUnpack(
        spec_of(weight, encoding, "f32"), pointers(packed.components), pointer(weight)
    )
    assert status != 0
    assert f"unpack: {name}: window 1".encode() in runtime.nmsLastError()


@settings(max_examples=300, deadline=None)
@given(case=free_weights(types=tuple(KINDS)))
def test_free_weights_equal_the_reference(runtime, case):
    weight, encoding, dtype = case
    packed = encode(weight, encoding, dtype)
    spec, kept = spec_of(weight, encoding, dtype), len(packed.index)
    assert runtime.nmsCountFree(spec, pointer(weight)) == kept
    got = {name: np.full_like(a, 77) for name, a in packed.components.items()}
    arrays = [pointer(array) for array in got.values()]
    status = runtime.nmsPackFree(spec, pointer(weight), *arrays)
    assert status == 0, runtime.nmsLastError()
    for name, component in packed.components.items():
        assert np.array_equal(bits_of(got[name]), bits_of(component)), name
    back = np.full_like(weight, 77)
    size = ctypes.c_int64(kept)
    status = runtime.nmsUnpackFree(spec, size, *arrays, pointer(back))
    assert status == 0, runtime.nmsLastError()
    assert np.array_equal(bits_of(back), bits_of(weight))


@settings(max_examples=200, deadline=None)
@given(case=free_weights(types=tuple(KINDS)), percent=st.integers(0, 100))
def test_free_pruning_equals_the_reference(runtime, case, percent):
    weight, encoding, dtype = case
    got = np.full_like(weight, 77)
    spec, density = spec_of(weight, encoding, dtype), percent / 100
    share = ctypes.c_double(density)
    assert runtime.nmsPruneFree(spec, share, pointer(weight), pointer(got)) == 0
    expected = prune(weight, encoding, dtype, density)
    assert np.array_equal(bits_of(got), bits_of(expected))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"index": [0, 2, 1]}, "panel 0 has row 2 after 0"),
        ({"index": [1, 1, 1]}, "panel 0 has row 1 after 1"),
        ({"offsets": [0, 2, 2]}, "end with 2: legal is from 0 to the 3 blocks"),
        ({"offsets": [0, 4, 3]}, "offsets of panel 0 are 0 and 4"),
    ],
)
def test_free_lists_are_checked(runtime, change, message):
    weight = np.array([[1, 0], [2, 3]], np.float32)
    packed = encode(weight, Encoding.free())
    parts = dict(packed.components)
    for name, numbers in change.items():
        parts[name] = np.array(numbers, parts[name].dtype)
    spec = spec_of(weight, Encoding.free(), "f32")
    arrays = [pointer(array) for array in parts.values()]
    kept = ctypes.c_int64(3)
    assert runtime.nmsUnpackFree(spec, kept, *arrays, pointer(weight)) == 1
    assert message in runtime.nmsLastError().decode()


def test_free_entries_refuse_other_encodings(runtime):
    weight = np.ones((4, 4), np.float32)
    spec = spec_of(weight, Encoding(2, 4), "f32")
    assert runtime.nmsCountFree(spec, pointer(weight)) == -1
    assert b"needs one free level, n = m = 0, got 2:4" in runtime.nmsLastError()
    free = spec_of(weight, Encoding.free(), "f32")
    share = ctypes.c_double(1.5)
    assert runtime.nmsPruneFree(free, share, pointer(weight), pointer(weight)) == 1
    assert b"density 1.5" in runtime.nmsLastError()


def call_bitmap(runtime, name, spec, arrays):
    """The message of nmsPackBitmap or nmsUnpackBitmap, None without an error."""
    status = getattr(runtime, name)(spec, *(pointer(array) for array in arrays))
    return runtime.nmsLastError().decode() if status else None


def check_bitmaps(runtime, e, values, index, k, n, dtype):
    """Packs and unpacks. Returns the spec and the arrays of both forms."""
    spec = bitmap_spec(e, values, k, n, dtype)
    expected = bitmap.pack_bitmap(e, values, index, k, n)
    got = [np.full_like(array, 77) for array in expected]
    assert not call_bitmap(runtime, "nmsPackBitmap", spec, (values, index, *got))
    assert_same_bits(got, expected)
    back = [np.full_like(array, 77) for array in (values, index)]
    assert not call_bitmap(runtime, "nmsUnpackBitmap", spec, (*got, *back))
    assert_same_bits(back, (values, index))
    return spec, *got, *back


@settings(max_examples=300, deadline=None)
@given(case=cases.canonical_weights(tuple(KINDS)))
def test_bitmaps_equal_the_reference(runtime, case):
    e, values, _, k, n, _ = case
    spec, *_ = check_bitmaps(runtime, *case)
    sizes = (ctypes.c_int64 * 5)()
    assert runtime.nmsBitmapShape(spec, sizes) == 0
    assert tuple(sizes) == bitmap.bitmap_shape(e, k, n, values.itemsize)


def test_bitmaps_of_many_tiles(runtime, monkeypatch):
    """Enough for several threads; of several damaged tiles the first is named."""
    monkeypatch.setenv("NM_SPARSE_THREADS", "4")
    rng = np.random.default_rng(0)
    values = rng.integers(0, 1 << 16, (1024, 512), np.uint16)
    index = np.sort(rng.random((128, 16, 512)).argsort(axis=1)[:, :8], axis=1)
    index = index.astype(np.uint8).reshape(1024, 512)
    case = Encoding(8, 16), values, index, 2048, 512, "bf16"
    spec, *arrays = check_bitmaps(runtime, *case)
    for tile in range(62, 6, -1):
        arrays[1][2, tile, 5] ^= 1 << 31  # row 0 of output 69
        message = call_bitmap(runtime, "nmsUnpackBitmap", spec, arrays)
        assert f": window {2 * tile} of output 69 (batch 0) keeps " in message


@pytest.mark.parametrize("damage, message", cases.DAMAGE_TO_CANONICAL)
def test_both_reject_the_same_canonical_form(runtime, damage, message):
    (e, k, n), canonical = cases.PARTIAL, cases.canonical_to_damage()
    bitmaps = bitmap.pack_bitmap(e, *canonical, k, n)
    damage(*canonical)
    with pytest.raises(EncodingError, match=message) as info:
        bitmap.pack_bitmap(e, *canonical, k, n)
    spec = bitmap_spec(e, canonical[0], k, n, "f32")
    found = call_bitmap(runtime, "nmsPackBitmap", spec, (*canonical, *bitmaps))
    assert found == f"pack bitmap: {info.value}"


@pytest.mark.parametrize("weight, damage, message", cases.DAMAGE_TO_BITMAPS)
def test_both_reject_the_same_bitmaps(runtime, weight, damage, message):
    (e, k, n), bitmaps = weight, cases.bitmaps_to_damage(weight)
    canonical = bitmap.unpack_bitmap(e, *bitmaps, k, n)
    damage(*bitmaps)
    with pytest.raises(EncodingError, match=message) as info:
        bitmap.unpack_bitmap(e, *bitmaps, k, n)
    dtype = "f32" if weight is cases.PARTIAL else "f16"
    spec = bitmap_spec(e, bitmaps[0], k, n, dtype)
    found = call_bitmap(runtime, "nmsUnpackBitmap", spec, (*bitmaps, *canonical))
    assert found == f"unpack bitmap: {info.value}"


@pytest.mark.parametrize("name", ["nmsPackBitmap", "nmsUnpackBitmap"])
def test_bitmaps_refuse_other_encodings(runtime, name):
    weight, sizes = np.ones((4, 4), np.float32), (ctypes.c_int64 * 5)()
    nested = Encoding(2, 4, inner=Level(1, 2))
    for e, found in ((nested, "2:4 of 2"), (Encoding.free(), "0:0 of 1")):
        spec, message = spec_of(weight, e, "f32"), f"needs one n:m level, got {found}"
        assert message in call_bitmap(runtime, name, spec, [weight] * 4)
        assert runtime.nmsBitmapShape(spec, sizes) == 1
        assert f"bitmap shape: {message}" in runtime.nmsLastError().decode()
    arrays = [*[pointer(weight)] * 3, None]
    assert getattr(runtime, name)(spec_of(weight, Encoding(2, 4), "f32"), *arrays) == 1
    assert b"bitmap: an array is null" in runtime.nmsLastError()


def test_bitmaps_as_memrefs(runtime, raised):
    (e, k, n), (values, index) = cases.PARTIAL, cases.canonical_to_damage()
    params = [2, KINDS["f32"], 1, e.n, e.m, *e.block, k, n]
    for batch, rank in ((slice(None), 3), (0, 2)):
        canonical = [values[batch], index[batch]]
        expected = bitmap.pack_bitmap(e, *canonical, k, n)
        got = [np.full_like(array, 77) for array in expected]
        params[0] = rank - 1
        call_memrefs(runtime, "nmsRuntimePackBitmap", rank, canonical, got, params)
        assert not raised
        assert_same_bits(got, expected)
        back = [np.full_like(array, 77) for array in canonical]
        call_memrefs(runtime, "nmsRuntimeUnpackBitmap", rank, got, back, params)
        assert not raised
        assert_same_bits(back, canonical)


@pytest.mark.parametrize(
    "rank, change, message",
    [
        (4, {1: 0}, "rank 4 is not legal"),
        (3, {}, "index must be contiguous and row-major"),
        (3, {0: 0}, "dim = 0 is not legal for rank 3: use 1 or 2"),
        (3, {2: 2}, "2 levels have no bitmaps: legal is 1"),
        (3, {1: 4}, "cannot be packed"),
        (3, {4: 1}, "2:1 is not legal"),
        (3, {7: 25}, "values has shape 2 x 12 x 40, the encoding wants 2 x 16 x 40"),
        (3, {8: 41}, "values has shape 2 x 12 x 40, the encoding wants 2 x 12 x 60"),
        (3, {8: 33}, "values of the bitmap has shape 2 x 1 x 1 x 512, the encoding"),
    ],
)
def test_memrefs_of_bitmaps_are_checked(runtime, raised, rank, change, message):
    (e, k, n), canonical = cases.PARTIAL, list(cases.canonical_to_damage())
    bitmaps = bitmap.pack_bitmap(e, *canonical, k, n)
    params = [2, KINDS["f32"], 1, e.n, e.m, *e.block, k, n]
    if not change:
        canonical[1] = canonical[1][:, :, ::-1]
    for at, number in change.items():
        params[at] = number
    call_memrefs(runtime, "nmsRuntimePackBitmap", rank, canonical, bitmaps, params)
    call_memrefs(runtime, "nmsRuntimeUnpackBitmap", rank, bitmaps, canonical, params)
    packing, unpacking = raised
    assert packing.startswith("pack bitmap: ") and message in packing
    assert unpacking == f"un{packing}"

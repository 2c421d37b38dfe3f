# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bitmaps keep to docs/Encoding.md."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings
from strategies import TYPES, bits_of, random_bits

from nm_sparse import (
    BitmapShape,
    Encoding,
    EncodingError,
    Level,
    Packed,
    bitmap_shape,
    decode,
    index_dtype,
    pack_bitmap,
    packed_shapes,
    unpack_bitmap,
)

BLOCKS = [(1, 1), (1, 4), (1, 48), (1, 128), (2, 3), (3, 1), (4, 32), (16, 5)]


def random_canonical(rng, e, shape, dtype):
    """Random values and index of a weight [batch,] K, N, with +0 past its end."""
    shapes, (bk, bn) = packed_shapes(e, shape), e.block
    order = rng.random(
        (*shape[:-2], shapes["index"][-2] // e.n, e.m, shapes["index"][-1])
    )
    index = np.sort(order.argsort(axis=-2)[..., : e.n, :], axis=-2)
    window = np.arange(shapes["index"][-2] // e.n)[:, None, None]
    step = ((window * e.m + index) * bk).reshape(shapes["index"])
    step = (
        step.repeat(bk, axis=-2) + np.tile(np.arange(bk), shapes["index"][-2])[:, None]
    )
    values = random_bits(rng, shapes["values"], dtype)
    values[step.repeat(bn, axis=-1) >= shape[-2]] = 0
    values[..., shape[-1] :] = 0
    index = index.reshape(shapes["index"]).astype(index_dtype(e.m))
    return values.view(TYPES[dtype][1]), index


@st.composite
def canonical_weights(draw, types):
    """(encoding, values, index, K, N, dtype)"""
    m = draw(st.integers(1, 64) | st.sampled_from([4, 8, 16, 257]))
    n, block = draw(st.integers(1, m)), draw(st.sampled_from(BLOCKS))
    batch = draw(st.sampled_from([(), (), (1,), (3,)]))
    # Some tiles with one that is not whole; some blocks of outputs.
    k = draw(st.integers(0, 3 * max(m * block[0], 256)))
    outputs = draw(st.integers(0, 100))
    e, dtype = Encoding(n, m, block, dim=len(batch)), draw(st.sampled_from(types))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values, index = random_canonical(rng, e, (*batch, k, outputs), dtype)
    return e, values, index, k, outputs, dtype


@settings(max_examples=200, deadline=None)
@given(canonical_weights(("f32", "f16", "bf16", "i8")))
def test_round_trip_is_bit_exact(case):
    e, values, index, k, n, _ = case
    stored, bits = pack_bitmap(e, values, index, k, n)
    shape, lead = bitmap_shape(e, k, n, values.itemsize), values.shape[:-2]
    assert stored.dtype == values.dtype and bits.dtype == np.uint32
    assert stored.shape == (*lead, *shape[:2], shape.tile_values * 32)
    assert bits.shape == (*lead, *shape[:2], 32 * shape.words)
    back, positions = unpack_bitmap(e, stored, bits, k, n)
    assert back.dtype == values.dtype and np.array_equal(bits_of(back), bits_of(values))
    assert positions.dtype == index.dtype and np.array_equal(positions, index)


@settings(max_examples=60, deadline=None)
@given(canonical_weights(("f32", "f16", "i8")))
def test_bitmaps_follow_the_formula(case):
    """Each output is read as a kernel does: one bit after the other."""
    e, values, index, k, n, dtype = case
    if values.size == 0:
        return
    lead, size = values.shape[:-2], 16 // values.itemsize
    components = {"values": values, "index": index}
    dense = bits_of(decode(Packed(components, e, (*lead, k, n), dtype)))
    dense = dense.reshape(-1, k, n)
    stored, bits = pack_bitmap(e, values, index, k, n)
    s = bitmap_shape(e, k, n, values.itemsize)
    stored = bits_of(stored).reshape(len(dense), s.blocks, s.tiles, -1)
    bits = bits.reshape(len(dense), s.blocks, s.tiles, -1)
    window_rows, kept_rows = e.m * e.block[0], e.n * e.block[0]
    windows, columns = -(-k // window_rows), -(-n // e.block[1]) * e.block[1]
    found = np.zeros((len(dense), s.tiles * s.tile_rows, s.blocks * 32), dense.dtype)
    for b, block, t, o in np.ndindex(len(dense), s.blocks, s.tiles, 32):
        words = [int(w) for w in bits[b, block, t, o * s.words : (o + 1) * s.words]]
        j = 0
        for r in range(s.words * 32):
            if not words[r // 32] >> (31 - r % 32) & 1:
                continue
            assert r < s.tile_rows
            place = (j // size) * 32 * size + o * size + j % size
            found[b, t * s.tile_rows + r, block * 32 + o] = stored[b, block, t, place]
            window = t * s.tile_rows // window_rows + j // kept_rows
            assert r // window_rows == j // kept_rows
            if window >= windows or block * 32 + o >= columns:
                assert r % window_rows == j % kept_rows
            j += 1
        assert j == s.tile_values
    assert np.array_equal(found[:, :k, :n], dense)
    found[:, :k, :n] = 0
    assert not found.any()


@pytest.mark.parametrize(
    "e, itemsize, rows, kept, words",
    [
        (Encoding(8, 16), 2, 32, 16, 1),
        (Encoding(4, 16), 2, 32, 8, 1),
        (Encoding(2, 4), 4, 32, 16, 1),
        (Encoding(2, 4), 1, 32, 16, 1),
        (Encoding(1, 32), 2, 256, 8, 8),
        (Encoding(1, 32), 1, 512, 16, 16),
        (Encoding(4, 9), 2, 144, 64, 5),
        (Encoding(2, 4, (4, 32)), 2, 32, 16, 1),
        (Encoding(1, 1), 4, 32, 32, 1),
        (Encoding(16, 31), 2, 496, 256, 16),
    ],
)
def test_shape(e, itemsize, rows, kept, words):
    shape = bitmap_shape(e, 3 * rows + 1, 65, itemsize)
    assert shape == BitmapShape(3, 4, rows, kept, words)
    assert bitmap_shape(e, 3 * rows, 64, itemsize)[:2] == (2, 3)
    assert bitmap_shape(e, 0, 0, itemsize)[:2] == (0, 0)


@settings(max_examples=200, deadline=None)
@given(canonical_weights(("i8",)), st.sampled_from([1, 2, 4]))
@example((Encoding(3, 7), None, None, 100, 10, None), 2)
def test_tile_is_the_smallest_legal_one(case, itemsize):
    e, _, _, k, n, _ = case
    shape = bitmap_shape(e, k, n, itemsize)

    def legal(windows):
        rows, kept = windows * e.m * e.block[0], windows * e.n * e.block[0]
        bits = -(-rows // 32) * 32
        whole = kept * itemsize % 16 == 0 and rows % 16 == 0
        return whole and (bits - rows) * 8 <= rows

    windows = next(windows for windows in range(1, 1 << 16) if legal(windows))
    assert shape.tile_rows == windows * e.m * e.block[0]
    assert shape.tile_values == windows * e.n * e.block[0]
    assert shape.words * 32 >= shape.tile_rows > shape.words * 32 - 32


# A tile has 4 windows of 8 rows and holds all three of the weight; the last window and
# the last panel are partial, and output 31 is in that panel.
PARTIAL = Encoding(2, 4, (2, 20), dim=1), 21, 30
# Two tiles of 16 windows or 144 rows; outputs 40 to 63 are in no panel.
RAGGED = Encoding(4, 9), 154, 40


def canonical_to_damage():
    """Values and index of two batch entries of PARTIAL. Windows keep their blocks 0 and
    2, 1 and 2, 2 and 3: of the last ones, only row 20 is within the weight."""
    e, k, n = PARTIAL
    values, index = random_canonical(np.random.default_rng(0), e, (2, k, n), "f32")
    index[:] = np.array([0, 2, 1, 2, 2, 3])[:, None]
    values[:, 9:] = 0
    values[:, :9, :n] = 1
    return values, index


def bitmaps_to_damage(weight):
    """Bitmaps of PARTIAL or RAGGED."""
    e, k, n = weight
    if weight is PARTIAL:
        return pack_bitmap(e, *canonical_to_damage(), k, n)
    canonical = random_canonical(np.random.default_rng(0), e, (k, n), "f16")
    return pack_bitmap(e, *canonical, k, n)


def row(r):
    return np.uint32(1 << (31 - r % 32))


def flip(output, *rows):
    """Flips rows of an output in the last tile of the last batch entry."""

    def damage(_, bits):
        words = bits.shape[-1] // 32
        for r in rows:
            at = (*(-1,) * (bits.ndim - 1), output % 32 * words + r // 32)
            bits[at] ^= row(r)

    return damage


def store(name, at, number):
    def damage(values, second):
        (values if name == "values" else second)[at] = number

    return damage


# Damage to (values, index) or (values, bits), and what is said about it.
DAMAGE_TO_CANONICAL = [
    (store("index", (1, 3, 1), 4), "window 1 of panel 1 .batch 1. has position 4 in"),
    (store("index", (1, 3, 1), 1), "position 1 in slot 1 after 1: .* below m = 4"),
    (store("index", (0, 0, 0), 3), "window 0 of panel 0 .* in slot 1 after 3"),
    (store("values", (1, 9, 0), 1), "window 2 of panel 0 .batch 1. holds values"),
    (store("values", (0, 3, 30), -0.0), "window 0 of panel 1 .batch 0. holds values"),
    # Past the last block of outputs, so that a bitmap could not hold it.
    (store("values", (1, 7, 39), 1), "window 1 of panel 1 .batch 1. holds values"),
]


def value_at(j, output):
    return 1, 0, 0, j // 4 * 128 + output * 4 + j % 4


DAMAGE_TO_BITMAPS = [
    (PARTIAL, flip(7, 8), "window 1 of output 7 .batch 1. keeps 5 rows: legal is 4"),
    (PARTIAL, flip(20, 5), "window 0 of output 20 .batch 1. keeps 3 rows: legal is 4"),
    (PARTIAL, flip(7, 4, 6), "window 0 of output 7 .* other rows than output 0 of the"),
    (PARTIAL, flip(31, 4, 6), "window 0 of output 31 .* other rows than output 20 of"),
    (PARTIAL, flip(20, 4, 6), "window 0 of output 20 .* part of a block: .* of 2 rows"),
    (PARTIAL, flip(0, 1, 2), "window 0 of output 0 .* part of a block"),
    (PARTIAL, flip(3, 24), "window 3 of output 3 .batch 1. keeps 3 rows"),
    (PARTIAL, flip(3, 24, 28), "window 3 of output 3 .* past the end .* first 4 rows"),
    (
        PARTIAL,
        store("values", value_at(9, 2), 1),
        "window 2 of panel 0 .batch 1. holds",
    ),
    (
        PARTIAL,
        store("values", value_at(3, 31), 1),
        "window 0 of panel 1 .batch 1. holds",
    ),
    (
        PARTIAL,
        store("values", value_at(12, 31), -0.0),
        "window 3 of output 31 .batch 1. holds values",
    ),
    (RAGGED, flip(60, 0, 8), "window 16 of output 60 .* past the end .* first 4 rows"),
    (RAGGED, flip(33, 144), "tile 1 of output 33 .batch 0. has bits past its 144 rows"),
    (RAGGED, flip(33, 159), "tile 1 of output 33 .batch 0. has bits past its 144 rows"),
    (
        RAGGED,
        store("values", (1, 0, (7 * 32 + 8) * 8 + 7), 1),
        "window 15 of output 40 .batch 0. holds values",
    ),
]


@pytest.mark.parametrize("damage, message", DAMAGE_TO_CANONICAL)
def test_packing_rejects(damage, message):
    (e, *sizes), canonical = PARTIAL, canonical_to_damage()
    pack_bitmap(e, *canonical, *sizes)
    damage(*canonical)
    with pytest.raises(EncodingError, match=message):
        pack_bitmap(e, *canonical, *sizes)


@pytest.mark.parametrize("weight, damage, message", DAMAGE_TO_BITMAPS)
def test_unpacking_rejects(weight, damage, message):
    (e, *sizes), bitmaps = weight, bitmaps_to_damage(weight)
    unpack_bitmap(e, *bitmaps, *sizes)
    damage(*bitmaps)
    with pytest.raises(EncodingError, match=message):
        unpack_bitmap(e, *bitmaps, *sizes)


def test_encodings_without_bitmaps():
    with pytest.raises(EncodingError, match="needs one n:m level, got 0:0 of 1 levels"):
        bitmap_shape(Encoding.free(), 8, 8, 2)
    nested = Encoding(2, 4, inner=Level(1, 2))
    with pytest.raises(EncodingError, match="got 2:4 of 2 levels"):
        bitmap_shape(nested, 8, 8, 2)
    with pytest.raises(EncodingError, match="elements have 8 bytes: legal is 1, 2 or"):
        bitmap_shape(Encoding(2, 4), 8, 8, 8)


def test_shapes_and_types_are_checked():
    values, index = canonical_to_damage()
    stored, bits = bitmaps_to_damage(PARTIAL)
    e, *sizes = PARTIAL
    for bad in (values[:, 1:], values[None]):
        with pytest.raises(EncodingError, match="values has shape"):
            pack_bitmap(e, bad, index, *sizes)
    for bad in (index[:1], index[0], index[:, :, :1]):
        with pytest.raises(EncodingError, match="index has shape"):
            pack_bitmap(e, values, bad, *sizes)
    with pytest.raises(EncodingError, match="index is int64: m = 4 needs uint8"):
        pack_bitmap(e, values, index.astype(np.int64), *sizes)
    with pytest.raises(EncodingError, match="values has shape"):
        unpack_bitmap(e, stored[..., 1:], bits, *sizes)
    for bad in (bits[..., 1:], bits[0]):
        with pytest.raises(EncodingError, match="bits has shape"):
            unpack_bitmap(e, stored, bad, *sizes)
    with pytest.raises(EncodingError, match="bits is int32: legal is uint32"):
        unpack_bitmap(e, stored, bits.view(np.int32), *sizes)

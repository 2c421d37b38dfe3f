# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bitmaps of free elements keep to docs/Encoding.md."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import TYPES, bits_of

from nm_sparse import Encoding, EncodingError, pack_free_bitmap, unpack_free_bitmap

ALL_TYPES = ("f32", "f16", "bf16", "i8")


@st.composite
def free_elements(draw, types=ALL_TYPES):
    """(weight, encoding, dtype) of some tiles, with outputs that keep nothing and
    outputs that keep everything."""
    batch = draw(st.sampled_from([(), (), (1,), (3,)]))
    shape = (*batch, draw(st.integers(0, 600)), draw(st.integers(0, 70)))
    dim, dtype = len(batch) + draw(st.integers(0, 1)), draw(st.sampled_from(types))
    unsigned, numpy_type = TYPES[dtype]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bits = rng.integers(1, np.iinfo(unsigned).max, shape, unsigned, endpoint=True)
    bits[rng.random(shape) >= draw(st.sampled_from([0, 0.02, 0.5, 0.9, 1]))] = 0
    if shape[-1] > 3:
        bits[..., 1] = 0
        bits[..., 2] = 1
    return bits.view(numpy_type), Encoding.free(dim=dim), dtype


@settings(max_examples=100, deadline=None)
@given(free_elements())
def test_round_trip_is_bit_exact(case):
    weight, encoding, _ = case
    values, bits = pack_free_bitmap(encoding, weight)
    assert values.dtype == weight.dtype and bits.dtype == np.uint32
    assert bits.shape[:-3] == weight.shape[:-2]
    back = unpack_free_bitmap(encoding, values, bits, weight.shape)
    assert back.dtype == weight.dtype
    assert np.array_equal(bits_of(back), bits_of(weight))


@settings(max_examples=30, deadline=None)
@given(free_elements(types=("f16", "i8")))
def test_lanes_find_their_pieces(case):
    """Each output is read as a kernel does: with a vote for each piece."""
    weight, encoding, _ = case
    values, bits = pack_free_bitmap(encoding, weight)
    values, dense = bits_of(values), bits_of(weight)
    if encoding.dim == weight.ndim - 1:
        dense = dense.swapaxes(-1, -2)
    dense = dense.reshape(math.prod(dense.shape[:-2]), *dense.shape[-2:])
    found = np.zeros_like(dense)
    for place in np.ndindex(*bits.shape[:-1]):
        tile, (block, t) = bits[place], place[-2:]
        first, least, most, count = (int(word) for word in tile[256:])
        end = first + count
        rows = [
            [
                row
                for row in range(256)
                if tile[o * 8 + row // 32] >> (31 - row % 32) & 1
            ]
            for o in range(32)
        ]
        assert least == min(len(kept) // 4 for kept in rows)
        assert most == max(-(-len(kept) // 4) for kept in rows)
        for piece in range(most):
            for o in (o for o in range(32) if len(rows[o]) > 4 * piece):
                for i, value in enumerate(values[4 * first : 4 * first + 4]):
                    if 4 * piece + i < len(rows[o]):
                        row = 256 * t + rows[o][4 * piece + i]
                        found[
                            place[0] if len(place) > 2 else 0, row, 32 * block + o
                        ] = value
                    else:
                        assert value == 0
                first += 1
        assert first == end
    assert np.array_equal(found, dense)


SHAPE = (2, 300, 40)


def damaged_case():
    rng = np.random.default_rng(1)
    weight = rng.standard_normal(SHAPE).astype(np.float16)
    weight[rng.random(SHAPE) < 0.5] = 0
    return Encoding.free(dim=1), *pack_free_bitmap(Encoding.free(dim=1), weight)


def set_bit(bits, place, output, row):
    bits[place][output * 8 + row // 32] |= np.uint32(1 << (31 - row % 32))


def keep_past_the_end(values, bits):
    """Output 40 keeps a row: the header of its tile, and those behind, say so."""
    set_bit(bits, (0, 1, 0), 8, 3)
    bits[0, 1, 0, 259] += 1
    bits.reshape(-1, 260)[3:, 256] += 1


def pad(values, bits):
    lanes = np.unpackbits(bits[0, 0, 0, :256].astype(">u4").view(np.uint8))
    counts = lanes.reshape(32, 256).sum(axis=1)
    output = int(np.argmax(counts % 4 != 0))
    before = sum(
        int((counts > 4 * piece).sum()) for piece in range(counts[output] // 4)
    )
    rank = int((counts[:output] > counts[output] // 4 * 4).sum())
    values[(before + rank) * 4 + 3] = 1


DAMAGE = [
    (
        lambda values, bits: set_bit(bits, (1, 0, 1), 3, 44),
        "past the end|has the header",
    ),
    (lambda values, bits: np.put(bits, 256, 1), r"has the header 1, .*say 0, "),
    (lambda values, bits: np.put(bits, 257, 99), "has the header 0, 99"),
    (lambda values, bits: np.put(bits, 258, 99), "has the header 0, "),
    (lambda values, bits: np.put(bits, 259, 1), "has the header 0, .*, 1, but"),
    (keep_past_the_end, "tile 0 of output 40 .batch 0. keeps row 3, past the end"),
    (pad, "values other than .0"),
]


@pytest.mark.parametrize("damage, message", DAMAGE)
def test_decoder_rejects(damage, message):
    encoding, values, bits = damaged_case()
    unpack_free_bitmap(encoding, values, bits, SHAPE)
    damage(values, bits)
    with pytest.raises(EncodingError, match=message):
        unpack_free_bitmap(encoding, values, bits, SHAPE)


def test_decoder_accepts_zeros():
    """Values may change where they are stored, as in training."""
    encoding, values, bits = damaged_case()
    back = unpack_free_bitmap(encoding, values * 0, bits, SHAPE)
    assert not back.any()


def test_decoder_rejects_shapes():
    encoding, values, bits = damaged_case()
    with pytest.raises(EncodingError, match="bits is uint32 .*: legal is"):
        unpack_free_bitmap(encoding, values, bits[:, :1], SHAPE)
    with pytest.raises(EncodingError, match="bits is int32"):
        unpack_free_bitmap(encoding, values, bits.astype(np.int32), SHAPE)
    with pytest.raises(EncodingError, match="but the bits name"):
        unpack_free_bitmap(encoding, values[:-4], bits, SHAPE)
    for other in (Encoding(2, 4), Encoding.free(block=(1, 2))):
        with pytest.raises(EncodingError, match="needs free elements, got"):
            pack_free_bitmap(other, np.ones((4, 4), np.float16))
    with pytest.raises(EncodingError, match="dim = 0 is not legal for a weight"):
        pack_free_bitmap(Encoding.free(), np.ones((1, 4, 4), np.float16))


def test_half_of_the_elements_take_57_percent():
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((2048, 1024)).astype(np.float16)
    weight[np.abs(weight) < np.median(np.abs(weight))] = 0
    stored = sum(array.nbytes for array in pack_free_bitmap(Encoding.free(), weight))
    assert stored / weight.nbytes < 0.57

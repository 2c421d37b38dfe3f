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
def test_lanes_find_their_rows(case):
    """Each block is read as a kernel does: segment by segment, with a word of bits for
    each four values of an output."""
    weight, encoding, _ = case
    values, bits = pack_free_bitmap(encoding, weight)
    piece = 16 // weight.dtype.itemsize
    lines, dense = bits_of(values).reshape(-1, 32, piece), bits_of(weight)
    if encoding.dim == weight.ndim - 1:
        dense = dense.swapaxes(-1, -2)
    k = dense.shape[-2]
    dense = dense.reshape(math.prod(dense.shape[:-2]), *dense.shape[-2:])
    found = np.zeros((len(dense), k, 32 * bits.shape[-3]), dense.dtype)
    end = 0
    for block in np.ndindex(*bits.shape[:-2]) if k else ():
        words = bits[block].reshape(-1)
        trailer = words[256 * bits.shape[-2] :]
        first, whole, pieces, zero = (int(word) for word in trailer[:4])
        assert first == end and whole <= pieces and zero == 0
        end += pieces
        own = lines[first:end].swapaxes(0, 1).reshape(32, -1)
        for o in range(32):
            for number in range(own.shape[1]):
                if number % 64 == 0:
                    segment = trailer[4 + number // 64 * 9 :][:9]
                    row = int(segment[0] + (segment[1 + o // 4] >> o % 4 * 8 & 255))
                if number % 4 == 0:
                    # Behind the last row, they read the last words again.
                    line = min(row // 32, 8 * bits.shape[-2] - 1)
                    two = [int(words[(line + i) * 32 + o]) for i in (0, 1)]
                    mask = ((two[0] << 32 | two[1]) << row % 32 >> 32) % 2**32
                    start = row
                place = 32 - mask.bit_length()
                if start + place < k:
                    mask -= 1 << (31 - place)
                    found[
                        block[0] if len(block) > 1 else 0,
                        start + place,
                        32 * block[-1] + o,
                    ] = own[o, number]
                    row = start + place + 1
                else:
                    assert number >= whole * piece and own[o, number] == 0
                    row = k
    assert end == len(lines)
    assert np.array_equal(found[..., : dense.shape[-1]], dense)
    assert not found[..., dense.shape[-1] :].any()


@settings(max_examples=30, deadline=None)
@given(free_elements(types=("f16",)))
def test_outputs_stay_near_each_other(case):
    """The 64 rows in which all outputs are: what makes reads of activations fast."""
    weight, encoding, _ = case
    _, bits = pack_free_bitmap(encoding, weight)
    k = weight.shape[encoding.dim]
    for block in np.ndindex(*bits.shape[:-2]) if k else ():
        words = bits[block].reshape(-1)[: 256 * bits.shape[-2]].reshape(-1, 32)
        kept = np.unpackbits(words.T.astype(">u4").copy().view(np.uint8), axis=-1)
        rows = [np.flatnonzero(own) for own in kept.reshape(32, -1)]
        most = max(len(own) for own in rows)
        for number in range(most):
            at = [own[number] if number < len(own) else k - 1 for own in rows]
            assert max(at) - min(at) < 64


SHAPE = (2, 300, 40)


def damaged_case():
    rng = np.random.default_rng(1)
    weight = rng.standard_normal(SHAPE).astype(np.float16)
    weight[rng.random(SHAPE) < 0.5] = 0
    return Encoding.free(dim=1), *pack_free_bitmap(Encoding.free(dim=1), weight)


def set_bit(bits, place, output, row):
    bits[place].reshape(-1)[row // 32 * 32 + output] |= np.uint32(1 << (31 - row % 32))


def clear_bits(bits, place, output, begin, end):
    for row in range(begin, end):
        word = row // 32 * 32 + output
        bits[place].reshape(-1)[word] &= ~np.uint32(1 << (31 - row % 32))


def change(word, value):
    """Sets a word behind the bits of the second block, 512 words."""

    def damage(values, bits):
        bits[0, 1].reshape(-1)[512 + word] = value

    return damage


def put_value_of_no_output(values, bits):
    """Outputs 40 to 63 are not there."""
    first = int(bits[0, 1].reshape(-1)[512])
    values.reshape(-1, 32, 8)[first, 31, 0] = 1


def put_value_of_no_row(values, bits):
    first, whole, pieces = bits[0, 0].reshape(-1)[512:515]
    assert whole < pieces
    kept = np.unpackbits(bits[0, 0].reshape(-1)[:512].astype(">u4").view(np.uint8))
    counts = kept.reshape(16, 32, 32).sum(axis=(0, 2))
    values.reshape(-1, 32, 8)[first + pieces - 1, int(np.argmin(counts)), 7] = 1


DAMAGE = [
    (
        lambda values, bits: set_bit(bits, (1, 0), 3, 300),
        "output 3 .batch 1. keeps row 300, past the end of the weight",
    ),
    (
        lambda values, bits: clear_bits(bits, (1, 0), 1, 295, 300),
        "output 1 .batch 1. keeps row 29., as its last one, before others of its",
    ),
    (
        lambda values, bits: clear_bits(bits, (0, 1), 2, 100, 140),
        "output 34 .batch 0. keeps row 1.., more than 31 rows behind its last group",
    ),
    (change(0, 1), "word 0 behind the bits of block 1 .batch 0. is 1, but they say "),
    (change(1, 999), "word 1 behind .* is 999, but they say "),
    (change(2, 1), "word 2 behind .* is 1, but they say "),
    (change(3, 1), "word 3 behind .* is 1, but they say 0"),
    (change(4, 1), "word 4 behind .* is 1, but they say 0"),
    (change(14, 255), "word 14 behind .* is 255, but they say "),
    (change(79, 1), "word 79 behind .* is 1, but they say 0"),
    (put_value_of_no_output, "value other than .0 that the weight has no place for"),
    (put_value_of_no_row, "value other than .0 that the weight has no place for"),
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
        unpack_free_bitmap(encoding, values[:-256], bits, SHAPE)
    for other in (Encoding(2, 4), Encoding.free(block=(1, 2))):
        with pytest.raises(EncodingError, match="needs free elements, got"):
            pack_free_bitmap(other, np.ones((4, 4), np.float16))
    with pytest.raises(EncodingError, match="dim = 0 is not legal for a weight"):
        pack_free_bitmap(Encoding.free(), np.ones((1, 4, 4), np.float16))


@pytest.mark.parametrize("kept, most", [(25, 0.36), (50, 0.60), (75, 0.85)])
def test_share_of_the_dense_bytes(kept, most):
    """The words of segments that are not there are 0.9 % at most."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((2048, 512)).astype(np.float16)
    weight[rng.random(weight.shape) >= kept / 100] = 0
    stored = sum(array.nbytes for array in pack_free_bitmap(Encoding.free(), weight))
    assert stored / weight.nbytes < most

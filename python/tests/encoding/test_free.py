# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Free encodings keep to docs/Encoding.md."""

import math
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import bits_of, free_weights

from nm_sparse import Encoding, EncodingError, Level, Packed, decode, encode, prune


@settings(max_examples=300, deadline=None)
@given(free_weights())
def test_round_trip_is_bit_exact(case):
    weight, encoding, dtype = case
    packed = encode(weight, encoding, dtype)
    stored = Packed.from_tensors(packed.components, packed.metadata())
    assert stored.encoding == encoding
    back = decode(stored)
    assert back.shape == weight.shape and back.dtype == weight.dtype
    assert np.array_equal(bits_of(back), bits_of(weight))


@settings(max_examples=100, deadline=None)
@given(free_weights())
def test_packed_form_follows_the_formula(case):
    weight, e, dtype = case
    packed, (bk, bn) = encode(weight, e, dtype), e.block
    dense = bits_of(weight.swapaxes(-1, -2) if e.dim == weight.ndim - 1 else weight)
    dense = dense.reshape(math.prod(dense.shape[:-2]), *dense.shape[-2:])
    values, panels = bits_of(packed.values), -(-dense.shape[2] // bn)
    found = np.zeros_like(dense)
    for p in range(len(dense) * panels):
        for s in range(packed.offsets[p], packed.offsets[p + 1]):
            block = values[s * bk : (s + 1) * bk]
            assert block.any()
            for i in range(bk):
                for j in range(bn):
                    k, o = packed.index[s] * bk + i, p % panels * bn + j
                    if k < dense.shape[1] and o < dense.shape[2]:
                        found[p // panels, k, o] = block[i, j]
                    else:
                        assert block[i, j] == 0
    assert np.array_equal(found, dense)


@settings(max_examples=100, deadline=None)
@given(free_weights(), st.floats(0, 1))
def test_pruning_keeps_the_share(case, density):
    weight, e, dtype = case
    pruned = prune(weight, e, dtype, density)
    kept = encode(pruned, e, dtype)
    batch = weight.shape[0] if weight.ndim == 3 else 1
    k, outputs = weight.shape[e.dim], weight.shape[2 * weight.ndim - 3 - e.dim]
    total = batch * -(-k // e.block[0]) * -(-outputs // e.block[1])
    assert len(kept.index) <= int(np.floor(density * total + 0.5))
    again = prune(pruned, e, dtype, density)
    assert np.array_equal(bits_of(again), bits_of(pruned))


def test_pruning_takes_the_largest_of_the_whole_weight():
    weight = np.array([[5, 1, 1], [4, 1, 2], [3, 1, 2]], np.float32)
    pruned = prune(weight, Encoding.free(), density=5 / 9)
    assert pruned.tolist() == [[5, 0, 0], [4, 0, 2], [3, 0, 2]]
    # Among equals, the first panel wins, then the first row.
    pruned = prune(weight, Encoding.free(), density=6 / 9)
    assert pruned.tolist() == [[5, 1, 0], [4, 0, 2], [3, 0, 2]]


PACKED = encode(np.array([[1, 0], [2, 3]], np.float32), Encoding.free())


@pytest.mark.parametrize(
    "name, component, message",
    [
        ("index", [0, 2, 1], "index of panel 0 has 2 at 1"),
        ("index", [1, 1, 1], "index of panel 0 has 1 at 1"),
        ("index", [1, 0, 1], "strictly increasing in a panel and below 2"),
        ("offsets", [0, 2, 2], "end with 2: legal is from 0 to the 3 blocks"),
        ("offsets", [1, 2, 3], "offsets begin with 1"),
        ("offsets", [0, 3, 2], "not decreasing"),
        ("offsets", [0, 3], "shapes are"),
        ("values", [[1.0]], "shapes are"),
    ],
)
def test_decoder_rejects(name, component, message):
    array = np.array(component, PACKED.components[name].dtype)
    parts = {**PACKED.components, name: array}
    with pytest.raises(EncodingError, match=message):
        decode(replace(PACKED, components=parts))


def test_decoder_rejects_types_and_names():
    parts = dict(PACKED.components)
    wide = {**parts, "index": parts["index"].astype(np.uint16)}
    with pytest.raises(EncodingError, match="index is uint16: legal is uint8"):
        decode(replace(PACKED, components=wide))
    del parts["offsets"]
    with pytest.raises(EncodingError, match="legal are values, index, offsets"):
        decode(replace(PACKED, components=parts))


def test_what_is_not_free():
    weight = np.ones((4, 4), np.float32)
    with pytest.raises(EncodingError, match="no windows for an inner one"):
        Encoding(0, 0, inner=Level(1, 1))
    with pytest.raises(EncodingError, match="n:m is 0:4"):
        Encoding(0, 4)
    with pytest.raises(EncodingError, match="n:m is 0:0"):
        Level(0, 0)
    with pytest.raises(EncodingError, match="density is 0.5 for 2:4: legal"):
        prune(weight, Encoding(2, 4), density=0.5)
    with pytest.raises(EncodingError, match="density is None for 0:0: legal"):
        prune(weight, Encoding.free())
    with pytest.raises(EncodingError, match="density is 1.5"):
        prune(weight, Encoding.free(), density=1.5)
    text = PACKED.metadata().replace('"version": 3', '"version": 1')
    with pytest.raises(EncodingError, match="version 1 of 0:0, which has version 3"):
        Packed.from_tensors(PACKED.components, text)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference prunes as docs/Encoding.md says."""

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import TYPES, bits_of, dense_weights, sparse_weights

from nm_sparse import Encoding, Level, encode, prune, reference


@settings(max_examples=200, deadline=None)
@given(dense_weights())
def test_pruned_weights_keep_to_their_pattern(case):
    weight, encoding, dtype = case
    pruned = prune(weight, encoding, dtype)
    encode(pruned, encoding, dtype)
    stays = bits_of(pruned) != 0
    assert np.array_equal(bits_of(pruned)[stays], bits_of(weight)[stays])
    assert np.array_equal(bits_of(prune(pruned, encoding, dtype)), bits_of(pruned))


# The squares of the smallest f64 numbers are 0.
@settings(max_examples=100, deadline=None)
@given(sparse_weights(types=[t for t in TYPES if t != "f64"]))
def test_pruning_keeps_what_has_the_pattern(case):
    weight, encoding, dtype = case
    pruned = prune(weight, encoding, dtype)
    lost = bits_of(weight)[bits_of(pruned) != bits_of(weight)]
    # All that may go is the sign of a zero.
    sign = 0 if dtype == "i8" else 1 << (8 * weight.itemsize - 1)
    assert (lost == sign).all()


def test_prune_keeps_the_largest_blocks():
    encoding = Encoding(2, 4, (1, 2))
    weight = np.array([[1, 1], [-1, -1], [1, 0], [1, 1]], np.float32)
    assert prune(weight, encoding).tolist() == [[1, 1], [-1, -1], [0, 0], [0, 0]]
    weight = np.array([[1, 1], [-1, -1], [np.nan, 0], [1, 2]], np.float32)
    kept = prune(weight, encoding)
    assert kept[:2].tolist() == [[0, 0], [0, 0]] and kept[3].tolist() == [1, 2]
    assert np.isnan(kept[2, 0])


def test_prune_chooses_both_levels_together():
    encoding = Encoding(2, 4, (1, 2), inner=Level(1, 2))
    # The first row has the largest sum, but is the best of no output.
    weight = np.array([[4, 4], [5, 0], [0, 0], [0, -5]], np.float32)
    assert prune(weight, encoding).tolist() == [[0, 0], [5, 0], [0, 0], [0, -5]]


@pytest.mark.parametrize(
    "dtype, code, number",
    [
        ("bf16", 0xC040, -3),
        ("f8E5M2", 0x7B, 57344),
        ("f8E5M2", 0x01, 2.0**-16),
        ("f8E4M3FN", 0x7E, 448),
        ("f8E4M3FN", 0x87, -7 * 2.0**-9),
        ("f8E4M3FN", 0x38, 1),
        ("i8", 0x80, -128),
    ],
)
def test_magnitudes_of_narrow_types(dtype, code, number):
    unsigned = np.uint16 if dtype == "bf16" else np.uint8
    assert reference._numbers(np.array([code], unsigned), dtype)[0] == number

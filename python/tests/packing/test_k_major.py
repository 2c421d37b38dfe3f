# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""K-major values keep to docs/Encoding.md."""

import numpy as np
import pytest
import test_bitmap as cases
from hypothesis import given, settings
from strategies import TYPES, bits_of, sparse_weights

from nm_sparse import (
    Encoding,
    EncodingError,
    Level,
    encode,
    k_major_shape,
    pack_k_major,
    unpack_k_major,
)
from nm_sparse.packing.storage import store


def same(found, wanted):
    return (
        found.dtype == wanted.dtype
        and found.shape == wanted.shape
        and np.array_equal(bits_of(found), bits_of(wanted))
    )


@settings(max_examples=200, deadline=None)
@given(cases.canonical_weights(tuple(TYPES)))
def test_round_trip_is_bit_exact(case):
    e, values, index, k, n, _ = case
    stored, positions = pack_k_major(e, values, index, k, n)
    assert same(positions, index)
    back, positions = unpack_k_major(e, stored, positions, k, n)
    assert same(back, values) and same(positions, index)
    assert back.flags.c_contiguous and stored.flags.c_contiguous


@settings(max_examples=100, deadline=None)
@given(cases.canonical_weights(tuple(TYPES)))
def test_values_follow_the_formula(case):
    e, values, index, k, n, _ = case
    stored, _ = pack_k_major(e, values, index, k, n)
    *lead, rows, outputs = values.shape
    assert stored.shape == (*lead, *k_major_shape(e, k, n))
    assert stored.shape[-2] == outputs and stored.shape[-1] % 16 == 0
    assert 0 <= stored.shape[-1] - rows < 16
    found, wanted = bits_of(stored), bits_of(values)
    for output in range(outputs):
        assert np.array_equal(found[..., output, :rows], wanted[..., output])
    assert not found[..., rows:].any()


@pytest.mark.parametrize(
    "e, k, n, shape",
    [
        (Encoding(2, 4), 8, 3, (3, 16)),
        (Encoding(2, 4), 32, 3, (3, 16)),
        (Encoding(2, 4), 33, 3, (3, 32)),
        (Encoding(8, 32, (1, 128)), 4096, 4100, (4224, 1024)),
        (Encoding(1, 3, (5, 2)), 31, 3, (4, 16)),
        (Encoding(2, 4, dim=1), 0, 3, (3, 0)),
        (Encoding(2, 4), 8, 0, (0, 16)),
    ],
)
def test_shape(e, k, n, shape):
    assert k_major_shape(e, k, n) == shape


@settings(max_examples=100, deadline=None)
@given(sparse_weights())
def test_programs_are_given_them(case):
    """By the manifest, which names the layout."""
    weight, e, dtype = case
    packed = encode(weight, e, dtype)
    manifest = {
        "shape": list(weight.shape),
        "element_type": dtype,
        "encoding": e.mlir(),
        "packed_layout": 12,
        "components": [{"name": "index"}, {"name": "values"}],
    }
    if e.inner is not None:
        with pytest.raises(EncodingError, match="encoding is of two levels: legal"):
            store(packed, manifest)
        return
    index, values = store(packed, manifest)
    k, n = weight.shape[e.dim], weight.shape[2 * weight.ndim - 3 - e.dim]
    back, positions = unpack_k_major(e, values, index, k, n)
    assert same(back, packed.values) and same(positions, packed.index)


@pytest.mark.parametrize(
    "e, said",
    [
        (Encoding.free(), "free"),
        (Encoding(2, 4, inner=Level(1, 2)), "of two levels"),
        (Encoding(2, 4, order="shuffled"), "shuffled"),
    ],
)
def test_encodings_without_such_a_form(e, said):
    message = f"encoding is {said}: legal for K-major values is one n:m level with ord"
    values, index = np.zeros((4, 4), np.float32), np.zeros((4, 4), np.uint8)
    for call in (pack_k_major, unpack_k_major):
        with pytest.raises(EncodingError, match=message):
            call(e, values, index, 8, 4)
    with pytest.raises(EncodingError, match=message):
        k_major_shape(e, 8, 4)


PAST = "values beyond the last row or output are not .0"
# Damage to canonical (values, index), which K-major values may have as well.
DAMAGE = [
    (("index", (1, 3, 1), 4), r"window 1, panel 1, batch 1 is \[1, 4\]: legal is"),
    (("index", (1, 3, 1), 1), r"window 1, panel 1, batch 1 is \[1, 1\]: .* below 4"),
    (("index", (0, 0, 0), 3), r"index of window 0, panel 0, batch 0 is \[3, 2\]"),
    (("values", (1, 9, 0), 1), PAST),
    (("values", (0, 11, 29), 1), PAST),
    (("values", (0, 3, 30), -0.0), PAST),
    (("values", (1, 7, 39), 1), PAST),
]


@pytest.mark.parametrize("damage, message", DAMAGE)
def test_packing_rejects(damage, message):
    (e, *sizes), canonical = cases.PARTIAL, cases.canonical_to_damage()
    pack_k_major(e, *canonical, *sizes)
    cases.store(*damage)(*canonical)
    with pytest.raises(EncodingError, match=message):
        pack_k_major(e, *canonical, *sizes)


@pytest.mark.parametrize("damage, message", DAMAGE)
def test_unpacking_rejects(damage, message):
    (e, *sizes), canonical = cases.PARTIAL, cases.canonical_to_damage()
    values, index = pack_k_major(e, *canonical, *sizes)
    unpack_k_major(e, values, index, *sizes)
    name, at, number = damage
    at = (at[0], at[2], at[1]) if name == "values" else at
    cases.store(name, at, number)(values, index)
    with pytest.raises(EncodingError, match=message):
        unpack_k_major(e, values, index, *sizes)


@pytest.mark.parametrize("number", [1, -0.0])
def test_padding_is_checked(number):
    (e, *sizes), canonical = cases.PARTIAL, cases.canonical_to_damage()
    values, index = pack_k_major(e, *canonical, *sizes)
    values[1, 7, 12] = number
    message = r"values of output 7 are not \+0 behind the 12 rows that are kept"
    with pytest.raises(EncodingError, match=message):
        unpack_k_major(e, values, index, *sizes)


def test_shapes_and_types_are_checked():
    (e, *sizes), (values, index) = cases.PARTIAL, cases.canonical_to_damage()
    stored, _ = pack_k_major(e, values, index, *sizes)
    for call, good in ((pack_k_major, values), (unpack_k_major, stored)):
        for bad in (good[:, 1:], good[None], good.swapaxes(1, 2)):
            with pytest.raises(EncodingError, match="values has shape"):
                call(e, bad, index, *sizes)
        for bad in (index[:1], index[0], index[:, :, :1]):
            with pytest.raises(EncodingError, match="index has shape"):
                call(e, good, bad, *sizes)
        with pytest.raises(EncodingError, match="index is int64: m = 4 needs uint8"):
            call(e, good, index.astype(np.int64), *sizes)

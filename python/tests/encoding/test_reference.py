# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference encoder and decoder keep to docs/Encoding.md."""

import ast
import json
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import bits_of, sparse_weights

from nm_sparse import (
    Encoding,
    EncodingError,
    Level,
    Packed,
    decode,
    encode,
    index_dtype,
    packed_shapes,
    reference,
)


@settings(max_examples=300, deadline=None)
@given(sparse_weights())
def test_round_trip_is_bit_exact(case):
    weight, encoding, dtype = case
    packed = encode(weight, encoding, dtype)
    back = decode(packed)
    assert back.shape == weight.shape and back.dtype == weight.dtype
    assert np.array_equal(bits_of(back), bits_of(weight))
    shapes = {name: part.shape for name, part in packed.components.items()}
    assert shapes == packed_shapes(encoding, weight.shape)
    assert list(shapes) == ["values", "index", "inner_index"][: len(shapes)]
    assert len(shapes) == 1 + len(encoding.levels)
    assert packed.values.dtype == weight.dtype


@settings(max_examples=100, deadline=None)
@given(sparse_weights())
def test_encoding_is_canonical(case):
    weight, encoding, dtype = case
    packed = encode(weight, encoding, dtype)
    again = encode(decode(packed), encoding, dtype)
    for name, component in packed.components.items():
        assert np.array_equal(bits_of(again.components[name]), bits_of(component))


@settings(max_examples=100, deadline=None)
@given(sparse_weights(), st.data())
def test_packed_form_follows_the_formula(case, data):
    """Every element is where section 2 of the specification says."""
    weight, e, dtype = case
    if weight.size == 0:
        return
    packed = encode(weight, e, dtype)
    canonical = weight.swapaxes(-1, -2) if e.dim == weight.ndim - 1 else weight
    at = tuple(data.draw(st.integers(0, size - 1)) for size in canonical.shape)
    (row, o), lead = at[-2:], at[:-2]
    for level, index in zip(e.levels, list(packed.components.values())[1:]):
        if row is not None:
            row = stored_row(level, index[lead], row, o)
    found = 0 if row is None else bits_of(packed.values)[lead + (row, o)]
    assert bits_of(canonical.copy())[at] == found


def stored_row(level, index, row, o):
    """Where a level keeps element (row, o), or None."""
    n, m, (bk, bn) = level.n, level.m, level.block
    w, p, position = row // (m * bk), o // bn, row % (m * bk) // bk
    slots = index[w * n : (w + 1) * n, p].tolist()
    if position not in slots:
        return None
    return (w * n + slots.index(position)) * bk + row % bk


SPECIAL = np.array(
    [0x80000000, 0x7FC00001, 0xFFA00000, 0x7F800000, 0xFF800000, 1, 0x807FFFFF],
    np.uint32,
)  # -0, quiet and signalling NaN, both infinities, smallest and largest denormal


def test_special_values():
    bits = np.zeros((len(SPECIAL) * 4, 1), np.uint32)
    bits[np.arange(len(SPECIAL)) * 4 + 2, 0] = SPECIAL
    weight = bits.view(np.float32)
    packed = encode(weight, Encoding(1, 4))
    assert packed.index[:, 0].tolist() == [2] * len(SPECIAL)
    assert np.array_equal(bits_of(packed.values)[:, 0], SPECIAL)
    assert np.array_equal(bits_of(decode(packed)), bits)


@pytest.mark.parametrize("special", [0x7E01, 0xFC00, 0x0001])
def test_special_values_count_as_nonzero(special):
    weight = np.array([[special], [special], [0], [0]], np.uint16).view(np.float16)
    with pytest.raises(EncodingError, match="has 2 nonzero blocks"):
        encode(weight, Encoding(1, 4))


@pytest.mark.parametrize("n", range(1, 6))
def test_every_count_up_to_n(n):
    m = 5
    for mask in range(1 << m):
        live = [i for i in range(m) if mask >> i & 1]
        weight = np.zeros((m, 1), np.float32)
        weight[live, 0] = np.arange(1, len(live) + 1)
        if len(live) > n:
            with pytest.raises(EncodingError, match=f"has {len(live)} nonzero"):
                encode(weight, Encoding(n, m))
            continue
        fillers = [i for i in range(m) if i not in live][: n - len(live)]
        packed = encode(weight, Encoding(n, m))
        assert packed.index[:, 0].tolist() == sorted(live + fillers)
        assert np.array_equal(decode(packed), weight)


def test_negative_zero_takes_a_free_slot_before_fillers():
    weight = np.array([[0], [0], [-0.0], [-0.0], [7], [0]], np.float32)
    packed = encode(weight, Encoding(2, 6))
    assert packed.index[:, 0].tolist() == [2, 4]
    back = decode(packed)
    assert np.signbit(back[:, 0]).tolist() == [False, False, True] + [False] * 3
    assert back[4, 0] == 7


def test_negative_zero_without_a_slot_reads_as_zero():
    weight = np.array([[-0.0], [7]], np.float32)
    back = decode(encode(weight, Encoding(1, 2)))
    assert bits_of(back)[:, 0].tolist() == [0, bits_of(weight)[1, 0]]


def test_minus_128_is_not_a_negative_zero():
    weight = np.array([[-128], [-128]], np.int8)
    with pytest.raises(EncodingError, match="nonzero blocks"):
        encode(weight, Encoding(1, 2))


def test_fillers_may_lie_past_the_end():
    weight = np.array([[3.0], [4.0], [5.0]], np.float32)
    packed = encode(weight, Encoding(2, 2))
    assert packed.index[:, 0].tolist() == [0, 1, 0, 1]
    assert packed.values[:, 0].tolist() == [3, 4, 5, 0]


def test_violation_names_the_place():
    weight = np.zeros((2, 8, 6), np.float32)
    weight[1, 4:7, 5] = 1
    with pytest.raises(EncodingError) as info:
        encode(weight, Encoding(2, 4, (1, 2), dim=1))
    assert str(info.value) == (
        "weight is not 2:4: window 1 of panel 2 of batch 1 has 3 nonzero blocks, "
        "legal is at most 2; prune the weight or use a larger n"
    )


def test_inner_violation_names_the_place():
    encoding = Encoding(3, 5, (1, 2), inner=Level(2, 3))
    weight = np.zeros((10, 4), np.float32)
    weight[[5, 7, 9], 3] = 1
    with pytest.raises(EncodingError) as info:
        encode(weight, encoding)
    assert str(info.value) == (
        "weight is not 2:3 in what 3:5 keeps: window 1 of inner panel 3 has 3 "
        "nonzero blocks, legal is at most 2; prune the weight or use a larger n"
    )
    weight[6, 2] = 1
    with pytest.raises(EncodingError, match="not 3:5: window 1 of panel 1 has 4"):
        encode(weight, encoding)


def test_decoder_rejects_inner_positions():
    packed = encode(
        np.ones((3, 2), np.float32), Encoding(3, 3, (1, 2), inner=Level(3, 3))
    )
    inner = packed.inner_index.copy()
    inner[:, 1] = (0, 2, 1)
    with pytest.raises(EncodingError, match="inner_index of window 0, panel 1"):
        decode(change(packed, inner_index=inner))


@pytest.mark.parametrize(
    "m, name",
    [
        (1, "uint8"),
        (256, "uint8"),
        (257, "uint16"),
        (65536, "uint16"),
        (65537, "uint32"),
    ],
)
def test_index_type(m, name):
    assert index_dtype(m) == np.dtype(name)
    weight = np.zeros((m, 1), np.int8)
    weight[m - 1] = 1
    packed = encode(weight, Encoding(1, m))
    assert packed.index.dtype == np.dtype(name)
    assert packed.index[0, 0] == m - 1  # read as unsigned
    assert np.array_equal(decode(packed), weight)


def test_metadata_round_trip():
    weight = np.zeros((3, 10, 7), np.uint16)
    packed = encode(weight, Encoding(2, 4, (1, 2), dim=2), "bf16")
    again = Packed.from_tensors(packed.components, packed.metadata())
    assert again.encoding == packed.encoding
    assert (again.shape, again.dtype) == ((3, 10, 7), "bf16")
    assert json.loads(packed.metadata())["version"] == 1
    assert np.array_equal(decode(again), weight)


def test_metadata_of_two_levels():
    encoding = Encoding(4, 10, (1, 8), inner=Level(2, 4))
    packed = encode(np.zeros((17, 9), np.float32), encoding)
    again = Packed.from_tensors(packed.components, packed.metadata())
    assert again.encoding == encoding
    assert np.array_equal(decode(again), np.zeros((17, 9)))
    metadata = json.loads(packed.metadata())
    assert metadata["version"] == 2
    assert metadata["inner"] == {"n": 2, "m": 4, "block": [1, 1]}
    for change, message in [
        ({"inner": {"n": 2, "m": 3, "block": [1, 1]}}, "inner window has 3 rows"),
        ({"inner": {"n": 2, "block": [1, 1]}}, "inner lacks m"),
    ]:
        with pytest.raises(EncodingError, match=message):
            Packed.from_tensors(packed.components, json.dumps({**metadata, **change}))
    del metadata["inner"]
    with pytest.raises(EncodingError, match="metadata lacks inner"):
        Packed.from_tensors(packed.components, json.dumps(metadata))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"version": 4}, "version 4.*knows 'nm_sparse' versions 1, 2, 3, 7, 8 and 9"),
        ({"version": 3}, "version 3 of 2:4, which has version 1"),
        ({"version": 2}, "lacks inner"),
        ({"format": "other"}, "'other'"),
        ({"n": 5}, "n:m is 5:4"),
        ({"n": "2"}, "n is '2'"),
        ({"n": None}, "n is None"),
        ({"order": "sorted"}, "order is 'sorted': legal is 'identity' or 'shuffled'"),
        ({"block": [2]}, "block is"),
    ],
)
def test_bad_metadata(change, message):
    packed = encode(np.zeros((4, 1), np.float32), Encoding(2, 4))
    metadata = {**json.loads(packed.metadata()), **change}
    with pytest.raises(EncodingError, match=message):
        Packed.from_tensors(packed.components, json.dumps(metadata))


def test_metadata_unknown_keys_are_ignored_and_missing_ones_named():
    packed = encode(np.zeros((4, 1), np.float32), Encoding(2, 4))
    metadata = {**json.loads(packed.metadata()), "later": 1}
    Packed.from_tensors(packed.components, json.dumps(metadata))
    del metadata["shape"]
    with pytest.raises(EncodingError, match="lacks shape"):
        Packed.from_tensors(packed.components, json.dumps(metadata))
    with pytest.raises(EncodingError, match="not JSON"):
        Packed.from_tensors(packed.components, "{")
    with pytest.raises(EncodingError, match="not a JSON object"):
        Packed.from_tensors(packed.components, "[]")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((0, 4), "1 <= n <= m"),
        ((5, 4), "n:m is 5:4"),
        ((2, 4, (0, 1)), "at least 1"),
        ((2, 4, (1, 1), 3), "dim is 3"),
        ((2, 4, (1, 1), 0, "sorted"), "order is 'sorted'"),
        ((2, 4, (1, 1), 0, "identity", Level(1, 4)), "4 rows: legal are the 2"),
        ((2, 4, (1, 4), 0, "identity", Level(1, 2, (1, 3))), "a divisor of .1, 4."),
        ((2, 4, (2, 4), 0, "identity", Level(1, 1, (4, 1))), "a divisor of .2, 4."),
    ],
)
def test_bad_encodings(arguments, message):
    with pytest.raises(EncodingError, match=message):
        Encoding(*arguments)


def test_bad_weights():
    with pytest.raises(EncodingError, match="rank 1"):
        encode(np.zeros(4, np.float32), Encoding(2, 4))
    with pytest.raises(EncodingError, match="dim is 0: a weight of rank 3"):
        encode(np.zeros((1, 4, 4), np.float32), Encoding(2, 4))
    with pytest.raises(EncodingError, match="dim is 2: a weight of rank 2"):
        encode(np.zeros((4, 4), np.float32), Encoding(2, 4, dim=2))
    with pytest.raises(EncodingError, match="pass dtype"):
        encode(np.zeros((4, 4), np.uint16), Encoding(2, 4))
    with pytest.raises(EncodingError, match="bf16 needs uint16"):
        encode(np.zeros((4, 4), np.float32), Encoding(2, 4), "bf16")
    with pytest.raises(EncodingError, match="element type is 'i32'"):
        encode(np.zeros((4, 4), np.int32), Encoding(2, 4), "i32")


def change(packed, **components):
    """`packed` with other tensors."""
    return replace(packed, components={**packed.components, **components})


@pytest.fixture
def packed():
    weight = np.array([[1, 2, 0], [0, 0, 3], [4, 0, 0]], np.float32)
    return encode(weight, Encoding(2, 2, (1, 2)))


def test_decoder_accepts_other_fillers():
    weight = np.array([[0], [3], [0], [0]], np.float32)
    packed = encode(weight, Encoding(2, 4))
    assert packed.index[:, 0].tolist() == [0, 1]
    other = change(
        packed,
        values=np.array([[3], [0]], np.float32),
        index=np.array([[1], [3]], np.uint8),
    )
    assert np.array_equal(decode(other), weight)


@pytest.mark.parametrize("positions", [[1, 1], [1, 0], [0, 2], [0, 255]])
def test_decoder_rejects_positions(packed, positions):
    index = packed.index.copy()
    index[2:4, 1] = positions
    with pytest.raises(EncodingError, match="index of window 1, panel 1"):
        decode(change(packed, index=index))


def test_decoder_rejects_padding(packed):
    assert packed.values.shape == (4, 4)
    for at, value in (((3, 0), 1), ((0, 3), -0.0)):
        values = packed.values.copy()
        values[at] = value
        with pytest.raises(EncodingError, match="not \\+0"):
            decode(change(packed, values=values))


def test_decoder_rejects_shapes_and_types(packed):
    with pytest.raises(EncodingError, match="do not fit"):
        decode(change(packed, values=packed.values[:2]))
    with pytest.raises(EncodingError, match="do not fit"):
        decode(replace(packed, shape=(3, 9)))
    with pytest.raises(EncodingError, match="inner_index .* do not fit"):
        decode(change(packed, inner_index=packed.index))
    with pytest.raises(EncodingError, match="index is int8"):
        decode(change(packed, index=packed.index.astype(np.int8)))
    with pytest.raises(EncodingError, match="f16 needs float16"):
        decode(replace(packed, dtype="f16"))


PACKING = ("encode", "decode", "_pack_level", "_unpack_level", "_blocks")


def test_reference_stays_short():
    """encode and decode together: at most 95 lines beside their docstrings."""
    source = Path(reference.__file__).read_text(encoding="utf-8")
    lines = source.splitlines()
    count = 0
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name in PACKING:
            doc = node.body[0]
            body = (
                lines[node.lineno - 1 : doc.lineno - 1]
                + lines[doc.end_lineno :][: node.end_lineno - doc.end_lineno]
            )
            count += sum(1 for line in body if line.strip())
    assert 60 < count <= 95

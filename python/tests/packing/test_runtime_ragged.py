# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime's ragged panels equal the reference, bit for bit.

Skipped without NM_BUILD_DIR, as test_runtime_packing.
"""

import ctypes

import hypothesis.strategies as st
import numpy as np
import pytest
import runtime_packing as packing
from hypothesis import given, settings
from ragged_oracle import pack_ragged
from runtime_packing import pointer, spec_of
from strategies import bits_of, free_weights

from nm_sparse import Encoding, EncodingError, encode

pytestmark = packing.pytestmark


@pytest.fixture(scope="module", autouse=True)
def sizes(runtime):
    runtime.nmsCountRagged.restype = ctypes.c_int64


def count(library, spec, step, dense):
    return library.nmsCountRagged(spec, ctypes.c_int64(step), pointer(dense))


def unpack(library, spec, step, parts, dense):
    """The message of nmsUnpackRagged, None without an error."""
    numbers = [ctypes.c_int64(n) for n in (step, len(parts["values"]))]
    arrays = [pointer(parts[name]) for name in ("values", "index", "panels")]
    status = library.nmsUnpackRagged(spec, *numbers, *arrays, pointer(dense))
    return library.nmsLastError().decode() if status else None


@settings(max_examples=150, deadline=None)
@given(case=free_weights(types=tuple(packing.KINDS)), step=st.integers(1, 20))
def test_both_make_the_same_panels(runtime, case, step):
    weight, encoding, dtype = case
    expected = pack_ragged(encode(weight, encoding, dtype), step)
    spec = spec_of(weight, encoding, dtype)
    assert count(runtime, spec, step, weight) == len(expected["values"])
    got = {name: np.full_like(part, 77) for name, part in expected.items()}
    arrays = [pointer(got[name]) for name in ("values", "index", "panels")]
    status = runtime.nmsPackRagged(spec, ctypes.c_int64(step), pointer(weight), *arrays)
    assert status == 0, runtime.nmsLastError()
    packing.assert_same_bits(list(got.values()), list(expected.values()))
    back = np.full_like(weight, 77)
    assert not unpack(runtime, spec, step, got, back)
    assert np.array_equal(bits_of(back), bits_of(weight))


ENCODING, STEP = Encoding.free(block=(2, 4)), 4


def example():
    """Four panels of 4, 0, 10 and 8 rows of a weight of 10 x 14: the last one has
    two outputs."""
    weight = np.zeros((10, 14), np.float16)
    weight[2:6, 0] = 1
    weight[::2, 9] = 2
    weight[:8, 13] = 3
    parts = pack_ragged(encode(weight, ENCODING), STEP)
    table = [[0, 12, 2, 1], [12, 4, 0, 2], [16, 0, 1, 0], [16, 8, 3, 3]]
    assert parts["panels"].tolist() == table
    return weight, parts


def change(name, place, value):
    def damage(parts):
        parts[name][place] = value

    return damage


def last_first(parts):
    parts["panels"][[0, 3], 2] = parts["panels"][[3, 0], 2]
    parts["panels"][[2, 3], 3] = parts["panels"][[3, 2], 3]


DAMAGE = [
    (change("panels", (0, 0), 4), "row 0 has 12 rows from 4 on"),
    (change("panels", (0, 1), 10), "row 0 has 10 rows from 0 on"),
    (change("panels", (0, 1), 400), "row 0 has 400 rows from 0 on"),
    (change("panels", (2, 1), 4), "row 3 has 8 rows from 16 on"),
    (change("panels", (1, 1), 0), "row 2 has 0 rows from 16 on"),
    (last_first, "row 0 is of panel 3: the last panel has fewer outputs"),
    (change("panels", (0, 2), 7), "row 0 is of panel 7"),
    (change("panels", (0, 2), 1), "row 0 is of panel 1, whose place is another"),
    (change("panels", (1, 3), 1), "row 2 is of panel 1, whose place is another"),
    (change("index", (0, 0), 2), "panel 2 has row 2 after 2"),
    (change("index", (1, 0), 3), "panel 2 has row 3 after 0"),
    (change("index", (4, 0), 12), "panel 2 has row 12 after 6"),
    (change("index", (2, 0), 10), "panel 2 has row 6 after 10"),
    (change("values", (10, 1), 1), "panel 2 holds values other than +0"),
]


@pytest.mark.parametrize("damage, message", DAMAGE)
def test_damaged_panels_are_rejected(runtime, damage, message):
    weight, parts = example()
    spec = spec_of(weight, ENCODING, "f16")
    assert not unpack(runtime, spec, STEP, parts, np.empty_like(weight))
    damage(parts)
    assert message in unpack(runtime, spec, STEP, parts, np.empty_like(weight))


def test_panels_are_filled_up_to_something(runtime):
    weight, _ = example()
    spec = spec_of(weight, ENCODING, "f16")
    for step in (0, -3):
        assert count(runtime, spec, step, weight) == -1
        message = runtime.nmsLastError().decode()
        assert f"filled up to a multiple of {step} rows" in message
        with pytest.raises(EncodingError, match="at least 1 row"):
            pack_ragged(encode(weight, ENCODING), step)


def test_blocks_are_kept_in_parts_that_fill_steps():
    """Of two rows, of which the second is zero, a step of three keeps the first."""
    weight = np.zeros((4, 1), np.float32)
    weight[2] = 5
    packed = encode(weight, Encoding.free(block=(2, 1)))
    assert pack_ragged(packed, 3)["values"].ravel().tolist() == [5, 0, 0]
    assert pack_ragged(packed, 3)["index"].ravel().tolist() == [2, 4, 4]
    assert pack_ragged(packed, 4)["index"].ravel().tolist() == [2, 4]


def test_other_patterns_have_no_ragged_panels(runtime):
    weight = np.zeros((8, 8), np.float16)
    encoding = Encoding(2, 4)
    assert count(runtime, spec_of(weight, encoding, "f16"), 64, weight) == -1
    assert "needs one free level" in runtime.nmsLastError().decode()
    with pytest.raises(EncodingError, match="legal is a free encoding"):
        pack_ragged(encode(weight, encoding))

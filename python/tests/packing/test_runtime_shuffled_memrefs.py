# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shuffled weights in compiled programs, and lists that come from files.

Skipped without NM_BUILD_DIR, as test_runtime_packing.
"""

import ctypes

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from ragged_oracle import STEP, pack_ragged
from runtime_packing import (
    KINDS,
    descriptors,
    pointer,
    pytestmark,  # noqa: F401
    spec_of,
)
from search_oracle import prune
from strategies import bits_of, free_weights
from test_runtime_shuffled import NUMBERS, TYPES, shuffled
from test_shuffled import put_back

from nm_sparse import (
    Encoding,
    EncodingError,
    Packed,
    decode,
    encode,
)

PARAMS = [1, KINDS["f32"], 1, 2, 4, 1, 2]  # dim, kind, levels; n, m, bk, bn


def as_memrefs(library, name, weight, arrays, extra=()):
    """Calls an entry of compiled code that takes a weight and components."""
    dense, keep = descriptors(weight)
    listed, kept = descriptors(*arrays)
    numbers = (ctypes.c_int64 * len(PARAMS))(*PARAMS)
    rank = ctypes.c_int64(2)
    getattr(library, name)(rank, ctypes.c_void_p(dense[0]), listed, numbers, *extra)
    del keep, kept


def test_shuffled_weights_as_memrefs(runtime, raised):
    e = Encoding(2, 4, (1, 2), 1)
    ordered = prune(np.random.default_rng(0).standard_normal((5, 9), np.float32), e)
    perm = np.array([3, 0, 4, 1, 2], np.uint32)
    weight = put_back(ordered, e, perm)
    expected = encode(weight, shuffled(e)).components
    got = [np.full_like(array, 77) for array in expected.values()]
    as_memrefs(runtime, "nmsRuntimePackShuffled", weight, got)
    assert not raised
    for array, component in zip(got, expected.values()):
        assert np.array_equal(bits_of(array), bits_of(component))
    back = np.full_like(weight, 77)
    as_memrefs(runtime, "nmsRuntimeUnpackShuffled", back, got)
    assert not raised
    assert np.array_equal(bits_of(back), bits_of(weight))
    got[2][1] = got[2][0]
    as_memrefs(runtime, "nmsRuntimeUnpackShuffled", back, got)
    assert raised.pop().startswith("unpack: perm of batch 0 has")
    for wrong, message in (
        (got[2][:4], "perm has shape 1 x 4 (batch, outputs), the weight wants 1 x 5"),
        (got[2][::-1], "perm must be contiguous and row-major: copy it first"),
    ):
        for name in ("Pack", "Unpack"):
            arrays = [*got[:2], wrong]
            as_memrefs(runtime, f"nmsRuntime{name}Shuffled", back, arrays)
            assert raised.pop() == f"{name.lower()}: {message}"


def test_the_permutation_must_be_there(runtime, raised):
    weight = np.zeros((5, 9), np.float32)
    parts = encode(weight, Encoding(2, 4, (1, 2), 1, "shuffled")).components
    dense, keep = descriptors(weight)
    listed, kept = descriptors(*parts.values())
    listed[2] = None
    numbers = (ctypes.c_int64 * len(PARAMS))(*PARAMS)
    for name in ("Pack", "Unpack"):
        call = getattr(runtime, f"nmsRuntime{name}Shuffled")
        call(ctypes.c_int64(2), ctypes.c_void_p(dense[0]), listed, numbers)
        assert raised.pop() == f"{name.lower()}: the descriptor of perm is null"
    del keep, kept


@pytest.mark.parametrize("is_free", [False, True])
def test_pruning_of_memrefs(runtime, raised, is_free):
    """Into an array of other strides, and by the same search."""
    e = Encoding.free((1, 2), 1) if is_free else Encoding(2, 4, (1, 2), 1)
    density = 0.5 if is_free else None
    weight = np.random.default_rng(1).standard_normal((6, 8), np.float32)
    for name, encoding in (("Shuffled", shuffled(e)), ("Free", e)):
        if name == "Free" and not is_free:
            continue
        got = np.full((8, 6), 77, np.float32).T
        (one, other), keep = descriptors(weight, got)
        levels = [0, 0, 1, 2] if is_free else PARAMS[3:]
        numbers = (ctypes.c_int64 * 7)(*PARAMS[:3], *levels)
        getattr(runtime, f"nmsRuntimePrune{name}")(
            ctypes.c_int64(2), ctypes.c_void_p(one), ctypes.c_void_p(other), numbers,
            ctypes.c_double(density or 0),
        )  # fmt: skip
        assert not raised
        expected = prune(weight, encoding, None, density)
        assert np.array_equal(got, expected)
        del keep


@settings(max_examples=100, deadline=None)
@given(case=free_weights(types=TYPES))
def test_ragged_panels_of_shuffled_weights(runtime, case):
    """In the order that an encoder finds, for compiled programs."""
    weight, e, dtype = case
    expected = pack_ragged(encode(weight, shuffled(e), dtype))
    numbers = [e.dim, KINDS[dtype], 1, 0, 0, *e.block, STEP]
    params = (ctypes.c_int64 * len(numbers))(*numbers)
    rank, (at, keep) = ctypes.c_int64(weight.ndim), descriptors(weight)
    dense = ctypes.c_void_p(at[0])
    messages = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
    handler = kind(lambda text, _: messages.append(text.decode()))
    runtime.nmsSetErrorHandler(handler, None)
    runtime.nmsRuntimeCountRaggedShuffled.restype = ctypes.c_int64
    size = runtime.nmsRuntimeCountRaggedShuffled(rank, dense, params)
    assert size == len(expected["values"])
    got = {name: np.full_like(part, 77) for name, part in expected.items()}
    listed, kept = descriptors(*got.values())
    runtime.nmsRuntimePackRaggedShuffled(rank, dense, listed, params)
    for name, part in expected.items():
        assert np.array_equal(bits_of(got[name]), bits_of(part)), name
    back = np.full_like(weight, 77)
    to, hold = descriptors(back)
    dense = ctypes.c_void_p(to[0])
    runtime.nmsRuntimeUnpackRaggedShuffled(rank, dense, listed, params)
    assert not messages
    assert np.array_equal(bits_of(back), bits_of(weight))
    if got["perm"].size:
        got["perm"].flat[0] = got["perm"].shape[-1]
        runtime.nmsRuntimeUnpackRaggedShuffled(rank, dense, listed, params)
        assert messages[0].startswith("unpack ragged panels: perm of batch 0 has")
    runtime.nmsSetErrorHandler(None, None)
    del keep, kept, hold


@settings(max_examples=300, deadline=None)
@given(
    offsets=st.lists(NUMBERS, min_size=4, max_size=4)
    | st.lists(st.integers(0, 5), min_size=2, max_size=2).map(
        lambda inner: [0, *sorted(inner), 5]
    ),
    index=st.lists(st.integers(0, 4), min_size=5, max_size=5),
)
def test_lists_of_files_are_checked(runtime, offsets, index):
    """Both accept the same offsets and rows, and touch nothing else."""
    weight, e = np.zeros((4, 6), np.float32), Encoding.free((1, 2))
    parts = {
        "values": np.ones((5, 2), np.float32),
        "index": np.array(index, np.uint8),
        "offsets": np.array(offsets, np.uint32),
    }
    got, message = np.full_like(weight, 77), None
    try:
        expected = decode(Packed(parts, e, weight.shape, "f32"))
    except EncodingError as error:
        message = str(error)
    arrays = [pointer(array) for array in parts.values()]
    spec, kept = spec_of(weight, e, "f32"), ctypes.c_int64(5)
    status = runtime.nmsUnpackFree(spec, kept, *arrays, pointer(got))
    assert (status != 0) == (message is not None)
    if message is None:
        assert np.array_equal(got, expected)
    else:
        assert message.split()[0] in ("offsets", "index")
        assert message.split()[0] in runtime.nmsLastError().decode()
        assert (got == 77).all()


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(
        st.lists(NUMBERS, min_size=4, max_size=4) | st.permutations(range(4)).map(list),
        min_size=1,
        max_size=3,
    )
)
def test_permutations_of_files_are_checked(runtime, rows):
    """Before anything runs, a program names the argument and the place."""
    messages = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
    handler = kind(lambda text, _: messages.append(text.decode()))
    runtime.nmsSetErrorHandler(handler, None)
    listed, keep = descriptors(np.array(rows, np.uint32))
    runtime.nmsRuntimeCheckPerm(
        ctypes.c_int64(2), ctypes.c_void_p(listed[0]), (ctypes.c_int64 * 1)(7)
    )
    runtime.nmsSetErrorHandler(None, None)
    del keep
    bad = [entry for entry, row in enumerate(rows) if sorted(row) != [0, 1, 2, 3]]
    if not bad:
        assert not messages
        return
    assert messages[0].startswith(
        f"check perm: argument 7: perm of batch {bad[0]} has "
    )
    assert "legal is each number below 4 once; it is damaged" in messages[0]


def test_what_is_no_permutation_at_all(runtime, raised):
    numbers = (ctypes.c_int64 * 1)(2)
    listed, keep = descriptors(np.arange(8, dtype=np.uint32)[::2])
    at = ctypes.c_void_p(listed[0])
    runtime.nmsRuntimeCheckPerm(ctypes.c_int64(1), at, numbers)
    runtime.nmsRuntimeCheckPerm(ctypes.c_int64(3), at, numbers)
    runtime.nmsRuntimeCheckPerm(ctypes.c_int64(1), None, numbers)
    del keep
    assert raised == [
        "check perm: argument 2 must be contiguous and row-major: copy it first",
        "check perm: rank 3 is not legal: a permutation has rank 1, or 2 with a "
        "leading batch dimension",
        "check perm: the descriptor or the parameters are null",
    ]

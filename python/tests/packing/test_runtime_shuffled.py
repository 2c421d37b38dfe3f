# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Orders of outputs in the C++ runtime library are those of the reference.

Skipped without NM_BUILD_DIR, a build that holds lib/libnm_sparse_runtime.so.
"""

import ctypes
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from runtime_packing import (
    KINDS,
    PackSpec,
    pointer,
    pointers,
    pytestmark,  # noqa: F401
    spec_of,
)
from search_oracle import READ_LIMIT, prune, search_order
from strategies import bits_of, dense_weights, free_weights, sparse_weights
from test_shuffled import LAYERS, orders, planted, put_back

from nm_sparse import Encoding, EncodingError, decode, encode

PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
TYPES = tuple(KINDS)
SEEDS = st.integers(0, 1 << 30)
NUMBERS = st.integers(0, (1 << 32) - 1) | st.integers(0, 3)


def shuffled(e):
    return replace(e, order="shuffled")


def perm_like(weight, e):
    """A place for the order of a weight."""
    return np.full(orders(weight, e, 0).shape, 77, np.uint32)


def search(library, weight, e, dtype, density=None, seed=0, progress=None):
    perm = perm_like(weight, e)
    status = library.nmsSearchOrder(
        spec_of(weight, e, dtype),
        ctypes.c_double(density or 0),
        ctypes.c_uint64(seed),
        pointer(weight),
        pointer(perm),
        progress or PROGRESS(),
        None,
    )
    assert status == 0, library.nmsLastError()
    return perm


@settings(max_examples=300, deadline=None)
@given(case=st.one_of(sparse_weights(types=TYPES), free_weights(types=TYPES)))
def test_an_encoder_takes_the_same_order(runtime, case):
    weight, e, dtype = case
    perm = perm_like(weight, e)
    spec = spec_of(weight, e, dtype)
    assert runtime.nmsFindOrder(spec, pointer(weight), pointer(perm)) == 0
    try:
        expected = encode(weight, shuffled(e), dtype).perm
    except EncodingError as error:
        assert "in the order that was found" in str(error)
        return
    assert np.array_equal(perm, expected)


@pytest.mark.parametrize("zeros", [0, 0.02, 0.4])
@pytest.mark.parametrize("outputs", [96, 104, 90, 7])
@pytest.mark.parametrize("e", LAYERS, ids=str)
def test_the_same_order_of_larger_weights(runtime, e, outputs, zeros):
    weight, _ = planted(e, outputs, zeros, 5)
    perm = perm_like(weight, e)
    spec = spec_of(weight, e, "f32")
    assert runtime.nmsFindOrder(spec, pointer(weight), pointer(perm)) == 0
    try:
        assert np.array_equal(perm, encode(weight, shuffled(e)).perm)
    except EncodingError:
        assert zeros == 0.4 or outputs in (7, 90)


@settings(max_examples=300, deadline=None)
@given(case=sparse_weights(types=TYPES), seed=SEEDS, is_given=st.booleans())
def test_pack_and_unpack_equal_the_reference(
    runtime,
    case,
    seed,
    is_given,
):
    ordered, e, dtype = case
    if ordered.size == 0:
        return
    perm = orders(ordered, e, seed)
    weight = put_back(ordered, e, perm)
    spec = spec_of(weight, e, dtype)
    message = None
    try:
        expected = encode(weight, shuffled(e), dtype, perm if is_given else None)
    except EncodingError as error:
        message, is_given = str(error), False
        expected = encode(weight, shuffled(e), dtype, perm)
    got = {name: np.full_like(a, 77) for name, a in expected.components.items()}
    if is_given:
        got["perm"][...] = perm
    arrays = {name: a for name, a in got.items() if name != "perm"}
    status = runtime.nmsPackShuffled(
        spec, int(is_given), pointer(weight), pointers(arrays), pointer(got["perm"])
    )
    if message:
        assert status == 1
        # The runtime does not name the only entry of a batch.
        if weight.ndim == 3 and len(weight) == 1:
            message = message.replace(" of batch 0", "")
        assert runtime.nmsLastError().decode() == f"pack: {message}"
        return
    assert status == 0, runtime.nmsLastError()
    for name, component in expected.components.items():
        assert np.array_equal(bits_of(got[name]), bits_of(component)), name
    back = np.full_like(weight, 77)
    status = runtime.nmsUnpackShuffled(
        spec, pointers(arrays), pointer(got["perm"]), pointer(back)
    )
    assert status == 0, runtime.nmsLastError()
    assert np.array_equal(bits_of(back), bits_of(decode(expected)))


@settings(max_examples=200, deadline=None)
@given(case=free_weights(types=TYPES), seed=SEEDS)
def test_weights_are_put_in_order(runtime, case, seed):
    ordered, e, dtype = case
    perm = orders(ordered, e, seed)
    weight = put_back(ordered, e, perm)
    expected = ordered.swapaxes(-1, -2) if e.dim == ordered.ndim - 1 else ordered
    got, spec = np.full(expected.shape, 77, weight.dtype), spec_of(weight, e, dtype)
    arrays = pointer(weight), pointer(got)
    assert runtime.nmsPutInOrder(spec, pointer(perm), *arrays) == 0
    assert np.array_equal(bits_of(got), bits_of(np.ascontiguousarray(expected)))
    back = np.full_like(weight, 77)
    assert runtime.nmsPutBack(spec, pointer(perm), pointer(got), pointer(back)) == 0
    assert np.array_equal(bits_of(back), bits_of(weight))
    in_order = PackSpec()
    assert runtime.nmsOrderedSpec(spec, ctypes.byref(in_order)) == 0
    k, outputs = expected.shape[-2:]
    strides = (in_order.strideB, in_order.strideK, in_order.strideN)
    assert strides == (k * outputs, outputs, 1)


@settings(max_examples=300, deadline=None)
@given(case=dense_weights(types=TYPES), seed=st.none() | SEEDS)
def test_prune_equals_the_reference(runtime, case, seed):
    """In an order that is given, or the one that both search finds."""
    weight, e, dtype = case
    perm = None if seed is None else orders(weight, e, seed)
    got = np.full_like(weight, 77)
    status = runtime.nmsPruneShuffled(
        spec_of(weight, e, dtype),
        ctypes.c_double(0),
        ctypes.c_uint64(0),
        None if perm is None else pointer(perm),
        pointer(weight),
        pointer(got),
    )
    assert status == 0, runtime.nmsLastError()
    expected = prune(weight, shuffled(e), dtype, perm=perm)
    assert np.array_equal(bits_of(got), bits_of(expected))


@settings(max_examples=200, deadline=None)
@given(case=free_weights(types=TYPES), percent=st.integers(0, 100))
def test_free_pruning_equals_the_reference(runtime, case, percent):
    weight, e, dtype = case
    got, share = np.full_like(weight, 77), ctypes.c_double(percent / 100)
    spec, seed = spec_of(weight, e, dtype), ctypes.c_uint64(0)
    arrays = pointer(weight), pointer(got)
    assert runtime.nmsPruneShuffled(spec, share, seed, None, *arrays) == 0
    expected = prune(weight, shuffled(e), dtype, percent / 100)
    assert np.array_equal(bits_of(got), bits_of(expected))


@pytest.mark.parametrize("threads", ["1", "5"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("e", LAYERS, ids=str)
def test_the_search_equals_the_reference(
    runtime,
    monkeypatch,
    e,
    dim,
    threads,
):
    """On weights that keep it busy, with any number of threads."""
    monkeypatch.setenv("NM_SPARSE_THREADS", threads)
    rng = np.random.default_rng(7)
    weight = rng.standard_t(4, (200, 150)) * np.exp(rng.standard_normal((200, 1)))
    weight = weight.astype(np.float16)
    weight[3, 5], weight[7, 9] = np.inf, np.nan
    e, density = replace(e, dim=dim), 0.3 if e.is_free else None
    steps = []
    progress = PROGRESS(lambda _, done, total: steps.append((done, total)))
    got = search(runtime, weight, e, "f16", density, 3, progress)
    expected = []
    perm = search_order(
        weight, shuffled(e), None, density, 3, lambda *step: expected.append(step)
    )
    assert np.array_equal(got, perm)
    assert steps == expected
    assert not np.array_equal(got, np.sort(got))


@pytest.mark.slow
def test_the_search_of_sampled_windows_equals_the_reference(runtime):
    """So large that not all windows are looked at."""
    rng = np.random.default_rng(1)
    rows, outputs = 20000, 1400
    assert outputs // 2 * outputs * rows > 2 * READ_LIMIT
    weight = rng.standard_normal((rows, outputs), np.float32)
    e = Encoding(1, 4, (1, 2))
    got = search(runtime, weight, e, "f32", None, 1)
    assert np.array_equal(got, search_order(weight, shuffled(e), seed=1))


@settings(max_examples=300, deadline=None)
@given(
    places=st.lists(st.integers(0, (1 << 32) - 1) | st.integers(0, 5), min_size=4)
    | st.permutations(range(4)).map(list)
)
def test_both_take_permutations_alone(runtime, places):
    weight = np.eye(4, dtype=np.float32)
    perm = np.array(places[:4], np.uint32)
    e = Encoding(1, 2, (1, 1))
    spec, got = spec_of(weight, e, "f32"), np.empty_like(weight)
    calls = {
        "check order": lambda: runtime.nmsCheckOrder(spec, pointer(perm)),
        "put in order": lambda: runtime.nmsPutInOrder(
            spec, pointer(perm), pointer(weight), pointer(got)
        ),
        "prune": lambda: runtime.nmsPruneShuffled(
            spec, ctypes.c_double(0), ctypes.c_uint64(0), pointer(perm),
            pointer(weight), pointer(got),
        ),
        "unpack": lambda: runtime.nmsUnpackShuffled(
            spec, pointers(parts), pointer(perm), pointer(got)
        ),
        "pack": lambda: runtime.nmsPackShuffled(
            spec, 1, pointer(weight), pointers(parts), pointer(perm)
        ),
    }  # fmt: skip
    parts = encode(weight, e).components
    message = None
    try:
        encode(weight, shuffled(e), perm=perm)
    except EncodingError as error:
        message = str(error)
    for entry, call in calls.items():
        assert call() == (message is not None), entry
        if message is not None:
            assert runtime.nmsLastError().decode() == f"{entry}: {message}"


def test_what_is_refused(runtime):
    weight, perm = np.ones((4, 4), np.float32), np.arange(4, dtype=np.uint32)
    free = spec_of(weight, Encoding.free((1, 2)), "f32")
    none, zero = None, ctypes.c_uint64(0)

    def message(status):
        assert status == 1
        return runtime.nmsLastError().decode()

    share = ctypes.c_double(1.5)
    call = (free, share, zero, pointer(weight), pointer(perm), PROGRESS(), none)
    assert "density 1.5 is not legal" in message(runtime.nmsSearchOrder(*call))
    call = (free, 1, pointer(weight), pointers({}), pointer(perm))
    assert "a free level has components of its own" in message(
        runtime.nmsPackShuffled(*call)
    )
    call = (free, pointers({}), pointer(perm), pointer(weight))
    assert "a free level has components of its own" in message(
        runtime.nmsUnpackShuffled(*call)
    )
    assert "perm is null" in message(runtime.nmsCheckOrder(free, none))
    assert "find order: an array is null" in message(
        runtime.nmsFindOrder(free, none, pointer(perm))
    )
    assert "put in order: an array is null" in message(
        runtime.nmsPutInOrder(free, pointer(perm), none, pointer(weight))
    )
    assert "there is no place" in message(runtime.nmsOrderedSpec(free, none))
    assert "the spec is null" in message(runtime.nmsCheckOrder(none, pointer(perm)))

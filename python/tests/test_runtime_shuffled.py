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
from strategies import bits_of, dense_weights, free_weights, sparse_weights
from test_runtime_packing import (
    KINDS,
    PackSpec,
    descriptors,
    pointer,
    pointers,
    pytestmark,  # noqa: F401
    raised,  # noqa: F401
    runtime,  # noqa: F401
    spec_of,
)
from test_shuffled import LAYERS, orders, planted, put_back

from nm_sparse import (
    Encoding,
    EncodingError,
    Packed,
    decode,
    encode,
    pack_ragged,
    prune,
    search_order,
)
from nm_sparse.ragged import step_of
from nm_sparse.search import READ_LIMIT

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
def test_an_encoder_takes_the_same_order(runtime, case):  # noqa: F811
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
def test_the_same_order_of_larger_weights(runtime, e, outputs, zeros):  # noqa: F811
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
    runtime,  # noqa: F811
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
def test_weights_are_put_in_order(runtime, case, seed):  # noqa: F811
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
def test_prune_equals_the_reference(runtime, case, seed):  # noqa: F811
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
def test_free_pruning_equals_the_reference(runtime, case, percent):  # noqa: F811
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
    runtime,  # noqa: F811
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


def test_the_search_of_sampled_windows_equals_the_reference(runtime):  # noqa: F811
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
def test_both_take_permutations_alone(runtime, places):  # noqa: F811
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


def test_what_is_refused(runtime):  # noqa: F811
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


PARAMS = [1, KINDS["f32"], 1, 2, 4, 1, 2]  # dim, kind, levels; n, m, bk, bn


def as_memrefs(library, name, weight, arrays, extra=()):
    """Calls an entry of compiled code that takes a weight and components."""
    dense, keep = descriptors(weight)
    listed, kept = descriptors(*arrays)
    numbers = (ctypes.c_int64 * len(PARAMS))(*PARAMS)
    rank = ctypes.c_int64(2)
    getattr(library, name)(rank, ctypes.c_void_p(dense[0]), listed, numbers, *extra)
    del keep, kept


def test_shuffled_weights_as_memrefs(runtime, raised):  # noqa: F811
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


def test_the_permutation_must_be_there(runtime, raised):  # noqa: F811
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
def test_pruning_of_memrefs(runtime, raised, is_free):  # noqa: F811
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
def test_ragged_panels_of_shuffled_weights(runtime, case):  # noqa: F811
    """In the order that an encoder finds, for compiled programs."""
    weight, e, dtype = case
    expected = pack_ragged(encode(weight, shuffled(e), dtype))
    numbers = [e.dim, KINDS[dtype], 1, 0, 0, *e.block, step_of(e)]
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
def test_lists_of_files_are_checked(runtime, offsets, index):  # noqa: F811
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
def test_permutations_of_files_are_checked(runtime, rows):  # noqa: F811
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


def test_what_is_no_permutation_at_all(runtime, raised):  # noqa: F811
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

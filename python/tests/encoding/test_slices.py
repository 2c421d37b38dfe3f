# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of components are the components of parts: against the reference encoder."""

import doctest
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import TYPES, V_N_M, bits_of, levels

from nm_sparse import Encoding, EncodingError, Packed, decode, encode, packed_shapes
from nm_sparse.encoding.slices import component_slices, equal_parts, slice_step

ORDERS = ("identity", "identity", "shuffled")
BANDED = Encoding("8:32", block=(1, 128))


@st.composite
def cases(draw):
    """(packed, dense, dim, begin, end): `dense` is [N, K], whatever the encoding's
    dim; the part cuts nothing."""
    outer, inner = draw(st.one_of(levels(), st.sampled_from(V_N_M)))
    turned, order = draw(st.sampled_from([0, 1])), draw(st.sampled_from(ORDERS))
    e = Encoding(outer.n, outer.m, outer.block, turned, order, inner)
    sizes = draw(st.tuples(st.integers(0, 150), st.integers(0, 40)))
    dtype = draw(st.sampled_from(tuple(TYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    packed = random_packed(rng, e, sizes, dtype)
    dense = decode_any(packed)
    dim = draw(st.sampled_from([0, 1])) if order == "identity" else 1
    step, size = slice_step(e, dim), sizes[dim]
    places = st.one_of(st.integers(0, size // step).map(step.__mul__), st.just(size))
    begin, end = sorted((draw(places), draw(places)))
    return packed, dense, dim, begin, end


def random_packed(rng, e, sizes, dtype):
    """Components of random bits: a weight [N, K] of any shape, in canonical form."""
    shape = sizes if e.dim == 1 else sizes[::-1]
    unsigned, numpy_type = TYPES[dtype]
    shapes = packed_shapes(e.packed, shape)
    parts = {"values": rng.integers(0, 50, shapes["values"]).astype(unsigned)}
    for name, level in zip(("index", "inner_index"), e.levels):
        rows, columns = shapes[name]
        scores = rng.random((rows // level.n, level.m, columns))
        kept = np.sort(np.argsort(scores, axis=1)[:, : level.n], axis=1)
        parts[name] = kept.reshape(rows, columns).astype(np.uint8)
    parts["values"] = parts["values"].view(numpy_type)
    windows, columns = shapes["index"][0] // e.n, shapes["values"][1]
    whole = (windows * e.m * e.block[0], columns)  # with what lies past the end
    whole = whole if e.dim == 0 else whole[::-1]
    weight = decode(Packed(parts, e.packed, whole, dtype))
    weight = np.ascontiguousarray(weight[: shape[0], : shape[1]])
    packed = encode(weight, e.packed, dtype)
    if not e.is_shuffled:
        return packed
    perm = rng.permutation(sizes[0]).astype(np.uint32)
    return Packed({**packed.components, "perm": perm}, e, shape, dtype)


def decode_any(packed):
    """[N, K] of the weight, also of a shuffled one."""
    e, parts = packed.encoding, dict(packed.components)
    perm = parts.pop("perm", None)
    rows = decode(Packed(parts, e.packed, packed.shape, packed.dtype))
    rows = rows if e.dim == 1 else rows.T
    if perm is None:
        return rows
    dense = np.empty_like(rows)
    dense[perm] = rows
    return dense


@settings(max_examples=400, deadline=None)
@given(cases())
def test_parts_of_components_are_the_components_of_the_part(case):
    packed, dense, dim, begin, end = case
    e = packed.encoding
    slices = component_slices(e, dense.shape, dim, begin, end)
    assert list(slices) == list(packed.components)
    parts = {name: packed.components[name][at] for name, at in slices.items()}
    part = dense[begin:end] if dim == 0 else dense[:, begin:end]
    shape = part.shape if e.dim == 1 else part.shape[::-1]
    assert packed_shapes(e, shape) == {name: x.shape for name, x in parts.items()}
    cut = Packed(parts, e, shape, packed.dtype)
    assert np.array_equal(bits_of(decode_any(cut)), bits_of(np.ascontiguousarray(part)))
    # Canonical, too: what the encoder makes of the part.
    ordered = part if "perm" not in parts else part[parts["perm"]]
    ordered = np.ascontiguousarray(ordered if e.dim == 1 else ordered.T)
    again = encode(ordered, e.packed, packed.dtype).components
    for name, component in again.items():
        assert np.array_equal(bits_of(component), bits_of(parts[name].copy()))


@settings(max_examples=200, deadline=None)
@given(cases())
def test_equal_parts_cut_nothing(case):
    packed, dense, dim, _, _ = case
    e, size = packed.encoding, dense.shape[dim]
    legal = equal_parts(e, dense.shape, dim)
    assert legal[0] == 1
    for count in range(1, 9):
        if size % count:
            assert count not in legal
            continue
        share = size // count
        ranges = [(at * share, (at + 1) * share) for at in range(count)]
        try:
            for begin, end in ranges:
                component_slices(e, dense.shape, dim, begin, end)
        except EncodingError:
            assert count not in legal
        else:
            # An empty weight may be sliced into any number of parts.
            assert count in legal or size == 0


@pytest.mark.parametrize("dim, step", [(0, 128), (1, 32)])
def test_any_other_part_is_refused_with_sizes_that_work(dim, step):
    shape, side = (512, 256), ("outputs", "inputs")[dim]
    size = shape[dim]
    assert slice_step(BANDED, dim) == step
    for begin in range(0, size + 1, 8):
        for end in range(begin, size + 1, 8):
            fits = begin % step == 0 and end % step == 0
            if fits:
                component_slices(BANDED, shape, dim, begin, end)
                continue
            with pytest.raises(EncodingError, match=f"{side} {begin}:{end} of {size}"):
                component_slices(BANDED, shape, dim, begin, end)


def test_errors_name_what_works():
    shape = (512, 288)
    with pytest.raises(
        EncodingError,
        match=r"outputs 64:128 of 512 cut a panel of 128 \(8:32, block = \[1, 128\]\): "
        r"legal are multiples of 128, and the end of the weight; into 1, 2, 4 equal "
        r"parts it can be sliced; for others, choose a smaller bn",
    ):
        component_slices(BANDED, shape, 0, 64, 128)
    with pytest.raises(
        EncodingError,
        match=r"inputs 0:144 of 288 cut a window of 32 .* into 1, 3, 9 equal parts .* "
        r"a smaller m or bk",
    ):
        component_slices(BANDED, shape, 1, 0, 144)
    with pytest.raises(EncodingError, match="into equal parts it cannot be sliced"):
        component_slices(BANDED, (130, 32), 0, 0, 65)


@pytest.mark.parametrize("begin, end", [(-1, 4), (3, 2), (0, 513), (512, 513)])
def test_what_is_no_part_is_refused(begin, end):
    with pytest.raises(EncodingError, match=r"legal is 0 <= begin <= end <= 512"):
        component_slices(BANDED, (512, 256), 0, begin, end)


def test_other_weights_are_refused():
    shuffled = Encoding("8:32", block=(1, 128), order="shuffled")
    slices = component_slices(shuffled, (512, 256), 1, 32, 64)
    assert slices["perm"] == (slice(0, 512),)
    assert component_slices(shuffled, (512, 256), 0, 0, 512)["perm"] == (slice(0, 512),)
    with pytest.raises(EncodingError, match="slice its inputs, or slice the dense"):
        component_slices(shuffled, (512, 256), 0, 0, 256)
    assert equal_parts(shuffled, (512, 256), 0) == [1]
    with pytest.raises(EncodingError, match="encoding is free"):
        component_slices(Encoding("free"), (512, 256), 0, 0, 512)
    with pytest.raises(EncodingError, match="dim is 2: legal is 0 for outputs"):
        component_slices(BANDED, (512, 256), 2, 0, 128)
    with pytest.raises(EncodingError, match=r"legal is \[outputs, inputs\]"):
        component_slices(BANDED, (4, 512, 256), 0, 0, 128)


def test_the_examples_of_the_page():
    page = Path(__file__).resolve().parents[3] / "integrations/vllm/README.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted == 3 and result.failed == 0

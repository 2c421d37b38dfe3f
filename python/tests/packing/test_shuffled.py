# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shuffled weights keep to docs/Encoding.md."""

import json
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
import search_oracle
from hypothesis import given, settings
from strategies import bits_of, dense_weights, free_weights, sparse_weights

from nm_sparse import (
    Encoding,
    EncodingError,
    Level,
    Packed,
    decode,
    encode,
    prune,
    read_packed,
    search_order,
    write_packed,
)
from nm_sparse.encoding import order


def orders(weight, e, seed):
    """Random permutations of the outputs of `weight`, as a component."""
    rng = np.random.default_rng(seed)
    outputs = weight.shape[2 * weight.ndim - 3 - e.dim]
    batch = weight.shape[0] if weight.ndim == 3 else 1
    perm = np.array([rng.permutation(outputs) for _ in range(batch)])
    return perm.reshape(weight.shape[:-2] + (outputs,)).astype(np.uint32)


def put(weight, e, perm):
    """The weight with output perm[j] at place j, entry by entry."""
    if weight.ndim == 2:
        return np.ascontiguousarray(weight[:, perm] if e.dim == 0 else weight[perm])
    at = replace(e, dim=e.dim - 1)
    entries = [put(w, at, p) for w, p in zip(weight, perm)]
    return np.array(entries, weight.dtype).reshape(weight.shape)


def put_back(weight, e, perm):
    """The weight of which `put` makes `weight`."""
    return put(weight, e, np.argsort(perm, axis=-1))


SEEDS = st.integers(0, 1 << 30)
CASES = st.one_of(sparse_weights(), free_weights())


@settings(max_examples=300, deadline=None)
@given(CASES, SEEDS)
def test_it_is_the_weight_in_another_order(case, seed):
    ordered, e, dtype = case
    perm = orders(ordered, e, seed)
    weight, shuffled = put_back(ordered, e, perm), replace(e, order="shuffled")
    packed = encode(weight, shuffled, dtype, perm)
    expected = {**encode(ordered, e, dtype).components, "perm": perm}
    assert list(packed.components) == list(expected)
    for name, array in expected.items():
        assert np.array_equal(bits_of(packed.components[name]), bits_of(array)), name
    stored = Packed.from_tensors(packed.components, packed.metadata())
    assert stored.encoding == shuffled
    back, lost = decode(stored), decode(encode(ordered, e, dtype))
    assert back.shape == weight.shape and back.dtype == weight.dtype
    assert np.array_equal(bits_of(back), bits_of(put_back(lost, e, perm)))


@settings(max_examples=100, deadline=None)
@given(case=free_weights())
def test_a_free_weight_has_the_pattern_in_any_order(case):
    weight, e, dtype = case
    packed = encode(weight, replace(e, order="shuffled"), dtype)
    assert np.array_equal(bits_of(decode(packed)), bits_of(weight))


@settings(max_examples=50, deadline=None)
@given(CASES, SEEDS)
def test_files(tmp_path_factory, case, seed):
    ordered, e, dtype = case
    if dtype == "f64":
        return
    perm = orders(ordered, e, seed)
    weight, shuffled = put_back(ordered, e, perm), replace(e, order="shuffled")
    packed = encode(weight, shuffled, dtype, perm)
    path = tmp_path_factory.getbasetemp() / "shuffled.safetensors"
    write_packed(path, {"w": packed})
    read = read_packed(path)["w"]
    assert read.encoding == shuffled and set(read.components) == set(packed.components)
    assert np.array_equal(bits_of(decode(read)), bits_of(decode(packed)))
    with pytest.raises(EncodingError, match="is shuffled: bitmaps are of weights with"):
        write_packed(path, {"w": packed}, "bitmap")


LAYERS = [
    Encoding(2, 4, (1, 8)),
    Encoding(1, 4, (2, 16)),
    Encoding.free((1, 8)),
    Encoding.free((4, 16)),
    Encoding(4, 10, (1, 16), inner=Level(2, 4)),
    Encoding(2, 4, (2, 16), inner=Level(1, 4, (1, 4))),
]


def planted(e, outputs, zeros, seed):
    """A K x N weight with the pattern, and its order: panels that differ, and a share
    of zeros in what they keep."""
    rng = np.random.default_rng(seed)
    # Larger where a panel is, so that pruning keeps other rows in each.
    k, (bk, bn) = 240, e.block
    scale = np.exp(rng.standard_normal((k // bk, -(-outputs // bn))))
    scale = scale.repeat(bk, axis=0).repeat(bn, axis=1)[:, :outputs]
    weight = (scale * rng.standard_normal((k, outputs))).astype(np.float32)
    weight = prune(weight, e, density=0.3 if e.is_free else None)
    weight[rng.random(weight.shape) < zeros] = 0
    perm = rng.permutation(outputs)
    return put_back(weight, e, perm), perm


@pytest.mark.parametrize("zeros", [0, 0.02])
@pytest.mark.parametrize("outputs", [96, 104, 90])
@pytest.mark.parametrize("e", LAYERS, ids=str)
def test_an_encoder_finds_the_panels(e, outputs, zeros):
    weight, perm = planted(e, outputs, zeros, 0)
    shuffled, bn = replace(e, order="shuffled"), e.block[1]
    packed = encode(weight, shuffled)
    assert np.array_equal(decode(packed), weight)
    found = {tuple(sorted(packed.perm[at : at + bn])) for at in range(0, outputs, bn)}
    assert found == {tuple(sorted(perm[at : at + bn])) for at in range(0, outputs, bn)}
    # As many blocks as in the order that it was made in.
    known = encode(weight, shuffled, perm=perm)
    assert packed.values.shape == known.values.shape
    # Panels are in the order of their first outputs.
    firsts = [min(packed.perm[at : at + bn]) for at in range(0, outputs // bn * bn, bn)]
    assert firsts == sorted(firsts)


def test_an_encoder_leaves_what_is_in_order():
    for e in LAYERS:
        if e.inner is None:
            weight, perm = planted(e, 96, 0, 1)
            weight = put(weight, e, perm)
            packed = encode(weight, replace(e, order="shuffled"))
            assert packed.perm.tolist() == list(range(96)), e


def test_the_order_that_is_found():
    # Outputs 1, 3 and 5 have one support, 0 and 4 another; 2 adds least to 0.
    weight = np.array(
        [[1, 0, 1, 0, 1, 0], [2, 0, 0, 0, 2, 0], [0, 3, 0, 3, 0, 3]], np.float32
    )
    packed = encode(weight, Encoding.free((1, 3), order="shuffled"))
    assert packed.perm.tolist() == [0, 2, 4, 1, 3, 5]
    assert packed.offsets.tolist() == [0, 2, 3]
    # The panel of fewer outputs comes last, and holds what is left.
    packed = encode(weight, Encoding.free((1, 4), order="shuffled"))
    assert packed.perm.tolist() == [1, 2, 3, 5, 0, 4]


def test_a_pattern_that_does_not_hold_is_named():
    weight = np.ones((4, 4), np.float32)
    weight[3, 1:] = 0
    message = "not 2:4 in the order that was found: window 0 of panel 0 has 3 nonzero"
    with pytest.raises(EncodingError, match=message):
        encode(weight[:, 1:], Encoding(2, 4, (1, 2), order="shuffled"))
    shuffled = Encoding(3, 4, (1, 2), order="shuffled", inner=Level(2, 3))
    weight = np.array([[1, 0, 1, 1], [1, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, 0]])
    message = "2:3 in what 3:4 keeps in the order that was given: window 0 of inner"
    with pytest.raises(EncodingError, match=message):
        encode(weight.astype(np.int8), shuffled, perm=np.array([0, 3, 2, 1]))


WEIGHT = np.array([[1, 0, 2], [0, 3, 0]], np.float32)


@pytest.mark.parametrize(
    "perm, message",
    [
        (
            [0, 1, 1],
            "batch 0 has 1 at place 2, which place 1 holds, too: legal is each",
        ),
        ([0, 3, 1], "has 3 at place 1, which is not below 3: legal is each number"),
        ([0, -1, 1], "has -1 at place 1, which is not below 3"),
        ([0, 1], r"perm has shape \(2,\) and type int64: legal are integers of shape"),
        ([0.0, 1.0, 2.0], "type float64: legal are integers"),
    ],
)
def test_no_permutation(perm, message):
    e = Encoding.free((1, 2), order="shuffled")
    for call in (encode, prune):
        with pytest.raises(EncodingError, match=message):
            density = {"density": 0.5} if call is prune else {}
            call(WEIGHT, e, perm=np.array(perm), **density)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, (1 << 32) - 1) | st.integers(0, 6), max_size=8))
def test_a_decoder_takes_permutations_alone(perm):
    packed = encode(WEIGHT, Encoding.free((1, 2), order="shuffled"))
    changed = {**packed.components, "perm": np.array(perm, np.uint32)}
    damaged = replace(packed, components=changed)
    if sorted(perm) == [0, 1, 2]:
        assert decode(damaged).shape == WEIGHT.shape
        return
    with pytest.raises(EncodingError, match="perm (has shape|of batch 0 has)"):
        decode(damaged)


def test_a_decoder_needs_perm():
    packed = encode(WEIGHT, Encoding(1, 2, (1, 2), order="shuffled"))
    parts = dict(packed.components)
    parts["perm"] = parts["perm"].astype(np.int32)
    with pytest.raises(EncodingError, match="perm is int32: a shuffled weight needs"):
        decode(replace(packed, components=parts))
    del parts["perm"]
    with pytest.raises(EncodingError, match="perm is none: a shuffled weight needs"):
        decode(replace(packed, components=parts))


@pytest.mark.parametrize(
    "e, version, other",
    [
        (Encoding(1, 2, (1, 2)), 7, 1),
        (Encoding(2, 2, (1, 2), inner=Level(1, 2)), 8, 2),
        (Encoding.free((1, 2)), 9, 3),
    ],
)
def test_versions(e, version, other):
    packed = encode(np.zeros((2, 3), np.float32), replace(e, order="shuffled"))
    metadata = json.loads(packed.metadata())
    assert (metadata["version"], metadata["order"]) == (version, "shuffled")
    text = json.dumps({**metadata, "version": other})
    message = f"version {other} of shuffled {e.n}:{e.m}, which has version {version}"
    with pytest.raises(EncodingError, match=message):
        Packed.from_tensors(packed.components, text)


def test_what_has_no_order():
    for call, arguments in ((encode, {}), (prune, {})):
        with pytest.raises(EncodingError, match="perm is given, but order is 'ident"):
            call(WEIGHT, Encoding(1, 2), perm=np.arange(3), **arguments)
    with pytest.raises(EncodingError, match="only 'shuffled' has an order"):
        search_order(WEIGHT, Encoding(1, 2))
    shuffled = Encoding.free((1, 2), order="shuffled")
    with pytest.raises(EncodingError, match="density is None for 0:0: legal is a"):
        prune(WEIGHT, shuffled)
    with pytest.raises(EncodingError, match="density is 2: legal is from 0 to 1"):
        prune(WEIGHT, shuffled, density=2)


@settings(max_examples=200, deadline=None)
@given(dense_weights(), SEEDS)
def test_pruning_in_a_given_order(case, seed):
    weight, e, dtype = case
    perm, shuffled = orders(weight, e, seed), replace(e, order="shuffled")
    pruned = prune(weight, shuffled, dtype, perm=perm)
    expected = put_back(prune(put(weight, e, perm), e, dtype), e, perm)
    assert np.array_equal(bits_of(pruned), bits_of(expected))


@settings(max_examples=200, deadline=None)
@given(dense_weights())
def test_pruned_weights_have_the_pattern(case):
    weight, e, dtype = case
    shuffled = replace(e, order="shuffled")
    perm = search_order(weight, shuffled, dtype)
    assert np.array_equal(np.sort(perm), orders(weight, e, 0) * 0 + np.arange(
        perm.shape[-1]
    ))  # fmt: skip
    pruned = prune(weight, shuffled, dtype)
    encode(pruned, shuffled, dtype, perm)
    assert np.array_equal(
        bits_of(pruned), bits_of(prune(weight, shuffled, dtype, perm=perm))
    )


@pytest.mark.parametrize("e", LAYERS, ids=str)
def test_pruning_finds_structure(e):
    """What is pruned in the order that was found keeps as much as in the one that the
    weight was made in, and packs without being told the order."""
    density = {"density": 0.3} if e.is_free else {}
    rng = np.random.default_rng(3)
    (bk, bn), outputs, k = e.block, 96, 240
    scale = np.exp(rng.standard_normal((k // bk, outputs // bn)))
    weight = scale.repeat(bk, axis=0).repeat(bn, axis=1)
    weight = weight * rng.standard_normal((k, outputs))
    perm, shuffled = rng.permutation(outputs), replace(e, order="shuffled")
    weight = put_back(weight, e, perm).astype(np.float32)

    def kept(pruned):
        return float((pruned.astype(np.float64) ** 2).sum())

    pruned = prune(weight, shuffled, **density)
    known = kept(prune(weight, shuffled, perm=perm, **density))
    plain = kept(prune(weight, e, **density))
    assert known > 1.02 * plain
    assert kept(pruned) - plain > 0.8 * (known - plain)
    assert np.array_equal(decode(encode(pruned, shuffled)), pruned)
    assert np.array_equal(prune(pruned, shuffled, **density), pruned)


def test_the_search_reports_progress_and_repeats():
    weight = np.random.default_rng(0).standard_normal((64, 40)).astype(np.float32)
    e, steps = Encoding(1, 4, (1, 8), order="shuffled"), []
    perm = search_order(weight, e, progress=lambda *step: steps.append(step))
    assert steps == [(n, steps[0][1]) for n in range(1, len(steps) + 1)]
    assert len(steps) <= steps[0][1]
    assert np.array_equal(perm, search_order(weight, e))


def test_the_seed_chooses_what_is_looked_at(monkeypatch):
    monkeypatch.setattr(search_oracle, "READ_LIMIT", 1)
    monkeypatch.setattr(search_oracle, "MULTIPLY_LIMIT", 1)
    search_order = search_oracle.search_order
    weight = np.random.default_rng(0).standard_normal((512, 40)).astype(np.float32)
    e = Encoding(1, 4, (1, 8), order="shuffled")
    one, other = (search_order(weight, e, seed=seed) for seed in (1, 2))
    assert not np.array_equal(one, other)
    assert np.array_equal(one, search_order(weight, e, seed=1))


def test_put_and_put_back():
    e = Encoding(1, 1, dim=2)
    weight = np.arange(12).reshape(2, 3, 2)
    perm = np.array([[2, 0, 1], [1, 2, 0]])
    there = order.put(weight, e, perm)
    assert there[1].tolist() == weight[1][[1, 2, 0]].tolist()
    assert np.array_equal(order.put_back(there, e, perm), weight)

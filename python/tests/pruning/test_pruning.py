# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prune` keeps what the reference keeps, bit by bit, and what scores say."""

import hypothesis.strategies as st
import numpy as np
import pytest
import search_oracle
from hypothesis import given, settings
from strategies import TYPES, bits_of, dense_weights, free_weights, sparse_weights

from nm_sparse import Encoding, EncodingError, Level, encode, pattern_mask, prune
from nm_sparse.packing import shuffled
from nm_sparse.reference import _numbers


def equal(a, b):
    return a.dtype == b.dtype and np.array_equal(bits_of(a), bits_of(b))


parts = st.sampled_from(["1", "2", "5"])


def in_parts(monkeypatch, threads):
    monkeypatch.setenv("NM_SPARSE_THREADS", threads)


@settings(max_examples=200, deadline=None)
@given(st.one_of(dense_weights(), sparse_weights()), parts)
def test_as_the_reference(case, sizes):
    weight, encoding, dtype = case
    expected = shuffled.prune(weight, encoding, dtype)
    with pytest.MonkeyPatch.context() as monkeypatch:
        in_parts(monkeypatch, sizes)
        assert equal(prune(weight, encoding, dtype), expected)
        mask = pattern_mask(weight, encoding, dtype)
    kept = np.where(mask, bits_of(weight), 0)
    assert np.array_equal(kept, bits_of(expected))


@settings(max_examples=100, deadline=None)
@given(free_weights(), st.floats(0, 1), parts)
def test_free_patterns_as_the_reference(case, density, sizes):
    weight, encoding, dtype = case
    expected = shuffled.prune(weight, encoding, dtype, density)
    with pytest.MonkeyPatch.context() as monkeypatch:
        in_parts(monkeypatch, sizes)
        assert equal(prune(weight, encoding, dtype, density), expected)


@settings(max_examples=50, deadline=None)
@given(dense_weights(types=("f32", "f16", "bf16")), st.integers(0, 3))
def test_shuffled_patterns_as_the_reference(case, seed):
    weight, e, dtype = case
    e = Encoding(e.n, e.m, e.block, e.dim, "shuffled", e.inner)
    expected = search_oracle.prune(weight, e, dtype, seed=seed)
    assert equal(prune(weight, e, dtype, seed=seed), expected)
    perm = search_oracle.search_order(weight, e, dtype, seed=seed)
    assert equal(prune(weight, e, dtype, perm=perm), expected)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 200), st.data())
def test_best_are_the_first_of_the_largest(m, data):
    n = data.draw(st.integers(1, m))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    keys = rng.integers(0, data.draw(st.integers(1, 50)), (7, 3, m), np.uint16)
    expected = np.zeros(keys.shape, bool)
    order = np.argsort(-keys.astype(int), axis=-1, kind="stable")[..., :n]
    np.put_along_axis(expected, order, True, axis=-1)
    for dtype in (np.float16, np.float32, np.float64, np.int8):
        weight = keys.reshape(-1, m).astype(dtype)
        mask = pattern_mask(weight, Encoding(n, m, dim=1))
        assert np.array_equal(mask.reshape(keys.shape), expected)


@pytest.mark.parametrize("dtype", TYPES)
def test_magnitudes_are_in_the_order_of_the_squares(dtype):
    bits_type, own_type = TYPES[dtype]
    rng = np.random.default_rng(3)
    most = np.iinfo(bits_type).max
    pairs = rng.integers(0, most, (4000, 2), bits_type, endpoint=True)
    pairs[:2000, 1] = pairs[:2000, 0] + rng.integers(0, 3, 2000).astype(bits_type)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = _numbers(pairs, dtype) ** 2
    squares[np.isnan(squares)] = np.inf
    mask = pattern_mask(pairs.view(own_type), Encoding(1, 2, dim=1), dtype)
    first = squares[:, 0] >= squares[:, 1]
    assert np.array_equal(mask, np.stack([first, ~first], axis=1))
    assert first.any() and not first.all()


ENCODINGS = [
    Encoding("2:4", dim=1),
    Encoding("8:32", block=(1, 4)),
    Encoding("2:4", block=(4, 2), dim=1),
    Encoding("4:10 2:4", block=(1, 8), dim=1),
]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_scores_stand_for_magnitudes(encoding):
    rng = np.random.default_rng(encoding.m)
    weight = rng.standard_normal((45, 83)).astype(np.float16)
    scores = rng.random((45, 83))
    kept = prune(scores, encoding) != 0
    pruned = prune(weight, encoding, score=scores)
    assert equal(pruned, np.where(kept, weight, np.float16(0)))
    assert equal(prune(weight, encoding, score=lambda w: -scores), pruned)
    assert equal(prune(weight, encoding, score=lambda w: w), prune(weight, encoding))
    mask = pattern_mask(weight, encoding, score=scores)
    assert np.array_equal(mask, kept)
    encode(pruned, encoding)


def test_scores_of_integers_and_of_what_is_not_finite():
    weight, e = np.ones((1, 4), np.float32), Encoding("1:4", dim=1)
    for scores in ([3, 1, 9, 2], [0, 0, np.nan, 5], [1, 1, -np.inf, 1], [0, 0, 1, 0]):
        assert prune(weight, e, score=np.array([scores])).tolist() == [[0, 0, 1, 0]]
    chosen = np.array([[False, True, False, False]])
    assert prune(weight, e, score=chosen).tolist() == [[0, 1, 0, 0]]


def test_scores_of_free_and_shuffled_patterns():
    rng = np.random.default_rng(5)
    weight, scores = rng.random((12, 20)), rng.random((12, 20))
    free = Encoding.free((2, 3), 1)
    pruned = prune(weight, free, density=0.3, score=scores)
    mask = prune(scores, free, density=0.3) != 0
    assert np.array_equal(pruned, np.where(mask, weight, 0))
    e = Encoding("2:4", block=(1, 3), dim=1, order="shuffled")
    pruned = prune(weight, e, score=scores)
    mask = prune(scores, e) != 0
    assert np.array_equal(pruned, np.where(mask, weight, 0))
    encode(pruned, e)


def test_the_weight_is_not_changed_and_may_be_any_view():
    weight = np.random.default_rng(1).standard_normal((40, 64)).astype(np.float32)
    before, e = weight.copy(), Encoding("2:4", dim=1)
    pruned = prune(weight, e)
    assert np.array_equal(weight, before)
    weight.flags.writeable = False
    assert equal(prune(weight, e), pruned)
    assert equal(prune(np.asfortranarray(weight), e), pruned)
    assert equal(prune(np.repeat(weight, 2, axis=0)[::2], e), pruned)
    assert equal(prune(weight.T, Encoding("2:4")), np.ascontiguousarray(pruned.T))


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3fn"])
def test_torch_tensors(name):
    torch = pytest.importorskip("torch")
    tensor = torch.randn(33, 50).to(getattr(torch, name))
    e = Encoding("2:4", block=(1, 4), dim=1)
    pruned = prune(tensor, e)
    assert isinstance(pruned, torch.Tensor) and pruned.dtype == tensor.dtype
    kept = pruned.float() != 0
    assert torch.equal(torch.where(kept, tensor.float(), 0), pruned.float())
    assert torch.equal(pattern_mask(tensor, e) & (tensor.float() != 0), kept)
    scores = torch.rand(33, 50)
    own = prune(tensor, e, score=lambda w: scores.to(w.device))
    mask = pattern_mask(scores, e)
    assert torch.equal(torch.where(mask, tensor.float(), 0), own.float())


def test_what_is_refused():
    weight, e = np.ones((4, 8), np.float32), Encoding("2:4", dim=1)
    for score, message in [
        ("wanda", "score is 'wanda': legal is 'magnitude', an array of the weight's"),
        (np.ones((8, 4)), r"score has shape \(8, 4\): legal is that of the weight"),
        (np.ones((4, 8), complex), "score is an array of complex128"),
        ([1, 2], "score is a list: legal is an array of numpy"),
        (lambda w: "x", "score is a str"),
    ]:
        with pytest.raises(EncodingError, match=message):
            prune(weight, e, score=score)
        if not isinstance(score, str):
            with pytest.raises(EncodingError, match=message):
                pattern_mask(weight, e, score=score)
    with pytest.raises(EncodingError, match="density is 0.5 for 2:4"):
        prune(weight, e, density=0.5)
    with pytest.raises(EncodingError, match="density is 2: legal is from 0 to 1"):
        prune(weight, Encoding.free(dim=1), density=2)
    with pytest.raises(EncodingError, match="dim is 2: a weight of rank 2"):
        prune(weight, Encoding("2:4", dim=2))
    with pytest.raises(EncodingError, match="perm is given, but order is 'identity'"):
        prune(weight, e, perm=np.arange(4))
    with pytest.raises(EncodingError, match="perm has shape"):
        prune(weight, Encoding(2, 4, dim=1, order="shuffled"), perm=np.arange(5))
    with pytest.raises(EncodingError, match="weight has rank 1"):
        prune(np.ones(4), e)


def test_two_levels_choose_together():
    e = Encoding(2, 4, (1, 2), inner=Level(1, 2))
    weight = np.array([[4, 4], [5, 0], [0, 0], [0, -5]], np.float32)
    assert prune(weight, e).tolist() == [[0, 0], [5, 0], [0, 0], [0, -5]]

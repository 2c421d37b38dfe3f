# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed weights of torch are those of the reference, bit for bit."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from strategies import bits_of, dense_weights, sparse_weights  # noqa: E402
from torch_cases import ENCODINGS, as_array, as_tensor, ragged_shape  # noqa: E402

import nm_sparse as nm  # noqa: E402
from nm_sparse import Encoding, EncodingError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    LinearSpec,
    PackedWeight,
)
from nm_sparse.torch.weight.masks import prune_weight  # noqa: E402

SEEDS = st.integers(0, 1 << 30)


def matrix(case):
    """The first entry of a batch as [N, K], its encoding with dim = 1, its type."""
    weight, e, dtype = case
    if weight.ndim == 3:
        weight, e = weight[0], replace(e, dim=e.dim - 1)
    if e.dim == 0:
        weight = weight.T
    return np.ascontiguousarray(weight), replace(e, dim=1), dtype


def same(tensor, array):
    return np.array_equal(bits_of(as_array(tensor, array)), bits_of(array))


def assert_same(packed, expected):
    assert list(packed.components) == list(expected.components)
    for name, array in expected.components.items():
        assert tuple(packed.components[name].shape) == array.shape
        assert same(packed.components[name], array), name


@settings(max_examples=100, deadline=None)
@given(sparse_weights())
def test_it_packs_as_the_reference(case):
    weight, e, dtype = matrix(case)
    expected = nm.encode(weight, e, dtype)
    packed = PackedWeight.from_dense(as_tensor(weight, dtype), e)
    assert_same(packed, expected)
    packed.validate()
    assert same(packed.to_dense(), nm.decode(expected))
    assert tuple(packed.shape) == weight.shape and packed.encoding == e
    assert packed.nbytes == sum(a.nbytes for a in expected.components.values())


@settings(max_examples=50, deadline=None)
@given(sparse_weights(), SEEDS, st.booleans())
def test_it_packs_shuffled_weights_as_the_reference(case, seed, is_found):
    weight, e, dtype = matrix(case)
    perm = np.random.default_rng(seed).permutation(len(weight)).astype(np.uint32)
    shuffled = replace(e, order="shuffled")
    ordered = np.empty_like(weight)
    ordered[perm] = weight
    if is_found:
        shuffled = replace(shuffled, block=(e.block[0], 1), inner=None)
        tensor = as_tensor(ordered, dtype)
        try:
            expected = nm.encode(ordered, shuffled, dtype)
        except EncodingError as error:  # the inner level made it sparse enough
            with pytest.raises(EncodingError) as found:
                PackedWeight.from_dense(tensor, shuffled)
            assert str(found.value) == str(error)
            return
        packed = PackedWeight.from_dense(tensor, shuffled)
    else:
        expected = nm.encode(ordered, shuffled, dtype, perm)
        given_order = torch.from_numpy(perm.astype(np.int64))
        tensor = as_tensor(ordered, dtype)
        packed = PackedWeight.from_dense(tensor, shuffled, given_order)
    assert_same(packed, expected)
    packed.validate()
    assert same(packed.to_dense(), nm.decode(expected))


@settings(max_examples=50, deadline=None)
@given(sparse_weights(), SEEDS)
def test_it_refuses_what_the_reference_refuses(case, seed):
    weight, e, dtype = matrix(case)
    if weight.size == 0:
        return
    rng = np.random.default_rng(seed)
    flat = bits_of(weight).reshape(-1)
    flat[rng.integers(0, flat.size, 1 + flat.size // 4)] = 1
    try:
        expected = nm.encode(weight, e, dtype)
    except EncodingError as error:
        with pytest.raises(EncodingError) as found:
            PackedWeight.from_dense(as_tensor(weight, dtype), e)
        assert str(found.value) == str(error)
    else:
        assert_same(PackedWeight.from_dense(as_tensor(weight, dtype), e), expected)


@settings(max_examples=70, deadline=None)
@given(dense_weights())
def test_it_prunes_as_the_reference(case):
    weight, e, dtype = matrix(case)
    pruned, perm = prune_weight(as_tensor(weight, dtype), e)
    assert perm is None
    assert same(pruned, nm.prune(weight, e, dtype))


@pytest.mark.parametrize("seed", range(3))
def test_it_prunes_shuffled_weights_as_the_reference(seed):
    rng = np.random.default_rng(seed)
    e = Encoding(2, 4, (1, 4), dim=1, order="shuffled")
    weight = rng.standard_normal((13, 22)).astype(np.float32)
    pruned, perm = prune_weight(torch.from_numpy(weight), e)
    assert np.array_equal(pruned.numpy(), nm.prune(weight, e))
    packed = PackedWeight.from_dense(pruned, e, perm)
    assert torch.equal(packed.to_dense(), pruned)
    given_order = torch.from_numpy(rng.permutation(13))
    pruned, _ = prune_weight(torch.from_numpy(weight), e, perm=given_order)
    expected = nm.prune(weight, e, perm=given_order.numpy())
    assert np.array_equal(pruned.numpy(), expected)


@pytest.mark.parametrize("seed", range(4))
def test_scores_choose_what_is_kept(seed):
    rng = np.random.default_rng(seed)
    e = ENCODINGS[seed]
    n, k = ragged_shape(rng, e)
    weight = torch.from_numpy(rng.standard_normal((n, k)))
    scores = torch.from_numpy(rng.random((n, k)))
    pruned, _ = prune_weight(weight, e, scores)
    # Pruning the roots of scores by magnitude keeps the same places.
    expected, _ = prune_weight(scores.sqrt(), e)
    assert torch.equal(pruned != 0, expected != 0)
    by_function, _ = prune_weight(weight, e, lambda w: w.abs() * 0 + scores)
    assert torch.equal(by_function, pruned)


def test_scores_must_fit():
    weight, e = torch.ones(4, 8), Encoding(2, 4, dim=1)
    with pytest.raises(EncodingError, match=r"score is 'wonder': legal is 'magnitude'"):
        prune_weight(weight, e, "wonder")
    with pytest.raises(EncodingError, match=r"scores are \[8, 4\]: legal is a tensor"):
        prune_weight(weight, e, torch.ones(8, 4))
    with pytest.raises(EncodingError, match="scores are negative"):
        prune_weight(weight, e, -weight)
    with pytest.raises(EncodingError, match="perm is given, but order is 'identity'"):
        prune_weight(weight, e, perm=torch.arange(4))
    shuffled = replace(e, order="shuffled")
    with pytest.raises(EncodingError, match="perm is no permutation"):
        prune_weight(weight, shuffled, perm=torch.zeros(4, dtype=torch.int64))


@settings(max_examples=50, deadline=None)
@given(sparse_weights())
def test_numpy_and_back(case):
    weight, e, dtype = matrix(case)
    expected = nm.encode(weight, e, dtype)
    packed = PackedWeight.from_packed(expected)
    again = packed.to_packed()
    assert again.metadata() == expected.metadata()
    for name, array in expected.components.items():
        assert again.components[name].dtype == array.dtype
        assert np.array_equal(bits_of(again.components[name]), bits_of(array))
    turned = nm.encode(np.ascontiguousarray(weight.T), replace(e, dim=0), dtype)
    assert_same(PackedWeight.from_packed(turned), expected)


@pytest.mark.parametrize("m", [256, 257, 70000])
def test_positions_of_long_windows_are_unsigned(m):
    weight = np.zeros((2, m), np.float32)
    weight[0, m - 1] = weight[1, min(m - 1, 40000)] = 1
    e = Encoding(1, m, dim=1)
    packed = PackedWeight.from_dense(torch.from_numpy(weight), e)
    assert_same(packed, nm.encode(weight, e))
    packed.validate()
    assert np.array_equal(packed.to_dense().numpy(), weight)


@pytest.mark.parametrize("e", ENCODINGS, ids=str)
def test_unpacking_is_differentiable(e):
    rng = np.random.default_rng(7)
    n, k = ragged_shape(rng, e)
    weight, perm = prune_weight(torch.from_numpy(rng.standard_normal((n, k))), e)
    packed = PackedWeight.from_dense(weight, e, perm)
    packed.requires_grad_()
    upstream = torch.from_numpy(rng.standard_normal((n, k)))
    packed.to_dense().backward(upstream)
    kept = packed.grad
    assert isinstance(kept, PackedWeight)
    kept.validate()  # zero past the end of the weight
    dense = kept.to_dense()
    assert torch.equal(dense[weight != 0], upstream[weight != 0])


def test_damaged_components_are_refused():
    e = Encoding(2, 4, (1, 2), dim=1, order="shuffled")
    weight, perm = prune_weight(torch.randn(3, 6), e)
    packed = PackedWeight.from_dense(weight, e, perm)

    def damaged(name, change):
        parts = {key: part.clone() for key, part in packed.components.items()}
        change(parts[name])
        return PackedWeight.from_components(parts, e, (3, 6))

    with pytest.raises(EncodingError, match="index of window 0, panel 1 is "):
        damaged("index", lambda part: part[:2, 1].copy_(part[:2, 1].flip(0))).validate()
    with pytest.raises(EncodingError, match="increasing and below 4"):
        damaged("index", lambda part: part[1].fill_(4)).validate()
    with pytest.raises(EncodingError, match="beyond the last row or output"):
        damaged("values", lambda part: part.fill_(1)).validate()
    with pytest.raises(EncodingError, match="perm is no permutation"):
        damaged("perm", lambda part: part.fill_(1)).validate()


def test_components_must_fit():
    e = Encoding(2, 4, dim=1)
    parts = dict(PackedWeight.from_dense(torch.zeros(3, 8), e).components)
    with pytest.raises(EncodingError, match="values is .* a weight .* needs"):
        PackedWeight.from_components(parts, e, (4, 8))
    with pytest.raises(EncodingError, match="index is .*int64.* needs .*uint8"):
        wide = {**parts, "index": parts["index"].long()}
        PackedWeight.from_components(wide, e, (3, 8))
    with pytest.raises(EncodingError, match="components are values: legal are values"):
        PackedWeight.from_components({"values": parts["values"]}, e, (3, 8))
    with pytest.raises(EncodingError, match="element type is torch.int32: legal is"):
        PackedWeight.from_dense(torch.zeros(3, 8, dtype=torch.int32), e)
    with pytest.raises(EncodingError, match="weight has rank 1"):
        PackedWeight.from_dense(torch.zeros(3), e)
    with pytest.raises(EncodingError, match="encoding is free: layers of torch"):
        PackedWeight.from_dense(torch.zeros(3, 8), "free")


def test_it_moves_and_converts():
    packed = PackedWeight.from_dense(torch.eye(8), "2:4, block = [1, 1]")
    half = packed.to(torch.bfloat16)
    assert (
        half.dtype == torch.bfloat16 and half.components["index"].dtype == torch.uint8
    )
    assert torch.equal(half.to_dense().float(), torch.eye(8))
    meta = packed.to("meta")
    assert {part.device.type for part in meta.components.values()} == {"meta"}
    assert packed.ndim == 2 and not packed.is_cuda and not packed.requires_grad


@settings(max_examples=40, deadline=None)
@given(sparse_weights(types=("f16",)), st.sampled_from(["identity", "shuffled"]))
def test_text_of_any_spec(case, order):
    e = replace(case[1], order=order)
    spec = LinearSpec(replace(e, dim=1), (3, 5), "f16", "relu")
    assert LinearSpec.parse(spec.text) == spec


def test_specs_must_fit():
    e = Encoding(2, 4, dim=1)
    with pytest.raises(EncodingError, match="activation is 'tanh': legal is none"):
        LinearSpec(e, (4, 4), "f16", "tanh")
    with pytest.raises(EncodingError, match="dtype is 'float16': legal is f64, f32"):
        LinearSpec(e, (4, 4), "float16")
    with pytest.raises(EncodingError, match=r"shape is \[4\]: legal is \[N, K\]"):
        LinearSpec(e, (4,), "f16")
    with pytest.raises(EncodingError, match="legal is the text of a LinearSpec"):
        LinearSpec.parse("{}")
    turned = LinearSpec(e, (4, 4), "f16").text.replace('"dim":1', '"dim":0')
    with pytest.raises(EncodingError, match="spec says dim 0"):
        LinearSpec.parse(turned)
    with pytest.raises(EncodingError, match="dim is 2"):
        LinearSpec(Encoding(2, 4, dim=2), (4, 4), "f16")
    assert LinearSpec(Encoding(2, 4), (4, 4), "f16").encoding.dim == 1

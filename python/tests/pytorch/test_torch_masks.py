# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks, scores and orders of nm_sparse.torch.prune agree with the reference."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from strategies import V_N_M, levels  # noqa: E402

from nm_sparse import Encoding, EncodingError, Level, prune, search_order  # noqa: E402
from nm_sparse.torch.prune import (  # noqa: E402
    Statistics,
    element_scores,
    output_order,
    pattern_mask,
    surgeon,
    wanda,
)


@st.composite
def cases(draw):
    """(weight [N, K], encoding, density): ragged windows and panels, few ties."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    order = draw(st.sampled_from(["identity", "shuffled"]))
    if draw(st.integers(0, 3)) == 0:
        block = (draw(st.integers(1, 5)), draw(st.integers(1, 5)))
        encoding, density = Encoding.free(block, 1, order), float(rng.random())
    else:
        outer, inner = draw(st.one_of(levels(), st.sampled_from(V_N_M)))
        encoding = Encoding(outer.n, outer.m, outer.block, 1, order, inner)
        density = None
    shape = draw(st.integers(1, 80)), draw(st.integers(1, 50))
    return rng.standard_normal(shape), encoding, density


@settings(max_examples=150, deadline=None)
@given(cases())
def test_masks_are_those_of_the_reference(case):
    weight, encoding, density = case
    perm, torch_perm = None, None
    if encoding.is_shuffled:
        perm = np.random.default_rng(len(weight)).permutation(len(weight))
        torch_perm = torch.from_numpy(perm)
    expected = prune(weight, encoding, density=density, perm=perm) != 0
    mask = pattern_mask(torch.from_numpy(weight), encoding, density, torch_perm)
    assert mask.dtype == torch.bool
    assert np.array_equal(mask.numpy(), expected)


@settings(max_examples=20, deadline=None)
@given(cases())
def test_orders_are_those_of_the_reference(case):
    weight, encoding, density = case
    if not encoding.is_shuffled:
        with pytest.raises(EncodingError, match="only 'shuffled' has an order"):
            output_order(torch.from_numpy(weight), encoding, density)
        return
    found = output_order(torch.from_numpy(weight), encoding, density)
    assert np.array_equal(found.numpy(), search_order(weight, encoding, None, density))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_masks_of_narrow_types(dtype):
    draw = torch.Generator().manual_seed(5)
    weight = torch.randn(33, 70, generator=draw).to(dtype)
    encoding = Encoding(4, 10, (1, 8), 1, inner=Level(2, 4))
    expected = prune(weight.double().numpy(), encoding) != 0
    assert np.array_equal(pattern_mask(weight, encoding).numpy(), expected)


def test_text_means_a_weight_of_outputs_by_inputs():
    weight = torch.tensor([[1.0, -4.0, 3.0, 2.0]])
    expected = [[False, True, True, False]]
    assert pattern_mask(weight, "2:4").tolist() == expected
    assert pattern_mask(weight, Encoding(2, 4)).tolist() == expected
    assert pattern_mask(weight, "free", density=0.5).tolist() == expected


def test_equal_scores_keep_the_first_blocks():
    ones = torch.ones(2, 8)
    assert pattern_mask(ones, "1:4").nonzero().tolist() == [
        [0, 0], [0, 4], [1, 0], [1, 4],
    ]  # fmt: skip
    assert pattern_mask(ones, "free", density=0.25).nonzero().tolist() == [
        [0, 0], [0, 1], [0, 2], [0, 3],
    ]  # fmt: skip


def statistics(x):
    found = Statistics(x.shape[1])
    found.add(x)
    return found


def test_wanda_is_magnitude_times_norm_of_the_input():
    draw = torch.Generator().manual_seed(1)
    weight = torch.randn(5, 7, generator=draw)
    x = torch.randn(11, 7, generator=draw)
    expected = weight.abs().double() * x.double().norm(dim=0)
    by_layer = element_scores(weight, "wanda", statistics(x))
    for found in (wanda(weight, x.norm(dim=0)), by_layer):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)


def test_surgeon_is_the_least_error_of_dropping_one_element():
    draw = torch.Generator().manual_seed(2)
    weight = torch.randn(3, 6, generator=draw, dtype=torch.float64)
    x = torch.randn(40, 6, generator=draw, dtype=torch.float64)
    scores = surgeon(weight, statistics(x), damping=0.0)
    for output, dropped in np.ndindex(3, 6):
        others = [at for at in range(6) if at != dropped]
        wanted = x @ weight[output]
        best = torch.linalg.lstsq(x[:, others], wanted[:, None]).solution[:, 0]
        error = (x[:, others] @ best - wanted).square().sum()
        assert float(scores[output, dropped] ** 2) == pytest.approx(float(error))


def test_a_score_of_ones_own():
    weight = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    found = element_scores(weight, lambda w, statistics: 1 / w)
    assert found.tolist() == (1 / weight).tolist()


@pytest.mark.parametrize(
    "score, message",
    [
        ("norm", "score is 'norm': legal is 'magnitude', 'wanda', 'surgeon'"),
        ("wanda", "'wanda' without statistics of the inputs: pass calibration"),
        ("surgeon", "'surgeon' without statistics"),
        (lambda w, s: w[0], r"returned \[4\]: legal is a tensor \[3, 4\]"),
        (lambda w, s: 1.0, "returned float: legal is a tensor"),
        (lambda w, s: -torch.ones_like(w), "negative: legal are non-negative"),
    ],
)
def test_wrong_scores(score, message):
    with pytest.raises(EncodingError, match=message):
        element_scores(torch.ones(3, 4), score)


def test_wrong_norms():
    with pytest.raises(EncodingError, match=r"shape \[3\]: legal is \[4\]"):
        wanda(torch.ones(3, 4), torch.ones(3))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("free",), "density is None of free.*share from 0 to 1"),
        (("2:4", 0.5), "density is 0.5 of 2:4"),
        (("free", 1.5), "density is 1.5: legal is from 0 to 1"),
        (("2:4, block = [1, 2], order = shuffled",), "perm is None, and order is"),
        (("2:4", None, torch.arange(3)), "perm is given, and order is 'identity'"),
        (("2:4, order = shuffled", None, torch.tensor([0, 0, 1])), "no permutation"),
        (("2:4, order = shuffled", None, torch.arange(4)), "no permutation"),
        ((7,), "encoding is 7: legal is an Encoding or its text"),
        ((Encoding(2, 4, dim=2),), "dim is 2"),
    ],
)
def test_wrong_patterns(arguments, message):
    with pytest.raises(EncodingError, match=message):
        pattern_mask(torch.ones(3, 4), *arguments)


def test_wrong_ranks():
    with pytest.raises(EncodingError, match="rank 3: legal is 2"):
        pattern_mask(torch.ones(2, 3, 4), "2:4")
    with pytest.raises(EncodingError, match="rank 1: legal is 2"):
        output_order(torch.ones(4), "2:4, block = [1, 2], order = shuffled")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The least-squares fit of kept weights, against numpy's lstsq."""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from nm_sparse import Encoding, EncodingError, Level, output_error  # noqa: E402
from nm_sparse.torch.prune import Statistics, fit, pattern_mask  # noqa: E402
from nm_sparse.torch.prune.least_squares import same_supports  # noqa: E402

PATTERNS = [
    Encoding(2, 4, dim=1),
    Encoding(5, 8, (1, 4), dim=1),
    Encoding(1, 2, (3, 5), dim=1),
    Encoding(4, 6, (1, 8), dim=1, inner=Level(2, 4)),
    Encoding(2, 3, (2, 64), dim=1),
]


def problem(seed, tokens=200):
    """(weight, mask, x) of a random shape and pattern."""
    rng = np.random.default_rng(seed)
    outputs, inputs = rng.integers(1, 40), rng.integers(1, 50)
    mixed = rng.standard_normal((inputs, inputs)) / np.sqrt(inputs)
    x = rng.standard_normal((tokens, inputs)) @ (mixed + 0.3 * np.eye(inputs))
    weight = torch.from_numpy(rng.standard_normal((outputs, inputs)))
    encoding = PATTERNS[seed % len(PATTERNS)]
    return weight, pattern_mask(weight, encoding), torch.from_numpy(x)


def by_lstsq(weight, mask, x, target, damping):
    """The damped fit, output by output: further rows hold weights to what they were."""
    x, target = x.numpy(), target.numpy()
    root = np.sqrt(damping * (x**2).sum(axis=0).mean())
    result = np.zeros(weight.shape)
    for output, (w, kept) in enumerate(zip(weight.numpy(), mask.numpy())):
        rows = np.concatenate([x, root * np.eye(len(w))])
        wanted = np.concatenate([target @ w, root * w])
        result[output, kept] = np.linalg.lstsq(rows[:, kept], wanted, rcond=None)[0]
    return result


@pytest.mark.parametrize("seed", range(20))
def test_fit_is_that_of_lstsq(seed):
    weight, mask, x = problem(seed)
    damping = (0.0, 0.01, 0.5)[seed % 3]
    # Chunks of one matrix, of some, and of all.
    chunk = (1, 20000, 1 << 28)[seed % 3]
    found = fit(weight, mask, x.t() @ x, damping=damping, chunk_bytes=chunk)
    assert found.damping == damping and found.raised == 0
    expected = by_lstsq(weight, mask, x, x, damping)
    np.testing.assert_allclose(found.weight.numpy(), expected, rtol=1e-6, atol=1e-8)
    assert (found.weight[~mask] == 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_fit_to_outputs_of_other_inputs(seed):
    weight, mask, x = problem(seed)
    draw = torch.Generator().manual_seed(seed)
    dense = x + 0.3 * torch.randn(x.shape, generator=draw, dtype=x.dtype)
    found = fit(weight, mask, x.t() @ x, x.t() @ dense, damping=0.02)
    expected = by_lstsq(weight, mask, x, dense, 0.02)
    np.testing.assert_allclose(found.weight.numpy(), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_errors_are_those_of_the_advice(seed):
    draw = torch.Generator().manual_seed(seed)
    weight = torch.randn(24, 36, generator=draw, dtype=torch.float64)
    x = torch.randn(100, 36, generator=draw, dtype=torch.float64)
    stats = Statistics(36)
    stats.add(x)
    encoding = PATTERNS[seed]
    scores = weight.abs() * stats.norms
    found = fit(weight, pattern_mask(scores, encoding), stats.gram, damping=1e-9)
    error = stats.output_error(weight, found.weight) / stats.output_energy(weight)
    expected = output_error(weight.numpy(), encoding, stats.gram.numpy())
    assert float(error.sqrt()) == pytest.approx(expected, rel=1e-4)


def test_a_fit_never_makes_the_outputs_worse():
    for seed in range(5):
        weight, mask, x = problem(seed)
        stats = Statistics(x.shape[1])
        stats.add(x)
        found = fit(weight, mask, stats.gram, damping=1e-6)
        before = stats.output_error(weight, weight * mask)
        assert stats.output_error(weight, found.weight) <= before * (1 + 1e-9)


def test_supports_are_found_once_each():
    draw = torch.Generator().manual_seed(3)
    rows = torch.rand(7, 300, generator=draw) < 0.5
    names = torch.randint(7, (100,), generator=draw)
    first, group = same_supports(rows[names])
    assert len(first) == len(names.unique())
    for output, name in enumerate(names.tolist()):
        assert torch.equal(rows[names][first[group[output]]], rows[name])


def test_damping_is_raised_where_the_matrix_is_indefinite():
    gram = torch.eye(4, dtype=torch.float64)
    gram[0, 1] = gram[1, 0] = 1.2  # as of sums in a narrow type
    mask = torch.tensor([[True, True, False, False], [False, False, True, True]])
    weight = torch.ones(2, 4, dtype=torch.float64)
    found = fit(weight, mask, gram, damping=0.01)
    assert found.damping == 1.0 and found.raised == 1
    assert torch.isfinite(found.weight).all()


def test_inputs_that_are_always_zero():
    weight, mask = torch.ones(2, 4), torch.tensor([[True, False, True, False]] * 2)
    found = fit(weight, mask, torch.zeros(4, 4))
    assert found.weight.tolist() == [[1, 0, 1, 0]] * 2
    # One of them alone keeps its weight.
    gram = torch.diag(torch.tensor([0.0, 1.0, 1.0, 1.0]))
    found = fit(weight, mask, gram, damping=0.01)
    torch.testing.assert_close(found.weight, torch.tensor([[1.0, 0, 1, 0]] * 2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_type_of_the_weight_is_kept(dtype):
    weight = torch.ones(3, 4, dtype=dtype)
    found = fit(weight, torch.ones(3, 4, dtype=torch.bool), torch.eye(4))
    torch.testing.assert_close(found.weight, weight)  # of the same type


def test_nothing_is_kept():
    found = fit(torch.ones(2, 3), torch.zeros(2, 3, dtype=torch.bool), torch.eye(3))
    assert found.weight.tolist() == [[0, 0, 0]] * 2


MASK = torch.ones(2, 3, dtype=torch.bool)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((MASK.T, torch.eye(3)), r"mask is torch.bool of shape \[3, 2\]"),
        ((MASK.float(), torch.eye(3)), "mask is torch.float32"),
        ((MASK, torch.eye(2)), r"gram has shape \[2, 2\]: legal is \[3, 3\]"),
        ((MASK, torch.eye(3), torch.eye(4)), r"cross has shape \[4, 4\]"),
        ((MASK, torch.eye(3).half()), "gram is torch.float16: legal is float32"),
        ((MASK, torch.eye(3), None, -1.0), "damping is -1.0: legal is from 0 to 1"),
        ((MASK, torch.full((3, 3), torch.nan)), "diagonal is nan: legal is a finite"),
        (
            (MASK, torch.tensor([[1.0, 9, 9], [9, 1, 9], [9, 9, 1]])),
            "not positive semidefinite, with damping 1.0 still",
        ),
    ],
)
def test_wrong_problems(arguments, message):
    with pytest.raises(EncodingError, match=message):
        fit(torch.ones(2, 3), *arguments)


@pytest.mark.parametrize("chunk", [1, 20000, 1 << 28])
def test_threads_share_the_matrices(chunk):
    torch.manual_seed(0)
    weight, x = torch.randn(40, 48), torch.randn(200, 48, dtype=torch.float64)
    mask = pattern_mask(weight, "2:4")
    wanted, before = fit(weight, mask, x.t() @ x).weight, torch.get_num_threads()
    counts = []
    try:
        torch.set_num_threads(3)
        for grad in (torch.no_grad(), torch.inference_mode()):
            with grad:
                found = fit(weight, mask, x.t() @ x, chunk_bytes=chunk).weight
            torch.testing.assert_close(found, wanted)
        assert torch.get_num_threads() == 3
        other = threading.Thread(target=lambda: counts.append(torch.get_num_threads()))
        other.start()
        other.join()
        assert counts == [3]
        gram = x.t() @ x
        gram[0, 1] = gram[1, 0] = 1e6
        with pytest.raises(EncodingError, match="not positive semidefinite"):
            fit(weight, torch.ones_like(mask), gram)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)

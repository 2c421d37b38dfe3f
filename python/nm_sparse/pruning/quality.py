# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a sparsity pattern keeps of a trained weight, in float64.

docs/Advise.md defines both figures; `nm-compile --advise` computes them for many
patterns. Here they are as short as can be, for any encoding with n:m levels.
"""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

import numpy as np

from ..encoding import Encoding, EncodingError, extents
from ..reference import _numbers
from .prune import prune

# Added to the diagonal of a matrix to solve, of the mean of the Gram matrix's: the
# least, and the most, where sums in narrow types have made it indefinite.
LEAST_RIDGE, MOST_RIDGE = 1e-6, 1e-1


def _outputs(
    weight: np.ndarray, encoding: Encoding, dtype: Optional[str]
) -> np.ndarray:
    """The weight in float64, outputs x inputs."""
    if encoding.is_free or encoding.is_shuffled or weight.ndim != 2:
        raise EncodingError("legal are matrices and n:m encodings in identity order")
    extents(encoding, weight.shape)
    numbers = (
        _numbers(weight, dtype)
        if dtype and weight.dtype.kind == "u"
        else weight.astype(np.float64)
    )
    if not np.isfinite(numbers).all():
        raise EncodingError("legal are finite elements")
    return numbers if encoding.dim == 1 else np.ascontiguousarray(numbers.T)


def _prune(
    weight: np.ndarray, encoding: Encoding, gram: Optional[np.ndarray]
) -> Tuple[np.ndarray, np.ndarray]:
    """The weight times the norms of its inputs, and what pruning leaves of that."""
    scaled = weight if gram is None else weight * np.sqrt(np.diag(gram))
    e = Encoding(encoding.n, encoding.m, encoding.block, 1, inner=encoding.inner)
    return scaled, prune(np.ascontiguousarray(scaled), e)


def _symmetric(gram: Optional[np.ndarray]) -> Optional[np.ndarray]:
    return None if gram is None else (gram.astype(np.float64) + gram.T) / 2


def kept_importance(
    weight: np.ndarray,
    encoding: Encoding,
    gram: Optional[np.ndarray] = None,
    dtype: Optional[str] = None,
) -> float:
    """The share of the importance of all elements that pruning keeps, 0 to 1.

    weight:  K x N with dim = 0, N x K with dim = 1.
    gram:    X^T X of inputs X, tokens x K. An element at input k counts with its
             square times gram[k, k]; without, with its square.
    dtype:   element type, needed for unsigned views of bf16 and f8 only.
    """
    numbers = _outputs(weight, encoding, dtype)
    scaled, pruned = _prune(numbers, encoding, _symmetric(gram))
    total = float((scaled**2).sum())
    return float((pruned**2).sum()) / total if total else 1.0


def kept_magnitude(weight: np.ndarray, pruned: np.ndarray) -> Tuple[float, float]:
    """The shares of the sums of |w| and of w^2 that `pruned` has of `weight`, both as
    numbers: 0 to 1, and 1 where there is nothing to keep."""
    before, after = (np.abs(w.astype(np.float64)) for w in (weight, pruned))
    sums = [(float((after**p).sum()), float((before**p).sum())) for p in (1, 2)]
    first, second = (kept / total if total else 1.0 for kept, total in sums)
    return first, second


def output_error(
    weight: np.ndarray,
    encoding: Encoding,
    gram: Optional[np.ndarray] = None,
    dtype: Optional[str] = None,
    outputs: Optional[Sequence[int]] = None,
) -> float:
    """How far the outputs are from the dense layer's, relative to their norm, with
    the best choice of the elements that are kept: the least squares fit of each
    output.

    gram:     as above; without, inputs are taken to be alike and independent.
    outputs:  of these outputs alone; None: of all.
    """
    numbers, gram = _outputs(weight, encoding, dtype), _symmetric(gram)
    _, pruned = _prune(numbers, encoding, gram)
    gram = np.eye(numbers.shape[1]) if gram is None else gram
    # The blocks in which anything is left.
    bk, bn = (encoding.inner or encoding).block
    kept = np.logical_or.reduceat(pruned != 0, range(0, pruned.shape[1], bk), axis=1)
    kept = np.logical_or.reduceat(kept, range(0, pruned.shape[0], bn), axis=0)
    kept = kept.repeat(bn, axis=0).repeat(bk, axis=1)
    changed = total = 0.0
    for output in range(len(numbers)) if outputs is None else outputs:
        w, s = numbers[output], np.flatnonzero(kept[output, : numbers.shape[1]])
        change = w.copy()
        change[s] -= _solve(gram[np.ix_(s, s)], (gram @ w)[s], np.diag(gram).mean())
        changed += max(float(change @ gram @ change), 0.0)
        total += max(float(w @ gram @ w), 0.0)
    return float(np.sqrt(changed / total)) if total else 0.0


def _solve(matrix: np.ndarray, right: np.ndarray, mean: float) -> np.ndarray:
    ridge = LEAST_RIDGE
    while ridge <= MOST_RIDGE:
        try:
            lower = np.linalg.cholesky(matrix + ridge * mean * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            ridge *= 10
            continue
        return np.linalg.solve(lower.T, np.linalg.solve(lower, right))
    raise EncodingError("the Gram matrix is not positive semidefinite")

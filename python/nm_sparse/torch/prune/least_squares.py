# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The least-squares fit of the weights that pruning keeps.

With G = X^T X of the inputs X that a layer has seen and S the elements that an output
keeps, w'[S] = inv(G[S, S]) (G w)[S] changes its outputs least. Outputs that keep the
same elements share a factorisation; those that share it with none are factorised many
at a time.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ...encoding import EncodingError

CHUNK_BYTES = 1 << 28  # of matrices that are factorised together
CACHED_BYTES = 1 << 24  # of those that a thread of a CPU works on
MOST_DAMPING = 1.0  # of the mean of the diagonal, where a matrix is not definite


@dataclass
class Fit:
    """What `fit` has found.

    weight:   [N, K] in the type of the weight, zero where the mask is False.
    damping:  the largest that was needed, of the mean of the Gram matrix's diagonal.
    raised:   how many outputs needed more than was asked for, as their matrix was not
              positive definite.
    """

    weight: Tensor
    damping: float
    raised: int = 0


def fit(
    weight: Tensor,
    mask: Tensor,
    gram: Tensor,
    cross: Optional[Tensor] = None,
    damping: float = 0.03,
    chunk_bytes: int = CHUNK_BYTES,
) -> Fit:
    """The kept weights that change the outputs of a layer least.

    weight:   [N, K], dense.
    mask:     bool [N, K], which elements stay.
    gram:     [K, K], X^T X of the inputs X that the pruned layer sees, float32 or
              float64: the sums are in its type, and on its device.
    cross:    [K, K], X^T D: the outputs wanted are those for the inputs D. By default
              those for X.
    damping:  added to the diagonal of `gram`, of the mean of it. It holds the kept
              weights to what they are, and makes up for few tokens.

    Where a matrix is not positive definite, damping is raised tenfold until it is.
    Raises EncodingError when shapes do not fit, or damping of 1 is not enough.
    """
    _check(weight, mask, gram, cross, damping)
    numbers = weight.detach().to(gram)
    kept = mask.to(gram.device)
    mean = _mean(gram)
    if not mean > 0 or not math.isfinite(mean):
        if mean == 0:  # no input was ever other than zero: any weight is as good
            return Fit(_masked(weight, mask), damping)
        raise EncodingError(
            f"the mean of the Gram matrix's diagonal is {mean}: legal is a finite sum "
            "of squares; look for NaN and infinity in the inputs"
        )
    right, _ = targets(numbers, gram, cross, damping)
    result = torch.zeros_like(numbers)
    most, raised = damping, 0

    def solve(part: Tuple[Tensor, Tensor]) -> Tuple[Tensor, float, int]:
        outputs, rows = part
        return _solve(gram, rows, right[outputs], damping, mean)

    count = _threads(kept, gram, chunk_bytes)
    parts = list(_batches(kept, gram.element_size(), chunk_bytes, count))
    for (outputs, rows), solved in zip(parts, _in_threads(solve, parts, count)):
        found, used, failed = solved
        result[outputs[:, :, None], rows[:, None, :]] = found.transpose(1, 2)
        most, raised = max(most, used), raised + failed * outputs.shape[1]
    return Fit(result.to(weight), most, raised)


def _threads(kept: Tensor, gram: Tensor, chunk_bytes: int) -> int:
    """How many matrices are factorised at a time, each by one thread: several threads
    take longer for a small one than one does."""
    if kept.device.type != "cpu" or not kept.numel():
        return 1
    largest = int(kept.sum(dim=1).max())
    most = chunk_bytes // max(1, gram.element_size() * largest * largest)
    return max(1, min(torch.get_num_threads(), most))


def _in_threads(work: Callable[[Any], Any], items: Sequence[Any], count: int) -> Any:
    """Results of the items, in their order."""
    if count == 1 or len(items) == 1:
        yield from map(work, items)
        return
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(count, "fit", torch.set_num_threads, (1,)) as pool:
            yield from pool.map(work, items)
    finally:
        torch.set_num_threads(before)  # which new threads begin with


def _mean(gram: Tensor) -> float:
    return float(gram.diagonal().mean()) if gram.numel() else 0.0


def targets(
    numbers: Tensor, gram: Tensor, cross: Optional[Tensor], damping: float
) -> Tuple[Tensor, float]:
    """The right side of the normal equations of all outputs, [N, K], and what damping
    adds to the diagonal of `gram`.

    numbers:  the weight in the type of `gram`; the others as for `fit`.
    """
    added = damping * _mean(gram)
    right = numbers @ (gram if cross is None else cross.to(gram).t())
    return right + added * numbers, added


def _check(
    weight: Tensor,
    mask: Tensor,
    gram: Tensor,
    cross: Optional[Tensor],
    damping: float,
) -> None:
    if weight.ndim != 2 or mask.shape != weight.shape or mask.dtype != torch.bool:
        raise EncodingError(
            f"mask is {mask.dtype} of shape {list(mask.shape)}: legal is bool of the "
            f"shape of the weight [N, K], {list(weight.shape)}"
        )
    size = [weight.shape[1]] * 2
    for name, matrix in (("gram", gram), ("cross", cross)):
        if matrix is not None and list(matrix.shape) != size:
            raise EncodingError(
                f"{name} has shape {list(matrix.shape)}: legal is {size}, a row and a "
                "column for each input of the weight"
            )
    if gram.dtype not in (torch.float32, torch.float64):
        raise EncodingError(f"gram is {gram.dtype}: legal is float32 or float64")
    if not 0 <= damping <= MOST_DAMPING:
        raise EncodingError(f"damping is {damping}: legal is from 0 to {MOST_DAMPING}")


def _masked(weight: Tensor, mask: Tensor) -> Tensor:
    zero = torch.zeros((), dtype=weight.dtype, device=weight.device)
    return torch.where(mask.to(weight.device), weight.detach(), zero)


def same_supports(mask: Tensor) -> Tuple[Tensor, Tensor]:
    """(representative [U], group [N]): an output of each support, and the support of
    each output."""
    outputs, k = mask.shape
    # Random whole numbers whose sums are exact name a support.
    bits = max(8, 52 - max(k, 2).bit_length())
    draw = torch.Generator().manual_seed(0)
    names = torch.randint(1 << bits, (k,), generator=draw).to(mask.device)
    name = mask.double() @ names.double()
    _, group = torch.unique(name, return_inverse=True)
    first = _first_of(group)
    if not torch.equal(mask[first[group]], mask):  # two supports of one name
        _, group = torch.unique(mask, dim=0, return_inverse=True)
        first = _first_of(group)
    return first, group


def _first_of(group: Tensor) -> Tensor:
    """[U]: the first member of each group, which are numbered from 0."""
    count = int(group.max()) + 1 if group.numel() else 0
    first = torch.full((count,), len(group), device=group.device)
    members = torch.arange(len(group), device=group.device)
    return first.scatter_reduce_(0, group, members, "amin")


def _batches(
    mask: Tensor, item_bytes: int, chunk_bytes: int, count: int = 1
) -> Iterator[Tuple[Tensor, Tensor]]:
    """(outputs [B, r], inputs [B, s]): B supports of s inputs with r outputs each.

    count:  how many are worked on at the same time.
    """
    most = chunk_bytes // count
    if mask.device.type == "cpu":
        most = min(most, CACHED_BYTES)
    first, group = same_supports(mask)
    sizes = torch.bincount(group, minlength=len(first))
    counts = mask[first].sum(dim=1)
    members = torch.argsort(group, stable=True)
    starts = torch.cumsum(sizes, 0) - sizes
    shapes = torch.stack([counts, sizes], dim=1)
    for shape in torch.unique(shapes, dim=0).tolist():
        s, r = shape
        if s == 0:
            continue
        alike = torch.nonzero((shapes == shapes.new_tensor(shape)).all(1)).flatten()
        step = max(1, most // (item_bytes * s * s))
        for part in alike.split(step):
            offsets = torch.arange(r, device=mask.device)
            outputs = members[starts[part][:, None] + offsets]
            inputs = torch.nonzero(mask[first[part]])[:, 1].reshape(len(part), s)
            yield outputs, inputs


def _solve(
    gram: Tensor, rows: Tensor, right: Tensor, damping: float, mean: float
) -> Tuple[Tensor, float, int]:
    """Solutions [B, s, r], the damping that all had, and how many had to have more.

    rows:   [B, s], the inputs of each support.
    right:  [B, r, K].
    """
    matrices = _submatrices(gram, rows)
    wanted = right.gather(2, rows[:, None, :].expand(-1, right.shape[1], -1))
    wanted = wanted.transpose(1, 2)
    matrices.diagonal(dim1=1, dim2=2).add_(damping * mean)
    lower, info = torch.linalg.cholesky_ex(matrices)
    failed: List[int] = torch.nonzero(info).flatten().tolist()
    used = damping
    for at in failed:
        lower[at], least = _factorise(matrices[at], damping, mean)
        used = max(used, least)
    # Faster by far than torch.cholesky_solve, which copies the factors.
    half = torch.linalg.solve_triangular(lower, wanted, upper=False)
    return torch.linalg.solve_triangular(lower.mT, half, upper=True), used, len(failed)


def _submatrices(gram: Tensor, rows: Tensor) -> Tensor:
    """[B, s, s]: what `gram` has at the inputs [B, s] of each support."""
    if gram.device.type != "cpu":
        return gram[rows[:, :, None], rows[:, None, :]]
    count, size = rows.shape
    found, part = gram.new_empty(count, size, size), gram.new_empty(size, len(gram))
    for one, own in zip(found, rows):  # in a third of the time that the above takes
        torch.index_select(gram, 0, own, out=part)
        torch.index_select(part, 1, own, out=one)
    return found


def _factorise(matrix: Tensor, damping: float, mean: float) -> Tuple[Tensor, float]:
    """The factor of `matrix`, which has been damped and was not positive definite, and
    the damping in all."""
    more = max(damping, 1e-6)
    while more < MOST_DAMPING:
        more = min(10 * more, MOST_DAMPING)
        damped = matrix.clone()
        damped.diagonal().add_((more - damping) * mean)
        lower, info = torch.linalg.cholesky_ex(damped)
        if int(info) == 0:
            return lower, more
    raise EncodingError(
        f"the Gram matrix is not positive semidefinite, with damping {MOST_DAMPING} "
        "still: legal is X^T X of finite inputs X; accumulate it in float64"
    )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One level of docs/Encoding.md on tensors: blocks, positions, packing, unpacking.

Shapes are written as in that page: W windows of m blocks of bk rows, P panels of bn
outputs, n kept blocks in each window and panel. Everything is differentiable in the
elements, so that unpacking and gathering are each other's gradients.
"""

from __future__ import annotations

from typing import Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ...encoding import EncodingError, Level

# Bytes of an element -> integers that hold its bits.
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Types that most operators do not know, although they can be stored -> those of
# equal bits that they know.
_SIGNLESS = {
    torch.uint16: torch.int16,
    torch.uint32: torch.int32,
    torch.uint64: torch.int64,
}


def index_dtype(m: int) -> torch.dtype:
    """The integers that hold positions below m. Their bits are read as unsigned."""
    return torch.uint8 if m <= 1 << 8 else torch.int16 if m <= 1 << 16 else torch.int32


def signless(tensor: Tensor) -> Tensor:
    """The same bits as uint8, int16 or int32, where they are wider unsigned ones."""
    return tensor.view(_SIGNLESS.get(tensor.dtype, tensor.dtype))


def bits_of(tensor: Tensor) -> Tensor:
    """The bits of contiguous elements."""
    return tensor.view(BITS[tensor.element_size()])


def sizes(level: Level, k: int, outputs: int) -> Tuple[int, int]:
    """W and P of k rows and some outputs."""
    bk, bn = level.block
    return -(-k // (level.m * bk)), -(-outputs // bn)


def blocks_of(rows: Tensor, level: Level) -> Tensor:
    """`rows` [K, N], padded with zeros, as [W, m, bk, P, bn]."""
    (k, outputs), (bk, bn) = rows.shape, level.block
    windows, panels = sizes(level, k, outputs)
    below, beside = windows * level.m * bk - k, panels * bn - outputs
    if below or beside:
        rows = F.pad(rows, (0, beside, 0, below))
    return rows.reshape(windows, level.m, bk, panels, bn)


def unsigned(index: Tensor) -> Tensor:
    """Positions as int64: the bits of int16 are those of unsigned numbers."""
    wide = index.to(torch.int64)
    return wide & 0xFFFF if index.dtype == torch.int16 else wide


def positions_of(index: Tensor, level: Level) -> Tensor:
    """`index` [W * n, P] as int64 [W, n, P]."""
    rows, panels = index.shape
    return unsigned(index).reshape(rows // level.n, level.n, panels)


def _along(positions: Tensor, level: Level) -> Tensor:
    """`positions` [W, n, P] as a view [W, n, bk, P, bn]."""
    (windows, n, panels), (bk, bn) = positions.shape, level.block
    return positions[:, :, None, :, None].expand(windows, n, bk, panels, bn)


def unpack_level(values: Tensor, positions: Tensor, level: Level) -> Tensor:
    """[W * m * bk, P * bn]: `values` [W * n * bk, P * bn], and zero elsewhere."""
    (windows, n, panels), (bk, bn) = positions.shape, level.block
    stored = values.reshape(windows, n, bk, panels, bn)
    blocks = stored.new_zeros(windows, level.m, bk, panels, bn)
    blocks = blocks.scatter_(1, _along(positions, level), stored)
    return blocks.reshape(windows * level.m * bk, panels * bn)


def gather_level(rows: Tensor, positions: Tensor, level: Level) -> Tensor:
    """[W * n * bk, P * bn]: what `rows` [K, N] have at `positions` [W, n, P]."""
    (windows, n, panels), (bk, bn) = positions.shape, level.block
    values = blocks_of(rows, level).gather(1, _along(positions, level))
    return values.reshape(windows * n * bk, panels * bn)


def choose_level(
    bits: Tensor, level: Level, magnitude: int, place: Tuple[str, str]
) -> Tensor:
    """Positions, int64 [W, n, P], of the blocks that an encoder keeps.

    bits:       [K, N] integers.
    magnitude:  mask of all bits but the sign; all bits of a type without a
                negative zero.
    place:      what an error says behind the pattern, and of what it names one.

    Raises EncodingError naming the first window and panel with more than n live
    blocks.
    """
    blocks, n = blocks_of(bits, level), level.n
    marked = (blocks != 0).any(4).any(2)  # a nonzero, a NaN or a -0
    live = ((blocks & magnitude) != 0).any(4).any(2)
    counts = live.sum(1)
    if bool((counts > n).any()):
        window, panel = torch.nonzero(counts > n)[0].tolist()
        raise EncodingError(
            f"weight is not {n}:{level.m}{place[0]}: window {window} of {place[1]} "
            f"{panel} has {int(counts[window, panel])} nonzero blocks, legal is at "
            f"most {n}; prune the weight or use a larger n"
        )
    # Nonzero blocks first, then those with a -0, then the lowest positions.
    rank = 2 - live.to(torch.int8) - marked.to(torch.int8)
    order = torch.argsort(rank, dim=1, stable=True)
    return order[:, :n].sort(dim=1).values


def check_level(index: Tensor, level: Level, name: str) -> None:
    """Raises EncodingError unless positions increase and are below m."""
    kept = positions_of(index, level)
    wrong = (kept >= level.m).any(1) | (kept.diff(dim=1) <= 0).any(1)
    if level.n and bool((kept < 0).any()):
        wrong = wrong | (kept < 0).any(1)
    if bool(wrong.any()):
        window, panel = torch.nonzero(wrong)[0].tolist()
        raise EncodingError(
            f"{name} of window {window}, panel {panel} is "
            f"{kept[window, :, panel].tolist()}: legal is strictly increasing and "
            f"below {level.m}"
        )

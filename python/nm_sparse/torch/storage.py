# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other packed forms of a weight, made on its device from the canonical one.

Bitmaps are those of section 7 of docs/Encoding.md; `nm_sparse.pack_bitmap` is their
reference.
"""

from __future__ import annotations

from typing import List, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ..bitmap import OUTPUTS, PIECE, bitmap_shape, innermost_weight
from ..encoding import EncodingError, Level
from .levels import BITS, positions_of
from .spec import LinearSpec

STORAGES = ("canonical", "bitmap")


def to_storage(
    components: Sequence[Tensor], spec: LinearSpec, form: str
) -> List[Tensor]:
    """The components in another packed form.

    components:  canonical, in their order.
    spec:        encoding and shape of the weight.
    form:        "canonical", or "bitmap": the values, of two levels the index of the
                 outer one, the bits (int32, read as unsigned), and perm if there is
                 one.

    Raises EncodingError when there is no such form.
    """
    if form == "canonical":
        return list(components)
    if form != "bitmap":
        raise EncodingError(f"storage is {form!r}: legal is {', '.join(STORAGES)}")
    e, (n, k) = spec.encoding, spec.shape
    if e.inner is not None and e.block[1] % OUTPUTS:
        raise EncodingError(
            f"block is {list(e.block)}: bitmaps of two levels have panels of a "
            f"multiple of {OUTPUTS} outputs"
        )
    last = len(e.levels)
    inner, rows, outputs = innermost_weight(e, k, n)
    values, bits = _bitmap(components[0], components[last], inner, rows, outputs)
    return [values, *components[1:last], bits, *components[last + 1 :]]


def _bitmap(values: Tensor, index: Tensor, e: Level, k: int, n: int) -> List[Tensor]:
    """Values [blocks, tiles, tile_values * 32] and bits [blocks, tiles, 32 * words] of
    a weight of one level that contracts k, with n outputs."""
    shape = bitmap_shape(e, k, n, values.element_size())
    outputs = shape.blocks * OUTPUTS
    rows = _kept(positions_of(index, e), e, shape.tiles * shape.tile_rows, outputs)
    cut = rows.reshape(shape.tiles, shape.tile_rows, shape.blocks, OUTPUTS)
    cut = F.pad(cut.permute(2, 0, 3, 1), (0, shape.words * 32 - shape.tile_rows))
    cut = cut.reshape(shape.blocks, shape.tiles, OUTPUTS * shape.words, 32)
    # The first row is the highest bit; the sum has the bits of an unsigned number.
    weights = 1 << torch.arange(31, -1, -1, device=values.device)
    bits = (cut * weights).sum(-1)
    bits = torch.where(bits >= 1 << 31, bits - (1 << 32), bits).to(torch.int32)

    plain = values.contiguous().view(BITS[values.element_size()])
    common = min(plain.shape[1], outputs)
    stored = plain.new_zeros(shape.tiles * shape.tile_values, outputs)
    stored[: plain.shape[0], :common] = plain[:, :common]
    piece = PIECE // values.element_size()
    pieces = shape.tile_values // piece
    stored = stored.reshape(shape.tiles, pieces, piece, shape.blocks, OUTPUTS)
    stored = stored.permute(3, 0, 1, 4, 2).contiguous().view(values.dtype)
    flat = stored.reshape(shape.blocks, shape.tiles, shape.tile_values * OUTPUTS)
    return [flat, bits.reshape(shape.blocks, shape.tiles, OUTPUTS * shape.words)]


def _kept(positions: Tensor, e: Level, rows: int, outputs: int) -> Tensor:
    """Which rows each output keeps, bool [rows, outputs]; where the canonical form has
    nothing, the first ones of each window."""
    (windows, _, panels), (bk, bn) = positions.shape, e.block
    blocks = torch.zeros(
        (windows, e.m, panels), dtype=torch.bool, device=positions.device
    )
    blocks = blocks.scatter_(1, positions, True)
    kept = blocks.repeat_interleave(bk, dim=1).repeat_interleave(bn, dim=2)
    height, common = e.m * bk, min(panels * bn, outputs)
    padded = torch.zeros(
        (rows // height, height, outputs), dtype=torch.bool, device=positions.device
    )
    padded[:, : e.n * bk] = True
    padded[:windows, :, :common] = kept[:, :, :common]
    return padded.reshape(rows, outputs)

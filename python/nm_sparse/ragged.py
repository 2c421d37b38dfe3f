# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ragged panels: how kernels read free weights (docs/Encoding.md, versions 10, 11)."""

from __future__ import annotations

from typing import Dict

import numpy as np

from .encoding import Encoding, EncodingError, Packed

STEP = 64  # Rows that panels are filled up to where nothing is said.


def step_of(encoding: Encoding) -> int:
    """What the panels of an encoding are filled up to where nothing is said: 64
    rows, or the next multiple of a block's."""
    bk = encoding.block[0]
    return -(-STEP // bk) * bk


def pack_ragged(packed: Packed, step: int = 0) -> Dict[str, np.ndarray]:
    """`values` [S, bn], `index` [S / bk, 1] and `panels` [(batch,) P, 4] of a free
    weight in its canonical form, and `perm` of a shuffled one, with panels of a
    multiple of `step` rows (0: those of `step_of`). Raises EncodingError for another
    pattern or step."""
    encoding, parts = packed.encoding, packed.components
    bk, bn = encoding.block
    step = step or step_of(encoding)
    if not encoding.is_free or step < 1 or step % bk:
        raise EncodingError(
            f"ragged panels of {encoding} filled up to {step} rows: legal is a free "
            f"encoding, and a multiple of the {bk} rows of a block"
        )
    batch, k, outputs = sizes_of(packed)
    panels, whole = -(-outputs // bn), outputs // bn
    offsets = parts["offsets"].astype(np.int64)
    kept = np.diff(offsets)
    rows = -(-(kept * bk) // step) * step
    total = int(rows.sum())
    values = np.zeros((total, bn), parts["values"].dtype)
    index = np.full((total // bk, 1), k, np.uint32)
    table = np.zeros((batch, panels, 4), np.uint32)
    first = 0
    for entry in range(batch):
        own = slice(entry * panels, (entry + 1) * panels)
        # A last panel of fewer outputs comes last: a grid has fewer tiles of it.
        order = np.argsort(-rows[own][:whole], kind="stable").tolist()
        for place, panel in enumerate(order + list(range(whole, panels))):
            number = entry * panels + panel
            count, slot = kept[number], offsets[number]
            source = parts["values"][slot * bk : (slot + count) * bk]
            values[first : first + count * bk] = source
            at = first // bk
            starts = parts["index"][slot : slot + count].astype(np.uint32) * bk
            index[at : at + count, 0] = starts
            table[entry, place, :3] = first, rows[number], panel
            table[entry, panel, 3] = place
            first += int(rows[number])
    if len(packed.shape) == 2:
        table = table[0]
    order = {"perm": parts["perm"]} if encoding.is_shuffled else {}
    return {"values": values, "index": index, "panels": table, **order}


def sizes_of(packed: Packed) -> tuple[int, int, int]:
    """[batch, K, N] of a weight, whatever its layout."""
    shape = packed.shape if len(packed.shape) == 3 else (1, *packed.shape)
    turned = packed.encoding.dim == len(packed.shape) - 1
    return (shape[0], shape[2], shape[1]) if turned else tuple(shape)

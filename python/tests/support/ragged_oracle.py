# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ragged panels of docs/Encoding.md, versions 10 and 11, in numpy: to compare the
library (lib/Packing/Free) with.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Dict

import numpy as np

from nm_sparse import EncodingError, Packed, decode, encode

STEP = 64  # Rows that panels are filled up to where nothing is said.
PART = 16  # Rows of a part of a block at most.


def pack_ragged(packed: Packed, step: int = STEP) -> Dict[str, np.ndarray]:
    """`values` [S, bn], `index` [S / u, 1] and `panels` [(batch,) P, 4] of a free
    weight in its canonical form, and `perm` of a shuffled one, with panels of a
    multiple of `step` rows. Blocks are kept in parts of u rows, the most that divide
    theirs, a step and 16. Raises EncodingError for another pattern or step."""
    if not packed.encoding.is_free or step < 1:
        raise EncodingError(
            f"ragged panels of {packed.encoding} filled up to {step} rows: legal is a "
            "free encoding, and at least 1 row"
        )
    packed = in_parts(packed, math.gcd(packed.encoding.block[0], step, PART))
    encoding, parts = packed.encoding, packed.components
    bk, bn = encoding.block
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


def in_parts(packed: Packed, rows: int) -> Packed:
    """A weight of blocks as one of their parts, of `rows` rows."""
    encoding = packed.encoding
    if rows == encoding.block[0]:
        return packed
    smaller = replace(encoding, block=(rows, encoding.block[1]))
    perm = packed.components.get("perm")
    order = {} if perm is None else {"perm": perm}
    return encode(decode(packed), smaller, packed.dtype, **order)


def sizes_of(packed: Packed) -> tuple[int, int, int]:
    """[batch, K, N] of a weight, whatever its layout."""
    shape = packed.shape if len(packed.shape) == 3 else (1, *packed.shape)
    turned = packed.encoding.dim == len(packed.shape) - 1
    return (shape[0], shape[2], shape[1]) if turned else tuple(shape)

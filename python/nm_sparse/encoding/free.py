# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The packed layout of free encodings, version 3 of docs/Encoding.md.

Panels keep any number of blocks each: a list of them for each panel, one list after
the other, with the places where they begin. `reference.py` calls these functions.
"""

from __future__ import annotations

from typing import Dict, Tuple

import numpy as np

from . import Encoding, EncodingError, index_dtype

# A weight as blocks: [batch, block rows, bk, panels, bn].
Blocks = np.ndarray


def counts(e: Encoding, sizes: Tuple[int, int, int]) -> Tuple[int, int]:
    """(block rows, panels of all batch entries) of [batch, K, N] elements."""
    batch, k, outputs = sizes
    return -(-k // e.block[0]), batch * -(-outputs // e.block[1])


def pack(blocks: Blocks, dtype: np.dtype) -> Dict[str, np.ndarray]:
    """The components of a weight of that numpy type, given by its bits: every block
    with an element that is not +0."""
    batch, rows, bk, panels, bn = blocks.shape
    kept = (blocks != 0).any(axis=(2, 4)).transpose(0, 2, 1)  # by batch, panel, row
    entry, panel, row = np.nonzero(kept)
    offsets = np.zeros(batch * panels + 1, np.int64)
    np.cumsum(kept.sum(axis=2).reshape(-1), out=offsets[1:])
    if offsets[-1] >= 1 << 31:
        raise EncodingError(f"{offsets[-1]} blocks are kept: legal are below 2^31")
    return {
        "values": blocks[entry, row, :, panel, :].reshape(-1, bn).view(dtype),
        "index": row.astype(index_dtype(max(rows, 1))),
        "offsets": offsets.astype(np.uint32),
    }


def unpack(
    e: Encoding, sizes: Tuple[int, int, int], parts: Dict[str, np.ndarray]
) -> np.ndarray:
    """[batch, block rows * bk, panels * bn] of the components, which are checked."""
    (bk, bn), (rows, panels) = e.block, counts(e, sizes)
    check_types(e, sizes, parts)
    offsets, index = parts["offsets"].astype(np.int64), parts["index"].astype(np.int64)
    if offsets[0] != 0 or (np.diff(offsets) < 0).any() or offsets[-1] != len(index):
        raise EncodingError(
            f"offsets begin with {offsets[0]} and end with {offsets[-1]}: legal is "
            f"from 0 to the {len(index)} blocks that are kept, not decreasing"
        )
    panel = np.repeat(np.arange(panels), np.diff(offsets))
    same = panel[1:] == panel[:-1]
    if (index >= rows).any() or (same & (np.diff(index) <= 0)).any():
        wrong = index >= rows
        wrong[1:] |= same & (np.diff(index) <= 0)
        place = int(np.argmax(wrong))
        raise EncodingError(
            f"index of panel {panel[place]} has {index[place]} at {place}: legal is "
            f"strictly increasing in a panel and below {rows}"
        )
    each = panels // sizes[0] if sizes[0] else 0
    blocks = np.zeros((sizes[0], rows, bk, each, bn), parts["values"].dtype)
    stored = parts["values"].reshape(-1, bk, bn)
    blocks[panel // max(each, 1), index, :, panel % max(each, 1), :] = stored
    return blocks.reshape(sizes[0], rows * bk, each * bn)


def check_types(
    e: Encoding, sizes: Tuple[int, int, int], parts: Dict[str, np.ndarray]
) -> None:
    """Raises EncodingError when names, shapes or types of components do not fit."""
    (bk, bn), (rows, panels) = e.block, counts(e, sizes)
    if list(parts) != ["values", "index", "offsets"]:
        raise EncodingError(
            f"components are {', '.join(parts)}: legal are values, index, offsets"
        )
    kept = parts["index"].size
    legal = {"values": (kept * bk, bn), "index": (kept,), "offsets": (panels + 1,)}
    if (found := {name: part.shape for name, part in parts.items()}) != legal:
        raise EncodingError(f"shapes are {found}: legal is {legal}")
    needed = {"index": index_dtype(max(rows, 1)), "offsets": np.dtype(np.uint32)}
    for name, dtype in needed.items():
        if parts[name].dtype != dtype:
            raise EncodingError(f"{name} is {parts[name].dtype}: legal is {dtype}")


def keep(scores: np.ndarray, density: float) -> np.ndarray:
    """Which blocks stay, of scores [batch, block rows, panels]: the share `density`
    of all of them, those of the largest scores; of equal ones those of the first
    batch entry, panel and row."""
    if not 0 <= density <= 1:
        raise EncodingError(f"density is {density}: legal is from 0 to 1")
    count = int(np.floor(density * scores.size + 0.5))
    listed = scores.transpose(0, 2, 1)
    best = np.zeros(listed.size, bool)
    best[np.argsort(-listed.reshape(-1), kind="stable")[:count]] = True
    return best.reshape(listed.shape).transpose(0, 2, 1)

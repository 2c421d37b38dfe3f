# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""K-major values, version 12 of docs/Encoding.md: canonical values, transposed.

`pack_k_major` and `unpack_k_major` go between the canonical form of one n:m level and
the form that tensor cores of warpgroups read in 8 bits: the kept rows of an output lie
side by side.
"""

from __future__ import annotations

from typing import Tuple

import numpy as np

from ..encoding import Encoding, EncodingError, index_dtype, packed_shapes
from .bitmap import _lead

ROWS = 16  # the rows of an output are filled up to a multiple


def check_k_major(encoding: Encoding) -> None:
    """Raises EncodingError unless weights of the encoding have K-major values."""
    e = encoding
    if e.is_free:
        found = "free"
    elif e.inner is not None:
        found = "of two levels"
    elif e.is_shuffled:
        found = "shuffled"
    else:
        return
    raise EncodingError(
        f"encoding is {found}: legal for K-major values is one n:m level with order = "
        "identity; keep the weight in canonical form"
    )


def k_major_shape(encoding: Encoding, k: int, n: int) -> Tuple[int, int]:
    """The shape of K-major values of a weight that contracts k, with n outputs: P * bn,
    and W * n * bk rounded up to a multiple of 16.

    Raises EncodingError when the encoding has no such form.
    """
    (rows, outputs), _ = _canonical(encoding, k, n)
    return outputs, -(-rows // ROWS) * ROWS


def _canonical(e: Encoding, k: int, n: int) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """The shapes of the canonical `values` and `index` without a batch."""
    check_k_major(e)
    shapes = packed_shapes(Encoding(e.n, e.m, e.block), (k, n))
    return shapes["values"], shapes["index"]


def pack_k_major(
    encoding: Encoding, values: np.ndarray, index: np.ndarray, k: int, n: int
) -> Tuple[np.ndarray, np.ndarray]:
    """K-major components of a weight in canonical form that contracts k, with n
    outputs.

    values:  [batch,] W * n * bk, P * bn elements of any type.
    index:   [batch,] W * n, P positions.

    Returns values, [batch,] P * bn, rows, see `k_major_shape`, and index as it is.
    Raises EncodingError when the encoding has no such form, a shape or type does not
    fit, a position is not legal, or padding holds anything but +0.
    """
    shapes = _canonical(encoding, k, n)
    lead = _lead("values", values, *shapes[0])
    _check(encoding, lead, values, index, k, n)
    stored = np.zeros((*lead, *k_major_shape(encoding, k, n)), values.dtype)
    stored[..., : shapes[0][0]] = values.swapaxes(-1, -2)
    return stored, index


def unpack_k_major(
    encoding: Encoding, values: np.ndarray, index: np.ndarray, k: int, n: int
) -> Tuple[np.ndarray, np.ndarray]:
    """The canonical `values` and `index` that `pack_k_major` made K-major.

    values, index:  as `pack_k_major` returns them.

    Raises EncodingError when the encoding has no such form, a shape or type does not
    fit, a position is not legal, or padding holds anything but +0.
    """
    (rows, _), _ = _canonical(encoding, k, n)
    lead = _lead("values", values, *k_major_shape(encoding, k, n))
    padding = _bits(values)[..., rows:]
    if padding.any():
        output = int(np.argwhere(padding)[0][-2])
        raise EncodingError(
            f"values of output {output} are not +0 behind the {rows} rows that are "
            "kept: legal is +0 up to a multiple of 16"
        )
    plain = np.ascontiguousarray(values[..., :rows].swapaxes(-1, -2))
    _check(encoding, lead, plain, index, k, n)
    return plain, index


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"uint{8 * array.itemsize}")


def _check(
    e: Encoding,
    lead: Tuple[int, ...],
    values: np.ndarray,
    index: np.ndarray,
    k: int,
    n: int,
) -> None:
    """Raises EncodingError unless a decoder of canonical components accepts these."""
    (rows, _), legal = _canonical(e, k, n)
    if lead != _lead("index", index, *legal):
        raise EncodingError(f"index has shape {index.shape}: legal is a batch {lead}")
    if index.dtype != (needed := index_dtype(e.m)):
        raise EncodingError(f"index is {index.dtype}: m = {e.m} needs {needed}")
    windows, panels = legal[0] // e.n, legal[1]
    batch = lead[0] if lead else 1
    kept = index.astype(np.int64).reshape(batch, windows, e.n, panels)
    wrong = (kept >= e.m).any(axis=2) | (np.diff(kept, axis=2) <= 0).any(axis=2)
    if wrong.any():
        b, w, p = np.argwhere(wrong)[0]
        raise EncodingError(
            f"index of window {w}, panel {p}, batch {b} is {kept[b, w, :, p].tolist()}:"
            f" legal is strictly increasing and below {e.m}"
        )
    bk, bn = e.block
    past = _bits(values)[..., n:].any()
    if windows:  # of which the last one may reach past the weight
        blocks = kept[:, -1] + (windows - 1) * e.m
        steps = blocks[:, :, None] * bk + np.arange(bk)[:, None]
        last = _bits(values)[..., rows - e.n * bk :, :]
        last = last.reshape(batch, e.n, bk, panels, bn)
        past = past or last[steps >= k].any()
    if past:
        raise EncodingError("values beyond the last row or output are not +0")

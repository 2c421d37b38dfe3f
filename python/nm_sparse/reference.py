# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reference encoder and decoder of the canonical packed layout, version 1.

docs/Encoding.md is the specification; this file is its shortest correct
implementation, meant to be read and to be compared against, not to be fast.
Everything works on bit patterns (unsigned integers), so a round trip keeps
NaN payloads, infinities, denormals and signs of zero exactly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

import numpy as np

FORMAT = "nm_sparse"
VERSION = 1

# Element type, spelled as in MLIR -> (numpy type of its arrays, sign bit).
# numpy has no bf16 and no f8: their arrays are unsigned views of the bits.
# A sign bit of 0 means that the type has no negative zero.
_ELEMENT_TYPES: Dict[str, Tuple[type, int]] = {
    "f64": (np.float64, 1 << 63),
    "f32": (np.float32, 1 << 31),
    "f16": (np.float16, 1 << 15),
    "bf16": (np.uint16, 1 << 15),
    "f8E4M3FN": (np.uint8, 1 << 7),
    "f8E5M2": (np.uint8, 1 << 7),
    "i8": (np.int8, 0),
}


class EncodingError(ValueError):
    """An encoding, a weight or a packed pair that the format does not allow."""


@dataclass(frozen=True)
class Encoding:
    """`#nm_sparse.encoding<n:m, block = [bk, bn], dim = dim, order = order>`.

    n, m:   at most n of every m blocks along the contraction are kept.
    block:  (bk, bn), elements of a block along the contraction and the outputs.
    dim:    contraction dimension of the weight, one of its last two.
    order:  "identity"; "shuffled" has no packed layout in version 1.

    Raises EncodingError when a field is out of its range.
    """

    n: int
    m: int
    block: Tuple[int, int] = (1, 1)
    dim: int = 0
    order: str = "identity"

    def __post_init__(self) -> None:
        object.__setattr__(self, "block", tuple(self.block))
        if len(self.block) != 2:
            raise EncodingError(f"block is {list(self.block)}: legal is [bk, bn]")
        numbers = (self.n, self.m, self.dim, *self.block)
        for name, value in zip(("n", "m", "dim", "bk", "bn"), numbers):
            if not isinstance(value, int):
                raise EncodingError(f"{name} is {value!r}: legal is an integer")
        if not 1 <= self.n <= self.m <= 1 << 31:
            raise EncodingError(
                f"n:m is {self.n}:{self.m}: legal is 1 <= n <= m <= 2^31"
            )
        if min(self.block) < 1:
            raise EncodingError(f"block is {list(self.block)}: legal is at least 1")
        if self.dim not in (0, 1, 2):
            raise EncodingError(
                f"dim is {self.dim}: legal is one of the last two dimensions "
                "(0 or 1 of a matrix, 1 or 2 of a batch of matrices)"
            )
        if self.order != "identity":
            raise EncodingError(
                f"order is {self.order!r}: version 1 of the layout has 'identity' only"
            )


@dataclass(frozen=True)
class Packed:
    """A weight in packed form; see `packed_shapes` for the shapes.

    values, index:  the two tensors.
    shape:          shape of the dense weight, as declared (before any transpose).
    dtype:          element type, spelled as in MLIR.
    """

    values: np.ndarray
    index: np.ndarray
    encoding: Encoding
    shape: Tuple[int, ...]
    dtype: str

    def metadata(self) -> str:
        """The JSON text that is stored beside the two tensors."""
        e = self.encoding
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "n": e.n,
                "m": e.m,
                "block": list(e.block),
                "dim": e.dim,
                "order": e.order,
                "shape": list(self.shape),
                "dtype": self.dtype,
            }
        )

    @staticmethod
    def from_tensors(values: np.ndarray, index: np.ndarray, metadata: str) -> "Packed":
        """Puts a stored triple together again; `decode` checks the tensors.

        Raises EncodingError when the metadata is not JSON of this format and
        version, or lacks a key.
        """
        try:
            d: Dict[str, Any] = json.loads(metadata)
        except json.JSONDecodeError as error:
            raise EncodingError(f"metadata is not JSON: {error}") from None
        keys = ("format", "version", "n", "m", "block", "dim", "order", "shape")
        if not isinstance(d, dict):
            raise EncodingError("metadata is not a JSON object")
        missing = [key for key in keys + ("dtype",) if key not in d]
        if missing:
            raise EncodingError(f"metadata lacks {', '.join(missing)}")
        if d["format"] != FORMAT or d["version"] != VERSION:
            raise EncodingError(
                f"metadata says {d['format']!r} version {d['version']!r}: "
                f"this reader knows {FORMAT!r} version {VERSION}"
            )
        encoding = Encoding(d["n"], d["m"], tuple(d["block"]), d["dim"], d["order"])
        return Packed(values, index, encoding, tuple(d["shape"]), d["dtype"])


def index_dtype(m: int) -> np.dtype:
    """Type of `index`: the narrowest of 8, 16, 32 bits that holds m - 1."""
    bits = 8 if m <= 1 << 8 else 16 if m <= 1 << 16 else 32
    return np.dtype(f"uint{bits}")


def packed_shapes(
    encoding: Encoding, shape: Tuple[int, ...]
) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """Shapes of `values` and `index` for a dense weight of `shape`.

    values: [batch,] W * n * bk, P * bn      (elements)
    index:  [batch,] W * n,      P           (one position per kept block)

    Raises EncodingError when the rank is not 2 or 3 or `dim` does not fit it.
    """
    batch, windows, panels, _, _ = _geometry(encoding, shape)
    (bk, bn), n = encoding.block, encoding.n
    lead = (batch,) if len(shape) == 3 else ()
    return lead + (windows * n * bk, panels * bn), lead + (windows * n, panels)


def _geometry(e: Encoding, shape: Tuple[int, ...]) -> Tuple[int, int, int, int, int]:
    """(batch, windows W, panels P, contraction K, outputs N) of a weight."""
    rank = len(shape)
    if rank not in (2, 3):
        raise EncodingError(f"weight has rank {rank}: legal is 2, or 3 with a batch")
    if e.dim not in (rank - 2, rank - 1):
        raise EncodingError(
            f"dim is {e.dim}: a weight of rank {rank} contracts "
            f"dimension {rank - 2} or {rank - 1}"
        )
    outputs_dim = 2 * rank - 3 - e.dim
    k, n = shape[e.dim], shape[outputs_dim]
    batch = shape[0] if rank == 3 else 1
    return batch, -(-k // (e.m * e.block[0])), -(-n // e.block[1]), k, n


def _bits(array: np.ndarray, dtype: str, what: str) -> Tuple[np.ndarray, int]:
    """The bit patterns of `array`, and the sign bit of its element type."""
    if dtype not in _ELEMENT_TYPES:
        raise EncodingError(
            f"element type is {dtype!r}: legal is {', '.join(_ELEMENT_TYPES)}"
        )
    numpy_type, sign = _ELEMENT_TYPES[dtype]
    if array.dtype != numpy_type:
        raise EncodingError(
            f"{what} is an array of {array.dtype}: {dtype} needs "
            f"{np.dtype(numpy_type).name}"
        )
    return array.view(f"uint{array.dtype.itemsize * 8}"), sign


def _default_dtype(array: np.ndarray) -> str:
    """Element type of an array of floats or int8; unsigned views need a name."""
    for name, (numpy_type, _) in _ELEMENT_TYPES.items():
        if array.dtype == numpy_type and array.dtype.kind != "u":
            return name
    raise EncodingError(
        f"weight is an array of {array.dtype}: pass dtype, one of "
        f"{', '.join(_ELEMENT_TYPES)}"
    )


def _check_positions(kept: np.ndarray, m: int) -> None:
    """Raises EncodingError at the first bad list of `kept` [batch, W, n, P]."""
    wrong = (kept >= m).any(axis=2) | (np.diff(kept, axis=2) <= 0).any(axis=2)
    if wrong.any():
        b, w, p = np.argwhere(wrong)[0]
        raise EncodingError(
            f"index of window {w}, panel {p}, batch {b} is "
            f"{kept[b, w, :, p].tolist()}: legal is strictly increasing and below {m}"
        )


def encode(
    weight: np.ndarray, encoding: Encoding, dtype: Optional[str] = None
) -> Packed:
    """Packs a weight that keeps to `encoding` into canonical form.

    weight:  [batch,] K, N elements with dim = rank - 2, [batch,] N, K with
             dim = rank - 1; any K, N. bf16 and f8 as unsigned views.
    dtype:   element type, needed for unsigned views only.

    Raises EncodingError naming window and panel when more than n blocks of a
    window hold a nonzero (or NaN) element, or when shape, dim or type do not fit.
    """
    e, dtype = encoding, dtype or _default_dtype(weight)
    batch, windows, panels, k, outputs = _geometry(e, weight.shape)
    (bk, bn), rank = e.block, weight.ndim
    bits, sign = _bits(weight, dtype, "weight")
    if e.dim == rank - 1:
        bits = bits.swapaxes(-1, -2)
    padded = np.zeros((batch, windows * e.m * bk, panels * bn), bits.dtype)
    padded[:, :k, :outputs] = bits
    blocks = padded.reshape(batch, windows, e.m, bk, panels, bn)

    marked = (blocks != 0).any(axis=(3, 5))  # a nonzero, a NaN or a -0
    live = ((blocks & ~blocks.dtype.type(sign)) != 0).any(axis=(3, 5))
    counts = live.sum(axis=2)
    if (counts > e.n).any():
        b, w, p = np.argwhere(counts > e.n)[0]
        raise EncodingError(
            f"weight is not {e.n}:{e.m}: window {w} of panel {p}"
            + (f" of batch {b}" if rank == 3 else "")
            + f" has {counts[b, w, p]} nonzero blocks, legal is at most {e.n}; "
            "prune the weight or use a larger n"
        )
    # Nonzero blocks first, then those with a -0, then the lowest positions.
    order = np.argsort(2 - live.astype(np.int8) - marked, axis=2, kind="stable")
    kept = np.sort(order[:, :, : e.n], axis=2)
    values = np.take_along_axis(blocks, kept[:, :, :, None, :, None], axis=2)
    values_shape, index_shape = packed_shapes(e, weight.shape)
    values = values.reshape(values_shape).view(weight.dtype)
    index = kept.reshape(index_shape).astype(index_dtype(e.m))
    return Packed(values, index, e, weight.shape, dtype)


def decode(packed: Packed) -> np.ndarray:
    """The dense weight, of `packed.shape`, that a packed pair stands for.

    Accepts any strictly increasing positions, not only those that `encode`
    picks. Raises EncodingError when a shape or type does not fit, a position is
    out of its window or out of order, or padding holds anything but +0.
    """
    e, shape = packed.encoding, packed.shape
    batch, windows, panels, k, outputs = _geometry(e, shape)
    (bk, bn), index = e.block, packed.index
    bits, _ = _bits(packed.values, packed.dtype, "values")
    if (bits.shape, index.shape) != packed_shapes(e, shape):
        raise EncodingError(
            f"values {bits.shape} and index {index.shape} do not fit a weight of "
            f"shape {shape}: legal is {packed_shapes(e, shape)}"
        )
    if index.dtype != (needed := index_dtype(e.m)):
        raise EncodingError(f"index is {index.dtype}: m = {e.m} needs {needed}")
    kept = index.astype(np.int64).reshape(batch, windows, e.n, panels)
    _check_positions(kept, e.m)
    blocks = np.zeros((batch, windows, e.m, bk, panels, bn), bits.dtype)
    stored = bits.reshape(batch, windows, e.n, bk, panels, bn)
    np.put_along_axis(blocks, kept[:, :, :, None, :, None], stored, axis=2)
    padded = blocks.reshape(batch, windows * e.m * bk, panels * bn)
    if padded[:, k:].any() or padded[:, :, outputs:].any():
        raise EncodingError("values beyond the last row or output are not +0")
    dense = padded[:, :k, :outputs].reshape(shape[:-2] + (k, outputs))
    if e.dim == len(shape) - 1:
        dense = dense.swapaxes(-1, -2)
    return np.ascontiguousarray(dense).view(packed.values.dtype)

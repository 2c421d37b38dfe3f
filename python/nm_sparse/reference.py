# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reference encoder, decoder and pruning of the canonical packed layout, of weights
with `order = identity`; `shuffled.py` puts others in order first.

docs/Encoding.md is the specification; this file is its shortest correct
implementation, meant to be read and to be compared against, not to be fast.
Everything works on bit patterns (unsigned integers), so a round trip keeps
NaN payloads, infinities, denormals and signs of zero exactly.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import numpy as np

from .encoding import (
    Encoding,
    EncodingError,
    Level,
    Packed,
    extents,
    free,
    index_dtype,
    packed_shapes,
)

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


def _turn(array: np.ndarray, e: Encoding) -> np.ndarray:
    """A weight as [..., K, N], or such an array as the weight."""
    assert not e.is_shuffled, "its outputs must be put in order first"
    return array.swapaxes(-1, -2) if e.dim == array.ndim - 1 else array


def _blocks(rows: np.ndarray, level: Level) -> np.ndarray:
    """`rows` [batch, K, N], padded, as [batch, W, m, bk, P, bn]."""
    (batch, k, outputs), (bk, bn) = rows.shape, level.block
    windows, panels = -(-k // (level.m * bk)), -(-outputs // bn)
    padded = np.zeros((batch, windows * level.m * bk, panels * bn), rows.dtype)
    padded[:, :k, :outputs] = rows
    return padded.reshape(batch, windows, level.m, bk, panels, bn)


def _pack_level(
    rows: np.ndarray, level: Level, sign: int, where: Tuple[str, str, bool]
) -> Tuple[np.ndarray, np.ndarray]:
    """Values [batch, W * n * bk, P * bn] and positions [batch, W * n, P]."""
    blocks, n = _blocks(rows, level), level.n
    batch, windows, _, bk, panels, bn = blocks.shape
    marked = (blocks != 0).any(axis=(3, 5))  # a nonzero, a NaN or a -0
    live = ((blocks & ~blocks.dtype.type(sign)) != 0).any(axis=(3, 5))
    counts = live.sum(axis=2)
    if (counts > n).any():
        b, w, p = np.argwhere(counts > n)[0]
        raise _too_many(level, where, (b, w, p), counts[b, w, p])
    # Nonzero blocks first, then those with a -0, then the lowest positions.
    order = np.argsort(2 - live.astype(np.int8) - marked, axis=2, kind="stable")
    kept = np.sort(order[:, :, :n], axis=2)
    values = np.take_along_axis(blocks, kept[:, :, :, None, :, None], axis=2)
    return (
        values.reshape(batch, windows * n * bk, panels * bn),
        kept.reshape(batch, windows * n, panels),
    )


def _too_many(
    level: Level, where: Tuple[str, str, bool], place: Tuple[int, int, int], count: int
) -> EncodingError:
    """Of a window with more live blocks than the n of its level. `place` is its batch
    entry, window and panel, `where` what the error says of the level, of the panel, and
    whether there is a batch."""
    (b, w, p), (within, panel, has_batch) = place, where
    return EncodingError(
        f"weight is not {level.n}:{level.m}{within}: window {w} of {panel} {p}"
        + (f" of batch {b}" if has_batch else "")
        + f" has {count} nonzero blocks, legal is at most {level.n}; "
        "prune the weight or use a larger n"
    )


def _places_of_errors(
    e: Encoding, note: str, has_batch: bool
) -> List[Tuple[str, str, bool]]:
    """What an error says of each level."""
    return [
        (note, "panel", has_batch),
        (f" in what {e.n}:{e.m} keeps{note}", "inner panel", has_batch),
    ]


def _unpack_level(
    values: np.ndarray, index: np.ndarray, level: Level, name: str
) -> np.ndarray:
    """[batch, W * m * bk, P * bn], zero where nothing is stored."""
    (bk, bn), (batch, rows, panels) = level.block, index.shape
    windows = rows // level.n
    kept = index.astype(np.int64).reshape(batch, windows, level.n, panels)
    wrong = (kept >= level.m).any(axis=2) | (np.diff(kept, axis=2) <= 0).any(axis=2)
    if wrong.any():
        b, w, p = np.argwhere(wrong)[0]
        raise EncodingError(
            f"{name} of window {w}, panel {p}, batch {b} is "
            f"{kept[b, w, :, p].tolist()}: legal is strictly increasing and below "
            f"{level.m}"
        )
    blocks = np.zeros((batch, windows, level.m, bk, panels, bn), values.dtype)
    stored = values.reshape(batch, windows, level.n, bk, panels, bn)
    np.put_along_axis(blocks, kept[:, :, :, None, :, None], stored, axis=2)
    return blocks.reshape(batch, windows * level.m * bk, panels * bn)


def encode(
    weight: np.ndarray, encoding: Encoding, dtype: Optional[str] = None, note: str = ""
) -> Packed:
    """Packs a weight that keeps to `encoding` into canonical form.

    weight:  [batch,] K, N elements with dim = rank - 2, [batch,] N, K with
             dim = rank - 1; any K, N. bf16 and f8 as unsigned views.
    dtype:   element type, needed for unsigned views only.
    note:    what an error says behind the pattern.

    Raises EncodingError naming window and panel when more than n blocks of a
    window hold a nonzero (or NaN) element, or when shape, dim or type do not fit.
    """
    e, dtype = encoding, dtype or _default_dtype(weight)
    shape = extents(e, weight.shape)
    bits, sign = _bits(weight, dtype, "weight")
    rows = _turn(bits, e).reshape(shape)
    if e.is_free:
        blocks = _blocks(rows, Level(1, 1, e.block))[:, :, 0]
        return Packed(free.pack(blocks, weight.dtype), e, weight.shape, dtype)
    where = _places_of_errors(e, note, weight.ndim == 3)
    positions: List[np.ndarray] = []
    for level, place in zip(e.levels, where):
        rows, kept = _pack_level(rows, level, sign, place)
        positions.append(kept.astype(index_dtype(level.m)))
    arrays = [rows.view(weight.dtype), *positions]
    shapes = packed_shapes(e, weight.shape)
    components = {
        name: array.reshape(shapes[name]) for name, array in zip(shapes, arrays)
    }
    return Packed(components, e, weight.shape, dtype)


def decode(packed: Packed) -> np.ndarray:
    """The dense weight, of `packed.shape`, that packed components stand for.

    Accepts any strictly increasing positions, not only those that `encode`
    picks. Raises EncodingError when a shape or type does not fit, a position is
    out of its window or out of order, or padding holds anything but +0.
    """
    e, shape, parts = packed.encoding, packed.shape, packed.components
    batch, k, outputs = extents(e, shape)
    if e.is_free:
        rows = free.unpack(e, (batch, k, outputs), parts)
        return _crop(_bits(rows, packed.dtype, "values")[0], packed)
    shapes = packed_shapes(e, shape)
    if {name: part.shape for name, part in parts.items()} != shapes:
        found = ", ".join(f"{name} {part.shape}" for name, part in parts.items())
        raise EncodingError(
            f"{found} do not fit a weight of shape {shape}: legal is {shapes}"
        )
    rows, _ = _bits(parts["values"], packed.dtype, "values")
    rows = rows.reshape((batch,) + shapes["values"][-2:])
    for level, name in reversed(list(zip(e.levels, list(shapes)[1:]))):
        index = parts[name]
        if index.dtype != (needed := index_dtype(level.m)):
            raise EncodingError(
                f"{name} is {index.dtype}: m = {level.m} needs {needed}"
            )
        index = index.reshape((batch,) + shapes[name][-2:])
        rows = _unpack_level(rows, index, level, name)
    return _crop(rows, packed)


def _crop(rows: np.ndarray, packed: Packed) -> np.ndarray:
    """The dense weight in `rows`, which end in padding."""
    e, shape = packed.encoding, packed.shape
    _, k, outputs = extents(e, shape)
    if rows[:, k:].any() or rows[:, :, outputs:].any():
        raise EncodingError("values beyond the last row or output are not +0")
    dense = rows[:, :k, :outputs].reshape(shape[:-2] + (k, outputs))
    return np.ascontiguousarray(_turn(dense, e)).view(packed.values.dtype)


def _numbers(bits: np.ndarray, dtype: str) -> np.ndarray:
    """Elements as float64."""
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype == "f8E5M2":
        return (bits.astype(np.uint16) << 8).view(np.float16).astype(np.float64)
    if dtype == "f8E4M3FN":
        code = (bits & 0x7F).astype(np.int64)
        exponent, mantissa = np.maximum(code >> 3, 1), code & 7
        mantissa = np.where(code >> 3, mantissa + 8, mantissa).astype(np.float64)
        number = np.where(code == 0x7F, np.nan, np.ldexp(mantissa, exponent - 10))
        return np.where(bits & 0x80, -number, number)
    return bits.view(_ELEMENT_TYPES[dtype][0]).astype(np.float64)


def _sum(terms: np.ndarray, *axes: int) -> np.ndarray:
    """The sum over `axes`, term by term in their order; a NaN counts as infinite."""
    last = np.moveaxis(terms, axes, range(-len(axes), 0))
    last = last.reshape(last.shape[: -len(axes)] + (-1,))
    total = np.add.accumulate(last, axis=-1)[..., -1]
    return np.where(np.isnan(total), np.inf, total)


def _best(scores: np.ndarray, n: int) -> np.ndarray:
    """Which are the n largest along axis 2; of equals the first ones."""
    order = np.argsort(-scores, axis=2, kind="stable")[:, :, :n]
    best = np.zeros(scores.shape, bool)
    np.put_along_axis(best, order, True, axis=2)
    return best


def prune(
    weight: np.ndarray,
    encoding: Encoding,
    dtype: Optional[str] = None,
    density: Optional[float] = None,
) -> np.ndarray:
    """The weight with +0 wherever the pattern has no room.

    Keeps the blocks of largest magnitude, as docs/Encoding.md says; of a free
    encoding the share `density` of all blocks, from 0 to 1. Raises EncodingError
    when shape, dim or type do not fit.
    """
    _check_density(encoding, density)
    e, dtype = encoding, dtype or _default_dtype(weight)
    batch, k, outputs = extents(e, weight.shape)
    bits, _ = _bits(weight, dtype, "weight")
    if bits.size == 0:
        return weight.copy()
    level = Level(1, 1, e.block) if e.is_free else e
    blocks = _blocks(_turn(bits, e).reshape(batch, k, outputs), level)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = _numbers(np.ascontiguousarray(blocks), dtype) ** 2
        if density is None:
            keep = _keep(squares, e)
        else:
            best = free.keep(_sum(squares[:, :, 0], 2, 4), density)
            keep = np.broadcast_to(best[:, :, None, None, :, None], squares.shape)
    rows = np.where(keep, blocks, 0).reshape(batch, -1, keep.shape[-2] * e.block[1])
    dense = _turn(rows[:, :k, :outputs].reshape(weight.shape[:-2] + (k, outputs)), e)
    return np.ascontiguousarray(dense.astype(bits.dtype)).view(weight.dtype)


def _check_density(e: Encoding, density: Optional[float]) -> None:
    if e.is_free != (density is not None):
        raise EncodingError(
            f"density is {density} for {e.n}:{e.m}: legal is a share "
            "from 0 to 1 for a free encoding, and none for n:m"
        )


def _keep(squares: np.ndarray, e: Encoding) -> np.ndarray:
    """Which elements stay, as [batch, W, m, bk, P, bn], like `squares`."""
    if e.inner is None:
        best = _best(_sum(squares, 3, 5), e.n)
        return np.broadcast_to(best[:, :, :, None, :, None], squares.shape)
    (batch, windows, m, bk, panels, bn), (ik, jn) = squares.shape, e.inner.block
    # Strips of the inner blocks' height, and inner panels.
    cut = squares.reshape(batch, windows, m * bk // ik, ik, panels, bn // jn, jn)
    scores = _sum(cut, 3, 6)
    counted = np.where(_best(scores, e.inner.n), scores, 0)
    counted = counted.reshape(batch, windows, m, bk // ik, panels, bn // jn)
    outer = np.repeat(_best(_sum(counted, 3, 5), e.n), bk // ik, axis=2)
    chosen = _best(np.where(outer[..., None], scores, -1), e.inner.n) & (scores > 0)
    return np.broadcast_to(
        chosen[:, :, :, None, :, :, None] & outer[:, :, :, None, :, None, None],
        cut.shape,
    ).reshape(squares.shape)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the packing of libnm_sparse (`nm_sparse/Packing/Packing.h`) on numpy arrays.

The library has the only implementation that is meant to be fast: `pack`, `prune` and
the rest of the package call it here. `reference.py` is what tests compare it with.
"""

from __future__ import annotations

import ctypes
import math
import re
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ..encoding import Encoding, EncodingError, extents, index_dtype, packed_shapes
from .library import KINDS, PROGRESS, last_error, library

Progress = Callable[[int, int], None]  # steps done, and of how many
_MOST_DRAWS = 1 << 64  # seeds are taken modulo that


class _Level(ctypes.Structure):
    """NmsPackLevel of Packing/Packing.h."""

    _fields_ = [(name, ctypes.c_int64) for name in "n m bk bn".split()]


class _Spec(ctypes.Structure):
    """NmsPackSpec of Packing/Packing.h."""

    _fields_ = [("levels", _Level * 2)] + [
        (name, ctypes.c_int64)
        for name in "levelCount batch k outputs strideB strideK strideN kind".split()
    ]


def whole_elements(array: np.ndarray) -> np.ndarray:
    """The array, or a copy of it that the library can walk over: aligned, with strides
    of whole elements."""
    size = array.itemsize
    if array.flags.aligned and all(step % size == 0 for step in array.strides):
        return array
    return np.ascontiguousarray(array)


def _spec(array: np.ndarray, e: Encoding, dtype: str) -> Any:
    """How the library sees a dense array of `whole_elements`."""
    batch, k, outputs = extents(e, array.shape)
    steps = [step // array.itemsize for step in array.strides]
    along = 2 * array.ndim - 3 - e.dim
    levels = (_Level * 2)(*(_Level(one.n, one.m, *one.block) for one in e.levels))
    return ctypes.byref(
        _Spec(
            levels, len(e.levels), batch, k, outputs,
            steps[0] if array.ndim == 3 else 0, steps[e.dim], steps[along],
            KINDS.index(dtype),
        )
    )  # fmt: skip


def _pointer(array: np.ndarray) -> int:
    return array.ctypes.data


def _pointers(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*map(_pointer, arrays))


def _error() -> EncodingError:
    """The last failure, without the name of the function that begins it."""
    return EncodingError(re.sub(r"^[a-z ]+: ", "", last_error(), count=1))


def _check(status: int) -> None:
    if status:
        raise _error()


def pack(weight: np.ndarray, e: Encoding, dtype: str) -> Dict[str, np.ndarray]:
    """The components of a weight of n:m levels, outputs in packed order."""
    weight = whole_elements(weight)
    arrays, spec = _components(weight, e), _spec(weight, e, dtype)
    components = _pointers(list(arrays.values()))
    _check(library().nmsPack(spec, _pointer(weight), components))
    return arrays


def pack_shuffled(
    weight: np.ndarray, e: Encoding, dtype: str, perm: Optional[np.ndarray]
) -> Tuple[Dict[str, np.ndarray], np.ndarray]:
    """The same of a shuffled weight, and its order, [batch, N] of uint32: `perm`, or
    that of `find_order`."""
    weight = whole_elements(weight)
    batch, _, outputs = extents(e, weight.shape)
    arrays = _components(weight, e.packed)
    places = np.zeros((batch, outputs), np.uint32)
    if perm is not None:
        places[:] = perm
    _check(
        library().nmsPackShuffled(
            _spec(weight, e, dtype), perm is not None, _pointer(weight),
            _pointers(list(arrays.values())), _pointer(places),
        )
    )  # fmt: skip
    return arrays, places


def _components(weight: np.ndarray, e: Encoding) -> Dict[str, np.ndarray]:
    """Room for the components of a weight of n:m levels."""
    shapes = packed_shapes(e, weight.shape)
    types = [weight.dtype, *(index_dtype(level.m) for level in e.levels)]
    return {name: np.zeros(shapes[name], t) for name, t in zip(shapes, types)}


def pack_free(weight: np.ndarray, e: Encoding, dtype: str) -> Dict[str, np.ndarray]:
    """The same of a free level."""
    weight = whole_elements(weight)
    spec, (batch, k, outputs) = _spec(weight, e, dtype), extents(e, weight.shape)
    kept = library().nmsCountFree(spec, _pointer(weight))
    if kept < 0:
        raise _error()
    (bk, bn) = e.block
    values = np.zeros((kept * bk, bn), weight.dtype)
    index = np.zeros(kept, index_dtype(max(-(-k // bk), 1)))
    offsets = np.zeros(batch * -(-outputs // bn) + 1, np.uint32)
    arrays = (weight, values, index, offsets)
    _check(library().nmsPackFree(spec, *map(_pointer, arrays)))
    return {"values": values, "index": index, "offsets": offsets}


def unpack(
    components: Sequence[np.ndarray], e: Encoding, dtype: str, shape: Tuple[int, ...]
) -> np.ndarray:
    """The dense weight of components of n:m levels, whose shapes and types fit."""
    dense = np.zeros(shape, components[0].dtype)
    arrays = [np.ascontiguousarray(part) for part in components]
    spec = _spec(dense, e, dtype)
    _check(library().nmsUnpack(spec, _pointers(arrays), _pointer(dense)))
    return dense


def unpack_free(
    components: Sequence[np.ndarray], e: Encoding, dtype: str, shape: Tuple[int, ...]
) -> np.ndarray:
    """The same of values, index and offsets of a free level."""
    dense = np.zeros(shape, components[0].dtype)
    arrays = [np.ascontiguousarray(part) for part in components]
    kept = arrays[1].size
    places = map(_pointer, (*arrays, dense))
    _check(library().nmsUnpackFree(_spec(dense, e, dtype), kept, *places))
    return dense


def prune(
    weight: np.ndarray, e: Encoding, dtype: str, density: Optional[float] = None
) -> np.ndarray:
    """The weight with +0 where the pattern, in packed order, has no room."""
    weight = np.ascontiguousarray(weight)
    pruned = np.empty_like(weight)
    arrays = (_pointer(weight), _pointer(pruned))
    _call_prune("nmsPrune", _spec(weight, e, dtype), density, *arrays)
    return pruned


def prune_mask(
    scores: np.ndarray, e: Encoding, dtype: str, density: Optional[float] = None
) -> np.ndarray:
    """Which elements `prune` of `scores` keeps, as an array of bool."""
    scores = np.ascontiguousarray(scores)
    mask = np.zeros(scores.shape, bool)
    arrays = (_pointer(scores), _pointer(mask))
    _call_prune("nmsPruneMask", _spec(scores, e, dtype), density, *arrays)
    return mask


def _call_prune(name: str, spec: Any, density: Optional[float], *arrays: int) -> None:
    if density is None:
        return _check(getattr(library(), name)(spec, *arrays))
    free = name.replace("Prune", "PruneFree")
    return _check(getattr(library(), free)(spec, density, *arrays))


def find_order(weight: np.ndarray, e: Encoding, dtype: str) -> np.ndarray:
    """[batch, N] of uint32: the order that an encoder takes when it is given none."""
    weight = whole_elements(weight)
    batch, _, outputs = extents(e, weight.shape)
    perm = np.zeros((batch, outputs), np.uint32)
    spec = _spec(weight, e, dtype)
    _check(library().nmsFindOrder(spec, _pointer(weight), _pointer(perm)))
    return perm


def search_order(
    weight: np.ndarray,
    e: Encoding,
    dtype: str,
    density: Optional[float],
    seed: int,
    progress: Optional[Progress],
) -> np.ndarray:
    """[batch, N] of uint32: an order in which pruning keeps much of the weight."""
    weight = whole_elements(weight)
    batch, _, outputs = extents(e, weight.shape)
    perm = np.zeros((batch, outputs), np.uint32)
    raised: List[BaseException] = []

    @PROGRESS
    def step(_: Any, done: int, steps: int) -> None:
        try:
            if progress is not None and not raised:
                progress(done, steps)
        except BaseException as error:  # raised again below, where Python sees it
            raised.append(error)

    _check(
        library().nmsSearchOrder(
            _spec(weight, e, dtype), density or 0.0, seed % _MOST_DRAWS,
            _pointer(weight), _pointer(perm), step, None,
        )
    )  # fmt: skip
    if raised:
        raise raised[0]
    return perm


def _sizes_spec(e: Encoding, sizes: Tuple[int, int, int], dtype: str) -> Any:
    """The same of [batch, K, N] elements of which no array is read."""
    levels = (_Level * 2)(*(_Level(one.n, one.m, *one.block) for one in e.levels))
    return ctypes.byref(
        _Spec(levels, len(e.levels), *sizes, 0, 0, 0, KINDS.index(dtype))
    )


# Bitmaps hold bits whatever they mean: a kind of each size stands for all of it.
_KIND_OF_SIZE = {1: "i8", 2: "f16", 4: "f32", 8: "f64"}


def _kind(array: np.ndarray) -> str:
    return _KIND_OF_SIZE[array.itemsize]


def pack_bitmap(
    level: Encoding,
    sizes: Tuple[int, int],
    lead: Tuple[int, ...],
    arrays: Sequence[np.ndarray],
) -> None:
    """Fills the bitmaps of a weight of one n:m level from its canonical form.

    sizes:   contraction and outputs.
    lead:    the batch dimension, where there is one.
    arrays:  values, index, and those to fill: values and bits of the bitmaps.
    """
    _call_bitmap("nmsPackBitmap", level, sizes, lead, arrays)


def unpack_bitmap(
    level: Encoding,
    sizes: Tuple[int, int],
    lead: Tuple[int, ...],
    arrays: Sequence[np.ndarray],
) -> None:
    """The same the other way, with values and bits of the bitmaps first."""
    _call_bitmap("nmsUnpackBitmap", level, sizes, lead, arrays)


def _call_bitmap(
    name: str,
    level: Encoding,
    sizes: Tuple[int, int],
    lead: Tuple[int, ...],
    arrays: Sequence[np.ndarray],
) -> None:
    given = [np.ascontiguousarray(array) for array in arrays[:2]]
    spec = _sizes_spec(level, (math.prod(lead), *sizes), _kind(arrays[0]))
    _check(getattr(library(), name)(spec, *map(_pointer, (*given, *arrays[2:]))))


def pack_free_bitmap(weight: np.ndarray, e: Encoding, bits: np.ndarray) -> np.ndarray:
    """The values of the bitmaps of a dense weight that is free by element; fills
    `bits`."""
    weight = whole_elements(weight)
    spec = _spec(weight, e, _kind(weight))
    size = library().nmsCountFreeBitmap(spec, _pointer(weight))
    if size < 0:
        raise _error()
    values = np.zeros(size, weight.dtype)
    places = map(_pointer, (weight, values, bits))
    _check(library().nmsPackFreeBitmap(spec, *places))
    return values


def unpack_free_bitmap(
    values: np.ndarray, bits: np.ndarray, e: Encoding, shape: Tuple[int, ...]
) -> np.ndarray:
    """The dense weight of values and bits."""
    dense = np.zeros(shape, values.dtype)
    given = (np.ascontiguousarray(values), np.ascontiguousarray(bits))
    spec, places = _spec(dense, e, _kind(dense)), map(_pointer, (*given, dense))
    _check(library().nmsUnpackFreeBitmap(spec, values.size, *places))
    return dense


def pack_ragged(
    weight: np.ndarray, e: Encoding, dtype: str, step: int, part: int
) -> Dict[str, np.ndarray]:
    """The ragged panels of a dense weight of a free level, outputs in packed order,
    filled up to `step` rows; blocks are kept in parts of `part` rows."""
    weight = whole_elements(weight)
    spec, (_, _, outputs) = _spec(weight, e, dtype), extents(e, weight.shape)
    rows = library().nmsCountRagged(spec, step, _pointer(weight))
    if rows < 0:
        raise _error()
    bn = e.block[1]
    values = np.zeros((rows, bn), weight.dtype)
    index = np.zeros((rows // part, 1), np.uint32)
    panels = np.zeros((*weight.shape[:-2], -(-outputs // bn), 4), np.uint32)
    places = map(_pointer, (weight, values, index, panels))
    _check(library().nmsPackRagged(spec, step, *places))
    return {"values": values, "index": index, "panels": panels}

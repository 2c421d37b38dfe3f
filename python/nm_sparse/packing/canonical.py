# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs weights into canonical form, and back, with the library.

The components are those of `nm_sparse.encode`, bit by bit, and so are the errors.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Dict, List, Optional

import numpy as np

from ..bindings import packing_library
from ..encoding import (
    Encoding,
    EncodingError,
    Packed,
    extents,
    free,
    index_dtype,
    order,
    packed_shapes,
)
from ..reference import _bits, _default_dtype
from . import shuffled
from .shuffled import _refuse_perm, _stored

# Element types that the library does not pack: no kernel reads them.
_ONLY_REFERENCE = ("f64",)


def encode(
    weight: np.ndarray,
    encoding: Encoding,
    dtype: Optional[str] = None,
    perm: Optional[np.ndarray] = None,
) -> Packed:
    """What `nm_sparse.encode` returns of the same arguments, sooner and with less
    memory. Raises EncodingError with the same text, too."""
    e, dtype = encoding, dtype or _default_dtype(weight)
    if dtype in _ONLY_REFERENCE:
        return shuffled.encode(weight, e, dtype, perm)
    if not e.is_shuffled:
        _refuse_perm(e, perm)
    extents(e, weight.shape)
    _bits(weight, dtype, "weight")
    try:
        components = _encode(weight, e, dtype, perm)
    except EncodingError as error:
        raise _with_batch(error, weight) from None
    return Packed(components, e, weight.shape, dtype)


def _encode(
    weight: np.ndarray, e: Encoding, dtype: str, perm: Optional[np.ndarray]
) -> Dict[str, np.ndarray]:
    if not e.is_shuffled:
        pack = packing_library.pack_free if e.is_free else packing_library.pack
        return pack(weight, e, dtype)
    places = None if perm is None else order.checked(perm, e, weight)
    if not e.is_free:
        given = None if places is None else places.astype(np.uint32)
        components, found = packing_library.pack_shuffled(weight, e, dtype, given)
    else:
        if places is None:
            places = packing_library.find_order(weight, e, dtype).astype(np.int64)
        in_order = order.put(weight, e, places)
        components, found = packing_library.pack_free(in_order, e.packed, dtype), places
    return {**components, "perm": _stored(found, weight)}


def _with_batch(error: EncodingError, weight: np.ndarray) -> EncodingError:
    """The reference names the batch entry wherever there is a batch dimension, the
    library where there are several entries."""
    if weight.ndim != 3 or weight.shape[0] != 1:
        return error
    return EncodingError(re.sub(r"(panel \d+) has", r"\1 of batch 0 has", str(error)))


def decode(packed: Packed) -> np.ndarray:
    """What `nm_sparse.decode` returns, sooner. Raises EncodingError with the same
    text, too: where the library refuses components, the reference says why."""
    dense = _decode(packed)
    return shuffled.decode(packed) if dense is None else dense


def _decode(packed: Packed) -> Optional[np.ndarray]:
    """None where a component or a type is not what the library takes."""
    e, parts = packed.encoding, dict(packed.components)
    if packed.dtype in _ONLY_REFERENCE:
        return None
    perm = parts.pop("perm", None)
    if e.is_shuffled and (perm is None or perm.dtype != np.uint32):
        return None
    own = replace(packed, components=parts, encoding=e.packed)
    try:
        _bits(packed.values, packed.dtype, "values")
        arrays = _fitting(own)
        if arrays is None:
            return None
        unpack = packing_library.unpack_free if e.is_free else packing_library.unpack
        dense = unpack(arrays, e.packed, packed.dtype, packed.shape)
        if perm is None or not e.is_shuffled:
            return dense
        return order.put_back(dense, e, order.checked(perm, e, dense))
    except EncodingError:
        return None


def _fitting(packed: Packed) -> Optional[List[np.ndarray]]:
    """The components of a weight in packed order, or None where names, shapes or types
    of positions do not fit."""
    e, parts = packed.encoding, packed.components
    if e.is_free:
        free.check_types(e, extents(e, packed.shape), parts)
        return list(parts.values())
    shapes = packed_shapes(e, packed.shape)
    if {name: part.shape for name, part in parts.items()} != shapes:
        return None
    arrays = [parts[name] for name in shapes]
    types = [index_dtype(level.m) for level in e.levels]
    return arrays if [one.dtype for one in arrays[1:]] == types else None

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed weights as kernels read them (docs/Encoding.md, section 7).

Which layout that is the manifest of a program says: the canonical one, bitmaps,
ragged panels or K-major values, of the encoding that the weight has or, where the
compiler found that all weights of it are of another one, too, of that.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Tuple

import numpy as np

from ..encoding import Encoding, EncodingError, Packed
from .bitmap import innermost_weight, pack_bitmap
from .canonical import decode, encode
from .free_bitmap import pack_free_bitmap
from .k_major import pack_k_major
from .ragged import pack_ragged

_CANONICAL = (1, 2, 3, 7, 8, 9)
_BITMAP, _FREE_BITMAP, _NESTED_BITMAP = 4, 5, 6
_RAGGED, _K_MAJOR = (10, 11), 12


def store(packed: Packed, weight: Mapping[str, Any]) -> List[np.ndarray]:
    """The components of `packed` in the order and the layout that a program takes.

    weight:  an entry of `weights` of a function of the manifest (docs/Manifest.md).

    Raises EncodingError when the weight is of another shape or type, or does not have
    the pattern that the program needs.
    """
    check_kind(packed, weight)
    encoding = Encoding.parse(weight["encoding"])
    if encoding != packed.encoding:
        packed = encode(decode(packed), encoding, packed.dtype)
    components = _lay_out(packed, weight["packed_layout"])
    return [components[one["name"]] for one in weight["components"]]


def check_kind(packed: Packed, weight: Mapping[str, Any]) -> None:
    """Raises EncodingError unless shape and element type are those of `weight`."""
    shape = tuple(weight["shape"])
    if packed.shape != shape or packed.dtype != weight["element_type"]:
        raise EncodingError(
            f"the weight is {list(packed.shape)} of {packed.dtype}: the program takes "
            f"{list(shape)} of {weight['element_type']}"
        )


def canonical(packed: Packed) -> List[np.ndarray]:
    """The components of the canonical form, in the order of docs/Encoding.md."""
    names = ("values", "index", "inner_index", "offsets", "perm")
    return [packed.components[name] for name in names if name in packed.components]


def _lay_out(packed: Packed, layout: int) -> Dict[str, np.ndarray]:
    components = dict(packed.components)
    if layout in _CANONICAL:
        return components
    if layout == _BITMAP:
        values, bits = _bitmap(packed, components["index"])
        return {"values": values, "bits": bits}
    if layout == _NESTED_BITMAP:
        values, bits = _bitmap(packed, components["inner_index"])
        return {"values": values, "bits": bits, "index": components["index"]}
    if layout == _FREE_BITMAP:
        values, bits = pack_free_bitmap(packed.encoding, decode(packed))
        return {"values": values, "bits": bits}
    if layout in _RAGGED:
        return pack_ragged(packed)
    if layout == _K_MAJOR:
        own = packed.values, packed.index, *_sizes(packed)
        values, index = pack_k_major(packed.encoding, *own)
        return {"values": values, "index": index}
    raise EncodingError(
        f"the program takes weights of layout {layout}, which this package does not "
        "know: install package and compiler of one version"
    )


def _bitmap(packed: Packed, index: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Bitmaps of the innermost level."""
    level, k, outputs = innermost_weight(packed.encoding, *_sizes(packed))
    return pack_bitmap(level, packed.values, index, k, outputs)


def _sizes(packed: Packed) -> Tuple[int, int]:
    """The extents of the contraction and of the outputs."""
    dim, shape = packed.encoding.dim, packed.shape
    return shape[dim], shape[2 * len(shape) - 3 - dim]

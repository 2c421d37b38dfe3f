# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed weights whose components lie on a GPU: to the host, and to kernels."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..encoding import Encoding, Packed
from ..interop.operands import is_torch, open_operand, torch_dtype
from ..interop.transfer import as_numpy
from ..packing.storage import check_kind

_BITS = ("bf16", "f8E4M3FN", "f8E5M2")  # which numpy has as unsigned integers


def on_host(packed: Packed) -> Packed:
    """The same weight in arrays of numpy, bf16 and f8 as unsigned integers."""
    parts: Dict[str, np.ndarray] = {}
    for name, part in packed.components.items():
        if isinstance(part, np.ndarray):
            parts[name] = part
            continue
        operand = open_operand(part, name)
        host = as_numpy(part.cpu(), operand) if is_torch(part) else part.get()
        is_bits = operand.dtype in _BITS
        parts[name] = host.view(f"uint{8 * host.itemsize}") if is_bits else host
    return Packed(parts, packed.encoding, packed.shape, packed.dtype)


def find_placed(
    weight: Any, wanted: Mapping[str, Any], elements: Sequence[str], like: Any
) -> Optional[Tuple[Any, ...]]:
    """The components of a PackedTensor in the order that kernels take them, where they
    lie on the GPU of `like` already and kernels read them as they are; else None.

    wanted:    an entry of `weights` of a function of the manifest.
    elements:  the types of its components, spelled as in MLIR.

    Raises EncodingError when the weight is of another shape or type.
    """
    packed = getattr(weight, "placed", None)
    if not isinstance(packed, Packed):
        return None
    check_kind(packed, wanted)
    encoding = packed.encoding
    if wanted["packed_layout"] != encoding.version:
        return None
    if Encoding.parse(wanted["encoding"]) != encoding:
        return None
    arrays = [packed.components[one["name"]] for one in wanted["components"]]
    device = open_operand(like, "an array").device
    if any(open_operand(one, "a component").device != device for one in arrays):
        return None
    return tuple(map(_as_element, arrays, elements))


def _as_element(array: Any, element: str) -> Any:
    """An array under the type that its library has for MLIR's `element`, which is of
    the same bits."""
    if not is_torch(array):
        return array
    dtype = torch_dtype(element)
    return array if dtype is None or array.dtype == dtype else array.view(dtype)

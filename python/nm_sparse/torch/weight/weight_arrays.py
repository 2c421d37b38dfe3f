# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The components of packed weights as arrays of numpy, and back."""

from __future__ import annotations

from typing import Dict, Tuple, Union

import numpy as np
import torch
from torch import Tensor

from ...encoding import EncodingError, Packed
from .levels import bits_of
from .spec import DTYPES


def to_tensors(packed: Packed) -> Tuple[Dict[str, Tensor], Tuple[int, ...]]:
    """The canonical components as tensors in the same memory, and [N, K].

    Raises EncodingError when it is not the weight of a linear layer.
    """
    if len(packed.shape) != 2:
        raise EncodingError(f"weight has shape {packed.shape}: legal is [N, K]")
    if packed.dtype not in DTYPES:
        raise EncodingError(
            f"element type is {packed.dtype!r}: legal is {', '.join(DTYPES)}"
        )
    parts = {name: _tensor(array) for name, array in packed.components.items()}
    parts["values"] = parts["values"].view(DTYPES[packed.dtype])
    shape = packed.shape
    return parts, shape if packed.encoding.dim == 1 else shape[::-1]


def to_arrays(components: Dict[str, Tensor]) -> Dict[str, np.ndarray]:
    """Canonical components as arrays: positions, bf16 and f8 as unsigned views."""
    arrays = {}
    for name, part in components.items():
        plain = part.detach().cpu().contiguous()
        has_type = plain.dtype in _KNOWN
        if name == "values" and has_type:
            arrays[name] = plain.numpy()
        else:
            array = (plain if has_type else bits_of(plain)).numpy()
            arrays[name] = array.view(f"uint{8 * array.dtype.itemsize}")
    return arrays


# Types that numpy has.
_KNOWN = (
    torch.float16,
    torch.float32,
    torch.float64,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
)


def _tensor(array: Union[np.ndarray, Tensor]) -> Tensor:
    """The same memory; bits of wide unsigned integers as signless ones."""
    if isinstance(array, Tensor):
        return array
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.view(f"int{8 * array.dtype.itemsize}")
    return torch.from_numpy(np.ascontiguousarray(array))

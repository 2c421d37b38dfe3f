# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types, shapes and bytes of what a new checkpoint holds."""

from __future__ import annotations

import math
from typing import Dict, Optional, Sequence, Tuple

import numpy as np

from ...encoding import Encoding, index_dtype, packed_shapes
from ..packed_file import EXTRA, SCALE, extra_state
from ..scales import numpy_type
from ..tensor_file import FILE_TYPES, TensorInfo
from .shard_writer import Entry

_POSITIONS = {1: "U8", 2: "U16", 4: "U32"}  # by their bytes


def packed_entries(
    layer: str,
    shape: Tuple[int, ...],
    e: Encoding,
    dtype: str,
    elements: Optional[str] = None,
) -> Dict[str, Entry]:
    """Those of a packed layer, as its `state_dict` has them.

    elements:  of 8 bits, as in MLIR, that have scales; None: values are `dtype`.
    """
    types = {
        name: index_dtype(one.m)
        for name, one in zip(("index", "inner_index"), e.levels)
    }
    types["perm"] = np.dtype(np.uint32)
    entries = {}
    for part, size in packed_shapes(e, shape).items():
        if part == "values":
            entries[f"{layer}.{part}"] = cast_entry(size, elements or dtype)
        else:
            width = types[part].itemsize
            count = math.prod(size) * width
            entries[f"{layer}.{part}"] = _POSITIONS[width], size, count
    if elements is not None:
        entries[f"{layer}.{SCALE}"] = cast_entry(shape[:1], "f32")
    state = extra_state(e, shape)
    entries[f"{layer}.{EXTRA}"] = "U8", state.shape, state.nbytes
    return entries


def cast_entry(shape: Sequence[int], dtype: str) -> Entry:
    """Of a tensor of elements of `dtype`."""
    size = math.prod(shape) * numpy_type(dtype).itemsize
    return FILE_TYPES[dtype], tuple(shape), size


def copied_entry(info: TensorInfo) -> Entry:
    """Of a tensor that stays as it is."""
    return info.dtype, info.shape, info.size

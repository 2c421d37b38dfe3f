# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scales of quantized weights, and elements as numbers.

A weight with a scale stands for its stored elements times that: one number for all of
it, or one for each output. All is computed in f32 and rounded once.
"""

from __future__ import annotations

from typing import Optional

import numpy as np

from ..reference import _numbers
from .checkpoint import SCALES, Checkpoint
from .packed_file import SCALE
from .tensor_file import DTYPES, CheckpointError, TensorInfo

_TABLES = ("f8E4M3FN", "f8E5M2")
# Types of weights that are numbers without a scale.
FLOATS = ("f16", "bf16", "f32")
# The largest number of each type of elements that are made here, which have scales.
LARGEST = {"f8E4M3FN": 448.0, "i8": 127.0}
# Scales are never made for a smaller largest number.
LEAST = 1e-12


def scale_name(checkpoint: Checkpoint, name: str) -> Optional[str]:
    """The tensor that has the scale of a weight; None where there is none."""
    names = [name + ending for ending in SCALES]
    if name in checkpoint.packed:
        names.append(checkpoint.packed[name].prefix + SCALE)
    return next((one for one in names if checkpoint.has(one)), None)


def check_scale(checkpoint: Checkpoint, name: str, outputs: int) -> Optional[str]:
    """The name of the scale of a weight, which is legal; None where there is none.

    Raises CheckpointError unless it is one number or one for each output, and unless
    zero points, if there are any, are zero.
    """
    found = scale_name(checkpoint, name)
    if found is None:
        return None
    file = checkpoint.file_of(found)
    shape = file.tensors[found].shape
    count = int(np.prod(shape, dtype=np.int64))
    if count != 1 and not (count == outputs and shape[:1] == (outputs,)):
        raise CheckpointError(
            f"{file.path}: tensor {found!r} has shape {list(shape)}: legal is one "
            f"number, or one for each of {outputs} outputs"
        )
    if file.tensors[found].element_type not in FLOATS:
        raise CheckpointError(
            f"{file.path}: tensor {found!r} is {file.tensors[found].dtype}: legal is "
            "F16, BF16 or F32"
        )
    zero = f"{name}_zero_point"
    if checkpoint.has(zero) and np.any(checkpoint.tensor(zero)):
        raise CheckpointError(
            f"{checkpoint.file_of(zero).path}: tensor {zero!r} is not zero: legal are "
            "weights whose zeros are zero"
        )
    return found


def check_layouts(checkpoint: Checkpoint) -> None:
    """Raises CheckpointError, which names the tensor, where a weight is in a layout
    that cannot be read."""
    for name, layout in checkpoint.unread.items():
        raise CheckpointError(
            f"{checkpoint.file_of(name).path}: tensor {name!r} is part of a weight in "
            f"the layout {layout!r}, which cannot be read: legal are matrices that are "
            "dense, sparse-24-bitmask or marlin-24, with one scale or one for each "
            "output; save the model without that quantization"
        )


def check_readable(checkpoint: Checkpoint) -> None:
    """Raises CheckpointError, which names the tensor, where a weight is in a layout or
    has a scale that cannot be read."""
    check_layouts(checkpoint)
    for name, weight in checkpoint.weights.items():
        check_scale(checkpoint, name, weight.outputs)
    for name, place in checkpoint.packed.items():
        check_scale(checkpoint, name, place.described.shape[0])


def read_scale(checkpoint: Checkpoint, name: str, outputs: int) -> Optional[np.ndarray]:
    """The scale of a weight in f32, [1] or [outputs]; None where there is none.

    Raises as `check_scale` does."""
    found = check_scale(checkpoint, name, outputs)
    if found is None:
        return None
    info: TensorInfo = checkpoint.file_of(found).tensors[found]
    return to_f32(checkpoint.tensor(found), str(info.element_type)).ravel()


def to_f32(array: np.ndarray, dtype: str) -> np.ndarray:
    """Elements, bf16 and f8 as unsigned views, as numbers of f32."""
    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    if dtype in _TABLES:
        codes = np.arange(256, dtype=np.uint8)
        with np.errstate(invalid="ignore"):  # of NaNs
            return _numbers(codes, dtype).astype(np.float32)[array]
    with np.errstate(invalid="ignore"):
        return array.astype(np.float32)


def from_f32(numbers: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers of f32 rounded to `dtype`, one of `FLOATS`: to nearest, ties to even."""
    if dtype != "bf16":
        with np.errstate(over="ignore"):
            return numbers.astype(numpy_type(dtype))
    bits = numbers.view(np.uint32)
    odd = bits >> 16 & np.uint32(1)
    rounded = (bits + np.uint32(0x7FFF) + odd) >> 16
    # A NaN must not carry into infinity.
    nan = (bits >> 16) | np.uint32(0x40)
    return np.where(np.isnan(numbers), nan, rounded).astype(np.uint16)


def to_scale(largest: np.ndarray, elements: str) -> np.ndarray:
    """The scale of numbers of which this is the largest: f32, more than 0."""
    return np.maximum(largest, np.float32(LEAST)) / np.float32(LARGEST[elements])


def to_elements(numbers: np.ndarray, elements: str) -> np.ndarray:
    """Numbers of f32 rounded to elements, f8 as an unsigned view: the nearest even of
    two; those that are larger than all become the largest."""
    limit = np.float32(LARGEST[elements])
    if elements == "i8":
        return np.clip(np.rint(numbers), -limit, limit).astype(np.int8)
    size = np.minimum(np.abs(numbers), limit)
    bits = size.view(np.uint32)
    # Three bits of the mantissa are left, and the bias of the exponent is 7, not 127.
    code = (bits + np.uint32(0x7FFFF) + (bits >> 20 & np.uint32(1))) >> 20
    code -= np.uint32(120 << 3)
    is_small = size < 2.0**-6  # in steps of 2^-9
    code[is_small] = np.rint(size[is_small] * np.float32(512)).astype(np.uint32)
    code[np.isnan(numbers)] = 0x7F
    return (code | np.signbit(numbers).astype(np.uint32) << 7).astype(np.uint8)


def numpy_type(dtype: str) -> np.dtype:
    """The type of arrays of elements of `dtype`, which MLIR spells so."""
    kinds = (kind for _, kind, mlir in DTYPES.values() if mlir == dtype)
    return np.dtype(next(kinds))

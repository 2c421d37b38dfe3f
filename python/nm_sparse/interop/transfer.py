# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of numpy from and to those of other libraries, on the host and on a GPU."""

from __future__ import annotations

import sys
from typing import Any, Optional, Sequence

import numpy as np

from .operands import Operand, OperandError, is_torch, open_operand, torch_dtype


def as_numpy(argument: Any, operand: Optional[Operand]) -> np.ndarray:
    """An array of the host as one of numpy, with the same memory."""
    if not is_torch(argument):
        return argument
    torch = sys.modules["torch"]
    tensor = argument.detach()
    if operand is not None and operand.dtype in ("bf16", "f8E4M3FN", "f8E5M2"):
        tensor = tensor.view(torch.int16 if operand.dtype == "bf16" else torch.int8)
    return tensor.numpy()


def give_back(
    value: np.ndarray, element: str, target: Any, arguments: Sequence[Any]
) -> Any:
    """`value`, of MLIR's type `element`, in `target` where there is one, else as the
    arguments are."""
    if target is None and not any(is_torch(argument) for argument in arguments):
        return value
    if target is None or is_torch(target):
        torch = sys.modules["torch"]
        # Signed, because old versions of torch have no wide unsigned integers.
        signed = value.view(f"i{value.itemsize}") if value.dtype.kind == "u" else value
        dtype = torch_dtype(element) if target is None else target.dtype
        tensor = torch.from_numpy(signed).view(dtype)
        if target is None:
            return tensor
        target.detach().copy_(tensor)
        return target
    target[...] = value.view(target.dtype)
    return target


def place(array: np.ndarray, element: str, like: Any) -> Any:
    """A copy of `array` on the GPU where `like` is."""
    if is_torch(like):
        torch = sys.modules["torch"]
        signed = (
            array.view(f"int{8 * array.itemsize}") if array.dtype.kind == "u" else array
        )
        tensor = torch.from_numpy(np.ascontiguousarray(signed))
        dtype = torch_dtype(element)
        if dtype is not None and tensor.dtype != dtype:
            tensor = tensor.view(dtype)
        return tensor.to(like.device)
    cupy = sys.modules.get("cupy")
    if cupy is None:
        raise OperandError(
            f"a weight cannot be copied to where {type(like).__name__} arrays are: "
            "pass arrays of torch or cupy"
        )
    with cupy.cuda.Device(open_operand(like, "an array").device):
        copy = cupy.asarray(array)
        # The copy is on the current stream, and kernels may be on another one.
        cupy.cuda.get_current_stream().synchronize()
        return copy

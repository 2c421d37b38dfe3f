# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of `quantize_tokens`, for layers that are called again and again.

triton looks at all arguments to find a compiled kernel, which takes several times as
long as a launch. For the rows of one layer it is always the same, and may be launched
by the driver alone: docs/decisions/093-eager-calls-in-c.md.
"""

from __future__ import annotations

import importlib
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor

from .quantize import find_kernel
from .scales import LARGEST, LEAST
from .spec import DTYPES, elements_of


class RowKernel(NamedTuple):
    """A compiled kernel with a block for each row of x, as the driver launches it.

    function:  a CUfunction.
    threads, shared:  of a block; bytes of shared memory.
    columns:   of a row.
    values:    its arguments, of a kind each: numbers, and what each launch gives.
    kept:      what the function belongs to.
    """

    function: int
    threads: int
    shared: int
    columns: int
    values: Tuple[Tuple[str, Any], ...]
    kept: Any


def row_kernel(
    x: Tensor, elements: str, scale: Optional[Tensor]
) -> Optional[RowKernel]:
    """That of all rows of x's length and type that are one behind the other, and begin
    at a multiple of 16 bytes; None where there is none.

    elements, scale:  as for `quantize_tokens`.
    """
    kind = elements_of(elements, "elements")
    if kind is None or find_kernel(x, kind) is None:
        return None
    rows = x.new_zeros(1, x.shape[-1])  # triton looks at strides and addresses
    out = torch.empty_like(rows, dtype=DTYPES[kind])
    scales = rows.new_empty(1, dtype=torch.float32) if scale is None else scale
    made = importlib.import_module(".quantize_kernel", __package__)
    own = kind, scale is not None, LARGEST[kind], LEAST
    with torch.cuda.device(x.device):
        kernel, arguments = made.launch(rows, out, scales, *own)
    return describe(kernel, arguments, rows.shape[1], scale)


def describe(
    kernel: Any, arguments: Sequence[Any], columns: int, scale: Optional[Tensor]
) -> Optional[RowKernel]:
    """What triton has compiled; None where that is of another form, as versions before
    3.2 and its interpreter return.

    arguments:  of the kernel, behind x, elements and scales.
    """
    try:
        metadata, function = kernel.metadata, kernel.function
        types = list(kernel.src.signature.values())
        has_more = (
            metadata.num_ctas != 1
            or metadata.global_scratch_size
            or getattr(metadata, "profile_scratch_size", 0)
            or getattr(metadata, "launch_cooperative_grid", False)
            or getattr(metadata, "launch_pdl", False)
        )
        threads = metadata.num_warps * metadata.target.warp_size
        shared = metadata.shared
    except AttributeError:
        return None
    if has_more or not isinstance(function, int) or len(types) != 3 + len(arguments):
        return None
    if any(not type.startswith("*") for type in types[:3]):
        return None
    values: List[Tuple[str, Any]] = [("x", None), ("out", None), ("scales", None)]
    if scale is not None:
        values[2] = "address", scale.data_ptr()
    for type, value in zip(types[3:], arguments):
        if type == "constexpr":
            continue
        if type not in ("i32", "i64", "fp32"):
            return None
        values.append((type, value))
    values += [("address", 0)] * 2  # memory of its own, of which it has none
    return RowKernel(function, threads, shared, columns, tuple(values), kernel)

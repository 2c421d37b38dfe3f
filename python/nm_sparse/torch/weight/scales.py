# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights whose elements have 8 bits and a scale for each output.

The scale is the component `scale`, f32 [N], in the order of the outputs of the layer.
An output stands for its elements times its scale.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ...encoding import EncodingError
from .pack import inverse, perm_of
from .spec import DTYPES, ELEMENTS, SCALE, LinearSpec
from .storage import from_storage

# The largest number of each type of elements, as in MLIR.
LARGEST = {"f8E4M3FN": 448.0, "i8": 127.0}
# Scales are never made for a smaller largest number.
LEAST = 1e-12
# One scale for each output, or one for all of a weight.
SCALES = ("output", "tensor")


def to_elements(numbers: Tensor, elements: str) -> Tensor:
    """f32 or f64 rounded to elements, the nearest even of two; those that are larger
    than all become the largest."""
    limit = LARGEST[elements]
    if elements == "i8":
        numbers = numbers.round()
    return numbers.clamp(-limit, limit).to(DTYPES[elements])


def to_scale(largest: Tensor, elements: str) -> Tensor:
    """The scale of numbers of which this is the largest: f32, more than 0."""
    return largest.to(torch.float32).clamp(min=LEAST) / LARGEST[elements]


def check_scales(scales: str) -> None:
    """Raises EncodingError unless it is one of `SCALES`."""
    if scales not in SCALES:
        legal = ", ".join(map(repr, SCALES))
        raise EncodingError(f"scales is {scales!r}: legal is {legal}")


def check_scale(scale: Tensor, outputs: int) -> None:
    """Raises EncodingError unless it may be the component of that name."""
    if scale.dtype != torch.float32 or scale.shape != (outputs,):
        raise EncodingError(
            f"{SCALE} is {list(scale.shape)} of {scale.dtype}: a weight of {outputs} "
            f"outputs needs [{outputs}] of torch.float32"
        )


def name_of(elements: Optional[str]) -> Optional[str]:
    """The short name of a type of elements; None for None."""
    return next((name for name, mlir in ELEMENTS.items() if mlir == elements), None)


def quantize_parts(
    parts: Sequence[Tensor],
    spec: LinearSpec,
    elements: str,
    scales: str = "output",
    scale: Optional[Tensor] = None,
) -> Tuple[List[Tensor], LinearSpec]:
    """Canonical components with elements and scales, and their spec.

    parts:   canonical, of floats, of `spec`.
    scales:  how many there are, one of `SCALES`.
    scale:   f32 [N]; by default that of the largest of each output, or of all.

    Raises EncodingError when scales or scale are not legal.
    """
    check_scales(scales)
    outputs = spec.shape[0]
    values = parts[0].detach()
    numbers = values.to(_wide(values.dtype))
    if scale is None:
        scale = _scale_of(numbers, parts, spec, elements, scales)
    check_scale(scale, outputs)
    rounded = to_elements(numbers / _columns(scale, parts, spec), elements)
    # Past the last output there is +0, of all types.
    found = [rounded, *parts[1:], scale]
    fields = (spec.encoding, spec.shape, spec.dtype, spec.activation)
    return found, LinearSpec(*fields, elements=elements)


def _scale_of(
    numbers: Tensor,
    parts: Sequence[Tensor],
    spec: LinearSpec,
    elements: str,
    scales: str,
) -> Tensor:
    outputs = spec.shape[0]
    if numbers.numel() == 0:
        largest = numbers.new_zeros(outputs)
    else:
        largest = numbers.abs().amax(0)[:outputs]
    if scales == "tensor" and outputs:
        largest = largest.amax().expand(outputs)
    elif spec.encoding.is_shuffled:
        largest = largest.index_select(0, inverse(perm_of(parts, spec.encoding)))
    return to_scale(largest, elements).contiguous()


def packed_scale(weight: Sequence[Tensor], spec: LinearSpec) -> Tensor:
    """The scale [N] of a weight in the order of its packed outputs."""
    scale = weight[-1]
    if not spec.encoding.is_shuffled:
        return scale
    perm = perm_of(weight, spec.encoding).to(torch.int64)
    return scale.index_select(0, perm)


def _columns(scale: Tensor, parts: Sequence[Tensor], spec: LinearSpec) -> Tensor:
    """A scale [N] for each column of canonical values, 1 past the last output."""
    ordered = packed_scale([*parts, scale], spec)
    return F.pad(ordered, (0, parts[0].shape[1] - len(scale)), value=1.0)


def _wide(dtype: torch.dtype) -> torch.dtype:
    """In which numbers are multiplied by scales."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def dequantize_parts(weight: Sequence[Tensor], spec: LinearSpec) -> List[Tensor]:
    """The canonical components of `spec.dequantized` that stand for the same weight."""
    *parts, scale = from_storage(weight, spec)
    wide = _wide(spec.torch_dtype)
    columns = _columns(scale, parts, spec).to(wide)
    values = (parts[0].to(wide) * columns).to(spec.torch_dtype)
    return [values, *parts[1:]]


def relative_error(weight: Any, rounded: Any) -> float:
    """How far a packed weight with scales is from the one of the same pattern that it
    was made of, relative to the norm of that."""
    before, after = (w.dequantize().canonical().values for w in (weight, rounded))
    before = before.to(torch.float64)
    norm = float(before.norm())
    return float((after.to(torch.float64) - before).norm()) / norm if norm else 0.0


def scale_outputs(dense: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """Dense elements [N, K] times the scale [N] of each output."""
    wide = _wide(dtype)
    return (dense.to(wide) * scale[:, None].to(wide)).to(dtype)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations as elements of 8 bits with a scale for each token, or one for all.

They are plain operators of torch, which `torch.compile` joins with what is in front of
them, such as a norm. Eager calls on a GPU are one kernel, if triton is installed; so
are long rows in compiled graphs, which would be read several times there:
docs/decisions/092-quantizing-rows.md. Elements that are stored feature-major are always
written by a kernel of their own there: code of torch would write single bytes.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from ...encoding import EncodingError
from .plain import is_untraced
from .scales import LARGEST, LEAST, to_elements
from .spec import DTYPES, NARROW, elements_of
from .token_layout import empty_feature_major, to_feature_major
from .weight import LIBRARY

# Elements of rows that compiled graphs read more than once.
_LONG = 8192
_LONGEST = 65536  # which the kernel can hold in registers


def quantize_tokens(
    x: Tensor,
    elements: str = "e4m3",
    scale: Optional[Tensor] = None,
    feature_major: bool = False,
) -> Tuple[Tensor, Tensor]:
    """x as elements and their scales: x is about their product.

    x:         [..., K], of a float type of 16 bits or more.
    elements:  "e4m3" or "int8".
    scale:     of all tokens, f32 []: what is larger than it allows becomes the largest
               element. By default each token has its own, that of its largest number.
    feature_major:  whether elements are stored as x^T: those of a feature side by
               side, features a multiple of 128 bytes apart. Products of wide panels
               read x so, and other layers copy it. Shape and elements are the same.

    Returns elements [..., K] and scales, f32 [..., 1]; or [] where there is one. A
    scale is the largest number of a token times 1 / 448 or 1 / 127, and elements are
    x times the inverse of the scale, rounded to nearest, all of it in f32. They have
    no gradient: layers have one for x.

    Raises EncodingError when a type or a shape is another one.
    """
    kind = elements_of(elements, "elements")
    if kind is None:
        raise EncodingError("elements is None: legal is 'e4m3' or 'int8'")
    if not x.is_floating_point() or x.dtype in NARROW or x.ndim < 1:
        raise EncodingError(
            f"x is {list(x.shape)} of {x.dtype}: legal is [..., K] of a float type of "
            "16 bits or more"
        )
    if scale is not None and (scale.ndim > 0 or scale.dtype != torch.float32):
        raise EncodingError(
            f"scale is {list(scale.shape)} of {scale.dtype}: legal is [] of "
            "torch.float32, one for all tokens"
        )
    if not isinstance(feature_major, bool):
        raise EncodingError(
            f"feature_major is {feature_major!r}: legal is True or False"
        )
    x = x.detach()
    if feature_major and torch.compiler.is_compiling():
        found, own = torch.ops.nm_sparse.quantize_columns(x, scale, kind)
        return found, own if scale is None else scale
    if is_untraced(x):
        launch = find_kernel(x, kind, feature_major)
        if launch is not None:
            return launch(x, kind, scale)
    return quantize_by_operators(x, kind, scale, feature_major)


def quantize_alone(
    x: Tensor, elements: str, scale: Optional[Tensor], feature_major: bool = False
) -> Tuple[Tensor, Tensor]:
    """`quantize_tokens` of an x that a single layer reads: long rows are quantized by a
    kernel of their own in compiled graphs, too. Layers that share an x, and those of
    short rows, often have a norm in front, which is joined."""
    if feature_major:
        return quantize_tokens(x, elements, scale, feature_major)
    if scale is None and _is_long(x):
        kind: Any = elements_of(elements, "elements")
        return torch.ops.nm_sparse.quantize_rows(x.detach(), kind)
    return quantize_tokens(x, elements, scale)


def quantize_by_operators(
    x: Tensor,
    kind: str,
    scale: Optional[Tensor] = None,
    feature_major: bool = False,
) -> Tuple[Tensor, Tensor]:
    """`quantize_tokens` by plain operators; `kind` is that of elements in MLIR."""
    if feature_major:
        found, scale = quantize_by_operators(x, kind, scale)
        return to_feature_major(found), scale
    numbers = x.to(torch.float32)
    if scale is None:
        if x.shape[-1] == 0:
            return to_elements(numbers, kind), numbers.new_ones((*x.shape[:-1], 1))
        largest = numbers.abs().amax(-1, keepdim=True)
        # GPUs divide by numbers so, and take long to divide by scales.
        scale = largest.clamp(min=LEAST) * (1 / LARGEST[kind])
    return to_elements(numbers * scale.reciprocal(), kind), scale


def _is_long(x: Tensor) -> bool:
    """Whether a graph that is compiled gives rows to a kernel of their own."""
    return torch.compiler.is_compiling() and x.is_cuda and x.shape[-1] >= _LONG


LIBRARY.define(
    "quantize_rows(Tensor x, str elements) -> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


@torch.library.impl(LIBRARY, "quantize_rows", "CompositeExplicitAutograd")
def _quantize_rows(x: Tensor, elements: str) -> Tuple[Tensor, Tensor]:
    launch = find_kernel(x, elements)
    if launch is None:
        return quantize_by_operators(x, elements)
    return launch(x, elements, None)


@torch.library.register_fake("nm_sparse::quantize_rows", lib=LIBRARY)
def _quantize_rows_fake(x: Tensor, elements: str) -> Tuple[Tensor, Tensor]:
    scale = x.new_empty((*x.shape[:-1], 1), dtype=torch.float32)
    return torch.empty_like(
        x, dtype=DTYPES[elements], memory_format=torch.contiguous_format
    ), scale


LIBRARY.define(
    "quantize_columns(Tensor x, Tensor? scale, str elements) -> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


@torch.library.impl(LIBRARY, "quantize_columns", "CompositeExplicitAutograd")
def _quantize_columns(
    x: Tensor, scale: Optional[Tensor], elements: str
) -> Tuple[Tensor, Tensor]:
    """Elements that are stored feature-major, and scales, [0] where one is given, which
    a result must not be."""
    launch = find_kernel(x, elements, True)
    if launch is None:
        found, own = quantize_by_operators(x, elements, scale, True)
    else:
        found, own = launch(x, elements, scale)
    return found, own if scale is None else scale.new_empty(0)


@torch.library.register_fake("nm_sparse::quantize_columns", lib=LIBRARY)
def _quantize_columns_fake(
    x: Tensor, scale: Optional[Tensor], elements: str
) -> Tuple[Tensor, Tensor]:
    shape = (*x.shape[:-1], 1) if scale is None else (0,)
    own = x.new_empty(shape, dtype=torch.float32)
    return empty_feature_major(x, DTYPES[elements])[1], own


def find_kernel(x: Tensor, kind: str, feature_major: bool = False) -> Any:
    """What quantizes x by one kernel; None where there is none."""
    if not x.is_cuda or x.numel() == 0:
        return None
    if x.shape[-1] > _LONGEST and not feature_major:
        return None
    return _launcher(kind, x.device, feature_major)


def prepare_columns(
    columns: int, dtype: torch.dtype, device: torch.device, elements: str, scaled: bool
) -> bool:
    """Whether a kernel on a GPU stores elements feature-major, of rows of so many
    numbers of this type: it is then loaded, for any number of tokens, which a capture
    could not do.

    elements:  as in MLIR.
    scaled:    whether all tokens have one scale.
    """
    if columns < 1 or _launcher(elements, device, True) is None:
        return False
    made = importlib.import_module(".quantize_columns", __package__)
    limits = LARGEST[elements], LEAST
    made.prepare(columns, dtype, device, elements, scaled, *limits)
    return True


@functools.lru_cache(maxsize=None)
def _launcher(kind: str, device: torch.device, feature_major: bool) -> Any:
    if importlib.util.find_spec("triton") is None:
        return None
    # Earlier ones have no conversion to f8.
    if kind != "i8" and torch.cuda.get_device_capability(device) < (8, 9):
        return None
    limits = dict(largest=LARGEST[kind], least=LEAST)
    if feature_major:
        made = importlib.import_module(".quantize_columns", __package__)
        return functools.partial(made.quantize_columns, **limits)
    made = importlib.import_module(".quantize_kernel", __package__)
    return functools.partial(made.quantize_rows, **limits)

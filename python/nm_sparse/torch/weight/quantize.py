# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations as elements of 8 bits with a scale for each token, or one for all.

They are plain operators of torch, which `torch.compile` joins with what is in front of
them, such as a norm. Eager calls on a GPU are one kernel, if triton is installed.
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
from .scales import LARGEST, LEAST, to_elements, to_scale
from .spec import NARROW, elements_of


def quantize_tokens(
    x: Tensor, elements: str = "e4m3", scale: Optional[Tensor] = None
) -> Tuple[Tensor, Tensor]:
    """x as elements and their scales: x is about their product.

    x:         [..., K], of a float type of 16 bits or more.
    elements:  "e4m3" or "int8".
    scale:     of all tokens, f32 []: what is larger than it allows becomes the largest
               element. By default each token has its own, that of its largest number.

    Returns elements [..., K], rounded to nearest, and scales, f32 [..., 1]; or []
    where there is one. They have no gradient: layers have one for x.

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
    x = x.detach()
    if is_untraced(x) and x.numel() > 0:
        launch = _launcher(kind, x.device)
        if launch is not None:
            return launch(x, kind, scale)
    numbers = x.to(torch.float32)
    if scale is None:
        if x.shape[-1] == 0:
            return to_elements(numbers, kind), numbers.new_ones((*x.shape[:-1], 1))
        scale = to_scale(numbers.abs().amax(-1, keepdim=True), kind)
    return to_elements(numbers / scale, kind), scale


@functools.lru_cache(maxsize=None)
def _launcher(kind: str, device: torch.device) -> Any:
    """What quantizes rows by one kernel; None where there is none."""
    if importlib.util.find_spec("triton") is None:
        return None
    # Earlier ones have no conversion to f8.
    if kind != "i8" and torch.cuda.get_device_capability(device) < (8, 9):
        return None
    made = importlib.import_module(".quantize_kernel", __package__)
    return functools.partial(made.quantize_rows, largest=LARGEST[kind], least=LEAST)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers that compute with the rounding of number formats, on dense tensors.

Elements of weights and of x are exact in bf16 and f16, so that products of tensor cores
on them give the sums of kernels for narrow elements. Scales multiply the f32 sums. A
training passes gradients straight through the rounding.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Optional, Tuple

import torch
from torch import Tensor, nn

from nm_sparse.torch.prune.masks import layer_encoding

LARGEST = {"e4m3": 448.0, "int8": 127.0}
BITS = {"e4m3": 8, "int8": 8, "int4": 4, "int3": 3}
GROUP = 128  # inputs that share a scale, of elements of 4 bits and fewer
LEAST = 1e-12
DENSE = "dense"


@dataclass(frozen=True)
class Format:
    """How a layer computes.

    weights:      elements of the weight: "e4m3" or "int8" with a scale for each output,
                  "int4" or "int3" with one for each group of inputs, or None.
    activations:  those that x is rounded to, with a scale for each token, or None.
    """

    weights: Optional[str] = None
    activations: Optional[str] = None


FORMATS = {
    "16 bits": Format(),
    "W8A8 e4m3": Format("e4m3", "e4m3"),
    "W8A8 int8": Format("int8", "int8"),
    "W8A16 e4m3": Format("e4m3"),
    "W4A16 int4": Format("int4"),
    "W3A16 int3": Format("int3"),
}


def is_grouped(elements: Optional[str]) -> bool:
    """Whether scales are those of groups of inputs."""
    return elements is not None and BITS[elements] < 8


def limits(elements: str) -> Tuple[int, int]:
    """The least and the largest integer of grouped elements."""
    half = 1 << (BITS[elements] - 1)
    return -half, half - 1


def to_nearest(numbers: Tensor, elements: str) -> Tensor:
    """Numbers that have been divided by their scale, each rounded to an element; in
    their own type."""
    if is_grouped(elements):
        return numbers.round().clamp(*limits(elements))
    limit = LARGEST[elements]
    if elements == "int8":
        return numbers.round().clamp(-limit, limit)
    return numbers.clamp(-limit, limit).to(torch.float8_e4m3fn).to(numbers.dtype)


def token_elements(x: Tensor, elements: str) -> Tuple[Tensor, Tensor]:
    """(elements f32 [tokens, K], scales f32 [tokens, 1]) of x [tokens, K]."""
    wide, limit = x.float(), LARGEST[elements]
    scale = wide.abs().amax(-1, keepdim=True).clamp(min=LEAST) * (1 / limit)
    return to_nearest(wide * scale.reciprocal(), elements), scale


def weight_elements(
    weight: Tensor, scale: Optional[Tensor], elements: Optional[str]
) -> Tuple[Tensor, Optional[Tensor]]:
    """(what products read f32 [N, K], scales of their sums f32 [N] or None).

    scale:  [N], or [N, K / GROUP] of grouped elements, which are multiplied by it ahead
            of the product.
    """
    wide = weight.float()
    if elements is None or scale is None:
        return wide, None
    if not is_grouped(elements):
        return to_nearest(wide / scale[:, None], elements), scale
    columns = scale.repeat_interleave(GROUP, 1)[:, : wide.shape[1]]
    return to_nearest(wide / columns, elements) * columns, None


@functools.lru_cache(maxsize=None)
def _has_wide_sums(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether products of 16 bits give their f32 sums on a device."""
    if device.type != "cuda":
        return False
    try:
        one = torch.ones(16, 16, device=device, dtype=dtype)
        return torch.mm(one, one, out_dtype=torch.float32).dtype == torch.float32
    except (TypeError, RuntimeError):
        return False


def product(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """a b, f32 [M, N], of a [M, K] and b [K, N] rounded to `dtype`."""
    a, b = a.to(dtype), b.to(dtype)
    if _has_wide_sums(a.device, dtype):
        return torch.mm(a, b, out_dtype=torch.float32)
    return a.float() @ b.float()


class _Rounded(torch.autograd.Function):
    """x W^T with both rounded; gradients are those of the rounded values, passed on as
    if nothing had been rounded."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        mask: Optional[Tensor],
        scale: Optional[Tensor],
        form: Format,
        dtype: torch.dtype,
    ) -> Tensor:
        rows, row_scale = x.reshape(-1, x.shape[-1]).to(dtype), None
        with torch.autocast(x.device.type, enabled=False):
            if form.activations:
                wide, row_scale = token_elements(rows, form.activations)
                rows = wide.to(dtype)
            columns, sum_scale = weight_elements(weight, scale, form.weights)
            columns = columns.to(dtype)
            y = product(rows, columns.t(), dtype)
            y = y if row_scale is None else y.mul_(row_scale)
            y = y if sum_scale is None else y.mul_(sum_scale)
        ctx.save_for_backward(rows, columns, row_scale, sum_scale, mask)
        ctx.dtype, ctx.like = dtype, (x.shape, x.dtype, weight.dtype)
        return y.to(dtype).reshape(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        rows, columns, row_scale, sum_scale, mask = ctx.saved_tensors
        shape, x_dtype, weight_dtype = ctx.like
        given = gradients[0].reshape(-1, gradients[0].shape[-1]).float()
        scaled = given if sum_scale is None else given * sum_scale
        for_x = product(scaled, columns, ctx.dtype).to(x_dtype).reshape(shape)
        scaled = given if row_scale is None else given * row_scale
        for_weight = product(scaled.t(), rows, ctx.dtype).to(weight_dtype)
        if mask is not None:
            for_weight = for_weight * mask
        return for_x, for_weight, None, None, None, None


class RoundedLinear(nn.Module):
    """A linear layer in a format.

    weight:  [N, K], trained; zero outside of `mask`, and it stays so, as gradients do.
    mask:    bool [N, K], or None where the weight is dense.
    scale:   f32 of the weight's elements, not trained: [N] or [N, K / GROUP].
    dtype:   torch.bfloat16 or torch.float16: of x and y, and of a weight without
             elements.
    """

    def __init__(
        self,
        linear: nn.Linear,
        form: Format,
        mask: Optional[Tensor],
        scale: Optional[Tensor],
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        super().__init__()
        self.form, self.dtype = form, dtype
        self.weight = nn.Parameter(linear.weight.detach().clone())
        bias = linear.bias
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone())
        self.register_buffer("mask", mask)
        self.register_buffer("scale", scale)

    def forward(self, x: Tensor) -> Tensor:
        y = _Rounded.apply(x, self.weight, self.mask, self.scale, self.form, self.dtype)
        return y if self.bias is None else y + self.bias.to(y)

    def extra_repr(self) -> str:
        return f"{tuple(self.weight.shape)}, {self.form}"


def bits_per_weight(
    pattern: str, elements: Optional[str], shapes: Iterable[Tuple[int, int]]
) -> Dict[str, float]:
    """Bits that each weight of the dense layers takes in memory, by what they are for.

    pattern:   an encoding, or `DENSE`.
    elements:  None for 16 bits.
    shapes:    [N, K] of the layers.

    Positions are a bit each where single elements are kept (a bitmap, or two bits for
    each element that 2:4 keeps), and a byte for each block that panels keep. Scales
    have 32 bits for an output, 16 for a group.
    """
    share, index = 1.0, 0.0
    if pattern != DENSE:
        e = layer_encoding(pattern)
        for level in e.levels:
            size = math.prod(level.block)
            kept = level.n / level.m
            index += share / size if size == 1 else share * kept * 8 / size
            share *= kept
    weights = scales = 0
    for n, k in shapes:
        weights += n * k
        if is_grouped(elements):
            scales += 16 * n * -(-k // GROUP)
        elif elements is not None:
            scales += 32 * n
    bits = {
        "values": share * (16 if elements is None else BITS[elements]),
        "index": index,
        "scales": scales / max(weights, 1),
    }
    return {**bits, "all": sum(bits.values())}

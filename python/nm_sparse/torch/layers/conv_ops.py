# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator `nm_sparse::conv2d`: a convolution of images with a packed weight.

    nm_sparse::conv2d(Tensor x, Tensor[] weight, Tensor? bias, Tensor? residual,
                      int[] kernel, int[] stride, int[] padding, int[] dilation,
                      str spec) -> Tensor
        activation(conv(x, W) + bias + residual) for x [B, C, H, W]; `spec` is the
        `LinearSpec` of the weight as a matrix [N, kh * kw * C], and padding is that of
        `Geometry`

The result [B, N, P, Q] is `channels_last` where x is. On CUDA `conv_kernels.py` runs
compiled kernels. Elsewhere the weight is unpacked: that is the reference. Gradients are
those of a dense convolution; the one of the values is gathered where the weight has
any. A weight that is not in canonical form has none.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ...encoding import EncodingError
from ..weight.pack import gather_weight, unpack_weight
from ..weight.spec import LinearSpec
from ..weight.storage import from_storage
from ..weight.weight import LIBRARY
from .conv_geometry import Geometry, as_kernel, as_matrix, memory_format
from .ops import accumulator, activate, cast_weight, check_operands, is_cast

LIBRARY.define(
    "conv2d(Tensor x, Tensor[] weight, Tensor? bias, Tensor? residual, int[] kernel, "
    "int[] stride, int[] padding, int[] dilation, str spec) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def check_conv(
    x: Tensor,
    weight: Sequence[Tensor],
    bias: Optional[Tensor],
    residual: Optional[Tensor],
    geometry: Geometry,
    spec: LinearSpec,
) -> Tuple[int, int, int, int]:
    """The shape of the result. Raises EncodingError unless shapes, types and devices
    fit."""
    (n, k), (rows, columns) = spec.shape, geometry.kernel
    if k % (rows * columns):
        raise EncodingError(
            f"kernel is {[rows, columns]}: legal are kernels whose size divides the "
            f"{k} columns of the weight"
        )
    channels = k // (rows * columns)
    if x.ndim != 4 or x.shape[1] != channels:
        raise EncodingError(
            f"x has shape {list(x.shape)}: legal is [B, {channels}, H, W]"
        )
    check_operands(x.new_empty((0, k)), weight, bias, spec)
    size = (x.shape[0], n, *geometry.output_size(x.shape[2], x.shape[3]))
    if residual is not None and (residual.shape != size or residual.dtype != x.dtype):
        raise EncodingError(
            f"residual is {list(residual.shape)} of {residual.dtype}: legal is the "
            f"shape of the result, {list(size)}, of {x.dtype}"
        )
    return size


def unpacked_kernel(weight: Sequence[Tensor], spec: LinearSpec, rows: Any) -> Tensor:
    """The dense weight [N, C, kh, kw] of components in the form `spec.storage`.

    rows:  rows and columns of the kernel.
    """
    dense = unpack_weight(from_storage(weight, spec), spec.encoding, spec.shape)
    return as_kernel(dense, rows)


def _image(x: Tensor, geometry: Geometry) -> Tuple[Tensor, Tuple[int, int]]:
    """x with the zeros that its sides do not share, and the others."""
    low = geometry.low_padding
    return (geometry.padded(x), (0, 0)) if low is None else (x, low)


def unpacked_conv2d(
    x: Tensor,
    weight: Sequence[Tensor],
    bias: Optional[Tensor],
    residual: Optional[Tensor],
    geometry: Geometry,
    spec: LinearSpec,
) -> Tensor:
    """The reference: a dense convolution with the unpacked weight, in the type of x."""
    wide = accumulator(x)
    image, zeros = _image(x.to(wide), geometry)
    y = F.conv2d(
        image,
        unpacked_kernel(weight, spec, geometry.kernel).to(wide),
        None if bias is None else bias.to(wide),
        geometry.stride,
        zeros,
        geometry.dilation,
    )
    if residual is not None:
        y = y + residual.to(wide)
    y = activate(y, spec.activation).to(x.dtype)
    return y.contiguous(memory_format=memory_format(x))


def _conv_reference(
    x: Tensor,
    weight: List[Tensor],
    bias: Optional[Tensor],
    residual: Optional[Tensor],
    *rest: Any,
) -> Tensor:
    geometry, spec = Geometry.make(*rest[:4]), LinearSpec.parse(rest[4])
    check_conv(x, weight, bias, residual, geometry, spec)
    return unpacked_conv2d(x, weight, bias, residual, geometry, spec)


def _conv_fake(
    x: Tensor,
    weight: List[Tensor],
    bias: Optional[Tensor],
    residual: Optional[Tensor],
    kernel: List[int],
    stride: List[int],
    padding: List[int],
    dilation: List[int],
    spec: str,
) -> Tensor:
    geometry = Geometry.make(kernel, stride, padding, dilation)
    parsed = LinearSpec.parse(spec)
    size = check_conv(x, weight, bias, residual, geometry, parsed)
    return x.new_empty(size).contiguous(memory_format=memory_format(x))


@functools.lru_cache(maxsize=4096)
def _without_activation(spec: str) -> str:
    return replace(LinearSpec.parse(spec), activation="none").text


def _save_for_backward(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    x, weight, bias, residual, *geometry, spec = inputs
    parsed = LinearSpec.parse(spec)
    if parsed.storage != "canonical" and weight[0].requires_grad:
        raise EncodingError(
            f"values ask for gradients, and storage is {parsed.storage!r}: legal for "
            "training is 'canonical'; call store_('canonical') of the layer"
        )
    is_recomputed = parsed.activation not in ("none", "relu")
    ctx.geometry, ctx.spec, ctx.has_bias = geometry, spec, bias is not None
    ctx.save_for_backward(
        x,
        bias if is_recomputed else None,
        residual if is_recomputed else None,
        output if parsed.activation == "relu" else None,
        *weight,
    )


def _before_activation(ctx: Any, dy: Tensor, saved: Sequence[Any]) -> Tensor:
    """The gradient of what the activation is applied to."""
    x, bias, residual, y, *weight = saved
    activation = LinearSpec.parse(ctx.spec).activation
    if activation == "none":
        return dy
    if y is not None:
        return torch.ops.aten.threshold_backward(dy, y, 0)
    before = torch.ops.nm_sparse.conv2d(
        x, weight, bias, residual, *ctx.geometry, _without_activation(ctx.spec)
    )
    if activation == "silu":  # written out, so that it has a derivative itself
        gate = torch.sigmoid(before)
        return dy * (gate * (1 + before * (1 - gate)))
    kind = "tanh" if activation == "gelu_tanh" else "none"
    return torch.ops.aten.gelu_backward(dy, before, approximate=kind)


def _conv_backward(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
    saved = ctx.saved_tensors
    x, weight = saved[0], saved[4:]
    s, geometry = LinearSpec.parse(ctx.spec), Geometry.make(*ctx.geometry)
    needs_x, needs_weight, needs_bias, needs_residual = ctx.needs_input_grad[:4]
    dz = _before_activation(ctx, dy, saved)
    wide = accumulator(x)
    image, zeros = _image(x.to(wide), geometry)
    dimage, dweight, db = torch.ops.aten.convolution_backward(
        dz.to(wide),
        image,
        unpacked_kernel(weight, s, geometry.kernel).to(wide),
        [s.shape[0]],
        geometry.stride,
        zeros,
        geometry.dilation,
        False,
        [0, 0],
        1,
        [needs_x, needs_weight[0], needs_bias],
    )
    dx, dvalues = None, None
    if needs_x:
        top, _, left, _ = geometry.padding if geometry.low_padding is None else [0] * 4
        dx = dimage[:, :, top : top + x.shape[2], left : left + x.shape[3]].to(x.dtype)
    if needs_weight[0]:
        gathered = gather_weight(as_matrix(dweight), weight, s.encoding)
        dvalues = gathered.to(weight[0].dtype)
    db = db.to(dy.dtype) if needs_bias else None
    rest = [None] * (len(weight) - 1)
    return dx, [dvalues, *rest], db, dz if needs_residual else None, *[None] * 5


def _autocast(device: str) -> None:
    """Registers that operands become those of `torch.autocast`."""
    key = getattr(torch._C.DispatchKey, f"Autocast{device}")

    def conv(
        x: Tensor,
        weight: List[Tensor],
        bias: Optional[Tensor],
        residual: Optional[Tensor],
        *rest: Any,
    ) -> Tensor:
        dtype = torch.get_autocast_dtype(device.lower())
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            weight, s = cast_weight(weight, LinearSpec.parse(rest[4]), dtype)
            x, bias, residual = (
                one.to(dtype) if one is not None and is_cast(one) else one
                for one in (x, bias, residual)
            )
            own = (x, weight, bias, residual, *rest[:4])
            return torch.ops.nm_sparse.conv2d(*own, s.text)

    LIBRARY.impl("conv2d", conv, f"Autocast{device}")


LIBRARY.impl("conv2d", _conv_reference, "CompositeExplicitAutograd")
torch.library.register_fake("nm_sparse::conv2d", _conv_fake, lib=LIBRARY)
torch.library.register_autograd(
    "nm_sparse::conv2d",
    _conv_backward,
    setup_context=_save_for_backward,
    lib=LIBRARY,
)
_autocast("CPU")
_autocast("CUDA")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions by compiled kernels.

Kernels whose panels have 16 outputs and more gather rows of activations, and those of
single elements copy pixels: they read images in place, by a program for each size of
the images. Other kernels multiply a matrix of the images' patches, by the program of a
linear layer; kernels of one pixel do not need one.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ...bindings.library import LibraryNotFoundError
from ...encoding import Encoding
from ...layers.conv_text import conv2d_mlir
from ...runtime import program as compiler
from ..weight.spec import LinearSpec
from ..weight.stored_forms import STORED, StoredForm, aligned
from ..weight.weight import LIBRARY
from . import kernels
from .conv_geometry import Geometry, memory_format
from .conv_ops import check_conv, unpacked_conv2d
from .ops import activate

_PANEL = 16  # outputs, from which on kernels gather rows
_CHANNELS = 8  # must divide their number where images are read as they are


class ConvKernels(StoredForm):
    """The compiled program of a convolution, for images of one size.

    spec:      of the weight as a matrix, in canonical form.
    image:     height, width and channels.
    has_bias, has_residual:  what is added before the activation.

    Raises CompileError, and LibraryNotFoundError.
    """

    def __init__(
        self,
        spec: LinearSpec,
        geometry: Geometry,
        image: Sequence[int],
        has_bias: bool,
        has_residual: bool,
        chip: str,
        gpu: Optional[str] = None,
    ) -> None:
        self.has_out = reads_as_it_is(spec.encoding, spec.dtype, image[2])
        text = conv2d_mlir(
            image,
            spec.shape[0],
            geometry.kernel,
            spec.encoding.mlir(),
            stride=geometry.stride,
            padding=geometry.padding,
            dilation=geometry.dilation,
            dtype=spec.dtype,
            bias=has_bias,
            residual=has_residual,
            activation=spec.activation,
            has_out=self.has_out,
        )
        self.program = compiler.compile(text, chip=chip, gpu=gpu)
        self.function = self.program["conv2d"]
        (weight,) = self.function.weights
        self.outputs = spec.shape[0], *geometry.output_size(*image[:2])
        super().__init__(spec, weight)

    def __call__(
        self,
        images: Tensor,
        parts: Sequence[Tensor],
        addends: Sequence[Tensor],
        stream: int,
    ) -> Tensor:
        """[B, P, Q, N] for images [B, H, W, C], all contiguous.

        parts:    of `store`.
        addends:  bias and residual [B, P, Q, N], those that there are.
        stream:   its address.
        """
        n, rows, columns = self.outputs
        rest: List[Tensor] = list(addends)
        if self.has_out:
            rest.append(images.new_empty((images.shape[0], rows, columns, n)))
        whole = compiler.PreparedWeight(tuple(parts), None)
        return self.function(images, whole, *rest, stream=stream)


def reads_as_it_is(encoding: Encoding, dtype: str, channels: int) -> bool:
    """Whether a program reads `channels_last` images and writes such a result: blocks
    are channels of one place then, or kernels copy all channels (docs/Input.md)."""
    has_blocks = encoding.block[0] >= 16 and encoding.block[1] >= _PANEL
    return (
        (has_blocks or _has_single_elements(encoding))
        and channels % _CHANNELS == 0
        and dtype in ("f16", "bf16")
    )


def reads_images(encoding: Encoding, dtype: str, channels: int) -> bool:
    """True if programs read images in place, as they are or transposed."""
    return gathers(encoding) or reads_as_it_is(encoding, dtype, channels)


def _has_single_elements(encoding: Encoding) -> bool:
    """True if a pattern is n:m of single elements of each output."""
    return (
        encoding.block == (1, 1)
        and len(encoding.levels) == 1
        and not encoding.is_free
        and not encoding.is_shuffled
    )


def gathers(encoding: Encoding) -> bool:
    """Whether kernels of a weight gather rows of activations."""
    return encoding.block[1] >= _PANEL and not encoding.is_shuffled


@functools.lru_cache(maxsize=None)
def find_conv(
    spec: LinearSpec,
    geometry: Geometry,
    image: Tuple[int, int, int],
    has_bias: bool,
    has_residual: bool,
    device: torch.device,
) -> Optional[ConvKernels]:
    """The program of a convolution on a GPU; None where there is none, or no compiler.
    The weight in `spec` is in canonical form, as for `find_kernels`."""
    chip = kernels.chip_of(device)
    gpu = kernels.device_gpu_of(device) if chip == compiler.DEFAULT_CHIP else None
    try:
        return ConvKernels(spec, geometry, image, has_bias, has_residual, chip, gpu)
    except compiler.CompileError:
        return None  # its patches are multiplied
    except LibraryNotFoundError as error:
        kernels._warn(str(error))
        return None


def run_conv(
    x: Tensor,
    weight: Sequence[Tensor],
    bias: Optional[Tensor],
    residual: Optional[Tensor],
    geometry: Geometry,
    spec: LinearSpec,
) -> Tensor:
    """activation(conv(x, W) + bias + residual) on the current stream of x's GPU.

    x:       [B, C, H, W], in any strides; `channels_last` is read as it is.
    weight:  the components in the form `spec.storage`.

    Returns [B, N, P, Q] in x's type. A type that has no kernels is unpacked, and
    convolved densely.
    """
    if spec.dtype == "f64" or x.dtype != spec.torch_dtype or x.numel() == 0:
        return unpacked_conv2d(x, weight, bias, residual, geometry, spec)
    image = x.detach().contiguous(memory_format=torch.channels_last)
    y = None
    if not geometry.is_pointwise and reads_images(
        spec.encoding, spec.dtype, x.shape[1]
    ):
        y = _by_program(image, weight, bias, residual, geometry, spec)
    if y is None:
        y = _by_patches(image, weight, bias, residual, geometry, spec)
    return y.permute(0, 3, 1, 2).contiguous(memory_format=memory_format(x))


def _by_program(
    image: Tensor,
    weight: Sequence[Tensor],
    bias: Optional[Tensor],
    residual: Optional[Tensor],
    geometry: Geometry,
    spec: LinearSpec,
) -> Optional[Tensor]:
    """[B, P, Q, N] by a program that reads the images; None where there is none."""
    _, channels, height, width = image.shape
    size, has_residual = (height, width, channels), residual is not None
    found = find_conv(
        spec.canonical, geometry, size, bias is not None, has_residual, image.device
    )
    if found is None:
        return None
    addends = [] if bias is None else [bias.detach().contiguous()]
    if has_residual:
        addends.append(_channels_innermost(residual))
    parts = STORED.get(weight, found, spec.storage)
    images = aligned(_channels_innermost(image))
    return found(images, parts, list(map(aligned, addends)), kernels.stream_of(image))


def _by_patches(
    image: Tensor,
    weight: Sequence[Tensor],
    bias: Optional[Tensor],
    residual: Optional[Tensor],
    geometry: Geometry,
    spec: LinearSpec,
) -> Tensor:
    """[B, P, Q, N] by the program of a linear layer."""
    inside = replace(spec, dense_from=None)
    if residual is not None:
        inside = replace(inside, activation="none")
    parts = [
        kernels.run_linear(rows, weight, bias, inside)
        for rows in geometry.chunks(image)
    ]
    y = parts[0] if len(parts) == 1 else torch.cat(parts)
    return _added(y, residual, spec)


def _added(y: Tensor, residual: Optional[Tensor], spec: LinearSpec) -> Tensor:
    if residual is None:
        return y
    return activate(y + _channels_innermost(residual), spec.activation)


def _channels_innermost(x: Tensor) -> Tensor:
    """[B, C, H, W] as [B, H, W, C], contiguous."""
    return x.detach().permute(0, 2, 3, 1).contiguous()


def _conv_cuda(
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
    check_conv(x, weight, bias, residual, geometry, parsed)
    return run_conv(x, weight, bias, residual, geometry, parsed)


LIBRARY.impl("conv2d", _conv_cuda, "CUDA")

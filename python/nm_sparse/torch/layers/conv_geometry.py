# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pixels of an image a convolution multiplies, and these as rows of a matrix.

The weight of a convolution [N, C, kh, kw] is a matrix [N, kh * kw * C] here: channels
are innermost, as in images that are `channels_last`. So the windows of a pattern lie
along the channels of one place, and kernels read those side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Iterator, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...encoding import EncodingError

_CHUNK = 1 << 26  # elements of patches that are there at a time
Pair = Tuple[int, int]


@dataclass(frozen=True)
class Geometry:
    """How a kernel moves over an image.

    kernel, stride, dilation:  along rows and columns.
    padding:                   zeros above, below, left and right of the image.
    """

    kernel: Pair
    stride: Pair = (1, 1)
    padding: Tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: Pair = (1, 1)

    @staticmethod
    def make(
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
    ) -> "Geometry":
        """Of lists, as operators have them.

        Raises EncodingError unless they have 2, 2, 4 and 2 legal numbers.
        """
        given = dict(kernel=kernel, stride=stride, padding=padding, dilation=dilation)
        for name, numbers in given.items():
            count, least = (4, 0) if name == "padding" else (2, 1)
            if len(numbers) != count or min(numbers) < least:
                raise EncodingError(
                    f"{name} is {list(numbers)}: legal are {count} numbers from "
                    f"{least} on"
                )
        return Geometry(*(tuple(one) for one in given.values()))  # type: ignore[arg-type]

    @staticmethod
    def of(conv: nn.Conv2d) -> "Geometry":
        """That of a layer; `padding` may be a word there."""
        own = conv.kernel_size, conv.stride, (0, 0, 0, 0), conv.dilation
        plain = Geometry.make(*own)
        if isinstance(conv.padding, str):
            zeros = plain.same_padding if conv.padding == "same" else plain.padding
        else:
            rows, columns = conv.padding
            zeros = (rows, rows, columns, columns)
        return replace(plain, padding=zeros)

    @property
    def same_padding(self) -> Tuple[int, int, int, int]:
        """The zeros with which an image keeps its size, if the stride is 1."""
        totals = [by * (size - 1) for by, size in zip(self.dilation, self.kernel)]
        (above, left), (rows, columns) = [one // 2 for one in totals], totals
        return above, rows - above, left, columns - left

    @property
    def is_pointwise(self) -> bool:
        """Whether each output pixel reads one pixel of the image itself."""
        return self.kernel == (1, 1) and not any(self.padding)

    @property
    def low_padding(self) -> Optional[Pair]:
        """The zeros on either side of both axes, where these are the same."""
        top, bottom, left, right = self.padding
        return (top, left) if (top, left) == (bottom, right) else None

    def output_size(self, height: int, width: int) -> Pair:
        """Rows and columns of the result. Raises EncodingError where there are none."""
        top, bottom, left, right = self.padding
        sizes = []
        for axis, size in enumerate((height + top + bottom, width + left + right)):
            span = self.dilation[axis] * (self.kernel[axis] - 1) + 1
            sizes.append((size - span) // self.stride[axis] + 1)
            if size < span:
                raise EncodingError(
                    f"x has {height} x {width} pixels: legal are as many as the kernel "
                    f"{list(self.kernel)} needs with {list(self.padding)} zeros around "
                    "them"
                )
        return sizes[0], sizes[1]

    def padded(self, x: Tensor) -> Tensor:
        """[B, C, H, W] with its zeros; itself where there are none."""
        top, bottom, left, right = self.padding
        return F.pad(x, (left, right, top, bottom)) if any(self.padding) else x

    def patches(self, x: Tensor) -> Tensor:
        """What each output pixel reads of images [B, C, H, W]: [B, P, Q, kh * kw * C],
        a copy unless the kernel has one pixel."""
        rows, columns = self.output_size(x.shape[2], x.shape[3])
        images = self.padded(x).permute(0, 2, 3, 1)
        batch, down, right, channel = images.stride()
        size = (x.shape[0], rows, columns, *self.kernel, x.shape[1])
        steps = (
            batch,
            down * self.stride[0],
            right * self.stride[1],
            down * self.dilation[0],
            right * self.dilation[1],
            channel,
        )
        windows = images.as_strided(size, steps, images.storage_offset())
        return windows.reshape(*size[:3], -1)

    def chunks(self, x: Tensor) -> Iterator[Tensor]:
        """`patches` of some images at a time, so that they take little memory."""
        rows, columns = self.output_size(x.shape[2], x.shape[3])
        each = rows * columns * self.kernel[0] * self.kernel[1] * x.shape[1]
        step = max(1, x.shape[0] if self.is_pointwise else _CHUNK // max(1, each))
        for begin in range(0, x.shape[0], step):
            yield self.patches(x[begin : begin + step])


def as_matrix(weight: Tensor) -> Tensor:
    """The weight [N, C, kh, kw] of a convolution as [N, kh * kw * C]."""
    return weight.permute(0, 2, 3, 1).flatten(1)


def as_kernel(matrix: Tensor, kernel: Sequence[int]) -> Tensor:
    """[N, kh * kw * C] as the weight [N, C, kh, kw] of a convolution, whose channels
    are innermost in memory."""
    whole = matrix.reshape(matrix.shape[0], *kernel, -1)
    return whole.permute(0, 3, 1, 2)


def memory_format(x: Tensor) -> torch.memory_format:
    """That of images [B, C, H, W]: `channels_last`, or rows of pixels."""
    if x.is_contiguous() or not x.is_contiguous(memory_format=torch.channels_last):
        return torch.contiguous_format
    return torch.channels_last

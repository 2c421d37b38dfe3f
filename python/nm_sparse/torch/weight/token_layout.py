# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of tokens that are stored feature-major: x^T, as some products read it.

Such an x has its usual shape [..., K], and strides that are those of a buffer
[K, pitch]: the tokens of a feature lie side by side. The pitch is a multiple of 128
elements, as the compiler's own transpositions have it: each feature then begins at a
line of the L2 cache. What lies behind the last token is no part of x.
"""

from __future__ import annotations

import math
from typing import Tuple

import torch
from torch import Tensor

_PITCH = 128  # elements, of 8 bits
# Bytes at whose multiples programs read x fast, and which some copies need.
_ALIGNMENT = 16


def pitch_of(tokens: int) -> int:
    """Elements between features of so many tokens; also of a number of a graph."""
    return (tokens + _PITCH - 1) // _PITCH * _PITCH


def empty_feature_major(like: Tensor, dtype: torch.dtype) -> Tuple[Tensor, Tensor]:
    """A buffer [K, pitch] for tokens of the shape of `like`, [..., K], and the tokens
    in it, [..., K]: a view."""
    tokens, features = math.prod(like.shape[:-1]), like.shape[-1]
    buffer = like.new_empty((features, pitch_of(tokens)), dtype=dtype)
    return buffer, buffer[:, :tokens].t().view(like.shape)


def to_feature_major(x: Tensor) -> Tensor:
    """The same elements, a copy that is stored feature-major, with zeros behind the
    last token."""
    buffer, found = empty_feature_major(x, x.dtype)
    buffer.zero_()
    found.copy_(x)
    return found


def is_feature_major(x: Tensor) -> bool:
    """Whether x [..., K], of elements of 8 bits, may be given to a program as x^T: the
    tokens of a feature are side by side, and features begin at multiples of 16
    bytes."""
    if x.ndim < 1 or x.numel() == 0 or x.shape[-1] == 1:
        return False
    count = 1
    for size, stride in zip(reversed(x.shape[:-1]), reversed(x.stride()[:-1])):
        if size != 1 and stride != count:
            return False
        count *= size
    pitch = x.stride(-1)
    return pitch >= count and pitch % _ALIGNMENT == 0 and x.data_ptr() % _ALIGNMENT == 0

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dense layers that packed ones can replace, and their weights as matrices [N, K].

They are `nn.Linear`; `Conv1D` of transformers, a linear layer whose weight is [K, N];
and `nn.Conv2d`, whose weight [N, C, kh, kw] is a matrix [N, kh * kw * C].
"""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

import torch
from torch import Tensor, nn

from .conv_geometry import Geometry, as_kernel, as_matrix
from .linear_state import PackedState

_CONV1D = ("transformers.pytorch_utils", "Conv1D")


def conv1d_class(module: nn.Module) -> Optional[type]:
    """The `Conv1D` of transformers that a module is, or is derived from; None of other
    modules."""
    for kind in type(module).__mro__:
        if (kind.__module__, kind.__name__) == _CONV1D:
            return kind
    return None


def is_convertible(module: nn.Module) -> bool:
    """Whether it is one of these layers, and none that is packed."""
    if isinstance(module, PackedState):
        return False
    is_known = isinstance(module, (nn.Linear, nn.Conv2d))
    return is_known or conv1d_class(module) is not None


def geometry_of(layer: nn.Module) -> Optional[Geometry]:
    """That of a convolution; None of linear layers."""
    return Geometry.of(layer) if isinstance(layer, nn.Conv2d) else None


def weight_shape(layer: nn.Module) -> Tuple[int, ...]:
    """The shape that the layer's weight must have."""
    if isinstance(layer, nn.Conv2d):
        channels = layer.in_channels // layer.groups
        return (layer.out_channels, channels, *layer.kernel_size)
    n, k = matrix_shape(layer)
    return (n, k) if isinstance(layer, nn.Linear) else (k, n)


def matrix_shape(layer: nn.Module) -> Tuple[int, int]:
    """[N, K] of the layer's weight as a matrix: outputs and inputs."""
    if isinstance(layer, nn.Conv2d):
        rows, columns = layer.kernel_size
        return layer.out_channels, layer.in_channels // layer.groups * rows * columns
    if isinstance(layer, nn.Linear):
        return layer.out_features, layer.in_features
    return int(layer.nf), int(layer.nx)  # type: ignore[arg-type]


def matrix_of(layer: nn.Module) -> Tensor:
    """The layer's weight as a matrix [N, K], detached: in the same memory, but of
    convolutions whose channels are not innermost a copy."""
    weight: Tensor = layer.weight.detach()  # type: ignore[union-attr, operator]
    if isinstance(layer, nn.Conv2d):
        return as_matrix(weight)
    return weight if isinstance(layer, nn.Linear) else weight.t()


def write_matrix_(layer: nn.Module, matrix: Tensor) -> None:
    """Has the layer's weight hold the elements of a matrix [N, K]."""
    weight: Tensor = layer.weight  # type: ignore[assignment]
    if isinstance(layer, nn.Conv2d):
        matrix = as_kernel(matrix, layer.kernel_size)
    elif not isinstance(layer, nn.Linear):
        matrix = matrix.t()
    with torch.no_grad():
        weight.copy_(matrix)


def input_rows(layer: nn.Module, x: Tensor) -> Iterator[Tensor]:
    """What the matrix is multiplied by, of an input of the layer: [..., K], in parts
    that follow each other, so that the patches of images take little memory."""
    geometry = geometry_of(layer)
    if geometry is None:
        yield x
    else:
        yield from geometry.chunks(x if x.ndim == 4 else x.unsqueeze(0))


def make_dense(
    kind: Optional[type], matrix: Tensor, bias: Optional[Tensor]
) -> nn.Module:
    """A dense linear layer with these tensors, which are not trained.

    kind:    `Conv1D` of transformers, which always has a bias, or None for
             `nn.Linear`.
    matrix:  [N, K].
    """
    n, k = matrix.shape
    with torch.device("meta"):
        layer = nn.Linear(k, n, bias=False) if kind is None else kind(n, k)
    weight = matrix if kind is None else matrix.t().contiguous()
    layer.weight = nn.Parameter(weight, requires_grad=False)
    if bias is None and kind is not None:
        bias = matrix.new_zeros(n)
    if bias is not None:
        layer.bias = nn.Parameter(bias, requires_grad=False)
    return layer

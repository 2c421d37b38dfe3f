# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which classes derived from known layers compute what these do, and nothing else."""

from __future__ import annotations

import copy
from typing import Any, List

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from ..layers.convertible import conv1d_class

# Operators that x W^T + b may be made of.
_LEGAL = ("linear", "matmul", "mm", "addmm", "bmm", "baddbmm", "add", "t", "transpose")
_LEGAL += ("permute", "view", "_unsafe_view", "reshape", "expand", "unsqueeze")
_LEGAL += ("squeeze", "detach", "alias", "select", "numpy_T")
_SHAPE = (5, 3)  # of the weight that forward methods are tried with


def known_class(layer: nn.Module) -> type:
    """The class of layers that one is, or is derived from: `nn.Linear`, `nn.Conv2d` or
    the `Conv1D` of transformers."""
    known = (one for one in (nn.Linear, nn.Conv2d) if isinstance(layer, one))
    return next(known, None) or conv1d_class(layer) or nn.Module


def addition(layer: nn.Module) -> str:
    """What the class of a layer adds to `nn.Linear` or the other known ones; "" for one
    that adds nothing.

    A forward of its own is tried with a small weight, in training and not: it must
    give x W^T + b, by operators of products, sums and shapes alone. Convolutions and
    `Conv1D` may have none.
    """
    kind = type(layer)
    if "forward" in vars(layer):
        return "its forward has been replaced"
    if not isinstance(layer, nn.Linear):
        return _added_to(kind, known_class(layer))
    if kind is nn.Linear:
        return ""
    parameters = set(layer._parameters) - {"weight", "bias"}
    parts = [*sorted(parameters), *layer._buffers, *layer._modules]
    if parts:
        return f"it has {parts[0]} as well"
    names = [name for name in _names_added(kind) if not hasattr(nn.Linear, name)]
    if names:
        return f"it has {names[0]} as well"
    if kind.__call__ is not nn.Linear.__call__:
        return "it has a way of its own to be called"
    if kind.forward is nn.Linear.forward or _computes_linear(layer):
        return ""
    return "its forward is not x W^T + b"


def _added_to(kind: type, known: type) -> str:
    """What a class adds to a known one, which is not `nn.Linear`."""
    for name in ("forward", "_conv_forward", "__call__"):
        if getattr(kind, name, None) is not getattr(known, name, None):
            return f"it has a {name} of its own"
    return ""


def _names_added(kind: type) -> List[str]:
    """Names that classes between this one and `nn.Linear` define."""
    classes = kind.__mro__[: kind.__mro__.index(nn.Linear)]
    return [name for one in classes for name in vars(one) if name[:1] != "_"]


class _Operators(TorchDispatchMode):
    """Notes whether all operators are legal ones."""

    are_legal = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func.overloadpacket.__name__ not in _LEGAL:
            self.are_legal = False
        return func(*args, **(kwargs or {}))


def _computes_linear(layer: nn.Linear) -> bool:
    draw = torch.Generator().manual_seed(0)
    weight, bias, x = (
        torch.randn(size, generator=draw, dtype=torch.float64)
        for size in (_SHAPE, _SHAPE[:1], (2, 4, _SHAPE[1]))
    )
    has_bias = layer.bias is not None
    wanted = F.linear(x, weight, bias if has_bias else None)
    for is_training in (False, True):
        twin = _twin(layer, weight, bias if has_bias else None, is_training)
        try:
            with torch.no_grad(), _Operators() as operators:
                found = twin.forward(x)
        except Exception:
            return False
        same = isinstance(found, Tensor) and found.shape == wanted.shape
        if not (same and operators.are_legal and torch.allclose(found, wanted)):
            return False
        try:  # `nn.Linear` converts no types
            with torch.no_grad():
                twin.forward(x.float())
        except RuntimeError:
            continue
        return False
    return True


def _twin(layer: nn.Linear, weight: Tensor, bias: Any, is_training: bool) -> nn.Linear:
    """The same layer with a small weight."""
    twin = copy.copy(layer)
    twin.__dict__["_parameters"] = {
        "weight": nn.Parameter(weight, requires_grad=False),
        "bias": None if bias is None else nn.Parameter(bias, requires_grad=False),
    }
    twin.out_features, twin.in_features = _SHAPE
    twin.training = is_training
    return twin

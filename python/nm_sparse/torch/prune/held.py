# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training with a fixed mask: what is zero stays zero, what is kept is trained.

`hold_masks` needs no change of a model or of a training loop: each step of an optimizer
of torch ends with zeros, whatever momentum, decay or sharding has made of them.
"""

from __future__ import annotations

import warnings
import weakref
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from ...encoding import EncodingError
from .linears import is_dense_linear


class HeldMasks:
    """Keeps weights in their pattern while a model is trained; see `hold_masks`.

    masks:  bool, by the name of the parameter: which elements are kept. Those of
            parameters that are sharded are sharded, too, once they have been used.
    """

    def __init__(self, layers: Mapping[str, nn.Module]) -> None:
        self.masks: Dict[str, Tensor] = {}
        # The hooks of torch live as long as the process, and must not hold the model.
        self._layers = {name: weakref.ref(layer) for name, layer in layers.items()}
        self._sharded: Dict[str, DTensor] = {}
        self._handles: List[Any] = []
        for name, layer in layers.items():
            parameter = layer._parameters["weight"]
            assert parameter is not None
            self.masks[name] = parameter.detach() != 0
            if parameter.requires_grad and not isinstance(parameter, DTensor):
                self._handles.append(parameter.register_hook(self._hook(name)))
        self._handles += [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]

    def _hook(self, name: str) -> Callable[[Tensor], Tensor]:
        def drop(gradient: Tensor) -> Tensor:
            return gradient.masked_fill(~self._mask(name, gradient), 0)

        return drop

    def _before_step(self, *_: Any) -> None:
        """Gradients of sharded weights are not seen by hooks of theirs."""
        with torch.no_grad():
            for name, parameter in self._parameters():
                if isinstance(parameter, DTensor) and parameter.grad is not None:
                    self._clear_(name, parameter.grad)

    def _after_step(self, *_: Any) -> None:
        self.apply_()
        if not any(layer() for layer in self._layers.values()):
            # The model is gone. Hooks cannot be taken away while torch calls them.
            self.masks, self._sharded = {}, {}

    @torch.no_grad()
    def apply_(self, model: Optional[nn.Module] = None) -> None:
        """Sets to zero what is outside of the masks.

        model:  another one of the same parts, such as an average of weights
                (`torch.optim.swa_utils.AveragedModel`); by default the one that is
                held, for what changes weights and is no optimizer of torch.

        Raises EncodingError when a weight has no longer the shape of its mask.
        """
        parameters = self._parameters()
        if model is not None:
            own = dict(model.named_parameters())
            inner = "" if all(name in own for name in self.masks) else "module."
            parameters = iter([(n, _named(own, inner + n)) for n in self.masks])
        for name, parameter in parameters:
            self._clear_(name, parameter)

    def attach(self, optimizer: Optimizer) -> HeldMasks:
        """Calls `apply_` after each step of an optimizer, for one that is not derived
        from `torch.optim.Optimizer`; all others have that already."""
        handle = optimizer.register_step_post_hook(lambda *_: self.apply_())
        self._handles.append(handle)
        return self

    def remove(self) -> None:
        """Lets go of the model."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._sharded.clear()

    def __enter__(self) -> HeldMasks:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            if kind is None:
                self._check()
                self.apply_()
        finally:
            self.remove()

    def _check(self) -> None:
        """Warns where something has changed weights behind the last step."""
        for name, parameter in self._parameters():
            values, kept = _local(parameter), _local(self._mask(name, parameter))
            count = int((values.detach() != 0)[~kept.to(values.device)].sum())
            if count:
                warnings.warn(
                    f"{count} elements of {name} that are held at zero were not zero "
                    "at the end: what has changed them is no optimizer of torch. They "
                    "are zero again; call apply_() after each such change",
                    stacklevel=3,
                )

    def _parameters(self) -> Iterator[Tuple[str, Tensor]]:
        """The parameters as they are now: sharding replaces them."""
        for name, reference in self._layers.items():
            layer = reference()
            if layer is None:
                continue
            parameter = layer._parameters.get("weight")
            if parameter is None:
                raise EncodingError(
                    f"{name} is no parameter any more, so its mask cannot be held: "
                    "call remove(), or undo the parametrization or hook"
                )
            if isinstance(parameter, DTensor):
                self._sharded[name] = parameter
            # Between forward and backward FSDP2 has the whole one in its place.
            yield name, self._sharded.get(name, parameter)

    def _clear_(self, name: str, tensor: Tensor) -> None:
        mask = self._mask(name, tensor)
        values = _local(tensor)
        values.masked_fill_(~_local(mask).to(values.device), 0)

    def _mask(self, name: str, like: Tensor) -> Tensor:
        """That of a parameter, where and as this tensor is."""
        mask = self.masks[name]
        if mask.shape != like.shape:
            raise EncodingError(
                f"{name} has shape {list(like.shape)}, its mask {list(mask.shape)}: "
                "legal is the weight as it was, or sharded by fully_shard (FSDP2), "
                "DTensor or DDP; FSDP1 flattens weights, which masks cannot follow"
            )
        if isinstance(like, DTensor) and not isinstance(mask, DTensor):
            mesh = like.device_mesh
            whole = DTensor.from_local(
                mask.to(mesh.device_type), mesh, [Replicate()] * mesh.ndim
            )
            mask = whole.redistribute(placements=like.placements)
        elif not isinstance(like, DTensor):
            mask = mask.to(like.device)
        self.masks[name] = mask
        return mask


def hold_masks(model: nn.Module, names: Optional[Sequence[str]] = None) -> HeldMasks:
    """Keeps what is zero in the weights of linear layers zero, from now on: after each
    step of any `torch.optim.Optimizer`, and in gradients.

    names:  of the layers; by default all linear layers and convolutions that have a
            zero.

    It may be called before or after `fully_shard` (FSDP2) and DDP, and with optimizers
    that have momentum already. Gradients of weights that are sharded are masked before
    the step, so `clip_grad_norm_` counts all of them. What changes weights and is no
    such optimizer, such as a loop of one's own with momentum, or averages that are
    copied back, needs a call of `HeldMasks.apply_` after it.

    Returns a context manager that holds the masks until `remove`; where the context
    ends, zeros are zero, with a warning where they were not. Raises EncodingError when
    there is no such layer, or its weight is no parameter of it.
    """
    modules = dict(model.named_modules())
    unknown = [name for name in names or () if name not in modules]
    if unknown:
        raise EncodingError(
            f"names has {unknown[0]!r}, which is no layer: legal are names of modules"
        )
    layers: Dict[str, nn.Module] = {}
    for name in modules if names is None else names:
        module = modules[name]
        if names is None and not (is_dense_linear(module) and _has_zero(module)):
            continue
        if module._parameters.get("weight") is None:
            raise EncodingError(
                f"{name} has no parameter named weight, so nothing of it can be held: "
                "legal are layers whose weight is not computed by a parametrization "
                "or a hook"
            )
        layers[f"{name}.weight" if name else "weight"] = module
    if not layers:
        raise EncodingError(
            "no linear layer has a zero in its weight: prune the model first"
        )
    return HeldMasks(layers)


def _has_zero(layer: nn.Module) -> bool:
    """Whether a weight that is a parameter has a zero; a shard of nothing may."""
    weight = layer._parameters.get("weight")
    if weight is None or nn.parameter.is_lazy(weight):
        return False
    local = _local(weight.detach())
    return local.numel() == 0 or bool((local == 0).any())


def _local(tensor: Tensor) -> Tensor:
    """What this process has of a tensor, in the same memory."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _named(parameters: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in parameters:
        raise EncodingError(
            f"model has no parameter {name}: legal is one with the parts of the model "
            "that is held"
        )
    return parameters[name]

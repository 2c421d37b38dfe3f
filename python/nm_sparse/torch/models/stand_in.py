# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules whose forward is run with others in the places of some of their layers.

`share_input_` computes several layers at once, and `activate_inside_` an activation in
the kernel of the layer before it. Classes, layers and `state_dict` of modules stay what
they are; `del module.forward` undoes either.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from ...encoding import EncodingError
from ..layers import kernels
from ..layers.conv2d import NMConv2d
from ..layers.linear import NMLinear
from ..layers.mlp import HOOKS, is_plain, shared_linear
from ..layers.scaled_linear import SAME
from ..layers.sharding import is_sharded, sharded_linear
from ..weight.shared_spec import with_activation

# Arguments of attention that keys and values are made of, if they are given.
_OTHERS = ("key_value_states", "encoder_hidden_states")


class StandIn:
    """A module with others in the places of some of its attributes, for one call of its
    forward.

    It stands for `self` there, so that a call changes nothing of the module: several
    threads may run it, and graphs may be traced.
    """

    def __init__(self, module: nn.Module, others: Dict[str, Any]) -> None:
        self.__dict__["_module"] = module
        for name, other in others.items():  # torch 2.11 cannot trace `update`
            self.__dict__[name] = other

    def __getattr__(self, name: str) -> Any:
        module = self.__dict__["_module"]
        found = getattr(module, name)
        if getattr(found, "__self__", None) is module:  # methods see the others, too
            return functools.partial(found.__func__, self)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_module"], name, value)


class StandInKind:
    """The class of what stands in for modules of a class: it has their `forward`, for
    decorators that ask for it."""

    def __init__(self, of: type) -> None:
        self.of, self.forward = of, of.forward  # type: ignore[attr-defined]
        self.make = type("StandIn", (StandIn,), {"forward": self.forward})

    def __reduce__(self) -> Tuple[Any, ...]:
        return StandInKind, (self.of,)


class _Other:
    """In the place of a layer, whose attributes it has."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["layer"], name)


class _Ready(_Other):
    """In the place of a layer whose result for `x` is there."""

    def __init__(self, layer: nn.Module, x: Tensor, result: Tensor) -> None:
        self.layer, self.x, self.result = layer, x, result

    def __call__(self, x: Tensor) -> Tensor:
        return self.result if x is self.x else self.layer(x)


def _wrap(module: nn.Module, call: Callable[..., Any], *own: Any) -> None:
    """Has `call(module, kind, *own, ...)` be the forward of a module."""
    if "forward" in module.__dict__:
        raise EncodingError(
            f"the {type(module).__name__} has a forward of its own: legal is that of "
            "its class; remove what wraps it first"
        )
    kind = StandInKind(type(module))
    module.forward = functools.partial(  # type: ignore[method-assign]
        call, module, kind, *own
    )


def _wrapped(module: nn.Module, call: Callable[..., Any]) -> Tuple[Any, ...]:
    """What `_wrap` was given of a module; nothing where it was not."""
    forward = module.__dict__.get("forward")
    if isinstance(forward, functools.partial) and forward.func is call:
        return tuple(forward.args[2:])
    return ()


def _check_names(module: nn.Module, names: Sequence[str]) -> None:
    found = (getattr(module, name, None) for name in names)
    missing = [n for n, one in zip(names, found) if not isinstance(one, nn.Module)]
    if missing:
        raise EncodingError(
            f"{type(module).__name__} has no layer {', '.join(missing)}: legal are "
            "names of its linear layers"
        )


def _parameters(module: nn.Module) -> List[str]:
    """The names of the parameters of its forward, without `self`."""
    return list(inspect.signature(type(module).forward).parameters)[1:]


def _shared_forward(
    module: nn.Module,
    kind: StandInKind,
    names: Sequence[str],
    parameter: str,
    others: Sequence[Tuple[int, str]],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Forward of a module, with the layers `names` applied to its first input.

    others:  places and names of arguments that keys and values are made of.
    """
    layers = [getattr(module, name) for name in names]
    given = [args[i] if i < len(args) else kwargs.get(name) for i, name in others]
    is_one_input = all([other is None for other in given])
    if not is_one_input or not all([is_plain(layer) for layer in layers]):
        return kind.forward(module, *args, **kwargs)
    x = args[0] if args else kwargs[parameter]
    results = shared_linear(x, layers)
    ready = {
        name: _Ready(layer, x, result)
        for name, layer, result in zip(names, layers, results)
    }
    return kind.forward(kind.make(module, ready), *args, **kwargs)


def share_input_(
    module: nn.Module, names: Sequence[str] = ("q_proj", "k_proj", "v_proj")
) -> None:
    """Makes one operator of layers that a module applies to its first input.

    module:  such as an attention layer. Its class, its layers and its `state_dict` stay
             what they are; only its `forward` is wrapped, and `del module.forward`
             undoes that.
    names:   of the layers. They run one after the other while one of them is dense, has
             an activation or hooks; they may be replaced at any time. Calls with
             `key_value_states` or `encoder_hidden_states`, of which keys and values
             are made then, run as before.

    Raises EncodingError when the module has no such layer, or has a `forward` of its
    own already.
    """
    _check_names(module, names)
    known = _parameters(module)
    others = tuple((known.index(name), name) for name in _OTHERS if name in known)
    _wrap(module, _shared_forward, tuple(names), known[0], others)


def shared_names(module: nn.Module) -> Tuple[str, ...]:
    """Names of the layers of which `share_input_` has made one operator; none of other
    modules."""
    own = _wrapped(module, _shared_forward)
    return tuple(own[0]) if own else ()


class Activated(_Other):
    """A packed linear layer with an activation behind it."""

    layer: NMLinear

    def __init__(self, layer: NMLinear, activation: str) -> None:
        self.layer, self.activation = layer, activation

    @property
    def spec(self) -> str:
        """The text of its `LinearSpec`."""
        return with_activation(self.layer.spec, self.activation)

    @property
    def call_spec(self) -> str:
        """The same with `decode_to`."""
        return with_activation(self.layer.call_spec, self.activation)

    @property
    def kernel_spec(self) -> str:
        """The text of the `LinearSpec` that kernels are compiled for."""
        return with_activation(self.layer.kernel_spec, self.activation)

    def __call__(self, x: Tensor) -> Tensor:
        if self.layer.activations != SAME:
            return self.layer.forward_elements(x, self.activation)
        layer: Any = self
        if self.layer.decode_to is None:  # else the operator finds which form it is
            shared = self.layer.eager_shared
            found = shared(x, (layer,), lambda: kernels.find_eager(layer))
            if found is not None:
                return found[0]
        layer = self.layer
        if is_sharded(layer.weight):
            return sharded_linear(x, layer.weight, layer.bias, self.activation)
        parts = layer.operands()
        return torch.ops.nm_sparse.linear(x, parts, layer.bias, self.call_spec)


class _First(_Other):
    """In the place of a layer, with an activation in its kernel."""

    def __init__(self, layer: Any, activation: str) -> None:
        self.layer, self.activation = layer, activation
        self.result: Optional[Tensor] = None

    def __call__(self, x: Tensor) -> Tensor:
        layer = self.layer
        if isinstance(layer, NMConv2d):
            result = layer.convolve(x, None, self.activation)
        else:
            result = Activated(layer, self.activation)(x)
        self.result = result
        return result


class _Passing(_Other):
    """In the place of an activation: what layers have activated passes, once."""

    def __init__(self, activation: Any, first: Sequence[_First]) -> None:
        self.layer, self.first = activation, first

    def __call__(self, x: Tensor) -> Tensor:
        for one in self.first:
            if x is one.result:
                one.result = None
                return x
        return self.layer(x)


def can_activate(layer: Any) -> bool:
    """Whether an activation can be in the kernel of a layer, as it is now."""
    if type(layer) is NMConv2d:
        return layer.activation == "none" and not _has_hooks(layer)
    return is_plain(layer)


def _has_hooks(module: Any) -> bool:
    return any([getattr(module, hooks, None) for hooks in HOOKS])


def _activated_forward(
    module: nn.Module,
    kind: StandInKind,
    names: Sequence[str],
    attribute: str,
    function: Any,
    activation: str,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Forward of a module, with the activation in the kernels of the layers `names`."""
    layers = {name: getattr(module, name) for name in names}
    first = {n: _First(one, activation) for n, one in layers.items()
             if can_activate(one)}  # fmt: skip
    is_known = getattr(module, attribute) is function
    if not first or not is_known or _has_hooks(function):
        return kind.forward(module, *args, **kwargs)
    passing = _Passing(function, list(first.values()))
    stand_in = kind.make(module, {**first, attribute: passing})
    return kind.forward(stand_in, *args, **kwargs)


def activate_inside_(
    module: nn.Module, names: Sequence[str], attribute: str, activation: str
) -> None:
    """Computes an activation in the kernels of the layers before it.

    module:      such as an MLP of two layers. Its class, its layers and its
                 `state_dict` stay what they are, as with `share_input_`.
    names:       of the layers, linear ones or convolutions, which it applies the
                 activation to. Each is as before while it is dense, has an activation
                 or hooks; they may be replaced at any time.
    attribute:   the name of the activation, a module or a function.
    activation:  what it computes, one of "relu", "gelu", "gelu_tanh", "silu".

    What the activation is applied to besides is activated as before. Raises
    EncodingError when the module has no such layer or activation, or has a `forward` of
    its own already.
    """
    _check_names(module, names)
    function = getattr(module, attribute, None)
    if not callable(function):
        raise EncodingError(
            f"{type(module).__name__} has no activation {attribute}: legal is the name "
            "of a module or a function"
        )
    _wrap(module, _activated_forward, tuple(names), attribute, function, activation)


def activated_names(module: nn.Module) -> Tuple[Tuple[str, ...], str]:
    """Names of the layers whose kernels `activate_inside_` has given an activation, and
    that; none, and "none", of other modules."""
    own = _wrapped(module, _activated_forward)
    return (tuple(own[0]), own[3]) if own else ((), "none")

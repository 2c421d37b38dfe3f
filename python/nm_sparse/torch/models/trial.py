# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trial runs of modules: what goes from one layer to another, and nowhere else.

Layers of the module give zeros of their shapes then, so that nothing is computed.
"""

from __future__ import annotations

import inspect
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..layers.conv2d import NMConv2d
from ..layers.convertible import conv1d_class, geometry_of, matrix_shape
from ..prune.calibration import evaluating
from ..prune.readers import HARMLESS, name_of
from .stand_in import StandInKind

_TOKENS, _PIXELS = 4, 32  # of what a module is tried with


def is_layer(module: Any) -> bool:
    """Whether it is a linear layer or a convolution, dense or packed."""
    if not isinstance(module, nn.Module):
        return False
    is_known = isinstance(module, (nn.Linear, nn.Conv2d, NMConv2d))
    return is_known or conv1d_class(module) is not None


class UseWatch(TorchFunctionMode):
    """Counts the functions of torch that are given one of some tensors, but for those
    that ask for its type or the like."""

    def __init__(self) -> None:
        super().__init__()
        self.is_paused = False
        self._followed: Dict[int, Tensor] = {}  # held, so that no other has its id
        self._uses: Dict[int, int] = {}

    def follow(self, tensor: Any) -> None:
        """Counts what uses a tensor from now on."""
        if isinstance(tensor, Tensor):
            self._followed[id(tensor)] = tensor

    def uses(self, tensor: Any) -> int:
        """How many there were."""
        return self._uses.get(id(tensor), 0)

    def count(self, given: Any) -> None:
        """Counts a use of a tensor, or of those in a list or a mapping of anything."""
        if isinstance(given, Mapping):
            given = tuple(given.values())
        if isinstance(given, (list, tuple)):
            for one in given:
                self.count(one)
        elif id(given) in self._followed:
            self._uses[id(given)] = self._uses.get(id(given), 0) + 1

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if not self.is_paused and name_of(func) not in HARMLESS:
            self.count((args, kwargs))
        return func(*args, **(kwargs or {}))


@dataclass
class Call:
    """One call of a layer: its first argument, and its result."""

    layer: nn.Module
    x: Any
    result: Any


@contextmanager
def calls_of(
    layers: Sequence[nn.Module], seen: Callable[[Any], None]
) -> Iterator[List[Call]]:
    """Lists the calls of layers while the context lasts.

    seen:  called with each result.
    """
    calls: List[Call] = []

    def note(layer: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
        given = args[0] if args else next(iter(kwargs.values()), None)
        calls.append(Call(layer, given, result))
        seen(result)

    handles = [
        layer.register_forward_hook(note, with_kwargs=True, always_call=True)
        for layer in layers
    ]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


class _Silent:
    """In the place of a layer: notes what it is given, and gives zeros."""

    def __init__(self, layer: Any, watch: UseWatch) -> None:
        self.layer, self.watch = layer, watch
        self.given: List[Any] = []
        self.results: List[Tensor] = []

    def __call__(self, x: Tensor, *more: Any) -> Tensor:
        self.given.append(x)
        self.watch.is_paused = True
        try:
            result = x.new_zeros(self._size(x))
        finally:
            self.watch.is_paused = False
        self.results.append(result)
        self.watch.follow(result)
        return result

    def _size(self, x: Tensor) -> Tuple[int, ...]:
        layer = self.layer
        if isinstance(layer, (nn.Conv2d, NMConv2d)):
            own = layer if isinstance(layer, NMConv2d) else None
            geometry = own.geometry if own else geometry_of(layer)
            size = geometry.output_size(x.shape[-2], x.shape[-1])  # type: ignore[union-attr]
            return (*x.shape[:-3], layer.out_channels, *size)
        return (*x.shape[:-1], matrix_shape(layer)[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["layer"], name)


class _Noting:
    """In the place of an activation: notes what it is given."""

    def __init__(self, watch: UseWatch) -> None:
        self.watch = watch
        self.given: List[Any] = []

    def __call__(self, x: Tensor) -> Tensor:
        self.given.append(x)
        self.watch.is_paused = True
        try:
            return x.new_zeros(x.shape)
        finally:
            self.watch.is_paused = False


@dataclass
class Trial:
    """What a run of a module has shown.

    x:        what it was given.
    layers:   the layers of its own by their names.
    function: its activation.
    problem:  why the run has ended early; "" where it has not.
    """

    x: Tensor
    layers: Dict[str, _Silent]
    function: _Noting
    watch: UseWatch = field(repr=False)
    problem: str = ""

    def share_input(self, names: Sequence[str]) -> bool:
        """Whether all of these layers have been given the input of the module, and
        nothing else."""
        given = [self.layers[name].given for name in names]
        return all(each and all(one is self.x for one in each) for each in given)

    def activated(self) -> List[str]:
        """The layers whose results the activation is given, each once, and nothing else
        is."""
        taken = Counter(map(id, self.function.given))
        return [
            name
            for name, layer in self.layers.items()
            if layer.results
            and all(taken[id(one)] == 1 and not self.watch.uses(one)
                    for one in layer.results)
        ]  # fmt: skip


def try_module(module: nn.Module, first: str, activation: str = "") -> Trial:
    """Runs the forward of a module on random data, with its other arguments left out,
    or else as tensors like the first one.

    first:       the name of the layer that says what data these are.
    activation:  the name of the module's activation.
    """
    trial = _run(module, first, activation, None)
    if trial.problem:
        other = _run(module, first, activation, torch.clone)
        trial = other if not other.problem else trial
    return trial


def _run(module: nn.Module, first: str, activation: str, fill: Any) -> Trial:
    watch = UseWatch()
    own = {name: _Silent(one, watch) for name, one in module.named_children()
           if is_layer(one)}  # fmt: skip
    noting = _Noting(watch)
    x = _data(getattr(module, first))
    trial = Trial(x, own, noting, watch)
    others: Dict[str, Any] = {**own, **({activation: noting} if activation else {})}
    kind = StandInKind(type(module))
    parameters = list(inspect.signature(kind.forward).parameters.values())
    needed = [
        one
        for one in parameters[2:]
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    more = {one.name: None if fill is None else fill(x) for one in needed}
    with evaluating(module), watch:
        try:
            watch.count(kind.forward(kind.make(module, others), x, **more))
        except Exception as error:  # of any module, for any reason
            lines = str(error).splitlines() or [""]
            trial.problem = f"{type(error).__name__}: {lines[0]}"
    return trial


def _data(layer: Any) -> Tensor:
    draw = torch.Generator().manual_seed(0)
    if isinstance(layer, (nn.Conv2d, NMConv2d)):
        size: Tuple[int, ...] = (1, layer.in_channels, _PIXELS, _PIXELS)
    else:
        size = (1, _TOKENS, matrix_shape(layer)[1])
    weight = layer.weight
    dtype = weight.dtype if weight.dtype.is_floating_point else torch.float32
    return torch.randn(size, generator=draw).to(device=weight.device, dtype=dtype)

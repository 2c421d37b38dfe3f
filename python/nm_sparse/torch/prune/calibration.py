# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a model on calibration data, as far as a group of layers, and records what these
are given.

Layers that are given the same tensor, such as the projections to queries, keys and
values, make a group, which needs one Gram matrix.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from ...encoding import EncodingError

Batch = Any  # a tensor, a tuple or list of arguments, or a mapping of named ones
# Batches, or a function that runs the model on all of them.
Source = Union[Iterable[Batch], Callable[[nn.Module], Any]]
TokenMask = Callable[[Batch], Optional[Tensor]]


def attention_mask(batch: Batch) -> Optional[Tensor]:
    """That of a mapping with such an entry: which tokens are not padding."""
    return batch.get("attention_mask") if isinstance(batch, Mapping) else None


@dataclass
class Group:
    """Layers with the same input, in the order in which they run.

    names:  of the modules, as `model.named_modules()` has them.
    calls:  how often each is called for a batch, at most.
    """

    names: List[str]
    calls: int = 1


class Stop(BaseException):
    """All that is wanted of this run has been seen. No `except Exception` of a model
    catches it."""


class Calibration:
    """Calibration data for a model.

    source:      batches: a tensor, which is the argument of the model, a tuple or list
                 of arguments, or a mapping of named ones. Or a function that is given
                 the model and runs it on everything; it cannot be cut short, so it
                 takes longer, and the inputs of a layer are held all at once.
    token_mask:  a function of a batch that says which tokens count, [...] as the inputs
                 of layers without their last dimension; by default that of
                 `attention_mask`.
    progress:    whether stderr shows how far things are.

    Raises EncodingError when there is no batch.
    """

    def __init__(
        self,
        source: Source,
        token_mask: TokenMask = attention_mask,
        progress: bool = True,
    ) -> None:
        self.function = source if callable(source) else None
        self.batches: List[Batch] = [] if callable(source) else list(source)
        self.token_mask, self.progress = token_mask, progress
        if self.function is None and not self.batches:
            raise EncodingError("calibration has no batch: legal is at least one")

    def bar(self, total: Optional[int], what: str) -> Any:
        """A progress bar on stderr, or one that shows nothing."""
        return tqdm(total=total, desc=what, disable=not self.progress, leave=True)

    def parts(self, what: str) -> Iterator[Batch]:
        """The batches, with a bar of their own that goes when they are done; once the
        function, if it is one."""
        if self.function is not None:
            return iter([self.function])
        bar = tqdm(
            self.batches,
            desc=f"inputs of {what}",
            disable=not self.progress,
            leave=False,
        )
        return iter(bar)

    def tokens_of(self, part: Batch) -> Optional[Tensor]:
        """Which tokens of a part count, or None for all."""
        return None if part is self.function else self.token_mask(part)

    def groups(self, model: nn.Module, names: Sequence[str]) -> List[Group]:
        """The named layers in the order in which they run, grouped by their input.
        Layers that never run are in no group."""
        recorder = _Recorder()
        with recorder.watching(model, names):
            if self.function is not None:
                with evaluating(model):
                    self.function(model)
            for batch in self.batches:
                recorder.begin()
                call(model, batch)
                if len(recorder.most) == len(set(names)):
                    break
        return recorder.groups()

    def captured(self, model: nn.Module, group: Group, part: Batch) -> List[Tensor]:
        """The inputs of the layers of a group in a run on one part, which ends there if
        they run once."""
        found: List[Tensor] = []

        def take(module: nn.Module, args: Any, kwargs: Dict[str, Any]) -> None:
            x = _argument(args, kwargs)
            if part is not self.function and group.calls == 1:
                found.append(x)
                raise Stop
            found.append(x.clone())  # it may be changed in place before the run ends

        module = model.get_submodule(group.names[0])
        handle = module.register_forward_pre_hook(take, with_kwargs=True)
        try:
            if part is self.function:
                with evaluating(model):
                    part(model)
            else:
                call(model, part)
        except Stop:
            pass
        finally:
            handle.remove()
        return found


def call(model: nn.Module, batch: Batch) -> Any:
    """What the model returns for a batch, moved to its device, without gradients and in
    evaluation."""
    first = next(model.parameters(), None)
    device = torch.device("cpu") if first is None else first.device
    with evaluating(model):
        return run_batch(model, to_device(batch, device))


def run_batch(model: nn.Module, batch: Batch) -> Any:
    """The model on a batch: its argument, its arguments, or its named ones."""
    if isinstance(batch, Mapping):
        return model(**batch)
    if isinstance(batch, (tuple, list)):
        return model(*batch)
    return model(batch)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """The batch with its tensors on `device`."""
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        return tuple(to_device(value, device) for value in batch)
    return batch


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Without gradients, and with dropout and the like off."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True


def _argument(args: Any, kwargs: Dict[str, Any]) -> Tensor:
    return args[0] if args else kwargs.get("input", kwargs.get("x"))


class _Recorder:
    """In which order layers run, and which are given the same tensor."""

    def __init__(self) -> None:
        self.most: Dict[str, int] = {}  # calls of each layer for a batch, at most
        self.calls: Dict[str, int] = {}
        self.runs: List[List[str]] = []
        self.last: Optional[Tensor] = None  # held, so that its memory is not reused
        self.version = 0

    def begin(self) -> None:
        """A new batch."""
        self.calls, self.last = {}, None

    @contextmanager
    def watching(self, model: nn.Module, names: Sequence[str]) -> Iterator[None]:
        handles = []
        try:
            for name in names:
                module = model.get_submodule(name)
                handles.append(
                    module.register_forward_pre_hook(self._hook(name), with_kwargs=True)
                )
            yield
        finally:
            self.last = None
            for handle in handles:
                handle.remove()

    def _hook(self, name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Dict[str, Any]) -> None:
            x = _argument(args, kwargs)
            if not self._is_last(x):
                self.runs.append([])
                self.last, self.version = x, _version(x)
            self.runs[-1].append(name)
            self.calls[name] = self.calls.get(name, 0) + 1
            self.most[name] = max(self.most.get(name, 0), self.calls[name])

        return hook

    def _is_last(self, x: Tensor) -> bool:
        last = self.last
        if last is None or _version(x) != self.version:
            return False
        return x is last or (
            x.data_ptr() == last.data_ptr()
            and x.shape == last.shape
            and x.stride() == last.stride()
            and x.dtype == last.dtype
        )

    def groups(self) -> List[Group]:
        """Layers that were given the same tensors each time, in the order in which
        they first ran."""
        runs_of: Dict[str, List[int]] = {}
        for number, run in enumerate(self.runs):
            for name in run:
                runs_of.setdefault(name, []).append(number)
        groups: Dict[Tuple[int, ...], Group] = {}
        for name, numbers in runs_of.items():
            group = groups.setdefault(tuple(numbers), Group([], self.most[name]))
            group.names.append(name)
        return list(groups.values())


def _version(x: Tensor) -> int:
    """Counts changes in place, where torch counts them."""
    return 0 if x.is_inference() else x._version

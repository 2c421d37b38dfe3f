# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a model of many blocks from where it was, not from its beginning.

To know the inputs of the layers of a block, all blocks before it would have to run, for
each group of layers. So what the block before it returned is kept for each batch, and
the blocks up to there return it at once.
"""

from __future__ import annotations

import copy
from contextlib import ExitStack, contextmanager
from typing import Any, Dict, Iterator, List, Optional, Sequence

from torch import Tensor, nn

from ...encoding import EncodingError
from .calibration import Batch, Stop, call

_TOLERANCE = 1e-3  # of what a layer is given, with and without the blocks before it


class Replay:
    """The outputs of the last block that is done with, for each batch.

    name:  of the blocks in the model, an `nn.ModuleList` of modules that run one after
           the other, each on what the one before it returns.

    Raises EncodingError when there is no such list.
    """

    def __init__(self, model: nn.Module, name: str) -> None:
        found = dict(model.named_modules()).get(name)
        if not isinstance(found, (nn.ModuleList, nn.Sequential)) or not len(found):
            modules = model.named_modules()
            lists = [n for n, m in modules if isinstance(m, nn.ModuleList)] or ["none"]
            raise EncodingError(
                f"blocks is {name!r}: legal is the name of an nn.ModuleList of modules "
                f"that run one after the other; the model has {', '.join(lists)}"
            )
        self.name, self.blocks = name, list(found)
        self.ready = 0  # blocks that are done with
        self.checked = 0  # for how many of them it is known that they are a chain
        self.stored: List[Any] = []

    def position(self, layer: str) -> int:
        """How many blocks have run when a layer does, which is given in the order of
        layers."""
        if layer.startswith(f"{self.name}."):
            return int(layer[len(self.name) + 1 :].split(".")[0])
        # Behind the blocks that are known to be done with, or before all of them.
        return self.ready

    def advance(
        self, model: nn.Module, position: int, batches: Sequence[Batch]
    ) -> None:
        """Goes on until `position` blocks are done with. Those must not change any
        more."""
        if position < self.ready:
            raise self._wrong(position)
        if position == self.ready:
            return
        block = self.blocks[position - 1]
        outputs = []
        for number, batch in enumerate(batches):
            with self.playing(number):
                outputs.append(_output(model, block, batch))
        self.stored, self.ready = outputs, position

    @contextmanager
    def playing(self, number: int) -> Iterator[None]:
        """Has the blocks that are done with return what is stored of a batch."""
        # What follows may change it in place.
        output = copy.deepcopy(self.stored[number]) if self.ready else None
        with ExitStack() as stack:
            for block in self.blocks[: self.ready]:
                stack.enter_context(_returning(block, output))
            yield

    def check(self, found: Sequence[Tensor], wanted: Sequence[Tensor]) -> None:
        """Compares the inputs of a layer with those in a run from the beginning. Raises
        EncodingError where they differ."""
        same = len(found) == len(wanted) and all(
            a.shape == b.shape and _difference(a, b) <= _TOLERANCE
            for a, b in zip(found, wanted)
        )
        if not same:
            raise self._wrong(self.ready)
        self.checked = self.ready

    def _wrong(self, position: int) -> EncodingError:
        return EncodingError(
            f"blocks is {self.name!r}, but block {position} takes more than what the "
            "one before it returns: legal are modules that run one after the other; "
            "leave blocks out, and each layer is reached from the beginning"
        )


def find_blocks(model: nn.Module, names: Sequence[str]) -> Optional[str]:
    """The list of modules with the most of these layers, the outermost of several with
    as many; None where no list has two modules with layers."""
    best, most = None, 0
    for name, module in model.named_modules():
        if not isinstance(module, nn.ModuleList) or not name:
            continue
        inside = [one[len(name) + 1 :] for one in names if one.startswith(f"{name}.")]
        blocks = {one.partition(".")[0] for one in inside}
        if len(blocks) > 1 and len(inside) > most:
            best, most = name, len(inside)
    return best


def _difference(found: Tensor, wanted: Tensor) -> float:
    """Relative to the norm of what is wanted."""
    norm = float(wanted.double().norm())
    return float((found.double() - wanted.double()).norm()) / norm if norm else 0.0


@contextmanager
def _returning(module: nn.Module, value: Any) -> Iterator[None]:
    """Replaces the forward method of a module by one that returns `value`."""
    before: Dict[str, Any] = vars(module)
    had = "forward" in before
    old = before.get("forward")
    module.forward = lambda *args, **kwargs: value
    try:
        yield
    finally:
        if had:
            module.forward = old
        else:
            del module.forward


def _output(model: nn.Module, block: nn.Module, batch: Batch) -> Any:
    """What a block returns in a run on a batch, which ends there."""
    found: List[Any] = []

    def take(module: nn.Module, args: Any, output: Any) -> None:
        found.append(output)
        raise Stop

    handle = block.register_forward_hook(take)
    try:
        call(model, batch)
    except Stop:
        pass
    finally:
        handle.remove()
    return found[0]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of a model for what its layers are given, as it is now and as it was."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from itertools import repeat
from typing import Any, Dict, Iterator, List, Optional

import torch
from torch import Tensor, nn

from ...encoding import EncodingError
from ..layers.convertible import input_rows, matrix_shape
from .calibration import Batch, Calibration, Group
from .replay import Replay, find_blocks
from .statistics import Statistics

AUTO = "auto"


class Originals:
    """The weights and biases of layers as they were, to run the dense model again, and
    to go back to it.

    on_cpu:  where they are held; on the device of the layers by default.
    """

    def __init__(self, on_cpu: bool = False) -> None:
        self.on_cpu = on_cpu
        self.kept: Dict[nn.Parameter, Tensor] = {}

    def keep(self, layer: nn.Module) -> None:
        """Holds a copy of the parameters of a layer, unless there is one."""
        for parameter in layer.parameters(recurse=False):
            if parameter not in self.kept:
                device = "cpu" if self.on_cpu else parameter.device
                self.kept[parameter] = parameter.detach().to(device, copy=True)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Has the model dense as long as the context lasts."""
        pruned = {parameter: parameter.data for parameter in self.kept}
        for parameter, dense in self.kept.items():
            parameter.data = dense
        try:
            yield
        finally:
            for parameter, data in pruned.items():
                parameter.data = data

    @contextmanager
    def restored_on_error(self) -> Iterator[None]:
        """Leaves the model as it was where the context is left by an error."""
        try:
            yield
        except BaseException:
            with torch.no_grad():
                for parameter, dense in self.kept.items():
                    parameter.copy_(dense)
            raise


class Runs:
    """Runs of a model for what the layers of a group are given.

    names:   of all layers, for finding blocks.
    dense:   where inputs of the dense model are wanted, too, as targets.
    blocks:  as for `prune_`.
    """

    def __init__(
        self,
        model: nn.Module,
        calibration: Calibration,
        names: List[str],
        dense: Optional[Originals] = None,
        blocks: Optional[str] = AUTO,
    ) -> None:
        self.model, self.calibration, self.dense = model, calibration, dense
        self.replays: Dict[bool, Replay] = {}
        self.is_found = blocks == AUTO  # so that it may turn out to be wrong
        if self.is_found:
            is_function = calibration.function is not None
            blocks = None if is_function else find_blocks(model, names)
        if blocks is not None and calibration.function is not None:
            raise EncodingError(
                "blocks is given, and calibration is a function: legal are batches"
            )
        if blocks is not None:
            self.replays = {False: Replay(model, blocks), True: Replay(model, blocks)}

    def collect(self, group: Group, dtype: torch.dtype = torch.float64) -> Statistics:
        """What the layers of a group are given on all of the calibration data.

        Raises EncodingError, naming a layer, when that is not finite, or nothing.
        """
        name, calibration = group.names[0], self.calibration
        layer: Any = self.model.get_submodule(name)
        has_target = self.dense is not None
        inputs, device = matrix_shape(layer)[1], layer.weight.device
        seen = Statistics(inputs, dtype, device, has_target)
        self._advance(name)
        for number, part in enumerate(calibration.parts(name)):
            tokens = calibration.tokens_of(part)
            found = self._captured(group, part, number, False)
            wanted: List[Any] = [None] * len(found)
            if has_target:
                wanted = self._captured(group, part, number, True)
                _check_same_tokens(name, found, wanted)
            for x, target in zip(found, wanted):
                try:
                    _add(seen, layer, x, target, tokens)
                except EncodingError as error:
                    where = "" if part is calibration.function else f", batch {number}"
                    raise EncodingError(f"{name}{where}: {error}") from None
        if not seen.tokens:
            raise EncodingError(
                f"{name}: calibration has no token for it: legal are batches with at "
                "least one that is not padding; add data, or map its name to None"
            )
        return seen

    def _advance(self, name: str) -> None:
        """Has blocks that are done with return at once what they did."""
        for is_dense, replay in list(self.replays.items()):
            if is_dense and self.dense is None:
                continue
            with self._weights(is_dense), self._giving_up():
                position = replay.position(name)
                replay.advance(self.model, position, self.calibration.batches)

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        """After an error, reaches each layer from the beginning from now on, where
        blocks were found and not given."""
        try:
            yield
        except Exception:
            if not self.is_found:
                raise
            self.replays = {}

    def _weights(self, is_dense: bool) -> Any:
        return self.dense.in_place() if is_dense and self.dense else nullcontext()

    def _captured(
        self, group: Group, part: Batch, number: int, is_dense: bool
    ) -> List[Tensor]:
        """The inputs of the layers of a group on a part of the data."""
        replay, capture = self.replays.get(is_dense), self.calibration.captured
        with self._weights(is_dense):
            if replay is not None and 0 < replay.ready == replay.checked:
                with replay.playing(number):
                    return capture(self.model, group, part)
            wanted = capture(self.model, group, part)
            if replay is not None and replay.ready:
                with self._giving_up():
                    with replay.playing(number):
                        found = capture(self.model, group, part)
                    replay.check(found, wanted)
            return wanted


def _add(
    seen: Statistics,
    layer: nn.Module,
    x: Tensor,
    target: Optional[Tensor],
    tokens: Optional[Tensor],
) -> None:
    """Counts what a layer is given: of images their patches."""
    parts = input_rows(layer, x)
    targets = repeat(None) if target is None else input_rows(layer, target)
    for rows, wanted in zip(parts, targets):
        seen.add(rows, wanted, tokens)


def _check_same_tokens(name: str, found: List[Tensor], wanted: List[Tensor]) -> None:
    if [x.shape for x in found] != [x.shape for x in wanted]:
        raise EncodingError(
            f"{name} is given other tokens in the pruned model than in the dense one: "
            "legal is target=0 where the data decide which layers run"
        )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of a checkpoint, some outputs at a time, in whatever layout they are."""

from __future__ import annotations

import math
from typing import Dict, Iterator, List, Tuple

import numpy as np

from ...encoding import EncodingError, Packed
from ...packing import canonical, two_four
from .. import marlin
from ..checkpoint import BITMASK, MARLIN, PARTS, Checkpoint
from ..packed_file import INPUT_SCALE, SCALE
from ..scales import from_f32, numpy_type, read_scale, to_f32
from .actions import Action

PART = 1 << 22  # bytes that are converted together


class WeightRows:
    """A weight [outputs, inputs] that is not packed.

    multiple:  `read` takes whole multiples of so many outputs.
    """

    def __init__(
        self, checkpoint: Checkpoint, name: str, is_exact: bool = False
    ) -> None:
        """`is_exact`: `read` returns elements without their scale.

        Raises CheckpointError where that is not legal."""
        self.checkpoint, self.name = checkpoint, name
        self.weight = checkpoint.weights[name]
        self.shape = self.weight.outputs, self.weight.inputs
        scale = read_scale(checkpoint, name, self.weight.outputs)
        self.scale = None if is_exact else scale
        is_marlin = self.weight.stored == MARLIN
        self.multiple = marlin.OUTPUTS if is_marlin else 1
        prefix = name[: -len("weight")]
        # Tiles of a few outputs lie all over them, and they are small.
        self._marlin: List[np.ndarray] = []
        if is_marlin:
            self._marlin = [checkpoint.tensor(prefix + p) for p in marlin.PARTS]

    def read(self, first: int, stop: int, dtype: str) -> np.ndarray:
        """Some outputs as elements of `dtype`, bf16 as an unsigned view.

        Raises CheckpointError where what is stored is damaged."""
        stored = self.weight.dtype
        if self._marlin:
            numbers = marlin.decode_marlin(*self._marlin, first, stop)
            return from_f32(numbers, dtype)
        array = self._stored(first, stop)
        if self.scale is None and dtype == stored:
            return array
        numbers = to_f32(array, stored)
        if self.scale is not None:
            scale = self.scale if len(self.scale) == 1 else self.scale[first:stop]
            numbers *= scale[:, None]
        return from_f32(numbers, dtype)

    def _stored(self, first: int, stop: int) -> np.ndarray:
        if self.weight.stored != BITMASK:
            return self.checkpoint.file_of(self.name).read(self.name, first, stop)
        prefix = self.name[: -len("weight")]
        parts = [prefix + part for part in PARTS[1:]]
        shape = np.array([stop - first, self.weight.inputs])
        rows = [self.checkpoint.file_of(p).read(p, first, stop) for p in parts]
        try:
            return two_four.decode_bitmask(shape, *rows)
        except EncodingError:
            # The whole weight says where it is damaged.
            return self.checkpoint.dense(self.name)[first:stop]


def cast_rows(
    checkpoint: Checkpoint, action: Action
) -> Iterator[Tuple[int, np.ndarray]]:
    """A tensor in the type of its action, in parts, each with where it begins in bytes.

    Raises CheckpointError where what is stored is damaged."""
    width = numpy_type(action.dtype).itemsize
    if action.kind == "unpack":
        packed = _retyped(checkpoint, action)
        yield 0, canonical.decode(packed)
        return
    item, dtype = action.item, action.dtype
    if item.kind == "weight":
        rows = WeightRows(checkpoint, item.name)
        for first, stop in _steps(action.shape, width, rows.multiple):
            array = rows.read(first, stop, dtype)
            yield first * action.shape[1] * width, array
        return
    stored = str(item.file.tensors[item.name].element_type)
    if not action.shape:
        yield 0, from_f32(to_f32(item.file.read(item.name), stored), dtype)
        return
    row = math.prod(action.shape[1:]) * width
    for first, stop in _steps(action.shape, width, 1):
        array = item.file.read(item.name, first, stop)
        yield first * row, from_f32(to_f32(array, stored), dtype)


def _steps(
    shape: Tuple[int, ...], width: int, multiple: int
) -> Iterator[Tuple[int, int]]:
    row = max(math.prod(shape[1:]) * width * multiple, 1)
    step = max(PART // row, 1) * multiple
    for first in range(0, shape[0], step):
        yield first, min(first + step, shape[0])


def _retyped(checkpoint: Checkpoint, action: Action) -> Packed:
    """A weight that is packed already, in the type of its action, times its scale."""
    packed = checkpoint.read_packed(action.name)
    parts, e = dict(packed.components), packed.encoding
    outputs = packed.shape[0]
    scale = read_scale(checkpoint, action.name, outputs)
    if scale is not None or packed.dtype != action.dtype:
        values = to_f32(parts["values"], packed.dtype)
        if scale is not None and len(scale) > 1:
            order = scale[parts["perm"]] if e.is_shuffled else scale
            # The last panel may have outputs that the weight has not.
            scale = np.ones(values.shape[1], np.float32)
            scale[:outputs] = order
        parts["values"] = from_f32(
            values if scale is None else values * scale, action.dtype
        )
    return Packed(parts, e, packed.shape, action.dtype)


def packed_components(checkpoint: Checkpoint, action: Action) -> Dict[str, np.ndarray]:
    """Those of a weight that is packed already: in the type of its action, or its
    elements and scales where they stay."""
    if not action.is_exact:
        return dict(_retyped(checkpoint, action).components)
    found = dict(checkpoint.read_packed(action.name).components)
    found.update(scale_component(checkpoint, action))
    if action.prefix + INPUT_SCALE in action.entries:
        prefix = checkpoint.packed[action.name].prefix
        found[INPUT_SCALE] = checkpoint.tensor(prefix + INPUT_SCALE)
    return found


def scale_component(checkpoint: Checkpoint, action: Action) -> Dict[str, np.ndarray]:
    """The scale of a weight that has one, for each of its outputs."""
    scale = read_scale(checkpoint, action.name, action.shape[0])
    assert scale is not None
    return {SCALE: np.broadcast_to(scale, action.shape[:1])}

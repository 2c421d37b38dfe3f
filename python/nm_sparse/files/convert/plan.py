# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes of each tensor of a checkpoint, decided before anything is written."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ...encoding import Encoding
from ..checkpoint import COMPANIONS, MARLIN, Checkpoint, Weight
from ..contents import Item, contents
from ..scales import FLOATS, check_readable, numpy_type, scale_name
from ..tensor_file import CheckpointError
from .entries import cast_entry, copied_entry, packed_entries
from .shard_writer import Entry

ACTIVATIONS = ("input_scale", "input_zero_point", "output_scale", "k_scale", "v_scale")
WEIGHT = ".weight"


@dataclass(frozen=True)
class Options:
    """What is asked for.

    encoding:  of linear layers; None: those that `layers` does not name stay dense.
    layers:    exceptions by patterns of layers' names (`fnmatch`), the first that
               matches decides; None for dense.
    dtype:     element type of all floating tensors, one of `scales.FLOATS`; None: as it
               is, and that of the model's config for weights of fewer bits.
    prune:     "magnitude", or "none" for weights that have their pattern already:
               others stay dense.
    """

    encoding: Optional[Encoding] = None
    layers: Mapping[str, Optional[Encoding]] = field(default_factory=dict)
    dtype: Optional[str] = None
    prune: str = "magnitude"

    def find(self, layer: str) -> Tuple[Optional[str], Optional[Encoding]]:
        """The pattern that decides about a layer, if one does, and its encoding."""
        for pattern, e in self.layers.items():
            if fnmatchcase(layer, pattern):
                return pattern, e
        return None, self.encoding


@dataclass(frozen=True)
class Structure:
    """Which tensors of a checkpoint are weights of layers that can be packed.

    linear:    their shapes, [outputs, inputs], by name.
    others:    why each other matrix cannot be packed, by name.
    is_known:  whether the model itself says so; else names do.
    tied:      names of linear layers that have no weight of their own in it.
    """

    linear: Mapping[str, Tuple[int, int]]
    others: Mapping[str, str]
    is_known: bool
    tied: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Action:
    """What becomes of a tensor, or of the tensors of a weight.

    kind:      "pack" a weight, "keep" one that is packed already, "unpack" one that no
               packed layer can have, "cast" a weight or tensor to `dtype`, "copy" it.
    dtype:     of the values.
    reason:    why a matrix stays dense.
    entries:   the tensors that it is in the new checkpoint.
    """

    item: Item
    kind: str
    shape: Tuple[int, ...]
    dtype: str
    entries: Mapping[str, Entry]
    encoding: Optional[Encoding] = None
    reason: str = ""

    @property
    def name(self) -> str:
        return self.item.name

    @property
    def layer(self) -> str:
        return layer_name(self.name)

    @property
    def prefix(self) -> str:
        """With which the names of a packed layer's tensors begin."""
        return layer_name(self.name) + "."

    @property
    def size(self) -> int:
        """In bytes, of what is written."""
        return sum(entry[2] for entry in self.entries.values())


def layer_name(name: str) -> str:
    """That of the layer that has a weight."""
    return name[: -len(WEIGHT)] if name.endswith(WEIGHT) else name


class Planner:
    """Decides; raises CheckpointError where what is asked for is not possible."""

    def __init__(
        self, checkpoint: Checkpoint, options: Options, structure: Structure
    ) -> None:
        self.checkpoint, self.options = checkpoint, options
        self.structure = structure
        self.used: Dict[str, List[str]] = {pattern: [] for pattern in options.layers}

    def plan(self) -> List[Action]:
        """In the order of the checkpoint. Tensors that belong to a weight's elements,
        as scales, are in none: they are part of what is written."""
        check_readable(self.checkpoint)
        items = contents(self.checkpoint)
        # Where quantized activations are left, so are their scales.
        names = {item.name for item in items if item.kind != "other"}
        actions = []
        for item in items:
            owner = _owner(item.name)
            if owner is None or (owner not in names and owner + WEIGHT not in names):
                actions.append(self._action(item))
        self._check_patterns()
        return actions

    def _action(self, item: Item) -> Action:
        if item.kind == "packed":
            return self._packed(item)
        if item.kind == "other":
            return self._plain(item)
        return self._weight(item, self.checkpoint.weights[item.name])

    def _packed(self, item: Item) -> Action:
        described = self.checkpoint.packed[item.name].described
        dtype = self._target(item.name, described.dtype, "dense")
        shape, e = tuple(described.shape), described.encoding
        name = item.name if item.name.endswith(WEIGHT) else item.name + WEIGHT
        is_layer = name in self.structure.linear or not self.structure.is_known
        if is_layer and e.dim == 1 and not e.is_free and len(shape) == 2:
            entries = packed_entries(layer_name(name), shape, e, dtype)
            return Action(item, "keep", shape, dtype, entries, e)
        entries = {name: cast_entry(shape, dtype)}
        reason = self.structure.others.get(name, "no layer has a weight of its pattern")
        return Action(item, "unpack", shape, dtype, entries, reason=reason)

    def _plain(self, item: Item, reason: str = "") -> Action:
        """A tensor that is copied, but for its type."""
        info = item.file.tensors[item.parts[0]]
        stored, wanted = info.element_type, self.options.dtype
        if wanted and stored in FLOATS and stored != wanted:
            entries = {item.name: cast_entry(info.shape, wanted)}
            return Action(item, "cast", info.shape, wanted, entries, reason=reason)
        entries = {item.name: copied_entry(info)}
        dtype = stored or info.dtype
        return Action(item, "copy", info.shape, dtype, entries, reason=reason)

    def _weight(self, item: Item, weight: Weight) -> Action:
        dtype = self._target(item.name, weight.dtype, weight.stored)
        shape = weight.outputs, weight.inputs
        pattern, e = self.options.find(layer_name(item.name))
        reason = self._obstacle(item.name, shape, dtype, pattern, e)
        if reason is None and e is not None:
            entries = packed_entries(layer_name(item.name), shape, e, dtype)
            return Action(item, "pack", shape, dtype, entries, e)
        return self.dense(item, weight, reason or "")

    def dense(self, item: Item, weight: Weight, reason: str) -> Action:
        """A matrix that is not packed."""
        dtype = self._target(item.name, weight.dtype, weight.stored)
        is_stored = weight.stored == "dense" and dtype == weight.dtype
        if is_stored and scale_name(self.checkpoint, item.name) is None:
            return self._plain(item, reason)
        shape = weight.outputs, weight.inputs
        entries = {item.name: cast_entry(shape, dtype)}
        return Action(item, "cast", shape, dtype, entries, reason=reason)

    def _target(self, name: str, stored: str, layout: str) -> str:
        """The type that a weight is to have."""
        if self.options.dtype is not None:
            return self.options.dtype
        is_scaled = scale_name(self.checkpoint, name) is not None
        if stored in FLOATS and not is_scaled and layout != MARLIN:
            return stored
        return model_dtype(self.checkpoint.config) or (
            "f16" if layout == MARLIN else "bf16"
        )

    def _obstacle(
        self,
        name: str,
        shape: Tuple[int, int],
        dtype: str,
        pattern: Optional[str],
        e: Optional[Encoding],
    ) -> Optional[str]:
        """Why a matrix is not packed; None where it is."""
        layer, legal = layer_name(name), self.structure.linear.get(name)
        if legal is None:
            reason = self.structure.others.get(name, "no linear layer has this weight")
            if pattern == layer and e is not None:
                self._fail(pattern, f"names {name}, which cannot be packed: {reason}")
            return reason
        if legal != shape:
            raise CheckpointError(
                f"{self.checkpoint.path}: {name!r} has shape {list(shape)}: the model "
                f"has {list(legal)}"
            )
        if pattern is not None:
            self.used[pattern].append(layer)
        if e is None:
            return f"{pattern!r} leaves it dense" if pattern else "no encoding is given"
        return _misfit(shape, dtype, e, is_named=pattern == layer)

    def _check_patterns(self) -> None:
        for pattern, layers in self.used.items():
            if not layers and self.options.layers[pattern] is not None:
                known = [layer_name(name) for name in self.structure.linear]
                self._fail(
                    pattern,
                    "decides about no layer: legal are patterns of the names of linear "
                    f"layers, such as {known[0]!r}"
                    if known
                    else "there are no layers",
                )

    def _fail(self, pattern: str, problem: str) -> None:
        raise CheckpointError(f"{self.checkpoint.path}: layers[{pattern!r}] {problem}")


def _owner(name: str) -> Optional[str]:
    """The weight, or the layer, that a scale or zero point belongs to."""
    layer, _, last = name.rpartition(".")
    if last in ACTIVATIONS:
        return layer
    endings = (ending for ending in COMPANIONS if name.endswith(ending))
    found = next(endings, "")
    return name[: -len(found)] if found else None


def _misfit(
    shape: Tuple[int, int], dtype: str, e: Encoding, is_named: bool
) -> Optional[str]:
    """Why a weight of this shape gains nothing from the pattern."""
    window, panel = e.m * e.block[0], e.block[1]
    if shape[1] < window:
        return f"its {shape[1]} inputs are less than a window of {window}"
    if shape[0] < panel:
        return f"its {shape[0]} outputs are less than a panel of {panel}"
    dense = math.prod(shape) * numpy_type(dtype).itemsize
    entries = packed_entries("", shape, e, dtype)
    packed = sum(size for _, _, size in entries.values())
    if packed >= dense and not is_named:
        return f"packed it takes {packed} bytes, dense {dense}"
    return None


def model_dtype(config: Mapping[str, Any]) -> Optional[str]:
    """The element type that config.json says, as MLIR spells it."""
    known = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}
    for place in (config, config.get("text_config")):
        for key in ("dtype", "torch_dtype"):
            if isinstance(place, Mapping) and place.get(key) in known:
                return known[place[key]]
    return None

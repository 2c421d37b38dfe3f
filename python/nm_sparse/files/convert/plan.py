# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes of each tensor of a checkpoint, decided before anything is written."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from ...encoding import Encoding
from ..checkpoint import COMPANIONS, MARLIN, Checkpoint, Weight
from ..contents import Item, contents
from ..packed_file import INPUT_SCALE
from ..scales import FLOATS, check_readable, numpy_type, read_scale, scale_name
from ..sparse_config import METHOD, NARROW, SparseConfig, encoding_text
from ..tensor_file import CheckpointError
from .actions import WEIGHT, Action, Structure, layer_name
from .entries import cast_entry, copied_entry, packed_entries
from .options import Options

ACTIVATIONS = ("input_scale", "input_zero_point", "output_scale", "k_scale", "v_scale")


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
        said = self.checkpoint.compression
        if said.get("quant_method") == METHOD:
            SparseConfig.parse(said)  # of a version that is known
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
        reason = self.structure.others.get(name, "no layer has a weight of its pattern")
        if is_layer and e.dim == 1 and not e.is_free and len(shape) == 2:
            pattern = self._check_same(layer_name(name), e)
            if pattern is None:
                return self._keep(item, shape, dtype, e, described.dtype)
            reason = f"{pattern!r} leaves it dense"
        entries = {name: cast_entry(shape, dtype)}
        return Action(item, "unpack", shape, dtype, entries, reason=reason)

    def _check_same(self, layer: str, e: Encoding) -> Optional[str]:
        """The pattern that leaves a layer dense which is packed; None where none does.

        Raises CheckpointError where another encoding is asked for than it has: what is
        gone of its weight does not come back."""
        pattern, asked = self.options.find(layer)
        if pattern is not None:
            self.used[pattern].append(layer)
            if asked is None:
                self._check_dense(pattern, layer)
                return pattern
        if self.options.prune != "none" and asked not in (None, e):
            raise CheckpointError(
                f"{self.checkpoint.path}: {layer} is packed already, as "
                f"{encoding_text(e)}, and {encoding_text(asked)} is asked for: legal "
                "is the same, or prune none, which keeps what is packed; for another "
                "pattern convert the dense model, or save this one dense, after "
                "model.dequantize()"
            )
        return None

    def _check_dense(self, pattern: str, layer: str) -> None:
        """Raises CheckpointError unless a packed layer's weight is a matrix there."""
        reason = self.structure.others.get(layer + WEIGHT)
        if not self.structure.is_known:
            reason = "no model was asked how its layer has a dense one"
        if reason is not None:
            self._fail(
                pattern,
                f"leaves {layer} dense, whose weight is packed, and {reason}: legal is "
                "to leave it packed",
            )

    def _keep(
        self, item: Item, shape: Tuple[int, ...], dtype: str, e: Encoding, stored: str
    ) -> Action:
        """A weight that is packed already, and stays so."""
        elements = self._elements()
        is_exact = self._is_exact(item.name, stored, shape[0])
        layer = layer_name(item.name)
        entries = packed_entries(layer, shape, e, dtype, elements)
        # It is for inputs that are rounded to the elements that they were before.
        source = f"{self.checkpoint.packed[item.name].prefix}{INPUT_SCALE}"
        if is_exact and self.options.rounded_inputs and self.checkpoint.has(source):
            entries[f"{layer}.{INPUT_SCALE}"] = cast_entry((), "f32")
        return Action(
            item, "keep", shape, dtype, entries, e, elements=elements, is_exact=is_exact
        )

    def _elements(self) -> Optional[str]:
        """Of packed weights, as in MLIR; None: they have none."""
        weights = self.options.weights
        return None if weights is None else NARROW[weights]

    def _is_exact(self, name: str, stored: str, outputs: int) -> bool:
        """Whether a weight has the elements and scales already that it is to have."""
        scale = None
        if stored == self._elements():
            scale = read_scale(self.checkpoint, name, outputs)
        if scale is None or not (np.isfinite(scale) & (scale > 0)).all():
            return False
        return self.options.scales == "output" or bool((scale == scale[0]).all())

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
            own = layer_name(item.name), shape, e, dtype
            elements = self._elements()
            is_exact = self.options.prune == "none" and self._is_exact(
                item.name, weight.dtype, weight.outputs
            )
            entries = packed_entries(*own, elements)
            return Action(
                item, "pack", shape, dtype, entries, e, elements=elements,
                is_exact=is_exact,
            )  # fmt: skip
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
        return _misfit(shape, dtype, self._elements(), e, is_named=pattern == layer)

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
    shape: Tuple[int, int],
    dtype: str,
    elements: Optional[str],
    e: Encoding,
    is_named: bool,
) -> Optional[str]:
    """Why a weight of this shape gains nothing from the pattern."""
    window, panel = e.m * e.block[0], e.block[1]
    if shape[1] < window:
        return f"its {shape[1]} inputs are less than a window of {window}"
    if shape[0] < panel:
        return f"its {shape[0]} outputs are less than a panel of {panel}"
    dense = math.prod(shape) * numpy_type(dtype).itemsize
    entries = packed_entries("", shape, e, dtype, elements)
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

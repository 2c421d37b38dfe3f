# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pruning has done to each layer of a model."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from torch import Tensor

from ...encoding import Encoding
from .model_size import ModelSize


@dataclass
class LayerReport:
    """One layer.

    name:      of the module in the model.
    encoding:  what its weight obeys, with dim = 1.
    shape:     of the weight, (outputs, inputs).
    zeros:     share of the weight that is zero.
    kept:      share of the scores' sum of squares that is left, 0 to 1.
    error_before, error_after:
               how far the outputs are from those of the dense layer, relative to their
               norm, before and after the fit; None where nothing is known of the
               inputs.
    damping:   that of the fit, the largest of all outputs; None without a fit.
    raised:    how many outputs needed more damping than was asked for.
    tokens:    that the layer has seen in calibration.
    weights, activations, scales:
               those of the config, where the layer is to have elements of 8 bits.
    scale:     f32 [N], what these are multiplied by; None where it is to be found.
    perm:      int64 [N] of a shuffled encoding: place j of the packed outputs holds
               output perm[j].
    """

    name: str
    encoding: Encoding
    shape: tuple[int, int]
    zeros: float
    kept: float
    error_before: Optional[float] = None
    error_after: Optional[float] = None
    damping: Optional[float] = None
    raised: int = 0
    tokens: int = 0
    weights: Optional[str] = None
    activations: str = "same"
    scales: str = "output"
    scale: Optional[Tensor] = field(default=None, repr=False)
    perm: Optional[Tensor] = field(default=None, repr=False)

    def to_dict(self) -> Dict[str, Any]:
        """What JSON can hold; the permutation and scales are left out."""
        fields = {k: v for k, v in vars(self).items() if k not in ("perm", "scale")}
        return {**fields, "encoding": str(self.encoding), "shape": list(self.shape)}


@dataclass
class PruneReport:
    """The layers in the order in which they were pruned.

    `str` is a table, `report[name]` the row of a layer.

    left_dense:  why each other linear layer is dense, by its name.
    size:        how much of the model is sparse, and which large parameters are not.
    """

    layers: List[LayerReport] = field(default_factory=list)
    left_dense: Dict[str, str] = field(default_factory=dict)
    size: ModelSize = field(default_factory=ModelSize)

    def __getitem__(self, name: str) -> LayerReport:
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise KeyError(name)

    def to_json(self) -> str:
        """A list of layers."""
        return json.dumps([layer.to_dict() for layer in self.layers], indent=1)

    def __str__(self) -> str:
        header = ["layer", "pattern", "shape", "zeros", "kept", "error", "fitted"]
        rows = [header] + [_cells(layer) for layer in self.layers]
        widths = [max(len(row[at]) for row in rows) for at in range(len(header))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths)) for row in rows]
        lines = [self.size.headline, *(line.rstrip() for line in lines)]
        lines += [f"{name}  dense: {why}" for name, why in self.left_dense.items()]
        listed = {f"{name}.weight" for name in self.left_dense}
        return "\n".join(lines + self.size.lines(listed))


def _number(value: Optional[float]) -> str:
    return "" if value is None else f"{value:.3f}"


def _cells(layer: LayerReport) -> List[str]:
    more = f", damping raised to {layer.damping:g}" if layer.raised else ""
    return [
        layer.name,
        str(layer.encoding).replace(", dim = 1", ""),
        "x".join(map(str, layer.shape)),
        f"{layer.zeros:.0%}",
        f"{layer.kept:.3f}",
        _number(layer.error_before),
        _number(layer.error_after) + more,
    ]

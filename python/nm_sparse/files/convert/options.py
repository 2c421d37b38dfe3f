# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `convert_model` is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Mapping, Optional, Tuple

from ...encoding import Encoding, EncodingError
from ..sparse_config import NARROW

SCALES = ("output", "tensor")
SAME = "same"  # activations that are not rounded
METHODS = {
    "magnitude": "magnitude, without calibration",
    "none": "packed as it was pruned",
}


@dataclass(frozen=True)
class Options:
    """What is asked for.

    encoding:     of linear layers; None: those that `layers` does not name stay dense.
    layers:       exceptions by patterns of layers' names (`fnmatch`), the first that
                  matches decides; None for dense.
    dtype:        element type of all floating tensors, one of `scales.FLOATS`; None: as
                  it is, and that of the model's config for weights of fewer bits.
    prune:        "magnitude", or "none" for weights that have their pattern already:
                  others stay dense.
    weights:      "e4m3" or "int8": packed values are rounded to elements of 8 bits with
                  scales, and stand for numbers of the type above; None: they are not.
    scales:       of such weights: "output", one for each, or "tensor", the same for
                  all.
    activations:  "same": inputs of these layers are multiplied as they are; or as
                  `weights`: they are rounded to such elements, which None means, too.

    Raises EncodingError where the last three do not fit.
    """

    encoding: Optional[Encoding] = None
    layers: Mapping[str, Optional[Encoding]] = field(default_factory=dict)
    dtype: Optional[str] = None
    prune: str = "magnitude"
    weights: Optional[str] = None
    scales: str = "output"
    activations: Optional[str] = None

    def __post_init__(self) -> None:
        weights, activations = self.weights, self.activations
        if weights is not None and weights not in NARROW:
            legal = ", ".join([*map(repr, NARROW), "None"])
            raise EncodingError(f"weights is {weights!r}: legal is {legal}")
        if self.scales not in SCALES:
            legal = ", ".join(map(repr, SCALES))
            raise EncodingError(f"scales is {self.scales!r}: legal is {legal}")
        if weights is None and self.scales != SCALES[0]:
            raise EncodingError(
                f"scales is {self.scales!r}, and weights None: legal is weights 'e4m3' "
                "or 'int8', which have scales"
            )
        if activations not in (None, SAME, weights):
            legal = f"{SAME!r}" if weights is None else f"{SAME!r} or {weights!r}"
            raise EncodingError(
                f"activations is {activations!r}, and weights {weights!r}: legal is "
                f"{legal}"
            )

    def find(self, layer: str) -> Tuple[Optional[str], Optional[Encoding]]:
        """The pattern that decides about a layer, if one does, and its encoding."""
        for pattern, e in self.layers.items():
            if fnmatchcase(layer, pattern):
                return pattern, e
        return None, self.encoding

    @property
    def method(self) -> str:
        """How weights come to their pattern."""
        return METHODS.get(self.prune, self.prune)

    @property
    def rounded_inputs(self) -> Optional[str]:
        """The type that inputs of packed layers are rounded to; None: they are not."""
        if self.activations == SAME:
            return None
        return self.activations or self.weights

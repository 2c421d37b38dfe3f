# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How patterns compare for the layers of a model: times and errors, as tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ...encoding import Encoding


@dataclass
class Option:
    """One pattern for one layer.

    encoding:  with dim = 1.
    times:     by the number of tokens, microseconds of the sparse layer; empty where
               it cannot be compiled.
    error:     of the outputs after a least-squares fit, relative to their norm; None
               without calibration.
    reason:    why there are no times.
    config:    how layers are pruned to it, a `PruneConfig`.
    """

    encoding: Encoding
    times: Dict[int, float] = field(default_factory=dict)
    error: Optional[float] = None
    reason: str = ""
    config: Any = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The pattern, and the type of its elements if they have 8 bits."""
        weights = getattr(self.config, "weights", None)
        more = "" if weights is None else f", {weights}"
        return _short(self.encoding) + more

    def time(self, tokens: Sequence[int]) -> float:
        """Of one call with each number of tokens; infinite where it has no times."""
        return sum(self.times.get(count, float("inf")) for count in tokens)


@dataclass
class LayerAdvice:
    """All patterns for one layer, and the one that is chosen.

    name, shape:  of the layer, and of its weight (outputs, inputs).
    dense:        microseconds of the dense layer, by the number of tokens.
    chosen:       None for dense.
    seen:         how many tokens of calibration the layer has had; errors are too small
                  where these are fewer than its inputs, as few are easily fitted.
    """

    name: str
    shape: Tuple[int, int]
    dense: Dict[int, float] = field(default_factory=dict)
    options: List[Option] = field(default_factory=list)
    chosen: Optional[Option] = None
    seen: int = 0

    def choose(self, budget: float, tokens: Sequence[int]) -> None:
        """Takes the fastest option whose error is within the budget and which is faster
        than dense; of equally fast ones that of the least error."""
        dense = sum(self.dense[count] for count in tokens) if self.dense else 0.0
        legal = [
            option
            for option in self.options
            if option.error is not None
            and option.error <= budget
            and option.time(tokens) < dense
        ]
        self.chosen = min(
            legal, key=lambda option: (option.time(tokens), option.error), default=None
        )


@dataclass
class Advice:
    """What `advise` and `choose` have found; `str` is a table for each layer.

    tokens:  for which times are predicted.
    budget:  of the error, None where nothing was chosen.
    left_dense:  why other linear layers were not looked at, by their name.
    """

    tokens: Tuple[int, ...]
    layers: List[LayerAdvice] = field(default_factory=list)
    budget: Optional[float] = None
    left_dense: Dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> LayerAdvice:
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise KeyError(name)

    @property
    def patterns(self) -> Dict[str, Optional[Encoding]]:
        """What is chosen, by the name of the layer; None is dense. `prune_` takes it,
        unless a name has one of the characters * ? [."""
        return {
            layer.name: None if layer.chosen is None else layer.chosen.encoding
            for layer in self.layers
        }

    def speedup(self) -> float:
        """Time of all layers if dense over that of what is chosen."""
        dense = sum(sum(layer.dense.values()) for layer in self.layers)
        taken = sum(
            sum(layer.dense.values())
            if layer.chosen is None
            else layer.chosen.time(self.tokens)
            for layer in self.layers
        )
        return dense / taken if taken else 1.0

    def to_json(self) -> str:
        """All figures."""
        return json.dumps(
            {
                "tokens": list(self.tokens),
                "budget": self.budget,
                "layers": [_layer_dict(layer) for layer in self.layers],
                "left_dense": self.left_dense,
            },
            indent=1,
        )

    def __str__(self) -> str:
        lines: List[str] = []
        for layer in self.layers:
            outputs, inputs = layer.shape
            few = f", errors are too small: {layer.seen} tokens for {inputs} inputs"
            few = few if 0 < layer.seen < inputs else ""
            lines.append(f"{layer.name}  {outputs} x {inputs}{few}")
            header = ["", "pattern", "error"]
            header += [f"us, {count} tokens" for count in self.tokens]
            rows = [header, *self._rows(layer)]
            widths = [max(len(row[at]) for row in rows) for at in range(len(header))]
            for row in rows:
                cells = [cell.ljust(width) for cell, width in zip(row, widths)]
                lines.append("  ".join(cells).rstrip())
            lines += [
                f"   {option.text}: {option.reason}"
                for option in layer.options
                if option.reason
            ]
            lines.append("")
        lines += [f"{name}  dense: {why}" for name, why in self.left_dense.items()]
        return "\n".join(lines)

    def _rows(self, layer: LayerAdvice) -> List[List[str]]:
        mark = "*" if layer.chosen is None and self.budget is not None else ""
        dense = [f"{layer.dense[n]:.1f}" if layer.dense else "" for n in self.tokens]
        rows = [(sum(layer.dense.values()), [mark, "dense", "0.000", *dense])]
        for option in layer.options:
            if option.times:
                error = "" if option.error is None else f"{option.error:.3f}"
                mark = "*" if option is layer.chosen else ""
                times = [
                    f"{option.times[n]:.1f} ({layer.dense[n] / option.times[n]:.2f}x)"
                    for n in self.tokens
                ]
                cells = [mark, option.text, error, *times]
                rows.append((option.time(self.tokens), cells))
        return [cells for _, cells in sorted(rows, key=lambda row: row[0])]


def _short(encoding: Encoding) -> str:
    return str(encoding).replace(", dim = 1", "")


def _layer_dict(layer: LayerAdvice) -> Dict[str, Any]:
    """What JSON can hold."""
    return {
        "name": layer.name,
        "shape": list(layer.shape),
        "calibration_tokens": layer.seen,
        "dense_us": layer.dense,
        "chosen": None if layer.chosen is None else layer.chosen.text,
        "options": [
            {
                "pattern": option.text,
                "us": option.times,
                "error": option.error,
                **({"reason": option.reason} if option.reason else {}),
            }
            for option in layer.options
        ],
    }

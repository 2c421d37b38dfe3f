# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations as MLIR text: the operations that compute one of an f32 value.

The forms are those that the compiler's approximations recognize (docs/DataPath.md).
"""

from __future__ import annotations

from typing import Dict, List, Tuple

from ..encoding import EncodingError

# Each line is `NAME = OPERATION`; `v` is the operand, `y` the result, and a number in
# braces a constant. Names are those of this activation alone.
_STEPS: Dict[str, Tuple[str, ...]] = {
    "none": (),
    "relu": ("y = arith.maximumf v, {0.0}",),
    "sigmoid": (
        "minus = arith.negf v",
        "power = math.exp minus",
        "below = arith.addf power, {1.0}",
        "y = arith.divf {1.0}, below",
    ),
    "silu": (
        "minus = arith.negf v",
        "power = math.exp minus",
        "below = arith.addf power, {1.0}",
        "y = arith.divf v, below",
    ),
    "gelu": (
        "scaled = arith.mulf v, {0.70710678118654752}",
        "erf = math.erf scaled",
        "gate = arith.addf erf, {1.0}",
        "half = arith.mulf v, {0.5}",
        "y = arith.mulf half, gate",
    ),
    "gelu_tanh": (
        "square = arith.mulf v, v",
        "cube = arith.mulf square, v",
        "small = arith.mulf cube, {0.044715}",
        "sum = arith.addf v, small",
        "scaled = arith.mulf sum, {0.79788456080286536}",
        "tanh = math.tanh scaled",
        "gate = arith.addf tanh, {1.0}",
        "half = arith.mulf v, {0.5}",
        "y = arith.mulf half, gate",
    ),
}
ACTIVATIONS = tuple(name for name in _STEPS if name != "sigmoid")


def activation_steps(
    activation: str, operand: str, prefix: str, dtype: str = "f32"
) -> Tuple[List[str], str]:
    """Lines of MLIR that compute an activation, and the name of what they give.

    activation:  "none", "relu", "sigmoid", "silu", "gelu" (with erf) or "gelu_tanh".
    operand:     name of the value, such as "%sum".
    prefix:      what the names of the new values begin with, such as "%a_".
    dtype:       type of the value: f32 or f64.

    Raises EncodingError for another activation.
    """
    if activation not in _STEPS:
        raise EncodingError(
            f"activation is {activation!r}: legal is one of {', '.join(_STEPS)}"
        )
    names, lines = {"v": operand}, []

    def value(token: str) -> str:
        if not token.startswith("{"):
            return names[token]
        if token not in names:
            names[token] = f"{prefix}c{len(lines)}"
            lines.append(f"{names[token]} = arith.constant {token[1:-1]} : {dtype}")
        return names[token]

    for step in _STEPS[activation]:
        name, _, right = step.partition(" = ")
        operation, _, operands = right.partition(" ")
        values = [value(token) for token in operands.split(", ")]
        names[name] = f"{prefix}{name}"
        lines.append(f"{names[name]} = {operation} {', '.join(values)} : {dtype}")
    return lines, names.get("y", operand)

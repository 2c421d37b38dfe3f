# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gated half of an MLP as an MLIR program: activation(x Wg^T) * (x Wu^T).

Both products read the same x, so a program for many tokens transposes it once. The
activation is in the kernel of the first product, which rounds it to the type of x; the
kernel of the second one multiplies by it.
"""

from __future__ import annotations

from typing import List, Optional

from .layers.activation_text import activation_steps
from .layers.layer_text import (
    Typed,
    attribute,
    begin,
    check_sizes,
    element,
    elementwise,
    empty,
    function,
    product,
    widen,
    zeros,
)


def gated_mlp_mlir(
    hidden: int,
    intermediate: int,
    encoding: str,
    dtype: str = "f16",
    activation: str = "silu",
    tokens: Optional[int] = None,
    down: Optional[str] = None,
    name: str = "gated_mlp",
) -> str:
    """Text of a program with one function.

    hidden:        inputs of both weights.
    intermediate:  outputs of both, and the features of the result.
    encoding:      text of the encoding of both weights, [intermediate, hidden], which
                   contracts dimension 1.
    dtype:         element type of x, weights and result: f16, bf16 or f32; sums are
                   f32.
    activation:    of the first product: none, relu, silu, gelu or gelu_tanh.
    tokens:        rows of x; None for any number.
    down:          encoding of a third weight, [hidden, intermediate]: the function then
                   is the whole MLP, and the result [tokens, hidden].
    name:          of the function. It takes x [tokens, hidden], the gate's weight, the
                   one multiplied by it, the third one if there is one, and the array
                   that the result is written to.

    Raises EncodingError when an encoding is none of such a weight, a size is below 1,
    or type or activation is another one.
    """
    check_sizes(dtype, hidden=hidden, intermediate=intermediate)
    rows = "?" if tokens is None else str(tokens)
    x: Typed = ("%x", f"tensor<{rows}x{hidden}x{dtype}>")
    half = f"tensor<{rows}x{intermediate}x{dtype}>"
    wide = f"tensor<{rows}x{intermediate}xf32>"
    weight = f"tensor<{intermediate}x{hidden}x{dtype}, #weight>"
    gate, up = ("%gate_weight", weight), ("%up_weight", weight)
    aliases, arguments = [f"#weight = {attribute(encoding)}"], [x, gate, up]
    out = ("%out", x[1] if down else half)
    lines = [
        *begin(x[1], tokens),
        *zeros("wide", wide),
        product("gate", x, gate, ("%wide", wide)),
        product("up", x, up, ("%wide", wide)),
        empty("half", half),
        *([empty("inside", half)] if down else []),
        *_activated(activation, ("%gate", wide), ("%half", half)),
        *_narrowed(("%up", wide), ("%half", half)),
        *_multiplied(half, ("%inside", half) if down else out),
    ]
    result = ("%gated", half)
    if down:
        narrow = f"tensor<{rows}x{hidden}xf32>"
        third = ("%down_weight", f"tensor<{hidden}x{intermediate}x{dtype}, #down>")
        aliases.append(f"#down = {attribute(down)}")
        arguments.append(third)
        lines += zeros("narrow", narrow)
        lines.append(product("down", result, third, ("%narrow", narrow)))
        lines += elementwise("result", [("%down", narrow)], out, [], "%i0")
        result = ("%result", x[1])
    return function(name, aliases, [*arguments, out], lines, [result])


def _activated(activation: str, gate: Typed, out: Typed) -> List[str]:
    steps, value = activation_steps(activation, "%i0", "%a_")
    return elementwise("activated", [gate], out, steps, value)


def _narrowed(up: Typed, out: Typed) -> List[str]:
    """The second product in the type of the result, as a layer of its own would give
    it: the kernel of the first one then reads half as many bytes."""
    return elementwise("narrowed", [up], out, [], "%i0")


def _multiplied(half: str, out: Typed) -> List[str]:
    body, value = widen("%long", "%i0", element(half))
    other, second = widen("%other", "%i1", element(half))
    body += [*other, f"%p = arith.mulf {value}, {second} : f32"]
    return elementwise(
        "gated", [("%activated", half), ("%narrowed", half)], out, body, "%p"
    )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gated half of an MLP as an MLIR program: activation(x Wg^T) * (x Wu^T).

Both products read the same x, so a program for many tokens transposes it once. The
activation is in the kernel of the first product, which rounds it to the type of x; the
kernel of the second one multiplies by it.
"""

from __future__ import annotations

from typing import List, Optional

from .layers.layer_text import (
    Typed,
    accumulator,
    attribute,
    begin,
    check_sizes,
    check_third,
    check_types,
    element,
    elementwise,
    empty,
    finish,
    function,
    given_x,
    product,
    scale_of_x,
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
    result: Optional[str] = None,
    x_scale: str = "token",
    feature_major: bool = False,
) -> str:
    """Text of a program with one function.

    hidden:        inputs of both weights.
    intermediate:  outputs of both, and the features of the result.
    encoding:      text of the encoding of both weights, [intermediate, hidden], which
                   contracts dimension 1.
    dtype:         element type of x, weights and result: f16, bf16 or f32; sums are
                   f32. Of x, gate and up also f8E4M3FN and i8, with scales.
    activation:    of the first product: none, relu, silu, gelu or gelu_tanh.
    tokens:        rows of x; None for any number.
    down:          encoding of a third weight, [hidden, intermediate]: the function then
                   is the whole MLP, and the result [tokens, hidden].
    name:          of the function. It takes x [tokens, hidden], the gate's weight, the
                   one multiplied by it, the third one if there is one, the scales of
                   x, gate and up where `dtype` has 8 bits, and the array that the
                   result is written to.
    result, x_scale:  where `dtype` has 8 bits, as for `LinearSpec`.
    feature_major:    whether x is given as x^T, as for `LinearSpec`.

    Raises EncodingError when an encoding is none of such a weight, a size is below 1,
    type or activation is another one, or there is a third weight and `dtype` has 8
    bits: what it is applied to has no scale yet.
    """
    given = check_types(dtype, result, x_scale)
    check_sizes(hidden=hidden, intermediate=intermediate)
    check_third(down, result)
    rows = "?" if tokens is None else str(tokens)
    x, argument = given_x(rows, hidden, dtype, feature_major)
    half = f"tensor<{rows}x{intermediate}x{given}>"
    wide = f"tensor<{rows}x{intermediate}x{accumulator(dtype)}>"
    weight = f"tensor<{intermediate}x{hidden}x{dtype}, #weight>"
    gate, up = ("%gate_weight", weight), ("%up_weight", weight)
    aliases, arguments = [f"#weight = {attribute(encoding)}"], [argument, gate, up]
    out = ("%out", f"tensor<{rows}x{hidden}x{dtype}>" if down else half)
    scales: List[List[Typed]] = [[], []]
    if result is not None:
        of_x = scale_of_x(rows, x_scale)
        kind = f"tensor<{intermediate}xf32>"
        scales = [[of_x, (f"%{one}_scale", kind)] for one in ("gate", "up")]
        arguments += [of_x, scales[0][1], scales[1][1]]
    lines = [
        *begin(x[1], tokens, feature_major),
        *zeros("wide", wide),
        product("gate", x, gate, ("%wide", wide), feature_major),
        product("up", x, up, ("%wide", wide), feature_major),
        empty("half", half),
        *([empty("inside", half)] if down else []),
        *finish(
            "activated",
            ("%gate", wide),
            ("%half", half),
            activation=activation,
            scales=scales[0],
        ),
        # In the type of the result, as a layer of its own would give it: the kernel of
        # the first product then reads half as many bytes.
        *finish("narrowed", ("%up", wide), ("%half", half), scales=scales[1]),
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
        result = ("%result", out[1])
    return function(name, aliases, [*arguments, out], lines, [result])


def _multiplied(half: str, out: Typed) -> List[str]:
    body, value = widen("%long", "%i0", element(half))
    other, second = widen("%other", "%i1", element(half))
    body += [*other, f"%p = arith.mulf {value}, {second} : f32"]
    return elementwise(
        "gated", [("%activated", half), ("%narrowed", half)], out, body, "%p"
    )

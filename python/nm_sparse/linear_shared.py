# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers of one input as an MLIR program, which transposes it at most once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Sequence

from .encoding import EncodingError
from .layers.layer_text import (
    accumulator,
    attribute,
    begin,
    check_sizes,
    check_types,
    finish,
    function,
    given_x,
    product,
    scale_of_x,
    zeros,
)


@dataclass(frozen=True)
class SharedLayer:
    """One of the layers: activation(x W^T + bias).

    outputs:     rows of W, [outputs, inputs].
    encoding:    text of the encoding of W, which contracts dimension 1.
    bias:        whether there is one, [outputs].
    activation:  none, relu, silu, gelu or gelu_tanh.
    """

    outputs: int
    encoding: str
    bias: bool = False
    activation: str = "none"


def linear_shared_mlir(
    inputs: int,
    layers: Sequence[SharedLayer],
    dtype: str = "f16",
    tokens: Optional[int] = None,
    name: str = "linear_shared",
    result: Optional[str] = None,
    x_scale: str = "token",
    feature_major: bool = False,
) -> str:
    """Text of a program with one function.

    inputs:  columns of x and of all weights.
    layers:  at least one.
    dtype:   element type of x, weights, biases and results: f16, bf16 or f32; sums are
             f32. Of x and weights also f8E4M3FN and i8, with scales.
    tokens:  rows of x; None for any number.
    name:    of the function. It takes x [tokens, inputs], the weights, the scale of x
             and those of each weight's outputs where `dtype` has 8 bits, the biases
             that there are, and the arrays that the results are written to.
    result, x_scale:  where `dtype` has 8 bits, as for `LinearSpec`.
    feature_major:    whether x is given as x^T, as for `LinearSpec`.

    Raises EncodingError when there is no layer, an encoding is none of such a weight, a
    size is below 1, or type or activation is another one.
    """
    given = check_types(dtype, result, x_scale)
    check_sizes(inputs=inputs)
    if not layers:
        raise EncodingError("there are 0 layers: legal is at least 1")
    rows = "?" if tokens is None else str(tokens)
    x, argument = given_x(rows, inputs, dtype, feature_major)
    lines, aliases = begin(x[1], tokens, feature_major), []
    of_x = [scale_of_x(rows, x_scale)] if result is not None else []
    weights, scales, biases, outs, results = [], [], [], [], []
    for at, layer in enumerate(layers):
        n = layer.outputs
        check_sizes(outputs=n)
        aliases.append(f"#weight{at} = {attribute(layer.encoding)}")
        weights.append((f"%w{at}", f"tensor<{n}x{inputs}x{dtype}, #weight{at}>"))
        bias = (f"%bias{at}", f"tensor<{n}x{given}>") if layer.bias else None
        biases += [bias] if bias else []
        own = [(f"%scale{at}", f"tensor<{n}xf32>")] if of_x else []
        scales += own
        outs.append((f"%out{at}", f"tensor<{rows}x{n}x{given}>"))
        wide = f"tensor<{rows}x{n}x{accumulator(dtype)}>"
        lines += zeros(f"init{at}", wide)
        init = (f"%init{at}", wide)
        lines.append(product(f"p{at}", x, weights[-1], init, feature_major))
        y = (f"%p{at}", wide)
        both = [*of_x, *own]
        lines += finish(f"y{at}", y, outs[-1], bias, layer.activation, both)
        results.append((f"%y{at}", outs[-1][1]))
    arguments = [argument, *weights, *of_x, *scales, *biases, *outs]
    return function(name, aliases, arguments, lines, results)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers of one input as an MLIR program, which transposes it at most once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Sequence

from .encoding import EncodingError
from .layers.activation_text import activation_steps
from .layers.layer_text import (
    Typed,
    attribute,
    begin,
    check_sizes,
    element,
    elementwise,
    function,
    product,
    widen,
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
) -> str:
    """Text of a program with one function.

    inputs:  columns of x and of all weights.
    layers:  at least one.
    dtype:   element type of x, weights, biases and results: f16, bf16 or f32; sums are
             f32.
    tokens:  rows of x; None for any number.
    name:    of the function. It takes x [tokens, inputs], the weights, the biases that
             there are, and the arrays that the results are written to.

    Raises EncodingError when there is no layer, an encoding is none of such a weight, a
    size is below 1, or type or activation is another one.
    """
    check_sizes(dtype, inputs=inputs)
    if not layers:
        raise EncodingError("there are 0 layers: legal is at least 1")
    rows = "?" if tokens is None else str(tokens)
    x: Typed = ("%x", f"tensor<{rows}x{inputs}x{dtype}>")
    lines, aliases = begin(x[1], tokens), []
    weights, biases, outs, results = [], [], [], []
    for at, layer in enumerate(layers):
        n = layer.outputs
        check_sizes(dtype, outputs=n)
        aliases.append(f"#weight{at} = {attribute(layer.encoding)}")
        weights.append((f"%w{at}", f"tensor<{n}x{inputs}x{dtype}, #weight{at}>"))
        bias = (f"%bias{at}", f"tensor<{n}x{dtype}>") if layer.bias else None
        biases += [bias] if bias else []
        outs.append((f"%out{at}", f"tensor<{rows}x{n}x{dtype}>"))
        wide = f"tensor<{rows}x{n}xf32>"
        lines += zeros(f"init{at}", wide)
        lines.append(product(f"p{at}", x, weights[-1], (f"%init{at}", wide)))
        lines += _behind(f"y{at}", (f"%p{at}", wide), bias, layer.activation, outs[-1])
        results.append((f"%y{at}", outs[-1][1]))
    return function(name, aliases, [x, *weights, *biases, *outs], lines, results)


def _behind(
    name: str, y: Typed, bias: Optional[Typed], activation: str, out: Typed
) -> List[str]:
    """Bias, activation and rounding."""
    body, value, inputs = [], "%i0", [y]
    if bias is not None:
        body, wide = widen("%long", "%i1", element(bias[1]))
        body.append(f"%sum = arith.addf %i0, {wide} : f32")
        value, inputs = "%sum", [y, bias]
    steps, value = activation_steps(activation, value, "%a_")
    return elementwise(name, inputs, out, [*body, *steps], value)

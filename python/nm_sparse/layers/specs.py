# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers as a few fields, and the MLIR programs that they stand for."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Tuple

from ..encoding import EncodingError
from . import layer_text as text
from .activation_text import ACTIVATIONS, activation_steps


@dataclass(frozen=True)
class LinearSpec:
    """`y = activation(x W^T + bias)` of any number of tokens, as PyTorch has it.

    encoding:    text of the encoding of W; its contraction is dimension 1.
    outputs:     rows of W, [outputs, inputs].
    inputs:      columns of W, and of the token-major x, [tokens, inputs].
    dtype:       element type of x, W, bias and y: f16, bf16 or f32. Sums are f32.
    bias:        whether there is one, [outputs].
    activation:  none, relu, silu, gelu (with erf) or gelu_tanh.

    The program's function @linear takes x, W, bias if there is one, and the array
    that y is written to. Raises EncodingError for a field that is not legal.
    """

    encoding: str
    outputs: int
    inputs: int
    dtype: str = "f16"
    bias: bool = False
    activation: str = "none"

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", text.attribute(self.encoding))
        text.check_sizes(self.dtype, outputs=self.outputs, inputs=self.inputs)
        if self.activation not in ACTIVATIONS:
            raise EncodingError(
                f"activation is {self.activation!r}: legal is one of "
                f"{', '.join(ACTIVATIONS)}"
            )

    @property
    def shape(self) -> Tuple[int, int]:
        """Of the weight."""
        return self.outputs, self.inputs

    def to_json(self) -> str:
        """Compact JSON, the same for equal specs."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @staticmethod
    def from_json(line: str) -> "LinearSpec":
        """Raises EncodingError when `line` is not what `to_json` gives."""
        try:
            fields: Any = json.loads(line)
            return LinearSpec(**fields)
        except (ValueError, TypeError) as error:
            raise EncodingError(f"{line!r} is no spec of a layer: {error}") from None

    def mlir(self) -> str:
        """The program."""
        n, k, t = self.outputs, self.inputs, self.dtype
        x, wide = ("%x", f"tensor<?x{k}x{t}>"), f"tensor<?x{n}xf32>"
        weight = ("%w", f"tensor<{n}x{k}x{t}, #weight>")
        out = ("%out", f"tensor<?x{n}x{t}>")
        bias = [("%bias", f"tensor<{n}x{t}>")] if self.bias else []
        lines = text.begin(x[1], None) + text.zeros("init", wide)
        lines.append(text.product("product", x, weight, ("%init", wide)))
        body, value = [], "%i0"
        if self.bias:
            body, addend = text.widen("%wide", "%i1", t)
            body.append(f"%biased = arith.addf %i0, {addend} : f32")
            value = "%biased"
        steps, value = activation_steps(self.activation, value, "%a_")
        lines += text.elementwise(
            "y", [("%product", wide), *bias], out, [*body, *steps], value
        )
        aliases = [f"#weight = {self.encoding}"]
        arguments = [x, weight, *bias, out]
        return text.function("linear", aliases, arguments, lines, [("%y", out[1])])

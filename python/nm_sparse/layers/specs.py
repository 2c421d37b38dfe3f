# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers as a few fields, and the MLIR programs that they stand for."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Optional, Tuple

from ..encoding import EncodingError
from . import layer_text as text
from .activation_text import ACTIVATIONS


@dataclass(frozen=True)
class LinearSpec:
    """`y = activation(x W^T + bias)` of any number of tokens, as PyTorch has it.

    encoding:    text of the encoding of W; its contraction is dimension 1.
    outputs:     rows of W, [outputs, inputs].
    inputs:      columns of W, and of x, [tokens, inputs].
    dtype:       element type of x, W, bias and y: f16, bf16 or f32. Sums are f32. Of x
                 and W also f8E4M3FN, and i8, whose sums are i32; their product is
                 multiplied by scales then, before the bias.
    bias:        whether there is one, [outputs].
    activation:  none, relu, silu, gelu (with erf) or gelu_tanh.
    result:      element type of bias and y, f16, bf16 or f32, where `dtype` has 8 bits.
    x_scale:     there, whether x has a scale for each "token", or one: "tensor".
    feature_major:  whether the function is given x^T, [inputs, tokens], whose rows may
                 lie at any distance; multiples of 32 bytes are fastest.

    The program's function @linear takes x, W, the scales of x (f32, [tokens] or [1])
    and of outputs (f32, [outputs]) where `dtype` has 8 bits, bias if there is one, and
    the array that y is written to. Raises EncodingError for a field that is not legal.
    """

    encoding: str
    outputs: int
    inputs: int
    dtype: str = "f16"
    bias: bool = False
    activation: str = "none"
    result: Optional[str] = None
    x_scale: str = "token"
    feature_major: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", text.attribute(self.encoding))
        text.check_types(self.dtype, self.result, self.x_scale)
        text.check_layout(self.feature_major)
        text.check_sizes(outputs=self.outputs, inputs=self.inputs)
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
        given = self.result or t
        x, argument = text.given_x("?", k, t, self.feature_major)
        wide = f"tensor<?x{n}x{text.accumulator(t)}>"
        weight = ("%w", f"tensor<{n}x{k}x{t}, #weight>")
        out = ("%out", f"tensor<?x{n}x{given}>")
        bias = ("%bias", f"tensor<{n}x{given}>") if self.bias else None
        scales = []
        if self.result is not None:
            scales = [
                text.scale_of_x("?", self.x_scale),
                ("%scale", f"tensor<{n}xf32>"),
            ]
        own = self.feature_major
        lines = text.begin(x[1], None, own) + text.zeros("init", wide)
        lines.append(text.product("product", x, weight, ("%init", wide), own))
        y = ("%product", wide)
        lines += text.finish("y", y, out, bias, self.activation, scales)
        aliases = [f"#weight = {self.encoding}"]
        arguments = [argument, weight, *scales, *([bias] if bias else []), out]
        return text.function("linear", aliases, arguments, lines, [("%y", out[1])])

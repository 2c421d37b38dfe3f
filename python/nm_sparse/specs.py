# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers as a few fields, and the MLIR programs that they stand for."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Dict, Tuple

from .encoding import Encoding, EncodingError

# Element types of weight and activations that layers have.
DTYPES = ("f16", "bf16", "f32")

# What follows the product, on f32 %v; each ends in %activated.
_ACTIVATIONS: Dict[str, str] = {
    "none": "",
    "relu": """
    %zero_a = arith.constant 0.0 : f32
    %activated = arith.maximumf %v, %zero_a : f32""",
    "silu": """
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %v : f32
    %exp = math.exp %minus : f32
    %under = arith.addf %exp, %one : f32
    %activated = arith.divf %v, %under : f32""",
    "gelu": """
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.70710678118654752 : f32
    %scaled = arith.mulf %v, %root : f32
    %erf = math.erf %scaled : f32
    %erf1 = arith.addf %erf, %one : f32
    %halved = arith.mulf %v, %half : f32
    %activated = arith.mulf %halved, %erf1 : f32""",
    "gelu_tanh": """
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.79788456080286536 : f32
    %cubic = arith.constant 0.044715 : f32
    %square = arith.mulf %v, %v : f32
    %cube = arith.mulf %square, %v : f32
    %small = arith.mulf %cube, %cubic : f32
    %inner = arith.addf %v, %small : f32
    %scaled = arith.mulf %inner, %root : f32
    %tanh = math.tanh %scaled : f32
    %tanh1 = arith.addf %tanh, %one : f32
    %halved = arith.mulf %v, %half : f32
    %activated = arith.mulf %halved, %tanh1 : f32""",
}
ACTIVATIONS = tuple(_ACTIVATIONS)


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
        parsed = Encoding.parse(self.encoding)
        if parsed.dim != 1:
            raise EncodingError(
                f"encoding {parsed.mlir()} has dim {parsed.dim}: legal is 1, the "
                "contraction of a weight [outputs, inputs]"
            )
        object.__setattr__(self, "encoding", parsed.mlir())
        for name in ("outputs", "inputs"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise EncodingError(f"{name} is {value!r}: legal is at least 1")
        if self.dtype not in DTYPES:
            raise EncodingError(
                f"dtype is {self.dtype!r}: legal is one of {', '.join(DTYPES)}"
            )
        if self.activation not in _ACTIVATIONS:
            raise EncodingError(
                f"activation is {self.activation!r}: legal is one of "
                f"{', '.join(_ACTIVATIONS)}"
            )

    @property
    def shape(self) -> Tuple[int, int]:
        """Of the weight."""
        return self.outputs, self.inputs

    def to_json(self) -> str:
        """Compact JSON, the same for equal specs."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> "LinearSpec":
        """Raises EncodingError when `text` is not what `to_json` gives."""
        try:
            fields: Any = json.loads(text)
            return LinearSpec(**fields)
        except (ValueError, TypeError) as error:
            raise EncodingError(f"{text!r} is no spec of a layer: {error}") from None

    def mlir(self) -> str:
        """The program."""
        n, k, t = self.outputs, self.inputs, self.dtype
        y = f"tensor<?x{n}x{t}>"
        arguments = [
            f"%x: tensor<?x{k}x{t}>",
            f"%w: tensor<{n}x{k}x{t}, #weight>",
            *([f"%bias: tensor<{n}x{t}>"] if self.bias else []),
            f"%out: {y}",
        ]
        return f"""#weight = {self.encoding}
#rows = affine_map<(m, n) -> (m, n)>
#columns = affine_map<(m, n) -> (n)>
func.func @linear({", ".join(arguments)}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 0 : index
  %m = tensor.dim %x, %first : tensor<?x{k}x{t}>
  %empty = tensor.empty(%m) : tensor<?x{n}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x{n}xf32>)
      -> tensor<?x{n}xf32>
  %product = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                       affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<?x{k}x{t}>, tensor<{n}x{k}x{t}, #weight>)
      outs(%init : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
{self._epilogue()}
  return %y : {y}
}}
"""

    def _epilogue(self) -> str:
        n, t = self.outputs, self.dtype
        maps, inputs, types = ["#rows"], ["%product"], [f"tensor<?x{n}xf32>"]
        arguments, body, value = ["%s: f32"], "", "%s"
        if self.bias:
            maps.append("#columns")
            inputs.append("%bias")
            types.append(f"tensor<{n}x{t}>")
            arguments.append(f"%b: {t}")
            wide = "%b"
            if t != "f32":
                body += f"\n    %wide = arith.extf %b : {t} to f32"
                wide = "%wide"
            body += f"\n    %biased = arith.addf %s, {wide} : f32"
            value = "%biased"
        if self.activation != "none":
            body += _ACTIVATIONS[self.activation].replace("%v", value)
            value = "%activated"
        if t != "f32":
            body += f"\n    %short = arith.truncf {value} : f32 to {t}"
            value = "%short"
        return f"""  %y = linalg.generic {{
      indexing_maps = [{", ".join(maps)}, #rows],
      iterator_types = ["parallel", "parallel"]}}
      ins({", ".join(inputs)} : {", ".join(types)})
      outs(%out : tensor<?x{n}x{t}>) {{
  ^bb0({", ".join(arguments)}, %o: {t}):{body}
    linalg.yield {value} : {t}
  }} -> tensor<?x{n}x{t}>"""

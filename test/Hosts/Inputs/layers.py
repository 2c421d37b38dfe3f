# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers drawn at random, by seed, for hosts that launch our kernels.

Usage: layers.py SEED COUNT OUT.mlir [FAMILY...]

Writes a function for each layer. `draw` gives the same layers again, with packed
weights by the names of their components, inputs, and what the layers compute.
"""

import pathlib
import sys
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python/tests/support")]

from bitmap_oracle import pack_bitmap  # noqa: E402

from nm_sparse import Encoding, Level, encode, innermost_weight  # noqa: E402
from nm_sparse.reference import prune  # noqa: E402

TYPES = {"f16": np.float16, "f32": np.float32, "i8": np.int8}
# The (n, m) of each family of patterns.
FAMILIES = {
    "elements": [(2, 4), (1, 4)],
    "blocks": [(8, 16), (4, 8), (8, 32)],
    "panels": [(8, 32), (4, 16), (16, 32)],
    "levels": [(4, 8), (4, 10)],
}


@dataclass(frozen=True)
class Layer:
    name: str
    encoding: Encoding
    inputs: int
    outputs: int
    element: str
    weight: np.ndarray  # in the order of the function's argument
    bias: Optional[np.ndarray]  # with a ReLU behind it

    @property
    def result(self) -> str:
        return "i32" if self.element == "i8" else "f32"

    @property
    def is_turned(self) -> bool:
        return self.encoding.dim == 1

    def pack(self, encoding: str, names: Sequence[str]) -> Dict[str, np.ndarray]:
        """The weight as components of these names, with the encoding that kernels
        read: the compiler may take one of more patterns than the weight has."""
        e = Encoding.parse(encoding)
        parts = dict(encode(self.weight, e).components)
        if "bits" in names:
            inner, k, n = innermost_weight(e, self.inputs, self.outputs)
            own = parts.pop("inner_index" if e.inner else "index")
            values, bits = pack_bitmap(inner, parts.pop("values"), own, k=k, n=n)
            parts = {"values": values, **parts, "bits": bits}
        assert set(parts) == set(names), (self.name, set(parts), names)
        return parts

    def draw_tokens(self, rng: np.random.Generator, tokens: int) -> np.ndarray:
        if self.element == "i8":
            return rng.integers(-9, 10, (tokens, self.inputs), np.int8)
        return rng.standard_normal((tokens, self.inputs)).astype(TYPES[self.element])

    def compute(self, x: np.ndarray) -> np.ndarray:
        """In float64, which is exact for i8."""
        wide = self.weight.astype(np.float64)
        y = x.astype(np.float64) @ (wide.T if self.is_turned else wide)
        return y if self.bias is None else np.maximum(y + self.bias, 0)

    def check(self, y: np.ndarray, x: np.ndarray) -> Optional[str]:
        """Describes the error of `y`; None if there is none."""
        wanted = self.compute(x)
        if y.shape != wanted.shape:
            return f"the shape is {y.shape}, not {wanted.shape}"
        wide = np.abs(self.weight.astype(np.float64))
        scale = np.abs(x.astype(np.float64)) @ (wide.T if self.is_turned else wide)
        # Sums in float32, of what tensor cores take: f32 as TF32.
        tolerance = {"f16": 2e-6, "f32": 2e-3, "i8": 0}[self.element]
        error = np.abs(y.astype(np.float64) - wanted) - tolerance * (scale + 1)
        if np.isnan(y.astype(np.float64)).any() or error.max(initial=0) > 0:
            return f"{(error > 0).sum()} of {error.size} elements are wrong"
        return None

    def write(self) -> str:
        x = f"tensor<?x{self.inputs}x{self.element}>"
        y = f"tensor<?x{self.outputs}x{self.result}>"
        encoding = f"#nm_sparse.encoding<{self.encoding}>"
        w = "x".join(map(str, self.weight.shape))
        w = f"tensor<{w}x{self.element}, {encoding}>"
        w_map = "(n, k)" if self.is_turned else "(k, n)"
        maps = ", ".join(
            f"affine_map<(m, n, k) -> {dims}>" for dims in ("(m, k)", w_map, "(m, n)")
        )
        zero = "0" if self.result == "i32" else "0.0"
        b = f"tensor<{self.outputs}xf32>"
        # Parameters of a model have names of their own.
        bias = "" if self.bias is None else f", %b_{self.name}: {b}"
        text = f"""func.func @{self.name}(%x: {x}, %w_{self.name}: {w}{bias}) -> {y} {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant {zero} : {self.result}
  %m = tensor.dim %x, %c0 : {x}
  %e = tensor.empty(%m) : {y}
  %f = linalg.fill ins(%zero : {self.result}) outs(%e : {y}) -> {y}
  %y = linalg.matmul indexing_maps = [{maps}]
      ins(%x, %w_{self.name} : {x}, {w}) outs(%f : {y}) -> {y}
"""
        if self.bias is None:
            return text + f"  return %y : {y}\n}}\n"
        return (
            text
            + f"""  %r = linalg.generic {{
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
                       affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%y, %b_{self.name} : {y}, {b}) outs(%e : {y}) {{
  ^bb0(%v: f32, %c: f32, %o: f32):
    %s = arith.addf %v, %c : f32
    %p = arith.maximumf %s, %zero : f32
    linalg.yield %p : f32
  }} -> {y}
  return %r : {y}
}}
"""
        )


def draw_encoding(rng: np.random.Generator, family: str, dim: int) -> Encoding:
    n, m = FAMILIES[family][rng.integers(len(FAMILIES[family]))]
    if family == "elements":
        return Encoding(n=n, m=m, dim=dim)
    width = {
        "blocks": [1, 4, 16, 32],
        "panels": [32, 64, 128],
        "levels": [32, 64],
    }[family]
    block = (1, int(rng.choice(width)))
    inner = Level(2, 4) if family == "levels" else None
    return Encoding(n=n, m=m, dim=dim, block=block, inner=inner)


def draw(
    seed: int, count: int, families: Sequence[str] = (), largest: int = 6
) -> List[Layer]:
    """`largest`: at most so many times 64 inputs and outputs, and a rest of either."""
    layers = []
    for number in range(count):
        # A layer does not depend on how many there are.
        rng = np.random.default_rng((seed, number))
        choice = list(families or FAMILIES)
        family = choice[rng.integers(len(choice))]
        element = str(rng.choice(["f16", "f16", "f16", "f32", "i8"]))
        encoding = draw_encoding(rng, family, int(rng.integers(2)))
        shape = [int(s) for s in 64 * rng.integers(1, largest + 1, 2)]
        if rng.random() < 0.3:
            shape = [s + int(rng.integers(1, 60)) for s in shape]
        inputs, outputs = shape
        sizes = (outputs, inputs) if encoding.dim == 1 else (inputs, outputs)
        if element == "i8":
            dense = rng.integers(-9, 10, sizes, np.int8)
        else:
            dense = rng.standard_normal(sizes).astype(TYPES[element])
        bias = None
        if element != "i8" and rng.random() < 0.5:
            bias = rng.standard_normal(outputs).astype(np.float32)
        layers.append(
            Layer(
                f"layer{number}",
                encoding,
                inputs,
                outputs,
                element,
                prune(dense, encoding),
                bias,
            )
        )
    return layers


if __name__ == "__main__":
    drawn = draw(int(sys.argv[1]), int(sys.argv[2]), sys.argv[4:])
    pathlib.Path(sys.argv[3]).write_text("\n".join(one.write() for one in drawn))

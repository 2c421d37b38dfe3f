# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers with a sparse weight, as MLIR: what the sweeps compile and run."""

import dataclasses
import re

# Share of zeros in percent: kept weights of each window.
SPARSITIES = {"50": "16:32", "62.5": "12:32", "75": "8:32", "87.5": "4:32"}

# How x and y lie in memory: tokens by features, or features by tokens.
LAYOUTS = {"token": ("mk", "mn"), "feature": ("km", "nm"), "mixed": ("km", "mn")}

PLAIN = """\
#w = #nm_sparse.encoding<{encoding}>
func.func @f(%x: tensor<{x}x{type}>, %w: tensor<{k}x{n}x{type}, #w>,
             %init: tensor<{y}xf32>) -> tensor<{y}xf32> {{
  %y = linalg.matmul indexing_maps = [{maps}]{given}
      ins(%x, %w : tensor<{x}x{type}>, tensor<{k}x{n}x{type}, #w>)
      outs(%init : tensor<{y}xf32>) -> tensor<{y}xf32>
  return %y : tensor<{y}xf32>
}}
"""

# y = x w, as a dense library's GEMM: from zero, stored in the operands' type.
PRODUCT = """\
#w = #nm_sparse.encoding<{encoding}>
func.func @f(%x: tensor<{x}x{type}>, %w: tensor<{k}x{n}x{type}, #w>)
    -> tensor<{y}x{type}> {{
  %zero = arith.constant 0.0 : {type}
  %token_dim = arith.constant {token_dim} : index
  %m = tensor.dim %x, %token_dim : tensor<{x}x{type}>
  %empty = tensor.empty(%m) : tensor<{y}x{type}>
  %init = linalg.fill ins(%zero : {type}) outs(%empty : tensor<{y}x{type}>)
      -> tensor<{y}x{type}>
  %y = linalg.matmul indexing_maps = [{maps}]{given}
      ins(%x, %w : tensor<{x}x{type}>, tensor<{k}x{n}x{type}, #w>)
      outs(%init : tensor<{y}x{type}>) -> tensor<{y}x{type}>
  return %y : tensor<{y}x{type}>
}}
"""

# y = gelu(x w + bias), exact GELU, stored in the type of the operands.
GELU = """\
#w = #nm_sparse.encoding<{encoding}>
func.func @f(%x: tensor<{x}x{type}>, %w: tensor<{k}x{n}x{type}, #w>,
             %bias: tensor<{n}xf32>) -> tensor<{y}x{type}> {{
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.70710678118654752 : f32
  %token_dim = arith.constant {token_dim} : index
  %m = tensor.dim %x, %token_dim : tensor<{x}x{type}>
  %empty = tensor.empty(%m) : tensor<{y}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{y}xf32>)
      -> tensor<{y}xf32>
  %y = linalg.matmul indexing_maps = [{maps}]{given}
      ins(%x, %w : tensor<{x}x{type}>, tensor<{k}x{n}x{type}, #w>)
      outs(%init : tensor<{y}xf32>) -> tensor<{y}xf32>
  %out = tensor.empty(%m) : tensor<{y}x{type}>
  %r = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>,
                       affine_map<(i, j) -> ({bias_dim})>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%y, %bias : tensor<{y}xf32>, tensor<{n}xf32>)
      outs(%out : tensor<{y}x{type}>) {{
  ^bb0(%a: f32, %b: f32, %o: {type}):
    %s = arith.addf %a, %b : f32
    %t = arith.mulf %s, %root : f32
    %e = math.erf %t : f32
    %u = arith.addf %e, %one : f32
    %h = arith.mulf %s, %half : f32
    %g = arith.mulf %h, %u : f32
    {cast}
    linalg.yield %c : {type}
  }} -> tensor<{y}x{type}>
  return %r : tensor<{y}x{type}>
}}
"""

EPILOGUES = {"plain": PLAIN, "product": PRODUCT, "gelu": GELU}

NAME = re.compile(
    r"(?P<type>\w+?)_s(?P<sparsity>[\d.]+)(of(?P<window>\d+))?(v(?P<outer>\d+))?_"
    r"L(?P<length>\d+)_"
    r"(?P<layout>\w+?)_"
    r"(?P<shape>\d+x\d+x\d+)_(?P<epilogue>\w+)$"
)


@dataclasses.dataclass(frozen=True)
class Layer:
    """`shape` is (tokens, outputs, contraction), `window` the rows of which some
    are kept; see the tables above. With `outer`, panels keep 4 rows of so many, and
    outputs 2:4 of these (V:N:M)."""

    type: str
    sparsity: str
    length: int
    layout: str
    shape: tuple
    epilogue: str = "product"
    window: int = 32
    outer: int = 0

    @property
    def name(self):
        shape = "x".join(map(str, self.shape))
        window = "" if self.window == 32 else f"of{self.window}"
        window += f"v{self.outer}" if self.outer else ""
        return (
            f"{self.type}_s{self.sparsity}{window}_L{self.length}_{self.layout}_"
            f"{shape}_{self.epilogue}"
        )

    @property
    def pattern(self):
        """As encodings spell it, such as 16:32."""
        kept, window = map(int, SPARSITIES[self.sparsity].split(":"))
        assert kept * self.window % window == 0
        return f"{kept * self.window // window}:{self.window}"

    @property
    def encoding(self):
        """The parameters of the encoding, outputs in panels of `length`."""
        if self.outer:
            return f"[4:{self.outer}, block = [1, {self.length}]], [{self.pattern}]"
        return f"{self.pattern}, block = [1, {self.length}]"

    def text(self, schedule=None):
        """A function, whose product has `schedule` if one is given."""
        _, n, k = self.shape
        x, y = LAYOUTS[self.layout]
        maps = ", ".join(
            f"affine_map<(m, n, k) -> ({dims[0]}, {dims[1]})>" for dims in (x, "kn", y)
        )
        given = f" {{nm_sparse.config = {schedule}}}" if schedule else ""
        return EPILOGUES[self.epilogue].format(
            given=given,
            encoding=self.encoding,
            type=self.type,
            k=k,
            n=n,
            x=f"?x{k}" if x == "mk" else f"{k}x?",
            y=f"?x{n}" if y == "mn" else f"{n}x?",
            maps=maps,
            token_dim=x.index("m"),
            bias_dim="j" if y == "mn" else "i",
            cast=f"%c = arith.truncf %g : f32 to {self.type}"
            if self.type != "f32"
            else "%c = arith.addf %g, %zero : f32",
        )

    def write(self, folder):
        """The file's name."""
        path = folder / f"{self.name}.mlir"
        path.write_text(self.text())
        return path


def parse(name):
    """The layer that has this name, or None. Names of epilogues and layouts that
    are no longer made stay readable."""
    match = NAME.match(name)
    if not match:
        return None
    parts = match.groupdict()
    shape = tuple(int(size) for size in parts["shape"].split("x"))
    numbers = {"length": int(parts["length"]), "window": int(parts["window"] or 32)}
    numbers["outer"] = int(parts["outer"] or 0)
    return Layer(**{**parts, **numbers, "shape": shape})

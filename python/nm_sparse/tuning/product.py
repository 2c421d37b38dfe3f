# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A product as a program has it, as a program of its own, which can be measured.

A problem of a database says how a product reads and writes; any program whose product
does the same has the same kernels to choose from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterator, Optional, Tuple, Union

from ..encoding import Encoding
from ..layers.layer_text import widen
from ..layers.specs import LinearSpec

# Types of activations and weights in databases that products of f32 sums have.
FLOATS = {"f16": 2, "bf16": 2, "f32": 4}
# Where x and y are, as they are and turned.
_READ = ("(m, n, k) -> (m, k)", "(m, n, k) -> (k, m)")
_WRITTEN = ("(m, n) -> (m, n)", "(m, n) -> (n, m)")


@dataclass(frozen=True)
class ProductSpec:
    """`y = x W + addend` of any number of tokens.

    encoding:    text of the encoding of the weight, [outputs, inputs] if its dimension
                 is 1, else [inputs, outputs].
    dtype:       element type of x and W: f16, bf16 or f32. Sums are f32.
    result:      element type of y.
    addend:      element type of an array of y's shape that is added; None: there is
                 none.
    x_turned:    whether x is [inputs, tokens], not [tokens, inputs].
    y_turned:    whether y and addend are [outputs, tokens].

    The program's function @product takes x, W, the addend if there is one, and the
    array that y is written to.
    """

    encoding: str
    outputs: int
    inputs: int
    dtype: str
    result: str
    addend: Optional[str] = None
    x_turned: bool = False
    y_turned: bool = False

    @property
    def has_outputs_first(self) -> bool:
        """Whether the weight is [outputs, inputs]."""
        return Encoding.parse(self.encoding).dim == 1

    @property
    def shape(self) -> Tuple[int, int]:
        """Of the weight."""
        sizes = self.outputs, self.inputs
        return sizes if self.has_outputs_first else sizes[::-1]

    def mlir(self) -> str:
        """The program."""
        n, k, t = self.outputs, self.inputs, self.dtype
        rows, columns = self.shape
        wide = f"tensor<?x{n}xf32>"
        x = f"tensor<{k}x?x{t}>" if self.x_turned else f"tensor<?x{k}x{t}>"
        weight = f"tensor<{rows}x{columns}x{t}, #weight>"
        read, write = _READ[self.x_turned], _WRITTEN[self.y_turned]
        order = "(n, k)" if self.has_outputs_first else "(k, n)"
        maps = [_WRITTEN[False]]
        arguments = [("%x", x), ("%w", weight)]
        inputs, body, value = [("%sums", wide)], [], "%i0"
        if self.addend is not None:
            own = self._result(self.addend)
            arguments.append(("%addend", own))
            inputs.append(("%addend", own))
            maps.append(write)
            lines, wider = widen("%wide", "%i1", self.addend)
            body += [*lines, f"%sum = arith.addf %i0, {wider} : f32"]
            value = "%sum"
        if self.result != "f32":
            body.append(f"%short = arith.truncf {value} : f32 to {self.result}")
            value = "%short"
        out = self._result(self.result)
        arguments.append(("%out", out))
        kinds = ["f32", *([self.addend] if self.addend else []), self.result]
        taken = ", ".join(f"%i{at}: {kind}" for at, kind in enumerate(kinds))
        text = [
            f"#weight = {self.encoding}",
            f"func.func @product({', '.join(f'{v}: {kind}' for v, kind in arguments)})",
            f"    -> {out} {{",
            "  %zero = arith.constant 0.0 : f32",
            f"  %axis = arith.constant {int(self.x_turned)} : index",
            f"  %m = tensor.dim %x, %axis : {x}",
            f"  %empty = tensor.empty(%m) : {wide}",
            f"  %init = linalg.fill ins(%zero : f32) outs(%empty : {wide}) -> {wide}",
            "  %sums = linalg.matmul indexing_maps = [",
            f"      affine_map<{read}>, affine_map<(m, n, k) -> {order}>,",
            "      affine_map<(m, n, k) -> (m, n)>]",
            f"    ins(%x, %w : {x}, {weight}) outs(%init : {wide}) -> {wide}",
            "  %y = linalg.generic {indexing_maps = ["
            + ", ".join(f"affine_map<{one}>" for one in [*maps, write])
            + '], iterator_types = ["parallel", "parallel"]}',
            f"    ins({', '.join(v for v, _ in inputs)} : "
            f"{', '.join(kind for _, kind in inputs)}) outs(%out : {out}) {{",
            f"  ^bb0({taken}):",
            *(f"    {line}" for line in body),
            f"    linalg.yield {value} : {self.result}",
            f"  }} -> {out}",
            f"  return %y : {out}",
            "}",
        ]
        return "\n".join(text) + "\n"

    def _result(self, kind: str) -> str:
        n = self.outputs
        return f"tensor<{n}x?x{kind}>" if self.y_turned else f"tensor<?x{n}x{kind}>"


# Programs that are measured.
Spec = Union[LinearSpec, ProductSpec]


def why_not(problem: Dict[str, Any]) -> str:
    """Why no `ProductSpec` has this problem of a database; "" where one may have it."""
    if problem["type"] not in FLOATS:
        return f"its type is {problem['type']}: legal is {', '.join(FLOATS)}"
    if problem["patches"]:
        return "it is a convolution: legal are products of matrices"
    if problem["batch"] != 1:
        return f"it is a batch of {problem['batch']} products: legal is one"
    encoding = Encoding.parse(problem["encoding"])
    if encoding.is_free:
        return "its encoding is free, and times depend on what is kept: legal is n:m"
    if encoding.dim not in (0, 1):
        return f"its encoding has dim {encoding.dim}: legal is that of a matrix"
    for what, legal in (("written", (2, 4)), ("read", (0, 2, 4))):
        if problem[f"{what}_bytes"] not in legal:
            return (
                f"{problem[f'{what}_bytes']} bytes are {what} for each element of its "
                f"result: legal are {', '.join(map(str, legal))}"
            )
    return ""


def specs_of(problem: Dict[str, Any]) -> Iterator[Spec]:
    """Programs that may have this problem, of which `why_not` says nothing."""
    dtype, written = problem["type"], problem["written_bytes"]
    short = dtype if FLOATS[dtype] == 2 else "f16"
    kinds: Dict[int, Optional[str]] = {0: None, 2: short, 4: "f32"}
    own = problem["encoding"], problem["outputs"], problem["inputs"], dtype
    addend = kinds[problem["read_bytes"]]
    is_plain = addend is None and written == FLOATS[dtype]
    if is_plain and Encoding.parse(own[0]).dim == 1:
        yield LinearSpec(*own)
    # A program that reads x the other way round may transpose it first, so that its
    # product reads it as another one does: the compiler says which.
    for x_turned, y_turned in ((0, 0), (1, 0), (0, 1), (1, 1)):
        yield ProductSpec(
            *own, str(kinds[written]), addend, bool(x_turned), bool(y_turned)
        )

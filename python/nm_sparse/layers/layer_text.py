# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pieces of MLIR text of which programs of linear layers are made.

Their functions have %x, token-major, %m tokens where these are any number, and a
constant %zero. A value is a pair of its name and its type.
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from ..encoding import Encoding, EncodingError

DTYPES = ("f16", "bf16", "f32")  # of x, weights and results; sums are f32
# Maps of a product x W^T, and of the elementwise operations behind it.
MAPS = """#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>
"""
Typed = Tuple[str, str]


def check_sizes(dtype: str, **sizes: int) -> None:
    """Raises EncodingError for a type that programs of layers do not have, or a size
    below 1."""
    if dtype not in DTYPES:
        raise EncodingError(f"dtype is {dtype!r}: legal is {', '.join(DTYPES)}")
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise EncodingError(f"{name} is {size!r}: legal is an integer from 1 on")


def attribute(text: str) -> str:
    """The encoding of a weight [outputs, inputs]. Raises EncodingError for others."""
    encoding = Encoding.parse(text)
    if encoding.dim != 1:
        raise EncodingError(
            f"encoding {encoding.mlir()} has dim {encoding.dim}: legal is 1, the "
            "contraction of a weight [outputs, inputs]"
        )
    return encoding.mlir()


def begin(x: str, tokens: Optional[int]) -> List[str]:
    """The first lines of a function whose %x has the type `x`."""
    lines = ["%zero = arith.constant 0.0 : f32"]
    if tokens is None:
        lines.append("%first = arith.constant 0 : index")
        lines.append(f"%m = tensor.dim %x, %first : {x}")
    return lines


def empty(name: str, kind: str) -> str:
    """A tensor without contents."""
    return f"%{name} = tensor.empty({'%m' if '?' in kind else ''}) : {kind}"


def zeros(name: str, kind: str) -> List[str]:
    """%NAME, of zeros in f32."""
    return [
        empty(f"{name}_empty", kind),
        f"%{name} = linalg.fill ins(%zero : f32) outs(%{name}_empty : {kind}) "
        f"-> {kind}",
    ]


def product(name: str, x: Typed, w: Typed, init: Typed) -> str:
    """%NAME = init + x W^T."""
    return (
        f"%{name} = linalg.matmul indexing_maps = [#mk, #nk, #mn] "
        f"ins({x[0]}, {w[0]} : {x[1]}, {w[1]}) outs({init[0]} : {init[1]}) "
        f"-> {init[1]}"
    )


def elementwise(
    name: str, inputs: Sequence[Typed], out: Typed, body: Sequence[str], value: str
) -> List[str]:
    """%NAME over rows and columns.

    inputs:  rows x columns, or of columns; their elements are %i0, %i1 and so on.
    body:    the lines that make `value`, an f32, which is rounded to the type of `out`.
    """
    maps = ["#id" if "x" in _sizes(kind) else "#column" for _, kind in inputs]
    arguments = [f"%i{at}: {element(kind)}" for at, (_, kind) in enumerate(inputs)]
    arguments.append(f"%o: {element(out[1])}")
    return [
        f"%{name} = linalg.generic {{indexing_maps = [{', '.join([*maps, '#id'])}], "
        'iterator_types = ["parallel", "parallel"]}',
        f"    ins({', '.join(v for v, _ in inputs)} : "
        f"{', '.join(kind for _, kind in inputs)}) outs({out[0]} : {out[1]}) {{",
        f"^bb0({', '.join(arguments)}):",
        *(f"  {line}" for line in [*body, *_give(value, element(out[1]))]),
        f"}} -> {out[1]}",
    ]


def widen(name: str, value: str, dtype: str) -> Tuple[List[str], str]:
    """Lines that make an f32 of an element, and its name."""
    if dtype == "f32":
        return [], value
    return [f"{name} = arith.extf {value} : {dtype} to f32"], name


def _give(value: str, dtype: str) -> List[str]:
    if dtype == "f32":
        return [f"linalg.yield {value} : f32"]
    return [
        f"%short = arith.truncf {value} : f32 to {dtype}",
        f"linalg.yield %short : {dtype}",
    ]


def element(kind: str) -> str:
    """The element type of a dense tensor type."""
    return kind[:-1].rpartition("x")[2]


def _sizes(kind: str) -> str:
    return kind[len("tensor<") : -1].rpartition("x")[0]


def function(
    name: str,
    aliases: Sequence[str],
    arguments: Sequence[Typed],
    lines: Sequence[str],
    results: Sequence[Typed],
) -> str:
    """The program."""
    kinds = ", ".join(kind for _, kind in results)
    given = f"return {', '.join(value for value, _ in results)} : {kinds}"
    body = "\n".join(f"  {line}" for line in [*lines, given])
    return (
        "".join(f"{alias}\n" for alias in aliases)
        + MAPS
        + f"func.func @{name}({', '.join(f'{v}: {kind}' for v, kind in arguments)})\n"
        + f"    -> {kinds if len(results) == 1 else f'({kinds})'} {{\n{body}\n}}\n"
    )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pieces of MLIR text of which programs of linear layers are made.

Their functions have %x, token-major or feature-major, %m tokens where these are any
number, and a constant %zero. A value is a pair of its name and its type.
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from ..encoding import Encoding, EncodingError
from .activation_text import activation_steps

DTYPES = ("f16", "bf16", "f32")  # of x, weights and results; sums are f32
# Types of x and weights that scales multiply, and those of their sums.
SCALED = {"f8E4M3FN": "f32", "i8": "i32"}
# x has a scale for each token, or one.
X_SCALES = ("token", "tensor")
# Maps of a product x W^T, and of the elementwise operations behind it.
MAPS = """#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>
"""
SCALE_MAPS = """#row = affine_map<(m, n) -> (m)>
#one = affine_map<(m, n) -> (0)>
"""
# The maps of a product of a feature-major x.
FEATURE_MAP = "#km = affine_map<(m, n, k) -> (k, m)>\n"
# The features of such an argument may lie at any distance.
_PITCHED = "{bufferization.buffer_layout = strided<[?, 1]>}"
Typed = Tuple[str, str]


def check_types(dtype: str, result: Optional[str], x_scale: str = "token") -> str:
    """The type of results. Raises EncodingError for types that programs of layers do
    not have."""
    floats, narrow = ", ".join(DTYPES), ", ".join(SCALED)
    if result is None and dtype not in DTYPES:
        raise EncodingError(
            f"dtype is {dtype!r}: legal is {floats}; with scales, and a type of the "
            f"result, {narrow}"
        )
    if result is not None and dtype not in SCALED:
        raise EncodingError(
            f"dtype is {dtype!r}, and result {result!r}: legal for that is {narrow}; "
            "results of others have their type"
        )
    if result is not None and result not in DTYPES:
        raise EncodingError(f"result is {result!r}: legal is {floats}")
    if x_scale not in X_SCALES:
        raise EncodingError(f"x_scale is {x_scale!r}: legal is {', '.join(X_SCALES)}")
    return result or dtype


def check_third(down: Optional[str], result: Optional[str]) -> None:
    """Raises EncodingError for the third weight of an MLP behind those of 8 bits."""
    if down is not None and result is not None:
        raise EncodingError(
            f"down is {down!r}, and the first weights have 8 bits: legal is None; "
            "quantize the result, and multiply it by a layer of its own"
        )


def check_sizes(**sizes: int) -> None:
    """Raises EncodingError for a size below 1."""
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


def check_layout(feature_major: bool) -> None:
    """Raises EncodingError unless it says whether x is feature-major."""
    if not isinstance(feature_major, bool):
        raise EncodingError(
            f"feature_major is {feature_major!r}: legal is True or False"
        )


def given_x(
    tokens: str, inputs: int, dtype: str, feature_major: bool = False
) -> Tuple[Typed, Typed]:
    """%x as operations read it, and as an argument of the function.

    tokens:  how types spell their number.
    """
    check_layout(feature_major)
    sizes = f"{inputs}x{tokens}" if feature_major else f"{tokens}x{inputs}"
    x = ("%x", f"tensor<{sizes}x{dtype}>")
    return x, (x[0], f"{x[1]} {_PITCHED}") if feature_major else x


def begin(x: str, tokens: Optional[int], feature_major: bool = False) -> List[str]:
    """The first lines of a function whose %x has the type `x`."""
    kind = accumulator(element(x))
    lines = [f"%zero = arith.constant {'0' if kind == 'i32' else '0.0'} : {kind}"]
    if tokens is None:
        lines.append(f"%first = arith.constant {int(feature_major)} : index")
        lines.append(f"%m = tensor.dim %x, %first : {x}")
    return lines


def accumulator(dtype: str) -> str:
    """The type of the sums of products of `dtype`."""
    return SCALED.get(dtype, "f32")


def empty(name: str, kind: str) -> str:
    """A tensor without contents."""
    return f"%{name} = tensor.empty({'%m' if '?' in kind else ''}) : {kind}"


def zeros(name: str, kind: str) -> List[str]:
    """%NAME, of zeros."""
    return [
        empty(f"{name}_empty", kind),
        f"%{name} = linalg.fill ins(%zero : {element(kind)}) "
        f"outs(%{name}_empty : {kind}) -> {kind}",
    ]


def product(
    name: str, x: Typed, w: Typed, init: Typed, feature_major: bool = False
) -> str:
    """%NAME = init + x W^T."""
    return (
        f"%{name} = linalg.matmul indexing_maps = "
        f"[{'#km' if feature_major else '#mk'}, #nk, #mn] "
        f"ins({x[0]}, {w[0]} : {x[1]}, {w[1]}) outs({init[0]} : {init[1]}) "
        f"-> {init[1]}"
    )


def elementwise(
    name: str,
    inputs: Sequence[Typed],
    out: Typed,
    body: Sequence[str],
    value: str,
    others: Sequence[str] = (),
) -> List[str]:
    """%NAME over rows and columns.

    inputs:  rows x columns, or of columns; their elements are %i0, %i1 and so on.
    body:    the lines that make `value`, an f32, which is rounded to the type of `out`.
    others:  the maps of the last inputs, where these are others.
    """
    maps = ["#id" if "x" in _sizes(kind) else "#column" for _, kind in inputs]
    maps[len(maps) - len(others) :] = others
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


def scale_of_x(tokens: str, x_scale: str) -> Typed:
    """The argument of a function: a scale for each token, or one.

    tokens:  how types spell their number.
    """
    return ("%x_scale", f"tensor<{tokens if x_scale == 'token' else '1'}xf32>")


def finish(
    name: str,
    y: Typed,
    out: Typed,
    bias: Optional[Typed] = None,
    activation: str = "none",
    scales: Sequence[Typed] = (),
) -> List[str]:
    """%NAME = activation(y * scales + bias), in the type of `out`.

    y:       sums, of f32 or i32.
    scales:  of x, as `scale_of_x`, and of outputs; or none.
    """
    body, value, inputs, maps = [], "%i0", [y], []
    if element(y[1]) == "i32":
        body.append("%number = arith.sitofp %i0 : i32 to f32")
        value = "%number"
    if bias is not None:
        inputs.append(bias)
    for at, scale in enumerate(scales):
        body.append(f"%scaled{at} = arith.mulf {value}, %i{len(inputs)} : f32")
        value = f"%scaled{at}"
        inputs.append(scale)
        is_one = scale[1] == "tensor<1xf32>"
        maps.append("#column" if at else "#one" if is_one else "#row")
    if bias is not None:
        lines, addend = widen("%wide", "%i1", element(bias[1]))
        body += [*lines, f"%biased = arith.addf {value}, {addend} : f32"]
        value = "%biased"
    steps, value = activation_steps(activation, value, "%a_")
    return elementwise(name, inputs, out, [*body, *steps], value, maps)


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
    has_scales = any("#row" in line or "#one" in line for line in lines)
    reads_features = any("#km" in line for line in lines)
    given = f"return {', '.join(value for value, _ in results)} : {kinds}"
    body = "\n".join(f"  {line}" for line in [*lines, given])
    return (
        "".join(f"{alias}\n" for alias in aliases)
        + MAPS
        + (FEATURE_MAP if reads_features else "")
        + (SCALE_MAPS if has_scales else "")
        + f"func.func @{name}({', '.join(f'{v}: {kind}' for v, kind in arguments)})\n"
        + f"    -> {kinds if len(results) == 1 else f'({kinds})'} {{\n{body}\n}}\n"
    )

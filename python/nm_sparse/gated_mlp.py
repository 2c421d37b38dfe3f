# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gated half of an MLP as an MLIR program: activation(x Wg^T) * (x Wu^T).

Both products read the same x, so a program for many tokens transposes it once. The
activation is in the kernel of the first product, which rounds it to the type of x; the
kernel of the second one multiplies by it.
"""

from __future__ import annotations

from typing import List, Optional

from .activation_text import activation_steps
from .encoding import Encoding, EncodingError

_DTYPES = ("f16", "bf16", "f32")


def gated_mlp_mlir(
    hidden: int,
    intermediate: int,
    encoding: str,
    dtype: str = "f16",
    activation: str = "silu",
    tokens: Optional[int] = None,
    down: Optional[str] = None,
    name: str = "gated_mlp",
) -> str:
    """Text of a program with one function.

    hidden:        inputs of both weights.
    intermediate:  outputs of both, and the features of the result.
    encoding:      text of the encoding of both weights, [intermediate, hidden], which
                   contracts dimension 1.
    dtype:         element type of x, weights and result: f16, bf16 or f32; sums are
                   f32.
    activation:    of the first product: none, relu, silu, gelu or gelu_tanh.
    tokens:        rows of x; None for any number.
    down:          encoding of a third weight, [hidden, intermediate]: the function then
                   is the whole MLP, and the result [tokens, hidden].
    name:          of the function. It takes x [tokens, hidden], the gate's weight, the
                   one multiplied by it, the third one if there is one, and the array
                   that the result is written to.

    Raises EncodingError when an encoding is none of such a weight, a size is below 1,
    or type or activation is another one.
    """
    for what, size in (("hidden", hidden), ("intermediate", intermediate)):
        if size < 1:
            raise EncodingError(f"{what} is {size}: legal is at least 1")
    if dtype not in _DTYPES:
        raise EncodingError(f"dtype is {dtype!r}: legal is {', '.join(_DTYPES)}")
    rows = "?" if tokens is None else str(tokens)
    x, h = f"tensor<{rows}x{hidden}x{dtype}>", f"tensor<{rows}x{intermediate}x{dtype}>"
    wide = f"tensor<{rows}x{intermediate}xf32>"
    w = f"tensor<{intermediate}x{hidden}x{dtype}, #weight>"
    result, size = (x if down else h), ("(%m)" if tokens is None else "()")
    inside = "%inside" if down else "%out"
    lines = [
        "%zero = arith.constant 0.0 : f32",
        *_count(x, tokens),
        *_init("wide", size, wide),
        *_product("gate", "%x", "%gate_weight", (x, w), ("%wide_init", wide)),
        *_product("up", "%x", "%up_weight", (x, w), ("%wide_init", wide)),
        f"%half = tensor.empty{size} : {h}",
        *([f"%inside = tensor.empty{size} : {h}"] if down else []),
        *_activated(activation, (wide, h)),
        *_multiplied(inside, (wide, h)),
    ]
    aliases = [f"#weight = {_attribute(encoding)}"]
    arguments = [f"%x: {x}", f"%gate_weight: {w}", f"%up_weight: {w}"]
    last = "%gated"
    if down:
        narrow = f"tensor<{rows}x{hidden}xf32>"
        d = f"tensor<{hidden}x{intermediate}x{dtype}, #down>"
        aliases.append(f"#down = {_attribute(down)}")
        arguments.append(f"%down_weight: {d}")
        lines += _init("narrow", size, narrow)
        operands = ("%gated", "%down_weight", (h, d), ("%narrow_init", narrow))
        lines += _product("down", *operands)
        lines += _rounded(narrow, x)
        last = "%result"
    arguments.append(f"%out: {result}")
    body = "\n".join(f"  {line}" for line in [*lines, f"return {last} : {result}"])
    return (
        "\n".join(aliases)
        + "\n#mk = affine_map<(m, n, k) -> (m, k)>"
        + "\n#nk = affine_map<(m, n, k) -> (n, k)>"
        + "\n#mn = affine_map<(m, n, k) -> (m, n)>"
        + "\n#id = affine_map<(m, n) -> (m, n)>"
        + f"\nfunc.func @{name}({', '.join(arguments)})\n    -> {result} "
        + f"{{\n{body}\n}}\n"
    )


def _attribute(text: str) -> str:
    encoding = Encoding.parse(text)
    if encoding.dim != 1:
        raise EncodingError(
            f"encoding {encoding.mlir()} has dim {encoding.dim}: legal is 1, the "
            "contraction of a weight [outputs, inputs]"
        )
    return encoding.mlir()


def _count(x: str, tokens: Optional[int]) -> List[str]:
    if tokens is not None:
        return []
    return ["%first = arith.constant 0 : index", f"%m = tensor.dim %x, %first : {x}"]


def _init(name: str, size: str, kind: str) -> List[str]:
    return [
        f"%{name}_empty = tensor.empty{size} : {kind}",
        f"%{name}_init = linalg.fill ins(%zero : f32) outs(%{name}_empty : {kind}) "
        f"-> {kind}",
    ]


def _product(name: str, x: str, w: str, kinds: tuple, init: tuple) -> List[str]:
    return [
        f"%{name} = linalg.matmul indexing_maps = [#mk, #nk, #mn] "
        f"ins({x}, {w} : {', '.join(kinds)}) outs({init[0]} : {init[1]}) -> {init[1]}"
    ]


def _elementwise(name: str, inputs: list, out: tuple, body: List[str]) -> List[str]:
    """A linalg.generic over rows and columns; inputs and out are (value, type)."""
    maps = ", ".join(["#id"] * (len(inputs) + 1))
    kinds = [_element(kind) for _, kind in inputs]
    arguments = [f"%i{at}: {kind}" for at, kind in enumerate(kinds)]
    arguments.append(f"%o: {_element(out[1])}")
    return [
        f"%{name} = linalg.generic {{indexing_maps = [{maps}], "
        'iterator_types = ["parallel", "parallel"]}',
        f"    ins({', '.join(v for v, _ in inputs)} : "
        f"{', '.join(kind for _, kind in inputs)}) outs({out[0]} : {out[1]}) {{",
        f"^bb0({', '.join(arguments)}):",
        *(f"  {line}" for line in body),
        f"}} -> {out[1]}",
    ]


def _element(kind: str) -> str:
    return kind[:-1].rpartition("x")[2]


def _round(value: str, dtype: str) -> List[str]:
    if dtype == "f32":
        return [f"linalg.yield {value} : f32"]
    return [
        f"%short = arith.truncf {value} : f32 to {dtype}",
        f"linalg.yield %short : {dtype}",
    ]


def _activated(activation: str, kinds: tuple) -> List[str]:
    wide, h = kinds
    steps, value = activation_steps(activation, "%i0", "%a_")
    body = [*steps, *_round(value, _element(h))]
    return _elementwise("activated", [("%gate", wide)], ("%half", h), body)


def _multiplied(out: str, kinds: tuple) -> List[str]:
    wide, h = kinds
    body, value = [], "%i0"
    if _element(h) != "f32":
        body, value = [f"%long = arith.extf %i0 : {_element(h)} to f32"], "%long"
    body += [f"%p = arith.mulf {value}, %i1 : f32", *_round("%p", _element(h))]
    inputs = [("%activated", h), ("%up", wide)]
    return _elementwise("gated", inputs, (out, h), body)


def _rounded(narrow: str, x: str) -> List[str]:
    body = _round("%i0", _element(x))
    return _elementwise("result", [("%down", narrow)], ("%out", x), body)

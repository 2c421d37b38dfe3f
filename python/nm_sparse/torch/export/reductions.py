# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums, maxima, softmax and normalizations: reductions in f32 or f64."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch.fx import Node

from .context import Context, arguments, lowers
from .shapes import product
from .text import Region, Size, Value, is_float

aten = torch.ops.aten


def wide_type(dtype: str) -> str:
    return "f64" if dtype == "f64" else "f32"


def _dims(dims: Any, rank: int) -> List[int]:
    """All where none are named."""
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(rank))
    named = dims if isinstance(dims, (list, tuple)) else [dims]
    return sorted(dim % rank for dim in named) if rank else []


def reduce(
    context: Context,
    value: Value,
    dims: Sequence[int],
    operation: str,
    square_about: Optional[Value] = None,
) -> Value:
    """The sum (arith.addf) or maximum (arith.maximumf) along `dims`, which are gone.

    square_about:  with the shape of the result: sum the squares of the differences.
    """
    kind = wide_type(value.dtype)
    start = 0.0 if operation == "arith.addf" else -math.inf
    kept = [at for at in range(len(value.shape)) if at not in dims]
    operands = [(value, range(len(value.shape)))]
    if square_about is not None:
        operands.append((square_about, kept))

    def body(region: Region, names: List[str]) -> str:
        one = region.cast(names[0], value.dtype, kind)
        if square_about is not None:
            difference = region.op("arith.subf", [one, names[1]], kind)
            one = region.op("arith.mulf", [difference, difference], kind)
        return region.op(operation, [names[-1], one], kind)

    if not dims:
        return _map(context, [(value, kept)], value.shape, kind, body)
    return context.writer.generic(operands, value.shape, kind, body, kept, start)


def _map(context: Context, operands: Any, shape: Any, dtype: str, body: Any) -> Value:
    """A generic without reductions whose body may read what a sum begins with."""

    def start(region: Region, names: List[str]) -> str:
        return body(region, [*names[:-1], region.number(0.0, dtype)])

    return context.writer.generic(operands, shape, dtype, start)


def count(context: Context, size: Size, kind: str) -> str:
    """A number of elements as a float."""
    if isinstance(size, int):
        return context.writer.constant(size, kind)
    region = Region(context.writer)
    wide = region.cast(context.writer.size(size), "index", "i64")
    name = region.cast(wide, "i64", kind)
    context.writer.lines += region.lines
    return name


def scale(context: Context, value: Value, below: str) -> Value:
    """Divided by a number of its type."""
    return context.writer.generic(
        [(value, range(len(value.shape)))],
        value.shape,
        value.dtype,
        lambda region, names: region.op("arith.divf", [names[0], below], value.dtype),
    )


def finish(context: Context, value: Value, at: Optional[int] = None) -> Value:
    """A value in the type and shape that the node has."""
    dtype = context.dtype(at=at)
    if value.dtype != dtype:
        source = value
        value = context.writer.generic(
            [(source, range(len(source.shape)))],
            source.shape,
            dtype,
            lambda region, names: region.cast(names[0], source.dtype, dtype),
        )
    return context.shapes.reshape(value, context.shape(at=at))


@lowers(aten.sum.dim_IntList, aten.sum.default, aten.mean.dim, aten.mean.default)
def _sum(context: Context, node: Node) -> Value:
    value = context.value(node.args[0])
    if not is_float(value.dtype) or not is_float(context.dtype()):
        raise context.error(f"is of {value.dtype}", "floats")
    has_dims = node.target in (aten.sum.dim_IntList, aten.mean.dim)
    named = arguments(node, "dim")[0] if has_dims else None
    dims = _dims(named, len(value.shape))
    total = reduce(context, value, dims, "arith.addf")
    if node.target in (aten.mean.dim, aten.mean.default):
        size = product([value.shape[dim] for dim in dims])
        total = scale(context, total, count(context, size, total.dtype))
    return finish(context, total)


@lowers(aten.amax.default)
def _maximum(context: Context, node: Node) -> Value:
    value = context.value(node.args[0])
    if not is_float(value.dtype):
        raise context.error(f"is of {value.dtype}", "floats")
    dims = _dims(arguments(node, "dim")[0], len(value.shape))
    return finish(context, reduce(context, value, dims, "arith.maximumf"))


@lowers(aten.var.correction)
def _variance(context: Context, node: Node) -> Value:
    value = context.value(node.args[0])
    named, correction = arguments(node, "dim", "correction")
    dims = _dims(named, len(value.shape))
    _, squares, size = _moments(context, value, dims)
    below = size - (1 if correction is None else int(correction))
    return finish(
        context, scale(context, squares, count(context, below, squares.dtype))
    )


def _moments(
    context: Context, value: Value, dims: Sequence[int]
) -> Tuple[Value, Value, Size]:
    """Mean, sum of squared differences from it, and number of elements."""
    size = product([value.shape[dim] for dim in dims])
    total = reduce(context, value, dims, "arith.addf")
    mean = scale(context, total, count(context, size, total.dtype))
    return mean, reduce(context, value, dims, "arith.addf", mean), size


@lowers(aten._softmax.default, aten.softmax.int, aten._safe_softmax.default)
def _softmax(context: Context, node: Node) -> Value:
    value = context.value(node.args[0])
    rank = len(value.shape)
    dim = arguments(node, "dim")[0] % rank
    kind, loops = wide_type(value.dtype), list(range(rank))
    kept = [at for at in loops if at != dim]
    largest = reduce(context, value, [dim], "arith.maximumf")
    is_safe = node.target is aten._safe_softmax.default

    def power(region: Region, names: List[str]) -> str:
        wide = region.cast(names[0], value.dtype, kind)
        least = region.number(-math.inf, kind)
        above = names[1]
        if is_safe:  # a row of nothing but -inf is one of zeros
            empty = region.op("arith.cmpf oeq,", [above, least], kind)
            zero = region.number(0.0, kind)
            above = region.op("arith.select", [empty, zero, above], kind)
        return region.op(
            "math.exp", [region.op("arith.subf", [wide, above], kind)], kind
        )

    operands = [(value, loops), (largest, kept)]
    powers = context.writer.generic(operands, value.shape, kind, power)
    total = reduce(context, powers, [dim], "arith.addf")
    dtype = context.dtype()

    def divide(region: Region, names: List[str]) -> str:
        below = names[1]
        if is_safe:
            zero = region.number(0.0, kind)
            empty = region.op("arith.cmpf oeq,", [below, zero], kind)
            one = region.number(1.0, kind)
            below = region.op("arith.select", [empty, one, below], kind)
        return region.cast(
            region.op("arith.divf", [names[0], below], kind), kind, dtype
        )

    operands = [(powers, loops), (total, kept)]
    return context.writer.generic(operands, value.shape, dtype, divide)


@lowers(aten.native_layer_norm.default, aten.layer_norm.default)
def _layer_norm(context: Context, node: Node) -> Any:
    value = context.value(node.args[0])
    normalized, weight, bias, eps = arguments(
        node, "normalized_shape", "weight", "bias", "eps"
    )
    is_native = node.target is aten.native_layer_norm.default
    at = 0 if is_native else None
    rank, kind = len(value.shape), wide_type(value.dtype)
    dims = list(range(rank - len(normalized), rank))
    kept, dtype = list(range(dims[0])), context.dtype(at=at)
    mean, squares, size = _moments(context, value, dims)
    below = count(context, size, kind)

    def invert(region: Region, names: List[str]) -> str:
        variance = region.op("arith.divf", [names[0], below], kind)
        sum_ = region.op("arith.addf", [variance, region.number(eps, kind)], kind)
        return region.op("math.rsqrt", [sum_], kind)

    rows = range(len(squares.shape))
    inverse = context.writer.generic([(squares, rows)], squares.shape, kind, invert)
    operands = [(value, list(range(rank))), (mean, kept), (inverse, kept)]
    scales = [
        (context.value(one), operation)
        for one, operation in ((weight, "arith.mulf"), (bias, "arith.addf"))
        if one is not None
    ]
    operands += [(one, dims) for one, _ in scales]

    def body(region: Region, names: List[str]) -> str:
        wide = region.cast(names[0], value.dtype, kind)
        result = region.op("arith.subf", [wide, names[1]], kind)
        result = region.op("arith.mulf", [result, names[2]], kind)
        for name, (one, operation) in zip(names[3:], scales):
            factor = region.cast(name, one.dtype, kind)
            result = region.op(operation, [result, factor], kind)
        return region.cast(result, kind, dtype)

    result = context.writer.generic(operands, value.shape, dtype, body)
    if not is_native:
        return result
    return result, finish(context, mean, 1), finish(context, inverse, 2)


@lowers(aten.cumsum.default)
def _running_sum(context: Context, node: Node) -> Value:
    """Each sum anew: n * n / 2 additions, for the few positions of a sequence."""
    value, dtype = context.value(node.args[0]), context.dtype()
    rank = len(value.shape)
    dim = arguments(node, "dim")[0] % rank
    kind = wide_type(dtype) if is_float(dtype) else "i64"
    source = [at if at != dim else rank for at in range(rank)]

    def body(region: Region, names: List[str]) -> str:
        behind = region.op(
            "arith.cmpi ugt,", [region.index(rank), region.index(dim)], "index"
        )
        one = region.cast(names[0], value.dtype, kind)
        one = region.op("arith.select", [behind, region.number(0, kind), one], kind)
        add = "arith.addf" if is_float(kind) else "arith.addi"
        return region.op(add, [names[-1], one], kind)

    loops = [*value.shape, value.shape[dim]]
    total = context.writer.generic(
        [(value, source)], loops, kind, body, list(range(rank)), 0
    )
    return finish(context, total)


@lowers(aten.any.dim, aten.any.dims, aten.any.default)
def _any(context: Context, node: Node) -> Value:
    value = context.value(node.args[0])
    rank = len(value.shape)
    named = None if node.target is aten.any.default else arguments(node, "dim")[0]
    dims = _dims(named, rank)
    kept = [at for at in range(rank) if at not in dims]

    def body(region: Region, names: List[str]) -> str:
        one = region.cast(names[0], value.dtype, "i1")
        return region.op("arith.ori", [names[-1], one], "i1")

    found = context.writer.generic(
        [(value, range(rank))], value.shape, "i1", body, kept, 0
    )
    return finish(context, found)

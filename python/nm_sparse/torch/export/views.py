# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of torch that move elements, or make tensors of none."""

from __future__ import annotations

from typing import Any, List, Tuple

import torch
from torch.fx import Node

from .context import Context, arguments, lowers
from .shapes import as_size
from .text import Region, Value, is_float

aten = torch.ops.aten


@lowers(
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.unsqueeze.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
)
def _reshape(context: Context, node: Node) -> Value:
    return context.shapes.reshape(context.value(node.args[0]), context.shape())


@lowers(aten.permute.default)
def _permute(context: Context, node: Node) -> Value:
    value = context.value(node.args[0])
    rank = len(value.shape)
    dims = [dim % rank for dim in node.args[1]]  # type: ignore[union-attr]
    return context.shapes.permute(value, dims)


@lowers(aten.transpose.int, aten.t.default)
def _transpose(context: Context, node: Node) -> Value:
    value = context.value(node.args[0])
    rank = len(value.shape)
    dims = list(range(rank))
    first, second = node.args[1:] if len(node.args) == 3 else (0, max(rank - 1, 0))
    a, b = int(first) % rank, int(second) % rank  # type: ignore[arg-type]
    dims[a], dims[b] = dims[b], dims[a]
    return context.shapes.permute(value, dims)


@lowers(aten.expand.default)
def _expand(context: Context, node: Node) -> Value:
    return context.shapes.expand(context.value(node.args[0]), context.shape())


@lowers(aten.slice.Tensor)
def _slice(context: Context, node: Node) -> Value:
    value = context.value(node.args[0])
    dim, start, step = arguments(node, "dim", "start", "step")
    dim %= len(value.shape)
    begin = context.size(start) if start is not None else 0
    if isinstance(begin, int) and begin < 0:
        begin = as_size(value.shape[dim] + begin)
    length = context.shape()[dim]
    if isinstance(begin, int) and isinstance(value.shape[dim], int):
        begin = min(begin, value.shape[dim])
    return context.shapes.slice(value, dim, begin, length, step)


@lowers(aten.select.int)
def _select(context: Context, node: Node) -> Value:
    value = context.value(node.args[0])
    dim, place = arguments(node, "dim", "index")
    dim %= len(value.shape)
    begin = context.size(place)
    if isinstance(begin, int) and begin < 0:
        begin = as_size(value.shape[dim] + begin)
    cut = context.shapes.slice(value, dim, begin, 1)
    return context.shapes.drop(cut, [dim])


@lowers(aten.split_with_sizes.default)
def _split(context: Context, node: Node) -> Tuple[Value, ...]:
    value = context.value(node.args[0])
    sizes, dim = arguments(node, "split_sizes", "dim")
    dim %= len(value.shape)
    parts, begin = [], 0
    for size in map(context.size, sizes):
        parts.append(context.shapes.slice(value, dim, begin, size))
        begin = as_size(begin + size)
    return tuple(parts)


@lowers(aten.cat.default)
def _concatenate(context: Context, node: Node) -> Value:
    tensors, dim = arguments(node, "tensors", "dim")
    values = [context.value(one) for one in tensors]
    rank = len(context.shape())
    # An empty tensor of one dimension joins any others, and adds nothing.
    values = [one for one in values if len(one.shape) == rank]
    if any(one.dtype != context.dtype() for one in values):
        raise context.error("joins tensors of several types", "one type; use .to()")
    return context.shapes.concatenate(values, dim % rank)


@lowers(
    aten.full.default,
    aten.full_like.default,
    aten.scalar_tensor.default,
    aten.zeros.default,
    aten.ones.default,
    aten.zeros_like.default,
    aten.ones_like.default,
)
def _fill(context: Context, node: Node) -> Value:
    name = node.target._schema.name  # type: ignore[union-attr]
    number: Any = 0 if "zeros" in name else 1
    if "full" in name:
        (number,) = arguments(node, "fill_value")
    elif "scalar" in name:
        number = node.args[0]
    number = context.operand(number)
    if not isinstance(number, (int, float)):
        raise context.error(f"is filled with {number}", "a constant")
    dtype = context.dtype()
    if not is_float(dtype):
        number = int(number)
    return context.writer.filled(context.shape(), dtype, number)


@lowers(aten.arange.start_step, aten.arange.default, aten.arange.start)
def _count(context: Context, node: Node) -> Value:
    start, step = (0, 1)
    if node.target is not aten.arange.default:
        start = node.args[0]  # type: ignore[assignment]
    if node.target is aten.arange.start_step and len(node.args) > 2:
        step = node.args[2]  # type: ignore[assignment]
    first, dtype = context.operand(start), context.dtype()
    kind = "f64" if is_float(dtype) else "i64"

    def body(region: Region, names: List[str]) -> str:
        place = region.cast(region.cast(region.index(0), "index", "i64"), "i64", kind)
        letter = "f" if kind == "f64" else "i"
        factor = region.number(step, kind)
        result = region.op(f"arith.mul{letter}", [place, factor], kind)
        if isinstance(first, str):
            begin = region.cast(region.cast(first, "index", "i64"), "i64", kind)
        else:
            begin = region.number(first, kind)
        result = region.op(f"arith.add{letter}", [result, begin], kind)
        return region.cast(result, kind, dtype)

    return context.writer.generic([], context.shape(), dtype, body)


@lowers(aten.embedding.default)
def _embed(context: Context, node: Node) -> Value:
    table, places = context.value(node.args[0]), context.value(node.args[1])
    return gather(context, table, 0, [places])


@lowers(aten.index_select.default)
def _index_select(context: Context, node: Node) -> Value:
    value, places = context.value(node.args[0]), context.value(node.args[2])
    return gather(context, value, node.args[1] % len(value.shape), [places])


@lowers(aten.index.Tensor)
def _index(context: Context, node: Node) -> Value:
    value = context.value(node.args[0])
    given = list(node.args[1])  # type: ignore[arg-type]
    used = [at for at, one in enumerate(given) if one is not None]
    if used != list(range(used[0], used[0] + len(used))):
        raise context.error("is indexed in dimensions apart", "neighbouring ones")
    places = [context.value(given[at]) for at in used]
    if any(one.dtype == "i1" for one in places):
        raise context.error("has a mask as index", "positions, or torch.where")
    return gather(context, value, used[0], places)


def gather(context: Context, value: Value, dim: int, places: List[Value]) -> Value:
    """The elements of `value` at positions along the dimensions from `dim` on.

    places:  positions, which broadcast with one another; negative ones count from the
             end. Their dimensions take the place of those that they are of.
    """
    shape, dtype = context.shape(), context.dtype()
    rank = len(shape) - (len(value.shape) - len(places))  # of the places, broadcast
    middle = shape[dim : dim + rank]
    operands = []
    for one in places:
        narrow, dims = context.shapes.align(one, middle)
        operands.append((narrow, [dim + at for at in dims]))

    def body(region: Region, names: List[str]) -> str:
        indices = [region.index(at) for at in range(dim)]
        for at, (name, one) in enumerate(zip(names, places)):
            place = region.cast(name, one.dtype, "index")
            zero = region.number(0, "index")
            below = region.op("arith.cmpi slt,", [place, zero], "index")
            size = region.writer.size(value.shape[dim + at])
            later = region.op("arith.addi", [place, size], "index")
            indices.append(region.op("arith.select", [below, later, place], "index"))
        indices += [region.index(at) for at in range(dim + rank, len(shape))]
        element = region.writer.fresh()
        region.lines.append(
            f"{element} = tensor.extract {value.name}[{', '.join(indices)}] : "
            f"{value.type}"
        )
        return region.cast(element, value.dtype, dtype)

    return context.writer.generic(operands, shape, dtype, body)

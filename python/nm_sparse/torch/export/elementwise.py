# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operations: one linalg.generic each, computed in f32 or wider.

torch rounds the result of every operation to the type of its tensors; so does this.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Union

import torch
from torch.fx import Node

from ...layers.activation_text import activation_steps
from .context import Context, Number, arguments, lowers
from .text import Region, Value, is_float

aten = torch.ops.aten
# Makes the result of the operands, all of one type.
Compute = Callable[[Region, List[str], str], str]


def compute_type(dtypes: Sequence[str]) -> str:
    """The type that operands of these types are computed in."""
    if any(map(is_float, dtypes)):
        return "f64" if "f64" in dtypes else "f32"
    for wide in ("i64", "i32", "i16", "i8"):
        if wide in dtypes:
            return wide
    return "i1"


def elementwise(
    context: Context,
    operands: Sequence[Union[Value, Number]],
    compute: Compute,
    kind: str = "",
) -> Value:
    """The current node as a generic over its shape.

    kind:  the type to compute in; by default that of the operands and the result.
    """
    shape, dtype = context.shape(), context.dtype()
    tensors = [one for one in operands if isinstance(one, Value)]
    if not kind:
        kind = compute_type([one.dtype for one in tensors] + [dtype])
    aligned = [context.shapes.align(one, shape) for one in tensors]

    def body(region: Region, names: List[str]) -> str:
        given, values = iter(names), []
        for one in operands:
            if isinstance(one, Value):
                values.append(region.cast(next(given), one.dtype, kind))
            elif isinstance(one, str):
                wide = region.cast(one, "index", "i64")
                values.append(region.cast(wide, "i64", kind))
            else:
                values.append(region.number(one, kind))
        result = compute(region, values, kind)
        source = "i1" if compute in _PREDICATES else kind
        return region.cast(result, source, dtype)

    return context.writer.generic(aligned, shape, dtype, body)


_PREDICATES: set = set()


def operation(float_op: str, integer_op: str = "") -> Compute:
    """An operation of one type, by its name for floats and for integers."""

    def compute(region: Region, values: List[str], kind: str) -> str:
        name = float_op if is_float(kind) else integer_op
        return region.op(name, values, kind)

    compute.integers = bool(integer_op)  # type: ignore[attr-defined]
    return compute


def comparison(predicate: str) -> Compute:
    def compute(region: Region, values: List[str], kind: str) -> str:
        if is_float(kind):
            ordered = "une" if predicate == "ne" else f"o{predicate}"
            return region.op(f"arith.cmpf {ordered},", values, kind)
        signed = predicate if predicate in ("eq", "ne") else f"s{predicate}"
        return region.op(f"arith.cmpi {signed},", values, kind)

    _PREDICATES.add(compute)
    return compute


def activation(name: str) -> Compute:
    def compute(region: Region, values: List[str], kind: str) -> str:
        prefix = f"{region.writer.fresh()}_".replace("%", "%a")
        lines, result = activation_steps(name, values[0], prefix, kind)
        region.lines += lines
        return result

    return compute


def _not(region: Region, values: List[str], kind: str) -> str:
    return region.op("arith.xori", [values[0], region.number(True, "i1")], "i1")


def _reciprocal(region: Region, values: List[str], kind: str) -> str:
    return region.op("arith.divf", [region.number(1, kind), values[0]], kind)


def _negate(region: Region, values: List[str], kind: str) -> str:
    if is_float(kind):
        return region.op("arith.negf", values, kind)
    return region.op("arith.subi", [region.number(0, kind), values[0]], kind)


_UNARY: Dict[Any, Compute] = {
    aten.relu.default: activation("relu"),
    aten.silu.default: activation("silu"),
    aten.sigmoid.default: activation("sigmoid"),
    aten.tanh.default: operation("math.tanh"),
    aten.exp.default: operation("math.exp"),
    aten.log.default: operation("math.log"),
    aten.sqrt.default: operation("math.sqrt"),
    aten.rsqrt.default: operation("math.rsqrt"),
    aten.sin.default: operation("math.sin"),
    aten.cos.default: operation("math.cos"),
    aten.erf.default: operation("math.erf"),
    aten.abs.default: operation("math.absf", "math.absi"),
    aten.neg.default: _negate,
    aten.reciprocal.default: _reciprocal,
}
_BINARY: Dict[Any, Compute] = {
    aten.mul.Tensor: operation("arith.mulf", "arith.muli"),
    aten.mul.Scalar: operation("arith.mulf", "arith.muli"),
    aten.maximum.default: operation("arith.maximumf", "arith.maxsi"),
    aten.minimum.default: operation("arith.minimumf", "arith.minsi"),
}
_COMPARISONS: Dict[str, Compute] = {
    name: comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
_LOGIC: Dict[Any, Compute] = {
    aten.logical_not.default: _not,
    aten.logical_and.default: operation("", "arith.andi"),
    aten.logical_or.default: operation("", "arith.ori"),
}
_BITWISE: Dict[Any, Compute] = {
    aten.bitwise_not.default: _not,
    aten.bitwise_and.Tensor: operation("", "arith.andi"),
    aten.bitwise_or.Tensor: operation("", "arith.ori"),
}


def _operands(context: Context, node: Node, count: int) -> List[Any]:
    return [context.operand(one) for one in node.args[:count]]


@lowers(*_UNARY)
def _unary(context: Context, node: Node) -> Value:
    return elementwise(context, _operands(context, node, 1), _UNARY[node.target])


@lowers(*_BINARY)
def _binary(context: Context, node: Node) -> Value:
    compute = _BINARY[node.target]
    if context.dtype() == "i1" and node.target in (aten.mul.Tensor, aten.mul.Scalar):
        compute = operation("", "arith.andi")
    return elementwise(context, _operands(context, node, 2), compute)


@lowers(
    *(getattr(getattr(aten, n), k) for n in _COMPARISONS for k in ("Tensor", "Scalar"))
)
def _compare(context: Context, node: Node) -> Value:
    operands = _operands(context, node, 2)
    dtypes = [one.dtype for one in operands if isinstance(one, Value)]
    # A comparison with a number that is no integer is one of floats.
    dtypes += ["f32"] if any(isinstance(one, float) for one in operands) else []
    name = node.target._schema.name.partition("::")[2]
    kind = compute_type(dtypes)
    kind = "i8" if kind == "i1" else kind
    return elementwise(context, operands, _COMPARISONS[name], kind)


@lowers(*_LOGIC)
def _logic(context: Context, node: Node) -> Value:
    count = 1 if node.target is aten.logical_not.default else 2
    operands = _operands(context, node, count)
    return elementwise(context, operands, _LOGIC[node.target], "i1")


@lowers(*_BITWISE)
def _bitwise(context: Context, node: Node) -> Value:
    if context.dtype() != "i1":
        raise context.error(f"is of {context.dtype()}", "tensors of bool")
    count = 1 if node.target is aten.bitwise_not.default else 2
    return elementwise(context, _operands(context, node, count), _BITWISE[node.target])


@lowers(aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar)
def _add(context: Context, node: Node) -> Value:
    adds = node.target in (aten.add.Tensor, aten.add.Scalar)
    (alpha,) = arguments(node, "alpha")
    kinds = ("arith.addf", "arith.addi") if adds else ("arith.subf", "arith.subi")
    base = operation(*kinds)
    if context.dtype() == "i1":
        base = operation("", "arith.ori")

    def compute(region: Region, values: List[str], kind: str) -> str:
        first, second = values
        if alpha != 1:
            times = "arith.mulf" if is_float(kind) else "arith.muli"
            second = region.op(times, [second, region.number(alpha, kind)], kind)
        return base(region, [first, second], kind)

    return elementwise(context, _operands(context, node, 2), compute)


@lowers(aten.rsub.Scalar, aten.rsub.Tensor)
def _subtract_from(context: Context, node: Node) -> Value:
    (alpha,) = arguments(node, "alpha")
    if alpha != 1:
        raise context.error(f"has alpha {alpha}", "alpha 1")
    compute = operation("arith.subf", "arith.subi")
    return elementwise(context, _operands(context, node, 2)[::-1], compute)


@lowers(aten.div.Tensor, aten.div.Scalar)
def _divide(context: Context, node: Node) -> Value:
    return elementwise(context, _operands(context, node, 2), operation("arith.divf"))


@lowers(aten.gelu.default)
def _gelu(context: Context, node: Node) -> Value:
    (kind,) = arguments(node, "approximate")
    name = "gelu_tanh" if kind == "tanh" else "gelu"
    return elementwise(context, _operands(context, node, 1), activation(name))


@lowers(aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar)
def _power(context: Context, node: Node) -> Value:
    base, exponent = _operands(context, node, 2)
    if not is_float(context.dtype()):
        raise context.error(f"is of {context.dtype()}", "a power of floats")

    def compute(region: Region, values: List[str], kind: str) -> str:
        if isinstance(exponent, (int, float)) and exponent in (1, 2, 3):
            result = values[0]
            for _ in range(int(exponent) - 1):
                result = region.op("arith.mulf", [result, values[0]], kind)
            return result
        if exponent == 0.5:
            return region.op("math.sqrt", values[:1], kind)
        if exponent == -0.5:
            return region.op("math.rsqrt", values[:1], kind)
        return region.op("math.powf", values, kind)

    return elementwise(context, [base, exponent], compute)


@lowers(aten.clamp.default, aten.hardtanh.default)
def _clamp(context: Context, node: Node) -> Value:
    is_hard = node.target is aten.hardtanh.default
    names = ("min_val", "max_val") if is_hard else ("min", "max")
    low, high = arguments(node, *names)
    floor = operation("arith.maximumf", "arith.maxsi")
    ceiling = operation("arith.minimumf", "arith.minsi")

    def compute(region: Region, values: List[str], kind: str) -> str:
        result = values[0]
        if low is not None:
            result = floor(region, [result, region.number(low, kind)], kind)
        if high is not None:
            result = ceiling(region, [result, region.number(high, kind)], kind)
        return result

    return elementwise(context, _operands(context, node, 1), compute)


@lowers(aten.where.self)
def _where(context: Context, node: Node) -> Value:
    condition, first, second = _operands(context, node, 3)
    shape, dtype = context.shape(), context.dtype()
    values = [condition, first, second]
    tensors = [context.shapes.align(one, shape) for one in values]

    def body(region: Region, names: List[str]) -> str:
        chosen = [
            region.cast(name, one.dtype, dtype)
            for name, one in zip(names[1:], values[1:])
        ]
        return region.op("arith.select", [names[0], *chosen], dtype)

    return context.writer.generic(tensors, shape, dtype, body)


@lowers(aten._to_copy.default, aten.to.dtype)
def _convert(context: Context, node: Node) -> Value:
    value = context.value(node.args[0])
    if value.dtype == context.dtype():
        return value
    kind = value.dtype

    def same(region: Region, values: List[str], kind: str) -> str:
        return values[0]

    return elementwise(context, [value], same, kind)


@lowers(
    aten.clone.default,
    aten.alias.default,
    aten.detach.default,
    aten.contiguous.default,
    aten.lift_fresh_copy.default,
    aten.dropout.default,
)
def _identity(context: Context, node: Node) -> Value:
    if node.target is aten.dropout.default and node.args[2]:
        raise context.error("is for training", "a model in eval()")
    return context.value(node.args[0])

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products, dense ones and those with packed weights, and what follows them.

Sums are f32 (f64 of f64). Bias and activation are one linalg.generic behind the
product, which rounds to the type of the result, so that a kernel has room for all.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch.fx import Node

from ...layers.activation_text import activation_steps
from ..layers.mlp_ops import mlp_specs
from ..weight.shared_spec import parse_shared
from ..weight.spec import LinearSpec
from .context import Context, arguments, lowers
from .reductions import wide_type
from .shapes import product
from .text import Region, Value, is_float

aten = torch.ops.aten
_MAPS = ("affine_map<(m, n, k) -> (m, k)>", "affine_map<(m, n, k) -> (n, k)>")
_RESULT = "affine_map<(m, n, k) -> (m, n)>"


def packed_operands(node: Node) -> List[Tuple[Tuple[Any, ...], LinearSpec]]:
    """The components of each packed weight that a node multiplies by, and its spec;
    none for a node of another operator."""
    name = getattr(getattr(node.target, "_schema", None), "name", "")
    if name == "nm_sparse::linear":
        weight, spec = arguments(node, "weight", "spec")
        return [(tuple(weight), LinearSpec.parse(spec))]
    if name == "nm_sparse::gated_mlp":
        gate, up, spec = arguments(node, "gate", "up", "spec")
        return [(tuple(one), LinearSpec.parse(spec)) for one in (gate, up)]
    if name == "nm_sparse::mlp":
        *weights, spec = arguments(node, "gate", "up", "down", "spec")
        return [(tuple(w), one) for w, one in zip(weights, mlp_specs(spec))]
    if name == "nm_sparse::linear_shared":
        weights, counts, spec = arguments(node, "weights", "counts", "spec")
        found, begin = [], 0
        for count, one in zip(counts, parse_shared(spec)):
            found.append((tuple(weights[begin : begin + count]), one))
            begin += count
        return found
    return []


def matrix_product(
    context: Context, x: Value, w: Value, is_turned: bool = False
) -> Value:
    """x w, or x w^T, of two matrices [M, K] and [K, N] or [N, K], in f32 or f64."""
    writer, kind = context.writer, wide_type(x.dtype)
    shape = [x.shape[0], w.shape[0 if is_turned else 1]]
    out = writer.filled(shape, kind, 0.0)
    maps = ""
    if is_turned:
        names = [writer.alias(text, "map") for text in (*_MAPS, _RESULT)]
        maps = f" indexing_maps = [{', '.join(names)}]"
    text = (
        f"linalg.matmul{maps} ins({x.name}, {w.name} : {x.type}, {w.type}) "
        f"outs({out.name} : {out.type}) -> {out.type}"
    )
    return writer.op(text, shape, kind)


def epilogue(
    context: Context,
    y: Value,
    dtype: str,
    bias: Optional[Value] = None,
    activation: str = "none",
    factor: Optional[Value] = None,
) -> Value:
    """factor * activation(y + bias) in another type. y is [M, N], bias [N] or what
    broadcasts to y, factor [M, N]."""
    kind = y.dtype
    if dtype == kind and bias is None and activation == "none" and factor is None:
        return y
    others = [one for one in (bias, factor) if one is not None]
    aligned = [context.shapes.align(one, y.shape) for one in others]

    def body(region: Region, names: List[str]) -> str:
        given = iter(zip(names[1:], others))
        result = names[0]
        if bias is not None:
            name, value = next(given)
            wide = region.cast(name, value.dtype, kind)
            result = region.op("arith.addf", [result, wide], kind)
        prefix = f"%a{region.writer.fresh()[1:]}_"
        lines, result = activation_steps(activation, result, prefix, kind)
        region.lines += lines
        if factor is not None:
            name, value = next(given)
            wide = region.cast(name, value.dtype, kind)
            result = region.op("arith.mulf", [wide, result], kind)
        return region.cast(result, kind, dtype)

    return context.writer.generic([(y, (0, 1)), *aligned], y.shape, dtype, body)


def _rows(context: Context, x: Value) -> Value:
    """[..., K] as [M, K]."""
    lead = product(x.shape[:-1])
    return context.shapes.reshape(x, [lead, x.shape[-1]])


def _check(context: Context, *values: Value) -> None:
    if not all(is_float(one.dtype) for one in values):
        found = ", ".join(one.dtype for one in values)
        raise context.error(f"multiplies {found}", "floats")
    if len({one.dtype for one in values}) > 1:
        found = " by ".join(one.dtype for one in values)
        raise context.error(f"multiplies {found}", "one type; convert one with .to()")


@lowers(aten.linear.default)
def _linear(context: Context, node: Node) -> Value:
    x, w = context.value(node.args[0]), context.value(node.args[1])
    given = arguments(node, "bias")[0]
    bias = None if given is None else context.value(given)
    _check(context, x, w)
    y = matrix_product(context, _rows(context, x), w, True)
    y = epilogue(context, y, context.dtype(), bias)
    return context.shapes.reshape(y, context.shape())


@lowers(aten.mm.default)
def _mm(context: Context, node: Node) -> Value:
    x, w = context.value(node.args[0]), context.value(node.args[1])
    _check(context, x, w)
    return epilogue(context, matrix_product(context, x, w), context.dtype())


@lowers(aten.addmm.default)
def _addmm(context: Context, node: Node) -> Value:
    bias, x, w = (context.value(one) for one in node.args[:3])
    alpha, beta = arguments(node, "alpha", "beta")
    if (alpha, beta) != (1, 1):
        raise context.error(f"has alpha {alpha} and beta {beta}", "1 and 1")
    _check(context, x, w)
    return epilogue(context, matrix_product(context, x, w), context.dtype(), bias)


@lowers(aten.bmm.default)
def _bmm(context: Context, node: Node) -> Value:
    x, w = context.value(node.args[0]), context.value(node.args[1])
    _check(context, x, w)
    writer, kind, dtype = context.writer, wide_type(x.dtype), context.dtype()
    shape = [x.shape[0], x.shape[1], w.shape[2]]
    out = writer.filled(shape, kind, 0.0)
    text = (
        f"linalg.batch_matmul ins({x.name}, {w.name} : {x.type}, {w.type}) "
        f"outs({out.name} : {out.type}) -> {out.type}"
    )
    y = writer.op(text, shape, kind)
    if kind == dtype:
        return y
    return writer.generic(
        [(y, range(3))], shape, dtype, lambda r, names: r.cast(names[0], kind, dtype)
    )


class _Packed:
    """A node that multiplies by packed weights."""

    def __init__(self, context: Context, node: Node) -> None:
        self.context = context
        x = context.value(node.args[0])
        self.weights = []
        for components, spec in packed_operands(node):
            if spec.dtype != x.dtype:
                raise context.error(
                    f"multiplies {x.dtype} by {spec.dtype}",
                    "a weight of the type of x",
                )
            self.weights.append((context.values[components[0]], spec))
        self.rows = _rows(context, x)
        self.lead = list(x.shape[:-1])
        self.dtype = x.dtype

    def product(
        self,
        at: int,
        bias: Any = None,
        activation: Optional[str] = None,
        factor: Optional[Value] = None,
        rows: Optional[Value] = None,
    ) -> Value:
        """[M, N] of weight number `at`, and what follows it; by default that of its
        spec.

        rows:  [M, K] that is multiplied; by default what the node is applied to.
        """
        weight, spec = self.weights[at]
        y = matrix_product(self.context, rows or self.rows, weight, True)
        added = None if bias is None else self.context.value(bias)
        kind = spec.activation if activation is None else activation
        return epilogue(self.context, y, self.dtype, added, kind, factor)

    def restore(self, y: Value) -> Value:
        """[M, N] as [..., N]."""
        return self.context.shapes.reshape(y, [*self.lead, y.shape[-1]])


def lower_packed(context: Context, node: Node) -> Any:
    """The lowering of the operators of this package."""
    name = node.target._schema.name  # type: ignore[union-attr]
    packed = _Packed(context, node)
    if name == "nm_sparse::linear":
        return packed.restore(packed.product(0, arguments(node, "bias")[0]))
    if name in ("nm_sparse::gated_mlp", "nm_sparse::mlp"):
        gate = packed.product(0)
        inside = packed.product(1, activation="none", factor=gate)
        if name == "nm_sparse::gated_mlp":
            return packed.restore(inside)
        return packed.restore(packed.product(2, rows=inside))
    biases: Sequence[Any] = arguments(node, "biases")[0]
    results = [packed.product(at, bias) for at, bias in enumerate(biases)]
    return tuple(map(packed.restore, results))

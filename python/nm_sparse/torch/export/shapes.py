# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshapes, transpositions, slices and concatenations of tensors, as MLIR."""

from __future__ import annotations

import math
from typing import Dict, List, Optional, Sequence, Tuple

import sympy

from .text import Size, Value, Writer, tensor_type

Groups = List[List[int]]


def same(a: Size, b: Size) -> bool:
    return a is b or a == b or sympy.expand(sympy.sympify(a) - b) == 0


def product(shape: Sequence[Size]) -> Size:
    return as_size(math.prod(shape, start=sympy.Integer(1)))


def as_size(size: Size) -> Size:
    """A number where the expression is one."""
    if isinstance(size, int):
        return size
    size = sympy.expand(size)
    return int(size) if size.is_Integer else size


def _is_larger(a: Size, b: Size) -> bool:
    """Whether a has factors that b has not."""
    if isinstance(a, int) and isinstance(b, int):
        return a > b
    return sympy.denom(sympy.cancel(sympy.sympify(a) / b)) == 1


def group(source: Sequence[Size], target: Sequence[Size]) -> Optional[Tuple]:
    """Neighbouring dimensions of both shapes that hold the same elements: a list of
    groups for each shape, or None where sizes do not say which."""
    left: Groups = []
    right: Groups = []
    i = j = 0
    while i < len(source) and j < len(target):
        first, second = [i], [j]
        a, b = source[i], target[j]
        i, j = i + 1, j + 1
        while not same(a, b):
            if _is_larger(b, a) and i < len(source):
                a, i = as_size(a * sympy.sympify(source[i])), i + 1
                first.append(i - 1)
            elif _is_larger(a, b) and j < len(target):
                b, j = as_size(b * sympy.sympify(target[j])), j + 1
                second.append(j - 1)
            else:
                return None
        left.append(first)
        right.append(second)
    # What is left over has size 1.
    for rest, shape, groups in ((i, source, left), (j, target, right)):
        if any(not same(size, 1) for size in shape[rest:]):
            return None
        if rest < len(shape):
            if not groups:
                return None
            groups[-1].extend(range(rest, len(shape)))
    return left, right


class Shapes:
    """Operations that move elements and compute none."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._sources: Dict[str, Value] = {}  # what a reshaped value was before

    def reshape(self, value: Value, shape: Sequence[Size]) -> Value:
        """The same elements in another shape. Going back costs nothing."""
        shape = tuple(as_size(size) for size in shape)
        seen: Optional[Value] = value
        while seen is not None:
            if _equal(seen.shape, shape):
                return seen
            seen = self._sources.get(seen.name)
        everything = [list(range(len(value.shape)))], [list(range(len(shape)))]
        left, right = group(value.shape, shape) or everything
        if not value.shape or not shape:
            left, right = everything
        middle = [product([value.shape[dim] for dim in dims]) for dims in left]
        if not value.shape or not shape:
            middle = []
        result = value
        if len(middle) < len(value.shape):
            result = self._collapse(value, middle, left if middle else [])
        if len(middle) < len(shape):
            result = self._expand(result, shape, right if middle else [])
        self._sources[result.name] = value
        return result

    def _collapse(self, value: Value, shape: Sequence[Size], groups: Groups) -> Value:
        kind = tensor_type(shape, value.dtype)
        text = f"tensor.collapse_shape {value.name} {groups} : {value.type} into {kind}"
        return self.writer.op(text, shape, value.dtype)

    def _expand(self, value: Value, shape: Sequence[Size], groups: Groups) -> Value:
        sizes = [
            str(size) if isinstance(size, int) else self.writer.size(size)
            for size in shape
        ]
        kind = tensor_type(shape, value.dtype)
        text = (
            f"tensor.expand_shape {value.name} {groups} output_shape "
            f"[{', '.join(sizes)}] : {value.type} into {kind}"
        )
        return self.writer.op(text, shape, value.dtype)

    def permute(self, value: Value, dims: Sequence[int]) -> Value:
        if list(dims) == list(range(len(dims))):
            return value
        shape = [value.shape[dim] for dim in dims]
        out = self.writer.empty(shape, value.dtype)
        text = (
            f"linalg.transpose ins({value.name} : {value.type}) outs({out.name} : "
            f"{out.type}) permutation = {list(dims)}"
        )
        return self.writer.op(text, shape, value.dtype)

    def drop(self, value: Value, dims: Sequence[int]) -> Value:
        """Without these dimensions, which have size 1."""
        kept = [s for at, s in enumerate(value.shape) if at not in dims]
        return self.reshape(value, kept) if dims else value

    def align(self, value: Value, shape: Sequence[Size]) -> Tuple[Value, List[int]]:
        """The value without dimensions of size 1 that broadcast to `shape`, and which
        dimension of `shape` each that is left is."""
        lead = len(shape) - len(value.shape)
        stretched = [
            at
            for at, size in enumerate(value.shape)
            if same(size, 1) and not same(shape[lead + at], 1)
        ]
        kept = [lead + at for at in range(len(value.shape)) if at not in stretched]
        return self.drop(value, stretched), kept

    def expand(self, value: Value, shape: Sequence[Size]) -> Value:
        """Broadcast to `shape`, whose last dimensions are those of the value."""
        shape = [as_size(size) for size in shape]
        if _equal(value.shape, shape):
            return value
        if same(product(value.shape), product(shape)):
            return self.reshape(value, shape)
        narrow, dims = self.align(value, shape)
        operands = [(narrow, dims)]
        return self.writer.generic(operands, shape, value.dtype, lambda r, v: v[0])

    def slice(
        self, value: Value, dim: int, start: Size, length: Size, step: int = 1
    ) -> Value:
        rank = len(value.shape)
        shape = list(value.shape)
        shape[dim] = as_size(length)
        if _equal(shape, value.shape) and step == 1:
            return value
        offsets = [self._number(start if at == dim else 0) for at in range(rank)]
        strides = [str(step if at == dim else 1) for at in range(rank)]
        sizes = [self._number(size) for size in shape]
        kind = tensor_type(shape, value.dtype)
        text = (
            f"tensor.extract_slice {value.name}[{', '.join(offsets)}] "
            f"[{', '.join(sizes)}] [{', '.join(strides)}] : {value.type} to {kind}"
        )
        return self.writer.op(text, shape, value.dtype)

    def _number(self, size: Size) -> str:
        size = as_size(size)
        return str(size) if isinstance(size, int) else self.writer.size(size)

    def concatenate(self, values: Sequence[Value], dim: int) -> Value:
        first = values[0]
        rank, shape = len(first.shape), list(first.shape)
        total = sum((v.shape[dim] for v in values), start=sympy.Integer(0))
        shape[dim] = as_size(total)
        result, offset = self.writer.empty(shape, first.dtype), sympy.Integer(0)
        for value in values:
            offsets = [self._number(offset if at == dim else 0) for at in range(rank)]
            sizes = [self._number(size) for size in value.shape]
            text = (
                f"tensor.insert_slice {value.name} into {result.name}"
                f"[{', '.join(offsets)}] [{', '.join(sizes)}] "
                f"[{', '.join(['1'] * rank)}] : {value.type} into {result.type}"
            )
            result = self.writer.op(text, shape, first.dtype)
            offset = offset + value.shape[dim]
        return result


def _equal(a: Sequence[Size], b: Sequence[Size]) -> bool:
    return len(a) == len(b) and all(map(same, a, b))

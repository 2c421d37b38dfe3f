# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the operations of a graph are written with, and the table of those known."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import sympy
import torch
from torch.fx import Node

from .shapes import Shapes, as_size
from .text import ExportError, Size, Value, Writer

# Element types of tensors, as MLIR spells them.
TYPES: Dict[torch.dtype, str] = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "i8",
    torch.bool: "i1",
}
# A number of Python, or the name of an SSA value of type index.
Number = Union[float, int, bool, str]


class Context:
    """The program so far.

    values:  what each node has become: a Value, or a tuple of them.
    node:    the one that is being written.
    """

    def __init__(self) -> None:
        self.writer = Writer()
        self.shapes = Shapes(self.writer)
        self.values: Dict[Node, Any] = {}
        self.node: Optional[Node] = None

    def value(self, argument: Any) -> Value:
        """The tensor that a node has become."""
        if isinstance(argument, Node) and isinstance(self.values.get(argument), Value):
            return self.values[argument]
        raise self.error(f"has the operand {argument}", "a tensor")

    def operand(self, argument: Any) -> Union[Value, Number]:
        """A tensor, or a number: a constant or a size."""
        if isinstance(argument, Node) and is_size(argument):
            return self.size_name(argument)
        if isinstance(argument, (int, float, bool)):
            return argument
        return self.value(argument)

    def size(self, argument: Any) -> Size:
        """A size: a number, or the expression of a node that computes one."""
        if isinstance(argument, Node) and is_size(argument):
            argument = argument.meta["val"]
        if isinstance(argument, torch.SymInt):
            return as_size(argument.node.expr)
        if isinstance(argument, int):
            return argument
        raise self.error(f"has the size {argument}", "a number or a size of an input")

    def size_name(self, argument: Any) -> str:
        return self.writer.size(self.size(argument))

    def shape(
        self, node: Optional[Node] = None, at: Optional[int] = None
    ) -> List[Size]:
        """The sizes of what a node computes, by default the one being written; `at` is
        the place in its results."""
        return [self.size(size) for size in self._tensor(node, at).shape]

    def dtype(self, node: Optional[Node] = None, at: Optional[int] = None) -> str:
        return type_name(self._tensor(node, at).dtype, self)

    def _tensor(self, node: Optional[Node], at: Optional[int]) -> torch.Tensor:
        node = node or self.node
        assert node is not None
        meta = node.meta["val"]
        return meta if at is None else meta[at]

    def dim(self, dim: int, rank: int) -> int:
        return dim % rank if rank else 0

    def error(self, found: str, legal: str) -> ExportError:
        """Names the node, its operation and where the model calls it."""
        assert self.node is not None
        return ExportError(
            f"node {self.node.name!r}, {self.node.target}{_place(self.node)}, {found}: "
            f"legal is {legal}"
        )


def type_name(dtype: torch.dtype, context: Context) -> str:
    if dtype not in TYPES:
        raise context.error(f"is {dtype}", ", ".join(map(str, TYPES)))
    return TYPES[dtype]


def is_size(node: Node) -> bool:
    """Whether a node computes a size, which `Writer.size` makes of its expression."""
    value = node.meta.get("val")
    return isinstance(value, (torch.SymInt, int)) and not isinstance(value, bool)


def _place(node: Node) -> str:
    """In which module and line the model calls a node."""
    modules = list((node.meta.get("nn_module_stack") or {}).values())
    module = f" in module {modules[-1][0]!r}" if modules and modules[-1][0] else ""
    lines = [
        line.strip()
        for line in (node.stack_trace or "").splitlines()
        if line.strip().startswith("File ")
    ]
    return module + (f" at {lines[-1]}" if lines else "")


Lowering = Callable[[Context, Node], Any]
LOWERINGS: Dict[Any, Lowering] = {}


def lowers(*operations: Any) -> Callable[[Lowering], Lowering]:
    """Enters a function into the table, for these operators."""

    def enter(function: Lowering) -> Lowering:
        for operation in operations:
            LOWERINGS[operation] = function
        return function

    return enter


def arguments(node: Node, *names: str) -> Tuple[Any, ...]:
    """Arguments of an operator by name, with the defaults of its schema."""
    schema = node.target._schema.arguments  # type: ignore[union-attr]
    found = {}
    for at, one in enumerate(schema):
        if at < len(node.args):
            found[one.name] = node.args[at]
        elif one.name in node.kwargs:
            found[one.name] = node.kwargs[one.name]
        else:
            found[one.name] = one.default_value if one.has_default_value() else None
    return tuple(found[name] for name in names)


def broadcast(context: Context, sizes: Sequence[Sequence[Size]]) -> List[Size]:
    """The shape that tensors of these shapes broadcast to."""
    rank = max(map(len, sizes), default=0)
    result: List[Size] = [1] * rank
    for shape in sizes:
        for at, size in enumerate(shape, rank - len(shape)):
            if sympy.sympify(size) != 1:
                result[at] = size
    return result

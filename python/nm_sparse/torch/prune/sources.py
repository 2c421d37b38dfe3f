# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the sources of modules read of the weights of their layers."""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from torch import nn

Path = Tuple[str, ...]

# Questions about a tensor that a packed weight answers, too.
HARMLESS = ("dtype", "device", "shape", "size", "dim", "ndim", "numel", "layout")
HARMLESS += ("is_cuda", "is_cpu", "is_meta", "requires_grad", "itemsize", "nbytes")
HARMLESS += ("element_size", "is_floating_point", "is_complex", "get_device")
HARMLESS += ("is_leaf", "grad", "_version", "is_inference", "data_ptr")
_QUESTIONS = ("isinstance", "hasattr", "getattr", "type", "id")
_UNKNOWN = object()
_COMPARISONS = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


class Sources:
    """The forward methods of modules, and what these call of the same object; each is
    parsed once."""

    def __init__(self) -> None:
        self._parsed: Dict[Tuple[type, str], Tuple[ast.AST, str]] = {}
        self._of_class: Dict[type, Set[Path]] = {}

    def weights_read(self, module: nn.Module) -> Set[Path]:
        """The paths `a.b` for which the sources have `self.a.b.weight`, but not to ask
        for its type or the like. Branches whose conditions settings of the module rule
        out do not count. Modules of torch read nothing."""
        kind = type(module)
        if _is_of_torch(kind):
            return set()
        if kind not in self._of_class:
            self._of_class[kind] = self._read(kind, None)
        return self._read(kind, module) if self._of_class[kind] else set()

    def _read(self, kind: type, module: Optional[nn.Module]) -> Set[Path]:
        found: Set[Path] = set()
        names, seen = ["forward"], set()
        while names:
            name = names.pop()
            if name in seen:
                continue
            seen.add(name)
            tree, own = self._source(kind, name)
            for node, parent in _live(tree, tree, own, module):
                path = _path(node, own)
                if len(path) > 1 and path[-1] == "weight" and _is_read(node, parent):
                    found.add(path[:-1])
                names += path[:1]
        return found

    def _source(self, kind: type, name: str) -> Tuple[ast.AST, str]:
        if (kind, name) not in self._parsed:
            self._parsed[kind, name] = _parse(getattr(kind, name, None))
        return self._parsed[kind, name]


def _is_of_torch(one: Any) -> bool:
    return str(one.__module__).partition(".")[0] == "torch"


def _parse(member: Any) -> Tuple[ast.AST, str]:
    """The source of a method or property, and what it calls its object; nothing where
    there is none."""
    function = inspect.unwrap(getattr(member, "fget", None) or member)
    tree: ast.AST = ast.Module([], [])
    if inspect.isfunction(function) and not _is_of_torch(function):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, SyntaxError, TypeError):
            pass
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.args.args:
            return node, node.args.args[0].arg
    return tree, ""


def _live(
    node: ast.AST, parent: ast.AST, own: str, module: Optional[nn.Module]
) -> Iterator[Tuple[ast.AST, ast.AST]]:
    """Nodes that may run for a module, or for any where that is None, and what each is
    in."""
    yield node, parent
    dead: List[Any] = []
    if isinstance(node, (ast.If, ast.IfExp)) and module is not None:
        truth = _value(node.test, own, module)
        if truth is not _UNKNOWN:
            other = node.orelse if truth else node.body
            dead = other if isinstance(other, list) else [other]
    for child in ast.iter_child_nodes(node):
        if child not in dead:
            yield from _live(child, node, own, module)


def _path(node: ast.AST, own: str) -> Path:
    """The attributes of the object that lead to `node`; none where others do."""
    path: Path = ()
    while isinstance(node, ast.Attribute):
        path, node = (node.attr, *path), node.value
    return path if isinstance(node, ast.Name) and node.id == own else ()


def _is_read(node: ast.AST, parent: ast.AST) -> bool:
    """Whether the source reads elements of a weight."""
    if not isinstance(getattr(node, "ctx", None), ast.Load):
        return False
    if isinstance(parent, ast.Attribute):
        return parent.attr not in HARMLESS
    if isinstance(parent, ast.Compare):
        return not all(isinstance(op, (ast.Is, ast.IsNot)) for op in parent.ops)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        return parent.func.id not in _QUESTIONS
    return True


def _value(node: ast.AST, own: str, module: nn.Module) -> Any:
    """What a condition is that asks for settings of a module alone, such as
    `self.config.pretraining_tp > 1`."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Attribute):
        return _setting(module, _path(node, own))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        value = _value(node.operand, own, module)
        return value if value is _UNKNOWN else not value
    if isinstance(node, ast.BoolOp):
        values = [_value(one, own, module) for one in node.values]
        decides = isinstance(node.op, ast.Or)  # one that is true, or else false
        if any(one is not _UNKNOWN and bool(one) == decides for one in values):
            return decides
        return _UNKNOWN if any(one is _UNKNOWN for one in values) else not decides
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        compare = _COMPARISONS.get(type(node.ops[0]))
        sides = [_value(one, own, module) for one in (node.left, *node.comparators)]
        if compare is not None and not any(one is _UNKNOWN for one in sides):
            try:
                return compare(*sides)
            except TypeError:
                pass
    return _UNKNOWN


def _setting(module: Any, path: Path) -> Any:
    """A number, text or None that attributes lead to; training comes and goes."""
    found = module
    for name in path:
        if name == "training":
            return _UNKNOWN
        found = getattr(found, name, _UNKNOWN)
    is_plain = found is None or isinstance(found, (bool, int, float, str))
    return found if path and is_plain else _UNKNOWN

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Signatures and docstrings of Python modules that are parsed, not imported.

So no module needs to be there that those import.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Iterator, List, Optional, Tuple, Union

WIDTH = 88  # of a signature on one line
Definition = Union[ast.FunctionDef, ast.ClassDef, ast.Assign]


@functools.lru_cache(maxsize=None)
def module(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def file_of(folder: Path, name: str) -> Path:
    """The file of a module, given as in `from name import ...`."""
    levels = len(name) - len(name.lstrip("."))
    for _ in range(levels - 1):
        folder = folder.parent
    path = folder.joinpath(*name.strip(".").split(".")) if name.strip(".") else folder
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def find(path: Path, name: str) -> Definition:
    """Where `name`, which the module at `path` offers, is defined."""
    for node in module(path).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return node
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node
    for node in ast.walk(module(path)):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        for one in node.names:
            source = "." * node.level + (node.module or one.name)
            # Without a module, what is imported is a module that may have the name.
            if node.module and (one.asname or one.name) == name:
                return find(file_of(path.parent, source), one.name)
            if not node.module and one.name != name and "__getattr__" in offers(path):
                return find(file_of(path.parent, source), name)
    raise SystemExit(f"python_signatures.py: {path.name} has no {name}")


def offers(path: Path) -> List[str]:
    """The functions that a module defines itself."""
    return [n.name for n in module(path).body if isinstance(n, ast.FunctionDef)]


def public_names(path: Path) -> List[str]:
    """`__all__`."""
    for node in module(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise SystemExit(f"python_signatures.py: {path} has no __all__")


def call(name: str, arguments: List[str], result: str) -> str:
    """A signature, an argument a line where it is long."""
    line = f"{name}({', '.join(arguments)}){result}"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {one},\n" for one in arguments) + f"){result}"


def parameters(function: ast.FunctionDef, is_method: bool) -> List[str]:
    """Its parameters with annotations and defaults, without self or cls."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    missing = len(plain) - len(given.defaults)
    defaults = [None] * missing + list(given.defaults)
    found = list(zip(plain, defaults))[1 if is_method else 0 :]
    texts = [_parameter(one, default) for one, default in found]
    if given.vararg:
        texts.append("*" + _parameter(given.vararg, None))
    elif given.kwonlyargs:
        texts.append("*")
    texts += [_parameter(*pair) for pair in zip(given.kwonlyargs, given.kw_defaults)]
    return texts + (["**" + _parameter(given.kwarg, None)] if given.kwarg else [])


def _parameter(argument: ast.arg, default: Optional[ast.expr]) -> str:
    kind = type_text(argument.annotation)
    text = argument.arg + (f": {kind}" if kind else "")
    between = " = " if kind else "="
    return text if default is None else text + between + ast.unparse(default)


def type_text(kind: Optional[ast.expr]) -> str:
    """An annotation, without quotes; empty where there is none."""
    if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
        return kind.value
    return ast.unparse(kind) if kind else ""


def signature(
    function: ast.FunctionDef, name: str = "", is_method: bool = False
) -> str:
    """`name(arguments) -> result`."""
    text = f" -> {type_text(function.returns)}" if function.returns else ""
    return call(name or function.name, parameters(function, is_method), text)


def decorators(node: Union[ast.FunctionDef, ast.ClassDef]) -> List[str]:
    return [ast.unparse(one).partition("(")[0] for one in node.decorator_list]


def methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Functions of a class, without overloads."""
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and "overload" not in decorators(one):
            yield one


def constructor(node: ast.ClassDef) -> str:
    """How an instance is made: by `__init__`, or by the fields of a dataclass;
    of another class its bases."""
    for one in methods(node):
        if one.name == "__init__":
            return call(f"class {node.name}", parameters(one, True), "")
    bases = [ast.unparse(one) for one in node.bases]
    is_record = bases == ["NamedTuple"] or "dataclass" in decorators(node)
    if not is_record:
        return call(f"class {node.name}", bases, "") if bases else f"class {node.name}"
    fields = [
        f"{ast.unparse(one.target)}: {ast.unparse(one.annotation)}"
        + (f" = {_default(one.value)}" if one.value else "")
        for one in node.body
        if isinstance(one, ast.AnnAssign)
        and not ast.unparse(one.target).startswith("_")
    ]
    return call(f"class {node.name}", fields, "")


def _default(value: ast.expr) -> str:
    text = ast.unparse(value)
    return "..." if text.startswith("field(") else text


def members(node: ast.ClassDef) -> Iterator[Tuple[str, str]]:
    """Signature and docstring of what a class has for its users."""
    for one in methods(node):
        text, kinds = ast.get_docstring(one) or "", decorators(one)
        if "property" in kinds or "functools.cached_property" in kinds:
            if not one.name.startswith("_"):
                yield f"{one.name}: {type_text(one.returns)}", text
        elif text and one.name in ("__call__", "__getitem__"):
            arguments = ", ".join(parameters(one, True))
            open_, close = "()" if one.name == "__call__" else "[]"
            yield f"self{open_}{arguments}{close}", text
        elif text and not one.name.startswith("_"):
            is_method = "staticmethod" not in kinds
            prefix = "" if is_method and "classmethod" not in kinds else node.name + "."
            line = " ".join(signature(one, prefix + one.name, is_method).split())
            yield line.replace("( ", "(").replace(", )", ")"), text

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of a function that an importer wrote: with names of the model, and
with encodings on the types of packed weights.

    func.func @main(%arg0: tensor<8x4xf16>) -> tensor<8x4xf16> {

becomes, where the argument is a weight `w`,

    func.func @main(%w: tensor<8x4xf16, #nm_sparse.encoding<2:4, dim = 1>>) -> ... {
      %arg0 = tensor.cast %w : tensor<..., #nm_sparse...> to tensor<8x4xf16>

so that nothing else of the text changes.
"""

from __future__ import annotations

import re
from typing import List, Sequence, Tuple

from .graph import Argument
from .text import ExportError, tensor_type, unique_name

_OPENING, _CLOSING = "([{<", ")]}>"
_ARGUMENT = re.compile(r"\s*%([\w$.-]+)\s*:\s*(tensor<[^<>]*>)(.*)", re.DOTALL)


def name_arguments(
    text: str, function: str, arguments: Sequence[Argument]
) -> Tuple[str, List[str]]:
    """The text, and the names that the arguments have there: those of the model, as far
    as the text has no such name.

    Raises ExportError when the text has no such function, or when its arguments do not
    have the types of these, in this order.
    """
    found = re.search(rf"func\.func\s+(\w+\s+)?@{re.escape(function)}\(", text)
    if not found:
        raise ExportError(
            f"the text has no func.func @{function}: legal is what an importer "
            "has made of the program, with the name of its function"
        )
    begin = found.end()
    given, end = _split(text, begin)
    body = re.compile(r"\{[ \t]*\n").search(text, end)
    if len(given) != len(arguments) or not body:
        raise ExportError(
            f"@{function} has {len(given)} arguments: legal are {len(arguments)}, the "
            "inputs of the program"
        )
    taken = set(re.findall(r"%([\w$.-]+)", text))
    names, declared, casts = [], [], []
    for at, (one, argument) in enumerate(zip(given, arguments)):
        parts, dense = _ARGUMENT.fullmatch(one), _dense_type(argument)
        if not parts or re.sub(r"\s", "", parts[2]) != dense:
            raise ExportError(
                f"argument {at} of @{function}, {argument.target}, is "
                f"{one.strip().partition(':')[2].strip()}: legal is {dense}; lower the "
                "text to linalg on tensors, and keep the order of arguments"
            )
        name = unique_name(argument.name, taken)
        names.append(name)
        declared.append(f"%{name}: {argument.type}{parts[3]}")
        casts.append(
            f"    %{parts[1]} = tensor.cast %{name} : {argument.type} to {dense}\n"
        )
    head = text[:begin] + ",\n    ".join(declared) + text[end : body.end()]
    return head + "".join(casts) + text[body.end() :], names


def _split(text: str, begin: int) -> Tuple[List[str], int]:
    """What lies between commas up to the parenthesis that closes the list, and where
    that is."""
    parts, depth, start, quoted = [], 0, begin, False
    for at in range(begin, len(text)):
        letter = text[at]
        if letter == '"' and text[at - 1] != "\\":
            quoted = not quoted
        if quoted:
            continue
        if letter in _OPENING:
            depth += 1
        elif letter in _CLOSING and text[at - 1 : at + 1] != "->":
            depth -= 1
        if depth < 0 or (depth == 0 and letter == ","):
            parts.append(text[start:at])
            start = at + 1
        if depth < 0:
            return [part for part in parts if part.strip()], at
    return [], len(text)


def _dense_type(argument: Argument) -> str:
    if argument.spec is None:
        return argument.type
    return tensor_type(argument.spec.shape, argument.spec.dtype)

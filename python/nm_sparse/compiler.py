# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler as a function: what nm-compile does, without files."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Dict, Iterable, Optional, Sequence

from .bindings.library import library


class CompileError(RuntimeError):
    """What the compiler says of a program or an option that it refuses.

    status:  1 for a program that cannot be compiled, 2 for a wrong option.
    """

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Output:
    """What one run of the compiler made.

    text:      what it says to people, as on standard output.
    warnings:  its warnings, a line for each, without the name of the tool.
    files:     the files that options name, by these names.
    """

    text: str
    warnings: str
    files: Dict[str, bytes]


_PREFIX = "nm-compile: "


def _messages(text: str) -> str:
    lines = text.splitlines()
    return "\n".join(line[len(_PREFIX) :] if _starts(line) else line for line in lines)


def _starts(line: str) -> bool:
    return line.startswith(_PREFIX)


def run(
    arguments: Sequence[str],
    program: Optional[str] = None,
    files: Iterable[str] = (),
) -> Output:
    """Runs the compiler with the command line `arguments` of nm-compile.

    program:  MLIR text, which the input `-` stands for.
    files:    names that `arguments` give to files (`-o NAME`, `--manifest NAME`):
              they are returned, nothing is written.

    Raises CompileError with the compiler's message where it fails.
    """
    lib = library()
    encoded = [argument.encode() for argument in arguments]
    listed = (ctypes.c_char_p * len(encoded))(*encoded)
    text = (program or "").encode()
    output = lib.nmSparseCompile(listed, len(encoded), text, len(text))
    try:
        errors = _read(lib.nmSparseOutputErrors, output).decode(errors="replace")
        status = lib.nmSparseOutputStatus(output)
        if status != 0:
            lines = _messages(errors).splitlines()
            message = "\n".join(x for x in lines if not x.startswith("warning: "))
            raise CompileError(message or f"exit status {status}", status)
        found = {
            name: contents
            for name in files
            if (contents := _read_file(lib, output, name)) is not None
        }
        said = _read(lib.nmSparseOutputText, output).decode(errors="replace")
        return Output(said, _messages(errors), found)
    finally:
        lib.nmSparseOutputDestroy(output)


def _read(function, output: int) -> bytes:
    size = ctypes.c_size_t()
    address = function(output, ctypes.byref(size))
    return ctypes.string_at(address, size.value)


def _read_file(lib: ctypes.CDLL, output: int, name: str) -> Optional[bytes]:
    size = ctypes.c_size_t()
    address = lib.nmSparseOutputFile(output, name.encode(), ctypes.byref(size))
    return ctypes.string_at(address, size.value) if address else None

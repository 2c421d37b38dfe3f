# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of a program, run thread by thread on the CPU (docs/Emulator.md).

It finds races and accesses out of bounds that a GPU hides, and takes seconds for a
small layer. A process that has used it cannot use a GPU through this package any
more, nor the other way round.
"""

from __future__ import annotations

from typing import Any, List, Sequence

import numpy as np

from . import compiler
from .function import Function, PreparedWeight, set_device
from .library import RuntimeFailure, last_error, library
from .operands import NativeArrays, Operand, contiguous
from .program import Program

_KERNELS = "kernels"


def emulate(program: Program, *arguments: Any, function: str = "") -> List[np.ndarray]:
    """The arguments of the kernels after a call of `program` in the emulator.

    arguments:  arrays of numpy, and packed weights, as `Function` takes them.
    function:   its name; none: the first.

    Returns one array for each argument of the kernels, in the order of the manifest:
    results are in those that the program writes to. Raises RuntimeFailure for what the
    emulator finds, such as a race.
    """
    called = program[function] if function else next(iter(program.functions.values()))
    flat = _flatten(called, arguments)
    lib = library()
    if lib.nmSparseUseEmulator(program.chip.encode()):
        raise RuntimeFailure(last_error())
    set_device(-1)
    manifest = program.manifest_text.encode()
    image = _image(program)
    handle = lib.nmsProgramCreate(manifest, len(manifest), image, len(image))
    if not handle:
        raise RuntimeFailure(last_error())
    memory: List[int] = []
    try:
        number = lib.nmsProgramFunction(handle, called.name.encode())
        native = NativeArrays([_copy_in(array, memory) for array in flat])
        size = lib.nmsProgramWorkspace(handle, number, native.arrays, native.count)
        if size < 0:
            raise RuntimeFailure(last_error())
        where = _allocate(max(size, 1), memory)
        if lib.nmsProgramLaunch(
            handle, number, native.arrays, native.count, where, None
        ):
            raise RuntimeFailure(last_error())
        return [_copy_out(a, one.data) for a, one in zip(flat, native.arrays)]
    finally:
        for address in memory:
            lib.mgpuMemFree(address, None)
        lib.nmsProgramDestroy(handle)


def _image(program: Program) -> bytes:
    arguments = [*program.arguments, "--emit=emulator"]
    return compiler.run(arguments, program.source, (_KERNELS,)).files[_KERNELS]


def _flatten(function: Function, arguments: Sequence[Any]) -> List[np.ndarray]:
    prepared = []
    number = 0
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            prepared.append(argument)
            continue
        if not isinstance(argument, PreparedWeight):
            argument = function.prepare(argument, number)
        number += 1
        prepared.append(argument)
    return [np.ascontiguousarray(a) for a in function.flatten(prepared)]


def _allocate(size: int, memory: List[int]) -> int:
    address = library().mgpuMemAlloc(size, None, False)
    if not address:
        raise RuntimeFailure(last_error())
    memory.append(address)
    return address


def _copy_in(array: np.ndarray, memory: List[int]) -> Operand:
    address = _allocate(max(array.nbytes, 1), memory)
    if array.nbytes:
        library().mgpuMemcpy(address, array.ctypes.data, array.nbytes, None)
    return Operand(0, address, array.shape, contiguous(array.shape), "", array)


def _copy_out(like: np.ndarray, address: int) -> np.ndarray:
    result = np.empty_like(like)
    if result.nbytes:
        library().mgpuMemcpy(result.ctypes.data, address, result.nbytes, None)
    return result


__all__ = ["emulate"]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of a program, run thread by thread on the CPU (docs/Emulator.md).

It finds races and accesses out of bounds that a GPU hides, and takes seconds for a
small layer. A process that has used it cannot use a GPU through this package any
more, nor the other way round.
"""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Sequence

import numpy as np

from .. import compiler
from ..bindings.library import (
    Result,
    RuntimeFailure,
    checked,
    element_of_kind,
    last_error,
    library,
    use_emulator,
)
from ..interop.operands import (
    NativeArrays,
    Operand,
    OperandError,
    contiguous,
    numpy_type,
    open_operand,
)
from .function import Function, PreparedWeight, set_device
from .program import Program

_KERNELS = "kernels"


def emulate(program: Program, *arguments: Any, function: str = "") -> List[np.ndarray]:
    """The results of a call of `program` in the emulator.

    arguments:  arrays of numpy, and packed weights, as `Function` takes them.
    function:   its name; none: the first.

    Arguments are not written to. Raises OperandError for arguments that the function
    does not take, EncodingError for a weight that breaks the pattern it is packed in,
    and RuntimeFailure for what the emulator finds, such as a race.
    """
    called = program[function] if function else next(iter(program.functions.values()))
    flat = _flatten(called, arguments)
    lib = library()
    use_emulator(program.chip)
    set_device(-1)
    manifest = program.manifest_text.encode()
    image = _image(program)
    handle = lib.nmsProgramCreate(manifest, len(manifest), image, len(image))
    if not handle:
        raise RuntimeFailure(last_error())
    memory: List[int] = []
    try:
        number = lib.nmsProgramFunction(handle, called.name.encode())
        if number < 0:
            raise RuntimeFailure(last_error())
        native = NativeArrays([_copy_in(array, memory) for array in flat])
        size = lib.nmsProgramWorkspace(handle, number, native.arrays, native.count)
        if size < 0:
            raise OperandError(last_error())
        where = _allocate(max(size, 1), memory)
        if lib.nmsProgramLaunch(
            handle, number, native.arrays, native.count, where, None
        ):
            raise RuntimeFailure(last_error())
        native.check(handle, number, where, None)
        count = lib.nmsProgramResults(handle, number)
        found = [Result() for _ in range(count)]
        for i, result in enumerate(found):
            if lib.nmsProgramResult(
                handle, number, native.arrays, native.count, i, ctypes.byref(result)
            ):
                raise RuntimeFailure(last_error())
        return [
            _copy_result(one, native.arrays[one.argument].data, flat[one.argument])
            if one.argument >= 0
            else _copy_result(one, where + one.offset, None)
            for one in found
        ]
    finally:
        for address in memory:
            lib.mgpuMemFree(address, None)
        lib.nmsProgramDestroy(handle)


def _image(program: Program) -> bytes:
    arguments = [*program.arguments, "--emit=emulator"]
    return compiler.run(arguments, program.source, (_KERNELS,)).files[_KERNELS]


def _flatten(function: Function, arguments: Sequence[Any]) -> List[np.ndarray]:
    function.check_count(arguments)
    prepared = []
    number = 0
    for argument, is_weight in zip(arguments, function.takes_weights):
        if is_weight and not isinstance(argument, PreparedWeight):
            argument = function.prepare(argument, number)
        number += is_weight
        prepared.append(argument)
    flat = function.flatten(prepared)
    for i, array in enumerate(flat):
        what = f"argument {i} of the kernels of @{function.name}"
        if not isinstance(array, np.ndarray):
            raise OperandError(
                f"{what} is {type(array).__name__}: legal in the emulator are arrays "
                "of numpy"
            )
        function.check_elements(i, open_operand(array, what), what)
    return [np.ascontiguousarray(array) for array in flat]


def _allocate(size: int, memory: List[int]) -> int:
    address = checked(library().mgpuMemAlloc, size, None, False)
    memory.append(address)
    return address


def _copy_in(array: np.ndarray, memory: List[int]) -> Operand:
    address = _allocate(max(array.nbytes, 1), memory)
    if array.nbytes:
        _copy(address, array.ctypes.data, array.nbytes)
    return Operand(0, address, array.shape, contiguous(array.shape), "", array)


def _copy(to: int, source: int, size: int) -> None:
    checked(library().mgpuMemcpy, to, source, size, None)


def _copy_result(
    result: Result, address: int, like: Optional[np.ndarray]
) -> np.ndarray:
    """Runs of elements that follow each other: kernels write none of what lies between
    rows, so that it cannot be read."""
    if like is None:
        dtype = np.dtype(numpy_type(element_of_kind(result.kind)))
    else:
        dtype = like.dtype
    shape = tuple(result.sizes[: result.rank])
    strides = tuple(result.strides[: result.rank])
    if 0 in shape:
        return np.empty(shape, dtype)
    # In memory the dimension with the largest stride is the outermost one.
    order = sorted(range(result.rank), key=strides.__getitem__, reverse=True)
    outer, run = list(order), 1
    while outer and (shape[outer[-1]] == 1 or strides[outer[-1]] == run):
        run *= shape[outer.pop()]
    rows = np.empty((*(shape[dim] for dim in outer), run), dtype)
    for place in np.ndindex(*rows.shape[:-1]):
        at = sum(i * strides[dim] for i, dim in zip(place, outer))
        row = rows[place]
        _copy(row.ctypes.data, address + at * dtype.itemsize, row.nbytes)
    stored = rows.reshape([shape[dim] for dim in order])
    return np.ascontiguousarray(stored.transpose(np.argsort(order))).reshape(shape)

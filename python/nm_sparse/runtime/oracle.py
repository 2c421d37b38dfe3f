# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs on the CPU: weights are unpacked and no kernel runs."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from ..bindings.library import HostArray, element_of_kind, last_error, library
from ..compiler import CompileError
from ..interop.operands import OperandError, numpy_type


class Oracle:
    """A function of a program, compiled for the CPU of this machine.

    program:   MLIR text.
    function:  its name; None: the only public one.

    Raises CompileError where the program cannot be compiled.
    """

    def __init__(self, program: str, function: Optional[str] = None) -> None:
        self._handle: Any = None
        self._lock = threading.Lock()
        self._library = library()
        text = program.encode()
        name = (function or "").encode()
        self._handle = self._library.nmSparseOracleCreate(text, len(text), name)
        if not self._handle:
            raise CompileError(last_error())

    def __del__(self) -> None:
        if self._handle:
            self._library.nmSparseOracleDestroy(self._handle)

    @property
    def arguments(self) -> int:
        """How many arrays it takes: the components of a packed weight, canonical
        ones, for each weight."""
        return self._library.nmSparseOracleArguments(self._handle)

    def __call__(self, arrays: Sequence[np.ndarray]) -> List[np.ndarray]:
        """The results for `arrays`, which it does not change; bf16 and f8 as bits.

        Raises OperandError for an array that the function does not take.
        """
        return [array for array, _ in self.run(arrays)]

    def run(self, arrays: Sequence[np.ndarray]) -> List[Tuple[np.ndarray, str]]:
        """The same, with the element type of each as MLIR spells it.

        Raises OperandError for an array that the function does not take.
        """
        sources = [np.asarray(array, order="C") for array in arrays]
        given = (HostArray * len(sources))()
        for one, array in zip(given, sources):
            one.data, one.elementBytes = array.ctypes.data, array.itemsize
            one.rank = array.ndim
            one.sizes = (ctypes.c_int64 * array.ndim)(*array.shape)
        lib, handle = self._library, self._handle
        with self._lock:  # results are there until the next call
            if lib.nmSparseOracleCall(handle, given, len(sources)):
                raise OperandError(last_error())
            count = lib.nmSparseOracleResults(handle)
            return [_copy(lib.nmSparseOracleResult(handle, i)) for i in range(count)]


def _copy(result: HostArray) -> Tuple[np.ndarray, str]:
    element = element_of_kind(result.kind)
    shape = tuple(result.sizes[i] for i in range(result.rank))
    size = int(np.prod(shape, dtype=np.int64)) * result.elementBytes
    data = ctypes.string_at(result.data, size) if size else b""
    array = np.frombuffer(data, numpy_type(element)).reshape(shape)
    return array.copy(), element

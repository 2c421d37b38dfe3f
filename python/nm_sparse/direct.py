# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fast way from tensors of torch on a GPU to launched kernels.

Everything that a call needs beside its tensors is found once: addresses of the
library's functions, and the type of each argument. The rest is one call of a C module.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, Optional, Sequence

from .library import RuntimeFailure, last_error, launcher, library
from .operands import OperandError, torch_dtype, torch_memory


class DirectCall:
    """Launches of function `number` of a program of the library.

    handle:    the NmsProgram.
    elements:  the type of each argument, spelled as in MLIR.
    """

    def __init__(self, handle: int, number: int, elements: Sequence[str]) -> None:
        lib, module = library(), launcher()
        dtypes = tuple(torch_dtype(element) for element in elements)
        self._call: Any = None
        if module is None or None in dtypes:
            return
        address = [
            ctypes.cast(function, ctypes.c_void_p).value
            for function in (lib.nmsProgramWorkspace, lib.nmsProgramLaunch)
        ]
        self._launch = module.launch
        self._set_device = lib.nmsSetDevice
        self._call = module.prepare(handle, number, *address, dtypes)

    def __call__(
        self, flat: Sequence[Any], device: int, stream: Optional[int] = None
    ) -> bool:
        """Launches on tensors on GPU `device`, one for each argument of the kernels.

        stream:  its address; none: the current one of torch.

        Returns False, with nothing launched, where an argument is not such a tensor
        of the right type, or does not begin at a multiple of 16 bytes. Raises
        OperandError for other sizes or strides than the program takes, and
        RuntimeFailure for what the driver refuses.
        """
        if self._call is None:
            return False
        if stream is None:
            torch = sys.modules["torch"]
            stream = torch._C._cuda_getCurrentRawStream(device)
        allocate = functools.partial(torch_memory, device, stream)
        self._set_device(device)
        status = self._launch(self._call, device, stream, allocate, *flat)
        if status:
            raise (OperandError if status < 0 else RuntimeFailure)(last_error())
        return status is not None

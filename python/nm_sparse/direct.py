# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fast way from tensors of torch on a GPU to launched kernels.

Everything that a call needs beside its tensors is found once: addresses of the
library's functions, the type of each argument, and what gives memory on each GPU. The
rest is one call of a C module.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, Dict, Optional, Sequence

from .library import RuntimeFailure, last_error, launcher, library
from .operands import torch_dtype


class DirectCall:
    """Launches of function `number` of a program of the library.

    handle:    the NmsProgram.
    elements:  the type of each argument, spelled as in MLIR.
    """

    def __init__(self, handle: int, number: int, elements: Sequence[str]) -> None:
        lib, module = library(), launcher()
        dtypes = tuple(torch_dtype(element) for element in elements)
        self._call: Any = None
        self._allocators: Dict[int, Callable[[int], Any]] = {}
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
        RuntimeFailure for what the runtime refuses, such as other sizes.
        """
        if self._call is None:
            return False
        if stream is None:
            torch = sys.modules["torch"]
            stream = torch._C._cuda_getCurrentRawStream(device)
        allocate = self._allocators.get(device)
        if allocate is None:
            allocate = self._allocators[device] = _allocator(device)
        self._set_device(device)
        status = self._launch(self._call, device, stream, allocate, *flat)
        if status:
            raise RuntimeFailure(last_error())
        return status is not None


def _allocator(device: int) -> Callable[[int], Any]:
    torch = sys.modules["torch"]
    where, byte = torch.device("cuda", device), torch.uint8
    empty = torch.empty

    def allocate(size: int) -> Any:
        return empty(size, dtype=byte, device=where)

    return allocate

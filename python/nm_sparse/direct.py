# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fast way from tensors of torch on a GPU to launched kernels.

Everything that a call needs beside its tensors is found once: addresses of the
library's functions, and the type of each argument. The rest is one call of a C module.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, Callable, Optional, Sequence, Tuple, Union

from .bindings.library import (
    RuntimeFailure,
    available,
    last_error,
    launcher,
    library,
)
from .interop.operands import OperandError, torch_dtype, torch_memory

# Takes a stream (its address; None: the current one of torch) and the arguments of a
# function: tensors of torch on a GPU, and for a weight a PreparedWeight, or a tuple of
# its components. Returns the result, or a tuple of several; None, with nothing
# launched, where an argument is something else, of another type, or does not begin at
# a multiple of 16 bytes. Raises OperandError for other sizes or strides than the
# program takes, and RuntimeFailure for what the driver refuses.
#
# Where tensors are read by DLPack it has an attribute `bind`, a `Bind`.
DirectCall = Callable[..., Any]

# Takes a stream, the arguments of a DirectCall as a tuple, in which results and what
# each call gives are None, and the last size of each result. Returns a function of x
# [..., K], whose rows are what the call gives, or of x and the tensors that it gives.
# That returns new results [..., N] like x, a list; None as a DirectCall does, also for
# other sizes and where x is empty. None instead of the function where the arguments do
# not fit. `with_rounder` of the function takes a kernel, as `rounder` of rounded.c does
# behind the driver's functions, and returns a function of x that calls by what the
# kernel makes of it; None where there is no driver.
Bind = Callable[[int, Tuple[Any, ...], Tuple[int, ...]], Optional[Callable[..., Any]]]


def direct_call(
    program: Any,
    number: int,
    elements: Sequence[str],
    slots: Sequence[Union[int, Tuple[int, ...]]],
    results: Sequence[int],
) -> DirectCall:
    """Launches of function `number` of a program of the library.

    program:   has the NmsProgram as its `handle`, and lives as long as the call.
    elements:  the type of each argument of the kernels, spelled as in MLIR.
    slots:     for each argument of the call its number among those of the kernels, or
               the numbers of the components of a weight.
    results:   the arguments of the call that results are written to: at least one.
    """
    lib, module = library(), launcher()
    torch = sys.modules.get("torch")
    dtypes = [torch_dtype(element) for element in elements]
    if module is None or torch is None or None in dtypes or not results:
        return _decline
    functions = lib.nmsProgramCall, lib.nmsSetDevice
    addresses = [ctypes.cast(f, ctypes.c_void_p).value for f in functions]
    is_exchanged = _use_exchange(module)
    samples = tuple(torch.empty(0, dtype=dtype) for dtype in dtypes)
    call = module.prepare(
        program.handle, number, tuple(addresses), samples, tuple(slots), tuple(results),
        torch_memory, _fail,
    )  # fmt: skip
    launch: Any = functools.partial(module.launch, call)
    launch.program = program
    if not is_exchanged:
        return functools.partial(_on_current, launch)
    launch.bind = functools.partial(_bind, module, call, program)
    return launch


def _bind(
    module: Any, call: Any, program: Any, stream: int, arguments: Any, outputs: Any
) -> Any:
    """A `Bind` of a call that is prepared."""
    bound = module.bind(call, stream, arguments, outputs)
    if bound is None:
        return None
    launch: Any = functools.partial(module.launch_bound, bound)
    launch.program = program
    launch.with_rounder = functools.partial(_with_rounder, module, bound, program)
    return launch


def _with_rounder(module: Any, bound: Any, program: Any, kernel: Any) -> Any:
    driver = _driver_functions()
    if driver is None:
        return None
    rounder = module.rounder(driver, *kernel)
    launch: Any = functools.partial(module.launch_rounded, bound, rounder)
    launch.program = program
    return launch


@functools.lru_cache(maxsize=None)
def _driver_functions() -> Optional[Tuple[Any, ...]]:
    """The addresses of cuLaunchKernel and cuCtxGetDevice."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    functions = driver.cuLaunchKernel, driver.cuCtxGetDevice
    return tuple(ctypes.cast(one, ctypes.c_void_p).value for one in functions)


# (owner, attribute, key, value): an object, or a layer by its number; and what it has:
# the item `key` of its attribute, a dict, or if the key is None the attribute itself,
# a tensor.
Place = Tuple[Any, str, Optional[str], Any]


def watch(
    count: int, places: Sequence[Place]
) -> Optional[Callable[[Sequence[Any]], bool]]:
    """A function that says of `count` layers whether their places have the same values
    as now, tensors the same memory, and those with no key also the same version. None
    where the C module does not read tensors of torch."""
    module = launcher() if available() else None
    if module is None or not _use_exchange(module):
        return None
    seen = module.watch(count, tuple(places))
    return None if seen is None else functools.partial(module.unchanged, seen)


@functools.lru_cache(maxsize=None)
def _use_exchange(module: Any) -> bool:
    """Has the C module read tensors by C functions, which torch has from 2.10 on;
    whether it does."""
    torch = sys.modules["torch"]
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    types = (torch.Tensor, torch.nn.Parameter)
    return exchange is not None and module.use_exchange(exchange, *types)


def _on_current(launch: DirectCall, stream: Optional[int], *arguments: Any) -> Any:
    """`launch`, which does not know the current stream."""
    if stream is None:
        torch = sys.modules["torch"]
        tensors = (one for one in arguments if isinstance(one, torch.Tensor))
        device = next((one.get_device() for one in tensors), -1)
        if device < 0:
            return None
        stream = torch._C._cuda_getCurrentRawStream(device)
    return launch(stream, *arguments)


def _decline(*_: Any) -> None:
    """In the place of calls that cannot be direct."""


def _fail(status: int) -> None:
    raise (OperandError if status < 0 else RuntimeFailure)(last_error())

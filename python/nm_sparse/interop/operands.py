# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays as a program takes them: address, sizes, strides, and where they are.

No library of arrays is imported here. Tensors of torch are told by their methods,
arrays on a GPU otherwise by `__cuda_array_interface__`.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from ..bindings.library import (
    CHECK_FAILED,
    MAX_RANK,
    Array,
    RuntimeFailure,
    last_error,
    library,
)
from ..encoding import EncodingError

HOST = -1
# Element types as torch and numpy spell them, and as MLIR does. numpy has neither
# bf16 nor f8: unsigned integers of their bits stand for them.
_NAMES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "int8": "i8",
    "uint8": "i8",
    "int16": "i16",
    "uint16": "i16",
    "int32": "i32",
    "uint32": "i32",
    "int64": "i64",
}
_BITS = {"bf16": ("i16",), "f8E4M3FN": ("i8",), "f8E5M2": ("i8",)}


class OperandError(ValueError):
    """An argument of a call that the program does not take."""


@dataclass(frozen=True)
class Operand:
    """One array of a call.

    device:   number of the GPU that it is on, or HOST.
    address:  of its first element.
    sizes, strides:  in elements.
    dtype:    element type, spelled as in MLIR.
    owner:    the array, which keeps its memory.
    is_read_only:  whether it says that it must not be written to.
    """

    device: int
    address: int
    sizes: Tuple[int, ...]
    strides: Tuple[int, ...]
    dtype: str
    owner: Any
    is_read_only: bool = False

    def fits(self, dtype: str) -> bool:
        """Whether its elements are of type `dtype`, or bits of it."""
        return self.dtype == dtype or self.dtype in _BITS.get(dtype, ())


def is_torch(array: Any) -> bool:
    """Whether `array` is a tensor of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def open_operand(array: Any, what: str) -> Operand:
    """What `array` is; `what` is how an error calls it.

    Raises OperandError when it is neither a tensor of torch nor an array of numpy,
    nor has `__cuda_array_interface__`.
    """
    if is_torch(array):
        return _open_torch(array, what)
    if isinstance(array, np.ndarray):
        return _open_numpy(array, what)
    interface = getattr(array, "__cuda_array_interface__", None)
    if isinstance(interface, dict):
        return _open_cuda(array, interface, what)
    raise OperandError(
        f"{what} is {type(array).__name__}: legal is an array of numpy, torch or cupy, "
        "or another one with __cuda_array_interface__"
    )


def _name(dtype: str, what: str) -> str:
    name = _NAMES.get(dtype)
    if name is None:
        raise OperandError(f"{what} has elements of {dtype}: legal are {_legal()}")
    return name


def _legal() -> str:
    return ", ".join(sorted(set(_NAMES)))


def _open_torch(tensor: Any, what: str) -> Operand:
    if tensor.device.type not in ("cpu", "cuda"):
        raise OperandError(f"{what} is on {tensor.device}: legal are cpu and cuda")
    if tensor.layout is not sys.modules["torch"].strided:
        raise OperandError(f"{what} is {tensor.layout}: legal is a dense tensor")
    name = _name(str(tensor.dtype).rpartition(".")[2], what)
    device = HOST if tensor.device.type == "cpu" else tensor.get_device()
    address, shape = tensor.data_ptr(), tuple(tensor.shape)
    return Operand(device, address, shape, tensor.stride(), name, tensor)


def _open_numpy(array: np.ndarray, what: str) -> Operand:
    name = _name(array.dtype.name, what)
    if not array.dtype.isnative:
        raise OperandError(f"{what} has elements of another byte order than this CPU")
    strides = tuple(stride // array.itemsize for stride in array.strides)
    address, read_only = array.ctypes.data, not array.flags.writeable
    return Operand(HOST, address, array.shape, strides, name, array, read_only)


def _open_cuda(array: Any, interface: dict, what: str) -> Operand:
    dtype = np.dtype(interface["typestr"])
    name, shape = _name(dtype.name, what), tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is None:
        strides = contiguous(shape)
    else:
        if any(stride % dtype.itemsize for stride in strides):
            raise OperandError(
                f"{what} has strides of {list(strides)} bytes: legal are multiples of "
                f"the {dtype.itemsize} of an element; pass a copy"
            )
        strides = tuple(stride // dtype.itemsize for stride in strides)
    device = getattr(getattr(array, "device", None), "id", 0)
    address, read_only = interface["data"]
    return Operand(device, address, shape, strides, name, array, bool(read_only))


def contiguous(shape: Tuple[int, ...]) -> Tuple[int, ...]:
    """Strides of an array whose rows follow each other without gaps.

    >>> contiguous((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


class NativeArrays:
    """The operands of one call as the library takes them."""

    def __init__(self, operands: List[Operand]) -> None:
        self._keep = operands
        self.count = len(operands)
        self.arrays = (Array * self.count)()
        for array, operand in zip(self.arrays, operands):
            rank = len(operand.sizes)
            if rank > MAX_RANK:
                raise OperandError(f"an array has rank {rank}, at most {MAX_RANK}")
            array.data, array.rank = operand.address, rank
            array.sizes = (ctypes.c_int64 * rank)(*operand.sizes)
            array.strides = (ctypes.c_int64 * rank)(*operand.strides)

    def check(self, program: int, function: int, where: int, stream: int) -> None:
        """Waits for a launch on these operands, by the numbers of the library, with
        the workspace at `where`, and looks at what its kernels found.

        Raises EncodingError for a weight that breaks its pattern, and RuntimeFailure.
        """
        status = library().nmsProgramCheck(
            program, function, self.arrays, self.count, where, stream
        )
        if status == CHECK_FAILED:
            raise EncodingError(last_error().partition("pack: ")[2])
        if status:
            raise RuntimeFailure(last_error())


def current_stream(operand: Operand) -> int:
    """The address of the stream that the library of a GPU array launches on now; of a
    library that is neither torch nor cupy, the stream that the array says."""
    if is_torch(operand.owner):
        torch = sys.modules["torch"]
        return torch.cuda.current_stream(operand.device).cuda_stream
    cupy = sys.modules.get("cupy")
    if cupy is None or not isinstance(operand.owner, cupy.ndarray):
        return operand.owner.__cuda_array_interface__.get("stream") or 0
    with cupy.cuda.Device(operand.device):
        return cupy.cuda.get_current_stream().ptr


def torch_memory(device: int, stream: int, size: int) -> Any:
    """Bytes on a GPU as a tensor of torch, for kernels on the stream of this address:
    before them nothing else uses the memory, nor, once it is given back, until they
    have ended."""
    torch = sys.modules["torch"]
    where = torch.device("cuda", device)
    if torch._C._cuda_getCurrentRawStream(device) == stream:
        return torch.empty(size, dtype=torch.uint8, device=where)
    # The allocator of torch keeps this order for the stream that is current.
    other = (
        torch.cuda.ExternalStream(stream, device=where)
        if stream
        else torch.cuda.default_stream(where)
    )
    with torch.cuda.stream(other):
        return torch.empty(size, dtype=torch.uint8, device=where)


def allocator(operand: Operand, stream: int) -> Callable[[int], Any]:
    """What gives bytes of memory where `operand` is, for kernels on the stream of this
    address, as an array of its library.

    Raises OperandError where the library cannot be told.
    """
    if is_torch(operand.owner):
        return functools.partial(torch_memory, operand.device, stream)
    cupy = sys.modules.get("cupy")
    if cupy is None:
        raise OperandError(
            f"{type(operand.owner).__name__} arrays: the call needs memory, which is "
            "taken from torch or cupy; pass arrays of one of them"
        )

    def allocate(size: int) -> Any:
        with cupy.cuda.Device(operand.device), cupy.cuda.ExternalStream(stream):
            return cupy.empty(size, dtype=np.uint8)

    return allocate


def as_view(
    memory: Any, offset: int, shape: Tuple[int, ...], strides: Tuple[int, ...], dtype
) -> Any:
    """Elements of `dtype` (MLIR's name) in bytes of an `allocator`, from `offset`.
    Types that cupy lacks are unsigned integers of the same bits."""
    if is_torch(memory):
        element = torch_dtype(dtype)
        part = memory[offset : offset + _span(shape, strides) * element.itemsize]
        return part.view(element).as_strided(shape, strides)
    cupy = sys.modules["cupy"]
    element = np.dtype(numpy_type(dtype))
    part = memory[offset : offset + _span(shape, strides) * element.itemsize]
    return cupy.lib.stride_tricks.as_strided(
        part.view(element),
        shape,
        tuple(stride * element.itemsize for stride in strides),
    )


def numpy_type(dtype: str) -> str:
    """The name of numpy's type for MLIR's, of bf16 and f8 that of their bits."""
    bits = {"bf16": "uint16", "f8E4M3FN": "uint8", "f8E5M2": "uint8"}
    return bits.get(dtype) or _names_of(dtype)[0]


def _names_of(dtype: str) -> List[str]:
    """What torch and numpy call MLIR's type."""
    return [key for key, value in _NAMES.items() if value == dtype]


def _span(shape: Tuple[int, ...], strides: Tuple[int, ...]) -> int:
    """Elements from the first to the last one."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))


def torch_dtype(dtype: str) -> Optional[Any]:
    """The dtype of torch for MLIR's name, None where torch has none."""
    torch = sys.modules.get("torch")
    names = _names_of(dtype)
    return next((getattr(torch, n) for n in names if hasattr(torch, n)), None)

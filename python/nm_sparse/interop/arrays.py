# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of other libraries: taken as numpy arrays on the host, and given back.

torch and cupy are never imported here. Whoever passes an array of theirs has imported
them, so they are found among the modules that are loaded. Any other array that speaks
DLPack or has `__cuda_array_interface__` is read, too; what is given back is then numpy.

numpy has neither bf16 nor f8. Such elements travel as unsigned integers of the same
bits, with the element type beside them, spelled as in MLIR.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from ..encoding import EncodingError
from ..reference import _bits, _default_dtype, _numbers

# The types that numpy does not have, by their names in torch and ml_dtypes:
# (element type, numpy type of the bits).
_BIT_TYPES: Dict[str, Tuple[str, type]] = {
    "bfloat16": ("bf16", np.uint16),
    "float8_e4m3fn": ("f8E4M3FN", np.uint8),
    "float8_e5m2": ("f8E5M2", np.uint8),
}
_LEGAL = "an array of numpy, torch or cupy, or another one that speaks DLPack"
_HOST_DEVICES = (1, 3)  # of DLPack: the CPU, and pinned memory of it
_Back = Callable[[np.ndarray], Any]


@dataclass(frozen=True)
class HostArray:
    """An array on the host, which may share its memory with the one it is of.

    array:  its elements; bf16 and f8 as unsigned integers. Not to be written to.
    dtype:  their type, spelled as in MLIR.
    """

    array: np.ndarray
    dtype: str
    _back: _Back

    def restore(self, array: np.ndarray) -> Any:
        """`array`, of these elements or of bool and of any shape, as an array of the
        kind and on the device that this one came from.

        A torch tensor has no gradient. Where the kind is not known it stays numpy.
        """
        return self._back(array)


def to_host(
    weight: Any, dtype: Optional[str] = None, what: str = "weight"
) -> HostArray:
    """Any array as elements of a type that a weight may have.

    weight:  of numpy (also with the types of ml_dtypes), torch, cupy, or any that
             speaks DLPack or has `__cuda_array_interface__`.
    dtype:   element type; needed for numpy arrays of unsigned integers only.
    what:    how an error calls it.

    >>> host = to_host(np.zeros((2, 3), np.float16))
    >>> host.dtype, host.array.shape
    ('f16', (2, 3))

    Raises EncodingError when it is no array, or not one of this element type.
    """
    array, known, back = _open(weight, what)
    if known is not None and dtype not in (None, known):
        raise EncodingError(
            f"{what} is an array of {known}: dtype is {dtype!r}, legal is {known!r} or "
            "none"
        )
    dtype = known or dtype or _default_dtype(array)
    _bits(array[:0] if array.ndim else array, dtype, what)
    return HostArray(array, dtype, back)


def to_numbers(array: Any, what: str) -> np.ndarray:
    """Any array of real numbers or bool, of any numpy type; bf16 and f8 as f64.

    Raises EncodingError when it is none.
    """
    numbers, known, _ = _open(array, what)
    if known is not None:
        return _numbers(np.ascontiguousarray(numbers), known)
    if numbers.dtype.kind not in "fiub":
        raise EncodingError(f"{what} is an array of {numbers.dtype}: legal are numbers")
    return numbers


def _open(array: Any, what: str) -> Tuple[np.ndarray, Optional[str], _Back]:
    """The array on the host, its element type where numpy has none, the way back."""
    if isinstance(array, np.ndarray):
        return _open_numpy(array)
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(array, torch.Tensor):
        return _open_torch(array, torch, what)
    if cupy is not None and isinstance(array, cupy.ndarray):
        return cupy.asnumpy(array), None, cupy.asarray
    if hasattr(array, "__cuda_array_interface__"):
        return _open_cuda(array, torch, cupy, what)
    if hasattr(array, "__dlpack__"):
        return _open_dlpack(array, what)
    raise EncodingError(f"{what} is a {type(array).__name__}: legal is {_LEGAL}")


def _open_numpy(array: np.ndarray) -> Tuple[np.ndarray, Optional[str], _Back]:
    """Those of ml_dtypes are numpy's, of types that numpy does not know."""
    known, bits = _BIT_TYPES.get(array.dtype.name, (None, None))
    if bits is None:
        return array, None, lambda result: result
    theirs = array.dtype

    def back(result: np.ndarray) -> np.ndarray:
        return result if result.dtype == np.bool_ else result.view(theirs)

    return array.view(bits), known, back


def _open_torch(
    tensor: Any, torch: Any, what: str
) -> Tuple[np.ndarray, Optional[str], _Back]:
    if tensor.is_meta or tensor.layout != torch.strided:
        raise EncodingError(
            f"{what} is a tensor on {tensor.device} of layout {tensor.layout}: legal "
            "is a strided one with elements"
        )
    # No reference to the tensor, whose memory the way back would keep.
    dtype, device = tensor.dtype, tensor.device
    name = str(dtype).rpartition(".")[2]
    known, bits = _BIT_TYPES.get(name, (None, None))
    host = tensor.detach().resolve_conj().resolve_neg().cpu()
    if bits is not None:
        # Signed, because old versions of torch have no wide unsigned integers.
        host = host.contiguous().view(torch.int16 if bits is np.uint16 else torch.uint8)

    def back(result: np.ndarray) -> Any:
        own = np.require(result, requirements=["C", "W"])
        if own.dtype == np.bool_:
            return torch.from_dlpack(own.view(np.uint8)).view(torch.bool).to(device)
        if bits is not None:
            own = own.view(np.int16 if bits is np.uint16 else np.uint8)
            return torch.from_dlpack(own).view(dtype).to(device)
        return torch.from_dlpack(own).to(device)

    array = _from_dlpack(host, what)
    return array if bits is None else array.view(bits), known, back


def _open_cuda(
    array: Any, torch: Any, cupy: Any, what: str
) -> Tuple[np.ndarray, Optional[str], _Back]:
    """Neither torch's nor cupy's, but one of them can copy it."""
    if cupy is not None:
        host = cupy.asnumpy(cupy.asarray(array))
    elif torch is not None and torch.cuda.is_available():
        host = _from_dlpack(torch.as_tensor(array, device="cuda").cpu(), what)
    else:
        raise EncodingError(
            f"{what} is a {type(array).__name__} on a GPU, which neither torch nor "
            "cupy is loaded to copy: import one of them, or pass a copy on the host"
        )
    return host, None, lambda result: result


def _open_dlpack(array: Any, what: str) -> Tuple[np.ndarray, Optional[str], _Back]:
    device = array.__dlpack_device__()[0]
    if int(device) not in _HOST_DEVICES:
        raise EncodingError(
            f"{what} is a {type(array).__name__} on device {int(device)} of DLPack: "
            "legal is the CPU; pass a copy on the host"
        )
    host, known, _ = _open_numpy(_from_dlpack(array, what))
    return host, known, lambda result: result


def _from_dlpack(array: Any, what: str) -> np.ndarray:
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError) as error:
        if not hasattr(array, "__array__"):
            raise EncodingError(
                f"{what} is a {type(array).__name__} that numpy cannot read: {error}"
            ) from None
    return np.asarray(array)

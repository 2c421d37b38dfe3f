# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs weights that lie on a GPU, there, by the kernel that the compiler makes.

The components are those of `canonical.encode`, bit by bit.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Optional, Tuple

import numpy as np

from ..bindings.library import available, device_chip, emulates
from ..compiler import CompileError
from ..encoding import Encoding, Packed, extents, packed_shapes
from ..interop.arrays import to_host
from ..interop.operands import is_torch, open_operand
from ..runtime.function import ALIGNMENT
from ..runtime.program import Program, compile

# Limits of the kernels that pack: docs/Runtime.md.
DTYPES = ("f32", "f16", "bf16", "f8E4M3FN", "f8E5M2", "i8")
_MOST_POSITIONS = 64
_Back = Callable[[np.ndarray], Any]


def has_kernel(encoding: Encoding, shape: Tuple[int, ...], dtype: str) -> bool:
    """Whether a kernel packs such a weight; the host packs any.

    Raises EncodingError when shape and encoding do not fit each other.
    """
    is_plain = not (encoding.is_free or encoding.is_shuffled or encoding.inner)
    if not is_plain or encoding.m > _MOST_POSITIONS or dtype not in DTYPES:
        return False
    return min(extents(encoding, shape)) > 0


def program_text(encoding: Encoding, shape: Tuple[int, ...], dtype: str) -> str:
    """MLIR of a function @pack that takes a dense weight and returns its values and
    its index."""

    def tensor(sizes: Tuple[int, ...], element: str) -> str:
        return f"tensor<{'x'.join(map(str, sizes))}x{element}>"

    shapes = packed_shapes(encoding, shape)
    dense = tensor(shape, dtype)
    parts = f"{tensor(shapes['values'], dtype)}, {tensor(shapes['index'], 'i8')}"
    return (
        f"func.func @pack(%dense: {dense}) -> ({parts}) {{\n"
        f"  %values, %index = nm_sparse.pack {encoding.mlir()} %dense\n"
        f"      : {dense} to {parts}\n"
        f"  return %values, %index : {parts}\n}}\n"
    )


@functools.lru_cache(maxsize=256)
def pack_program(
    encoding: Encoding, shape: Tuple[int, ...], dtype: str, chip: Optional[str] = None
) -> Program:
    """The program of `program_text`, compiled once. Raises CompileError."""
    text = program_text(encoding, shape, dtype)
    return compile(text, chip=chip, options=("--pack=device",))


def encode(
    weight: Any, encoding: Encoding, dtype: Optional[str]
) -> Optional[Tuple[Packed, _Back]]:
    """A weight of torch or cupy packed on the GPU that it is on, and the way back for
    a dense one on the host; None where the host is to pack it: it is no such array,
    has another pattern than kernels pack, or there is no compiler for this GPU.

    The components are arrays of the same library on this GPU. Waits for the GPU.
    Raises EncodingError as `canonical.encode` does.
    """
    sample = _sample(weight)
    if sample is None or emulates() or not available():
        return None
    like = to_host(sample, dtype)
    shape = tuple(weight.shape)
    if not has_kernel(encoding, shape, like.dtype):
        return None
    dense = _contiguous(weight)
    chip = device_chip(open_operand(dense, "weight").device)
    if chip is None:
        return None
    try:
        program = pack_program(encoding, shape, like.dtype, chip)
    except CompileError:  # a GPU that the compiler does not know
        return None
    values, index = program(dense)
    components = {"values": values, "index": _unsigned(index)}
    return Packed(components, encoding, shape, like.dtype), like.restore


def _sample(weight: Any) -> Optional[Any]:
    """An empty array of the kind of `weight` where it is an array on a GPU, of which
    the memory and the stream are known."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(weight, torch.Tensor):
        is_plain = weight.device.type == "cuda" and weight.layout == torch.strided
        return weight.new_empty(0) if is_plain else None
    if cupy is not None and isinstance(weight, cupy.ndarray):
        with weight.device:
            return cupy.empty(0, weight.dtype)
    return None


def _contiguous(weight: Any) -> Any:
    """The weight row by row without gaps, from an address that kernels take."""
    if is_torch(weight):
        dense = weight.detach().resolve_conj().resolve_neg().contiguous()
        return dense.clone() if dense.data_ptr() % ALIGNMENT else dense
    cupy = sys.modules["cupy"]
    with weight.device:
        dense = cupy.ascontiguousarray(weight)
        return dense.copy() if dense.data.ptr % ALIGNMENT else dense


def _unsigned(index: Any) -> Any:
    """Bytes, which programs know without a sign, as uint8."""
    if is_torch(index):
        return index.view(sys.modules["torch"].uint8)
    return index.view(np.uint8)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers by compiled kernels: from tensors on a GPU to a program and back.

A program reads the weight in the packed form that its kernels want, which may be
another than the canonical one. Such a form is made once for each weight, and made
anew when the weight has changed. Without the compiler's library the weight is
unpacked, and multiplied densely.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from .ops import as_rows, unpacked_linear
from .spec import LinearSpec
from .storage import to_storage


@functools.lru_cache(maxsize=None)
def chip_of(device: torch.device) -> str:
    """The chip for which a GPU's kernels are compiled, such as sm_90a."""
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


@functools.lru_cache(maxsize=None)
def _compiler() -> Optional[Any]:
    """`nm_sparse.program`, or None, with a warning, where there is no compiler."""
    try:
        from .. import program  # type: ignore[attr-defined]
    except (ImportError, OSError) as error:
        _warn(str(error))
        return None
    return program


def _warn(reason: str) -> None:
    warnings.warn(
        "nm_sparse multiplies by unpacked weights, which is slower than dense layers: "
        f"its compiler's library is missing ({reason})",
        RuntimeWarning,
        stacklevel=2,
    )


@functools.lru_cache(maxsize=None)
def _program(spec: LinearSpec, chip: str) -> Optional[Any]:
    """The compiled program of a spec; None where the library cannot be loaded."""
    compiler = _compiler()
    if compiler is None:
        return None
    try:
        return compiler.linear_program(spec, chip)
    except (ImportError, OSError) as error:
        _warn(str(error))
        return None


class _Stored:
    """Weights in the forms that kernels read, as long as their `values` live."""

    def __init__(self) -> None:
        self._forms: Dict[Tuple[Any, ...], Tuple[Any, Any, List[Tensor]]] = {}

    def get(self, weight: Sequence[Tensor], s: LinearSpec, form: str) -> List[Tensor]:
        """The components of `weight` in `form`, of contiguous tensors."""
        if form == "canonical":
            return [part.contiguous() for part in weight]
        parts = [part.detach() for part in weight]
        # What is made while a graph is captured exists only when it is replayed, and
        # inference tensors do not say when they change.
        is_captured = parts[0].is_cuda and torch.cuda.is_current_stream_capturing()
        if is_captured or any(part.is_inference() for part in parts):
            return to_storage(parts, s, form)
        # A weak reference keeps the name of the memory from being used again.
        reference = StorageWeakRef(weight[0].untyped_storage())
        key = (reference.cdata, weight[0].storage_offset(), form, s)
        version = [(part.data_ptr(), part._version) for part in weight]
        known = self._forms.get(key)
        if known is None or known[1] != version:
            self._forms = {
                name: entry
                for name, entry in self._forms.items()
                if not entry[0].expired()
            }
            known = (reference, version, to_storage(parts, s, form))
            self._forms[key] = known
        return known[2]


_stored = _Stored()


def run_linear(
    x: Tensor, weight: Sequence[Tensor], bias: Optional[Tensor], spec: LinearSpec
) -> Tensor:
    """activation(x W^T + bias) on the current stream of x's GPU.

    x:       [..., K], in any strides.
    weight:  the canonical components.

    Returns [..., N] in x's type. A type that has no kernels (float64, or 8 bits with
    wider activations) is unpacked, and multiplied densely.
    """
    has_kernels = spec.dtype != "f64" and x.dtype == spec.torch_dtype
    program = _program(spec, chip_of(x.device)) if has_kernels else None
    if program is None or x.numel() == 0:
        return unpacked_linear(x, weight, bias, spec)
    parts = _stored.get(weight, spec, program.storage)
    rows = as_rows(x.detach()).contiguous()
    flat = None if bias is None else bias.detach().contiguous()
    y = _launch(program, rows, parts, flat)
    return y.reshape(x.shape[:-1] + (spec.shape[0],))


def _launch(
    program: Any, x: Tensor, parts: List[Tensor], bias: Optional[Tensor]
) -> Tensor:
    """[tokens, N], on the current stream of x's GPU."""
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device).cuda_stream
        return program(x, parts, bias, stream)

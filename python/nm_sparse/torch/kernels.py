# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers by compiled kernels: from tensors on a GPU to a program and back.

A program reads the weight in the packed form that its kernels want, which may be
another than the canonical one. Such a form is made once for each weight, and made
anew when the weight has changed. Without the compiler's library the weight is
unpacked, and multiplied densely.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from .. import program as compiler
from ..encoding import Encoding, EncodingError
from ..library import LibraryNotFoundError
from ..specs import LinearSpec as ProgramSpec
from .ops import as_rows, unpacked_linear
from .spec import LinearSpec
from .storage import to_storage
from .weight import PackedWeight

if TYPE_CHECKING:
    from .linear import NMLinear

_ALIGNMENT = 16  # bytes, of what kernels read
_CANONICAL, _BITMAP = (1, 2, 7, 8), (4, 6)  # layouts of docs/Encoding.md
_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32}


@functools.lru_cache(maxsize=None)
def chip_of(device: torch.device) -> str:
    """The chip for which a GPU's kernels are compiled, such as sm_90a."""
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


class StoredForm:
    """How kernels read a weight.

    spec:         of its layer.
    description:  of the weight, in the manifest of a program.

    Raises EncodingError for a layout that layers do not have.
    """

    def __init__(self, spec: LinearSpec, description: Mapping[str, Any]) -> None:
        self.spec = spec
        self.encoding = Encoding.parse(description["encoding"])
        self.names = [one["name"] for one in description["components"]]
        layout = description["packed_layout"]
        if layout not in _CANONICAL + _BITMAP:
            raise EncodingError(
                f"kernels read layout {layout}, which layers do not have: legal are "
                f"{', '.join(map(str, sorted(_CANONICAL + _BITMAP)))}"
            )
        self.storage = "canonical" if layout in _CANONICAL else "bitmap"

    def store(self, weight: Sequence[Tensor]) -> List[Tensor]:
        """The components as the kernels read them, of the canonical ones."""
        spec = self.spec
        if self.encoding != spec.encoding:
            # All weights of the layer's encoding are of this one, too.
            names = list(spec.components)
            own = PackedWeight(
                dict(zip(names, weight)), spec.encoding, torch.Size(spec.shape)
            )
            other = PackedWeight.from_dense(own.to_dense().detach(), self.encoding)
            spec = LinearSpec(self.encoding, spec.shape, spec.dtype)
            weight = list(other.components.values())
        parts = dict(
            zip(
                _stored_names(spec, self.storage),
                to_storage(weight, spec, self.storage),
            )
        )
        return [_as_operand(parts[name]) for name in self.names]


class LinearKernels(StoredForm):
    """The compiled program of a linear layer, as layers of torch call it.

    spec:      the layer.
    has_bias:  whether it has a bias.
    chip:      sm_90a, ...
    gpu:       whose measured rates choose kernels, or None.

    Raises CompileError, and LibraryNotFoundError.
    """

    def __init__(
        self, spec: LinearSpec, has_bias: bool, chip: str, gpu: Optional[str] = None
    ) -> None:
        self.program = compiler.compile(
            ProgramSpec(
                spec.encoding.mlir(), *spec.shape, spec.dtype, has_bias, spec.activation
            ),
            chip=chip,
            gpu=gpu,
        )
        self.function = self.program["linear"]
        self.outputs = [spec.shape[0]]
        (weight,) = self.function.weights
        super().__init__(spec, weight)

    def __call__(
        self, x: Tensor, parts: Sequence[Tensor], bias: Optional[Tensor], stream: int
    ) -> Tensor:
        """y [tokens, N] for x [tokens, K], contiguous, on the stream of this address.

        parts:  of `store`.
        """
        y = x.new_empty((x.shape[0], self.spec.shape[0]))
        rest = [y] if bias is None else [bias, y]
        result = self.function.direct(stream, x, tuple(parts), *rest)
        if result is not None:
            return result
        # By what takes longer, and says which argument is wrong. Kernels of shuffled
        # weights do not write to y.
        whole = compiler.PreparedWeight(tuple(parts), None)
        return self.function(x, whole, *rest, stream=stream)


def _stored_names(spec: LinearSpec, storage: str) -> List[str]:
    names = list(spec.components)
    if storage == "bitmap":
        names[len(spec.encoding.levels)] = "bits"
    return names


def _as_operand(part: Tensor) -> Tensor:
    """A component as programs declare it: contiguous, where kernels can read it, and
    integers signed."""
    part = aligned(part.detach().contiguous())
    if part.dtype.is_floating_point:
        return part
    return part.view(_SIGNED[part.element_size()])


def aligned(x: Tensor) -> Tensor:
    """x, or a copy of it that begins where kernels can read."""
    return x if x.data_ptr() % _ALIGNMENT == 0 else x.clone()


def stream_of(x: Tensor) -> int:
    """The address of the current stream of x's GPU."""
    return torch.cuda.current_stream(x.device).cuda_stream


def _warn(reason: str) -> None:
    warnings.warn(
        "nm_sparse multiplies by unpacked weights, which is slower than dense layers: "
        f"its compiler's library is missing ({reason})",
        RuntimeWarning,
        stacklevel=2,
    )


@functools.lru_cache(maxsize=None)
def find_kernels(
    spec: LinearSpec, has_bias: bool, device: torch.device
) -> Optional[LinearKernels]:
    """The compiled program of a layer on a GPU; None, with a warning the first time,
    where the compiler's library cannot be loaded."""
    chip = chip_of(device)
    gpu = device_gpu_of(device) if chip == compiler.DEFAULT_CHIP else None
    try:
        return LinearKernels(spec, has_bias, chip, gpu)
    except LibraryNotFoundError as error:
        _warn(str(error))
        return None


def device_gpu_of(device: torch.device) -> Optional[str]:
    """h100, h200, or None where the compiler knows no rates of the GPU."""
    name = torch.cuda.get_device_name(device).lower()
    return next((gpu for gpu in ("h200", "h100") if gpu in name), None)


@dataclasses.dataclass(frozen=True)
class _Form:
    """A weight as kernels read it, with the memory that it is of, the state of that,
    and what its making has to be waited for on other streams."""

    memory: StorageWeakRef
    version: List[Tuple[int, int]]
    parts: List[Tensor]
    stream: Optional[int]
    made: Any = None

    @staticmethod
    def make(
        memory: StorageWeakRef,
        version: List[Tuple[int, int]],
        weight: Sequence[Tensor],
        kernels: StoredForm,
    ) -> "_Form":
        parts = kernels.store(weight)
        if not weight[0].is_cuda:
            return _Form(memory, version, parts, None)
        stream = torch.cuda.current_stream(weight[0].device)
        made = stream.record_event()
        return _Form(memory, version, parts, stream.cuda_stream, made)

    def use(self) -> List[Tensor]:
        """The parts, for kernels on the current stream."""
        if self.made is not None:
            stream = torch.cuda.current_stream(self.parts[0].device)
            if stream.cuda_stream != self.stream:
                stream.wait_event(self.made)
                for part in self.parts:
                    part.record_stream(stream)
        return self.parts


def _is_captured(tensor: Tensor) -> bool:
    """Whether what is done with it now becomes part of a CUDA graph."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


class _Stored:
    """Weights in the forms that kernels read, as long as their `values` live."""

    def __init__(self) -> None:
        self._forms: Dict[Tuple[Any, ...], _Form] = {}

    def get(self, weight: Sequence[Tensor], kernels: StoredForm) -> List[Tensor]:
        """The components of `weight` as `kernels` read them."""
        parts = [part.detach() for part in weight]
        if kernels.storage == "canonical" and kernels.encoding == kernels.spec.encoding:
            return [_as_operand(part) for part in parts]
        # Inference tensors do not say when they change.
        if any(part.is_inference() for part in parts):
            return kernels.store(parts)
        # A weak reference keeps the name of the memory from being used again.
        memory = StorageWeakRef(weight[0].untyped_storage())
        form = (kernels.storage, kernels.encoding)
        key = (memory.cdata, weight[0].storage_offset(), form, kernels.spec)
        version = [(part.data_ptr(), part._version) for part in weight]
        known = self._forms.get(key)
        is_current = known is not None and known.version == version
        if _is_captured(parts[0]):
            # What is made now is there when the graph is replayed, and not before; a
            # weight that is trained may change in between. torch has waited for all
            # work before the capture.
            if known is not None and is_current and not weight[0].requires_grad:
                return known.parts
            return kernels.store(parts)
        if known is None or not is_current:
            # A copy, because other threads put in theirs.
            for name, entry in list(self._forms.items()):
                if entry.memory.expired():
                    self._forms.pop(name, None)
            known = _Form.make(memory, version, parts, kernels)
            self._forms[key] = known
        return known.use()


_stored = _Stored()


def find_eager(
    layer: "NMLinear",
) -> Optional[Tuple[LinearKernels, List[List[Tensor]]]]:
    """Kernels of a layer on a GPU and its weight as they read it; None where there are
    none that write to what they are given."""
    weight = layer.components()
    spec = LinearSpec.parse(layer.spec)
    if spec.dtype == "f64":
        return None
    kernels = find_kernels(spec, layer.bias is not None, weight[0].device)
    if kernels is None or not kernels.function.writes_to_arguments:
        return None
    return kernels, [_stored.get(weight, kernels)]


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
    kernels = find_kernels(spec, bias is not None, x.device) if has_kernels else None
    if kernels is None or x.numel() == 0:
        return unpacked_linear(x, weight, bias, spec)
    parts = _stored.get(weight, kernels)
    rows = aligned(as_rows(x.detach()).contiguous())
    flat = None if bias is None else aligned(bias.detach().contiguous())
    y = kernels(rows, parts, flat, stream_of(x))
    return y.reshape(x.shape[:-1] + (spec.shape[0],))

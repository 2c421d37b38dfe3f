# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers by compiled kernels: from tensors on a GPU to a program and back.

A program reads the weight in the packed form that its kernels want (`stored_forms.py`).
Without the compiler's library the weight is unpacked, and multiplied densely.
"""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ...bindings.library import LibraryNotFoundError
from ...encoding import Encoding
from ...layers.specs import LinearSpec as ProgramSpec
from ...runtime import program as compiler
from ..weight.spec import LinearSpec
from ..weight.stored_forms import STORED, StoredForm, aligned, storage_of
from ..weight.token_counts import finds_kernels, numbers_of, options_of, settled
from ..weight.weight import LIBRARY
from .dense_copies import run_dense
from .ops import as_rows, check_operands, unpacked_linear

if TYPE_CHECKING:
    from .linear import NMLinear


@functools.lru_cache(maxsize=None)
def chip_of(device: torch.device) -> str:
    """The chip for which a GPU's kernels are compiled, such as sm_90a."""
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


class LinearKernels(StoredForm):
    """The compiled program of a linear layer, as layers of torch call it.

    spec:      the layer, with a weight in canonical form; with `decode_to` the program
               is that of few tokens.
    has_bias:  whether it has a bias.
    chip:      sm_90a, ...
    gpu:       whose measured rates choose kernels, or None.
    storage:   the form in which kernels must read the weight, or None.

    Raises CompileError, and LibraryNotFoundError.
    """

    def __init__(
        self,
        spec: LinearSpec,
        has_bias: bool,
        chip: str,
        gpu: Optional[str] = None,
        storage: Optional[str] = None,
    ) -> None:
        pattern, own = spec.encoding.mlir(), (has_bias, spec.activation)
        layer = ProgramSpec(pattern, *spec.shape, spec.dtype, *own)
        options = options_of(storage)
        if spec.decode_to is not None:
            options = decoding_options(layer, spec.encoding, chip, gpu)
        numbers = numbers_of(spec)
        self.program = compiler.compile(layer, chip, gpu, numbers, options=options)
        self.function = self.program["linear"]
        self.outputs = [spec.shape[0]]
        (weight,) = self.function.weights
        super().__init__(spec, weight)

    @property
    def forms(self) -> List[StoredForm]:
        """In which kernels read the weights: this is that of the only one."""
        return [self]

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


def decoding_options(
    layer: ProgramSpec, encoding: Encoding, chip: str, gpu: Optional[str]
) -> List[str]:
    """Options that have a program of few tokens read the weight in the form that the
    compiler chooses for one token.

    encoding:  of the layer.
    """
    program = compiler.compile(layer, chip, gpu, tokens=(1,))
    (weight,) = program["linear"].weights
    options = options_of(storage_of(weight["packed_layout"]))
    is_own = Encoding.parse(weight["encoding"]) == encoding
    return [*options, "--embed=never"] if is_own else options


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


@finds_kernels
def find_kernels(
    spec: LinearSpec,
    has_bias: bool,
    device: torch.device,
    storage: Optional[str] = None,
) -> Optional[LinearKernels]:
    """The compiled program of a layer on a GPU; None, with a warning the first time,
    where the compiler's library cannot be loaded. The form of the weight in `spec` is
    the canonical one: the program of all forms is one."""
    chip = chip_of(device)
    gpu = device_gpu_of(device) if chip == compiler.DEFAULT_CHIP else None
    try:
        return LinearKernels(spec, has_bias, chip, gpu, storage)
    except LibraryNotFoundError as error:
        _warn(str(error))
        return None


def device_gpu_of(device: torch.device) -> Optional[str]:
    """h100, h200, or None where the compiler knows no rates of the GPU."""
    name = torch.cuda.get_device_name(device).lower()
    return next((gpu for gpu in ("h200", "h100") if gpu in name), None)


def find_eager(
    layer: "NMLinear", decodes: bool = False
) -> Optional[Tuple[LinearKernels, List[List[Tensor]]]]:
    """Kernels of a layer on a GPU and its weight as they read it; None where there are
    none that write to what they are given.

    decodes:  whether they are those of few tokens, of a layer with `decode_to`.
    """
    weight = layer.components()
    spec = LinearSpec.parse(layer.call_spec if decodes else layer.spec)
    if spec.dtype == "f64":
        return None
    kernels = find_kernels(spec.canonical, layer.bias is not None, weight[0].device)
    if kernels is None or not kernels.function.writes_to_arguments:
        return None
    parts = STORED.get(weight, kernels, spec.storage)
    if layer.decode_to is not None:
        STORED.follow(weight, spec.storage)
    return kernels, [parts]


def run_linear(
    x: Tensor, weight: Sequence[Tensor], bias: Optional[Tensor], spec: LinearSpec
) -> Tensor:
    """activation(x W^T + bias) on the current stream of x's GPU.

    x:       [..., K], in any strides.
    weight:  the components in the form `spec.storage`.

    Returns [..., N] in x's type. A type that has no kernels (float64, or 8 bits with
    wider activations) is unpacked, and multiplied densely. From `spec.dense_from` rows
    on x is multiplied by a dense copy, which is kept; up to `spec.decode_to` rows by
    the form of the weight for few tokens, which is kept, too.
    """
    by_copy = run_dense(x, [(weight, bias, spec)], STORED)
    if by_copy is not None:
        return by_copy[0]
    has_kernels = spec.dtype != "f64" and x.dtype == spec.torch_dtype
    kernels = None
    if has_kernels:
        own = settled(spec, x).canonical
        kernels = find_kernels(own, bias is not None, x.device)
    if kernels is None or x.numel() == 0:
        return unpacked_linear(x, weight, bias, spec)
    parts = STORED.get(weight, kernels, spec.storage)
    if spec.decode_to is not None:  # graphs may read the other form
        STORED.follow(weight, spec.storage)
    rows = aligned(as_rows(x.detach()).contiguous())
    flat = None if bias is None else aligned(bias.detach().contiguous())
    y = kernels(rows, parts, flat, stream_of(x))
    return y.reshape(x.shape[:-1] + (spec.shape[0],))


def _linear_cuda(
    x: Tensor, weight: List[Tensor], bias: Optional[Tensor], spec: str
) -> Tensor:
    s = LinearSpec.parse(spec)
    check_operands(x, weight, bias, s)
    return run_linear(x, weight, bias, s)


LIBRARY.impl("linear", _linear_cuda, "CUDA")

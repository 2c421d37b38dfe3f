# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of one input by compiled kernels: one program for all of them.

Weights are stored as `kernels.py` does for single layers. Without the compiler's
library, or for types that have no kernels, the layers run one after the other. With as
many tokens as all of them ask for, they run on dense copies (`dense_copies.py`).
"""

from __future__ import annotations

import functools
from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ...bindings.library import LibraryNotFoundError
from ...gated_mlp import gated_mlp_mlir
from ...linear_shared import SharedLayer, linear_shared_mlir
from ...runtime import program as compiler
from ..weight.spec import LinearSpec
from ..weight.stored_forms import STORED, StoredForm, aligned
from ..weight.token_counts import finds_kernels, numbers_of, options_of, settled
from ..weight.weight import LIBRARY
from . import kernels
from .dense_copies import run_dense
from .mlp_ops import check_gated, check_mlp
from .ops import as_rows
from .shared_ops import Layer, check_shared


class SharedKernels:
    """A compiled program of several layers of one input.

    source:   its text, whose function takes x, the weights, further arrays, and those
              that the results are written to.
    specs:    of the layers, in the order of the weights.
    outputs:  columns of each result.
    dtype:    of results; that of x by default.
    storage:  the form in which kernels must read the weights, or None.
    feature_major:  whether the function takes x^T, in any pitch.

    Raises CompileError, and LibraryNotFoundError.
    """

    def __init__(
        self,
        source: str,
        specs: Sequence[LinearSpec],
        outputs: Sequence[int],
        chip: str,
        gpu: Optional[str] = None,
        dtype: Optional[torch.dtype] = None,
        storage: Optional[str] = None,
        feature_major: bool = False,
    ) -> None:
        self.dtype, self.feature_major = dtype, feature_major
        self.program = compiler.compile(
            source,
            chip=chip,
            gpu=gpu,
            tokens=numbers_of(specs[0]),
            options=options_of(storage),
        )
        self.function = next(iter(self.program.functions.values()))
        self.outputs = list(outputs)
        self.forms = [
            StoredForm(spec, one) for spec, one in zip(specs, self.function.weights)
        ]

    def __call__(
        self,
        x: Tensor,
        weights: Sequence[Sequence[Tensor]],
        others: Sequence[Tensor],
        stream: int,
    ) -> List[Tensor]:
        """A result [tokens, N] of each layer, for x [tokens, K], contiguous, or stored
        feature-major where the program takes it so.

        weights:  in their stored forms.
        others:   what the function takes between weights and results.
        stream:   its address.
        """
        dtype = self.dtype or x.dtype
        outs = [x.new_empty((x.shape[0], n), dtype=dtype) for n in self.outputs]
        whole = [compiler.PreparedWeight(tuple(parts), None) for parts in weights]
        # Kernels of shuffled weights do not write to the results: those take longer.
        given = x.t() if self.feature_major else x
        results = self.function(given, *whole, *others, *outs, stream=stream)
        return list(results) if isinstance(results, tuple) else [results]

    @functools.cached_property
    def _cases(self) -> List[Tuple[Optional[int], bool]]:
        """Up to how many tokens kernels are the same, None for any, and whether they
        transpose x."""
        functions = {one["name"]: one for one in self.program.manifest["functions"]}
        whole = functions[self.function.name]
        found = []
        for case in whole.get("cases", [{"function": whole["name"]}]):
            launches = functions[case["function"]]["launches"]
            named = [one["kernel"].endswith("_transpose") for one in launches]
            found.append((case.get("at_most"), any(named)))
        return found

    def transposes(self, tokens: Optional[int] = None) -> bool:
        """Whether the kernels for so many tokens transpose x first; by default, those
        for some number."""
        if tokens is None:
            return any(is_transposed for _, is_transposed in self._cases)
        return next(
            is_transposed
            for at_most, is_transposed in self._cases
            if at_most is None or tokens <= at_most
        )


@finds_kernels
def find_gated(
    spec: LinearSpec, device: torch.device, storage: Optional[str] = None
) -> Optional[SharedKernels]:
    """The program of a gated MLP on a GPU; None where there is no compiler. Specs are
    those of weights in canonical form, as for `find_kernels`."""
    n, k = spec.shape
    text = gated_mlp_mlir(k, n, spec.encoding.mlir(), spec.dtype, spec.activation)
    return make_kernels(text, (spec, spec), (n,), device, storage=storage)


@finds_kernels
def find_mlp(
    gate: LinearSpec,
    down: LinearSpec,
    device: torch.device,
    storage: Optional[str] = None,
) -> Optional[SharedKernels]:
    """The program of a whole MLP on a GPU, as `find_gated`."""
    n, k = gate.shape
    encodings = gate.encoding.mlir(), down.encoding.mlir()
    text = gated_mlp_mlir(
        k, n, encodings[0], gate.dtype, gate.activation, down=encodings[1], name="mlp"
    )
    return make_kernels(text, (gate, gate, down), (k,), device, storage=storage)


@finds_kernels
def find_shared(
    specs: Tuple[LinearSpec, ...],
    biases: Tuple[bool, ...],
    device: torch.device,
    storage: Optional[str] = None,
) -> Optional[SharedKernels]:
    """The program of several layers on a GPU; None where there is no compiler."""
    layers = [
        SharedLayer(spec.shape[0], spec.encoding.mlir(), bias, spec.activation)
        for spec, bias in zip(specs, biases)
    ]
    text = linear_shared_mlir(specs[0].shape[1], layers, specs[0].dtype)
    outputs = [spec.shape[0] for spec in specs]
    return make_kernels(text, specs, outputs, device, storage=storage)


def make_kernels(
    text: str,
    specs: Sequence[LinearSpec],
    outputs: Sequence[int],
    device: torch.device,
    dtype: Optional[torch.dtype] = None,
    storage: Optional[str] = None,
    feature_major: bool = False,
) -> Optional[SharedKernels]:
    """The kernels of a program; None, with a warning, without the library."""
    chip = kernels.chip_of(device)
    is_known = chip == compiler.DEFAULT_CHIP
    gpu = kernels.device_gpu_of(device) if is_known else None
    try:
        own = dtype, storage, feature_major
        return SharedKernels(text, specs, outputs, chip, gpu, *own)
    except LibraryNotFoundError as error:
        kernels._warn(str(error))
        return None


def find_eager(
    made: Optional[SharedKernels],
    weights: Sequence[Sequence[Tensor]],
    specs: Sequence[LinearSpec],
) -> Optional[Tuple[SharedKernels, List[List[Tensor]]]]:
    """Kernels of layers and their weights as they read them; None where there are none
    that write to what they are given."""
    if made is None or not made.function.writes_to_arguments:
        return None
    return made, _store(made, weights, specs)


def _store(
    made: SharedKernels,
    weights: Sequence[Sequence[Tensor]],
    specs: Sequence[LinearSpec],
) -> List[List[Tensor]]:
    """The weights as the kernels read them."""
    return [
        STORED.get(weight, form, spec.storage)
        for weight, form, spec in zip(weights, made.forms, specs)
    ]


def has_kernels(x: Tensor, specs: Sequence[LinearSpec]) -> bool:
    """Whether there are kernels for x and weights of these types."""
    types = {spec.torch_dtype for spec in specs}
    return types == {x.dtype} and x.dtype != torch.float64 and x.numel() > 0


def run(
    made: SharedKernels,
    x: Tensor,
    weights: Sequence[Sequence[Tensor]],
    specs: Sequence[LinearSpec],
    others: Sequence[Tensor],
) -> List[Tensor]:
    """The results [..., N] of a program for x [..., K], on the current stream.

    weights:  the components in the forms of `specs`.
    others:   what the function takes between weights and results.
    """
    stored = _store(made, weights, specs)
    rows = aligned(as_rows(x.detach()).contiguous())
    flat = [aligned(one.detach().contiguous()) for one in others]
    results = made(rows, stored, flat, kernels.stream_of(x))
    return [y.reshape(x.shape[:-1] + (y.shape[-1],)) for y in results]


def run_gated_mlp(
    x: Tensor,
    gate: Sequence[Tensor],
    up: Sequence[Tensor],
    specs: Tuple[LinearSpec, LinearSpec],
) -> Tensor:
    """activation(x Wg^T) * (x Wu^T) on the current stream of x's GPU.

    x:      [..., K], in any strides.
    specs:  of the gate, with its activation, and of what is multiplied by it.

    Returns [..., N] in x's type.
    """
    layers = [(gate, None, specs[0]), (up, None, specs[1])]
    by_copies = run_dense(x, layers, STORED, specs[0].activation)
    if by_copies is not None:
        return by_copies[0]
    made = None
    if has_kernels(x, specs):
        made = find_gated(settled(specs[0], x).canonical, x.device)
    if made is None:
        first = kernels.run_linear(x, gate, None, specs[0])
        return first * kernels.run_linear(x, up, None, specs[1])
    return run(made, x, [gate, up], specs, [])[0]


def run_mlp(
    x: Tensor,
    weights: Sequence[Sequence[Tensor]],
    specs: Tuple[LinearSpec, LinearSpec, LinearSpec],
) -> Tensor:
    """(activation(x Wg^T) * (x Wu^T)) Wd^T on the current stream of x's GPU.

    x:        [..., K], in any strides.
    weights:  of gate, up and down.
    specs:    of these; that of the gate has the activation.

    Returns [..., K] in x's type.
    """
    layers = [(weight, None, spec) for weight, spec in zip(weights, specs)]
    by_copies = run_dense(x, layers, STORED, specs[0].activation)
    if by_copies is not None:
        return by_copies[0]
    made = None
    if has_kernels(x, specs):
        gate, down = (settled(spec, x).canonical for spec in specs[::2])
        made = find_mlp(gate, down, x.device)
    if made is None:
        inside = run_gated_mlp(x, weights[0], weights[1], specs[:2])
        return kernels.run_linear(inside, weights[2], None, specs[2])
    return run(made, x, weights, specs, [])[0]


def run_shared(x: Tensor, layers: Sequence[Layer]) -> List[Tensor]:
    """activation(x W^T + bias) of each layer, on the current stream of x's GPU.

    x:  [..., K], in any strides.

    Returns [..., N] in x's type for each layer.
    """
    by_copies = run_dense(x, layers, STORED)
    if by_copies is not None:
        return by_copies
    specs = tuple(spec for _, _, spec in layers)
    biases = [bias for _, bias, _ in layers if bias is not None]
    made = None
    if has_kernels(x, specs):
        has_bias = tuple(bias is not None for _, bias, _ in layers)
        canonical = tuple(settled(spec, x).canonical for spec in specs)
        made = find_shared(canonical, has_bias, x.device)
    if made is None:
        return [kernels.run_linear(x, *layer) for layer in layers]
    return run(made, x, [weight for weight, _, _ in layers], specs, biases)


def _gated_cuda(x: Tensor, gate: List[Tensor], up: List[Tensor], spec: str) -> Tensor:
    return run_gated_mlp(x, gate, up, check_gated(x, gate, up, spec))


def _mlp_cuda(
    x: Tensor, gate: List[Tensor], up: List[Tensor], down: List[Tensor], spec: str
) -> Tensor:
    return run_mlp(x, (gate, up, down), check_mlp(x, gate, up, down, spec))


def _shared_cuda(x: Tensor, *operands: Any) -> List[Tensor]:
    return run_shared(x, check_shared(x, *operands))


LIBRARY.impl("gated_mlp", _gated_cuda, "CUDA")
LIBRARY.impl("mlp", _mlp_cuda, "CUDA")
LIBRARY.impl("linear_shared", _shared_cuda, "CUDA")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of x and weights with scales by compiled kernels, which apply the scales to
their sums.

Weights are stored as `kernels.py` does for layers without scales. Products of wide
panels read x feature-major: elements that are stored so are given to programs as they
are, and to others as a copy (`feature_major.py` says which layers ask for them).
Patterns that have no
kernels of 8 bits, and layers of as many tokens as they ask for, run on dense copies of
their elements (`scaled_dense.py`).
"""

from __future__ import annotations

import warnings
from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ...gated_mlp import gated_mlp_mlir
from ...layers.specs import LinearSpec as ProgramSpec
from ...linear_shared import SharedLayer, linear_shared_mlir
from ...runtime.program import CompileError
from ..weight.spec import LinearSpec, common_dense_from
from ..weight.stored_forms import STORED, aligned
from ..weight.token_counts import finds_kernels, settled
from ..weight.token_layout import is_feature_major
from ..weight.weight import LIBRARY
from .kernels import stream_of
from .ops import as_rows
from .scaled_dense import dense_products
from .scaled_ops import gated_layers, one_layer, several_layers, unpacked_scaled
from .shared_kernels import SharedKernels, make_kernels
from .shared_ops import Layer

K_MAJOR = "k_major"  # the storage of weights whose products read x feature-major


def _text(
    specs: Sequence[LinearSpec],
    biases: Sequence[bool],
    x_scale: str,
    gated: bool,
    feature_major: bool,
) -> str:
    """The program of some layers, without storage."""
    first = specs[0]
    n, k = first.shape
    kinds = dict(dtype=first.elements, result=first.dtype, x_scale=x_scale)
    kinds["feature_major"] = feature_major
    if gated:
        pattern = first.encoding.mlir()
        return gated_mlp_mlir(k, n, pattern, activation=first.activation, **kinds)
    if len(specs) == 1:
        more = dict(bias=biases[0], activation=first.activation)
        return ProgramSpec(first.encoding.mlir(), n, k, **more, **kinds).mlir()
    layers = [
        SharedLayer(spec.shape[0], spec.encoding.mlir(), bias, spec.activation)
        for spec, bias in zip(specs, biases)
    ]
    return linear_shared_mlir(k, layers, **kinds)


@finds_kernels
def find_scaled(
    specs: Tuple[LinearSpec, ...],
    biases: Tuple[bool, ...],
    x_scale: str,
    gated: bool,
    device: torch.device,
    feature_major: bool = False,
    storage: Optional[str] = None,
) -> Optional[SharedKernels]:
    """The program of layers on a GPU; None, with a warning the first time, where there
    is no compiler or the pattern has no kernels of 8 bits.

    specs:    of weights in canonical form.
    x_scale:  "token" or "tensor".
    gated:    whether they are gate and up of an MLP.
    feature_major:  whether x is stored so; weights are read K-major then.
    """
    unscaled = [spec.unscaled for spec in specs]
    outputs = [spec.shape[0] for spec in specs[: 1 if gated else None]]
    dtype = specs[0].torch_dtype
    storage = K_MAJOR if feature_major else storage
    try:
        text = _text(specs, biases, x_scale, gated, feature_major)
        own = unscaled, outputs, device, dtype, storage, feature_major
        return make_kernels(text, *own)
    except CompileError as error:
        if feature_major:  # the program for other x is used
            return None
        warnings.warn(
            f"nm_sparse multiplies by dense copies of elements of {specs[0].elements}, "
            f"which take memory: the pattern has no kernels for them ({error})",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def find_feature_major(
    specs: Tuple[LinearSpec, ...], *own: Any
) -> Optional[SharedKernels]:
    """The program of layers for x^T; None where that for other x does not read the
    weights K-major, as this one does.

    own:  as for `find_scaled`, up to the device.
    """
    if any((spec.dtype, spec.elements) != _types(specs[0]) for spec in specs):
        return None
    usual = find_scaled(specs, *own)
    if usual is None or any(form.storage != K_MAJOR for form in usual.forms):
        return None
    made = find_scaled(specs, *own, True)
    return made if made is not None and _keys(made) == _keys(usual) else None


def _types(spec: LinearSpec) -> Tuple[str, Optional[str]]:
    return spec.dtype, spec.elements


def _kind(x_scale: Tensor) -> str:
    return "tensor" if x_scale.ndim == 0 else "token"


def find_layers(
    layers: Sequence[Layer],
    kind: str,
    gated: bool,
    device: torch.device,
    feature_major: bool = False,
) -> Optional[SharedKernels]:
    """`find_scaled` of the operands of an operator; None for types without kernels, and
    for an x that is stored feature-major, where kernels for others do not read the
    weights K-major as they do."""
    specs = tuple(spec.canonical for _, _, spec in layers)
    if any(
        (spec.dtype, spec.elements) != (specs[0].dtype, specs[0].elements)
        or spec.dtype == "f64"
        for spec in specs
    ):
        return None
    biases = tuple(bias is not None for _, bias, _ in layers)
    find = find_feature_major if feature_major else find_scaled
    return find(specs, biases, kind, gated, device)


def _keys(made: SharedKernels) -> List[str]:
    """In which forms the kernels read weights."""
    return [form.key for form in made.forms]


def stored_weights(made: SharedKernels, layers: Sequence[Layer]) -> List[List[Tensor]]:
    """The elements and positions of layers as the kernels read them."""
    return [
        STORED.get(weight[:-1], form, spec.storage)
        for (weight, _, spec), form in zip(layers, made.forms)
    ]


def run_scaled(
    x: Tensor, x_scale: Tensor, layers: Sequence[Layer], gated: bool = False
) -> List[Tensor]:
    """activation((x W^T) * x_scale * scale + bias) of each layer, on the current stream
    of x's GPU; of a gated MLP the product of both.

    x:        [..., K] elements, in any strides.
    x_scale:  [..., 1] or [].

    Returns [..., N] for each.
    """
    specs = [spec for _, _, spec in layers]
    if x.numel() == 0 or any(spec.dtype == "f64" for spec in specs):
        found = [unpacked_scaled(x, x_scale, *layer) for layer in layers]
        return [found[0] * found[1]] if gated else found
    dense_from = common_dense_from(spec.dense_from for spec in specs)
    made, rows = None, None
    if dense_from is None or x.numel() // x.shape[-1] < dense_from:
        own = [(parts, bias, settled(spec, x)) for parts, bias, spec in layers]
        about = own, _kind(x_scale), gated, x.device
        if is_feature_major(x):
            made, rows = find_layers(*about, True), as_rows(x.detach())
        if made is None:
            made, rows = find_layers(*about), None
    if made is not None and dense_from is not None:
        for weight, _, spec in layers:  # whose copies graphs may read
            STORED.follow(weight[:-1], spec.storage)
    if made is None:
        return dense_products(x, x_scale, layers, gated)
    if rows is None:
        rows = aligned(as_rows(x.detach()).contiguous())
    others = [x_scale.reshape(-1), *(weight[-1] for weight, _, _ in layers)]
    others += [bias for _, bias, _ in layers if bias is not None]
    flat = [aligned(one.detach().contiguous()) for one in others]
    results = made(rows, stored_weights(made, layers), flat, stream_of(x))
    return [y.reshape(x.shape[:-1] + (y.shape[-1],)) for y in results]


def _linear_cuda(x: Tensor, x_scale: Tensor, *operands: Any) -> Tensor:
    return run_scaled(x, x_scale, [one_layer(x, x_scale, *operands)])[0]


def _shared_cuda(x: Tensor, x_scale: Tensor, *operands: Any) -> List[Tensor]:
    return run_scaled(x, x_scale, several_layers(x, x_scale, *operands))


def _gated_cuda(x: Tensor, x_scale: Tensor, *operands: Any) -> Tensor:
    return run_scaled(x, x_scale, gated_layers(x, x_scale, *operands), True)[0]


LIBRARY.impl("scaled_linear", _linear_cuda, "CUDA")
LIBRARY.impl("scaled_linear_shared", _shared_cuda, "CUDA")
LIBRARY.impl("scaled_gated_mlp", _gated_cuda, "CUDA")

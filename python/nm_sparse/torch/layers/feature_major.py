# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which layers ask for elements that are stored feature-major.

Products of wide panels read x so. Where x is token-major, their program transposes it
by a kernel of its own, which takes as long as a tenth to a half of the product;
quantization may as well write it so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ..weight.quantize import prepare_columns
from ..weight.spec import LinearSpec, common_dense_from
from ..weight.token_counts import known_rows
from .scaled_kernels import find_feature_major, find_scaled
from .shared_kernels import SharedKernels

if TYPE_CHECKING:
    from .linear import NMLinear

# Programs whose x may be stored feature-major, those for token-major x, by what layers
# are; None where it may not.
_KNOWN: Dict[Any, Optional[SharedKernels]] = {}
_is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # from 2.7 on


def asks_feature_major(
    x: Tensor, layers: Sequence["NMLinear"], specs: Sequence[str], gated: bool = False
) -> bool:
    """Tells if layers on a GPU, which share their input, want its elements stored
    feature-major: their program would else transpose them.

    x:      [..., K], not rounded yet.
    specs:  the texts of the layers, with their activations.
    gated:  they are gate and up of an MLP.
    """
    tokens = known_rows(x)
    dense_from = common_dense_from([layer.dense_from for layer in layers])
    if dense_from is not None and (tokens is None or tokens >= dense_from):
        return False
    return _asks(x, layers, specs, gated, tokens)


def asks_for_any_tokens(
    x: Tensor, layers: Sequence["NMLinear"], specs: Sequence[str], gated: bool = False
) -> bool:
    """The same for some number of tokens, which need not be that of x."""
    return _asks(x, layers, specs, gated, None)


def _asks(
    x: Tensor,
    layers: Sequence["NMLinear"],
    specs: Sequence[str],
    gated: bool,
    tokens: Optional[int],
) -> bool:
    if not is_on_gpu(x) or x.shape[-1] == 1:
        return False
    compiler = torch.compiler
    is_traced = compiler.is_compiling() and not compiler.is_dynamo_compiling()
    if is_traced or _is_exporting():  # readers of exported graphs know no such operator
        return False
    biases = tuple([layer.bias is not None for layer in layers])
    kind = "token" if layers[0].input_scale is None else "tensor"
    about = tuple(specs), biases, kind, gated, x.device.index, x.dtype, tokens
    return reads_feature_major(*about)


def is_on_gpu(x: Tensor) -> bool:
    """Whether kernels multiply x."""
    return x.is_cuda


@torch.compiler.assume_constant_result
def reads_feature_major(
    specs: Tuple[str, ...],
    biases: Tuple[bool, ...],
    kind: str,
    gated: bool,
    device: int,
    dtype: torch.dtype,
    tokens: Optional[int],
) -> bool:
    """Whether the program of layers would transpose so many tokens, and there is one
    that reads them as x^T, with the same weights. It compiles both when it is asked
    first, and triton the kernel that quantizes; nothing is compiled while a graph is
    captured, which so needs a call before.

    biases:  whether layers have one.
    kind:    of the scales of x, "token" or "tensor".
    device:  number of the GPU.
    dtype:   of x, before it is rounded.
    tokens:  None for any number.
    """
    found = [_settled(LinearSpec.parse(text), tokens) for text in specs]
    if any(spec.elements is None or spec.decode_to is not None for spec in found):
        return False
    key = tuple(found), biases, kind, gated, device, dtype
    if key not in _KNOWN:
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            return False
        _KNOWN[key] = _find(found, *key[1:])
    usual = _KNOWN[key]
    return usual is not None and usual.transposes(tokens)


def _settled(spec: LinearSpec, tokens: Optional[int]) -> LinearSpec:
    """What kernels for any number of tokens are compiled for; with `decode_to` where
    others may be used."""
    spec = spec.canonical.for_any_tokens
    if spec.decode_to is None or tokens is None or tokens <= spec.decode_to:
        return spec
    return replace(spec, decode_to=None)


def _find(
    specs: List[LinearSpec],
    biases: Tuple[bool, ...],
    kind: str,
    gated: bool,
    index: int,
    dtype: torch.dtype,
) -> Optional[SharedKernels]:
    first, device = specs[0], torch.device("cuda", index)
    about = tuple(specs), biases, kind, gated, device
    if find_feature_major(*about) is None:
        return None
    has_kernel = prepare_columns(
        first.shape[1], dtype, device, str(first.elements), kind == "tensor"
    )
    return find_scaled(*about) if has_kernel else None

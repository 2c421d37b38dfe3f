# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of one input by compiled kernels: one program, or one for each layer.

The compiler's package may have `gated_mlp_program(spec, chip)` and
`linear_shared_program(specs, chip)`, like its `linear_program`. Their programs have
`storage`, the packed form of all their weights, and are called with the rows of x, the
lists of components, the list of biases (of linear_shared alone) and a stream. Where
there is none, the layers run one after the other.
"""

from __future__ import annotations

import functools
from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from . import kernels
from .ops import as_rows
from .shared_ops import Layer
from .spec import LinearSpec


@functools.lru_cache(maxsize=None)
def _program(name: str, spec: Any, chip: str) -> Optional[Any]:
    """What the compiler's function of that name makes; None where it has none."""
    make = getattr(kernels._compiler(), name, None)
    if make is None:
        return None
    try:
        return make(spec, chip)
    except (ImportError, OSError) as error:
        kernels._warn(str(error))
        return None


def _find(name: str, x: Tensor, spec: Any, specs: Sequence[LinearSpec]) -> Any:
    has_kernels = all(
        one.dtype != "f64" and x.dtype == one.torch_dtype for one in specs
    )
    if not has_kernels or x.numel() == 0:
        return None
    return _program(name, spec, kernels.chip_of(x.device))


def _stream(x: Tensor) -> int:
    return torch.cuda.current_stream(x.device).cuda_stream


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
    program = _find("gated_mlp_program", x, specs[0], specs)
    if program is None:
        first = kernels.run_linear(x, gate, None, specs[0])
        return first * kernels.run_linear(x, up, None, specs[1])
    parts = [
        kernels._stored.get(weight, spec, program.storage)
        for weight, spec in zip((gate, up), specs)
    ]
    rows = as_rows(x.detach()).contiguous()
    with torch.cuda.device_of(x):
        y = program(rows, *parts, _stream(x))
    return y.reshape(x.shape[:-1] + (specs[0].shape[0],))


def run_shared(x: Tensor, layers: Sequence[Layer]) -> List[Tensor]:
    """activation(x W^T + bias) of each layer, on the current stream of x's GPU.

    x:  [..., K], in any strides.

    Returns [..., N] in x's type for each layer.
    """
    specs = tuple(spec for _, _, spec in layers)
    program = _find("linear_shared_program", x, specs, specs)
    if program is None:
        return [kernels.run_linear(x, *layer) for layer in layers]
    parts = [
        kernels._stored.get(weight, spec, program.storage) for weight, _, spec in layers
    ]
    biases = [None if b is None else b.detach().contiguous() for _, b, _ in layers]
    rows = as_rows(x.detach()).contiguous()
    with torch.cuda.device_of(x):
        results = program(rows, parts, biases, _stream(x))
    return [
        y.reshape(x.shape[:-1] + (spec.shape[0],)) for y, spec in zip(results, specs)
    ]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of gated MLPs, whose first two layers share their input.

    nm_sparse::gated_mlp(Tensor x, Tensor[] gate, Tensor[] up, str spec) -> Tensor
        activation(x Wg^T) * (x Wu^T) of two weights of one spec, a `LinearSpec`
    nm_sparse::mlp(Tensor x, Tensor[] gate, Tensor[] up, Tensor[] down, str spec)
        -> Tensor
        that, times Wd^T; `spec` is the `shared_text` of the specs of gate and down

On CUDA each is one compiled program where the compiler has it, else one product after
the other (`shared_kernels.py`). Elsewhere weights are unpacked: that is the reference.
Where gradients are recorded, both are made of `nm_sparse::linear`, which has them.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import List, Sequence, Tuple

import torch
from torch import Tensor

from ...encoding import EncodingError
from ..weight.shared_spec import parse_shared, shared_text
from ..weight.spec import LinearSpec
from ..weight.weight import LIBRARY
from .ops import cast_weight, check_operands, is_cast, unpacked_linear
from .shared_ops import register

_TAGS = (torch.Tag.pt2_compliant_tag,)
LIBRARY.define(
    "gated_mlp(Tensor x, Tensor[] gate, Tensor[] up, str spec) -> Tensor", tags=_TAGS
)
LIBRARY.define(
    "mlp(Tensor x, Tensor[] gate, Tensor[] up, Tensor[] down, str spec) -> Tensor",
    tags=_TAGS,
)
# The components of a weight.
Parts = List[Tensor]


@functools.lru_cache(maxsize=4096)
def gated_specs(text: str) -> Tuple[LinearSpec, LinearSpec]:
    """Those of the gate and of what is multiplied by it."""
    gate = LinearSpec.parse(text)
    return gate, replace(gate, activation="none")


@functools.lru_cache(maxsize=4096)
def mlp_specs(text: str) -> Tuple[LinearSpec, LinearSpec, LinearSpec]:
    """Those of the gate, of what is multiplied by it, and of what their product is
    multiplied by.

    Raises EncodingError unless the text is that of two specs, of weights [N, K] and
    [K, N].
    """
    specs = parse_shared(text)
    if len(specs) != 2 or specs[1].shape != specs[0].shape[::-1]:
        shapes = ", ".join(str(list(one.shape)) for one in specs)
        raise EncodingError(
            f"spec has weights {shapes}: legal are [N, K] of gate and up, and [K, N] "
            "of down"
        )
    return (*gated_specs(specs[0].text), specs[1])


def check_gated(
    x: Tensor, gate: Parts, up: Parts, spec: str
) -> Tuple[LinearSpec, LinearSpec]:
    """The specs of the operands of `gated_mlp`, which are checked."""
    specs = gated_specs(spec)
    check_operands(x, gate, None, specs[0])
    check_operands(x, up, None, specs[1])
    return specs


def check_mlp(
    x: Tensor, gate: Parts, up: Parts, down: Parts, spec: str
) -> Tuple[LinearSpec, LinearSpec, LinearSpec]:
    """The specs of the operands of `mlp`, which are checked."""
    specs = mlp_specs(spec)
    check_operands(x, gate, None, specs[0])
    check_operands(x, up, None, specs[1])
    # What down is applied to has the type of x, and is there only later.
    check_operands(x.new_empty((0, specs[2].shape[1])), down, None, specs[2])
    return specs


def _gated_reference(x: Tensor, gate: Parts, up: Parts, spec: str) -> Tensor:
    first, second = check_gated(x, gate, up, spec)
    return unpacked_linear(x, gate, None, first) * unpacked_linear(x, up, None, second)


def _mlp_reference(x: Tensor, gate: Parts, up: Parts, down: Parts, spec: str) -> Tensor:
    first, _, last = check_mlp(x, gate, up, down, spec)
    return unpacked_linear(_gated_reference(x, gate, up, first.text), down, None, last)


def _gated_fake(x: Tensor, gate: Parts, up: Parts, spec: str) -> Tensor:
    first, _ = check_gated(x, gate, up, spec)
    return x.new_empty(x.shape[:-1] + (first.shape[0],))


def _mlp_fake(x: Tensor, gate: Parts, up: Parts, down: Parts, spec: str) -> Tensor:
    last = check_mlp(x, gate, up, down, spec)[2]
    return x.new_empty(x.shape[:-1] + (last.shape[0],))


def _gated_products(x: Tensor, gate: Parts, up: Parts, spec: str) -> Tensor:
    """By two calls of `nm_sparse::linear`."""
    first, second = check_gated(x, gate, up, spec)
    linear = torch.ops.nm_sparse.linear
    return linear(x, gate, None, first.text) * linear(x, up, None, second.text)


def _mlp_products(x: Tensor, gate: Parts, up: Parts, down: Parts, spec: str) -> Tensor:
    """By three."""
    first, _, last = check_mlp(x, gate, up, down, spec)
    inside = _gated_products(x, gate, up, first.text)
    return torch.ops.nm_sparse.linear(inside, down, None, last.text)


def _cast(
    weights: Sequence[Parts], specs: Sequence[LinearSpec], dtype: torch.dtype
) -> Tuple[List[Parts], List[LinearSpec]]:
    cast = [cast_weight(parts, spec, dtype) for parts, spec in zip(weights, specs)]
    return [parts for parts, _ in cast], [spec for _, spec in cast]


def _autocast(device: str) -> None:
    """Registers that operands become those of `torch.autocast`, as `linear` does."""
    key = getattr(torch._C.DispatchKey, f"Autocast{device}")

    def gated(x: Tensor, gate: Parts, up: Parts, spec: str) -> Tensor:
        dtype = torch.get_autocast_dtype(device.lower())
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            weights, specs = _cast((gate, up), gated_specs(spec), dtype)
            x = x.to(dtype) if is_cast(x) else x
            return torch.ops.nm_sparse.gated_mlp(x, *weights, specs[0].text)

    def mlp(x: Tensor, gate: Parts, up: Parts, down: Parts, spec: str) -> Tensor:
        dtype = torch.get_autocast_dtype(device.lower())
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            weights, specs = _cast((gate, up, down), mlp_specs(spec), dtype)
            x = x.to(dtype) if is_cast(x) else x
            text = shared_text([specs[0], specs[2]])
            return torch.ops.nm_sparse.mlp(x, *weights, text)

    LIBRARY.impl("gated_mlp", gated, f"Autocast{device}")
    LIBRARY.impl("mlp", mlp, f"Autocast{device}")


register("gated_mlp", _gated_reference, _gated_fake, _gated_products)
register("mlp", _mlp_reference, _mlp_fake, _mlp_products)
_autocast("CPU")
_autocast("CUDA")

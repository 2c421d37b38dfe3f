# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator of layers that share their input, which is then transposed at most once.

    nm_sparse::linear_shared(Tensor x, Tensor[] weights, int[] counts,
                             Tensor?[] biases, str spec) -> Tensor[]
        activation(x W^T + bias) of several weights; `counts` says how many components
        each has, and `spec` is the `shared_text` of their specs

On CUDA it is one compiled program where the compiler has it, else one product after
the other (`shared_kernels.py`). Elsewhere weights are unpacked: that is the reference.
Where gradients are recorded, it is made of `nm_sparse::linear`, which has them.
`mlp_ops.py` has the operators of gated MLPs.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ...encoding import EncodingError
from ..weight.shared_spec import parse_shared, shared_text
from ..weight.spec import LinearSpec
from ..weight.weight import LIBRARY
from .ops import cast_weight, check_operands, is_cast, unpacked_linear

LIBRARY.define(
    "linear_shared(Tensor x, Tensor[] weights, int[] counts, Tensor?[] biases, "
    "str spec) -> Tensor[]",
    tags=(torch.Tag.pt2_compliant_tag,),
)
# A layer of several: its components, its bias and its spec.
Layer = Tuple[List[Tensor], Optional[Tensor], LinearSpec]


def split_layers(
    weights: Sequence[Tensor],
    counts: Sequence[int],
    biases: Sequence[Optional[Tensor]],
    spec: str,
) -> List[Layer]:
    """The operands of `linear_shared`, layer by layer.

    Raises EncodingError when there is not one count and one bias for each spec, or the
    counts do not add up.
    """
    specs = parse_shared(spec)
    if not len(specs) == len(counts) == len(biases) or sum(counts) != len(weights):
        raise EncodingError(
            f"counts are {list(counts)} of {len(weights)} components, with "
            f"{len(biases)} biases: legal is a count and a bias (or None) for each of "
            f"{len(specs)} specs, and a sum of {len(weights)}"
        )
    layers, begin = [], 0
    for count, bias, one in zip(counts, biases, specs):
        layers.append((list(weights[begin : begin + count]), bias, one))
        begin += count
    return layers


def check_shared(x: Tensor, *operands: Any) -> List[Layer]:
    """The operands of `linear_shared`, layer by layer, which are checked."""
    layers = split_layers(*operands)
    for weight, bias, spec in layers:
        check_operands(x, weight, bias, spec)
    return layers


def _shared_reference(x: Tensor, *operands: Any) -> List[Tensor]:
    layers = check_shared(x, *operands)
    return [unpacked_linear(x, *layer) for layer in layers]


def _shared_fake(
    x: Tensor,
    weights: List[Tensor],
    counts: List[int],
    biases: List[Optional[Tensor]],
    spec: str,
) -> List[Tensor]:
    layers = check_shared(x, weights, counts, biases, spec)
    lead = x.shape[:-1]
    return [x.new_empty(lead + (one.shape[0],)) for _, _, one in layers]


def _shared_products(x: Tensor, *operands: Any) -> List[Tensor]:
    """By calls of `nm_sparse::linear`."""
    layers = check_shared(x, *operands)
    return [torch.ops.nm_sparse.linear(x, w, b, s.text) for w, b, s in layers]


def _needs_gradients(operands: Sequence[Any]) -> bool:
    tensors = [one for one in operands if isinstance(one, Tensor)]
    for one in operands:
        if isinstance(one, (list, tuple)):
            tensors += [part for part in one if isinstance(part, Tensor)]
    return torch.is_grad_enabled() and any(one.requires_grad for one in tensors)


def register(
    name: str, reference: Callable, fake: Callable, products: Callable
) -> None:
    """Gives an operator of `LIBRARY` what computes it, but on a GPU.

    reference:  anywhere.
    fake:       shapes and types of the results.
    products:   the same, made of operators that have gradients.
    """
    operator = getattr(torch.ops.nm_sparse, name).default

    def autograd(*operands: Any) -> Any:
        if _needs_gradients(operands):
            return products(*operands)
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*operands)

    LIBRARY.impl(name, reference, "CompositeExplicitAutograd")
    LIBRARY.impl(name, autograd, "Autograd")
    torch.library.register_fake(f"nm_sparse::{name}", fake, lib=LIBRARY)


def _autocast(device: str) -> None:
    """Registers that operands become those of `torch.autocast`, as `linear` does."""
    key = getattr(torch._C.DispatchKey, f"Autocast{device}")

    def shared(x: Tensor, *operands: Any) -> List[Tensor]:
        dtype = torch.get_autocast_dtype(device.lower())
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            weights: List[Tensor] = []
            biases, specs = [], []
            for weight, bias, spec in split_layers(*operands):
                parts, one = cast_weight(weight, spec, dtype)
                weights += parts
                specs.append(one)
                biases.append(bias.to(dtype) if is_cast(bias) else bias)
            x = x.to(dtype) if is_cast(x) else x
            return torch.ops.nm_sparse.linear_shared(
                x, weights, operands[1], biases, shared_text(specs)
            )

    LIBRARY.impl("linear_shared", shared, f"Autocast{device}")


register("linear_shared", _shared_reference, _shared_fake, _shared_products)
_autocast("CPU")
_autocast("CUDA")

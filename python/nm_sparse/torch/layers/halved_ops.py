# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator of a gated MLP whose gate and up are the halves of one weight.

    nm_sparse::gated_linear(Tensor x, Tensor[] weight, str spec) -> Tensor
        activation(x Wg^T) * (x Wu^T) of a weight whose first outputs are Wg, and as
        many others Wu; `spec` is its `LinearSpec`, with the activation
    nm_sparse::scaled_gated_linear(Tensor x, Tensor x_scale, Tensor[] weight, str spec)
        -> Tensor
        the same of elements of 8 bits with scales, as `nm_sparse::scaled_linear`

On CUDA they are the programs of `nm_sparse::gated_mlp` and `scaled_gated_mlp`, where
kernels read bitmaps: the halves are parts of these, and nothing is copied. Else they
are products with the whole weight. Elsewhere the weight is unpacked: that is the
reference.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ...encoding import Encoding, EncodingError
from ...packing.bitmap import OUTPUTS
from ..weight.spec import LinearSpec
from ..weight.stored_forms import STORED
from ..weight.token_counts import settled
from ..weight.weight import LIBRARY
from . import kernels, shared_kernels
from .dense_copies import run_dense
from .ops import activate, cast_weight, check_operands, is_cast, unpacked_linear
from .scaled_kernels import find_layers, run_scaled
from .scaled_ops import (
    cast_linear,
    one_layer,
    refuses_gradients,
    register_autocast,
    unpacked_scaled,
)
from .shared_ops import Layer, register

LIBRARY.define(
    "gated_linear(Tensor x, Tensor[] weight, str spec) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
LIBRARY.define(
    "scaled_gated_linear(Tensor x, Tensor x_scale, Tensor[] weight, str spec) "
    "-> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
Parts = List[Tensor]


@functools.lru_cache(maxsize=4096)
def plain_spec(text: str) -> LinearSpec:
    """That of the whole weight, without activation.

    Raises EncodingError unless it has two halves of outputs.
    """
    spec = LinearSpec.parse(text)
    if spec.shape[0] % 2:
        raise EncodingError(
            f"the weight has {spec.shape[0]} outputs: legal is an even number, those "
            "of gate and up"
        )
    return replace(spec, activation="none")


def has_halves(encoding: Encoding, outputs: int) -> bool:
    """Whether the halves of a weight are weights of its encoding by themselves, and
    parts of its bitmaps."""
    half = outputs // 2
    return (
        encoding.inner is None
        and not encoding.is_shuffled
        and outputs % 2 == 0
        and half % encoding.block[1] == 0
        and half % OUTPUTS == 0
    )


def half_spec(spec: LinearSpec) -> LinearSpec:
    """That of one half."""
    n, k = spec.shape
    return replace(spec, shape=(n // 2, k), dense_from=None)


def halves_of(weight: Sequence[Tensor], spec: LinearSpec) -> List[Parts]:
    """The components of both halves, in the form `spec.storage`; they share memory with
    those of the whole."""
    half = spec.shape[0] // 2
    if spec.elements is not None:
        *parts, scale = weight
        both = halves_of(parts, replace(spec, elements=None))
        return [[*both[0], scale[:half]], [*both[1], scale[half:]]]
    values, index = weight
    if spec.storage == "bitmap":  # blocks of outputs
        at = half // OUTPUTS
        return [[one[:at] for one in weight], [one[at:] for one in weight]]
    at = half // spec.encoding.block[1]
    if spec.storage == "k_major":
        return [[values[:half], index[:, :at]], [values[half:], index[:, at:]]]
    return [[values[:, :half], index[:, :at]], [values[:, half:], index[:, at:]]]


def find_halves(
    spec: LinearSpec, device: torch.device
) -> Optional[shared_kernels.SharedKernels]:
    """The program of both halves on a GPU; None where there is none that reads parts of
    the whole weight.

    spec:  of the whole weight, with the activation of the gate.
    """
    if spec.elements is not None or not has_halves(spec.encoding, spec.shape[0]):
        return None
    made = shared_kernels.find_gated(half_spec(spec).canonical, device)
    if made is None or any(form.storage != "bitmap" for form in made.forms):
        return None
    return made


def _check(x: Tensor, weight: Parts, spec: str) -> LinearSpec:
    """The spec of the whole weight, without activation."""
    plain = plain_spec(spec)
    check_operands(x, weight, None, plain)
    return plain


def gate(y: Tensor, activation: str) -> Tensor:
    """activation(first half) * second half of the last dimension."""
    first, second = y.chunk(2, dim=-1)
    return activate(first, activation) * second


def _reference(x: Tensor, weight: Parts, spec: str) -> Tensor:
    y = unpacked_linear(x, weight, None, _check(x, weight, spec))
    return gate(y, LinearSpec.parse(spec).activation)


def _fake(x: Tensor, weight: Parts, spec: str) -> Tensor:
    n = _check(x, weight, spec).shape[0]
    return x.new_empty(x.shape[:-1] + (n // 2,))


def products(x: Tensor, weight: Parts, spec: str) -> Tensor:
    """The same by `nm_sparse::linear`."""
    plain = _check(x, weight, spec)
    y = torch.ops.nm_sparse.linear(x, weight, None, plain.text)
    return gate(y, LinearSpec.parse(spec).activation)


def _cuda(x: Tensor, weight: Parts, text: str) -> Tensor:
    plain, spec = _check(x, weight, text), LinearSpec.parse(text)
    by_copy = run_dense(x, [(weight, None, spec)], STORED, spec.activation)
    if by_copy is not None:
        return by_copy[0]
    half = half_spec(spec)
    if shared_kernels.has_kernels(x, (spec,)):
        made = find_halves(settled(spec, x), x.device)
        if made is not None:
            both = halves_of(weight, spec)
            return shared_kernels.run(made, x, both, (half, half), [])[0]
    y = kernels.run_linear(x, weight, None, replace(plain, dense_from=None))
    return gate(y, spec.activation)


def _autocast(device: str) -> None:
    """Registers that operands become those of `torch.autocast`, as `linear` does."""
    key = getattr(torch._C.DispatchKey, f"Autocast{device}")

    def gated(x: Tensor, weight: Parts, spec: str) -> Tensor:
        dtype = torch.get_autocast_dtype(device.lower())
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            weight, own = cast_weight(weight, LinearSpec.parse(spec), dtype)
            x = x.to(dtype) if is_cast(x) else x
            return torch.ops.nm_sparse.gated_linear(x, weight, own.text)

    LIBRARY.impl("gated_linear", gated, f"Autocast{device}")


def _scaled_layer(x: Tensor, x_scale: Tensor, weight: Parts, text: str) -> Layer:
    """The whole weight without activation, which is checked."""
    return one_layer(x, x_scale, weight, None, plain_spec(text).text)


def _scaled_reference(x: Tensor, x_scale: Tensor, weight: Parts, text: str) -> Tensor:
    y = unpacked_scaled(x, x_scale, *_scaled_layer(x, x_scale, weight, text))
    return gate(y, LinearSpec.parse(text).activation)


def _scaled_fake(x: Tensor, x_scale: Tensor, weight: Parts, text: str) -> Tensor:
    _, _, spec = _scaled_layer(x, x_scale, weight, text)
    return x.new_empty((*x.shape[:-1], spec.shape[0] // 2), dtype=spec.torch_dtype)


def scaled_halves(
    weight: Parts, spec: LinearSpec, x_scale: str, device: torch.device
) -> Optional[Tuple[shared_kernels.SharedKernels, List[Layer]]]:
    """`find_halves` of elements of 8 bits, and both halves as layers.

    spec:     of the whole weight, with the activation of the gate.
    x_scale:  "token" or "tensor".
    """
    if not has_halves(spec.encoding, spec.shape[0]):
        return None
    half = half_spec(spec)
    specs = half, replace(half, activation="none")
    halves = halves_of(weight, spec)
    layers: List[Layer] = [(one, None, s) for one, s in zip(halves, specs)]
    made = find_layers(layers, x_scale, True, device)
    if made is None or any(form.storage != "bitmap" for form in made.forms):
        return None
    return made, layers


def _scaled_cuda(x: Tensor, x_scale: Tensor, weight: Parts, text: str) -> Tensor:
    whole, spec = _scaled_layer(x, x_scale, weight, text), LinearSpec.parse(text)
    # Dense copies are of whole weights.
    if spec.storage == "bitmap" and spec.dense_from is None and x.numel() > 0:
        kind = "tensor" if x_scale.ndim == 0 else "token"
        found = scaled_halves(weight, settled(spec, x), kind, x.device)
        if found is not None:
            return run_scaled(x, x_scale, found[1], True)[0]
    return gate(run_scaled(x, x_scale, [whole])[0], spec.activation)


def scaled_products(x: Tensor, x_scale: Tensor, weight: Parts, text: str) -> Tensor:
    """The same by `nm_sparse::scaled_linear`."""
    plain = plain_spec(text).text
    y = torch.ops.nm_sparse.scaled_linear(x, x_scale, weight, None, plain)
    return gate(y, LinearSpec.parse(text).activation)


def _cast_scaled(
    dtype: torch.dtype, x: Tensor, x_scale: Tensor, weight: Parts, text: str
) -> Tuple[Tensor, Tensor, Parts, str]:
    cast = cast_linear(dtype, x, x_scale, weight, None, text)
    return (*cast[:3], cast[4])


register("gated_linear", _reference, _fake, products)
LIBRARY.impl("gated_linear", _cuda, "CUDA")
_autocast("CPU")
_autocast("CUDA")
LIBRARY.impl("scaled_gated_linear", _scaled_reference, "CompositeExplicitAutograd")
LIBRARY.impl("scaled_gated_linear", _scaled_cuda, "CUDA")
LIBRARY.impl(
    "scaled_gated_linear",
    refuses_gradients(torch.ops.nm_sparse.scaled_gated_linear.default),
    "Autograd",
)
torch.library.register_fake("nm_sparse::scaled_gated_linear", _scaled_fake, lib=LIBRARY)
for _device in ("CPU", "CUDA"):
    register_autocast("scaled_gated_linear", _device, _cast_scaled)

Halves = Tuple[shared_kernels.SharedKernels, List[List[Tensor]]]


def find_eager(weight: Sequence[Tensor], spec: LinearSpec) -> Optional[Halves]:
    """The program of both halves and these as it reads them; None where there is none
    that writes to what it is given.

    spec:  of the whole weight, with the activation of the gate.
    """
    made = find_halves(spec, weight[0].device)
    if made is None:
        return None
    half = half_spec(spec)
    return shared_kernels.find_eager(made, halves_of(weight, spec), (half, half))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers on a GPU that multiply many tokens by a dense copy of their weight.

Where sparse kernels are faster than dense ones for few rows of x alone, a layer may say
from how many on (`LinearSpec.dense_from`) it is to use a copy. That is one more form of
the weight among those of `stored_forms.py`, which makes it, writes it anew and lets go
of it. Several layers of one operator use their copies together or not at all:
`spec.common_dense_from` says when.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple

import torch.nn.functional as F
from torch import Tensor

from ..weight.levels import bits_of
from ..weight.pack import perm_of, unpack_rows
from ..weight.scales import scale_outputs
from ..weight.spec import NARROW, LinearSpec, common_dense_from
from ..weight.storage import from_storage
from ..weight.stored_forms import STORED, StoredForm, StoredForms
from .ops import activate

if TYPE_CHECKING:
    from .linear import NMLinear

_SLICE = 1 << 21  # elements that are unpacked at a time

# A layer of several: its components, its bias and its spec.
Layer = Tuple[Sequence[Tensor], Optional[Tensor], LinearSpec]


class DenseForm(StoredForm):
    """The dense weight [N, K], which torch multiplies by.

    spec:  of its layer.
    """

    def __init__(self, spec: LinearSpec) -> None:
        self.spec = replace(spec.of_weight, activation="none")

    @functools.cached_property
    def key(self) -> str:
        return f"dense {self.spec.text}"

    def reads(self, storage: str) -> bool:
        return False

    def store(
        self, weight: Sequence[Tensor], storage: str = "canonical"
    ) -> List[Tensor]:
        spec = replace(self.spec, storage=storage)
        return [unpack_dense(from_storage(weight, spec), spec)]


@functools.lru_cache(maxsize=4096)
def dense_form(spec: LinearSpec) -> DenseForm:
    """That of weights of a spec, which is a canonical one."""
    return DenseForm(spec)


def unpack_dense(components: Sequence[Tensor], spec: LinearSpec) -> Tensor:
    """The dense weight [N, K] of canonical components, bit for bit, as
    `PackedWeight.to_dense`, but some panels of outputs at a time: what lies in between
    takes less memory than the weight."""
    e, (outputs, inputs) = spec.encoding, spec.shape
    plain, index = bits_of(components[0].contiguous()), components[1:]
    dense = plain.new_empty(outputs, inputs)
    width = e.block[1]
    step = width * max(1, _SLICE // max(1, inputs * width))
    for begin in range(0, outputs, step):
        end = min(begin + step, outputs)
        padded = -(-end // width) * width
        parts = [plain[:, begin:padded]]
        for level, one in zip(e.levels, index):  # panels of both levels are aligned
            parts.append(one[:, begin // level.block[1] : padded // level.block[1]])
        rows = unpack_rows(parts, e, (end - begin, inputs)).t()
        if e.is_shuffled:
            dense.index_copy_(0, perm_of(components, e)[begin:end].long(), rows)
        else:
            dense[begin:end] = rows
    dense = dense.view(spec.values_dtype)
    if spec.elements is None:
        return dense
    return scale_outputs(dense, components[-1], spec.torch_dtype)


def products(
    x: Tensor, copies: Sequence[Tensor], layers: Sequence[Layer], gated: Optional[str]
) -> List[Tensor]:
    """What layers compute of x [..., K] by dense copies of their weights, rounded as
    dense layers of torch round it.

    gated:  the activation of a gated MLP, whose layers are gate, up and, if there are
            three, down, or one with gate and up as its halves; None: each layer is
            applied to x.
    """
    if gated is None:
        return [
            activate(F.linear(x, copy, bias), spec.activation)
            for copy, (_, bias, spec) in zip(copies, layers)
        ]
    if len(copies) == 1:
        first, second = F.linear(x, copies[0]).chunk(2, dim=-1)
        return [activate(first, gated) * second]
    inside = activate(F.linear(x, copies[0]), gated).mul_(F.linear(x, copies[1]))
    if len(copies) == 2:
        return [inside]
    return [activate(F.linear(inside, copies[2]), layers[2][2].activation)]


def copies_of(layers: Sequence[Layer], stored: StoredForms) -> List[Tensor]:
    """The dense weights [N, K] of layers, made where they are not there."""
    return [
        stored.get(weight, dense_form(spec.canonical), spec.storage)[0]
        for weight, _, spec in layers
    ]


def _follow(layers: Sequence[Layer], stored: StoredForms) -> None:
    """Has copies that are there, which graphs may read, follow their weights."""
    for weight, _, spec in layers:
        stored.follow(weight, spec.storage)


def run_dense(
    x: Tensor,
    layers: Sequence[Layer],
    stored: StoredForms,
    gated: Optional[str] = None,
) -> Optional[List[Tensor]]:
    """`products`, where x [..., K] has as many rows as all layers of an operator ask
    for; None where it has less, or has another type than the weights.

    Weights that are inference tensors have no copies: they do not say when they change,
    and would be unpacked by each call.
    """
    dense_from = common_dense_from(spec.dense_from for _, _, spec in layers)
    if dense_from is None or x.numel() == 0 or x.dtype in NARROW:
        return None
    if any(spec.torch_dtype != x.dtype for _, _, spec in layers):
        return None
    if any(part.is_inference() for weight, _, _ in layers for part in weight):
        return None
    if x.numel() // x.shape[-1] < dense_from:
        _follow(layers, stored)
        return None
    return products(x.detach(), copies_of(layers, stored), layers, gated)


def drop_dense(weight: Sequence[Tensor], spec: LinearSpec) -> None:
    """Gives back the memory of the dense copy of a weight, if there is one."""
    STORED.drop(weight, dense_form(spec.canonical), spec.storage)
    if spec.elements is not None:  # which may be multiplied by themselves
        STORED.drop(weight[:-1], dense_form(spec.unscaled.canonical), spec.storage)


class DenseLaunch:
    """The dense products of layers that are called eagerly; their copies are looked up
    by the first call, as decoding may never need them.

    elements:  of x, from which on to use it.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        dense_from: int,
        stored: StoredForms,
        gated: Optional[str],
    ) -> None:
        self.layers, self.stored, self.gated = layers, stored, gated
        self.elements = dense_from * layers[0][2].shape[1]
        self._copies: Optional[List[Tensor]] = None
        _follow(layers, stored)

    def run(self, x: Tensor) -> List[Tensor]:
        if self._copies is None:
            self._copies = copies_of(self.layers, self.stored)
        return products(x, self._copies, self.layers, self.gated)


def dense_launch(
    layers: Sequence["NMLinear"], gated: Optional[str]
) -> Optional[DenseLaunch]:
    """That of packed layers of one operator; None where one asks for no copy.

    gated:  as for `products`.
    """
    dense_from = common_dense_from(layer.dense_from for layer in layers)
    if dense_from is None or layers[0].weight.dtype in NARROW:
        return None
    found = [
        (layer.components(), layer.bias, LinearSpec.parse(layer.spec))
        for layer in layers
    ]
    return DenseLaunch(found, dense_from, STORED, gated)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers on a GPU that hold a second form of their weight, for few tokens.

A program stores a weight once, and chooses the form by all numbers of tokens: where
many want another one than few, one end pays. A layer may say up to how many tokens
(`LinearSpec.decode_to`) it is to run a program of its own, whose weight has the form
that is best for one token. That is one more form of the weight among those of
`stored_forms.py`, which makes it, writes it anew and lets go of it.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, List, Optional, Sequence

from torch import Tensor, nn

from ..weight.plain import is_plain_call
from ..weight.shared_spec import with_decode_to
from ..weight.spec import LinearSpec, check_decode_to
from ..weight.stored_forms import STORED
from ..weight.weight import PackedWeight
from . import kernels
from .eager import EagerCall, Find, settings_changed

if TYPE_CHECKING:
    from .linear import NMLinear


class EagerByRows(EagerCall):
    """Eager calls of a layer with a second form. Either program is found by the first
    call that it is for, as decoding may never need the other."""

    def __init__(self) -> None:
        super().__init__()
        self._few = EagerCall()

    def __call__(
        self, x: Tensor, layers: Sequence["NMLinear"], find: Find, variant: str = ""
    ) -> Optional[List[Tensor]]:
        if not is_plain_call(x):
            return None
        (layer,) = layers
        if x.numel() > (layer.decode_to or 0) * layer.in_features:
            return self.run(x, layers, find, variant)
        find = functools.partial(kernels.find_eager, layer, True)
        return self._few.run(x, layers, find, variant)

    def forget(self) -> None:
        super().forget()
        self._few.forget()


class DecodeForm(nn.Module):
    """A packed layer that may have a second form of its weight."""

    _decode_to: Optional[int] = None
    _eager: EagerCall
    bias: Any
    spec: str
    kernel_spec: str

    @property
    def decode_to(self) -> Optional[int]:
        """Up to how many tokens, rows of x, the layer multiplies on a GPU by kernels of
        their own, which read the weight in the form that is best for one token; None:
        all numbers of tokens share one form. `use_decode_forms_` finds it for models.

        Where that is another form than the layer and its other kernels have, it takes
        memory beside these, about as much again as the packed weight: from the first
        call with so few tokens on. It follows the weight, and is no part of the layer:
        a `state_dict` does not have it. A layer that `store_` has put into that form
        has no copy of it, and one for its other kernels, when these are called first.
        Calls from `dense_from` on use the dense copy whatever this is. Layers that are
        one operator with others, or round their input to elements of 8 bits, have one
        form; on the CPU and in exports nothing changes. None gives back the form:
        graphs that were captured with it must be captured again.

        Setting it raises EncodingError unless it is an int from 1 on or None.
        """
        return self._decode_to

    @decode_to.setter
    def decode_to(self, tokens: Optional[int]) -> None:
        check_decode_to(tokens)
        before = self._decode_to
        if tokens == before:
            return
        if tokens is None:
            self._drop_decoding()
        self._decode_to = tokens
        settings_changed()
        self._eager = EagerCall() if tokens is None else EagerByRows()

    @property
    def call_spec(self) -> str:
        """What `nm_sparse::linear` is told of the layer when it is called by itself:
        `spec` with `decode_to`."""
        return with_decode_to(self.spec, self._decode_to)

    def _drop_decoding(self) -> None:
        """Gives back the memory of the form for few tokens, unless others read it."""
        layer: Any = self
        if type(self._parameters.get("weight")) is not PackedWeight:
            return
        weight, spec = layer.components(), LinearSpec.parse(self.kernel_spec)
        if not STORED.has(weight, spec.storage):
            return
        few = replace(spec.canonical, decode_to=self._decode_to)
        own = self.bias is not None, weight[0].device
        found = [kernels.find_kernels(one, *own) for one in (few, spec.canonical)]
        if None not in found and len({one.key for one in found if one}) == 2:
            STORED.drop(weight, found[0], spec.storage)  # type: ignore[arg-type]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of one input that lie one behind the other in memory: together they are one
weight, with the outputs of all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional, Sequence

import torch
from torch import Tensor

from ...packing.bitmap import OUTPUTS
from .spec import LinearSpec


def can_join(specs: Sequence[LinearSpec]) -> bool:
    """Whether layers are one product if their weights are: of one encoding, type and
    input, in bitmaps, of whole blocks of outputs, without activations."""
    if len(specs) < 2 or any(spec.storage != "bitmap" for spec in specs):
        return False
    encoding = specs[0].encoding
    if encoding.inner is not None or encoding.is_shuffled:
        return False
    if any(spec.shape[0] % OUTPUTS for spec in specs):
        return False
    if any(spec.shape[0] % encoding.block[1] for spec in specs):
        return False
    alike = {replace(spec, shape=(0, spec.shape[1])) for spec in specs}
    is_plain = all(spec.activation == "none" for spec in specs)
    return is_plain and len(alike) == 1 and specs[0].dense_from is None


def joined_spec(specs: Sequence[LinearSpec]) -> LinearSpec:
    """That of all outputs."""
    outputs = sum(spec.shape[0] for spec in specs)
    return replace(specs[0], shape=(outputs, specs[0].shape[1]))


def join(tensors: Sequence[Tensor]) -> List[Tensor]:
    """Copies that lie one behind the other, by their first dimension."""
    return list(torch.cat(list(tensors)).split([len(one) for one in tensors]))


def as_one(tensors: Sequence[Tensor]) -> Optional[Tensor]:
    """The tensor of which these are the parts, without a copy; None unless they lie one
    behind the other."""
    first, end = tensors[0], tensors[0].data_ptr()
    memory = first.untyped_storage().data_ptr()
    for one in tensors:
        if not one.is_contiguous() or one.data_ptr() != end:
            return None
        if one.untyped_storage().data_ptr() != memory:
            return None
        if one.dtype != first.dtype or one.shape[1:] != first.shape[1:]:
            return None
        end += one.nbytes
    size = (sum(len(one) for one in tensors), *first.shape[1:])
    return first.detach().as_strided(size, first.stride())

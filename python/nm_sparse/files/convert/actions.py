# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers of a model, as far as is known, and what becomes of each tensor of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional, Tuple

from ...encoding import Encoding
from ..contents import Item
from .shard_writer import Entry

WEIGHT = ".weight"


@dataclass(frozen=True)
class Structure:
    """Which tensors of a checkpoint are weights of layers that can be packed.

    linear:    their shapes, [outputs, inputs], by name; also of weights that are packed
               already, and can stay so.
    others:    why each matrix cannot be packed which is dense, or could not be
               unpacked, by name.
    is_known:  whether the model itself says so; else names do.
    left:      names of other layers that a packed one could replace, and of such that
               have no weight of their own in it: they stay dense.
    """

    linear: Mapping[str, Tuple[int, int]]
    others: Mapping[str, str]
    is_known: bool
    left: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Action:
    """What becomes of a tensor, or of the tensors of a weight.

    kind:      "pack" a weight, "keep" one that is packed already, "unpack" one that no
               packed layer can have, "cast" a weight or tensor to `dtype`, "copy" it.
    dtype:     of the numbers that it stands for.
    entries:   the tensors that it is in the new checkpoint.
    reason:    why a matrix stays dense.
    elements:  of a packed weight with scales, as in MLIR; None: values are `dtype`.
    is_exact:  whether these elements and scales are there, and stay as they are.
    """

    item: Item
    kind: str
    shape: Tuple[int, ...]
    dtype: str
    entries: Mapping[str, Entry]
    encoding: Optional[Encoding] = None
    reason: str = ""
    elements: Optional[str] = None
    is_exact: bool = False

    @property
    def name(self) -> str:
        return self.item.name

    @property
    def layer(self) -> str:
        return layer_name(self.name)

    @property
    def prefix(self) -> str:
        """With which the names of a packed layer's tensors begin."""
        return layer_name(self.name) + "."

    @property
    def size(self) -> int:
        """In bytes, of what is written."""
        return sum(entry[2] for entry in self.entries.values())


def layer_name(name: str) -> str:
    """That of the layer that has a weight."""
    return name[: -len(WEIGHT)] if name.endswith(WEIGHT) else name

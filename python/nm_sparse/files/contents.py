# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a checkpoint holds: weights, in one tensor or several, and other tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Sequence, Tuple

from .checkpoint import Checkpoint
from .tensor_file import CheckpointError, TensorFile

LEADS = ("compressed", "values")  # endings of tensors that have a weight's elements


@dataclass(frozen=True)
class Item:
    """A tensor of a checkpoint, or the tensors that are one weight.

    kind:   "weight" for a matrix that may be the weight of a linear layer, "packed" for
            one that is packed already, "other" for any other tensor.
    file:   that has it; of a weight in parts, that has its values.
    parts:  the names of its tensors.
    """

    name: str
    kind: str
    file: TensorFile
    parts: Tuple[str, ...]


def contents(checkpoint: Checkpoint) -> List[Item]:
    """All tensors of a checkpoint, each in one item, in the order of its files.

    Raises CheckpointError where a packed weight has none."""
    first: Dict[str, Item] = {}  # by the tensor that stands for all of an item
    others = set()
    for kind, names in (("packed", checkpoint.packed), ("weight", checkpoint.weights)):
        for name in names:
            parts = checkpoint.parts(name)
            if not parts:
                raise CheckpointError(
                    f"{checkpoint.path}: weight {name!r} has no tensors, though "
                    "metadata describes it: the checkpoint is damaged"
                )
            lead = next(
                (p for p in parts if p.endswith(("compressed", "values"))), parts[0]
            )
            first[lead] = Item(name, kind, checkpoint.file_of(lead), tuple(parts))
            others.update(parts)
    items = []
    for file in checkpoint.files.values():
        for name in file.tensors:
            if name in first:
                items.append(first[name])
            elif name not in others:
                items.append(Item(name, "other", file, (name,)))
    return items


def bar(items: Sequence[Any], unit: str, progress: bool) -> Iterable[Any]:
    """`items`, with a bar on standard error where tqdm is there and that a terminal."""
    if not progress:
        return items
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(items, unit=f" {unit}", disable=None, leave=False)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints with 2:4 or packed weights, as tensors and into models of torch.

`sparse-24-bitmask` checkpoints of compressed-tensors, dense ones that are 2:4, and what
`convert_checkpoint` writes: docs/Checkpoints.md says what is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Sequence, Tuple, Union

import numpy as np
import torch
from torch import Tensor, nn

from ...files.checkpoint import Checkpoint
from ...files.contents import Item, bar, contents
from ...files.convert import conversion
from ...files.convert.conversion import Conversion
from ...files.scales import check_layouts, check_readable
from ...files.tensor_file import FILE_TYPES, CheckpointError, PathLike
from ...packing import two_four
from ..pretrained.convert import find_structure
from ..pretrained.marking import mark_pretrained
from ..weight.weight import PackedWeight
from .load_target import Target
from .meta_buffers import fill_buffers, unknown_buffers

__all__ = [
    "Conversion",
    "LoadReport",
    "convert_checkpoint",
    "load_compressed",
    "load_into",
]

# Types that numpy has no place for, or that torch counts among the signed ones.
_VIEWS = {
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}
_SHOWN = 5  # names in an error


def load_compressed(
    path: PathLike, progress: bool = False
) -> Iterator[Tuple[str, Union[PackedWeight, Tensor]]]:
    """The tensors of a checkpoint by name, one after the other, on the CPU.

    path:      a `.safetensors` file, an index of several, or the folder of a model.
    progress:  whether a bar is shown.

    Weights come as they are stored, those of marlin-24 as f16; scales are other
    tensors. Weights that are 2:4 along their inputs, and those that are packed already,
    come as `PackedWeight`, all else as it is; of a weight in parts only the weight.

    Raises CheckpointError, which names file and tensor, and OSError.
    """
    checkpoint = Checkpoint(path)
    check_layouts(checkpoint)
    for item in bar(contents(checkpoint), "tensors", progress):
        yield item.name, _read(checkpoint, item)


def _read(checkpoint: Checkpoint, item: Item) -> Union[PackedWeight, Tensor]:
    if item.kind == "packed":
        return PackedWeight.from_packed(checkpoint.read_packed(item.name))
    if item.kind == "weight":
        dense, dtype = (
            checkpoint.dense(item.name),
            checkpoint.weights[item.name].dtype,
        )
        if two_four.check(dense, dtype).is_24:
            return PackedWeight.from_packed(two_four.pack(dense, dtype))
        return _as_tensor(dense, FILE_TYPES[dtype])
    name = item.parts[0]
    return _as_tensor(checkpoint.tensor(name), item.file.tensors[name].dtype)


def _as_tensor(array: np.ndarray, dtype: str) -> Tensor:
    """An array as a tensor of the type that files spell `dtype`."""
    view = _VIEWS.get(dtype)
    if view is None:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(f"int{8 * array.itemsize}")).view(view)


@dataclass(frozen=True)
class LoadReport:
    """What `load_into` did.

    packed:      linear layers that are `NMLinear` now.
    dense:       parameters and buffers that were loaded as they are, or unpacked.
    missing:     parameters and persistent buffers of the model that were not loaded.
    unexpected:  tensors of the checkpoint that the model has no place for.
    """

    packed: Tuple[str, ...]
    dense: Tuple[str, ...]
    missing: Tuple[str, ...]
    unexpected: Tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{len(self.packed)} packed layers, {len(self.dense)} dense tensors, "
            f"{len(self.missing)} missing, {len(self.unexpected)} unexpected"
        )


def load_into(
    model: nn.Module, path: PathLike, strict: bool = True, progress: bool = True
) -> LoadReport:
    """Loads a checkpoint into a model, one tensor at a time.

    model:   a dense one or one with packed layers, on any device, also on meta. A
             linear layer whose weight is 2:4 or packed becomes an `NMLinear` of the
             type that it had; a dense layer must be a plain nn.Linear that shares its
             weight with none. Other tensors are copied, and become tensors of the CPU
             where the model is on meta. There, models of transformers compute buffers
             that are in no checkpoint; other models must not have any.
    path:    as for `load_compressed`; also of `save_pretrained` of a model with packed
             layers. A weight with a scale for all of it or for each output
             (`NAME_scale`) is multiplied by it.
    strict:  whether missing and unexpected tensors are an error. Scales and zero points
             of activations are neither.

    Returns which tensors were loaded. Raises CheckpointError, which names the tensor,
    for layouts, scales and shapes that do not fit, and where `strict` asks for it. The
    model is as it was then; but not where a tensor turns out to be damaged.
    """
    checkpoint = Checkpoint(path)
    check_readable(checkpoint)
    target = Target(model, checkpoint)
    todo = target.plan(contents(checkpoint))
    target.missing += unknown_buffers(model)
    if strict:
        _refuse(path, "missing", target.missing)
        _refuse(path, "unexpected", target.unexpected)
    for item, name in bar(todo, "tensors", progress):
        target.load(item, name, _read(checkpoint, item))
    fill_buffers(model)
    mark_pretrained(model)
    found = target.packed, target.dense, target.missing, target.unexpected
    return LoadReport(*map(tuple, found))


def _refuse(path: PathLike, kind: str, names: List[str]) -> None:
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise CheckpointError(
            f"{path}: {kind} are {', '.join(names[:_SHOWN])}{more}: legal is the "
            "checkpoint of this model; strict=False allows it"
        )


def convert_checkpoint(
    source: PathLike,
    target: PathLike,
    progress: bool = True,
    weights: Sequence[str] = ("*",),
) -> Conversion:
    """Writes a checkpoint whose 2:4 weights are packed, without changing an element.

    source:    a `.safetensors` file, an index of several, or the folder of a model, in
               one of the layouts of docs/Checkpoints.md.
    target:    of one file, a `.safetensors` file; else a folder, which must not be
               there or be empty. It gets its name when it is whole.
    progress:  whether a bar is shown.
    weights:   patterns (`fnmatch`) of the names of the weights to pack where they are
               2:4.

    A folder is one that `from_pretrained` loads, as that of `convert_pretrained`, so
    weights with scales become numbers of the model's type. A file has weights of 8 bits
    as they are, beside their scales. `load_into` reads both.

    Raises CheckpointError, which names file and tensor, before anything is written, and
    OSError.
    """
    is_file = Path(target).suffix == ".safetensors"
    structure = None if is_file else find_structure(Checkpoint(source))
    return conversion.convert_checkpoint(source, target, progress, weights, structure)

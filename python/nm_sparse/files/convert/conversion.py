# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints with 2:4 weights, converted to packed ones (docs/Checkpoints.md).

Tensors are read, packed and written one after the other, so that memory holds one
weight and what is made of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ...packing import two_four
from ..checkpoint import Checkpoint
from ..contents import Item, bar, contents
from ..packed_file import stored_tensors
from ..scales import check_readable
from ..tensor_file import CheckpointError, PathLike, TensorFile
from ..tensor_writer import TensorWriter
from .actions import Structure
from .model import convert_model
from .names import structure_by_names
from .options import Options

UNNAMED = "no pattern of weights names it"


@dataclass(frozen=True)
class Conversion:
    """What `convert_checkpoint` did.

    packed:  the weights that are packed now, in their order.
    left:    why each other matrix is not, by its name.
    bytes_before, bytes_after:  of all tensors.
    """

    packed: Tuple[str, ...]
    left: Mapping[str, str] = field(default_factory=dict)
    bytes_before: int = 0
    bytes_after: int = 0

    def __str__(self) -> str:
        count = len(self.packed) + len(self.left)
        return (
            f"{len(self.packed)} of {count} weights are packed; the checkpoint has "
            f"{self.bytes_after / 2**20:.1f} MiB instead of "
            f"{self.bytes_before / 2**20:.1f} MiB"
        )


def convert_checkpoint(
    source: PathLike,
    target: PathLike,
    progress: bool = True,
    weights: Sequence[str] = ("*",),
    structure: Optional[Structure] = None,
) -> Conversion:
    """Writes a checkpoint whose 2:4 weights are packed, without changing an element.

    source:     a `.safetensors` file, an index of several, or the folder of a model, in
                one of the layouts of docs/Checkpoints.md.
    target:     of one file, a `.safetensors` file; else a folder, which must not be
                there or be empty. It gets its name when it is whole.
    progress:   whether a bar is shown.
    weights:    patterns (`fnmatch`) of the names of the weights to pack where they are
                2:4.
    structure:  which weights layers have that can be packed, for a folder; by default
                all matrices but those that are named like embeddings.

    A folder is one that `from_pretrained` loads: `convert_model` makes it, so weights
    with scales become numbers of the model's type. A file has weights of 8 bits as they
    are, beside their scales: `NAME.values` and `NAME.index`, with metadata
    `NAME.nm_sparse`. `nm_sparse.torch.load_into` reads both.

    Raises CheckpointError, which names file and tensor, before anything is written, and
    OSError.
    """
    checkpoint, target = Checkpoint(source), Path(target)
    check_readable(checkpoint)
    if target.suffix == ".safetensors":
        return _convert_file(checkpoint, target, progress, tuple(weights))
    known = structure or structure_by_names(checkpoint)
    is_named = {n: any(fnmatchcase(n, p) for p in weights) for n in known.linear}
    linear = {n: shape for n, shape in known.linear.items() if is_named[n]}
    unnamed = {n: UNNAMED for n in known.linear if not is_named[n]}
    known = replace(known, linear=linear, others={**known.others, **unnamed})
    options = Options(two_four.ENCODING, prune="none")
    report = convert_model(checkpoint, target, options, known, progress=progress)
    left = {one.name: one.reason for one in report.outcomes if not one.is_packed}
    done = [one.name for one in report.outcomes if one.is_packed and not one.was_packed]
    return Conversion(tuple(done), left, report.bytes_before, report.bytes_after)


def _convert_file(
    checkpoint: Checkpoint, target: Path, progress: bool, patterns: Tuple[str, ...]
) -> Conversion:
    if len(checkpoint.files) > 1:
        raise CheckpointError(
            f"{target}: the source has {len(checkpoint.files)} files: legal is the "
            "name of a folder"
        )
    if any(target.exists() and target.samefile(p) for p in checkpoint.files):
        raise CheckpointError(f"{target}: this is the source: legal is another file")
    items = contents(checkpoint)
    packed: List[str] = []
    left: Dict[str, str] = {}
    metadata: Dict[str, str] = {}
    with TensorWriter(target) as writer:
        for item in bar(items, "tensors", progress):
            metadata = {**item.file.metadata, **metadata}
            if item.kind == "weight":
                reason = UNNAMED
                if any(fnmatchcase(item.name, pattern) for pattern in patterns):
                    reason, text = _pack(checkpoint, item, writer)
                    metadata.update(text)
                if not reason:
                    packed.append(item.name)
                    continue
                left[item.name] = reason
            for name in item.parts:
                file = checkpoint.file_of(name)
                writer.copy(file.tensors[name], file.path)
        writer.finish(metadata)
    before, after = (
        sum(tensor.size for file in files for tensor in file.tensors.values())
        for files in (checkpoint.files.values(), [TensorFile(target)])
    )
    return Conversion(tuple(packed), left, before, after)


def _pack(
    checkpoint: Checkpoint, item: Item, writer: TensorWriter
) -> Tuple[str, Dict[str, str]]:
    """Writes a weight packed if it is 2:4, else says why not; the metadata of it."""
    dense, dtype = checkpoint.dense(item.name), checkpoint.weights[item.name].dtype
    pattern = two_four.check(dense, dtype)
    if not pattern.is_24:
        return str(pattern), {}
    packed = two_four.pack(dense, dtype)
    del dense
    tensors, metadata = stored_tensors(item.name, packed)
    for name, (kind, array) in tensors.items():
        writer.add(name, kind, array)
    return "", metadata

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints with 2:4 weights, converted to packed ones (docs/Checkpoints.md).

Tensors are read, packed and written one after the other, so that memory holds one
weight and what is made of it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

from ..packing import two_four
from .checkpoint import INDEX, PARTS, PICKLES, Checkpoint
from .packed_file import packed_parts, stored_tensors
from .tensor_file import CheckpointError, PathLike, TensorFile
from .tensor_writer import TensorWriter

# Layouts of compressed-tensors whose weights are matrices of plain elements, beside
# scales, or are read by `Checkpoint`.
FORMATS = (
    "dense",
    "sparse-24-bitmask",
    "naive-quantized",
    "float-quantized",
    "int-quantized",
)


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


def contents(checkpoint: Checkpoint) -> List[Item]:
    """All tensors of a checkpoint, each in one item, in the order of its files.

    Raises CheckpointError when a packed weight or config.json is not understood.
    """
    _check_config(checkpoint)
    items: List[Item] = []
    part_of = {
        f"{name[: -len('.weight')]}.{part}": name
        for name, weight in checkpoint.weights.items()
        if weight.stored != "dense"
        for part in PARTS
    }
    for file in checkpoint.files.values():
        packed = packed_parts(file)
        items += [
            Item(name, "packed", file, tuple(parts)) for name, parts in packed.items()
        ]
        used = {part for parts in packed.values() for part in parts}
        for name in file.tensors:
            if name in used:
                continue
            if name not in part_of:
                kind = "weight" if name in checkpoint.weights else "other"
                items.append(Item(name, kind, file, (name,)))
            elif name.endswith(".compressed"):
                prefix = name[: -len("compressed")]
                parts = tuple(prefix + part for part in PARTS)
                items.append(Item(part_of[name], "weight", file, parts))
    return items


def _check_config(checkpoint: Checkpoint) -> None:
    """Weights in other layouts would look like tensors that are no weights."""
    compression = checkpoint.compression
    entries = [compression, compression.get("sparsity_config")]
    if compression.get("quant_method", "compressed-tensors") != "compressed-tensors":
        return
    for entry in entries:
        name = entry.get("format") if isinstance(entry, dict) else None
        if name is not None and name not in FORMATS:
            folder = checkpoint.path
            folder = folder if folder.is_dir() else folder.parent
            raise CheckpointError(
                f"{folder / 'config.json'}: the weights are stored as {name!r}: legal "
                f"is {', '.join(FORMATS)}"
            )


def bar(items: Sequence[Any], unit: str, progress: bool) -> Iterable[Any]:
    """`items`, with a bar on standard error where tqdm is there and that a terminal."""
    if not progress:
        return items
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(items, unit=f" {unit}", disable=None, leave=False)


def convert_checkpoint(
    source: PathLike,
    target: PathLike,
    progress: bool = True,
    weights: Sequence[str] = ("*",),
) -> Conversion:
    """Writes a checkpoint whose 2:4 weights are packed, and all else as it is.

    source:    a `.safetensors` file, an index of several, or the folder of a model.
               Weights are dense or `sparse-24-bitmask` (docs/Checkpoints.md).
    target:    of one file, a `.safetensors` file; else a folder, which must not be
               there or be empty. It has the files of the source, a new index, and its
               config.json without what that says of sparsity. It is there as a whole
               when this returns, and not at all before.
    progress:  whether a bar is shown.
    weights:   patterns (`fnmatch`) of the names of the weights to pack where they are
               2:4.

    The weights are `NAME.values` and `NAME.index`, with metadata `NAME.nm_sparse`, as
    docs/Encoding.md says; `nm_sparse.torch.load_into` reads them.

    Raises CheckpointError, which names file and tensor, and OSError.
    """
    checkpoint, target = Checkpoint(source), Path(target)
    items = contents(checkpoint)
    done = _Done(checkpoint, tuple(weights))
    shown = bar(items, "tensors", progress)
    if target.suffix == ".safetensors":
        if len(checkpoint.files) > 1:
            raise CheckpointError(
                f"{target}: the source has {len(checkpoint.files)} files: legal is the "
                "name of a folder"
            )
        if any(target.exists() and target.samefile(p) for p in checkpoint.files):
            raise CheckpointError(
                f"{target}: this is the source: legal is another file"
            )
        done.write(shown, target)
        return done.result()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CheckpointError(f"{target}: is there: legal is a new or empty folder")
    target.resolve().parent.mkdir(parents=True, exist_ok=True)
    with _new_folder(target) as folder:
        # `contents` goes file by file.
        for path, part in groupby(shown, key=lambda item: item.file.path):
            done.write(part, folder / path.name)
        _copy_others(checkpoint, folder)
        if len(checkpoint.files) > 1:
            done.write_index(folder / INDEX)
    return done.result()


class _Done:
    """Files that are written, and what became of the weights."""

    def __init__(self, checkpoint: Checkpoint, patterns: Tuple[str, ...]) -> None:
        self.checkpoint, self.patterns = checkpoint, patterns
        self.packed: List[str] = []
        self.left: Dict[str, str] = {}
        self.shards: Dict[str, str] = {}
        self.after = 0

    def write(self, items: Iterable[Item], path: Path) -> None:
        """Writes a file of these items."""
        metadata: Dict[str, str] = {}
        with TensorWriter(path) as writer:
            for item in items:
                metadata = {**item.file.metadata, **metadata}
                metadata.update(self._add(item, writer))
            writer.finish(metadata)
        for tensor in TensorFile(path).tensors.values():
            self.shards[tensor.name] = path.name
            self.after += tensor.size

    def _add(self, item: Item, writer: TensorWriter) -> Dict[str, str]:
        """Adds one item; the metadata beside it."""
        if item.kind == "weight":
            if any(fnmatchcase(item.name, pattern) for pattern in self.patterns):
                dense = self.checkpoint.dense(item.name)
                dtype = self.checkpoint.weights[item.name].dtype
                pattern = two_four.check(dense, dtype)
                if pattern.is_24:
                    self.packed.append(item.name)
                    packed = two_four.pack(dense, dtype)
                    del dense
                    tensors, metadata = stored_tensors(item.name, packed)
                    for name, (kind, array) in tensors.items():
                        writer.add(name, kind, array)
                    return metadata
                self.left[item.name] = str(pattern)
            else:
                self.left[item.name] = "no pattern of weights names it"
        for name in item.parts:
            file = self.checkpoint.file_of(name)
            writer.copy(file.tensors[name], file.path)
        return {}

    def write_index(self, path: Path) -> None:
        index = {"metadata": {"total_size": self.after}, "weight_map": self.shards}
        path.write_text(json.dumps(index, indent=2, sort_keys=True) + "\n", "utf-8")

    def result(self) -> Conversion:
        files = self.checkpoint.files.values()
        before = sum(tensor.size for file in files for tensor in file.tensors.values())
        return Conversion(tuple(self.packed), self.left, before, self.after)


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """A folder that gets the name `target` at the end, and vanishes on an error."""
    parent = target.resolve().parent
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=target.name))
    try:
        yield folder
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(folder, 0o777 & ~umask)
        if target.exists():
            target.rmdir()
        os.replace(folder, target)
    except BaseException:
        shutil.rmtree(folder)
        raise


def _copy_others(checkpoint: Checkpoint, folder: Path) -> None:
    """Copies what lies beside the weights: configs, tokenizers, texts."""
    source = checkpoint.path if checkpoint.path.is_dir() else checkpoint.path.parent
    for path in sorted(source.iterdir()):
        is_weights = path.suffix in (".safetensors", *PICKLES)
        is_weights |= path.name.endswith(".index.json")
        if path.is_file() and not is_weights and path.name != "config.json":
            shutil.copyfile(path, folder / path.name)
    if checkpoint.config:
        text = json.dumps(_without_sparsity(checkpoint.config), indent=2)
        (folder / "config.json").write_text(text + "\n", "utf-8")


def _without_sparsity(config: Mapping[str, Any]) -> Dict[str, Any]:
    """The config without what it says of a layout that the weights no longer have."""
    result = {k: v for k, v in config.items() if k != "sparsity_config"}
    for key in ("quantization_config", "compression_config"):
        entry = result.get(key)
        if not isinstance(entry, dict) or "sparsity_config" not in entry:
            continue
        rest = {k: v for k, v in entry.items() if k != "sparsity_config"}
        if rest.get("config_groups"):
            result[key] = rest
        else:  # it says how sparse weights are stored, and nothing else
            del result[key]
    return result

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints: which weights of a trained model are 2:4, and these in packed form.

Reads safetensors: one file, or the folder of a model. docs/Checkpoints.md says what is
understood. Nothing from a checkpoint is ever executed, so pickles are refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ..encoding import EncodingError, Packed
from ..packing import two_four
from ..packing.two_four import Pattern
from . import marlin
from .model_folder import find_first, read_index, read_json
from .packed_file import PackedPlace, packed_places, place_parts, read_place
from .tensor_file import CheckpointError, PathLike, TensorFile, TensorInfo

SCALES = ("_scale", "_scale_inv")  # behind the name of a weight
# Names of what belongs to a weight, and is none itself, end so.
COMPANIONS = (*SCALES, "_zero_point")
PARTS = ("shape", "compressed", "bitmask")
BITMASK, MARLIN = "sparse-24-bitmask", "marlin-24"  # layouts of compressed-tensors
# Endings of tensors that are weights in other layouts, and what those are called.
UNREAD = {"weight_packed": "packed integers", "qweight": "GPTQ or AWQ"}


@dataclass(frozen=True)
class Weight:
    """A matrix of a checkpoint, outputs x inputs.

    name:    of the weight, such as "model.layers.0.mlp.up_proj.weight".
    dtype:   element type, spelled as in MLIR; of "marlin-24" that of what is decoded.
    stored:  "dense", "sparse-24-bitmask" or "marlin-24".
    scale:   the tensor that the product is to be multiplied by, if there is one.
    """

    name: str
    outputs: int
    inputs: int
    dtype: str
    stored: str
    scale: Optional[str] = None


class Checkpoint:
    """A checkpoint that is open for reading; tensors are read when asked for.

    path:     as given.
    files:    the safetensors files, by path.
    config:   config.json of the folder, {} where there is none.
    weights:  the matrices that may be weights of linear layers, by name.
    packed:   where weights are that are packed already, by name.
    unread:   the layouts of weights that cannot be read, by the name of a tensor.
    """

    def __init__(self, path: PathLike) -> None:
        """Opens a `.safetensors` file, an index of several, or the folder of a model.

        Raises CheckpointError when something is missing, damaged or not understood,
        and OSError when a file cannot be read.
        """
        self.path = Path(path)
        folder = self.path if self.path.is_dir() else self.path.parent
        found = find_first(self.path)
        shards = read_index(found) if found.suffix == ".json" else {}
        names = sorted(set(shards.values()))
        self.files = {p: TensorFile(p) for p in [folder / n for n in names] or [found]}
        self._places: Dict[str, TensorFile] = {}
        for file in self.files.values():
            for name in file.tensors:
                if name in self._places:
                    raise CheckpointError(
                        f"{file.path}: tensor {name!r} is in "
                        f"{self._places[name].path}, too: legal is one of them"
                    )
                self._places[name] = file
        for name, shard in shards.items():
            if name not in self.files[folder / shard].tensors:
                raise CheckpointError(
                    f"{found}: tensor {name!r} is not in {shard}, as the index says"
                )
        config = folder / "config.json"
        self.config = read_json(config, "it") if config.is_file() else {}
        self.packed: Dict[str, PackedPlace] = {}
        tensors = {name: file.tensors[name] for name, file in self._places.items()}
        for file in self.files.values():
            self.packed.update(packed_places(file, tensors))
        self.unread: Dict[str, str] = {}
        self.weights = {w.name: w for w in sorted(self._find_weights(), key=_order)}

    @property
    def compression(self) -> Dict[str, Any]:
        """What config.json says of quantization and sparsity; {} where it does not."""
        for key in ("quantization_config", "compression_config"):
            if isinstance(entry := self.config.get(key), dict):
                return entry
        entry = self.config.get("sparsity_config")
        return {"sparsity_config": entry} if isinstance(entry, dict) else {}

    def _info(self, name: str) -> TensorInfo:
        return self._places[name].tensors[name]

    def _find_weights(self) -> List[Weight]:
        skipped = set()
        for place in self.packed.values():
            skipped.update(place_parts(place, self._places))
        layouts: Dict[str, Tuple[str, List[str]]] = {}
        for name in self._places:
            prefix, _, part = name.rpartition(".")
            for layout, parts in ((BITMASK, PARTS), (MARLIN, marlin.PARTS)):
                there = [p for p in parts if f"{prefix}.{p}" in self._places]
                # A single name of these may be any tensor; so many are not there by
                # chance.
                if part in parts and len(there) > len(parts) // 2:
                    layouts[prefix] = layout, there
                    skipped.add(name)
            if part in UNREAD and name not in skipped:
                self.unread[name] = self._said_format() or UNREAD[part]
                skipped.add(name)
        found = []
        for prefix, (layout, there) in layouts.items():
            read = self._compressed if layout == BITMASK else self._marlin
            found.append(read(prefix, there))
        for name in self._places:
            info = self._info(name)
            if name in skipped or info.element_type is None or len(info.shape) != 2:
                continue
            if 0 in info.shape or name.endswith(COMPANIONS):
                continue
            found.append(self._weight(name, info.shape, info.element_type, "dense"))
        return found

    def _said_format(self) -> Optional[str]:
        """The layout that config.json names, which need not be that of the tensors."""
        entry = self.compression.get("sparsity_config")
        named = [self.compression.get("format")]
        named += [entry.get("format")] if isinstance(entry, dict) else []
        return next((n for n in named if isinstance(n, str) and n != "dense"), None)

    def _weight(self, name: str, shape: Any, dtype: str, stored: str) -> Weight:
        scales = (name + ending for ending in SCALES)
        scale = next((s for s in scales if s in self._places), None)
        return Weight(name, int(shape[0]), int(shape[1]), dtype, stored, scale)

    def _compressed(self, prefix: str, there: List[str]) -> Weight:
        if f"{prefix}.row_offsets" in self._places and "compressed" in there:
            self._fail(
                f"{prefix}.compressed",
                "is stored as sparse-bitmask, which has no 2:4 pattern",
                "sparse-24-bitmask, or dense",
            )
        self._check_parts(prefix, there, PARTS)
        if f"{prefix}.weight" in self._places:
            self._fail(
                f"{prefix}.weight", "is there dense and compressed", "one of them"
            )
        info = self._info(f"{prefix}.compressed")
        if info.element_type is None or len(info.shape) != 2:
            self._fail(
                info.name,
                f"is {info.dtype} of shape {list(info.shape)}",
                "a matrix of F32, F16, BF16, F8_E4M3, F8_E5M2 or I8",
            )
        size, bitmask = self._info(f"{prefix}.shape"), self._info(f"{prefix}.bitmask")
        if math.prod(size.shape) != 2:
            self._fail(size.name, f"has shape {list(size.shape)}", "two numbers")
        if bitmask.dtype != "U8":
            self._fail(bitmask.name, f"is {bitmask.dtype}", "U8")
        try:
            shape = two_four.bitmask_sizes(
                self.tensor(size.name), info.shape, bitmask.shape
            )
        except EncodingError as error:
            raise self._place(prefix, error) from None
        dtype = str(info.element_type)
        return self._weight(f"{prefix}.weight", shape, dtype, BITMASK)

    def _marlin(self, prefix: str, there: List[str]) -> Weight:
        self._check_parts(prefix, there, marlin.PARTS)
        infos = [self._info(f"{prefix}.{part}") for part in marlin.PARTS]
        for info, legal in zip(infos, ("I32", "F16", "I16")):
            if info.dtype != legal:
                self._fail(info.name, f"is {info.dtype}", legal)
        try:
            *shape, _ = marlin.marlin_sizes(*(info.shape for info in infos))
        except EncodingError as error:
            raise self._place(prefix, error) from None
        return Weight(f"{prefix}.weight", *shape, "f16", MARLIN)

    def _check_parts(self, prefix: str, there: List[str], parts: Any) -> None:
        for part in parts:
            if part not in there:
                self._fail(
                    f"{prefix}.{there[0]}",
                    f"has no {part} beside it",
                    f"all of {', '.join(parts)}",
                )

    def _place(self, prefix: str, error: EncodingError) -> CheckpointError:
        """The error with file and tensor, whose part it begins with."""
        part, _, rest = str(error).partition(" ")
        name = f"{prefix}.{part}"
        return CheckpointError(f"{self._places[name].path}: tensor {name!r} {rest}")

    def _fail(self, name: str, found: str, legal: str) -> None:
        file = self._places[name].path
        raise CheckpointError(f"{file}: tensor {name!r} {found}: legal is {legal}")

    def _get(self, name: str) -> Weight:
        if name not in self.weights:
            raise CheckpointError(
                f"{self.path}: there is no weight {name!r}: legal is a matrix of "
                "F32, F16, BF16, F8_E4M3, F8_E5M2 or I8"
            )
        return self.weights[name]

    def file_of(self, name: str) -> TensorFile:
        """The file that has a tensor. Raises CheckpointError where there is none."""
        if name not in self._places:
            raise CheckpointError(f"{self.path}: there is no tensor {name!r}")
        return self._places[name]

    def tensor(self, name: str) -> np.ndarray:
        """Any tensor, as it is stored; bf16 and f8 as unsigned views."""
        return self.file_of(name).read(name)

    def dense(self, name: str) -> np.ndarray:
        """A weight, outputs x inputs; bf16 and f8 as unsigned views. One of
        `marlin-24` is its integers times its scales, rounded to f16."""
        weight = self._get(name)
        if weight.stored == "dense":
            return self.tensor(name)
        prefix = name[: -len(".weight")]
        is_bitmask = weight.stored == BITMASK
        names = PARTS if is_bitmask else marlin.PARTS
        parts = [self.tensor(f"{prefix}.{part}") for part in names]
        try:
            if is_bitmask:
                return two_four.decode_bitmask(*parts)
            return marlin.decode_marlin(*parts).astype(np.float16)
        except EncodingError as error:
            raise self._place(prefix, error) from None

    def read_packed(self, name: str) -> Packed:
        """One of `packed`, in canonical form. Its components may be in several files.

        Raises CheckpointError where a component is missing, and EncodingError where
        they are not legal."""
        return read_place(self.packed[name], self.file_of)

    def parts(self, name: str) -> List[str]:
        """The names of the tensors that are a weight, packed or not."""
        if name in self.packed:
            return place_parts(self.packed[name], self._places)
        weight = self._get(name)
        if weight.stored == "dense":
            return [name]
        prefix = name[: -len("weight")]
        return [
            prefix + part
            for part in (PARTS if weight.stored == BITMASK else marlin.PARTS)
        ]

    def has(self, name: str) -> bool:
        """Whether there is a tensor of this name."""
        return name in self._places

    def check(self, name: str) -> Pattern:
        """How far a weight is 2:4 along its inputs."""
        return two_four.check(self.dense(name), self._get(name).dtype)

    def pack(self, name: str) -> Packed:
        """A 2:4 weight in canonical form. Raises CheckpointError, with the number of
        violations and the first of them, when it is not 2:4."""
        weight, dense = self._get(name), self.dense(name)
        pattern = two_four.check(dense, weight.dtype)
        if pattern.first is not None:
            output, window = pattern.first
            raise CheckpointError(
                f"{self.path}: weight {name!r} is not 2:4: {pattern.violations} of "
                f"{pattern.windows} windows have more than 2 nonzero elements; the "
                f"first is window {window} of output {output}; prune the weight"
            )
        return two_four.pack(dense, weight.dtype)


def _order(weight: Weight) -> List[Any]:
    """Layer 10 comes behind layer 9."""
    parts = weight.name.split(".")
    return [(0, int(p), p) if p.isdecimal() else (1, 0, p) for p in parts]

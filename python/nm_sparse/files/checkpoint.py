# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints: which weights of a trained model are 2:4, and these in packed form.

Reads safetensors: one file, or the folder of a model. docs/Checkpoints.md says what is
understood. Nothing from a checkpoint is ever executed, so pickles are refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy as np

from ..encoding import EncodingError, Packed
from ..packing import two_four
from ..packing.two_four import Pattern
from .tensor_file import (
    CheckpointError,
    PathLike,
    TensorFile,
    TensorInfo,
    parse_json,
)

INDEX = "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
SCALES = ("_scale", "_scale_inv")  # behind the name of a weight
# Names of what belongs to a weight, and is none itself, end so.
COMPANIONS = (*SCALES, "_zero_point")
PARTS = ("shape", "compressed", "bitmask")
LARGEST_JSON = 1 << 28  # bytes of an index or a config


@dataclass(frozen=True)
class Weight:
    """A matrix of a checkpoint, outputs x inputs.

    name:    of the weight, such as "model.layers.0.mlp.up_proj.weight".
    dtype:   element type, spelled as in MLIR.
    stored:  "dense" or "sparse-24-bitmask".
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
    """

    def __init__(self, path: PathLike) -> None:
        """Opens a `.safetensors` file, an index of several, or the folder of a model.

        Raises CheckpointError when something is missing, damaged or not understood,
        and OSError when a file cannot be read.
        """
        self.path = Path(path)
        folder = self.path if self.path.is_dir() else self.path.parent
        found = _find(self.path)
        shards = _read_index(found) if found.suffix == ".json" else {}
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
        self.config = _read_json(config, "it") if config.is_file() else {}
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
        prefixes, parts = {}, set()
        for name in self._places:
            prefix, _, part = name.rpartition(".")
            there = [p for p in PARTS if f"{prefix}.{p}" in self._places]
            # A single name of these may be any tensor; two are not there by chance.
            if part in PARTS and len(there) > 1:
                prefixes[prefix] = there
                parts.add(name)
        found = [self._compressed(*item) for item in prefixes.items()]
        for name in self._places:
            info = self._info(name)
            if name in parts or info.element_type is None or len(info.shape) != 2:
                continue
            if 0 in info.shape or name.endswith(COMPANIONS):
                continue
            found.append(self._weight(name, info.shape, info.element_type, "dense"))
        return found

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
        for part in PARTS:
            if part not in there:
                self._fail(f"{prefix}.{there[0]}", f"has no {part} beside it", "all of "
                           f"{', '.join(PARTS)}")  # fmt: skip
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
        return self._weight(f"{prefix}.weight", shape, dtype, "sparse-24-bitmask")

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
        """A weight, outputs x inputs; bf16 and f8 as unsigned views."""
        weight = self._get(name)
        if weight.stored == "dense":
            return self.tensor(name)
        prefix = name[: -len(".weight")]
        parts = [self.tensor(f"{prefix}.{part}") for part in PARTS]
        try:
            return two_four.decode_bitmask(*parts)
        except EncodingError as error:
            raise self._place(prefix, error) from None

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


def _find(path: Path) -> Path:
    """The file to read first: tensors, or an index of files of them."""
    if path.is_dir():
        for name in (INDEX, "model.safetensors"):
            if (path / name).exists():
                return path / name
        files = sorted(path.glob("*.safetensors"))
        if len(files) == 1:
            return files[0]
        pickles = sorted(p.name for p in path.iterdir() if p.suffix in PICKLES)
        if not files and pickles:
            _refuse_pickle(path / pickles[0])
        raise CheckpointError(
            f"{path}: has {len(files)} safetensors files and no {INDEX}: legal is one "
            "file, or an index"
        )
    if path.suffix in PICKLES:
        _refuse_pickle(path)
    if path.suffix == ".json" and not path.name.endswith(".index.json"):
        raise CheckpointError(f"{path}: legal is a folder, .safetensors or .index.json")
    return path


def _refuse_pickle(path: Path) -> None:
    raise CheckpointError(
        f"{path}: this is a pickle, and reading one runs the code in it: legal is "
        "safetensors; convert it where that code may run"
    )


def _read_json(path: Path, what: str) -> Dict[str, Any]:
    if path.stat().st_size > LARGEST_JSON:
        raise CheckpointError(
            f"{path}: has {path.stat().st_size} bytes: legal is {LARGEST_JSON}"
        )
    return parse_json(path.read_bytes(), path, what)


def _read_index(path: Path) -> Dict[str, str]:
    """The file that each tensor is in, by the name of the tensor."""
    shards = _read_json(path, "the index").get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise CheckpointError(f"{path}: has no weight_map: legal is one")
    for name, shard in shards.items():
        # A name of one part stays in the folder. It may be a link, as in caches.
        if (
            not isinstance(shard, str)
            or not shard.endswith(".safetensors")
            or any(c in shard for c in "/\\\0")
        ):
            raise CheckpointError(
                f"{path}: tensor {name!r} is in {shard!r}: legal is the name of a "
                "safetensors file in the same folder"
            )
        if not (path.parent / shard).exists():
            raise CheckpointError(
                f"{path}: tensor {name!r} is in {shard}, which is not there"
            )
    return shards

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder of a new checkpoint: made beside its name, gone on with, and finished."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ...encoding import Encoding
from ..checkpoint import Checkpoint
from ..model_folder import (
    INDEX,
    check_target,
    copy_others,
    put_folder,
    read_json,
)
from ..sparse_config import SparseConfig
from ..tensor_file import CheckpointError, TensorFile
from .actions import Action, Structure
from .card import CARD, SOURCE_CARD, model_card
from .options import Options
from .report import ConvertReport, Outcome

STATE = "conversion.json"
SUFFIX = ".unfinished"
_CONFIGS = ("quantization_config", "compression_config", "sparsity_config")


class WorkFolder:
    """Where files lie until the last one is whole: TARGET.unfinished.

    resumed:  files of tensors that an earlier run had written.
    """

    def __init__(self, target: Path, checkpoint: Checkpoint, force: bool) -> None:
        """Raises CheckpointError as `check_target` does."""
        check_target(target, checkpoint.path, force)
        self.target = target.resolve()
        self.path = self.target.with_name(self.target.name + SUFFIX)
        self.resumed = 0
        self._state: Dict[str, Any] = {}

    def begin(self, fingerprint: Any) -> None:
        """Makes the folder, or goes on with what is in it.

        Raises CheckpointError where that is of another conversion."""
        fingerprint = json.loads(json.dumps(fingerprint))
        state = self.path / STATE
        if state.is_file():
            self._state = read_json(state, "the state of the conversion")
            if self._state.get("fingerprint") != fingerprint:
                raise CheckpointError(
                    f"{self.path}: is an unfinished conversion of another source or "
                    "with other options: legal is to repeat that, or to delete the "
                    "folder"
                )
            for path in self.path.glob("*.part"):
                path.unlink()
            return
        if self.path.exists():
            raise CheckpointError(f"{self.path}: is there: legal is another target")
        self.path.mkdir(parents=True)
        self._state = {"fingerprint": fingerprint, "files": {}}
        self._save()

    def _save(self) -> None:
        write_json(self.path / STATE, self._state)

    def shard(self, number: int, count: int) -> Path:
        """The path of one of `count` files of tensors."""
        if count == 1:
            return self.path / "model.safetensors"
        return self.path / f"model-{number + 1:05}-of-{count:05}.safetensors"

    def done(self, path: Path) -> Optional[List[Dict[str, Any]]]:
        """The outcomes of a file that is whole; None where it is not."""
        rows = self._state["files"].get(path.name)
        if rows is None or not path.is_file():
            return None
        self.resumed += 1
        return [{**row, "shape": tuple(row["shape"])} for row in rows]

    def add(self, path: Path, outcomes: Sequence[Outcome]) -> None:
        """Notes that a file is whole."""
        self._state["files"][path.name] = [asdict(one) for one in outcomes]
        self._save()

    def finish(self) -> None:
        """Gives the folder its name."""
        (self.path / STATE).unlink()
        put_folder(self.path, self.target)


def finish_folder(
    work: WorkFolder,
    checkpoint: Checkpoint,
    options: Options,
    actions: Sequence[Action],
    report: ConvertReport,
    structure: Structure,
    provenance: Mapping[str, str],
) -> None:
    """Adds to the tensors what belongs to a model, and gives the folder its name."""
    copy_others(checkpoint.path, work.path, {CARD: SOURCE_CARD})
    sparse = _sparse_config(actions, options, structure, provenance)
    if checkpoint.config:
        config = {k: v for k, v in checkpoint.config.items() if k not in _CONFIGS}
        if options.dtype is not None:
            key = "torch_dtype" if "torch_dtype" in config else "dtype"
            config[key] = _DTYPES[options.dtype]
        config["quantization_config"] = sparse.to_dict()
        write_json(work.path / "config.json", config)
    if len(report.files) > 1:
        write_json(work.path / INDEX, _index(work, report))
    (work.path / CARD).write_text(model_card(report, sparse), "utf-8")
    work.finish()


_DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}


def _sparse_config(
    actions: Sequence[Action],
    options: Options,
    structure: Structure,
    provenance: Mapping[str, str],
) -> SparseConfig:
    layers: Dict[str, Optional[Encoding]] = {name: None for name in structure.left}
    activations: Dict[str, Optional[str]] = {}
    packed = set()
    for one in actions:
        if one.encoding is not None:
            layers[one.layer] = one.encoding
            packed.add(one.dtype)
            activations[one.layer] = options.rounded_inputs
        elif one.name in structure.linear or one.kind == "unpack":
            layers[one.layer] = None
    dtype = packed.pop() if len(packed) == 1 else None
    return SparseConfig.of_layers(
        layers,
        activations,
        weights=options.weights or dtype,
        # Also where they are the same: files have one for each output.
        scales="output" if options.weights else None,
        provenance=dict(provenance),
    )


def _index(work: WorkFolder, report: ConvertReport) -> Dict[str, Any]:
    places = {}
    for file in report.files:
        places.update(dict.fromkeys(TensorFile(work.path / file).tensors, file))
    return {"metadata": {"total_size": report.bytes_after}, "weight_map": places}


def write_json(path: Path, value: Any) -> None:
    """Writes a file of JSON, whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=2) + "\n", "utf-8")
    os.replace(part, path)

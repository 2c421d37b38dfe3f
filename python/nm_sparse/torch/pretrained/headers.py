# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What files of a checkpoint say of packed layers, read before their tensors are."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Optional, Sequence, Tuple

from ...encoding import Encoding, packed_shapes
from ...files.convert.actions import WEIGHT
from ...files.packed_file import EXTRA, SCALE, PackedPlace, packed_places
from ...files.sparse_config import NARROW, SparseConfig, encoding_text
from ...files.tensor_file import CheckpointError, TensorFile
from .mapping import Names


class PackedHeaders:
    """The headers of all files of a checkpoint.

    places:  of packed weights, by the names of their layers.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        """Raises CheckpointError where a file is damaged or no safetensors file."""
        self.files = []
        for path in paths:
            if Path(path).suffix != ".safetensors":
                raise CheckpointError(
                    f"{path}: legal for packed layers is a safetensors file"
                )
            self.files.append(TensorFile(path))
        self.names = {name: file for file in self.files for name in file.tensors}
        self.places: Dict[str, PackedPlace] = {}
        tensors = {name: file.tensors[name] for name, file in self.names.items()}
        for file in self.files:
            for place in packed_places(file, tensors).values():
                if place.prefix.endswith("."):
                    self.places[place.prefix[:-1]] = place

    def check(
        self, sparse: SparseConfig, names: Names
    ) -> Dict[str, Tuple[str, Encoding]]:
        """The name in the checkpoint and the encoding of each packed layer, by its name
        in the model. Layers that the model has not are left out.

        Raises CheckpointError where layers are not what config.json says, components
        are missing or have other shapes, or no layer can have them."""
        self._check_others(sparse, names)
        found = {}
        for said, place in self.places.items():
            try:
                layer = names.layer(said + WEIGHT)
            except ValueError as error:
                raise CheckpointError(
                    f"{place.file.path}: {said} is packed, and {error}"
                ) from None
            described = place.described
            e = described.encoding
            wanted = [sparse.encoding_of(one) for one in (said, layer) if one]
            if e not in wanted:
                raise CheckpointError(
                    f"{place.file.path}: {said} is {encoding_text(e)}, and "
                    f"quantization_config of config.json says "
                    f"{encoding_text(wanted[0]) or 'dense'}: legal is the same in both"
                )
            for part, shape in packed_shapes(e, described.shape).items():
                self._check_part(f"{said}.{part}", shape)
            if self.elements(said) is not None:
                self._check_part(f"{said}.{SCALE}", described.shape[:1])
            if layer is not None:
                found[layer] = said, e
        return found

    def elements(self, said: str) -> Optional[str]:
        """The type of a packed layer's values where they have 8 bits."""
        kind = self.names[f"{said}.values"].tensors[f"{said}.values"].element_type
        return next((name for name, mlir in NARROW.items() if mlir == kind), None)

    def shape(self, said: str) -> Tuple[int, ...]:
        """[outputs, inputs] of a packed layer."""
        return tuple(self.places[said].described.shape)

    def _check_part(self, name: str, shape: Tuple[int, ...]) -> None:
        file = self.names.get(name)
        if file is None:
            layer = name.rpartition(".")[0]
            path = self.places[layer].file.path
            raise CheckpointError(f"{path}: {name} is missing in the checkpoint")
        if file.tensors[name].shape != tuple(shape):
            raise CheckpointError(
                f"{file.path}: {name} has shape {list(file.tensors[name].shape)}: "
                f"legal is {list(shape)}"
            )

    def _check_others(self, sparse: SparseConfig, names: Names) -> None:
        """No layer is dense, or there in part, that config.json calls packed."""
        for name, file in self.names.items():
            said, _, part = name.rpartition(".")
            if said in self.places or part not in ("weight", "values", "index", EXTRA):
                continue
            try:
                layer = names.layer(said + WEIGHT)
            except ValueError:
                continue
            encodings = [sparse.encoding_of(one) for one in (said, layer) if one]
            if layer not in names.linear or None in encodings:
                continue
            if part == "weight":
                raise CheckpointError(
                    f"{file.path}: {name} is dense, and quantization_config of "
                    f"config.json says {encoding_text(encodings[0])}: legal is the "
                    "same in both"
                )
            needed = (f"{said}.{one}" for one in ("values", EXTRA))
            missing = next((one for one in needed if one not in self.names), name)
            raise CheckpointError(
                f"{file.path}: {missing} is missing in the checkpoint"
            )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints with 2:4 or packed weights, as tensors and into models of torch.

`sparse-24-bitmask` checkpoints of compressed-tensors, dense ones that are 2:4, and what
`convert_checkpoint` writes: docs/Checkpoints.md says what is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

import numpy as np
import torch
from torch import Tensor, nn

from ...files.checkpoint import COMPANIONS, SCALES, Checkpoint
from ...files.conversion import Conversion, Item, bar, contents, convert_checkpoint
from ...files.packed_file import read_packed
from ...files.tensor_file import CheckpointError, PathLike
from ...packing import two_four
from ..layers.linear import NMLinear
from ..layers.weight import PackedWeight

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

    Weights that are 2:4 along their inputs, and those that are packed already, come as
    `PackedWeight`, all other tensors as they are; of a weight in parts only the weight.

    Raises CheckpointError, which names file and tensor, and OSError.
    """
    checkpoint = Checkpoint(path)
    for item in bar(contents(checkpoint), "tensors", progress):
        yield item.name, _read(checkpoint, item)


def _read(checkpoint: Checkpoint, item: Item) -> Union[PackedWeight, Tensor]:
    if item.kind == "packed":
        packed = read_packed(item.file.path, item.name)[item.name]
        return PackedWeight.from_packed(packed)
    if item.kind == "weight":
        dense, dtype = (
            checkpoint.dense(item.name),
            checkpoint.weights[item.name].dtype,
        )
        if two_four.check(dense, dtype).is_24:
            return PackedWeight.from_packed(two_four.pack(dense, dtype))
        stored = item.file.tensors[item.parts[0]].dtype
        return _as_tensor(dense, stored)
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

    model:   a dense one, on any device, also on meta. A linear layer whose weight is
             2:4 or packed becomes an `NMLinear` of the type that it had; the layer must
             be a plain nn.Linear that shares its weight with none. Other tensors are
             copied, and become tensors of the CPU where the model is on meta.
    path:    as for `load_compressed`. A weight with a scale for all of it or for each
             output (`NAME_scale`) is multiplied by it.
    strict:  whether missing and unexpected tensors are an error. Scales and zero points
             of activations are neither.

    Returns which tensors were loaded. Raises CheckpointError, which names the tensor,
    for shapes that do not fit, and where `strict` asks for it; the model may then have
    been changed in part.
    """
    checkpoint = Checkpoint(path)
    target = _Target(model, checkpoint)
    for item in bar(contents(checkpoint), "tensors", progress):
        if target.has(item.name) or not item.name.endswith(COMPANIONS):
            target.load(item.name, _read(checkpoint, item))
    report = target.report()
    for kind in ("missing", "unexpected"):
        names: Tuple[str, ...] = getattr(report, kind)
        if strict and names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            raise CheckpointError(
                f"{path}: {kind} are {', '.join(names[:_SHOWN])}{more}: legal is the "
                "checkpoint of this model; strict=False allows it"
            )
    return report


class _Target:
    """A model that is being loaded."""

    def __init__(self, model: nn.Module, checkpoint: Checkpoint) -> None:
        self.model, self.checkpoint = model, checkpoint
        files = checkpoint.files.values()
        self.tensors = {name: file for file in files for name in file.tensors}
        self.packed: List[str] = []
        self.dense: List[str] = []
        self.unexpected: List[str] = []
        # Where each module is, and which names each parameter has.
        self.places: Dict[nn.Module, List[Tuple[nn.Module, str]]] = {}
        self.names: Dict[int, List[str]] = {}
        for name, module in model.named_modules(remove_duplicate=False):
            parent, _, attribute = name.rpartition(".")
            if attribute:
                place = (model.get_submodule(parent), attribute)
                self.places.setdefault(module, []).append(place)
        for name, tensor in model.named_parameters(remove_duplicate=False):
            self.names.setdefault(id(tensor), []).append(name)
        self.tied = {name: all_ for all_ in self.names.values() for name in all_}
        self.wanted = list(model.state_dict())
        self.loaded: set = set()

    def has(self, name: str) -> bool:
        return self._find(name)[1] is not None

    def _find(self, name: str) -> Tuple[Optional[nn.Module], Optional[Tensor]]:
        """The module that has a parameter or buffer, and that."""
        prefix, _, attribute = name.rpartition(".")
        try:
            module = self.model.get_submodule(prefix)
        except AttributeError:
            return None, None
        return module, _tensor_of(module, attribute)

    def load(self, name: str, value: Union[PackedWeight, Tensor]) -> None:
        prefix, _, attribute = name.rpartition(".")
        module, old = self._find(name)
        if module is None or old is None:
            self.unexpected.append(name)
            return
        if tuple(old.shape) != tuple(value.shape):
            raise CheckpointError(
                f"{self.checkpoint.path}: {name!r} has shape {list(value.shape)}: the "
                f"model has {list(old.shape)}"
            )
        scale = self._scale(name, value)
        names = self.tied.get(name, [name])
        self.loaded.update(names)
        if isinstance(value, PackedWeight):
            if type(module) is nn.Linear and attribute == "weight" and len(names) == 1:
                self._replace(prefix, module, _scaled(value, scale, old))
                return
            value = value.to_dense()
        if scale is not None:
            value = value.float() * scale.reshape(-1, *[1] * (value.ndim - 1))
        self._set(names, old, value)
        self.dense.append(name)

    def _scale(self, name: str, value: Any) -> Optional[Tensor]:
        """By which a weight is to be multiplied, [N] or [1] in float32."""
        found = [key for key in (name + ending for ending in SCALES)
                 if key in self.tensors]  # fmt: skip
        if not found:
            return None
        key, file = found[0], self.tensors[found[0]]
        scale = _as_tensor(file.read(key), file.tensors[key].dtype).float()
        outputs = scale.numel() == scale.shape[:1].numel() == value.shape[0]
        if scale.numel() != 1 and not outputs:
            raise CheckpointError(
                f"{file.path}: tensor {key!r} has shape {list(scale.shape)}: legal is "
                f"one number, or one for each of {value.shape[0]} outputs"
            )
        zero = f"{name}_zero_point"
        if zero in self.tensors and np.any(self.tensors[zero].read(zero)):
            raise CheckpointError(
                f"{self.tensors[zero].path}: tensor {zero!r} is not zero: legal are "
                "weights whose zeros are zero"
            )
        return scale.flatten()

    def _replace(self, name: str, module: nn.Linear, weight: PackedWeight) -> None:
        bias = module.bias
        layer = NMLinear.from_packed(weight, None if bias is None else bias.detach())
        layer.train(module.training)
        if not module.weight.requires_grad:
            layer.values.requires_grad_(False)
        if bias is not None and layer.bias is not None:
            layer.bias.requires_grad_(bias.requires_grad)
        for parent, attribute in self.places.pop(module):
            setattr(parent, attribute, layer)
        self.places[layer] = []
        self.packed.append(name)

    def _set(self, names: List[str], old: Tensor, value: Tensor) -> None:
        """Copies a value; where the model has none, makes tensors of it."""
        with torch.no_grad():
            if not old.is_meta:
                old.copy_(value)
                return
            new: Tensor = value.to(old.dtype)
            if isinstance(old, nn.Parameter):
                new = nn.Parameter(new, old.requires_grad)
            for name in names:
                prefix, _, attribute = name.rpartition(".")
                module = self.model.get_submodule(prefix)
                table: Mapping = module._parameters
                table = table if attribute in table else module._buffers
                table[attribute] = new  # type: ignore[index]

    def report(self) -> LoadReport:
        missing = [name for name in self.wanted if name not in self.loaded]
        found = (self.packed, self.dense, missing, self.unexpected)
        return LoadReport(*map(tuple, found))


def _tensor_of(module: nn.Module, attribute: str) -> Optional[Tensor]:
    if attribute in module._parameters:
        return module._parameters[attribute]
    if attribute in module._non_persistent_buffers_set:
        return None
    return module._buffers.get(attribute)


def _scaled(
    weight: PackedWeight, scale: Optional[Tensor], like: Tensor
) -> PackedWeight:
    """The weight in the type of the layer, and on its device."""
    if scale is not None:
        values = weight.components["values"].float()
        if scale.numel() > 1:
            if weight.encoding.is_shuffled:
                scale = scale[weight.components["perm"].long()]
            # The last panel may have outputs that the weight has not.
            factor = values.new_ones(values.shape[1])
            factor[: len(scale)] = scale
            scale = factor
        parts = {**weight.components, "values": values * scale}
        weight = PackedWeight(parts, weight.encoding, weight.shape)
    device = "cpu" if like.is_meta else like.device
    return weight.to(device=device, dtype=like.dtype)

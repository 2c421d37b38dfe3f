# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model that is being loaded from a checkpoint: what it needs, and where it goes."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from ...files.checkpoint import COMPANIONS, Checkpoint
from ...files.contents import Item
from ...files.scales import check_scale, read_scale
from ...files.tensor_file import CheckpointError
from ..layers.conv2d import NMConv2d, like, pack_layer
from ..layers.convertible import is_convertible, matrix_shape
from ..layers.linear import NMLinear
from ..layers.linear_state import PackedState
from ..pretrained.renaming import renamer
from ..weight.weight import PackedWeight

Value = Union[PackedWeight, Tensor]


class Target:
    """A model, dense or with packed layers, on any device.

    packed, dense:        names of what is loaded.
    missing, unexpected:  names of what one of the two has not.
    """

    def __init__(self, model: nn.Module, checkpoint: Checkpoint) -> None:
        self.model, self.checkpoint = model, checkpoint
        self.rename = renamer(model)
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
        self.missing = [
            name for name in model.state_dict() if not name.endswith("._extra_state")
        ]

    def plan(self, items: List[Item]) -> List[Tuple[Item, str]]:
        """What is to be read of a checkpoint, with its name in the model.

        Raises CheckpointError where a shape or a scale does not fit: nothing is changed
        then."""
        todo = []
        for item in items:
            name = self._name(item)
            module, old = self._find(name)
            if module is None or old is None:
                if not name.endswith(COMPANIONS):
                    self.unexpected.append(name)
                continue
            shape = self._shape(item)
            if tuple(old.shape) != shape and not self._is_packed(item, module, shape):
                raise CheckpointError(
                    f"{self.checkpoint.path}: {name!r} has shape {list(shape)}: the "
                    f"model has {list(old.shape)}"
                )
            if shape:
                check_scale(self.checkpoint, item.name, shape[0])
            todo.append((item, name))
            own = self.tied.get(name, [name])
            if isinstance(module, PackedState):
                prefix = name[: -len("weight")]
                own = [n for n in self.missing if n.startswith(prefix)]
                own = [n for n in own if not n.endswith(".bias")]
            self.missing = [one for one in self.missing if one not in own]
        return todo

    def _name(self, item: Item) -> str:
        """That in the model; a packed weight may be called as its layer is."""
        if item.kind == "packed" and not item.name.endswith(".weight"):
            name = self.rename(f"{item.name}.weight")
            if self._find(name)[1] is not None:
                return name
        return self.rename(item.name)

    def _is_packed(self, item: Item, module: Any, shape: Tuple[int, ...]) -> bool:
        """Whether a packed weight has the shape of a layer's as a matrix."""
        is_layer = item.kind == "packed" and is_convertible(module)
        return is_layer and matrix_shape(module) == shape

    def _shape(self, item: Item) -> Tuple[int, ...]:
        if item.kind == "packed":
            return tuple(self.checkpoint.packed[item.name].described.shape)
        if item.kind == "weight":
            weight = self.checkpoint.weights[item.name]
            return weight.outputs, weight.inputs
        return item.file.tensors[item.name].shape

    def _find(self, name: str) -> Tuple[Optional[nn.Module], Any]:
        """The module that has a parameter or buffer, and that."""
        prefix, _, attribute = name.rpartition(".")
        try:
            module = self.model.get_submodule(prefix)
        except AttributeError:
            return None, None
        if attribute in module._parameters:
            return module, module._parameters[attribute]
        if attribute in module._non_persistent_buffers_set:
            return module, None
        return module, module._buffers.get(attribute)

    def load(self, item: Item, name: str, value: Value) -> None:
        """Puts a weight or tensor in its place."""
        prefix, _, attribute = name.rpartition(".")
        module, old = self._find(name)
        scale = self._scale(item, value)
        names = self.tied.get(name, [name])
        is_linear = type(module) is nn.Linear or isinstance(module, NMLinear)
        is_layer = is_linear or (item.kind == "packed" and is_replaced(module))
        if isinstance(value, PackedWeight):
            if is_layer and attribute == "weight" and len(names) == 1:
                self._replace(prefix, module, _scaled(value, scale, old))
                return
            value = value.to_dense()
        if isinstance(module, PackedState) and attribute == "weight":
            raise CheckpointError(
                f"{self.checkpoint.path}: {name!r} is dense, and {prefix} of the model "
                "is packed: legal is a dense layer, or a packed weight"
            )
        if scale is not None:
            value = value.float() * scale.reshape(-1, *[1] * (value.ndim - 1))
        self._set(names, old, value)
        self.dense.append(name)

    def _scale(self, item: Item, value: Value) -> Optional[Tensor]:
        """By which a weight is to be multiplied, [N] or [1] in float32."""
        if not value.shape:
            return None
        scale = read_scale(self.checkpoint, item.name, value.shape[0])
        return None if scale is None else torch.from_numpy(scale)

    def _replace(self, name: str, module: Any, weight: PackedWeight) -> None:
        bias = None if module.bias is None else module.bias.detach()
        if isinstance(module, NMConv2d):
            own = module.geometry, module.activation
            layer: Any = NMConv2d.from_packed(weight, bias, *own)
        elif isinstance(module, NMLinear):
            layer = NMLinear.from_packed(weight, bias, module.activation)
            layer.dense_class = module.dense_class
        else:
            layer = pack_layer(module, weight, bias)
        like(layer, module)
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


def is_replaced(module: Any) -> bool:
    """Whether a packed layer may take its place."""
    return is_convertible(module) or isinstance(module, PackedState)


def _scaled(weight: PackedWeight, scale: Optional[Tensor], like: Any) -> PackedWeight:
    """The weight in the type of the layer, and on its device."""
    if scale is not None:
        weight = weight.canonical()
        values = weight.components["values"].float()
        if scale.numel() > 1:
            if weight.encoding.is_shuffled:
                scale = scale[weight.components["perm"].long()]
            # The last panel may have outputs that the weight has not.
            factor = values.new_ones(values.shape[1])
            factor[: len(scale)] = scale
            scale = factor
        parts = {**weight.components, "values": values * scale}
        weight = PackedWeight.from_components(parts, weight.encoding, weight.shape)
    device = "cpu" if like.device.type == "meta" else like.device
    return weight.to(device=device, dtype=like.dtype)

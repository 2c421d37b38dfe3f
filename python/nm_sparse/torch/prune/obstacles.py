# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Why a linear layer stays dense, whatever is asked for: one rule for all that prunes,
packs or compares patterns, which is asked before the first of it.

`obstacle` is about the layer, `misfit` about its pattern.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import Callable, Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ...encoding import Encoding, packed_shapes
from ..layers.conv2d import unsupported
from ..layers.convertible import weight_shape
from ..weight.spec import DTYPES, component_types, elements_of
from .readers import find_readers
from .subclasses import addition, known_class

# Types of layers; 8-bit weights need scales, which these layers do not have.
LAYER_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks")
HOOKS += ("_backward_hooks",)


class Surroundings:
    """Facts of a model that decide about its layers.

    owners:    by the address of a piece of memory, the modules and the names in the
               model of the parameters in it.
    readers:   layers whose weight other modules read, and by whom.
    adapters:  layers that adapt others, such as those of LoRA, and of what they are.
    """

    def __init__(self, model: nn.Module) -> None:
        self.owners: Dict[int, List[Tuple[nn.Module, str]]] = defaultdict(list)
        self.readers = find_readers(model)
        self.adapters: Dict[nn.Module, str] = {}
        for prefix, module in model.named_modules():
            for name, tensor in module._parameters.items():
                if tensor is not None and not nn.parameter.is_lazy(tensor):
                    where = f"{prefix}.{name}" if prefix else name
                    self.owners[_memory(tensor)].append((module, where))
            for name in getattr(module, "adapter_layer_names", ()):
                part = getattr(module, name, None)
                if isinstance(part, nn.Module):
                    of = dict.fromkeys(part.modules(), prefix)
                    self.adapters.update(of)


def _memory(tensor: Tensor) -> int:
    """The address of a tensor's memory, or of itself where it is made of others."""
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return id(tensor)


def obstacle(layer: nn.Linear, around: Surroundings) -> str:
    """Why a layer can be neither pruned nor packed, whatever its pattern; "" where
    nothing is in the way."""
    for rule in _RULES:
        reason = rule(layer, around)
        if reason:
            return reason
    return ""


def weight_obstacle(layer: nn.Linear) -> str:
    """Why the weight of a layer cannot be changed; "" where it can."""
    return _computed(layer) or _typed(layer)


def misfit(
    shape: Tuple[int, int],
    dtype: torch.dtype,
    e: Encoding,
    keep_larger: bool,
    weights: Optional[str] = None,
) -> str:
    """Why a pattern is of no use for a weight [N, K]; "" where it is. A free encoding,
    of which there are no packed layers, always is.

    keep_larger:  whether a packed weight may take no less memory than the dense one.
    weights:      "e4m3" or "int8" where the packed one has such elements and scales.
    """
    if e.is_free:
        return ""
    (outputs, inputs), window, panel = shape, e.m * e.block[0], e.block[1]
    dense = math.prod(shape) * dtype.itemsize
    packed = packed_bytes(shape, dtype, e, weights)
    if inputs < window:
        return f"its {inputs} inputs are less than a window of {window}"
    if outputs < panel:
        return f"its {outputs} outputs are less than a panel of {panel}"
    if packed >= dense and not keep_larger:
        return f"packed it takes {packed} bytes, dense {dense}"
    return ""


def packed_bytes(
    shape: Tuple[int, int],
    dtype: torch.dtype,
    e: Encoding,
    weights: Optional[str] = None,
) -> int:
    """What a checkpoint has of a packed weight [N, K]: its components, and the text
    that says what they are."""
    elements = elements_of(weights)
    types = component_types(e, dtype if elements is None else DTYPES[elements])
    sizes = packed_shapes(e, shape).items()
    parts = sum(math.prod(size) * types[name].itemsize for name, size in sizes)
    text = json.dumps({"encoding": e.mlir(), "shape": list(shape)})
    scales = 0 if elements is None else 4 * shape[0]
    return parts + scales + len(text)


def _computed(layer: nn.Linear, around: Optional[Surroundings] = None) -> str:
    if any(nn.parameter.is_lazy(one) for one in layer._parameters.values()):
        return "its shape is unknown until the model has run; run it on a batch first"
    if parametrize.is_parametrized(layer):
        return "it has parametrizations; remove them first"
    if "weight" not in layer._parameters:
        return "its weight is computed by a hook of torch.nn.utils; remove that first"
    return ""


def _derived(layer: nn.Linear, around: Surroundings) -> str:
    more = addition(layer)
    if not more:
        return ""
    known = known_class(layer)
    plain = f"nn.{known.__name__}" if known.__module__[:5] == "torch" else "Conv1D"
    return f"it is a {type(layer).__name__}, not a plain {plain}: {more}"


def _grouped(layer: nn.Module, around: Surroundings) -> str:
    return unsupported(layer) if isinstance(layer, nn.Conv2d) else ""


def _typed(layer: nn.Linear, around: Optional[Surroundings] = None) -> str:
    weight = layer.weight
    kinds = {type(weight.data).__name__, type(weight).__name__}
    kinds -= {"Tensor", "Parameter"}
    if kinds:
        return (
            f"its weight is a {min(kinds)}; make the model sparse before weights are "
            "quantized or sharded"
        )
    if weight.shape != weight_shape(layer):
        return (
            f"its weight has shape {list(weight.shape)}, not "
            f"{list(weight_shape(layer))}; gather it first"
        )
    if weight.dtype not in LAYER_DTYPES:
        return f"its weight is of {weight.dtype}"
    if weight.is_meta:
        return "it is on the meta device; load the weights first"
    return ""


def _hooked(layer: nn.Linear, around: Surroundings) -> str:
    if any(getattr(layer, kind) for kind in HOOKS) or hasattr(layer, "_hf_hook"):
        return "it has hooks, which the sparse layer would not call"
    return ""


def _tied(layer: nn.Linear, around: Surroundings) -> str:
    others = around.owners[_memory(layer.weight)]
    tied = [name for owner, name in others if owner is not layer]
    return f"it shares its weight with {', '.join(tied)}" if tied else ""


def _read(layer: nn.Linear, around: Surroundings) -> str:
    reader = around.readers.get(layer)
    return "" if reader is None else outside(reader)


def _adapting(layer: nn.Linear, around: Surroundings) -> str:
    adapted = around.adapters.get(layer)
    return "" if adapted is None else f"it is an adapter of {adapted}"


def outside(reader: str) -> str:
    """The reason of a layer whose weight `reader` reads."""
    return f"its weight is read outside of its forward, by {reader}"


_RULES: Tuple[Callable[[nn.Linear, Surroundings], str], ...] = (
    _computed,
    _read,
    _derived,
    _grouped,
    _typed,
    _hooked,
    _tied,
    _adapting,
)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model with packed layers says of itself when it is saved."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from torch import nn

from ...encoding import Encoding
from ...files.sparse_config import SparseConfig
from ..layers.convertible import is_convertible
from ..layers.linear_state import PackedState
from ..layers.scaled_linear import SAME
from ..weight.spec import dtype_name
from .parts import PackedParts


def sparse_config(
    model: nn.Module, provenance: Optional[Mapping[str, str]] = None
) -> Optional[SparseConfig]:
    """What `quantization_config` says of a model; None where no layer is packed.

    provenance:  free text by key.
    """
    layers: Dict[str, Optional[Encoding]] = {}
    activations: Dict[str, Optional[str]] = {}
    kinds = set()
    for name, module in model.named_modules():
        if isinstance(module, (PackedState, PackedParts)):
            packed: Any = module
            layers[name] = packed.encoding
            dtype = packed.dtype if isinstance(module, PackedParts) else None
            kinds.add(packed.elements or dtype_name(dtype or packed.weight.dtype))
            if packed.elements is not None:
                kind = getattr(packed, "activations", None)
                activations[name] = None if kind == SAME else kind
        elif is_convertible(module):
            layers[name] = None
    if not kinds:
        return None
    return SparseConfig.of_layers(
        layers,
        activations,
        weights=kinds.pop() if len(kinds) == 1 else None,
        scales="output" if activations else None,
        provenance=provenance or {},
    )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A packed layer while transformers shards it and loads its shards.

Styles of tensor parallel shard the parameter `weight` of a linear layer, and put hooks
around its calls; the loader sets tensors by the names that they have in a checkpoint.
`ShardedParts` is a linear layer for the former and has components for the latter. It
becomes a plain `NMLinear` in place, so that the hooks stay.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from ...encoding import Encoding
from ...files.packed_file import INPUT_SCALE
from ...files.tensor_file import CheckpointError
from ..layers.convertible import matrix_shape
from ..layers.linear import NMLinear
from ..layers.scaled_linear import SAME
from ..layers.sharding import (
    is_sharded,
    local_weight,
    shard_components,
    sharded_like,
)
from ..weight.pack import FLOAT8
from ..weight.weight import PackedWeight
from .parts import check_positions


class ShardedParts(NMLinear):
    """An `NMLinear` on the meta device that takes loaded components by their names."""

    _loaded: Dict[str, Tensor]

    @classmethod
    def of(
        cls,
        dense: nn.Linear,
        encoding: Encoding,
        elements: Optional[str] = None,
        activations: Optional[str] = None,
        has_input_scale: bool = False,
    ) -> "ShardedParts":
        """In the place of `dense`. The other arguments are those of `PackedParts`."""
        shape, dtype = matrix_shape(dense), dense.weight.dtype
        weight = PackedWeight.zeros(shape, encoding, dtype, "meta", elements)
        layer = cls.__new__(cls)
        nn.Module.__init__(layer)
        layer._loaded = {}
        layer._set(weight, dense.bias, "none", activations or SAME)
        if has_input_scale:
            layer.set_input_scale(1.0)
        # Transformers would initialize its weight, which is loaded.
        layer._is_hf_initialized = True
        layer.train(dense.training)
        return layer

    def _names(self) -> Tuple[str, ...]:
        """Those of the components."""
        weight = local_weight(self._parameters.get("weight"))
        return () if weight is None else tuple(weight.components)

    def __getattr__(self, name: str) -> Any:
        if "_parameters" not in self.__dict__ or name not in self._names():
            return super().__getattr__(name)
        if name in self._loaded:
            return self._loaded[name]
        weight = self._parameters["weight"]
        assert weight is not None
        # The loader reads of each no more than this process's part.
        part = shard_components(weight)[name]
        is_trained = name == "values" and weight.requires_grad
        return nn.Parameter(part, requires_grad=is_trained)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and name in self._names():
            self._loaded[name] = value
        else:
            super().__setattr__(name, value)

    def set_extra_state(self, state: Tensor) -> None:
        """Raises CheckpointError unless the state is of a layer like this one."""
        problem = self._difference(state)
        if problem is not None:
            raise CheckpointError(problem)

    def missing(self) -> str:
        """The name of a tensor that no checkpoint has set; "" where there is none."""
        for name in self._names():
            if name not in self._loaded:
                return name
        # Transformers marks what it has loaded so.
        is_loaded = getattr(self.bias, "_is_hf_initialized", self.bias is None)
        return "" if is_loaded else "bias"

    def finish(self) -> None:
        """Becomes an `NMLinear` with the tensors that were loaded.

        Raises EncodingError where their contents are not legal."""
        parts = self._loaded
        check_positions({n: local_weight(x) for n, x in parts.items()}, self.encoding)
        own = self._parameters["weight"]
        assert own is not None
        with torch.inference_mode(False), torch.no_grad():
            weight = sharded_like(own, {n: x.detach() for n, x in parts.items()})
            held = nn.Parameter(weight, requires_grad=own.requires_grad)
        self.__class__ = NMLinear  # type: ignore[assignment]
        del self.__dict__["_loaded"]
        self.register_parameter("weight", held)
        self._forget()
        if INPUT_SCALE in self._buffers and self.input_scale is not None:
            self.set_input_scale(float(self.input_scale))  # which checks it


def gathered_state(model: nn.Module) -> Optional[Dict[str, Any]]:
    """The state of a model that several processes share, where it has elements of f8,
    which are whole in it: not every backend exchanges these. None for other models.
    Every process must call it."""
    if not any(_is_shared_f8(module) for module in model.modules()):
        return None
    state: Dict[str, Any] = model.state_dict()
    for name, part in state.items():
        if isinstance(part, DTensor) and part.dtype in FLOAT8:
            data = DTensor.from_local(
                part.to_local().view(torch.uint8),
                part.device_mesh,
                part.placements,
                run_check=False,
                shape=part.shape,
                stride=part.stride(),
            )
            state[name] = data.full_tensor().view(part.dtype)
    return state


def _is_shared_f8(module: nn.Module) -> bool:
    weight = module._parameters.get("weight")
    is_shared = isinstance(module, NMLinear) and is_sharded(weight)
    return is_shared and local_weight(weight).values.dtype in FLOAT8

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A packed layer as transformers and accelerate handle it: plain tensors by name.

They set each tensor of a checkpoint by its name, and move them between devices one by
one. `PackedParts` stands in a model while it is loaded, and becomes an `NMLinear` at
the end; but where the tensors are kept on another device or on disk between calls.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Optional

import torch
from torch import Tensor, nn

from ...encoding import Encoding, EncodingError, Level, packed_shapes
from ...files.packed_file import INPUT_SCALE, SCALE, extra_state
from ...files.sparse_config import NARROW
from ...files.tensor_file import CheckpointError
from ..layers.conv2d import PackedLayer, pack_layer
from ..layers.convertible import matrix_shape
from ..weight.spec import DTYPES, component_types
from ..weight.weight import PackedWeight

CHUNK = 1 << 22  # positions that are checked together


class PackedParts(nn.Module):
    """The tensors of a packed layer, on the meta device until they are set. It computes
    what the layer does, slower.

    elements:     type of the values, "e4m3" or "int8", where they have scales.
    activations:  that inputs are rounded to; None for none.
    """

    bias: Optional[nn.Parameter]

    def __init__(
        self,
        dense: nn.Module,
        encoding: Encoding,
        elements: Optional[str] = None,
        activations: Optional[str] = None,
        has_input_scale: bool = False,
    ) -> None:
        """In the place of `dense`, a layer that a packed one can replace.

        Raises EncodingError where its type is none of a packed layer's."""
        super().__init__()
        self._dense = [dense]  # which is no part of it
        self.shape = torch.Size(matrix_shape(dense))
        self.encoding, self.elements = encoding, elements
        self.activations = activations
        self.dtype: torch.dtype = dense.weight.dtype  # type: ignore[assignment]
        stored = DTYPES[NARROW[elements]] if elements else self.dtype
        types: Dict[str, torch.dtype] = component_types(encoding, stored)
        shapes: Dict[str, Any] = dict(packed_shapes(encoding, tuple(self.shape)))
        if elements is not None:
            types[SCALE], shapes[SCALE] = torch.float32, (self.shape[0],)
        for name, size in shapes.items():
            part = torch.empty(size, dtype=types[name], device="meta")
            is_trained = name == "values" and elements is None
            self.register_parameter(name, nn.Parameter(part, is_trained))
        self.names = tuple(self._parameters)
        if has_input_scale:
            scale = torch.empty((), dtype=torch.float32, device="meta")
            self.register_parameter(INPUT_SCALE, nn.Parameter(scale, False))
        self.register_parameter("bias", dense.bias)  # type: ignore[arg-type]
        self.train(dense.training)

    @property
    def weight(self) -> Tensor:
        """What models look at that initialize weights of theirs: these are loaded."""
        values: Tensor = self.values  # type: ignore[assignment]
        return values

    def get_extra_state(self) -> Tensor:
        state = bytearray(extra_state(self.encoding, tuple(self.shape)).tobytes())
        return torch.frombuffer(state, dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Raises CheckpointError unless the state is of a layer like this one."""
        own = json.loads(bytes(self.get_extra_state().tolist()))
        try:
            found = json.loads(bytes(state.tolist()))
            found = {key: found[key] for key in own}
        except (ValueError, KeyError, TypeError):
            raise CheckpointError(
                "_extra_state is none of a packed layer: the checkpoint is damaged"
            ) from None
        if found != own:
            raise CheckpointError(f"the checkpoint has {found}, the layer {own}")

    @property
    def is_offloaded(self) -> bool:
        """Whether a tensor is elsewhere until it is needed."""
        return any(part.is_meta for part in self._parts().values())

    def _parts(self) -> Dict[str, Tensor]:
        return {name: getattr(self, name) for name in self.names}

    def weight_of_parts(self) -> PackedWeight:
        """The packed weight, which shares the memory of the tensors."""
        parts: Dict[str, Any] = self._parts()
        parts = {n: part if n == "values" else part.data for n, part in parts.items()}
        dtype = self.dtype if self.elements is not None else None
        own = parts, self.encoding, self.shape
        return PackedWeight.from_components(*own, dtype=dtype)

    def missing(self) -> str:
        """The name of a tensor that no checkpoint has set; "" where there is none."""
        for name in (*self.names, "bias"):
            part = getattr(self, name)
            # Transformers marks what it has loaded so.
            if part is not None and not getattr(part, "_is_hf_initialized", False):
                return name
        return ""

    def to_layer(self) -> PackedLayer:
        """The layer with these tensors. Raises EncodingError where their contents are
        not legal."""
        check_positions(self._parts(), self.encoding)
        return self._layer().train(self.training)

    def _layer(self) -> Any:
        bias = None if self.bias is None else self.bias.detach()
        layer: Any = pack_layer(self._dense[0], self.weight_of_parts(), bias)
        if self.activations is not None:
            layer.activations = self.activations
        if INPUT_SCALE in self._parameters:
            layer.set_input_scale(float(getattr(self, INPUT_SCALE).detach()))
        return layer

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self._layer()(x)
        return result

    def extra_repr(self) -> str:
        text = str(self.encoding).replace(", dim = 1", "")
        sizes = f"in_features={self.shape[1]}, out_features={self.shape[0]}"
        return f"{sizes}, encoding='{text}', bias={self.bias is not None}"


def check_positions(parts: Dict[str, Tensor], e: Encoding) -> None:
    """Raises EncodingError unless positions increase and are below m, and `perm` is a
    permutation: kernels read where they say. Needs no more than `CHUNK` positions of
    memory."""
    for name, level in zip(("index", "inner_index"), e.levels):
        _check_level(parts[name].data, level, name)
    if "perm" in parts:
        perm = parts["perm"].data.view(torch.int32)
        legal = torch.arange(len(perm), device=perm.device, dtype=torch.int32)
        if not torch.equal(perm.sort().values, legal):
            raise EncodingError(
                f"perm is no permutation: legal is each number below {len(perm)} once"
            )


def _check_level(index: Tensor, level: Level, name: str) -> None:
    rows, panels = index.shape
    positions = index.reshape(rows // level.n, level.n, panels)
    step = max(CHUNK // max(level.n * panels, 1), 1)
    for first in range(0, len(positions), step):
        part = positions[first : first + step]
        if part.element_size() > 1:  # whose bits are those of unsigned numbers
            wide = part.view(torch.int16 if part.element_size() == 2 else torch.int32)
            part = wide.to(torch.int64) & ((1 << 8 * part.element_size()) - 1)
        wrong = (part[:, 1:] <= part[:, :-1]).any(1) | (part[:, -1] > level.m - 1)
        if bool(wrong.any()):
            window, panel = torch.nonzero(wrong)[0].tolist()
            found = part[window, :, panel].tolist()
            raise EncodingError(
                f"{name} of window {first + window}, panel {panel} is {found}: legal "
                f"is strictly increasing and below {level.m}"
            )

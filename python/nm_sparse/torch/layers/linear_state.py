# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a packed layer: its weight as plain tensors, one for each component;
and whether it holds a second form of that, which is no part of its state.

Checkpoints have the canonical form, so they do not depend on how a layer is stored,
and need neither this package's classes nor pickles.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional

import torch
from torch import Tensor, nn

from ...encoding import Encoding, EncodingError, packed_shapes
from ..weight.levels import signless
from ..weight.shared_spec import with_decode_to
from ..weight.spec import DTYPES, ELEMENTS, NARROW, SCALE, LinearSpec, check_decode_to
from ..weight.stored_forms import STORED
from ..weight.weight import PackedWeight
from . import kernels
from .eager import EagerByRows, EagerCall, settings_changed
from .scaled_linear import load_input_scale
from .sharding import is_sharded, local_weight, shard_components, sharded_like

EXTRA = "_extra_state"


class PackedState(nn.Module):
    """A module whose parameter `weight` is a `PackedWeight`, or one that is sharded."""

    in_features: int
    out_features: int
    encoding: Encoding
    elements: Optional[str]

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """As any module's. Where graphs that torch has compiled refer to the weight,
        its tensor cannot get other contents: one that is not trained is replaced."""
        weight = self._parameters.get("weight")
        try:
            return super()._apply(fn, recurse)
        except RuntimeError:
            is_own = type(weight) is PackedWeight and not weight.requires_grad
            if not is_own or self._parameters.get("weight") is not weight:
                raise
        with torch.no_grad():
            made = nn.Parameter(fn(weight.detach()), requires_grad=False)
        self._parameters["weight"] = None
        super()._apply(fn, recurse)
        self._parameters["weight"] = made
        return self

    def _identity(self) -> str:
        """What a checkpoint must have in common with the layer."""
        shape = [self.out_features, self.in_features]
        own = {"encoding": self.encoding.mlir(), "shape": shape}
        if self.elements is not None:
            own["elements"] = self.elements
        return json.dumps(own)

    def get_extra_state(self) -> Tensor:
        """Encoding and shape, as the bytes of JSON: safetensors holds tensors alone."""
        data = bytearray(self._identity().encode())
        return torch.frombuffer(data, dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Raises EncodingError unless the state is of a layer like this one."""
        problem = self._difference(state)
        if problem is not None:
            raise EncodingError(problem)

    def _difference(self, state: Any) -> Optional[str]:
        try:
            stored = json.loads(bytes(state.cpu().tolist()).decode())
            found = _said(stored)
        except (AttributeError, ValueError, TypeError, KeyError):
            return f"the checkpoint has {EXTRA} that no NMLinear has written"
        identity = json.loads(self._identity())
        if "elements" not in stored:  # which its tensors say
            identity.pop("elements", None)
        own = _said(identity)
        if own == found:
            return None
        return (
            f"the checkpoint has {found}, the layer {own}: make the layer with the "
            "encoding of the checkpoint"
        )

    def _save_to_state_dict(
        self, destination: Dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """The canonical components in the place of the weight."""
        own: Dict[str, Any] = {}
        super()._save_to_state_dict(own, prefix, keep_vars)
        weight = self._parameters.get("weight")
        for key, tensor in own.items():
            if key != f"{prefix}weight" or weight is None:
                destination[key] = tensor
                continue
            for name, part in shard_components(weight).items():
                destination[f"{prefix}{name}"] = part

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: List[str],
        unexpected_keys: List[str],
        error_msgs: List[str],
    ) -> None:
        """Checks what is loaded before any of it is copied."""
        state = dict(state_dict)
        is_assigned = local_metadata.get("assign_to_params_buffers", False)
        absent: List[str] = []
        try:
            absent = self._join(state, prefix, is_assigned)
        except EncodingError as error:
            error_msgs.append(f"{prefix[:-1] or 'NMLinear'}: {error}")
            return
        missing: List[str] = []
        super()._load_from_state_dict(
            state, prefix, local_metadata, strict, missing, unexpected_keys, error_msgs
        )
        missing_keys += [key for key in missing if key != f"{prefix}weight"]
        if strict:
            missing_keys += absent

    def _join(self, state: Dict[str, Any], prefix: str, is_assigned: bool) -> List[str]:
        """Puts a packed weight in the place of its components. The keys of those that
        are missing, for which the layer's own stay."""
        shape = (self.out_features, self.in_features)
        names = list(packed_shapes(self.encoding, shape))
        if self.elements is not None:
            names.append(SCALE)
        elif f"{prefix}{SCALE}" in state:
            raise EncodingError(
                "the checkpoint has elements of 8 bits with scales, the layer has "
                "none: make it with `elements`, or dequantize the checkpoint first"
            )
        load_input_scale(self, state, prefix)
        whole = state.get(f"{prefix}weight")
        if isinstance(whole, Tensor) and f"{prefix}values" not in state:
            if isinstance(local_weight(whole), PackedWeight):
                return []
            raise EncodingError(
                "the checkpoint has a dense weight: load it before the layer is made "
                "sparse, then call sparsify_ or NMLinear.from_dense"
            )
        if f"{prefix}{EXTRA}" in state:
            self.set_extra_state(state[f"{prefix}{EXTRA}"])
        parts, absent = {}, []
        for name in names:
            part = state.pop(f"{prefix}{name}", None)
            if isinstance(part, Tensor):
                parts[name] = signless(part.detach())
            else:
                absent.append(f"{prefix}{name}")
        if not parts:
            return absent
        state[f"{prefix}weight"] = self._checked(parts, is_assigned)
        return absent

    def _check_elements(self, dtype: torch.dtype) -> None:
        """Raises EncodingError unless a layer with scales is given its elements."""
        wanted = ELEMENTS.get(self.elements or "")
        if wanted is not None and dtype != DTYPES[wanted]:
            raise EncodingError(
                f"the checkpoint has values of {dtype}, the layer elements of "
                f"{self.elements} with scales: load it before the layer is quantized"
            )

    def _checked(self, parts: Dict[str, Tensor], is_assigned: bool) -> Tensor:
        """The weight of canonical components, which are checked; of those that are
        missing the layer's own."""
        own = self._parameters["weight"]
        if own is None:
            raise EncodingError("the layer has no weight that could be loaded")
        if is_sharded(own) or any(is_sharded(part) for part in parts.values()):
            return sharded_like(own, parts)
        assert isinstance(own, PackedWeight)
        shape = (self.out_features, self.in_features)
        if len(parts) < len(own.canonical().components):
            own_parts = own.detach().canonical().components
            parts = {
                name: parts.get(name, part).to(_device(parts))
                for name, part in own_parts.items()
            }
        self._check_elements(parts["values"].dtype)
        kind = own.scaled_dtype
        weight = PackedWeight.from_components(parts, self.encoding, shape, kind)
        if not weight.is_meta:
            weight.validate()
        if own.storage == "canonical":
            return weight
        with torch.inference_mode(False), torch.no_grad():
            weight = weight if is_assigned else weight.to(own.dtype)
            return weight.stored(own.storage)


def _said(identity: Mapping[str, Any]) -> str:
    """Encoding, shape and elements, for people."""
    text = f"{identity['encoding']} of shape {identity['shape']}"
    elements = identity.get("elements")
    return text if elements is None else f"{text} with elements of {elements}"


def _device(parts: Mapping[str, Tensor]) -> torch.device:
    return next(iter(parts.values())).device


class DecodeForm(nn.Module):
    """A packed layer that may hold a second form of its weight on a GPU.

    A program stores a weight once, and chooses the form by all numbers of tokens: where
    many want another one than few, one end pays. Up to `decode_to` tokens a layer may
    run a program of its own, whose weight has the form that is best for one token. That
    is one more form among those of `stored_forms.py`, which makes it, writes it anew
    and lets go of it.
    """

    _decode_to: Optional[int] = None
    _eager: EagerCall
    bias: Any
    spec: str
    kernel_spec: str

    @property
    def decode_to(self) -> Optional[int]:
        """Up to how many tokens, rows of x, the layer multiplies on a GPU by kernels of
        their own, which read the weight in the form that is best for one token; None:
        all numbers of tokens share one form. `use_decode_forms_` finds it for models.

        Where that is another form than the layer and its other kernels have, it takes
        memory beside these, about as much again as the packed weight: from the first
        call with so few tokens on. It follows the weight, and is no part of the layer:
        a `state_dict` does not have it. A layer that `store_` has put into that form
        has no copy of it, and one for its other kernels, when these are called first.
        Calls from `dense_from` on use the dense copy whatever this is. Layers that are
        one operator with others, or round their input to elements of 8 bits, have one
        form; on the CPU and in exports nothing changes. None gives back the form:
        graphs that were captured with it must be captured again.

        Setting it raises EncodingError unless it is an int from 1 on or None.
        """
        return self._decode_to

    @decode_to.setter
    def decode_to(self, tokens: Optional[int]) -> None:
        check_decode_to(tokens)
        before = self._decode_to
        if tokens == before:
            return
        if tokens is None:
            self._drop_decoding()
        self._decode_to = tokens
        settings_changed()
        self._eager = EagerCall() if tokens is None else EagerByRows()

    def find_decoding(self) -> Any:
        """The kernels of few tokens, for eager calls."""
        layer: Any = self
        return kernels.find_eager(layer, True)

    @property
    def call_spec(self) -> str:
        """What `nm_sparse::linear` is told of the layer when it is called by itself:
        `spec` with `decode_to`."""
        return with_decode_to(self.spec, self._decode_to)

    def _drop_decoding(self) -> None:
        """Gives back the memory of the form for few tokens, unless others read it."""
        layer: Any = self
        if type(self._parameters.get("weight")) is not PackedWeight:
            return
        weight, spec = layer.components(), LinearSpec.parse(self.kernel_spec)
        has_kernels = spec.dtype != "f64" and spec.torch_dtype not in NARROW
        if not has_kernels or not STORED.has(weight, spec.storage):
            return
        few = replace(spec.canonical, decode_to=self._decode_to)
        own = self.bias is not None, weight[0].device
        found = [kernels.find_kernels(one, *own) for one in (few, spec.canonical)]
        if None not in found and len({one.key for one in found if one}) == 2:
            STORED.drop(weight, found[0], spec.storage)  # type: ignore[arg-type]

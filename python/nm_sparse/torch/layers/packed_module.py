# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`PackedModule`: what holds a packed weight as its parameter and buffers.

It holds the components in one form, canonical or bitmaps, and in no other. Checkpoints
always have the canonical one, so they do not depend on how a layer is stored.
"""

from __future__ import annotations

import functools
import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from ...encoding import Encoding, EncodingError
from .levels import signless
from .spec import DTYPES, NARROW, LinearSpec, dtype_name
from .storage import from_storage, to_storage
from .weight import PackedWeight

_EXTRA = "_extra_state"


@functools.lru_cache(maxsize=4096)
def spec_texts(
    encoding: Encoding, shape: Tuple[int, int], activation: str, storage: str
) -> Dict[torch.dtype, str]:
    """The texts of the specs of a layer, for each type that its weight may have."""
    found = {}
    for name, dtype in DTYPES.items():
        if storage == "canonical" or dtype.itemsize <= 4:
            spec = LinearSpec(encoding, shape, name, activation, storage)
            found[dtype] = spec.text
    return found


class PackedModule(nn.Module):
    """A module with a packed weight [out_features, in_features] of `encoding`.

    The parameter `values` and the buffers that `_names` lists behind it are the
    components, in the form `storage`; `_specs` has the spec for each type of `values`.
    """

    values: nn.Parameter
    in_features: int
    out_features: int
    encoding: Encoding
    activation: str
    storage: str = "canonical"
    _names: Tuple[str, ...] = ()

    def _hold(self, parts: Sequence[Tensor], storage: str, is_trained: bool) -> None:
        """Makes components of this form the weight."""
        self._forget()
        shape = (self.out_features, self.in_features)
        dtype = dtype_name(parts[0].dtype)
        spec = LinearSpec(self.encoding, shape, dtype, self.activation, storage)
        self._specs = spec_texts(self.encoding, shape, self.activation, storage)
        for name in self._names[1:]:
            del self._buffers[name]
        self.storage, self._names = storage, tuple(spec.components)
        is_trained = is_trained and parts[0].dtype not in NARROW
        self.values = nn.Parameter(parts[0].detach(), requires_grad=is_trained)
        for name, part in zip(self._names[1:], parts[1:]):
            self.register_buffer(name, part)

    def _forget(self) -> None:
        """Lets go of what calls keep of the weight."""

    def _spec(self) -> LinearSpec:
        """Of the weight as it is stored."""
        return LinearSpec.parse(self._specs[self.values.dtype])

    def _parts(self) -> List[Tensor]:
        return [getattr(self, name) for name in self._names]

    def _canonical(self) -> PackedWeight:
        spec = self._spec()
        parts = dict(zip(spec.canonical.components, from_storage(self._parts(), spec)))
        return PackedWeight(parts, self.encoding, torch.Size(spec.shape))

    def _store(self, storage: str) -> None:
        """Stores the weight in another form; see `NMLinear.store_`."""
        spec, shape = self._spec(), (self.out_features, self.in_features)
        LinearSpec(self.encoding, shape, spec.dtype, storage=storage)  # checks it
        if storage == self.storage:
            return
        if "values" not in self._parameters:
            raise EncodingError(
                "values is no parameter: remove the hook that computes it, such as one "
                "of torch.nn.utils, before the layer is stored in another form"
            )
        is_trained = storage == "canonical" and self.values.requires_grad
        # Tensors made in inference mode could not be loaded outside of it.
        with torch.inference_mode(False), torch.no_grad():
            parts = to_storage(from_storage(self._parts(), spec), spec, storage)
            self._hold(parts, storage, is_trained)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Of bitmaps through the canonical form where elements get another size."""
        self._forget()
        if self.storage == "canonical":
            return super()._apply(fn, recurse)
        storage, size = self.storage, self.values.dtype.itemsize
        changed = fn(self.values.detach().new_empty(0)).dtype.itemsize
        if changed == size:
            return super()._apply(fn, recurse)
        self._store("canonical")
        super()._apply(fn, recurse)
        if changed <= 4:
            self._store(storage)
        return self

    def _identity(self) -> str:
        """What a checkpoint must have in common with the layer."""
        shape = [self.out_features, self.in_features]
        return json.dumps({"encoding": self.encoding.mlir(), "shape": shape})

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
            found = f"{stored['encoding']} of shape {stored['shape']}"
        except (AttributeError, ValueError, TypeError, KeyError):
            return f"the checkpoint has {_EXTRA} that no NMLinear has written"
        own = json.loads(self._identity())
        if own == {key: stored[key] for key in own}:
            return None
        return (
            f"the checkpoint has {found}, the layer {own['encoding']} of shape "
            f"{own['shape']}: make the layer with the encoding of the checkpoint"
        )

    def _save_to_state_dict(
        self, destination: Dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """The canonical components, whatever the layer holds."""
        if self.storage == "canonical":
            super()._save_to_state_dict(destination, prefix, keep_vars)
            return
        own: Dict[str, Any] = {}
        super()._save_to_state_dict(own, prefix, keep_vars)
        canonical = self._canonical().components.items()
        keys = [f"{prefix}{name}" for name in self._names]
        renamed = {key: (f"{prefix}{n}", x) for key, (n, x) in zip(keys, canonical)}
        for key, tensor in own.items():
            name, part = renamed.get(key, (key, tensor))
            destination[name] = part

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
        state, problem = self._check_state(state_dict, prefix)
        absent: List[str] = []
        surplus: List[str] = []
        if problem is None and self.storage != "canonical":
            is_assigned = local_metadata.get("assign_to_params_buffers", False)
            legal = self._spec().canonical.components
            keys = [f"{prefix}{name}" for name in self._names if name not in legal]
            surplus = [key for key in keys if key in state]
            try:
                absent = self._store_state(state, prefix, is_assigned)
            except EncodingError as error:
                problem = str(error)
        if problem is not None:
            error_msgs.append(f"{prefix[:-1] or 'NMLinear'}: {problem}")
            return
        super()._load_from_state_dict(
            state,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )
        if strict:
            missing_keys.extend(absent)
            unexpected_keys.extend(surplus)

    def _check_state(
        self, state_dict: Mapping[str, Any], prefix: str
    ) -> Tuple[Dict[str, Any], Optional[str]]:
        """The state with signless positions, and what is wrong with it."""
        state = dict(state_dict)
        if f"{prefix}weight" in state and f"{prefix}values" not in state:
            return state, (
                "the checkpoint has a dense weight: load it before the layer is made "
                "sparse, then call sparsify_ or NMLinear.from_dense"
            )
        if f"{prefix}{_EXTRA}" in state:
            problem = self._difference(state[f"{prefix}{_EXTRA}"])
            if problem is not None:
                return state, problem
        names = self._spec().canonical.components
        keys = {name: f"{prefix}{name}" for name in names}
        if any(not isinstance(state.get(key), Tensor) for key in keys.values()):
            return state, None  # the caller says which are missing
        for key in keys.values():
            state[key] = signless(state[key])
        try:
            self._checked({name: state[key] for name, key in keys.items()})
        except EncodingError as error:
            return state, str(error)
        return state, None

    def _checked(self, parts: Mapping[str, Tensor]) -> PackedWeight:
        """The weight of canonical components, which are checked."""
        shape = (self.out_features, self.in_features)
        weight = PackedWeight.from_components(parts, self.encoding, shape)
        if weight.device.type != "meta":
            weight.validate()
        return weight

    def _store_state(
        self, state: Dict[str, Any], prefix: str, is_assigned: bool
    ) -> List[str]:
        """Puts the components as the layer stores them in the place of the canonical
        ones. The keys of those that are missing, for which its own stay."""
        parts: Dict[str, Tensor] = {}
        for name in self._spec().canonical.components:
            if isinstance(state.get(f"{prefix}{name}"), Tensor):
                parts[name] = state.pop(f"{prefix}{name}").detach()
        own, stored = self.values, self._parts()
        absent = []
        if parts:
            if not is_assigned:
                parts = {name: part.to(own.device) for name, part in parts.items()}
            if not is_assigned and "values" in parts:
                parts["values"] = parts["values"].to(own.dtype)
            for name, part in self._canonical().components.items():
                if name not in parts:
                    absent.append(f"{prefix}{name}")
                    parts[name] = part
            stored = self._as_stored(self._checked(parts))
        else:
            absent = [f"{prefix}{name}" for name in self._spec().canonical.components]
        if is_assigned:  # by what has the shape of the layer's own
            self._hold(stored, self.storage, own.requires_grad)
        state.update({f"{prefix}{n}": x for n, x in zip(self._names, stored)})
        return absent

    def _as_stored(self, weight: PackedWeight) -> List[Tensor]:
        shape = (self.out_features, self.in_features)
        spec = LinearSpec(self.encoding, shape, dtype_name(weight.dtype))
        with torch.inference_mode(False), torch.no_grad():
            return to_storage(list(weight.components.values()), spec, self.storage)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether layers have changed since kernels were prepared for them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, List, Sequence, Tuple

from ... import direct
from ..weight.plain import is_plain_type
from ..weight.weight import PackedWeight

if TYPE_CHECKING:
    from .linear import NMLinear

# Says of layers whether they are those that it was made for, unchanged.
Unchanged = Callable[[Sequence["NMLinear"]], bool]


def watch(
    layers: Sequence["NMLinear"], weights: Sequence[PackedWeight], *buffers: str
) -> Unchanged:
    """What compares layers with what they are now: weights and their components with
    versions and memory, biases and `buffers` with their memory alone."""
    places: List[direct.Place] = []
    for i, (layer, weight) in enumerate(zip(layers, weights)):
        places.append((i, "_parameters", "weight", weight))
        places.append((i, "_parameters", "bias", layer._parameters["bias"]))
        for name, part in weight.components.items():
            places.append((weight, name, None, part))
    for name in buffers:
        places.append((0, "_buffers", name, layers[0]._buffers[name]))
    found = direct.watch(len(layers), places)
    if found is not None:
        return found
    return functools.partial(_is_unchanged, len(layers), [_see(one) for one in places])


# The same where the C module does not read tensors: a place and what its value was.
_Seen = Tuple[direct.Place, Any]


def _state(key: Any, value: Any) -> Any:
    if not is_plain_type(value):
        return None
    version = value._version if key is None else None
    memory = value.data_ptr(), value.dtype, value.shape, value.stride()
    return version, memory


def _see(place: direct.Place) -> _Seen:
    return place, _state(*place[2:])


def _is_unchanged(
    count: int, seen: Sequence[_Seen], layers: Sequence["NMLinear"]
) -> bool:
    if len(layers) != count:
        return False
    for (owner, attribute, key, value), state in seen:
        owner = layers[owner] if isinstance(owner, int) else owner
        found = getattr(owner, attribute, None)
        if key is not None:
            found = found.get(key)
        if found is not value or _state(key, value) != state:
            return False
    return True

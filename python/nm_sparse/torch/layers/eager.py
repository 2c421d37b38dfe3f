# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that are called outside of graphs, again and again.

The operators of `ops.py` are found by torch's dispatcher, check what they are given,
and look up kernels and stored weights: for a few tokens that takes longer than the
product. An `EagerCall` does this once, and then only looks whether anything has
changed: docs/decisions/071-layers-called-eagerly.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ..weight.plain import is_plain_call
from ..weight.weight import PackedWeight
from .dense_copies import DenseLaunch, dense_launch
from .eager_training import RecordedLinear

if TYPE_CHECKING:
    from .linear import NMLinear

# A tensor, its version and its address: whether something has changed.
_Seen = Tuple[Tensor, int, int]


def look(parts: Sequence[Tensor]) -> List[_Seen]:
    return [(part, part._version, part.data_ptr()) for part in parts]


# Counts how often settings of layers have changed that launches depend on.
_settings = 0


def count_of_settings() -> int:
    """How often that was, so far."""
    return _settings


def settings_changed() -> None:
    """Has all layers find their kernels anew."""
    global _settings
    _settings += 1


class Launch:
    """Kernels, and the weights as they read them.

    kernels:  of `kernels.py` or `shared_kernels.py`.
    parts:    the weights as the kernels read them.
    seen:     what these were made of.
    stream:   the address of the stream on which `parts` were made.
    variant:  what else the kernels depend on.
    settings: those of layers at that time.
    """

    def __init__(
        self,
        kernels: Any,
        parts: Sequence[Sequence[Tensor]],
        seen: Sequence[_Seen],
        biases: Sequence[Tensor],
        stream: int,
        variant: str,
        settings: int,
    ) -> None:
        self.kernels = kernels  # whose program must live as long
        self.direct = kernels.function.direct
        self.outputs = kernels.outputs
        self.weights = tuple(tuple(one) for one in parts)
        self.seen, self.biases = tuple(seen), tuple(biases)
        self.stream, self.variant, self.settings = stream, variant, settings
        self.spec: Optional[str] = None  # of one layer, for gradients

    def fits(
        self,
        parts: Sequence[Tensor],
        biases: Sequence[Tensor],
        stream: int,
        variant: str,
    ) -> bool:
        """Whether the layers are those that this was made for, unchanged."""
        if stream != self.stream or variant != self.variant:
            return False
        if self.settings != _settings:
            return False
        if len(parts) != len(self.seen) or len(biases) != len(self.biases):
            return False
        for part, (own, version, address) in zip(parts, self.seen):
            if (
                part is not own
                or part._version != version
                or part.data_ptr() != address
            ):
                return False
        return all(
            one is own and one.is_contiguous() for one, own in zip(biases, self.biases)
        )

    def run(self, x: Tensor) -> Optional[List[Tensor]]:
        """The results for a contiguous x; None where the kernels decline it."""
        return self.run_sparse(x)

    def run_sparse(self, x: Tensor) -> Optional[List[Tensor]]:
        lead = x.shape[:-1]
        rows = x if x.ndim == 2 else x.reshape(-1, x.shape[-1])
        results = [x.new_empty((*lead, size)) for size in self.outputs]
        flat = results
        if x.ndim != 2:
            flat = [y.view(-1, size) for y, size in zip(results, self.outputs)]
        done = self.direct(self.stream, rows, *self.weights, *self.biases, *flat)
        return None if done is None else results


class _LaunchOrDense(Launch):
    """The same, of layers that multiply many tokens by dense copies."""

    dense: DenseLaunch

    def run(self, x: Tensor) -> Optional[List[Tensor]]:
        if x.numel() < self.dense.elements:
            return self.run_sparse(x)
        return self.dense.run(x)


# Finds (kernels, their parts of each weight) for layers on a GPU; None where there are
# none that write to what they are given.
Find = Callable[[], Optional[Tuple[Any, Sequence[Sequence[Tensor]]]]]


class EagerCall:
    """The kernels of one layer, or of several with one input, found once.

    Copies and pickled ones are new: they know nothing.
    """

    def __init__(self) -> None:
        self._launch: Optional[Launch] = None

    def __deepcopy__(self, memo: Any) -> "EagerCall":
        return type(self)()

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), ()

    def __call__(
        self, x: Tensor, layers: Sequence["NMLinear"], find: Find, variant: str = ""
    ) -> Optional[List[Tensor]]:
        """The result of each output of the kernels, [..., N] for x [..., K]; None where
        the operators have to compute it, which say what is wrong, too.

        find:     finds the kernels, of this `variant`.
        variant:  the activation of a gated MLP, "" of other layers.
        """
        if not is_plain_call(x) or x.ndim < 1 or x.numel() == 0:
            return None
        weights, biases, parts = [], [], []
        for layer in layers:
            own = layer._parameters
            weight, bias = own.get("weight"), own["bias"]
            # torch computes it anew for each call, or it is sharded; FSDP2 writes it
            # without a new version.
            if type(weight) is not PackedWeight or weight.has_dense_gradient:
                return None
            weights.append(weight)
            parts += weight.parts
            if bias is not None:
                biases.append(bias)
        values = parts[0]  # attributes of the weight itself take longer
        if x.shape[-1] != layers[0].in_features:
            return None
        if x.dtype != values.dtype or x.device != values.device:
            return None
        is_recorded = records(x, weights, biases)
        if is_recorded and (len(layers) > 1 or weights[0].storage != "canonical"):
            return None
        stream = torch._C._cuda_getCurrentRawStream(x.get_device())
        launch = self._launch
        if launch is None or not launch.fits(parts, biases, stream, variant):
            self._launch = launch = None  # gives its memory back first
            launch = self._find(parts, biases, layers, find, stream, variant)
            self._launch = launch
            if launch is None:
                return None
        x = x if x.is_contiguous() else x.contiguous()
        if not is_recorded:
            return launch.run(x)
        bias = biases[0] if biases else None
        spec = layers[0].kernel_spec if launch.spec is None else launch.spec
        launch.spec = spec
        return [RecordedLinear.apply(x, weights[0], bias, spec, launch.run_sparse)]

    def forget(self) -> None:
        """Lets go of the weights."""
        self._launch = None

    def _find(
        self,
        parts: Sequence[Tensor],
        biases: Sequence[Tensor],
        layers: Sequence["NMLinear"],
        find: Find,
        stream: int,
        variant: str,
    ) -> Optional[Launch]:
        device = parts[0].device
        if any(one.is_inference() or one.device != device for one in parts):
            return None
        if any(not one.is_contiguous() or one.device != device for one in biases):
            return None
        if any(one.dtype != parts[0].dtype for one in biases):
            return None
        seen = look(parts)  # before: another thread may load others meanwhile
        settings = _settings
        found = find()
        if found is None:
            return None
        dense = dense_launch(layers, variant or None)
        if dense is None:
            return Launch(*found, seen, biases, stream, variant, settings)
        launch = _LaunchOrDense(*found, seen, biases, stream, variant, settings)
        launch.dense = dense
        return launch


def records(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> bool:
    """Whether gradients are recorded."""
    if not torch.is_grad_enabled():
        return False
    with torch._C.DisableTorchFunctionSubclass():
        return (
            x.requires_grad
            or any([weight.requires_grad for weight in weights])
            or any([bias.requires_grad for bias in biases])
        )

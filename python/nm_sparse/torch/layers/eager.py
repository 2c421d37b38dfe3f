# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that are called outside of graphs and without gradients, again and again.

The operators of `ops.py` are found by torch's dispatcher, check what they are given,
and look up kernels and stored weights: for a few tokens that takes longer than the
product. An `EagerCall` does this once, and then only looks whether anything has
changed: docs/decisions/071-layers-called-eagerly.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .dense_copies import DenseLaunch
    from .linear import NMLinear

# Types of plain tensors: no subclass takes over what is computed with them.
_PLAIN = (Tensor, torch.nn.Parameter)


def is_plain_call(x: Tensor) -> bool:
    """Whether an operator on x would be computed at once, and on a GPU by kernels:
    nothing records, traces, transforms or casts it."""
    return (
        not torch.compiler.is_compiling()
        and type(x) in _PLAIN
        and x.is_cuda
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._len_torch_function_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
        and torch._C._get_tracing_state() is None
        and torch.autograd.forward_ad._current_level < 0
        and not torch.is_autocast_enabled("cuda")
        and not torch.cuda.is_current_stream_capturing()
    )


# A tensor, its version and its address: whether something has changed.
_Seen = Tuple[Tensor, int, int]


def _look(parts: Sequence[Tensor]) -> List[_Seen]:
    return [(part, part._version, part.data_ptr()) for part in parts]


# Counts how often settings of layers have changed that launches depend on.
_settings = 0


def settings_changed() -> None:
    """Has all layers find their kernels anew."""
    global _settings
    _settings += 1


class _Launch:
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
        lead = x.shape[:-1]
        rows = x if x.ndim == 2 else x.reshape(-1, x.shape[-1])
        results = [x.new_empty((*lead, size)) for size in self.outputs]
        flat = results
        if x.ndim != 2:
            flat = [y.view(-1, size) for y, size in zip(results, self.outputs)]
        done = self.direct(self.stream, rows, *self.weights, *self.biases, *flat)
        return None if done is None else results


class _LaunchOrDense(_Launch):
    """The same, of layers that multiply many tokens by dense copies."""

    dense: "DenseLaunch"

    def run(self, x: Tensor) -> Optional[List[Tensor]]:
        return super().run(x) if x.numel() < self.dense.elements else self.dense.run(x)


# Finds (kernels, their parts of each weight) for layers on a GPU; None where there are
# none that write to what they are given.
Find = Callable[[], Optional[Tuple[Any, Sequence[Sequence[Tensor]]]]]


class EagerCall:
    """The kernels of one layer, or of several with one input, found once.

    Copies and pickled ones are new: they know nothing.
    """

    def __init__(self) -> None:
        self._launch: Optional[_Launch] = None

    def __deepcopy__(self, memo: Any) -> "EagerCall":
        return EagerCall()

    def __reduce__(self) -> Tuple[Any, ...]:
        return EagerCall, ()

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
        try:
            parts = [part for layer in layers for part in layer.components()]
        except KeyError:  # torch computes the values anew for each call
            return None
        biases = [layer.bias for layer in layers if layer.bias is not None]
        if _records(x, parts, biases) or x.shape[-1] != layers[0].in_features:
            return None
        if x.dtype != parts[0].dtype or x.device != parts[0].device:
            return None
        stream = torch._C._cuda_getCurrentRawStream(x.get_device())
        launch = self._launch
        if launch is None or not launch.fits(parts, biases, stream, variant):
            self._launch = launch = None  # gives its memory back first
            launch = self._find(parts, biases, layers, find, stream, variant)
            self._launch = launch
            if launch is None:
                return None
        return launch.run(x if x.is_contiguous() else x.contiguous())

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
    ) -> Optional[_Launch]:
        device = parts[0].device
        if any(one.is_inference() or one.device != device for one in parts):
            return None
        if any(not one.is_contiguous() or one.device != device for one in biases):
            return None
        if any(one.dtype != parts[0].dtype for one in biases):
            return None
        seen = _look(parts)  # before: another thread may load others meanwhile
        settings = _settings
        found = find()
        if found is None:
            return None
        from .dense_copies import dense_launch

        dense = dense_launch(layers, variant or None)
        if dense is None:
            return _Launch(*found, seen, biases, stream, variant, settings)
        launch = _LaunchOrDense(*found, seen, biases, stream, variant, settings)
        launch.dense = dense
        return launch


def _records(x: Tensor, parts: Sequence[Tensor], biases: Sequence[Tensor]) -> bool:
    """Whether gradients are recorded."""
    return torch.is_grad_enabled() and (
        x.requires_grad
        or any(part.requires_grad for part in parts)
        or any(bias.requires_grad for bias in biases)
    )

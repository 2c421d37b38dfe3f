# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that are called outside of graphs, again and again.

The operators of `ops.py` are found by torch's dispatcher, check what they are given,
and look up kernels and stored weights: for a few tokens that takes longer than the
product. An `EagerCall` does this once, and then only looks whether anything has
changed: docs/decisions/071-layers-called-eagerly.md. What it does for each call is
written in C, as far as torch offers it there:
docs/decisions/093-eager-calls-in-c.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ..weight.plain import is_plain_call, is_plain_type
from ..weight.weight import PackedWeight
from .dense_copies import DenseLaunch, dense_launch
from .eager_training import recorded_linear
from .watch import Unchanged, watch

if TYPE_CHECKING:
    from .linear import NMLinear

# Counts how often settings of layers have changed that launches depend on.
_settings = 0


def count_of_settings() -> int:
    """How often that was, so far."""
    return _settings


def settings_changed() -> None:
    """Has all layers find their kernels anew."""
    global _settings
    _settings += 1


class Found:
    """Layers as a launch is made for them.

    weights, biases:  theirs; a layer may have no bias.
    stream:     the address of the current stream.
    variant:    what else the kernels depend on.
    rounds:     whether x is rounded to elements.
    unchanged:  says whether layers are these, as they are now.
    """

    def __init__(
        self,
        layers: Sequence["NMLinear"],
        weights: Sequence[PackedWeight],
        biases: Sequence[Tensor],
        stream: int,
        variant: Any,
        rounds: bool,
    ) -> None:
        self.weights, self.biases = tuple(weights), tuple(biases)
        self.stream, self.variant, self.settings = stream, variant, _settings
        buffers = ("input_scale",) if rounds else ()
        self.unchanged: Unchanged = watch(layers, weights, *buffers)
        self.inputs, self.spec = layers[0].in_features, layers[0].kernel_spec
        values = weights[0].values  # attributes of the weight itself take longer
        self.device = values.device
        self.dtype = weights[0].scaled_dtype if rounds else values.dtype  # of x

    @property
    def is_trained(self) -> bool:
        """Whether the launch may record gradients."""
        return len(self.weights) == 1 and self.weights[0].storage == "canonical"

    def takes(self, x: Tensor) -> bool:
        """Whether x is [..., K], not empty, of the type and device of the weights."""
        return (
            x.ndim > 0
            and x.shape[-1] == self.inputs
            and x.numel() > 0
            and x.dtype == self.dtype
            and x.device == self.device
        )

    def records(self, x: Tensor) -> bool:
        """Whether gradients are recorded."""
        if not torch.is_grad_enabled():
            return False
        if x.requires_grad or any([bias.requires_grad for bias in self.biases]):
            return True
        # Attributes of a subclass take a hundred times as long with its functions.
        with torch._C.DisableTorchFunctionSubclass():
            return any([weight.requires_grad for weight in self.weights])


class Launch:
    """Kernels, and the weights as they read them.

    kernels:  of `kernels.py` or `shared_kernels.py`.
    parts:    the weights as the kernels read them.
    others:   what the kernels read behind them, None for what each call gives.
    found:    the layers.
    """

    def __init__(
        self,
        kernels: Any,
        parts: Sequence[Sequence[Tensor]],
        others: Sequence[Optional[Tensor]],
        found: Found,
    ) -> None:
        self.kernels = kernels  # whose program must live as long
        self.direct, self.outputs = kernels.function.direct, tuple(kernels.outputs)
        self.weights = tuple(tuple(one) for one in parts)
        self.others, self.found = tuple(others), found
        # These are read for each call.
        self.stream, self.variant = found.stream, found.variant
        self.settings, self.unchanged = found.settings, found.unchanged
        self.is_trained, self.records = found.is_trained, found.records
        bind, self.bound = getattr(self.direct, "bind", None), None
        if bind is not None:
            results = [None] * len(self.outputs)
            arguments = None, *self.weights, *self.others, *results
            self.bound = bind(self.stream, arguments, self.outputs)

    def fits(self, layers: Sequence["NMLinear"], stream: int, variant: Any) -> bool:
        """Whether the layers are those that this was made for, unchanged."""
        return (
            stream == self.stream
            and variant == self.variant
            and self.settings == _settings
            and self.unchanged(layers)
        )

    def run(self, x: Tensor) -> Optional[List[Tensor]]:
        """The results for x; None where the kernels decline it."""
        return self.run_sparse(x)

    def run_sparse(self, x: Tensor, *given: Tensor) -> Optional[List[Tensor]]:
        """The same by kernels, from `given` in the place of x and of what is None
        among others."""
        if self.bound is not None:
            return self.bound(x, *given)
        return self._run_slowly(x, *given) if self.found.takes(x) else None

    def _run_slowly(self, x: Tensor, *given: Tensor) -> Optional[List[Tensor]]:
        """Where torch does not offer its tensors to C."""
        rows, *rest = given or (x.contiguous().view(-1, x.shape[-1]),)
        others = [rest.pop(0) if one is None else one for one in self.others]
        lead = x.shape[:-1]
        results = [x.new_empty((*lead, size)) for size in self.outputs]
        flat = [y.view(-1, size) for y, size in zip(results, self.outputs)]
        done = self.direct(self.stream, rows, *self.weights, *others, *flat)
        return None if done is None else results

    def record(self, x: Tensor) -> Optional[Tensor]:
        """The result, with gradients."""
        results = self.run_sparse(x)
        if results is None:
            return None
        found = self.found
        bias = found.biases[0] if found.biases else None
        return recorded_linear(x, found.weights[0], bias, found.spec, results)


class _LaunchOrDense(Launch):
    """The same, of layers that multiply many tokens by dense copies."""

    dense: DenseLaunch

    def run(self, x: Tensor) -> Optional[List[Tensor]]:
        if x.numel() < self.dense.elements or not self.found.takes(x):
            return self.run_sparse(x)
        return self.dense.run(x)


# Finds (kernels, their parts of each weight) for layers on a GPU; None where there are
# none that write to what they are given.
Find = Callable[[], Optional[Tuple[Any, Sequence[Sequence[Tensor]]]]]


class EagerCall:
    """The kernels of one layer, or of several with one input, found once.

    Copies and pickled ones are new: they know nothing.

    joined:  how many layers have weights that are one (`joined.py`).
    """

    def __init__(self) -> None:
        self._launch: Optional[Launch] = None
        self.joined = 0

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
        return self.run(x, layers, find, variant) if is_plain_call(x) else None

    def run(
        self, x: Tensor, layers: Sequence["NMLinear"], find: Find, variant: str = ""
    ) -> Optional[List[Tensor]]:
        """The same of a call that is a plain one."""
        stream = torch._C._cuda_getCurrentRawStream(x.get_device())
        launch = self._launch
        if launch is None or not launch.fits(layers, stream, variant):
            launch = self._renew(x, layers, find, stream, variant)
            if launch is None:
                return None
        if not launch.records(x):
            return launch.run(x)
        y = launch.record(x) if launch.is_trained else None
        return None if y is None else [y]

    def forget(self) -> None:
        """Lets go of the weights."""
        self._launch, self.joined = None, 0

    def _renew(
        self,
        x: Tensor,
        layers: Sequence["NMLinear"],
        find: Find,
        stream: int,
        variant: str,
    ) -> Optional[Launch]:
        """Another launch, for x and layers as they are now."""
        found = find_weights(x, layers, stream, variant)
        if found is None or (found.records(x) and not found.is_trained):
            return None
        if any(bias.dtype != x.dtype for bias in found.biases):
            return None
        self._launch = None  # gives its memory back first
        made = find()
        if made is None:
            return None
        dense = dense_launch(layers, variant or None)
        if dense is None:
            self._launch = Launch(*made, found.biases, found)
        else:
            self._launch = _LaunchOrDense(*made, found.biases, found)
            self._launch.dense = dense
        return self._launch


class EagerByRows(EagerCall):
    """Eager calls of a layer with a second form. Either program is found by the first
    call that it is for, as decoding may never need the other."""

    def __init__(self) -> None:
        super().__init__()
        self._few = EagerCall()

    def __call__(
        self, x: Tensor, layers: Sequence["NMLinear"], find: Find, variant: str = ""
    ) -> Optional[List[Tensor]]:
        if not is_plain_call(x):
            return None
        (layer,) = layers
        if x.numel() > (layer.decode_to or 0) * layer.in_features:
            return self.run(x, layers, find, variant)
        return self._few.run(x, layers, layer.find_decoding, variant)

    def forget(self) -> None:
        super().forget()
        self._few.forget()


def find_weights(
    x: Tensor,
    layers: Sequence["NMLinear"],
    stream: int,
    variant: Any,
    rounds: bool = False,
) -> Optional[Found]:
    """What a launch needs of layers, as `Found`; None where x or one of them is for
    operators.

    It is looked at before the kernels are found: another thread may load others
    meanwhile.
    """
    weights, biases = [], []
    for layer in layers:
        weight, bias = layer._parameters.get("weight"), layer._parameters["bias"]
        # torch computes it anew for each call, or it is sharded; FSDP2 writes it
        # without a new version.
        if type(weight) is not PackedWeight or weight.has_dense_gradient:
            return None
        weights.append(weight)
        if bias is not None:
            biases.append(bias)
    parts = [part for weight in weights for part in weight.parts]
    if any(one.is_inference() or one.device != x.device for one in parts):
        return None
    if any(not is_plain_type(one) or one.device != x.device for one in biases):
        return None
    if any(not one.is_contiguous() for one in biases):
        return None
    found = Found(layers, weights, biases, stream, variant, rounds)
    return found if found.takes(x) else None

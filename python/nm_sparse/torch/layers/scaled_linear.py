# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `NMLinear` has where its weight, or its input too, are elements of 8 bits."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, Mapping, Optional

import torch
from torch import Tensor, nn

from ...encoding import EncodingError
from ..weight.scales import check_scales
from ..weight.shared_spec import with_activation
from ..weight.spec import elements_of
from ..weight.token_counts import for_rows
from ..weight.weight import PackedWeight
from .eager import settings_changed
from .scaled_calls import call_layer, quantized_linear
from .scaled_eager import ScaledCall
from .sharding import is_sharded, local_weight, sharded_linear

SAME = "same"


class QuantizedInput(nn.Module):
    """A module whose parameter `weight` is packed, and which may quantize its input."""

    weight: Any
    bias: Any
    activation: str
    input_scale: Optional[Tensor]
    _activations = SAME

    def _prepare_elements(self) -> None:
        self._eager_elements = ScaledCall()
        self._eager_activated = ScaledCall()  # with an activation of its surroundings
        self.eager_shared_elements = ScaledCall()  # of layers that begin with this one
        self.register_buffer("input_scale", None)

    @property
    def elements(self) -> Optional[str]:
        """The type of the weight's elements, which have scales, "e4m3" or "int8"; None
        of others."""
        return getattr(local_weight(self._parameters.get("weight")), "elements", None)

    @property
    def activations(self) -> str:
        """In which type the input is multiplied: "same", as it is; or "e4m3" or "int8",
        as the elements of the weight: it is rounded to them then, each token with a
        scale of its own, or all with `input_scale`. With "same", kernels on a GPU read
        another copy of the weight, of its products with the scales.

        Setting it raises EncodingError unless it is one of these.
        """
        return self._activations

    @activations.setter
    def activations(self, kind: str) -> None:
        own = self.elements
        if kind != SAME and (kind is None or kind != own):
            legal = "'same'" if own is None else f"'same' or {own!r}"
            raise EncodingError(
                f"activations is {kind!r}, and the elements of the weight {own}: legal "
                f"is {legal}, as kernels multiply elements of one type"
            )
        self._activations = kind
        settings_changed()
        self._forget()

    def set_input_scale(self, scale: Optional[float]) -> None:
        """Makes `input_scale`, f32 [], the scale of all tokens, whose largest numbers
        become the largest element times it; None: each token has its own.

        Raises EncodingError unless it is from 2^-126 to 2^126, as numbers are
        multiplied by its inverse in f32.
        """
        if scale is not None and not 2.0**-126 <= scale <= 2.0**126:
            raise EncodingError(
                f"input_scale is {scale}: legal is a number from 2^-126 to 2^126, or "
                "None"
            )
        found = None
        if scale is not None:
            device = local_weight(self.weight).device
            found = torch.tensor(scale, dtype=torch.float32, device=device)
        self.register_buffer("input_scale", found)
        self._forget()

    @contextmanager
    def keeps_input_scale(self) -> Iterator[None]:
        """While the tensors of the module get another type, its scale stays f32."""
        before = self.input_scale
        yield
        after = self.input_scale
        if before is not None and after is not None and after.dtype != torch.float32:
            self.input_scale = before.to(after.device)

    def forward_elements(self, x: Tensor, activation: Optional[str] = None) -> Tensor:
        """The result for an input that is rounded to elements.

        activation:  of a layer that has none itself.
        """
        layer: Any = self
        call = self._eager_elements if activation is None else self._eager_activated
        found = call.call(x, (layer,), activation)
        if found is not None:
            return found[0]
        kind = self.activation if activation is None else activation
        if not is_sharded(self.weight):
            spec = with_activation(for_rows(layer.spec, x), kind)
            return call_layer(x, layer, spec)

        def product(x: Tensor, *operands: Any) -> Tensor:
            return quantized_linear(x, self._activations, self.input_scale, *operands)

        own = self.weight, self.bias, kind
        return sharded_linear(x, *own, product)

    def _forget(self) -> None:
        """Lets go of what eager calls have found."""
        self._eager_elements.forget()
        self._eager_activated.forget()
        self.eager_shared_elements.forget()

    def _describe_elements(self) -> str:
        """For `extra_repr`."""
        if self.elements is None:
            return ""
        parts = f", elements={self.elements}, activations={self.activations}"
        return parts + (", input_scale" if self.input_scale is not None else "")


def check_quantization(weights: Any, activations: Any, scales: Any) -> None:
    """Raises EncodingError unless these are what layers may be: elements or None, how
    the input is multiplied, and how many scales there are."""
    elements_of(weights)
    check_scales(scales)
    if activations != SAME and (weights is None or activations != weights):
        legal = "'same'" if weights is None else f"'same' or {weights!r}"
        raise EncodingError(
            f"activations is {activations!r}, and weights {weights!r}: legal is {legal}"
        )


def check_untrained(weight: PackedWeight) -> None:
    """Raises EncodingError where gradients of a weight with scales are recorded."""
    if weight.has_scale and weight.requires_grad and torch.is_grad_enabled():
        raise EncodingError(
            "weight requires gradients, and has elements of 8 bits with scales: legal "
            "is one of floats; train it before it is quantized, or call "
            "requires_grad_(False) of it"
        )


def load_input_scale(module: Any, state: Mapping[str, Any], prefix: str) -> None:
    """Makes room for the scale of the input in a checkpoint, where it has one."""
    if f"{prefix}input_scale" in state and module.input_scale is None:
        module.set_input_scale(1.0)

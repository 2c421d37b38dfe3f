# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What packed weights have whose elements have 8 bits and scales (`scales.py`)."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ...encoding import Encoding, EncodingError
from .pack import FLOAT8, check_parts, zero_components
from .scales import check_scale, dequantize_parts, name_of, quantize_parts
from .spec import DTYPE_NAMES, DTYPES, NARROW, SCALE, elements_of


class ScaledValues:
    """The methods of `PackedWeight` for elements with scales."""

    @property
    def has_scale(self) -> bool:
        """Whether `values` are elements that `scale` multiplies: the weight is not
        trained then."""
        weight: Any = self
        return weight.scaled_dtype is not None

    @property
    def elements(self) -> Optional[str]:
        """The type of elements that have scales, "e4m3" or "int8"; None of others."""
        weight: Any = self
        return name_of(weight.element_type)

    @property
    def element_type(self) -> Optional[str]:
        """The same, spelled as in MLIR."""
        weight: Any = self
        return DTYPE_NAMES[weight.values.dtype] if self.has_scale else None

    def quantize(
        self, elements: str, scales: str = "output", scale: Optional[Tensor] = None
    ) -> Any:
        """A weight of the same pattern with elements of 8 bits and scales, which stands
        for numbers of the same type.

        elements:  "e4m3" or "int8".
        scales:    "output": one for each output, of its largest element; or "tensor":
                   the largest of these for all.
        scale:     f32 [N]: other ones. What is larger than they allow becomes the
                   largest element.

        Raises EncodingError when an argument is none of these, and for weights that
        are no floats of 16 bits or more or have scales.
        """
        weight: Any = self
        kind = elements_of(elements, "elements")
        if kind is None:
            raise EncodingError("elements is None: legal is 'e4m3' or 'int8'")
        if self.has_scale or weight.dtype in NARROW:
            raise EncodingError(
                f"the weight has elements of {weight.values.dtype}: legal are floats "
                "of 16 bits or more; call dequantize() first"
            )
        own = weight.canonical()
        if scale is not None:
            scale = scale.detach().to(weight.device).contiguous()
        with torch.no_grad():
            parts, spec = quantize_parts(own.parts, own.spec, kind, scales, scale)
        named = dict(zip(spec.components, parts))
        made = own.with_components(named, dtype=weight.dtype)
        return made.stored(weight.storage)

    def dequantize(self) -> Any:
        """A weight of the same pattern without scales, whose elements are their
        products with them; itself, if it has none."""
        weight: Any = self
        if not self.has_scale:
            return self
        spec = weight.spec
        parts = dequantize_parts(weight.parts, spec)
        named = dict(zip(spec.dequantized.components, parts))
        return type(weight)(named, weight.encoding, weight.matrix)

    def check_scale(self) -> None:
        """Raises EncodingError where a scale is not finite and above 0."""
        weight: Any = self
        scale = weight.components.get(SCALE)
        if scale is None:
            return
        wrong = ~(torch.isfinite(scale) & (scale > 0))
        if bool(wrong.any()):
            output = int(torch.nonzero(wrong)[0])
            raise EncodingError(
                f"{SCALE} of output {output} is {float(scale[output])}: legal are "
                "finite numbers above 0"
            )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """For pickles. Elements of 8 bits are in them as bytes: torch writes those of
        f8 into plain pickles, and cannot read them."""
        weight: Any = self
        if weight.values.dtype not in FLOAT8:
            return super().__reduce_ex__(protocol)  # type: ignore[misc]
        names, own = weight.__tensor_flatten__()
        parts = {name: getattr(weight, name) for name in names}
        values = parts["values"]
        parts["values"] = values.contiguous().view(torch.uint8)
        state = {k: x for k, x in vars(weight).items() if k not in parts}
        more = values.dtype, own, weight.requires_grad, state
        return rebuild_weight, (type(weight), parts, *more)


def rebuild_weight(
    kind: Any,
    parts: Dict[str, Tensor],
    dtype: torch.dtype,
    own: Tuple[Any, ...],
    requires_grad: bool,
    state: Dict[str, Any],
) -> Any:
    """A weight of a pickle.

    dtype:  of the elements, which `parts` has as bytes.
    own:    what `__tensor_flatten__` returns.
    state:  its other attributes.
    """
    named = {**parts, "values": parts["values"].view(dtype)}
    weight = kind.__tensor_unflatten__(named, own, None, None)
    vars(weight).update(state)
    return weight.requires_grad_(requires_grad)


def check_scaled(
    components: Mapping[str, Tensor],
    encoding: Encoding,
    shape: Tuple[int, int],
    dtype: Optional[torch.dtype],
) -> Tuple[Dict[str, Tensor], Optional[torch.dtype]]:
    """Canonical components in their order, also with a scale, and the type that they
    stand for where they have one.

    Raises EncodingError when a name, a shape or a type is not that of a weight.
    """
    parts = dict(components)
    scale = parts.pop(SCALE, None)
    found = check_parts(parts, encoding, shape)
    kind = DTYPE_NAMES[found["values"].dtype]
    if scale is None:
        if dtype is not None and DTYPES[kind] != dtype:
            raise EncodingError(
                f"values are {DTYPES[kind]}, and dtype {dtype}: without a scale both "
                "are one"
            )
        return found, None
    if name_of(kind) is None:
        raise EncodingError(
            f"values are {DTYPES[kind]}, and there is a scale: legal are elements of "
            "torch.float8_e4m3fn or torch.int8"
        )
    if dtype is None or dtype not in DTYPE_NAMES or dtype in NARROW:
        raise EncodingError(
            f"dtype is {dtype}: a weight with a scale needs the type that it stands "
            "for, a float type of 16 bits or more"
        )
    check_scale(scale, shape[0])
    return {**found, SCALE: scale}, dtype


def scaled_zeros(
    encoding: Encoding,
    shape: Sequence[int],
    elements: Optional[str],
    dtype: torch.dtype,
    device: Any,
) -> Tuple[Dict[str, Tensor], Optional[torch.dtype]]:
    """The components of a weight of zeros, and the type that they stand for where they
    have a scale.

    elements:  as in MLIR, or None.
    """
    n, k = shape
    kind = dtype if elements is None else DTYPES[elements]
    parts = zero_components(encoding, (n, k), kind, device)
    if elements is None:
        return parts, None
    parts[SCALE] = torch.ones(n, dtype=torch.float32, device=device)
    return parts, dtype

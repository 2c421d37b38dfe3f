# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a linear layer with a packed weight is: encoding, shape, type, activation.

The operator `nm_sparse::linear` takes it as text, so that graphs hold it as a
constant, and so that two layers that are alike share a compiled program.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterable, Optional, Tuple, Union

import torch

from ...encoding import Encoding, EncodingError, packed_shapes
from ...packing.bitmap import OUTPUTS, bitmap_shape, innermost_weight
from ...packing.k_major import check_k_major, k_major_shape
from .levels import index_dtype

# Element type, spelled as in MLIR -> that of torch.
DTYPES: Dict[str, torch.dtype] = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "i8": torch.int8,
}
DTYPE_NAMES: Dict[torch.dtype, str] = {dtype: name for name, dtype in DTYPES.items()}
# Elements of 8 bits are multiplied by activations of another type, which they become.
NARROW = (torch.float8_e4m3fn, torch.float8_e5m2, torch.int8)
# Types of elements that have scales, as in MLIR, by their short names.
ELEMENTS = {"e4m3": "f8E4M3FN", "int8": "i8"}
SCALE = "scale"  # the name of the component, f32 [N]
ACTIVATIONS = ("none", "relu", "gelu", "gelu_tanh", "silu")
EACH = 0  # in the place of a number of tokens: that of each call
# Packed forms: sections 2 and 7 of docs/Encoding.md.
STORAGES = ("canonical", "bitmap", "k_major")


# Shape and type by name.
Components = Dict[str, Tuple[Tuple[int, ...], torch.dtype]]


def dtype_name(dtype: torch.dtype) -> str:
    """The name in MLIR of the element type of a weight.

    Raises EncodingError when no weight can have it.
    """
    if dtype not in DTYPE_NAMES:
        legal = ", ".join(str(known) for known in DTYPE_NAMES)
        raise EncodingError(f"element type is {dtype}: legal is {legal}")
    return DTYPE_NAMES[dtype]


def linear_encoding(encoding: Union[Encoding, str]) -> Encoding:
    """The encoding of a weight [outputs, inputs], which contracts dimension 1.

    encoding:  an Encoding or its text. One with `dim = 0`, the default of `Encoding`,
               is turned: torch has no linear layer that it could be of.

    Raises EncodingError when the text is no encoding, `dim` is 2, or the encoding is
    `free`, which layers of torch do not support.
    """
    e = Encoding.parse(encoding) if isinstance(encoding, str) else encoding
    if not isinstance(e, Encoding):
        raise EncodingError(f"encoding is {e!r}: legal is an Encoding or its text")
    if e.dim == 2:
        raise EncodingError("dim is 2: a weight [outputs, inputs] contracts dim 1")
    if e.is_free:
        raise EncodingError(
            "encoding is free: layers of torch have n:m levels; choose one, such as "
            "8:32, or pack the weight with nm_sparse.encode"
        )
    return replace(e, dim=1)


def component_types(encoding: Encoding, dtype: torch.dtype) -> Dict[str, torch.dtype]:
    """Type of each component, by name, of elements of `dtype`."""
    types = {"values": dtype}
    for name, level in zip(("index", "inner_index"), encoding.levels):
        types[name] = index_dtype(level.m)
    if encoding.is_shuffled:
        types["perm"] = torch.int32
    return types


def check_storage(storage: str, encoding: Encoding, dtype: torch.dtype) -> None:
    """Raises EncodingError unless weights of this encoding and type have that form."""
    if storage not in STORAGES:
        raise EncodingError(f"storage is {storage!r}: legal is {', '.join(STORAGES)}")
    if storage == "canonical":
        return
    if storage == "k_major":
        check_k_major(encoding)
        return
    if dtype.itemsize > 4:
        raise EncodingError(
            f"values are {dtype}: legal in bitmaps are elements of 1, 2 or 4 bytes; "
            "keep the weight in canonical form"
        )
    if encoding.inner is not None and encoding.block[1] % OUTPUTS:
        raise EncodingError(
            f"block is {list(encoding.block)}: bitmaps of two levels have panels of a "
            f"multiple of {OUTPUTS} outputs"
        )


def check_elements(elements: str, dtype: torch.dtype) -> None:
    """Raises EncodingError unless elements of that type, as in MLIR, may have scales,
    and their products be of type `dtype`."""
    if elements not in ELEMENTS.values():
        legal = ", ".join(ELEMENTS.values())
        raise EncodingError(f"elements are {elements!r}: legal is {legal}, or None")
    if dtype in NARROW:
        raise EncodingError(
            f"a weight of {elements} with a scale stands for {dtype}: legal are float "
            "types of 16 bits or more"
        )


def elements_of(name: Any, what: str = "weights") -> Optional[str]:
    """The type in MLIR of elements with scales, by its short name; None for None.

    Raises EncodingError, which says `what` the name is of, for another one.
    """
    if name is None:
        return None
    if not isinstance(name, str) or name not in ELEMENTS:
        legal = ", ".join(map(repr, ELEMENTS))
        raise EncodingError(f"{what} is {name!r}: legal is {legal}, or None")
    return ELEMENTS[name]


def check_dense_from(value: Any) -> Optional[int]:
    """The same number. Raises EncodingError unless it is one of rows, or None."""
    if value is None or (type(value) is int and value >= 1):
        return value
    raise EncodingError(
        f"dense_from is {value!r}: legal is a number of tokens from 1 on, or None for "
        "no dense copy"
    )


def check_decode_to(value: Any) -> Optional[int]:
    """The same number. Raises EncodingError unless it is one of rows, or None."""
    if value is None or (type(value) is int and value >= 1):
        return value
    raise EncodingError(
        f"decode_to is {value!r}: legal is a number of tokens from 1 on, or None for "
        "one form of the weight"
    )


def common_dense_from(each: Iterable[Optional[int]]) -> Optional[int]:
    """From how many rows of x on layers of one operator multiply by dense copies, by
    the numbers of its layers: the largest, and None where one layer has none."""
    found = list(each)
    return None if None in found else max(found)  # type: ignore[type-var]


@dataclass(frozen=True)
class LinearSpec:
    """A linear layer: y = activation(x W^T + bias) with a packed W.

    encoding:    of W, with dim = 1.
    shape:       [N, K]: outputs and inputs.
    dtype:       element type of W, spelled as in MLIR.
    elements:    of a W with a scale for each output that of `values`: f8E4M3FN or i8.
                 W stands for their products, and `dtype` is the type of these, of bias
                 and of y; None: W has no scales.
    activation:  one of "none", "relu", "gelu", "gelu_tanh", "silu".
    storage:     the packed form that the operands have: "canonical", of section 2 of
                 docs/Encoding.md, or "bitmap" or "k_major", of section 7.
    dense_from:  number of rows of x from which on a GPU multiplies by a dense copy of
                 the weight, and not by sparse kernels; None: it never does.
    decode_to:   number of rows of x up to which a GPU multiplies by kernels of their
                 own, which read the weight in the form that is best for one row; more
                 rows, and all of them where it is None, by kernels for any number.
    tokens:      number of rows of x that kernels are compiled for; they are right for
                 any other, and slower. `EACH`: that of each call, rounded up. None:
                 some kernels, for any number.

    Raises EncodingError when a field is none of these, or the weight has no such form.
    """

    encoding: Encoding
    shape: Tuple[int, int]
    dtype: str
    activation: str = "none"
    storage: str = "canonical"
    dense_from: Optional[int] = None
    elements: Optional[str] = None
    tokens: Optional[int] = None
    decode_to: Optional[int] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", linear_encoding(self.encoding))
        object.__setattr__(self, "shape", tuple(int(size) for size in self.shape))
        if len(self.shape) != 2 or min(self.shape) < 0:
            raise EncodingError(f"shape is {list(self.shape)}: legal is [N, K]")
        if self.dtype not in DTYPES:
            raise EncodingError(
                f"dtype is {self.dtype!r}: legal is {', '.join(DTYPES)}"
            )
        if self.activation not in ACTIVATIONS:
            raise EncodingError(
                f"activation is {self.activation!r}: legal is {', '.join(ACTIVATIONS)}"
            )
        if self.elements is not None:
            check_elements(self.elements, self.torch_dtype)
        check_storage(self.storage, self.encoding, self.values_dtype)
        check_dense_from(self.dense_from)
        check_decode_to(self.decode_to)
        is_count = type(self.tokens) is int and self.tokens >= EACH
        if self.tokens is not None and not is_count:
            raise EncodingError(
                f"tokens is {self.tokens!r}: legal is a number from 1 on, 0 for that "
                "of each call, or None"
            )

    @functools.cached_property
    def text(self) -> str:
        """Compact JSON, the same for equal specs; `dense_from`, `decode_to` and
        `tokens` are last, if they are set (`shared_spec` relies on that)."""
        fields: Dict[str, Any] = {
            "encoding": self.encoding.mlir(),
            "shape": list(self.shape),
            "dim": 1,
            "dtype": self.dtype,
            "activation": self.activation,
            "storage": self.storage,
        }
        if self.elements is not None:
            fields["elements"] = self.elements
        if self.dense_from is not None:
            fields["dense_from"] = self.dense_from
        if self.decode_to is not None:
            fields["decode_to"] = self.decode_to
        if self.tokens is not None:
            fields["tokens"] = self.tokens
        return json.dumps(fields, separators=(",", ":"))

    @functools.cached_property
    def components(self) -> Dict[str, Tuple[Tuple[int, ...], torch.dtype]]:
        """Shape and type of the components, by name, in their order. Bitmaps have
        `bits` in the place of the last index; K-major values are transposed. The scale
        is last."""
        types = component_types(self.encoding, self.values_dtype)
        shapes = packed_shapes(self.encoding, self.shape)
        parts = {name: (shape, types[name]) for name, shape in shapes.items()}
        if self.storage == "bitmap":
            parts = self._bitmaps(parts)
        elif self.storage == "k_major":
            size = k_major_shape(self.encoding, *self.shape[::-1])
            parts = {**parts, "values": (size, self.values_dtype)}
        if self.elements is not None:
            parts[SCALE] = (self.shape[:1], torch.float32)
        return parts

    def _bitmaps(self, parts: Components) -> Components:
        n, k = self.shape
        size = self.values_dtype.itemsize
        shape = bitmap_shape(*innermost_weight(self.encoding, k, n), size)
        lead = (shape.blocks, shape.tiles)
        bits = ((*lead, OUTPUTS * shape.words), torch.int32)
        values = ((*lead, OUTPUTS * shape.tile_values), self.values_dtype)
        last = "index" if self.encoding.inner is None else "inner_index"
        found = {**parts, "values": values, last: bits}
        return {"bits" if name == last else name: x for name, x in found.items()}

    @functools.cached_property
    def canonical(self) -> "LinearSpec":
        """What kernels are compiled for: the same of a weight in canonical form, and
        without `dense_from`, of which they know nothing."""
        return replace(self, storage="canonical", dense_from=None)

    @functools.cached_property
    def of_weight(self) -> "LinearSpec":
        """What forms of the weight are made by: nothing that is said of rows."""
        return replace(self.canonical, tokens=None, decode_to=None)

    @functools.cached_property
    def for_any_tokens(self) -> "LinearSpec":
        """The same without `tokens`."""
        return self if self.tokens is None else replace(self, tokens=None)

    def with_activation(self, activation: str) -> "LinearSpec":
        """The same with another activation."""
        return replace(self, activation=activation)

    @functools.cached_property
    def torch_dtype(self) -> torch.dtype:
        return DTYPES[self.dtype]

    @functools.cached_property
    def values_dtype(self) -> torch.dtype:
        """Of the component `values`."""
        return DTYPES[self.elements or self.dtype]

    @functools.cached_property
    def unscaled(self) -> "LinearSpec":
        """The same of the elements by themselves, without their scale."""
        if self.elements is None:
            return self
        return replace(self, dtype=self.elements, elements=None)

    @functools.cached_property
    def dequantized(self) -> "LinearSpec":
        """The same of a weight whose `values` are the products, of type `dtype`, in
        canonical form."""
        if self.elements is None:
            return self
        return replace(self, elements=None, storage="canonical")

    @staticmethod
    def parse(text: str) -> "LinearSpec":
        """The spec whose `text` this is. Raises EncodingError when it is none."""
        return _parse(text)


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> LinearSpec:
    try:
        fields = json.loads(text)
        encoding = linear_encoding(fields["encoding"])
        shape, dim, dtype = fields["shape"], fields.get("dim", 1), fields["dtype"]
        names = ("activation", "storage", "dense_from", "decode_to", "elements")
        others = {key: fields[key] for key in (*names, "tokens") if key in fields}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, EncodingError):
            raise
        raise EncodingError(
            f"spec is {text!r}: legal is the text of a LinearSpec"
        ) from None
    if dim != 1:
        raise EncodingError(f"spec says dim {dim}: a weight [N, K] contracts dim 1")
    return LinearSpec(encoding, shape, dtype, **others)


@functools.lru_cache(maxsize=4096)
def spec_texts(
    encoding: Encoding,
    shape: Tuple[int, int],
    activation: str,
    storage: str,
    elements: Optional[str] = None,
) -> Dict[torch.dtype, str]:
    """The texts of the specs of a layer, for each type that its weight may have.

    elements:  as in MLIR, of a weight with scales.
    """
    found = {}
    for name, dtype in DTYPES.items():
        has_form = storage != "bitmap" or elements is not None or dtype.itemsize <= 4
        if has_form and not (elements is not None and dtype in NARROW):
            own = encoding, shape, name, activation, storage
            found[dtype] = LinearSpec(*own, elements=elements).text
    return found

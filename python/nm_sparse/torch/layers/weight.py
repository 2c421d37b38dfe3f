# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A packed weight of torch tensors: the canonical components of docs/Encoding.md.

`PackedWeight` does on any device, in vectorized torch, what `nm_sparse.encode` and
`nm_sparse.decode` do in numpy, bit for bit. `unpack_rows` and `gather_rows` are the
same for the elements alone, and differentiable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import Tensor

from ...encoding import Encoding, EncodingError, Packed, order, packed_shapes
from .levels import (
    bits_of,
    check_level,
    choose_level,
    gather_level,
    index_dtype,
    positions_of,
    signless,
    unpack_level,
)
from .spec import DTYPES, component_types, dtype_name, linear_encoding

_FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def unpack_rows(
    components: Sequence[Tensor], encoding: Encoding, shape: Tuple[int, int]
) -> Tensor:
    """The dense weight as [K, N], its outputs in packed order.

    components:  in the order of `packed_shapes`.
    shape:       [N, K] of the weight.
    """
    rows = components[0]
    narrow = rows.dtype if rows.dtype in _FLOAT8 else None
    if narrow is not None:
        rows = rows.view(torch.uint8)
    levels = encoding.levels
    for level, index in zip(
        reversed(levels), reversed(components[1 : len(levels) + 1])
    ):
        rows = unpack_level(rows, positions_of(index, level), level)
    rows = rows[: shape[1], : shape[0]]
    return rows if narrow is None else rows.contiguous().view(narrow)


def gather_rows(
    rows: Tensor, components: Sequence[Tensor], encoding: Encoding
) -> Tensor:
    """What `rows` [K, N], outputs in packed order, have where `components[1:]` say:
    a tensor like `components[0]`, zero past the end of the weight."""
    for level, index in zip(encoding.levels, components[1:]):
        rows = gather_level(rows, positions_of(index, level), level)
    return rows


@dataclass(frozen=True, eq=False)
class PackedWeight:
    """The weight [N, K] of a linear layer in canonical packed form.

    components:  the tensors by name, as docs/Encoding.md defines them. Positions are
                 uint8, or int16 and int32 whose bits are read as unsigned; `perm` is
                 int32.
    encoding:    with dim = 1.
    shape:       [N, K].

    It has the `shape`, `dtype`, `device` and `requires_grad` of a tensor, and may be
    the weight of `torch.nn.functional.linear`.
    """

    components: Mapping[str, Tensor]
    encoding: Encoding
    shape: torch.Size

    @staticmethod
    def from_components(
        components: Mapping[str, Tensor],
        encoding: Union[Encoding, str],
        shape: Sequence[int],
    ) -> "PackedWeight":
        """Puts components together, without a copy. See `validate` for their contents.

        Raises EncodingError when a name, a shape or a type is not that of a weight
        [N, K] of `shape`.
        """
        e, size = linear_encoding(encoding), torch.Size(shape)
        legal = packed_shapes(e, tuple(size))
        if set(components) != set(legal):
            raise EncodingError(
                f"components are {', '.join(components)}: legal are {', '.join(legal)}"
            )
        parts = {name: signless(components[name]) for name in legal}
        types = component_types(e, parts["values"].dtype)
        dtype_name(parts["values"].dtype)
        for name, part in parts.items():
            if tuple(part.shape) != legal[name] or part.dtype != types[name]:
                raise EncodingError(
                    f"{name} is {list(part.shape)} of {part.dtype}: a weight "
                    f"{list(size)} needs {list(legal[name])} of {types[name]}"
                )
        return PackedWeight(parts, e, size)

    @staticmethod
    def from_dense(
        weight: Tensor,
        encoding: Union[Encoding, str],
        perm: Optional[Tensor] = None,
    ) -> "PackedWeight":
        """Packs a dense weight [N, K] that keeps to `encoding`, on its device.

        perm:  [N], the order of the outputs of a shuffled weight; by default one in
               which outputs of the same support are neighbours.

        Raises EncodingError when a window of a panel has more than n nonzero blocks,
        and when rank, type or perm do not fit.
        """
        e = linear_encoding(encoding)
        if weight.ndim != 2:
            raise EncodingError(f"weight has rank {weight.ndim}: legal is 2, [N, K]")
        name = dtype_name(weight.dtype)
        dense = weight.detach().contiguous()
        places, note = _places(dense, e, perm)
        ordered = dense if places is None else dense[places.long()]
        rows = bits_of(ordered).t()
        magnitude = 0xFF if name == "i8" else (1 << (8 * dense.element_size() - 1)) - 1
        where = [(note, "panel"), (f" in what {e.n}:{e.m} keeps{note}", "inner panel")]
        index = []
        for level, place in zip(e.levels, where):
            kept = choose_level(rows, level, magnitude, place)
            rows = gather_level(rows, kept, level)
            index.append(kept.flatten(0, 1).to(index_dtype(level.m)))
        parts = [rows.contiguous().view(dense.dtype), *index]
        parts += [] if places is None else [places]
        names = packed_shapes(e, tuple(weight.shape))
        return PackedWeight(dict(zip(names, parts)), e, weight.shape)

    @staticmethod
    def from_packed(packed: Packed) -> "PackedWeight":
        """The same components as tensors where they are, which share their memory.

        Raises EncodingError when it is not the weight of a linear layer.
        """
        if len(packed.shape) != 2:
            raise EncodingError(f"weight has shape {packed.shape}: legal is [N, K]")
        e, shape = packed.encoding, packed.shape
        parts = {name: _tensor(array) for name, array in packed.components.items()}
        values = packed.components["values"]
        parts["values"] = _tensor(values).view(_torch_dtype(packed.dtype))
        outputs_first = shape if e.dim == 1 else shape[::-1]
        return PackedWeight.from_components(parts, e, outputs_first)

    def to_packed(self) -> Packed:
        """The same components as numpy arrays: bf16 and f8 as unsigned views."""
        arrays = {}
        for name, part in self.components.items():
            plain = part.detach().cpu().contiguous()
            if name != "values":
                array = plain.numpy()
                arrays[name] = array.view(f"uint{8 * array.dtype.itemsize}")
            elif plain.dtype == torch.bfloat16 or plain.dtype in _FLOAT8:
                array = bits_of(plain).numpy()
                arrays[name] = array.view(f"uint{8 * array.dtype.itemsize}")
            else:
                arrays[name] = plain.numpy()
        return Packed(arrays, self.encoding, tuple(self.shape), dtype_name(self.dtype))

    def to_dense(self) -> Tensor:
        """The dense weight [N, K]; differentiable in `values`."""
        parts = tuple(self.components.values())
        is_constant = not (self.requires_grad and torch.is_grad_enabled())
        if is_constant:  # copy bits, which keeps the payload of NaN
            parts = (bits_of(parts[0].detach().contiguous()), *parts[1:])
        dense = unpack_rows(parts, self.encoding, tuple(self.shape)).t()
        if self.encoding.is_shuffled:
            dense = dense.index_select(0, inverse(self.components["perm"]))
        dense = dense.contiguous()
        return dense.view(self.dtype) if is_constant else dense

    def validate(self) -> None:
        """Checks what the components hold.

        Raises EncodingError when a position is out of its window or out of order,
        values past the end of the weight are not +0, or perm is no permutation.
        """
        e, parts = self.encoding, self.components
        for name, level in zip(("index", "inner_index"), e.levels):
            check_level(parts[name], level, name)
        values = parts["values"].detach().contiguous()
        bits = [bits_of(values), *list(parts.values())[1:]]
        padded = (self.shape[0] + e.block[1], self.shape[1] + e.m * e.block[0])
        rows = unpack_rows(bits, e, padded)
        if bool(rows[self.shape[1] :].any()) or bool(rows[:, self.shape[0] :].any()):
            raise EncodingError("values beyond the last row or output are not +0")
        if e.is_shuffled:
            perm = parts["perm"].to(torch.int64)
            expected = torch.arange(self.shape[0], device=perm.device)
            if not torch.equal(perm.sort().values, expected):
                raise EncodingError(
                    f"perm is no permutation: legal is each number below "
                    f"{self.shape[0]} once; it is damaged or of another weight"
                )

    def to(self, *args: Any, **kwargs: Any) -> "PackedWeight":
        """Moves all components, and converts `values`, like `torch.Tensor.to`."""
        parts = {"values": self.components["values"].to(*args, **kwargs)}
        device = parts["values"].device
        for name, part in self.components.items():
            if name != "values":
                parts[name] = part.to(device)
        return replace(self, components=parts)

    @property
    def dtype(self) -> torch.dtype:
        return self.components["values"].dtype

    @property
    def device(self) -> torch.device:
        return self.components["values"].device

    @property
    def requires_grad(self) -> bool:
        return self.components["values"].requires_grad

    @property
    def ndim(self) -> int:
        return 2

    @property
    def nbytes(self) -> int:
        """Bytes of all components."""
        return sum(part.nbytes for part in self.components.values())

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """`torch.nn.functional.linear` multiplies by the packed weight."""
        if func is not torch.nn.functional.linear:
            return NotImplemented
        from .ops import packed_linear

        def layer(x: Tensor, weight: Any, bias: Optional[Tensor] = None) -> Tensor:
            if not isinstance(weight, PackedWeight) or not isinstance(x, Tensor):
                raise TypeError("legal is a packed weight, and activations of tensors")
            return packed_linear(x, weight, bias)

        return layer(*args, **(kwargs or {}))


def inverse(perm: Tensor) -> Tensor:
    """[N] int64: at which packed place each output is."""
    places = perm.to(torch.int64)
    count = torch.arange(places.shape[0], device=perm.device)
    return torch.empty_like(places).scatter(0, places, count)


def _places(
    dense: Tensor, e: Encoding, perm: Optional[Tensor]
) -> Tuple[Optional[Tensor], str]:
    """`perm` as int32, or what to use for it, and what an error says of it."""
    if not e.is_shuffled:
        if perm is not None:
            raise EncodingError("perm is given, but order is 'identity': legal is none")
        return None, ""
    if perm is not None:
        given = signless(perm).cpu().numpy()
        if perm.dtype == torch.uint32:
            given = given.view(np.uint32)
        stand_in = np.broadcast_to(np.uint8(0), tuple(dense.shape))
        places = order.checked(given, e, stand_in)[0]
        note = " in the order that was given"
    else:
        live = (dense != 0) if dense.dtype not in _FLOAT8 else (dense.float() != 0)
        places = order.from_support(live.t().cpu().numpy()[None], e)[0]
        note = " in the order that was found"
    return torch.from_numpy(places.astype(np.int32)).to(dense.device), note


def _tensor(array: Union[np.ndarray, Tensor]) -> Tensor:
    """The same memory; bits of wide unsigned integers as signless ones."""
    if isinstance(array, Tensor):
        return array
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.view(f"int{8 * array.dtype.itemsize}")
    return torch.from_numpy(np.ascontiguousarray(array))


def _torch_dtype(name: str) -> torch.dtype:
    if name not in DTYPES:
        raise EncodingError(f"element type is {name!r}: legal is {', '.join(DTYPES)}")
    return DTYPES[name]

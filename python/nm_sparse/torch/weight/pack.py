# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packing and unpacking of a weight of torch tensors, on any device.

They do in vectorized torch what `nm_sparse.encode` and `nm_sparse.decode` do in numpy,
bit for bit. `unpack_rows` and `gather_rows` are for the elements alone, and
differentiable.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor

from ...encoding import Encoding, EncodingError, order, packed_shapes
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
from .spec import component_types, dtype_name

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def unpack_rows(
    components: Sequence[Tensor], encoding: Encoding, shape: Tuple[int, int]
) -> Tensor:
    """The dense weight as [K, N], its outputs in packed order.

    components:  in the order of `packed_shapes`.
    shape:       [N, K] of the weight.
    """
    rows = components[0]
    narrow = rows.dtype if rows.dtype in FLOAT8 else None
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


def unpack_weight(
    components: Sequence[Tensor], encoding: Encoding, shape: Tuple[int, int]
) -> Tensor:
    """The dense weight [N, K]; differentiable in the values."""
    dense = unpack_rows(components, encoding, shape).t()
    if encoding.is_shuffled:
        dense = dense.index_select(0, inverse(perm_of(components, encoding)))
    return dense.contiguous()


def gather_weight(
    dense: Tensor, components: Sequence[Tensor], encoding: Encoding
) -> Tensor:
    """The elements of a dense [N, K] that a weight keeps, like its values."""
    if encoding.is_shuffled:
        dense = dense.index_select(0, perm_of(components, encoding).to(torch.int64))
    return gather_rows(dense.t(), components, encoding)


def pack_weight(
    weight: Tensor, e: Encoding, perm: Optional[Tensor] = None
) -> Dict[str, Tensor]:
    """The canonical components of a dense weight [N, K], on its device.

    perm:  [N], the order of the outputs of a shuffled weight; by default one in which
           outputs of the same support are neighbours.

    Raises EncodingError when a window of a panel has more than n nonzero blocks, and
    when rank, type or perm do not fit.
    """
    if weight.ndim != 2:
        raise EncodingError(f"weight has rank {weight.ndim}: legal is 2, [N, K]")
    name = dtype_name(weight.dtype)
    dense = weight.detach().contiguous()
    places, note = _places(dense, e, perm)
    ordered = dense if places is None else dense[places.long()]
    rows = bits_of(ordered).t()
    magnitude = 0xFF if name == "i8" else (1 << (8 * dense.element_size() - 1)) - 1
    where = [(note, "panel"), (f" in what {e.n}:{e.m} keeps{note}", "inner panel")]
    index: List[Tensor] = []
    for level, place in zip(e.levels, where):
        kept = choose_level(rows, level, magnitude, place)
        rows = gather_level(rows, kept, level)
        index.append(kept.flatten(0, 1).to(index_dtype(level.m)))
    parts = [rows.contiguous().view(dense.dtype), *index]
    parts += [] if places is None else [places]
    return dict(zip(packed_shapes(e, tuple(weight.shape)), parts))


def zero_components(
    e: Encoding, shape: Tuple[int, int], dtype: torch.dtype, device: object = None
) -> Dict[str, Tensor]:
    """The components of a weight [N, K] of zeros that keeps the first blocks of every
    window, with its outputs in their order."""
    types, parts = component_types(e, dtype), {}
    for name, size in packed_shapes(e, shape).items():
        parts[name] = torch.zeros(size, dtype=types[name], device=device)
    for name, level in zip(("index", "inner_index"), e.levels):
        first = torch.arange(level.n, device=device).to(types[name])
        windows, panels = parts[name].shape[0] // level.n, parts[name].shape[1]
        parts[name] = first.repeat(windows)[:, None].repeat(1, panels)
    if e.is_shuffled:
        parts["perm"] = torch.arange(shape[0], device=device).to(torch.int32)
    return parts


def check_parts(
    components: Mapping[str, Tensor], e: Encoding, shape: Tuple[int, int]
) -> Dict[str, Tensor]:
    """The canonical components in their order, positions signless.

    Raises EncodingError when a name, a shape or a type is not that of a weight [N, K]
    of `shape`.
    """
    legal = packed_shapes(e, shape)
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
                f"{list(shape)} needs {list(legal[name])} of {types[name]}"
            )
    return parts


def check_contents(
    parts: Mapping[str, Tensor], e: Encoding, shape: Tuple[int, int]
) -> None:
    """Raises EncodingError when a position is out of its window or out of order,
    values past the end of the weight are not +0, or perm is no permutation."""
    for name, level in zip(("index", "inner_index"), e.levels):
        check_level(parts[name], level, name)
    values = parts["values"].detach().contiguous()
    bits = [bits_of(values), *list(parts.values())[1:]]
    padded = (shape[0] + e.block[1], shape[1] + e.m * e.block[0])
    rows = unpack_rows(bits, e, padded)
    if bool(rows[shape[1] :].any()) or bool(rows[:, shape[0] :].any()):
        raise EncodingError("values beyond the last row or output are not +0")
    if e.is_shuffled:
        perm = parts["perm"].to(torch.int64)
        expected = torch.arange(shape[0], device=perm.device)
        if not torch.equal(perm.sort().values, expected):
            raise EncodingError(
                f"perm is no permutation: legal is each number below "
                f"{shape[0]} once; it is damaged or of another weight"
            )


def perm_of(components: Sequence[Tensor], encoding: Encoding) -> Tensor:
    """The order of the outputs of a shuffled weight; a scale may follow it."""
    return components[1 + len(encoding.levels)]


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
        live = (dense != 0) if dense.dtype not in FLOAT8 else (dense.float() != 0)
        places = order.from_support(live.t().cpu().numpy()[None], e)[0]
        note = " in the order that was found"
    return torch.from_numpy(places.astype(np.int32)).to(dense.device), note

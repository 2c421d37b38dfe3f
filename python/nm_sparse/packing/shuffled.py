# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`encode`, `decode` and `prune` of weights in either order of their outputs.

docs/Encoding.md is the specification. A shuffled weight is one whose outputs, put in
another order, have the pattern; `reference.py` packs and prunes it in that order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Optional, Tuple

import numpy as np

from .. import reference
from ..bindings import packing_library
from ..bindings.packing_library import Progress
from ..encoding import Encoding, EncodingError, Packed, extents, order
from ..reference import _bits, _check_density, _default_dtype, _turn


def encode(
    weight: np.ndarray,
    encoding: Encoding,
    dtype: Optional[str] = None,
    perm: Optional[np.ndarray] = None,
) -> Packed:
    """Packs a weight that keeps to `encoding` into canonical form.

    weight:  [batch,] K, N elements with dim = rank - 2, [batch,] N, K with
             dim = rank - 1; any K, N. bf16 and f8 as unsigned views.
    dtype:   element type, needed for unsigned views only.
    perm:    [batch,] N, the order of the outputs of a shuffled weight; by default
             one in which outputs of the same support are neighbours.

    Raises EncodingError naming window and panel when more than n blocks of a
    window hold a nonzero (or NaN) element, or when shape, dim, type or perm do not
    fit.
    """
    e, dtype = encoding, dtype or _default_dtype(weight)
    if not e.is_shuffled:
        _refuse_perm(e, perm)
        return reference.encode(weight, e, dtype)
    places, note = _places(weight, e, dtype, perm)
    packed = reference.encode(order.put(weight, e, places), e.packed, dtype, note)
    components = {**packed.components, "perm": _stored(places, weight)}
    return Packed(components, e, weight.shape, dtype)


def decode(packed: Packed) -> np.ndarray:
    """The dense weight, of `packed.shape`, that packed components stand for.

    Accepts any strictly increasing positions and any permutation, not only those
    that `encode` picks. Raises EncodingError when a shape or type does not fit, a
    position is out of its window or out of order, padding holds anything but +0, or
    perm is no permutation.
    """
    e = packed.encoding
    if not e.is_shuffled:
        return reference.decode(packed)
    parts = dict(packed.components)
    perm = parts.pop("perm", None)
    if perm is None or perm.dtype != np.uint32:
        found = "none" if perm is None else perm.dtype
        raise EncodingError(f"perm is {found}: a shuffled weight needs uint32")
    dense = reference.decode(replace(packed, components=parts, encoding=e.packed))
    return order.put_back(dense, e, order.checked(perm, e, dense))


def prune(
    weight: np.ndarray,
    encoding: Encoding,
    dtype: Optional[str] = None,
    density: Optional[float] = None,
    perm: Optional[np.ndarray] = None,
    seed: int = 0,
    progress: Optional[Progress] = None,
) -> np.ndarray:
    """The weight with +0 wherever the pattern has no room.

    Keeps the blocks of largest magnitude, as docs/Encoding.md says; of a free
    encoding the share `density` of all blocks, from 0 to 1. Of a shuffled one, `perm`
    is the order of the outputs; by default that of `search_order`, with `seed` and
    `progress`. Raises EncodingError when shape, dim, type or perm do not fit.
    """
    e = encoding
    if not e.is_shuffled:
        _refuse_perm(e, perm)
        return reference.prune(weight, e, dtype, density)
    extents(e, weight.shape)
    if perm is None:
        perm = search_order(weight, e, dtype, density, seed, progress)
    places = order.checked(perm, e, weight)
    ordered = order.put(weight, e, places)
    return order.put_back(reference.prune(ordered, e.packed, dtype, density), e, places)


def search_order(
    weight: np.ndarray,
    encoding: Encoding,
    dtype: Optional[str] = None,
    density: Optional[float] = None,
    seed: int = 0,
    progress: Optional[Progress] = None,
) -> np.ndarray:
    """[batch,] N: an order of the outputs in which pruning to a shuffled encoding
    keeps much of the weight. That of a weight that has the pattern is the one that
    `encode` takes.

    density:   of a free encoding: the share of the blocks that are kept.
    seed:      which windows are looked at where there are too many for all.
    progress:  called with the number of steps that are done, and of all.
    """
    e, dtype = encoding, dtype or _default_dtype(weight)
    if not e.is_shuffled:
        raise EncodingError(f"order is {e.order!r}: only 'shuffled' has an order")
    extents(e, weight.shape)
    _check_density(e, density)
    if density is not None and not 0 <= density <= 1:
        raise EncodingError(f"density is {density}: legal is from 0 to 1")
    _bits(weight, dtype, "weight")
    found = packing_library.search_order(weight, e, dtype, density, seed, progress)
    return _stored(found, weight)


def _stored(places: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return places.astype(np.uint32).reshape(weight.shape[:-2] + (places.shape[1],))


def _refuse_perm(e: Encoding, perm: Optional[np.ndarray]) -> None:
    if perm is not None:
        raise EncodingError(f"perm is given, but order is {e.order!r}: legal is none")


def _places(
    weight: np.ndarray, e: Encoding, dtype: str, perm: Optional[np.ndarray]
) -> Tuple[np.ndarray, str]:
    """The order of the outputs, [batch, N], and what an error says of it."""
    shape = extents(e, weight.shape)
    if perm is not None:
        return order.checked(perm, e, weight), " in the order that was given"
    bits, sign = _bits(weight, dtype, "weight")
    rows = _turn(bits, e.packed).reshape(shape)
    live = rows if e.is_free else rows & ~rows.dtype.type(sign)
    return order.from_support(live != 0, e), " in the order that was found"

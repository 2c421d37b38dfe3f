# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prune`: a weight made to fit a pattern, by magnitude or by scores of one's own.

docs/Encoding.md, section 3, says which elements stay. Arrays of any library that
`arrays.py` knows are taken.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple, Union

import numpy as np

from ..bindings import packing_library
from ..bindings.packing_library import Progress
from ..encoding import Encoding, EncodingError, extents, order
from ..interop.arrays import HostArray, to_host, to_numbers
from ..packing.shuffled import _refuse_perm, search_order
from ..reference import _check_density, _default_dtype

Score = Union[str, Any, Callable[[Any], Any]]
_DTYPES = (np.float64, np.float32, np.float16, np.int8)  # compared as they are


def prune(
    weight: Any,
    encoding: Encoding,
    dtype: Optional[str] = None,
    density: Optional[float] = None,
    perm: Optional[np.ndarray] = None,
    seed: int = 0,
    progress: Optional[Progress] = None,
    *,
    score: Score = "magnitude",
) -> Any:
    """The weight with +0 wherever the pattern has no room; all else keeps its bits.

    weight:    [batch,] N, K elements with dim = rank - 1, [batch,] K, N with dim =
               rank - 2, of numpy, torch, cupy or DLPack. It is not changed.
    dtype:     element type, needed for numpy arrays of unsigned integers only, which
               hold the bits of bf16 or f8.
    density:   of a free encoding: the share of all blocks that are kept, 0 to 1.
    perm:      of a shuffled one: the order of its outputs; by default that of
               `search_order`, with `seed` and `progress`.
    score:     "magnitude", or what takes the place of |w|: an array of the weight's
               shape, or a function that is called with the weight and returns one.
               The blocks with the largest sums of squares stay.

    Returns an array of the weight's shape and element type, of the same kind and on
    the same device.

    >>> weight = np.array([[1.0, -4.0, 3.0, 2.0]])
    >>> prune(weight, Encoding("2:4", dim=1))
    array([[ 0., -4.,  3.,  0.]])

    Wanda's score is |w| times the norms of the inputs that it is multiplied by:

    >>> norms = np.array([9.0, 1.0, 1.0, 1.0])
    >>> prune(weight, Encoding("2:4", dim=1), score=lambda w: abs(w) * norms)
    array([[ 1., -4.,  0.,  0.]])

    Raises EncodingError when shape, dim, type, perm, density or score do not fit.
    """
    host = to_host(weight, dtype)
    scores, kind = _scores(weight, host, score)
    e, places = _in_order(host.array, scores, kind, encoding, density, perm, seed,
                          progress)  # fmt: skip
    ordered = _put(host.array, encoding, places)
    if scores is host.array:
        result = packing_library.prune(ordered, e, kind, density)
    else:
        scores = _put(scores, encoding, places)
        mask = packing_library.prune_mask(scores, e, kind, density)
        bits = ordered.view(f"uint{8 * ordered.itemsize}")
        result = np.multiply(bits, mask, dtype=bits.dtype).view(ordered.dtype)
    return host.restore(_put_back(result, encoding, places))


def pattern_mask(
    weight: Any,
    encoding: Encoding,
    dtype: Optional[str] = None,
    density: Optional[float] = None,
    perm: Optional[np.ndarray] = None,
    seed: int = 0,
    progress: Optional[Progress] = None,
    *,
    score: Score = "magnitude",
) -> Any:
    """Where `prune` with the same arguments keeps what the weight has: an array of bool
    of the weight's shape and kind.

    >>> pattern_mask(np.array([[1.0, -4.0, 3.0, 2.0]]), Encoding("2:4", dim=1))
    array([[False,  True,  True, False]])

    Raises EncodingError as `prune` does.
    """
    host = to_host(weight, dtype)
    scores, kind = _scores(weight, host, score)
    e, places = _in_order(host.array, scores, kind, encoding, density, perm, seed,
                          progress)  # fmt: skip
    scores = _put(scores, encoding, places)
    mask = packing_library.prune_mask(scores, e, kind, density)
    return host.restore(_put_back(mask, encoding, places))


def _scores(weight: Any, host: HostArray, score: Score) -> Tuple[np.ndarray, str]:
    """What stands for the magnitudes, and its element type."""
    if isinstance(score, str):
        if score != "magnitude":
            raise EncodingError(
                f"score is {score!r}: legal is 'magnitude', an array of the weight's "
                "shape, or a function of the weight that returns one"
            )
        return host.array, host.dtype
    numbers = to_numbers(score(weight) if callable(score) else score, "score")
    if numbers.shape != host.array.shape:
        raise EncodingError(
            f"score has shape {numbers.shape}: legal is that of the weight, "
            f"{host.array.shape}"
        )
    if numbers.dtype not in _DTYPES:
        numbers = numbers.astype(np.float64)
    return numbers, _default_dtype(numbers)


def _in_order(
    weight: np.ndarray,
    scores: np.ndarray,
    kind: str,
    e: Encoding,
    density: Optional[float],
    perm: Optional[np.ndarray],
    seed: int,
    progress: Optional[Progress],
) -> Tuple[Encoding, Optional[np.ndarray]]:
    """The encoding in packed order, and the order of the outputs where there is one."""
    _check_density(e, density)
    if density is not None and not 0 <= density <= 1:
        raise EncodingError(f"density is {density}: legal is from 0 to 1")
    extents(e, weight.shape)
    if not e.is_shuffled:
        _refuse_perm(e, perm)
        return e, None
    if perm is None:
        perm = search_order(scores, e, kind, density, seed, progress)
    return e.packed, order.checked(perm, e, weight)


def _put(array: np.ndarray, e: Encoding, places: Optional[np.ndarray]) -> np.ndarray:
    return array if places is None else order.put(array, e, places)


def _put_back(
    array: np.ndarray, e: Encoding, places: Optional[np.ndarray]
) -> np.ndarray:
    return array if places is None else order.put_back(array, e, places)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From how many tokens on packed layers are to multiply by dense copies of their
weights (`dense_copies.py`), by predicted times of both."""

from __future__ import annotations

from dataclasses import replace
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from torch import nn

from ...compiler import CompileError
from ...encoding import EncodingError
from ..layers.kernels import chip_of
from ..layers.linear import NMLinear
from ..layers.scaled_linear import SAME
from ..weight.spec import LinearSpec
from .kernel_storage import find_uses
from .report import Prediction, Row

# (shape [N, K], type as in MLIR, encoding, tokens, chip) -> (tokens, dense time,
# sparse time) in microseconds for each number of tokens.
Predictor = Callable[..., Iterable[Tuple[int, float, float]]]

# Numbers of tokens for which times are predicted.
COUNTS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536)
COUNTS += (2048, 3072, 4096)


def find_operators(model: nn.Module) -> List[Tuple[NMLinear, ...]]:
    """All packed layers, those together that are in one operator, directly or by way of
    others."""
    names = {
        module: name
        for name, module in model.named_modules()
        if isinstance(module, NMLinear)
    }
    groups: List[Dict[NMLinear, None]] = []
    for use in find_uses(model, names):
        merged = dict.fromkeys(use.layers)
        apart = []
        for group in groups:
            if merged.keys() & group.keys():
                merged = {**group, **merged}
            else:
                apart.append(group)
        groups = [*apart, merged]
    return [tuple(group) for group in groups]


class Times:
    """Predicted times of layers, of each kind once.

    chip:   that of a layer's GPU by default.
    dtype:  element type, as in MLIR; that of a layer by default.
    """

    def __init__(
        self, predictor: Predictor, chip: Optional[str], dtype: Optional[str] = None
    ) -> None:
        self.predictor, self.chip, self.dtype = predictor, chip, dtype
        self._known: Dict[Any, List[Tuple[float, float]]] = {}

    def of(self, layer: NMLinear) -> List[Tuple[float, float]]:
        """Microseconds, dense and sparse, for each of `COUNTS`."""
        spec = LinearSpec.parse(layer.kernel_spec)
        device, chip = layer.values.device, self.chip
        if chip is None and device.type == "cuda":
            chip = chip_of(device)
        has_elements = layer.activations != SAME
        dtype = self.dtype or (spec.elements if has_elements else spec.dtype)
        key = (spec.shape, dtype, spec.encoding, chip)
        if key not in self._known:
            found = self.predictor(spec.shape, dtype, spec.encoding, COUNTS, chip)
            self._known[key] = [(dense, sparse) for _, dense, sparse in found]
        return self._known[key]


def choose(is_dense: Sequence[bool]) -> Tuple[Optional[int], str]:
    """The least of `COUNTS` from which on dense is chosen for all, or None, and why.

    is_dense:  whether dense is no slower, for each of `COUNTS`.
    """
    at = len(COUNTS)
    while at > 0 and is_dense[at - 1]:
        at -= 1
    if at < len(COUNTS):
        return COUNTS[at], f"sparse is predicted to be no faster from {COUNTS[at]} on"
    first = COUNTS[-1] if any(is_dense) else f"{COUNTS[0]} to {COUNTS[-1]}"
    return None, f"sparse is predicted to be faster for {first} tokens"


def find_number(group: Sequence[NMLinear], times: Times) -> Tuple[Optional[int], str]:
    """`choose` for the layers of one operator, by the sums of their times.

    Raises CompileError or EncodingError where no times are predicted.
    """
    each = [times.of(layer) for layer in group]
    sums = [[sum(one) for one in zip(*at)] for at in zip(*each)]
    return choose([dense <= sparse for dense, sparse in sums])


def copy_bytes(layer: NMLinear) -> int:
    """Of the dense copy of a layer's weight; 0 where it has none."""
    if layer.dense_from is None:
        return 0
    size = layer.weight.dtype.itemsize if layer.activations == SAME else 1
    return layer.out_features * layer.in_features * size


def plan_dense_(
    model: nn.Module,
    allowed: Collection[NMLinear],
    slower: Collection[NMLinear],
    times: Times,
) -> None:
    """Sets `dense_from` of layers by predicted times, in place.

    allowed:  layers that may have dense copies.
    slower:   of these, those for which it is worth it; others follow where they are one
              operator with one of them.

    An operator gets a number where all of its layers may have one. Others stay as they
    are, and so do those for which no times are predicted.
    """
    for group in find_operators(model) if slower else ():
        if any(layer not in allowed for layer in group):
            continue
        if not any(layer in slower for layer in group):
            continue
        try:
            number, _ = find_number(group, times)
        except (CompileError, EncodingError):
            continue
        for layer in group:
            layer.dense_from = number
    for layer in allowed:
        layer.is_dense_from_timed = True


def plan_copies_(
    model: nn.Module,
    allowed: Mapping[NMLinear, Sequence[Prediction]],
    times: Times,
) -> None:
    """Has layers use dense copies that are slower than dense for some of their
    predictions, and not for all.

    allowed:  layers that may have copies, with their predictions.
    """
    slower = {
        layer
        for layer, predictions in allowed.items()
        if any(one.sparse_us > one.copy_us for one in predictions)
    }
    plan_dense_(model, allowed, slower, times)


def with_copy(row: Row, layer: Optional[nn.Module]) -> Row:
    """The row of a layer, with its dense copy."""
    if not isinstance(layer, NMLinear) or layer.dense_from is None:
        return row
    return replace(row, dense_from=layer.dense_from, copy_bytes=copy_bytes(layer))

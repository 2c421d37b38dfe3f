# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`use_dense_`: layers that multiply many tokens by dense copies of their weights.

For patterns whose kernels are faster than dense ones for few tokens alone, such as 8:16
in f16, and for memory: a copy is as large as the dense weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Sequence, Tuple, Union

from torch import nn

from ...compiler import CompileError
from ...encoding import EncodingError
from ...predict import compile_advice
from ..layers.linear import NMLinear
from ..weight.spec import NARROW
from ..weight.weight import PackedWeight
from .dense_plan import Predictor, Times, copy_bytes, find_number, find_operators
from .kernel_storage import Filter
from .report import table

_MIB = 1 << 20


@dataclass(frozen=True)
class DenseLayer:
    """One packed layer.

    name:          in the model.
    dense_from:    from how many tokens on it multiplies by a dense copy; None: never.
    reason:        why.
    weight_bytes:  of its packed weight.
    copy_bytes:    of the dense copy, which the first call with so many tokens makes; 0
                   where there is none.
    """

    name: str
    dense_from: Optional[int]
    reason: str
    weight_bytes: int
    copy_bytes: int


@dataclass(frozen=True)
class DenseReport:
    """All packed layers of a model, in its order."""

    rows: Tuple[DenseLayer, ...]

    @property
    def dense_from(self) -> Dict[str, Optional[int]]:
        """That of each layer, by its name."""
        return {row.name: row.dense_from for row in self.rows}

    @property
    def copy_bytes(self) -> int:
        """Of all dense copies."""
        return sum(row.copy_bytes for row in self.rows)

    def __str__(self) -> str:
        lines = [["layer", "dense from", "KiB", "why"]]
        for row in self.rows:
            size = f"{row.weight_bytes / 1024:.0f}"
            size += f" + {row.copy_bytes / 1024:.0f}" if row.copy_bytes else ""
            tokens = "" if row.dense_from is None else f"{row.dense_from} tokens"
            lines.append([row.name, tokens, size, row.reason])
        copied = [row for row in self.rows if row.dense_from is not None]
        weights = sum(row.weight_bytes for row in self.rows)
        summary = (
            f"{len(copied)} of {len(self.rows)} layers use dense copies, which take "
            f"{self.copy_bytes / _MIB:.1f} MiB beside {weights / _MIB:.1f} MiB of "
            "packed weights"
        )
        return "\n".join([*table(lines), "", summary])


def use_dense_(
    model: nn.Module,
    tokens: Union[str, int, None] = "auto",
    filter_fn: Optional[Filter] = None,
    *,
    predictor: Optional[Predictor] = None,
    chip: Optional[str] = None,
) -> DenseReport:
    """Sets `NMLinear.dense_from` of the packed layers of a model, in place: from how
    many tokens on they multiply by dense copies of their weights on a GPU.

    tokens:     "auto": for each layer the least number from which on dense is predicted
                to be no slower for any of `COUNTS`, 1 to 4096 tokens; none, where
                sparse is faster for the most. A number from 1 on: that. None: no layer
                uses a copy, and those that there are give back their memory.
    filter_fn:  called with each packed layer and its name: False leaves it as it is.
    predictor:  of times, as for `sparsify_`.
    chip:       for which times are predicted, such as "sm_90a"; that of the weights'
                GPU by default, and that of the predictor where they are on the CPU.

    Layers that are one operator use copies together: call it behind `fuse_`. They get
    one number, by the sums of their times; where one of them stays as it is, and has no
    number, all of them do. Types of 8 bits, float64, and weights that are no parameter
    stay.

    Returns a report of all packed layers. Raises EncodingError when `tokens` is none of
    these, and LibraryNotFoundError where "auto" has no compiler to ask; the model is as
    it was then.
    """
    if not (
        tokens is None or tokens == "auto" or (type(tokens) is int and tokens >= 1)
    ):
        raise EncodingError(
            f"tokens is {tokens!r}: legal is 'auto', a number from 1 on, or None for "
            "no dense copies"
        )
    names = {
        module: name
        for name, module in model.named_modules()
        if isinstance(module, NMLinear)
    }
    stay = {
        layer: "filter_fn leaves it"
        for layer, name in names.items()
        if filter_fn is not None and not filter_fn(layer, name)
    }
    plan: Dict[NMLinear, Tuple[Optional[int], str]] = {}
    if tokens is None:
        plan = {layer: (None, "as asked") for layer in names}
    else:
        times = Times(predictor or compile_advice, chip)
        for layer in names:
            reason = stay.get(layer) or _obstacle(layer)
            if reason:
                stay[layer] = reason
        for group in find_operators(model):
            plan.update(_plan(group, tokens, stay, names, times))
    for layer, reason in stay.items():
        plan[layer] = layer.dense_from, reason
    for layer, (dense_from, _) in plan.items():
        if layer not in stay:
            layer.dense_from = dense_from
            layer.is_dense_from_timed = tokens == "auto"
    rows = [_row(layer, name, plan[layer][1]) for layer, name in names.items()]
    return DenseReport(tuple(rows))


def _obstacle(layer: NMLinear) -> Optional[str]:
    """Why a layer has no use for a copy."""
    if type(layer._parameters.get("weight")) is not PackedWeight:
        return "its weight is sharded, or computed by a hook; undo that first"
    dtype = layer.weight.dtype
    if dtype in NARROW or dtype.itemsize > 4:
        return f"layers of {dtype} have no kernels to choose from"
    return None


def _plan(
    group: Sequence[NMLinear],
    tokens: Union[str, int],
    stay: Dict[NMLinear, str],
    names: Dict[NMLinear, str],
    times: Times,
) -> Dict[NMLinear, Tuple[Optional[int], str]]:
    """Of the layers of one operator: from how many tokens on, and why. Where they stay
    as they are, `stay` says why, and nothing is returned."""
    blocked = [layer for layer in group if layer in stay and layer.dense_from is None]
    if blocked:
        reason = f"it is one operator with {names[blocked[0]]}, which stays"
        stay.update({layer: reason for layer in group if layer not in stay})
        return {}
    if tokens != "auto":
        return {layer: (int(tokens), "as asked") for layer in group}
    try:
        return dict.fromkeys(group, find_number(group, times))
    except (CompileError, EncodingError) as error:
        reason = f"no times are predicted for it: {error}"
        stay.update({layer: reason for layer in group if layer not in stay})
        return {}


def _row(layer: NMLinear, name: str, reason: str) -> DenseLayer:
    weight = sum(part.nbytes for part in layer.components())
    return DenseLayer(name, layer.dense_from, reason, weight, copy_bytes(layer))

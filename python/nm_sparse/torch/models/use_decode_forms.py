# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`use_decode_forms_`: layers that hold a second form of their weight for few tokens.

For patterns and types whose weights are stored otherwise for few tokens than for many,
such as element-wise ones in f32, and for memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, Optional, Tuple, Union

from torch import nn

from ...bindings.library import LibraryNotFoundError
from ...compiler import CompileError
from ...encoding import EncodingError
from ...predict import compile_forms
from ..layers.linear import NMLinear
from .decode_plan import (
    Choice,
    FormPredictor,
    Forms,
    form_bytes,
    form_obstacle,
    layers_alone,
)
from .kernel_storage import Filter
from .report import FewTokens, table

_MIB = 1 << 20


@dataclass(frozen=True)
class DecodeLayer:
    """One packed layer.

    name:          in the model.
    decode_to:     up to how many tokens it multiplies by a second form; None: never.
    reason:        why.
    weight_bytes:  of its packed weight.
    form_bytes:    of the second form, which the first call with so few tokens makes; 0
                   where there is none, or no predictor to ask.
    few_tokens:    predicted times of few tokens in both forms; empty where both are
                   one, or there is no predictor to ask.
    """

    name: str
    decode_to: Optional[int]
    reason: str
    weight_bytes: int
    form_bytes: int = 0
    few_tokens: Tuple[FewTokens, ...] = ()


@dataclass(frozen=True)
class DecodeReport:
    """All packed layers of a model, in its order."""

    rows: Tuple[DecodeLayer, ...]

    @property
    def decode_to(self) -> Dict[str, Optional[int]]:
        """That of each layer, by its name."""
        return {row.name: row.decode_to for row in self.rows}

    @property
    def form_bytes(self) -> int:
        """Of all second forms."""
        return sum(row.form_bytes for row in self.rows)

    def __str__(self) -> str:
        lines = [["layer", "decodes to", "KiB", "us, 1 token", "why"]]
        for row in self.rows:
            size = f"{row.weight_bytes / 1024:.0f}"
            size += f" + {row.form_bytes / 1024:.0f}" if row.form_bytes else ""
            tokens = "" if row.decode_to is None else f"{row.decode_to} tokens"
            times = str(row.few_tokens[0]) if row.few_tokens else ""
            lines.append([row.name, tokens, size, times, row.reason])
        held = [row for row in self.rows if row.decode_to is not None]
        weights = sum(row.weight_bytes for row in self.rows)
        summary = (
            f"{len(held)} of {len(self.rows)} layers hold a second form for few "
            f"tokens; these take {self.form_bytes / _MIB:.1f} MiB beside "
            f"{weights / _MIB:.1f} MiB of packed weights"
        )
        return "\n".join([*table(lines), "", summary])


def use_decode_forms_(
    model: nn.Module,
    tokens: Union[str, int, None] = "auto",
    filter_fn: Optional[Filter] = None,
    *,
    predictor: Optional[FormPredictor] = None,
    chip: Optional[str] = None,
) -> DecodeReport:
    """Sets `NMLinear.decode_to` of the packed layers of a model, in place: up to how
    many tokens they multiply by a second form of their weight on a GPU.

    tokens:     "auto": for each layer the largest number, at most 64, up to which the
                form for one token is predicted to be no slower than that for all; none,
                where one token is not predicted to be 1.2 times as fast by it. A number
                from 1 on: that. None: no layer has a second form, and those that there
                are give back their memory.
    filter_fn:  called with each packed layer and its name: False leaves it as it is.
    predictor:  of times of forms; `nm_sparse.predict.compile_forms` by default.
    chip:       for which times are predicted, such as "sm_90a"; that of the weights'
                GPU by default, and that of the predictor where they are on the CPU.

    Layers whose operator multiplies by others, too, stay as they are, as that has one
    form: call it behind `fuse_`. So do layers of 8 bits and of float64, those whose
    input is rounded, and weights that are no parameter.

    Returns a report of all packed layers. Raises EncodingError when `tokens` is none of
    these, and LibraryNotFoundError where "auto" has no compiler to ask; the model is as
    it was then.
    """
    if not (
        tokens is None or tokens == "auto" or (type(tokens) is int and tokens >= 1)
    ):
        raise EncodingError(
            f"tokens is {tokens!r}: legal is 'auto', a number from 1 on, or None for "
            "no second forms"
        )
    names = {
        module: name
        for name, module in model.named_modules()
        if isinstance(module, NMLinear)
    }
    alone = set(layers_alone(model))
    forms = Forms(predictor or compile_forms, chip)
    plan: Dict[NMLinear, Choice] = {}
    stay: Dict[NMLinear, str] = {}
    for layer, name in names.items():
        found = _plan(layer, tokens, layer in alone, forms)
        if filter_fn is not None and not filter_fn(layer, name):
            stay[layer] = "filter_fn leaves it"
        elif isinstance(found, str):
            stay[layer] = found
        else:
            plan[layer] = found
    for layer, choice in plan.items():
        layer.decode_to = choice.decode_to
    rows = []
    for layer, name in names.items():
        size = sum(part.nbytes for part in layer.components())
        row = DecodeLayer(name, layer.decode_to, stay.get(layer, ""), size)
        if layer in plan:
            choice = plan[layer]
            extra = form_bytes(layer, choice), choice.few
            row = DecodeLayer(name, layer.decode_to, choice.reason, size, *extra)
        rows.append(row)
    return DecodeReport(tuple(rows))


def _plan(
    layer: NMLinear, tokens: Union[str, int, None], is_alone: bool, forms: Forms
) -> Union[Choice, str]:
    """What a layer gets, or why it stays as it is."""
    if tokens is None:
        return Choice(None, "as asked")
    reason = form_obstacle(layer)
    if reason is None and not is_alone:
        reason = "its operator multiplies by more than this layer, and has one form"
    if reason is not None:
        return reason
    try:
        found = forms.of(layer)
    except (CompileError, EncodingError, LibraryNotFoundError) as error:
        if tokens != "auto":
            return Choice(int(tokens), "as asked")
        if isinstance(error, LibraryNotFoundError):
            raise
        return f"no times are predicted for it: {error}"
    if tokens == "auto":
        return found
    return replace(found, decode_to=int(tokens), reason="as asked")

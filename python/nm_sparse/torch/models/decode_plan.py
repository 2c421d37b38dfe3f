# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Up to how many tokens packed layers are to hold a second form of their weight
(`NMLinear.decode_to`), by predicted times of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Collection, Dict, List, Optional, Sequence, Tuple

from torch import nn

from ...bindings.library import LibraryNotFoundError
from ...compiler import CompileError
from ...encoding import EncodingError
from ...predict import FormTimes, compile_advice, compile_forms
from ..layers.halved_mlp import HalvedMLP
from ..layers.kernels import chip_of
from ..layers.linear import NMLinear
from ..layers.scaled_linear import SAME
from ..weight.spec import NARROW, LinearSpec
from ..weight.weight import PackedWeight
from .dense_plan import find_operators
from .kernel_storage import decodes_or_dense
from .report import FewTokens, Row

# (shape [N, K], type as in MLIR, encoding, tokens, chip) -> the form of a layer's
# weight for all numbers of tokens, and that for one token if it is another.
FormPredictor = Callable[..., Sequence[FormTimes]]

# Numbers of tokens that count as few, for which times are predicted.
COUNTS = (1, 2, 4, 8, 16, 32, 64)

# How many times as fast one token must be by a form of its own: the model tells forms
# of a weight no better apart, and the form takes memory.
LEAST_GAIN = 1.2

ONE_FORM = "one token wants the form that all numbers of tokens have"


@dataclass(frozen=True)
class Choice:
    """What is predicted of a second form.

    decode_to:  up to how many tokens it is worth it; None: it is not.
    reason:     why.
    few:        times of both forms for few tokens; none where both are one.
    form:       the form for one token, if it is another.
    common:     the form for all numbers of tokens.
    """

    decode_to: Optional[int]
    reason: str
    few: Tuple[FewTokens, ...] = ()
    form: Optional[FormTimes] = None
    common: Optional[FormTimes] = None


class Forms:
    """Choices of layers, of each kind once.

    chip:  that of a layer's GPU by default.
    """

    def __init__(self, predictor: FormPredictor, chip: Optional[str]) -> None:
        self.predictor, self.chip = predictor, chip
        self._known: Dict[Any, Choice] = {}

    def of(self, layer: NMLinear) -> Choice:
        """Raises CompileError, EncodingError or LibraryNotFoundError where no times are
        predicted."""
        spec = LinearSpec.parse(layer.kernel_spec)
        chip, device = self.chip, layer.values.device
        if chip is None and device.type == "cuda":
            chip = chip_of(device)
        key = (spec.shape, spec.dtype, spec.encoding, chip)
        if key not in self._known:
            asked = spec.shape, spec.dtype, spec.encoding, COUNTS, chip
            self._known[key] = choose_decoding(self.predictor(*asked))
        return self._known[key]


def choose_decoding(forms: Sequence[FormTimes]) -> Choice:
    """The largest of `COUNTS` up to which the second form is no slower for any, if one
    token gains enough.

    forms:  of a predictor.
    """
    common, form = forms[0], forms[-1]
    if len(forms) == 1:
        return Choice(None, ONE_FORM, common=common)
    few = tuple(FewTokens(n, common.times[n], form.times[n]) for n in COUNTS)
    gain = few[0].gain
    said = f"one token is predicted to be {gain:.2f} times as fast by its own form"
    if gain < LEAST_GAIN:
        reason = f"{said}, less than {LEAST_GAIN}"
        return Choice(None, reason, few, form, common)
    last = 0
    while last < len(few) and few[last].gain >= 1:
        last += 1
    return Choice(few[last - 1].tokens, said, few, form, common)


def form_predictor(predictor: Any) -> Optional[FormPredictor]:
    """What predicts times of forms beside a predictor of times: its attribute `forms`,
    if it has one."""
    if predictor is compile_advice:
        return compile_forms
    return getattr(predictor, "forms", None)


def form_obstacle(layer: NMLinear) -> Optional[str]:
    """Why a layer has no use for a second form, whatever its kernels read."""
    if type(layer._parameters.get("weight")) is not PackedWeight:
        return "its weight is sharded, or computed by a hook; undo that first"
    dtype = layer.weight.dtype
    if dtype in NARROW or dtype.itemsize > 4:
        return f"layers of {dtype} have no kernels to choose from"
    if layer.activations != SAME:
        return "its input is rounded to elements of 8 bits, whose kernels read one form"
    return None


def layers_alone(model: nn.Module) -> List[NMLinear]:
    """The packed layers of a model that are operators by themselves: neither with
    others, nor as gate and up of an MLP."""
    halved = {
        module.gate_up_proj
        for module in model.modules()
        if isinstance(module, HalvedMLP) and module.obstacle() is None
    }
    alone = [group[0] for group in find_operators(model) if len(group) == 1]
    return [layer for layer in alone if layer not in halved]


def form_bytes(layer: NMLinear, choice: Choice) -> int:
    """What a layer with `decode_to` takes on a GPU beside the form that it holds and
    its dense copy, from the calls on that need it; 0 where it has one form."""
    form, common = choice.form, choice.common
    if layer.decode_to is None or form is None or common is None:
        return 0
    if (form.storage, form.encoding) != (layer.storage, layer.encoding):
        return form.bytes
    # The layer holds that form itself, and other kernels read the common one.
    return 0 if decodes_or_dense(layer) else common.bytes


def plan_forms_(
    model: nn.Module,
    allowed: Collection[nn.Module],
    forms: Forms,
    asked: Collection[nn.Module],
) -> Dict[NMLinear, Choice]:
    """Sets `decode_to` of layers that gain from a second form, in place.

    allowed:  layers that may have one.
    asked:    these, and others of which it is only to be known.

    Returns what is predicted of each layer that could have one.
    """
    found: Dict[NMLinear, Choice] = {}
    for layer in layers_alone(model):
        if layer in asked and form_obstacle(layer) is None:
            try:
                found[layer] = forms.of(layer)
            except (CompileError, EncodingError, LibraryNotFoundError):
                continue  # the layer is as it was
            if layer in allowed:
                layer.decode_to = found[layer].decode_to
    return found


def with_form(
    row: Row, layer: Optional[nn.Module], found: Dict[NMLinear, Choice]
) -> Row:
    """The row of a layer, with its second form, or what is given up without one."""
    if not isinstance(layer, NMLinear) or layer not in found:
        return row
    choice = found[layer]
    size = form_bytes(layer, choice)
    own = dict(decode_to=layer.decode_to, form_bytes=size, few_tokens=choice.few)
    return replace(row, **own)

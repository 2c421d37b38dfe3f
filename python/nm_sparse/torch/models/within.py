# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`sparsify_` with a budget: what was chosen of each layer, as its report."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from torch import nn

from ...encoding import EncodingError
from ...predict import compile_advice
from ..layers.linear import NMLinear
from ..prune import Calibration
from ..prune.calibration import Source
from .budget import PATTERNS, sparsify_within_
from .config import NMSparseConfig
from .convert import plan_copies_, with_copy
from .dense_plan import Times
from .layer_advice import Advice, LayerAdvice
from .report import Prediction, Report, Row


def sparsify_by_budget(
    model: nn.Module,
    candidates: Any,
    budget: float,
    calibration: Union[Calibration, Source, None],
    **more: Any,
) -> Report:
    """As `sparsify_` with a budget; `more` is for `sparsify_within_`.

    Raises EncodingError, and TypeError for candidates that are no patterns.
    """
    if candidates is None:
        candidates = PATTERNS
    if isinstance(candidates, str):
        candidates = (candidates,)
    if isinstance(candidates, (Mapping, NMSparseConfig)):
        raise TypeError(
            f"config is a {type(candidates).__name__}: legal with a budget are "
            "patterns to choose from, such as ['2:4', '8:16'], or None"
        )
    if calibration is None:
        raise EncodingError(
            "calibration is None: legal with a budget are batches or a function that "
            "runs the model, as errors depend on the inputs of layers"
        )
    before = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
    }
    sizes = {name: _bytes(module) for name, module in before.items()}
    advice, _ = sparsify_within_(model, budget, calibration, candidates, **more)
    rows = _rows(model, before, sizes, advice)
    allowed = {
        model.get_submodule(row.name): row.predictions
        for row in rows
        if row.is_converted
    }
    asked = more.get("predictor") or compile_advice, more.get("chip")
    plan_copies_(model, allowed, Times(*asked, more.get("dtype")))
    return Report(tuple(with_copy(row, model.get_submodule(row.name)) for row in rows))


def _bytes(module: nn.Linear) -> int:
    return module.weight.numel() * module.weight.element_size()


def _rows(
    model: nn.Module,
    before: Mapping[str, nn.Linear],
    sizes: Mapping[str, int],
    advice: Advice,
) -> List[Row]:
    known: Dict[str, LayerAdvice] = {layer.name: layer for layer in advice.layers}
    rows = []
    for name, module in before.items():
        layer = known.get(name)
        now = model.get_submodule(name)
        packed = now.weight.nbytes if isinstance(now, NMLinear) else None
        rows.append(
            Row(
                name=name,
                shape=(module.out_features, module.in_features),
                encoding=_text(now) if isinstance(now, NMLinear) else None,
                is_converted=packed is not None,
                reason="" if packed is not None else _reason(layer, advice),
                kept_magnitude=None,
                dense_bytes=sizes[name],
                packed_bytes=packed,
                predictions=_predictions(layer, advice.tokens),
            )
        )
    return rows


def _text(layer: NMLinear) -> str:
    return str(layer.encoding).replace(", dim = 1", "")


def _reason(layer: Optional[LayerAdvice], advice: Advice) -> str:
    """Why a layer is dense."""
    if layer is None:
        return "filter_fn leaves it dense, or it shares its weight"
    errors = [one.error for one in layer.options if one.error is not None]
    if errors and min(errors) > (advice.budget or 0):
        return f"the least error of a pattern is {min(errors):.3f}"
    return "no pattern within the budget is predicted to be faster"


def _predictions(
    layer: Optional[LayerAdvice], tokens: Sequence[int]
) -> Sequence[Prediction]:
    if layer is None or layer.chosen is None:
        return ()
    times = layer.chosen.times
    return tuple(Prediction(n, layer.dense[n], times[n]) for n in tokens if n in times)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pattern each layer of a model should have: time, and error of the outputs.

`advise` compares patterns for all layers, `choose` takes the fastest one of each layer
whose error is within a budget, and `sparsify_within_` prunes and packs the model so.
"""

from __future__ import annotations

from glob import escape
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import torch
from torch import Tensor, nn

from ...compiler import CompileError
from ...encoding import Encoding, EncodingError
from ...predict import compile_advice
from ..layers.conv2d import patches_note
from ..layers.convertible import matrix_of, matrix_shape
from ..layers.scaled_linear import SAME
from ..prune.calibration import Calibration, Group, Source
from ..prune.choices import Filter, unfit
from ..prune.layer import PruneConfig, as_config
from ..prune.least_squares import fit
from ..prune.masks import pattern_mask
from ..prune.pack import pack_
from ..prune.permute import output_order
from ..prune.plan import Plan, find_groups, plan_layers
from ..prune.report import PruneReport
from ..prune.rounding import round_fitted, round_weight
from ..prune.runs import Runs
from ..prune.scores import element_scores
from ..prune.sequential import prune_
from ..prune.statistics import Statistics
from ..weight.spec import dtype_name, elements_of
from .layer_advice import Advice, LayerAdvice, Option

# (shape [N, K], type as in MLIR, encoding, tokens, chip) -> (tokens, dense time, sparse
# time) in microseconds for each number of tokens, as `predict.compile_advice`. Raises
# CompileError or EncodingError for what cannot be compiled.
Predictor = Callable[..., Iterable[Tuple[int, float, float]]]
Pattern = Union[PruneConfig, Encoding, str]
PATTERNS = (
    "4:32, block = [1, 128]",
    "8:32, block = [1, 128]",
    "16:32, block = [1, 128]",
    "24:32, block = [1, 128]",
    "[4:8, block = [1, 64]], [2:4]",
    "[4:5, block = [1, 64]], [2:4]",
    "2:4",
    "8:16",
    "4:16",
)


def advise(
    model: nn.Module,
    tokens: Union[int, Sequence[int]] = (1, 16, 256, 2048),
    patterns: Sequence[Pattern] = PATTERNS,
    calibration: Union[Calibration, Source, None] = None,
    *,
    predictor: Optional[Predictor] = None,
    chip: Optional[str] = None,
    dtype: Optional[str] = None,
    filter_fn: Optional[Filter] = None,
    fit_rows: int = 32,
    progress: bool = True,
) -> Advice:
    """Compares patterns for the linear layers of a model, which is not changed.

    tokens:       numbers of tokens that times are predicted for.
    patterns:     PruneConfigs, Encodings or their texts.
    calibration:  batches, or a function that runs the model (see `Calibration`): for
                  the errors of the outputs. Without it, there are times alone.
    predictor:    by default that of the compiler's library,
                  `nm_sparse.predict.compile_advice`.
    chip:         for which times are predicted, such as "sm_90a".
    dtype:        element type in which the model is to run, as in MLIR; by default that
                  of its weights.
    filter_fn:    filter_fn(module, name): which layers are looked at; by default all
                  that `prune_` prunes.
    fit_rows:     outputs of each layer whose errors are computed, drawn at random but
                  alike for all patterns.
    progress:     whether stderr shows how far things are.

    The error is that of the layer alone, for the inputs that it has in the dense model,
    after a least-squares fit. Raises EncodingError when something does not fit.
    """
    counts = (tokens,) if isinstance(tokens, int) else tuple(tokens)
    if not counts or not all(isinstance(n, int) and n > 0 for n in counts):
        raise EncodingError(f"tokens are {tokens}: legal are positive numbers")
    if fit_rows < 1:
        raise EncodingError(f"fit_rows is {fit_rows}: legal is at least 1")
    configs = [as_config(pattern) for pattern in patterns]
    if not configs:
        raise EncodingError("patterns are none: legal is at least one")
    plan = plan_layers(model, configs[0], filter_fn, must_fit=False)
    _drop_useless(model, plan, configs)
    groups: List[Group] = []
    if calibration is not None:
        if not isinstance(calibration, Calibration):
            calibration = Calibration(calibration, progress=progress)
        groups = find_groups(model, plan, calibration)
    predict = _Predict(predictor or compile_advice, counts, chip)
    advice = Advice(counts, left_dense=plan.left_dense)
    for name in plan.layers:
        advice.layers.append(_times(name, model, configs, predict, dtype))
    if calibration is not None:
        runs = Runs(model, calibration, list(plan.layers))
        with calibration.bar(len(plan.layers), "comparing patterns") as bar:
            for group in groups:
                seen = runs.collect(group)
                for name in group.names:
                    bar.set_postfix_str(name)
                    _add_errors(model, advice[name], configs, seen, fit_rows)
                    bar.update()
    return advice


def choose(
    model: nn.Module,
    candidates: Sequence[Pattern],
    budget: float,
    predictor: Optional[Predictor] = None,
    calibration: Union[Calibration, Source, None] = None,
    *,
    tokens: Union[int, Sequence[int]] = 2048,
    **more: Any,
) -> Advice:
    """Chooses for each layer the fastest of the candidates that is faster than dense
    and whose error of the outputs is within the budget, and dense where none is.

    budget:  the error, relative to the norm of the outputs, 0 to 1.
    tokens:  of several numbers, the sum of the times counts.
    more:    as for `advise`.

    Raises EncodingError when something does not fit.
    """
    if not 0 <= budget <= 1:
        raise EncodingError(f"budget is {budget}: legal is an error from 0 to 1")
    if calibration is None:
        raise EncodingError(
            "calibration is None: legal are batches or a function that runs the model, "
            "as errors depend on the inputs of layers"
        )
    advice = advise(model, tokens, candidates, calibration, predictor=predictor, **more)
    advice.budget = budget
    for layer in advice.layers:
        layer.choose(budget, advice.tokens)
    return advice


def sparsify_within_(
    model: nn.Module,
    budget: float,
    calibration: Union[Calibration, Source],
    candidates: Sequence[Pattern] = PATTERNS,
    *,
    pack: bool = True,
    progress: bool = True,
    **more: Any,
) -> Tuple[Advice, PruneReport]:
    """Chooses a pattern for each layer as `choose` does, prunes and fits the model in
    place with these, and packs it.

    pack:  False leaves layers of `nn.Linear` with zeros, to be trained first; `pack_`
           of `nm_sparse.torch.prune` packs them.
    more:  as for `choose`.

    Returns what was chosen, and what pruning did. The model is as it was where no layer
    has a pattern that is within the budget.
    """
    # Batches that can be gone through once are needed twice.
    if not isinstance(calibration, Calibration):
        calibration = Calibration(calibration, progress=progress)
    advice = choose(
        model, candidates, budget, calibration=calibration, progress=progress, **more
    )
    chosen = {
        escape(layer.name): layer.chosen.config
        for layer in advice.layers
        if layer.chosen is not None
    }
    if not chosen:
        return advice, PruneReport()
    report = prune_(
        model, chosen, calibration, filter_fn=more.get("filter_fn"), progress=progress
    )
    if pack:
        pack_(model, report)
    return advice, report


class _Predict:
    """Times, each asked for once."""

    def __init__(
        self, predictor: Predictor, tokens: Sequence[int], chip: Optional[str]
    ) -> None:
        self.predictor, self.tokens, self.chip = predictor, tuple(tokens), chip
        self.known: Dict[Any, Any] = {}

    def __call__(
        self, shape: Tuple[int, int], dtype: str, encoding: Encoding
    ) -> Tuple[Dict[int, float], Dict[int, float], str]:
        """(dense, sparse) times by tokens, and why there are none."""
        key = (shape, dtype, str(encoding))
        if key not in self.known:
            try:
                rows = list(
                    self.predictor(shape, dtype, encoding, self.tokens, self.chip)
                )
                dense = {count: time for count, time, _ in rows}
                sparse = {count: time for count, _, time in rows}
                self.known[key] = dense, sparse, ""
            except (CompileError, EncodingError) as error:
                self.known[key] = {}, {}, str(error)
        return self.known[key]


def _drop_useless(model: nn.Module, plan: Plan, configs: Sequence[PruneConfig]) -> None:
    """Leaves layers dense for which no pattern is of any use."""
    for name in list(plan.layers):
        layer: Any = model.get_submodule(name)
        reasons = [unfit(layer, config) for config in configs]
        if all(reasons):
            del plan.layers[name]
            plan.left_dense[name] = reasons[0]
    plan.check()


def _times(
    name: str,
    model: nn.Module,
    configs: Sequence[PruneConfig],
    predict: _Predict,
    dtype: Optional[str],
) -> LayerAdvice:
    linear: Any = model.get_submodule(name)
    weight, shape = linear.weight, matrix_shape(linear)
    layer = LayerAdvice(name, shape)
    for config in configs:
        kind = dtype or dtype_name(weight.dtype)
        dense, sparse, reason = predict(shape, kind, config.pattern)
        if config.activations != SAME:  # beside the dense layer as it is
            elements = str(elements_of(config.weights))
            _, sparse, reason = predict(shape, elements, config.pattern)
        layer.dense = layer.dense or dense
        useless = unfit(linear, config) or patches_note(linear, config.pattern)
        sparse, reason = ({}, useless) if useless else (sparse, reason)
        layer.options.append(
            Option(config.pattern, sparse, reason=reason, config=config)
        )
    return layer


def _add_errors(
    model: nn.Module,
    layer: LayerAdvice,
    configs: Sequence[PruneConfig],
    seen: Statistics,
    fit_rows: int,
) -> None:
    weight = matrix_of(model.get_submodule(layer.name))
    layer.seen = seen.tokens
    for option, config in zip(layer.options, configs):
        option.error = output_error(weight, config, seen, fit_rows)


def output_error(
    weight: Tensor, config: Pattern, statistics: Statistics, fit_rows: int = 32
) -> float:
    """How far the outputs of a layer are from the dense ones after pruning and fit,
    relative to their norm.

    weight:    [N, K].
    fit_rows:  outputs that are looked at, drawn by a seed.
    """
    config = as_config(config)
    e, perm = config.pattern, None
    scores = element_scores(weight, config.score, statistics)
    if e.is_shuffled:
        perm = output_order(scores, e, config.density, config.seed)
    mask = pattern_mask(scores, e, config.density, perm)
    draw = torch.Generator().manual_seed(0)
    rows = torch.randperm(len(weight), generator=draw)[:fit_rows].to(weight.device)
    old, kept = weight[rows], mask[rows]
    own = old, kept, statistics.gram
    if config.fit:
        new = fit(*own, damping=config.damping).weight
        if config.weights is not None:
            how = dict(elements=config.weights, scales=config.scales)
            new = round_fitted(new, *own, damping=config.damping, **how).weight
    else:
        new = old * kept
        if config.weights is not None:
            new = round_weight(new, config.weights, config.scales).weight
    energy = float(statistics.output_energy(old))
    ratio = float(statistics.output_error(old, new)) / energy if energy > 0 else 0.0
    return ratio**0.5

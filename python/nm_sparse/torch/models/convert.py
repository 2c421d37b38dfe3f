# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`sparsify_`: makes the linear layers of a model sparse, in place.

Layers are chosen, predicted, pruned and packed, all of them before the first one is
replaced, so that an error leaves the model as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

import torch
from torch import nn

from ...bindings.library import LibraryNotFoundError, library
from ...compiler import CompileError
from ...encoding import EncodingError
from ...predict import compile_advice
from ..layers.conv2d import PackedLayer, pack_layer, patches_note
from ..layers.convertible import is_convertible, matrix_of, matrix_shape
from ..layers.kernels import chip_of
from ..layers.linear import NMLinear
from ..layers.scaled_linear import SAME
from ..pretrained.marking import mark_pretrained
from ..prune.choices import Choice, Filter, choose_layers
from ..prune.linears import replace_modules
from ..weight.masks import Score, prune_weight
from ..weight.scales import relative_error
from ..weight.spec import dtype_name, elements_of
from ..weight.weight import PackedWeight
from .config import Configs, ModelScore, as_patterns
from .decode_plan import Forms, form_predictor, plan_forms_, with_form
from .dense_plan import Predictor, Times, plan_copies_, with_copy
from .report import Prediction, Report, Row, beside_wide, make_report
from .within import sparsify_by_budget

NO_PREDICTION = (
    "no times are predicted, and layers are sparse whether that is faster or not: "
)


@dataclass
class _Layer(Choice):
    """A layer on its way: what is predicted of it, and what replaces it.

    packed:    its pruned weight.
    kept:      the share of the sum of |w| that is left.
    rounding:  how far elements of 8 bits are from what is kept, relative to its norm.
    """

    predictions: Tuple[Prediction, ...] = ()
    packed: Optional[PackedLayer] = None
    kept: Optional[float] = None
    rounding: Optional[float] = None


def sparsify_(
    model: nn.Module,
    config: Union[Configs, Sequence[Any], None] = None,
    filter_fn: Optional[Filter] = None,
    *,
    predictor: Optional[Predictor] = None,
    chip: Optional[str] = None,
    budget: Optional[float] = None,
    calibration: Any = None,
    **more: Any,
) -> Report:
    """Replaces linear layers of `model` by `NMLinear`, pruned and packed, and
    convolutions by `NMConv2d`.

    config:     an NMSparseConfig for all layers, an Encoding or its text, such as
                "2:4", or a dict from patterns of names (`fnmatch`) to these or None.
                The first pattern that matches decides; layers that none matches stay
                dense. With a budget: the patterns to choose from, such as
                ["2:4", "8:16"]; None: usual ones.
    filter_fn:  called with each linear layer and its name: False leaves it dense.
    predictor:  `nm_sparse.predict.compile_advice` by default, where the compiler's
                library is installed. A layer that is predicted to be slower than the
                dense one for all of `config.tokens` stays dense, unless
                `config.keep_slower`. One that is slower for some of them gets a dense
                copy for so many tokens, unless `config.dense_copies` is False: as with
                `use_dense_`, whose numbers layers get that are one operator already.
                With `config.decode_forms`, layers get second forms of their weights as
                with `use_decode_forms_`; without, the report says what they would gain.
    chip:       for which times are predicted, such as "sm_90a"; that of the weights'
                GPU by default, and that of the predictor where they are on the CPU.
    budget:     the error of a layer's outputs that is allowed, relative to their norm,
                0 to 1: each layer gets the fastest pattern that stays within, with a
                least-squares fit of what is kept, and stays dense where none does.
    calibration, more:  with a budget, as for `sparsify_within_`: batches or a function
                that runs the model; tokens, ...

    Layers stay dense, with a reason, that share their weight, have parametrizations or
    hooks, or a weight that others read (`weight @ x`), is quantized, sharded or on the
    meta device; whose class computes other than `nn.Linear`, `nn.Conv2d` or `Conv1D` of
    transformers; that have groups; that are smaller than one window and panel, or take
    no less memory when they are packed. Where times are predicted, so do convolutions
    whose kernels would read copies of patches of the images.

    Returns a report of all linear layers, and of other parameters of more than 1 MB.
    `to_dense_` goes back. Raises EncodingError or TypeError, and leaves the model as it
    was, when a config, the scores of a layer or `model` do not fit.
    """
    if is_convertible(model):
        raise TypeError(
            "model is a single layer, which cannot be replaced in place: use "
            "NMLinear.from_dense or NMConv2d.from_dense"
        )
    if budget is not None:
        more.update(filter_fn=filter_fn, predictor=predictor, chip=chip)
        return sparsify_by_budget(model, config, budget, calibration, **more)
    if calibration is not None or more:
        given = ", ".join([*more, *["calibration"] * (calibration is not None)])
        raise TypeError(f"{given} is given without a budget: legal is with one")
    patterns, note = as_patterns(config), ""
    if predictor is None:
        predictor, note = _default_predictor()
    choices = choose_layers(model, patterns, filter_fn)
    layers = [_Layer(**vars(choice)) for choice in choices]
    for layer in layers:
        _predict(layer, predictor, chip)
    for layer in layers:
        _pack(layer)
    rows = [_row(layer) for layer in layers]
    replace_modules(model, {one.layer: one.packed for one in layers if one.packed})
    mark_pretrained(model)
    if predictor is not None:
        _plan_copies(model, layers, Times(predictor, chip))
        rows = [with_copy(row, one.packed) for row, one in zip(rows, layers)]
        rows = _plan_forms(model, layers, rows, predictor, chip)
    return make_report(model, rows, patterns.unused, note)


def has_elements(config: Any, layer: nn.Module) -> bool:
    """Whether a layer gets elements of 8 bits: convolutions have no kernels of them."""
    return config.weights is not None and not isinstance(layer, nn.Conv2d)


def _default_predictor() -> Tuple[Optional[Predictor], str]:
    """The compiler's predictor, or None and why there is none."""
    try:
        library()
    except LibraryNotFoundError as error:
        return None, f"{NO_PREDICTION}the compiler's library is missing ({error})"
    return compile_advice, ""


def _predict(
    layer: _Layer, predictor: Optional[Predictor], chip: Optional[str]
) -> None:
    """Notes times of a layer that is to be sparse, and why it is not where these say
    so."""
    config, weight = layer.config, layer.layer.weight
    if layer.reason or predictor is None:
        return
    note = patches_note(layer.layer, config.pattern)
    if note and not config.keep_slower:
        layer.reason = note
        return
    dtype = dtype_name(config.dtype or weight.dtype)
    elements = None
    if has_elements(config, layer.layer) and config.activations != SAME:
        elements = elements_of(config.weights)
    if chip is None and weight.is_cuda:
        chip = chip_of(weight.device)
    shape, counts = matrix_shape(layer.layer), config.tokens
    try:
        if dtype != "f64":  # which has no kernels
            asked = config.pattern, counts, chip
            times = predictor(shape, elements or dtype, *asked)
            layer.predictions = tuple(
                Prediction(
                    *one,
                    is_measured=getattr(one, "is_measured", False),
                    is_estimated=getattr(one, "is_estimated", False),
                )
                for one in times
            )
            if elements is not None:
                wide = predictor(shape, dtype, *asked)
                layer.predictions = beside_wide(layer.predictions, wide)
    except CompileError as error:
        if not config.keep_slower:
            layer.reason = f"there are no kernels for it: {error}"
    slower = [one.sparse_us >= one.dense_us for one in layer.predictions]
    if slower and all(slower) and not config.keep_slower:
        text = ", ".join(str(one.tokens) for one in layer.predictions)
        how = (
            "measured"
            if all(one.is_measured for one in layer.predictions)
            else "predicted"
        )
        layer.reason = f"sparse is {how} to be no faster for {text} tokens"


def _pack(layer: _Layer) -> None:
    """Makes the packed layer of one that is to be sparse. Raises EncodingError, naming
    it, if that fails."""
    if layer.reason:
        return
    config, linear = layer.config, layer.layer
    weight = matrix_of(linear)
    try:
        score = _score(config.score, layer.name)
        pruned, perm = prune_weight(weight, config.encoding, score)
        converted = pruned.to(config.dtype or pruned.dtype)
        packed = PackedWeight.from_dense(converted, config.encoding, perm)
        if has_elements(config, linear):
            rounded = packed.quantize(config.weights, config.scales)
            layer.rounding = relative_error(packed, rounded)
            packed = rounded
    except EncodingError as error:
        raise EncodingError(f"{layer.name}: {error}") from None
    bias = None if linear.bias is None else linear.bias.detach().clone()
    if bias is not None and config.dtype is not None:
        bias = bias.to(config.dtype)
    layer.packed = pack_layer(linear, packed, bias)
    if packed.has_scale:
        layer.packed.activations = config.activations
    total, kept = (float(w.abs().sum(dtype=torch.float64)) for w in (weight, pruned))
    layer.kept = kept / total if total else 1.0


def _score(score: ModelScore, name: str) -> Score:
    """That of one layer."""
    if not isinstance(score, Mapping):
        return score
    if name not in score:
        raise EncodingError(
            "score has no importances of it: add them, or leave the layer dense"
        )
    return score[name]


def _row(layer: _Layer) -> Row:
    weight, config = layer.layer.weight, layer.config
    shape = matrix_shape(layer.layer)
    is_known = not nn.parameter.is_lazy(weight)
    return Row(
        name=layer.name,
        shape=shape,
        encoding=None if config is None else config.text,
        is_converted=layer.packed is not None,
        reason=layer.reason,
        kept_magnitude=layer.kept,
        rounding=layer.rounding,
        dense_bytes=weight.numel() * weight.element_size() if is_known else 0,
        packed_bytes=None if layer.packed is None else layer.packed.weight.nbytes,
        predictions=layer.predictions,
    )


def _plan_copies(model: nn.Module, layers: Sequence[_Layer], times: Times) -> None:
    allowed = {
        layer.packed: layer.predictions
        for layer in layers
        if isinstance(layer.packed, NMLinear) and layer.config.has_copies
    }
    plan_copies_(model, allowed, times)


def _plan_forms(
    model: nn.Module,
    layers: Sequence[_Layer],
    rows: Sequence[Row],
    predictor: Predictor,
    chip: Optional[str],
) -> List[Row]:
    """The rows, with second forms of layers that may have them."""
    forms = form_predictor(predictor)
    if forms is None:
        return list(rows)
    packed = {layer.packed: layer.config for layer in layers if layer.packed}
    allowed = {one for one, config in packed.items() if config.decode_forms}
    found = plan_forms_(model, allowed, Forms(forms, chip), packed)
    return [with_form(row, one.packed, found) for row, one in zip(rows, layers)]

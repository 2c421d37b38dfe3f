# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`sparsify_`: makes the linear layers of a model sparse, in place.

Everything is checked, pruned and packed before the first layer is replaced, so that an
error leaves the model as it was.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import (
    Any,
    Callable,
    Dict,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ...bindings.library import LibraryNotFoundError, library
from ...compiler import CompileError
from ...encoding import EncodingError, packed_shapes
from ...predict import compile_advice
from ..layers.linear import NMLinear
from ..layers.masks import Score, prune_weight
from ..layers.spec import component_types, dtype_name, linear_encoding
from ..layers.weight import PackedWeight
from .config import LAYER_DTYPES, Configs, ModelScore, NMSparseConfig, Patterns
from .dense_plan import Predictor, Times, copy_bytes, plan_dense_
from .report import Prediction, Report, Row

Filter = Callable[[nn.Module, str], bool]

NO_PREDICTION = (
    "no times are predicted, and layers are sparse whether that is faster or not: "
)


@dataclass
class _Layer:
    """A linear layer, its first name, and all places of the model where it is."""

    module: nn.Linear
    name: str
    places: List[Tuple[nn.Module, str]]


# A row of the report, and what is to replace the layer, if anything.
_Plan = Tuple[Row, Optional[NMLinear]]


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
    """Replaces linear layers of `model` by `NMLinear`, pruned and packed.

    config:     an NMSparseConfig for all layers, or a dict from patterns of names
                (`fnmatch`) to NMSparseConfig or None. The first pattern that matches
                decides; layers that none matches stay dense. With a budget: the
                patterns to choose from, such as ["2:4", "8:16"]; None: usual ones.
    filter_fn:  called with each linear layer and its name: False leaves it dense.
    predictor:  `nm_sparse.predict.compile_advice` by default, where the compiler's
                library is installed. A layer that is predicted to be slower than the
                dense one for all of `config.tokens` stays dense, unless
                `config.keep_slower`. One that is slower for some of them gets a dense
                copy for so many tokens, unless `config.dense_copies` is False: as with
                `use_dense_`, whose numbers layers get that are one operator already.
    chip:       for which times are predicted, such as "sm_90a"; that of the weights'
                GPU by default, and that of the predictor where they are on the CPU.
    budget:     the error of a layer's outputs that is allowed, relative to their norm,
                0 to 1: each layer gets the fastest pattern that stays within, with a
                least-squares fit of what is kept, and stays dense where none does.
    calibration, more:  with a budget, as for `sparsify_within_`: batches or a function
                that runs the model; tokens, ...

    Layers stay dense, with a reason, that share their weight, have parametrizations,
    hooks or a class derived from nn.Linear, are on the meta device, or are smaller than
    one window and panel.

    Returns a report of all linear layers. Raises EncodingError or TypeError, and leaves
    the model as it was, when a config, the scores of a layer or `model` do not fit.
    """
    if isinstance(model, nn.Linear):
        raise TypeError(
            "model is a linear layer, which cannot be replaced in place: use "
            "NMLinear.from_dense"
        )
    if budget is not None:
        from .within import sparsify_by_budget

        more.update(filter_fn=filter_fn, predictor=predictor, chip=chip)
        return sparsify_by_budget(model, config, budget, calibration, **more)
    if calibration is not None or more:
        given = ", ".join([*more, *["calibration"] * (calibration is not None)])
        raise TypeError(f"{given} is given without a budget: legal is with one")
    patterns = Patterns(config)
    note = ""
    if predictor is None:
        predictor, note = _default_predictor()
    owners = _owners(model)
    layers = _linear_layers(model)
    plans = [
        _plan(layer, patterns, filter_fn, owners, predictor, chip) for layer in layers
    ]
    for layer, (_, replacement) in zip(layers, plans):
        if replacement is not None:
            for parent, attribute in layer.places:
                setattr(parent, attribute, replacement)
    rows = [row for row, _ in plans]
    if predictor is not None:
        allowed = {
            replacement: row.predictions
            for row, replacement in plans
            if replacement is not None and patterns.has_copies(row.name)
        }
        plan_copies_(model, allowed, Times(predictor, chip))
        rows = [with_copy(row, replacement) for row, replacement in plans]
    return Report(tuple(rows), tuple(patterns.unused), note)


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
        if any(one.sparse_us > one.dense_us for one in predictions)
    }
    plan_dense_(model, allowed, slower, times)


def with_copy(row: Row, layer: Optional[nn.Module]) -> Row:
    """The row of a layer, with its dense copy."""
    if not isinstance(layer, NMLinear) or layer.dense_from is None:
        return row
    return replace(row, dense_from=layer.dense_from, copy_bytes=copy_bytes(layer))


def _default_predictor() -> Tuple[Optional[Predictor], str]:
    """The compiler's predictor, or None and why there is none."""
    try:
        library()
    except LibraryNotFoundError as error:
        return None, f"{NO_PREDICTION}the compiler's library is missing ({error})"
    return compile_advice, ""


def _linear_layers(model: nn.Module) -> List[_Layer]:
    """All linear layers in the order of the model, each once."""
    layers: Dict[nn.Module, _Layer] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, nn.Linear):
            before, _, attribute = name.rpartition(".")
            layer = layers.setdefault(module, _Layer(module, name, []))
            layer.places.append((model.get_submodule(before), attribute))
    return list(layers.values())


def _owners(model: nn.Module) -> Mapping[int, List[Tuple[nn.Module, str]]]:
    """Which parameters lie in each piece of memory: by its address, the modules and the
    names of the parameters in the model."""
    owners: Dict[int, List[Tuple[nn.Module, str]]] = defaultdict(list)
    for prefix, module in model.named_modules():
        for name, tensor in module._parameters.items():
            if tensor is not None:
                key = tensor.untyped_storage()._cdata
                owners[key].append((module, f"{prefix}.{name}" if prefix else name))
    return owners


def _obstacle(
    layer: _Layer, owners: Mapping[int, List[Tuple[nn.Module, str]]]
) -> Optional[str]:
    """Why the layer cannot be replaced by another, whatever its config."""
    module = layer.module
    if parametrize.is_parametrized(module):
        return "it has parametrizations; remove them first"
    if "weight_orig" in module._parameters or "weight_g" in module._parameters:
        return "its weight is computed by a hook of torch.nn.utils; remove that first"
    if type(module) is not nn.Linear:
        return f"it is a {type(module).__name__}, not a plain nn.Linear"
    if (
        type(module.weight) is not nn.Parameter
        or type(module.weight.data) is not Tensor
    ):
        return f"its weight is a {type(module.weight.data).__name__}"
    if module.weight.dtype not in LAYER_DTYPES:
        return f"its weight is of {module.weight.dtype}"
    if module.weight.is_meta:
        return "it is on the meta device; load the weights first"
    hooks = ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks")
    hooks += ("_backward_pre_hooks",)
    if any(getattr(module, kind) for kind in hooks) or hasattr(module, "_hf_hook"):
        return "it has hooks, which the sparse layer would not call"
    others = owners[module.weight.untyped_storage()._cdata]
    tied = [name for owner, name in others if owner is not module]
    if tied:
        return f"it shares its weight with {', '.join(tied)}"
    return None


def _plan(
    layer: _Layer,
    patterns: Patterns,
    filter_fn: Optional[Filter],
    owners: Mapping[int, List[Tuple[nn.Module, str]]],
    predictor: Optional[Predictor],
    chip: Optional[str],
) -> _Plan:
    """What becomes of a layer. Changes nothing."""
    module, name = layer.module, layer.name
    pattern, config = patterns.find(name)
    reason: Optional[str] = None
    if pattern is None:
        reason = "no pattern of the config matches its name"
    elif config is None:
        reason = f"the config leaves {pattern!r} dense"
    elif filter_fn is not None and not filter_fn(module, name):
        reason = "filter_fn leaves it dense"
    else:
        reason = (
            _obstacle(layer, owners)
            or _too_small(module, config)
            or _too_large(module, config)
        )
    if reason is not None or config is None:
        return _row(layer, config, reason or ""), None
    try:
        predictions = _predict(module, config, predictor, chip)
    except CompileError as error:
        if not config.keep_slower:
            reason = f"there are no kernels for it: {error}"
            return _row(layer, config, reason), None
        predictions = ()
    if predictions and not config.keep_slower:
        if all(one.sparse_us >= one.dense_us for one in predictions):
            counts = ", ".join(str(one.tokens) for one in predictions)
            reason = f"sparse is predicted to be no faster for {counts} tokens"
            return _row(layer, config, reason, predictions), None
    return _pack(layer, config, predictions)


def _too_small(module: nn.Linear, config: NMSparseConfig) -> Optional[str]:
    """Why the weight does not fill one window and one panel."""
    e = linear_encoding(config.encoding)
    window, panel = e.m * e.block[0], e.block[1]
    if module.in_features < window:
        return f"its {module.in_features} inputs are less than a window of {window}"
    if module.out_features < panel:
        return f"its {module.out_features} outputs are less than a panel of {panel}"
    return None


def _too_large(module: nn.Linear, config: NMSparseConfig) -> Optional[str]:
    """Why packing the weight gains no memory."""
    if config.keep_slower:
        return None
    dtype = config.dtype or module.weight.dtype
    encoding = linear_encoding(config.encoding)
    shape = (module.out_features, module.in_features)
    types = component_types(encoding, dtype)
    packed = sum(
        math.prod(size) * types[name].itemsize
        for name, size in packed_shapes(encoding, shape).items()
    )
    dense = math.prod(shape) * dtype.itemsize
    return f"packed it takes {packed} bytes, dense {dense}" if packed >= dense else None


def _predict(
    module: nn.Linear,
    config: NMSparseConfig,
    predictor: Optional[Predictor],
    chip: Optional[str],
) -> Tuple[Prediction, ...]:
    name = dtype_name(config.dtype or module.weight.dtype)
    if predictor is None or name == "f64":  # which has no kernels
        return ()
    if chip is None and module.weight.is_cuda:
        from ..layers.kernels import chip_of

        chip = chip_of(module.weight.device)
    shape = (module.out_features, module.in_features)
    encoding = linear_encoding(config.encoding)
    times = predictor(shape, name, encoding, config.tokens, chip)
    return tuple(Prediction(*one) for one in times)


def _pack(
    layer: _Layer, config: NMSparseConfig, predictions: Sequence[Prediction]
) -> _Plan:
    """The layer in its pattern. Raises EncodingError, naming it, if that fails."""
    module, name = layer.module, layer.name
    weight = module.weight.detach()
    try:
        score = _score(config.score, name)
        pruned, perm = prune_weight(weight, config.encoding, score)
        converted = pruned.to(config.dtype or pruned.dtype)
        packed = PackedWeight.from_dense(converted, config.encoding, perm)
    except EncodingError as error:
        raise EncodingError(f"{name}: {error}") from None
    bias = None if module.bias is None else module.bias.detach().clone()
    if bias is not None and config.dtype is not None:
        bias = bias.to(config.dtype)
    replacement = NMLinear.from_packed(packed, bias)
    for key, parameter in replacement.named_parameters():
        source = module.weight if key == "values" else module.bias
        if not source.requires_grad:
            parameter.requires_grad_(False)
    replacement.train(module.training)
    total, after = (float(w.abs().sum(dtype=torch.float64)) for w in (weight, pruned))
    kept = after / total if total else 1.0
    row = _row(layer, config, "", predictions, kept, packed.nbytes)
    return row, replacement


def _score(score: ModelScore, name: str) -> Score:
    """That of one layer."""
    if isinstance(score, Mapping):
        if name not in score:
            raise EncodingError(
                "score has no importances of it: add them, or leave the layer dense"
            )
        return score[name]
    return score


def _row(
    layer: _Layer,
    config: Optional[NMSparseConfig],
    reason: str,
    predictions: Sequence[Prediction] = (),
    kept: Optional[float] = None,
    packed_bytes: Optional[int] = None,
) -> Row:
    module: Any = layer.module
    shape = (module.out_features, module.in_features)
    weight = module.weight
    return Row(
        name=layer.name,
        shape=shape,
        encoding=None if config is None else config.text,
        is_converted=packed_bytes is not None,
        reason=reason,
        kept_magnitude=kept,
        dense_bytes=weight.numel() * weight.element_size(),
        packed_bytes=packed_bytes,
        predictions=tuple(predictions),
    )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fuse_`: finds what can be one operator in the blocks of a model.

Blocks are found by the names of their layers, as models of Hugging Face have them, and
by what they compute: a trial run says what goes from one layer to another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from ...bindings.library import LibraryNotFoundError
from ...predict import compile_advice
from ..layers.halved_mlp import HalvedMLP
from ..layers.linear import NMLinear
from ..layers.mlp import GatedMLP
from ..layers.ops import activate
from ..weight.spec import ACTIVATIONS, common_dense_from
from .dense_plan import Predictor, Times, find_operators, plan_dense_
from .stand_in import activate_inside_, share_input_
from .trial import is_layer, try_module

_GATED = ("gate_proj", "up_proj", "down_proj")
_HALVED = ("gate_up_proj", "down_proj")
# Layers that share the input of a module.
_SHARED = (
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("query_proj", "key_proj", "value_proj"),
    ("q_lin", "k_lin", "v_lin"),
    ("to_q", "to_k", "to_v"),
    ("q", "k", "v"),
)
# Layers that may have an activation behind them, and what that is called.
_FIRST = ("fc1", "c_fc", "dense_h_to_4h", "intermediate_dense", "fc_in", "lin1", "wi")
_FIRST += ("linear1", "dense", "up_proj", "pwconv1", "conv1", "conv2", "convolution")
_FUNCTIONS = ("act", "act_fn", "activation", "activation_fn", "intermediate_act_fn")
_FUNCTIONS += ("gelu_impl", "relu", "transform_act_fn")
# Largest difference, as a share of the largest result, by the type of the weights.
_TOLERANCES = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float32: 1e-4}


@dataclass(frozen=True)
class Fusion:
    """One block.

    name:        of the module.
    kind:        "gated MLP", "shared input" or "activation".
    reason:      why it stays as it is; "" where it is fused.
    dense_from:  from how many tokens on its operator, that of gate and up in an MLP,
                 multiplies by dense copies; None: never, or layers are dense yet.
    layers:      the names in the module of the layers of that operator; of an
                 activation those that it is behind.
    """

    name: str
    kind: str
    reason: str = ""
    dense_from: Optional[int] = None
    layers: Tuple[str, ...] = ()


@dataclass(frozen=True)
class FuseReport:
    """All blocks that `fuse_` has looked at, in the order of the model."""

    rows: Tuple[Fusion, ...]

    @property
    def fused(self) -> List[str]:
        """Names of the modules that are fused."""
        return [row.name for row in self.rows if not row.reason]

    def __str__(self) -> str:
        lines = []
        for row in self.rows:
            line = f"{row.name}: {row.kind}"
            if row.reason:
                line += f", as it was: {row.reason}"
            elif row.dense_from is not None:
                line += f", with dense copies from {row.dense_from} tokens on"
            lines.append(line)
        return "\n".join([*lines, f"{len(self.fused)} of {len(self.rows)} are fused"])


def fuse_(
    model: nn.Module,
    *,
    predictor: Optional[Predictor] = None,
    chip: Optional[str] = None,
) -> FuseReport:
    """Makes one operator of layers that share their input, and of layers and the
    activation behind them, in place.

    A module with `gate_proj`, `up_proj`, `down_proj` and an activation becomes a
    `GatedMLP`, and one with `gate_up_proj` and `down_proj` a `HalvedMLP`, if that
    computes the same for random tokens. Attention with `q_proj`, `k_proj`, `v_proj`, or
    `query`, `key`, `value`, ..., stays, and computes all three at once
    (`share_input_`), if a trial run gives them one input. Other modules with a layer
    such as `fc1`, `c_fc` or `dense` and an activation stay, and compute that in the
    layer's kernel (`activate_inside_`), if a trial run gives it all that the layer
    returns. So do blocks of convolutions, after `fold_batch_norm_`. Names in the
    `state_dict` do not change. Call it before or after `sparsify_`: dense layers run
    as before, until they are packed.

    predictor, chip:  as for `sparsify_`. Where it, or `use_dense_`, has found by times
                      that a layer is to multiply many tokens by a dense copy, all
                      layers of its operator get one number, by the sums of their times.

    Returns a report of all such modules, also of those that stay as they are.
    """
    rows: List[Fusion] = []
    for name, module in list(model.named_modules()):
        rows += _fuse(model, name, module)
    _plan_copies(model, Times(predictor or compile_advice, chip))
    return FuseReport(tuple(_with_copies(model, row) for row in rows))


def _fuse(model: nn.Module, name: str, module: nn.Module) -> List[Fusion]:
    """Fuses what one module has, and says so."""
    for names, count in ((_GATED, 2), (_HALVED, 1)):
        if _has(module, names):
            reason = _fuse_mlp(model, name, module, names)
            return [Fusion(name, "gated MLP", reason, layers=names[:count])]
    rows = []
    shared = [names for names in _SHARED if _has(module, names)]
    if shared:
        rows.append(Fusion(name, "shared input", _share(module, shared[0]),
                           layers=shared[0]))  # fmt: skip
    first = [one for one in _FIRST if is_layer(getattr(module, one, None))]
    function = next((one for one in _FUNCTIONS if hasattr(module, one)), "")
    if first and function and not isinstance(getattr(module, function), nn.Identity):
        reason, inside = _activate(module, first, function)
        rows.append(Fusion(name, "activation", reason, layers=inside))
    return rows


def _plan_copies(model: nn.Module, times: Times) -> None:
    """Finds when operators use dense copies, where that was found for their layers."""
    timed, apart = set(), set()
    for group in find_operators(model):
        timed.update(layer for layer in group if layer.is_dense_from_timed)
        if len({layer.dense_from for layer in group}) > 1:
            apart.update(group)
    try:
        plan_dense_(model, timed, apart, times)
    except LibraryNotFoundError:
        pass  # they keep the numbers that were found for each


def _with_copies(model: nn.Module, row: Fusion) -> Fusion:
    module = model.get_submodule(row.name)
    layers = [getattr(module, one) for one in row.layers]
    if row.reason or not all(isinstance(layer, NMLinear) for layer in layers):
        return row
    number = common_dense_from(layer.dense_from for layer in layers)
    return replace(row, dense_from=number)


def _has(module: nn.Module, names: Sequence[str]) -> bool:
    return all(isinstance(getattr(module, name, None), nn.Linear) for name in names)


def _wrapper(module: nn.Module) -> str:
    """What runs beside the forward of a module's class; "" if nothing does."""
    hooks = [getattr(module, key) for key in vars(module) if key.endswith("_hooks")]
    if any(hooks) or "forward" in module.__dict__:
        return "it has hooks or a forward of its own"
    return ""


def _fuse_mlp(
    model: nn.Module, name: str, module: nn.Module, names: Sequence[str]
) -> str:
    """Replaces the module, or says why not.

    names:  of its layers; down is the last.
    """
    kind: Any = GatedMLP if len(names) == 3 else HalvedMLP
    if isinstance(module, kind):
        return "it is one already"
    parent, _, attribute = name.rpartition(".")
    if not attribute:
        return f"it is the model itself, which cannot be replaced; use {kind.__name__}"
    if _wrapper(module):
        return _wrapper(module)
    function = next((one for one in _FUNCTIONS if hasattr(module, one)), "act_fn")
    activation = find_activation(getattr(module, function, None))
    if activation is None:
        return f"its {function} is none of {', '.join(ACTIVATIONS)}"
    layers = [getattr(module, one) for one in names]
    if any(layer.bias is not None for layer in layers[:-1]):
        return f"{' or '.join(names[:-1])} has a bias"
    if all(isinstance(layer, NMLinear) for layer in layers[:-1]):
        reason = kind(*layers, activation).obstacle()
        if reason is not None:
            return reason
    fused = kind(*layers, activation).train(module.training)
    reason = _difference(module, fused, layers[0])
    if not reason:
        setattr(model.get_submodule(parent), attribute, fused)
    return reason


def _share(module: nn.Module, names: Sequence[str]) -> str:
    if "forward" in module.__dict__:
        return "it has a forward of its own"
    if not try_module(module, names[0]).share_input(names):
        return "its layers are not given the input of the module, or not all of them"
    share_input_(module, names)
    return ""


def _activate(
    module: nn.Module, first: Sequence[str], function: str
) -> Tuple[str, Tuple[str, ...]]:
    """Why an activation is not in the kernel of a layer; "", and of which layers, where
    it is."""
    if "forward" in module.__dict__:
        return "it has a forward of its own", ()
    activation = find_activation(getattr(module, function))
    if activation is None or activation == "none":
        return f"its {function} is none of {', '.join(ACTIVATIONS[1:])}", ()
    trial = try_module(module, first[0], function)
    if trial.problem:
        return f"it cannot be tried by itself ({trial.problem})", ()
    inside = tuple(name for name in first if name in trial.activated())
    if not inside:
        return f"{function} is not applied to what {' or '.join(first)} returns", ()
    activate_inside_(module, inside, function, activation)
    return "", inside


def find_activation(function: Any) -> Optional[str]:
    """The name of an activation, by what it computes; None if it is none that packed
    layers have."""
    if not callable(function):
        return None
    x = torch.linspace(-6, 6, 241)
    try:
        with torch.no_grad():
            y = function(x.clone())
    except (RuntimeError, TypeError, ValueError):
        return None
    if not isinstance(y, Tensor) or y.shape != x.shape:
        return None
    for name in ACTIVATIONS:
        if torch.allclose(y.float().cpu(), activate(x, name), rtol=0, atol=2e-6):
            return name
    return None


def _difference(module: Any, fused: nn.Module, layer: Any) -> str:
    """Why one cannot stand for the other: "" if they compute the same."""
    weight = layer.weight
    if weight.is_meta:
        return "it is on the meta device; load the weights first"
    tolerance = _TOLERANCES.get(weight.dtype)
    if tolerance is None:
        return f"its weights are of {weight.dtype}"
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, layer.in_features, generator=generator)
    x = x.to(device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        wanted, found = module(x), fused(x)
    if not isinstance(wanted, Tensor) or wanted.shape != found.shape:
        return "it computes another result than down(act(gate(x)) * up(x))"
    limit = tolerance * float(wanted.abs().max().float())
    if float((wanted - found).abs().max().float()) > limit:
        return "it computes another result than down(act(gate(x)) * up(x))"
    return ""

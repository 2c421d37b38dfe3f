# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fuse_`: finds layers that share their input in the blocks of a model.

Blocks are found by the names of their layers, as Llama, Qwen2, Qwen3, Mistral, Gemma
and many others of Hugging Face have them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor, nn

from ...bindings.library import LibraryNotFoundError
from ...predict import compile_advice
from ..layers.linear import NMLinear
from ..layers.mlp import GatedMLP, share_input_
from ..layers.ops import activate
from ..layers.spec import ACTIVATIONS, common_dense_from
from .dense_plan import Predictor, Times, find_operators, plan_dense_

_MLP = ("gate_proj", "up_proj", "down_proj")
_ATTENTION = ("q_proj", "k_proj", "v_proj")
# Largest difference, as a share of the largest result, by the type of the weights.
_TOLERANCES = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float32: 1e-4}


@dataclass(frozen=True)
class Fusion:
    """One block.

    name:        of the module.
    kind:        "gated MLP" or "shared input".
    reason:      why it stays as it is; "" where it is fused.
    dense_from:  from how many tokens on its operator, that of gate and up in an MLP,
                 multiplies by dense copies; None: never, or layers are dense yet.
    """

    name: str
    kind: str
    reason: str = ""
    dense_from: Optional[int] = None


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
    """Makes one operator of layers that share their input, in place.

    A module with `gate_proj`, `up_proj`, `down_proj` and an activation becomes a
    `GatedMLP`, if that computes the same for random tokens. One with `q_proj`, `k_proj`
    and `v_proj` stays, and computes all three at once (`share_input_`). Names in the
    `state_dict` do not change. Call it before or after `sparsify_`: dense layers run as
    before, until they are packed.

    predictor, chip:  as for `sparsify_`. Where it, or `use_dense_`, has found by times
                      that a layer is to multiply many tokens by a dense copy, all
                      layers of its operator get one number, by the sums of their times.

    Returns a report of all such modules, also of those that stay as they are.
    """
    rows = []
    for name, module in list(model.named_modules()):
        if _has(module, _MLP):
            rows.append(Fusion(name, "gated MLP", _fuse_mlp(model, name, module)))
        elif _has(module, _ATTENTION):
            rows.append(Fusion(name, "shared input", _share(module)))
    _plan_copies(model, Times(predictor or compile_advice, chip))
    return FuseReport(tuple(_with_copies(model, row) for row in rows))


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
    names = {"gated MLP": _MLP[:2], "shared input": _ATTENTION}[row.kind]
    layers = [getattr(model.get_submodule(row.name), one) for one in names]
    if row.reason or not all(isinstance(layer, NMLinear) for layer in layers):
        return row
    number = common_dense_from(layer.dense_from for layer in layers)
    return replace(row, dense_from=number)


def _has(module: nn.Module, names: Tuple[str, ...]) -> bool:
    return all(
        isinstance(getattr(module, name, None), (nn.Linear, NMLinear)) for name in names
    )


def _fuse_mlp(model: nn.Module, name: str, module: nn.Module) -> str:
    """Replaces the module, or says why not."""
    if isinstance(module, GatedMLP):
        return "it is one already"
    parent, _, attribute = name.rpartition(".")
    if not attribute:
        return "it is the model itself, which cannot be replaced; use GatedMLP"
    hooks = [getattr(module, key) for key in vars(module) if key.endswith("_hooks")]
    if any(hooks) or "forward" in module.__dict__:
        return "it has hooks or a forward of its own"
    activation = find_activation(getattr(module, "act_fn", None))
    if activation is None:
        return f"its act_fn is none of {', '.join(ACTIVATIONS)}"
    layers = [getattr(module, one) for one in _MLP]
    if any(layer.bias is not None for layer in layers[:2]):
        return "gate_proj or up_proj has a bias"
    if all(isinstance(layer, NMLinear) for layer in layers[:2]):
        reason = GatedMLP(*layers, activation).obstacle()
        if reason is not None:
            return reason
    fused = GatedMLP(*layers, activation).train(module.training)
    reason = _difference(module, fused)
    if not reason:
        setattr(model.get_submodule(parent), attribute, fused)
    return reason


def _share(module: nn.Module) -> str:
    if "forward" in module.__dict__:
        return "it has a forward of its own"
    share_input_(module, _ATTENTION)
    return ""


def find_activation(function: Any) -> Optional[str]:
    """The name of an activation, by what it computes; None if it is none that packed
    layers have."""
    if not callable(function):
        return None
    x = torch.linspace(-6, 6, 241)
    try:
        with torch.no_grad():
            y = function(x)
    except (RuntimeError, TypeError, ValueError):
        return None
    if not isinstance(y, Tensor) or y.shape != x.shape:
        return None
    for name in ACTIVATIONS:
        if torch.allclose(y.float().cpu(), activate(x, name), rtol=0, atol=2e-6):
            return name
    return None


def _difference(module: Any, fused: GatedMLP) -> str:
    """Why one cannot stand for the other: "" if they compute the same."""
    layer = fused.gate_proj
    weight = layer.values if isinstance(layer, NMLinear) else layer.weight
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

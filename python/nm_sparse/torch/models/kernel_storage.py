# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`store_for_kernels_`: layers that hold their weights as their kernels read them.

Kernels that read bitmaps or K-major values are given a second copy of a weight that is
held in canonical form. For inference the layer may hold what they read, and nothing
else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from torch import nn

from ...bindings import library
from ...compiler import CompileError
from ...encoding import EncodingError
from ..layers import kernels, shared_kernels
from ..layers.halved_mlp import HalvedMLP
from ..layers.halved_ops import find_halves, scaled_halves
from ..layers.joined import join_
from ..layers.linear import NMLinear
from ..layers.mlp import STORED_OTHERWISE, GatedMLP, is_plain
from ..layers.scaled_kernels import find_layers
from ..layers.scaled_linear import SAME
from ..weight.spec import NARROW
from ..weight.stored_forms import StoredForm
from ..weight.weight import PackedWeight
from .report import table
from .stand_in import activated_names, shared_names

Filter = Callable[[nn.Module, str], bool]
_MIB = 1 << 20
# How reports call the forms of weights.
_FORMS = {
    "canonical": "the canonical form",
    "bitmap": "bitmaps",
    "k_major": "K-major values",
}


@dataclass(frozen=True)
class StoredLayer:
    """One packed layer.

    name:          in the model.
    storage:       the form in which it holds its weight now.
    is_changed:    whether it held another one before.
    reason:        why not; "" where it is changed.
    bytes_before:  of its weight, in the form before.
    bytes_after:   of its weight now.
    """

    name: str
    storage: str
    is_changed: bool
    reason: str
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True)
class StoreReport:
    """All packed layers of a model, in its order."""

    rows: Tuple[StoredLayer, ...]

    @property
    def changed(self) -> List[str]:
        """Names of the layers that hold another form now."""
        return [row.name for row in self.rows if row.is_changed]

    @property
    def left(self) -> Dict[str, str]:
        """Why each other layer does not, by its name."""
        return {row.name: row.reason for row in self.rows if not row.is_changed}

    @property
    def bytes_before(self) -> int:
        """Of all weights, in the forms before, without copies that kernels read."""
        return sum(row.bytes_before for row in self.rows)

    @property
    def bytes_after(self) -> int:
        """Of all weights now."""
        return sum(row.bytes_after for row in self.rows)

    def __str__(self) -> str:
        lines = [["layer", "storage", "KiB", "result"]]
        for row in self.rows:
            size = f"{row.bytes_before / 1024:.0f}"
            size += f" -> {row.bytes_after / 1024:.0f}" if row.is_changed else ""
            result = "changed" if row.is_changed else f"as it was: {row.reason}"
            lines.append([row.name, row.storage, size, result])
        copies = sum(row.bytes_after for row in self.rows if row.is_changed)
        before, after, copied = (
            f"{size / _MIB:.1f} MiB"
            for size in (self.bytes_before, self.bytes_after, copies)
        )
        return "\n".join(
            [
                *table(lines),
                "",
                f"{len(self.changed)} of {len(self.rows)} layers changed; all weights "
                f"take {after} instead of {before} and {copied} of copies that kernels "
                "would read",
            ]
        )


@dataclass(frozen=True)
class Use:
    """A program that multiplies by some layers.

    name:    of the module that calls it; of a layer by itself its own.
    layers:  of the program, in its order.
    find:    the forms of their weights in the program; None without a compiler.
    alike:   layers that must hold the same form to be in one program.
    joins:   whether the results are those of the layers, one by one.
    """

    name: str
    layers: Tuple[NMLinear, ...]
    find: Callable[[], Optional[Sequence[StoredForm]]]
    alike: Tuple[NMLinear, ...] = ()
    joins: bool = False


def store_for_kernels_(
    model: nn.Module, filter_fn: Optional[Filter] = None
) -> StoreReport:
    """Stores the weight of each packed layer on a GPU in the form that its kernels
    read, and in no other, in place: for inference, before or after the first call.

    model:      its layers are multiplied by their own programs, or those of `fuse_`;
                all programs of a layer must read the same form.
    filter_fn:  called with each packed layer and its name: False leaves it as it is.

    Programs are compiled here, and not by the first call. A layer that becomes bitmaps
    is `NMLinear.store_("bitmap")`, and one with K-major values `store_("k_major")`: its
    weight stops requiring gradients. Layers in training mode whose weights require
    gradients stay as they are; so do those whose weights are tied, and both of a gated
    MLP where one must. Layers of one input that become bitmaps lie one behind the other
    then: compiled and captured graphs multiply by them as by one weight, and their
    results are parts of one tensor there. A layer with `decode_to` holds the form for
    few tokens where all others are for its dense copy, and else that of its other
    kernels, with the second form beside it.

    Returns a report of all packed layers.
    """
    names = {
        module: name
        for name, module in model.named_modules()
        if isinstance(module, NMLinear)
    }
    uses = find_uses(model, names)
    plan: Dict[NMLinear, Union[StoredForm, str]] = {}
    for layer, name in names.items():
        plan[layer] = _obstacle(layer, name, names, filter_fn) or _common_form(
            [use for use in uses if layer in use.layers], layer
        )
    _keep_together(plan, uses, names)
    rows = [_apply(layer, name, plan[layer]) for layer, name in names.items()]
    for use in uses:
        if use.joins and not any(isinstance(plan[one], str) for one in use.layers):
            join_(use.layers)
    return StoreReport(tuple(rows))


def find_uses(model: nn.Module, names: Dict[NMLinear, str]) -> List[Use]:
    """All programs of a model that multiply by packed layers, by their names."""
    uses: List[Use] = []
    for name, module in model.named_modules():
        if isinstance(module, GatedMLP) and _is_gated(module):
            uses.append(_gated(name, module))
        if isinstance(module, HalvedMLP) and module.obstacle() is None:
            layer: Any = module.gate_up_proj
            uses.append(_alone(names[layer], layer, module.activation, True))
        first, activation = activated_names(module)
        for one in [getattr(module, attribute) for attribute in first]:
            if is_plain(one):
                uses.append(_alone(names[one], one, activation))
        shared = [getattr(module, one) for one in shared_names(module)]
        kinds = {getattr(layer, "activations", None) for layer in shared}
        if len(kinds) == 1 and all(is_plain(layer) for layer in shared):
            uses.append(_shared(name, tuple(shared)))
    taken = {layer for use in uses for layer in use.layers}
    return uses + [_alone(n, layer) for layer, n in names.items() if layer not in taken]


def _is_gated(module: GatedMLP) -> bool:
    """Whether gate and up are one program, if they hold the same form."""
    if module.obstacle() not in (None, STORED_OTHERWISE):
        return False
    gate, up = module.gate_proj, module.up_proj
    return gate.linear_spec.canonical == up.linear_spec.canonical


def _gated(name: str, module: GatedMLP) -> Use:
    gate, activation = module.gate_proj, module.activation
    alike = gate, module.up_proj
    whole = module.is_whole()

    def find() -> Optional[Sequence[StoredForm]]:
        if gate.activations != SAME:
            return _find_elements(alike, activation, True)
        spec = gate.linear_spec.canonical.with_activation(activation)
        device = gate.weight.device
        if whole:
            down = module.down_proj.linear_spec.canonical
            made = shared_kernels.find_mlp(spec, down, device)
        else:
            made = shared_kernels.find_gated(spec, device)
        return None if made is None else made.forms

    layers = (*alike, module.down_proj) if whole else alike
    return Use(name, layers, find, alike)


def _shared(name: str, layers: Tuple[NMLinear, ...]) -> Use:
    def find() -> Optional[Sequence[StoredForm]]:
        if layers[0].activations != SAME:
            return _find_elements(layers)
        specs = tuple(layer.linear_spec.canonical for layer in layers)
        biases = tuple(layer.bias is not None for layer in layers)
        made = shared_kernels.find_shared(specs, biases, layers[0].weight.device)
        return None if made is None else made.forms

    return Use(name, layers, find, joins=True)


def _alone(
    name: str, layer: NMLinear, activation: str = "none", is_gated: bool = False
) -> Use:
    """A layer with an activation, or whose first half of outputs is a gate."""

    def find() -> Optional[Sequence[StoredForm]]:
        if layer.activations != SAME:
            if is_gated:
                return _find_scaled_halves(layer, activation)
            return _find_elements([layer], activation)
        spec, has_bias = layer.linear_spec.canonical, layer.bias is not None
        if decodes_or_dense(layer) and not is_gated:
            spec = replace(spec, decode_to=layer.decode_to)
        device = layer.weight.device
        if activation != "none":
            inside = replace(spec, activation=activation)
            halves = find_halves(inside, device) if is_gated else None
            if halves is not None:
                return halves.forms[:1]
            spec = spec if is_gated else inside
        made = kernels.find_kernels(spec, has_bias, device)
        return None if made is None else [made]

    return Use(name, (layer,), find)


def decodes_or_dense(layer: NMLinear) -> bool:
    """Whether all numbers of tokens are for its second form or its dense copy."""
    few, dense = layer.decode_to, layer.dense_from
    return few is not None and dense is not None and dense <= few + 1


def _find_elements(
    layers: Sequence[NMLinear], activation: str = "none", gated: bool = False
) -> Optional[Sequence[StoredForm]]:
    """The forms of layers whose input is rounded to elements.

    Raises EncodingError where their pattern has no kernels for these.
    """
    first = layers[0]
    specs = [layer.linear_spec.canonical for layer in layers]
    if activation != "none":
        specs[0] = specs[0].with_activation(activation)
    found = [(one.components(), one.bias, spec) for one, spec in zip(layers, specs)]
    kind = "token" if first.input_scale is None else "tensor"
    made = find_layers(found, kind, gated, first.weight.device)
    if made is None and library.available():
        raise EncodingError(f"{first.encoding} has none of {first.elements}")
    return None if made is None else made.forms


def _find_scaled_halves(
    layer: NMLinear, activation: str
) -> Optional[Sequence[StoredForm]]:
    """The form of a layer whose halves are gate and up, or of its whole product."""
    spec = layer.linear_spec.with_activation(activation)
    kind = "token" if layer.input_scale is None else "tensor"
    found = scaled_halves(layer.components(), spec, kind, layer.weight.device)
    return _find_elements([layer]) if found is None else found[0].forms[:1]


def _is_on_gpu(layer: NMLinear) -> bool:
    return layer.weight.is_cuda


def _obstacle(
    layer: NMLinear, name: str, names: Dict[NMLinear, str], filter_fn: Optional[Filter]
) -> Optional[str]:
    """Why a layer stays as it is, whatever its kernels read."""
    if filter_fn is not None and not filter_fn(layer, name):
        return "filter_fn leaves it"
    if type(layer._parameters.get("weight")) is not PackedWeight:
        return "its weight is sharded, or computed by a hook; undo that first"
    if not _is_on_gpu(layer):
        return f"it is on {layer.weight.device}, and kernels run on GPUs"
    dtype = layer.weight.dtype
    if layer.linear_spec.dtype == "f64" or dtype in NARROW:
        return f"layers of {dtype} have no kernels"
    tied = [other for one, other in names.items()
            if one is not layer and one.values.data_ptr() == layer.values.data_ptr()
            and layer.values.numel() > 0]  # fmt: skip
    if tied:
        return f"it shares its weight with {', '.join(tied)}"
    if layer.storage == "canonical" and layer.training and layer.weight.requires_grad:
        return "it is trained; call eval() of the model first, or requires_grad_(False)"
    return None


def _common_form(uses: Sequence[Use], layer: NMLinear) -> Union[StoredForm, str]:
    """The form that all programs of a layer read, or why there is none."""
    found: Dict[str, StoredForm] = {}
    for use in uses:
        try:
            forms = use.find()
        except (CompileError, EncodingError) as error:
            return f"there are no kernels for it: {error}"
        if forms is None:
            return "there are no kernels for it: the compiler's library is missing"
        form = forms[use.layers.index(layer)]
        if form.spec.elements is not None:
            return "its kernels read products of its elements and their scales"
        if not form.has_own_encoding:
            return f"its kernels read another encoding, {form.encoding}"
        found[use.name] = form
    if len({form.storage for form in found.values()}) > 1:
        said = ", ".join(f"{form.storage} in {name}" for name, form in found.items())
        return f"its kernels read different forms: {said}"
    return next(iter(found.values()))


def _keep_together(
    plan: Dict[NMLinear, Union[StoredForm, str]],
    uses: Sequence[Use],
    names: Dict[NMLinear, str],
) -> None:
    """Leaves layers that must be alike as they are where one of them stays."""
    is_done = False
    while not is_done:
        is_done = True
        for use in uses:
            stay = [layer for layer in use.alike if isinstance(plan[layer], str)]
            if len(stay) in (0, len(use.alike)):
                continue
            for layer in use.alike:
                if layer not in stay:
                    other = names[stay[0]]
                    plan[layer] = f"it is one operator with {other}, which stays"
                    is_done = False


def _apply(layer: NMLinear, name: str, planned: Union[StoredForm, str]) -> StoredLayer:
    before, storage = _bytes(layer), layer.storage
    reason = planned if isinstance(planned, str) else ""
    if isinstance(planned, StoredForm):
        layer.store_(planned.storage)
        if layer.storage == storage:
            reason = f"its kernels read {_FORMS[storage]}"
    return StoredLayer(
        name, layer.storage, layer.storage != storage, reason, before, _bytes(layer)
    )


def _bytes(layer: NMLinear) -> int:
    return sum(part.nbytes for part in layer.components())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`calibrate_inputs_`: one scale for all tokens of a layer's input, from data."""

from __future__ import annotations

from typing import Any, Dict, List, Union

import torch
from torch import Tensor, nn

from ...encoding import EncodingError
from ..layers.linear import NMLinear
from ..layers.scaled_linear import SAME
from ..prune.calibration import Calibration, Source, call, evaluating
from ..weight.scales import LARGEST, LEAST
from ..weight.spec import ELEMENTS


def calibrate_inputs_(
    model: nn.Module,
    calibration: Union[Calibration, Source],
    *,
    progress: bool = True,
) -> Dict[str, float]:
    """Gives layers that round their input (`NMLinear.activations`) one scale for all
    tokens, in place: that of the largest number which they are given for calibration
    data. Larger ones become the largest element then. No kernel has to look for the
    largest number of each token any more, at the price of small ones of tokens that
    have no large ones.

    calibration:  batches, or a function that runs the model, as for `prune_`.
    progress:     whether stderr shows how far things are.

    Returns the scales by the names of layers; `NMLinear.set_input_scale(None)` goes
    back. Raises EncodingError, and leaves the model as it was, when there is no such
    layer, or one is given NaN, infinity or nothing.
    """
    if not isinstance(calibration, Calibration):
        calibration = Calibration(calibration, progress=progress)
    layers = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, NMLinear) and module.activations != SAME
    }
    if not layers:
        raise EncodingError(
            "no layer of the model rounds its input: legal are layers that sparsify_ "
            'has made with activations="e4m3" or "int8"'
        )
    largest = _largest(model, layers, calibration)
    scales: Dict[str, float] = {}
    for name, layer in layers.items():
        found = largest.get(name)
        if found is None or not torch.isfinite(found):
            said = "no tokens" if found is None else f"{float(found)}"
            raise EncodingError(
                f"{name} is given {said} in calibration: legal are finite inputs of "
                "each layer"
            )
        limit = LARGEST[ELEMENTS[layer.activations]]
        scales[name] = max(float(found), LEAST) / limit
    for name, scale in scales.items():
        layers[name].set_input_scale(scale)
    return scales


def _largest(
    model: nn.Module, layers: Dict[str, NMLinear], calibration: Calibration
) -> Dict[str, Tensor]:
    """The largest absolute number that each layer is given."""
    found: Dict[str, Tensor] = {}

    def note(name: str) -> Any:
        def hook(module: nn.Module, args: Any, kwargs: Dict[str, Any]) -> None:
            x = args[0] if args else kwargs.get("input", kwargs.get("x"))
            if x.numel() == 0:
                return
            most = x.detach().abs().amax().float()
            found[name] = torch.maximum(found.get(name, most), most)

        return hook

    # Layers with hooks are called one by one, whatever shares their input.
    handles: List[Any] = [
        layer.register_forward_pre_hook(note(name), with_kwargs=True)
        for name, layer in layers.items()
    ]
    before = {layer: layer.input_scale for layer in layers.values()}
    try:
        for layer in layers.values():
            layer.set_input_scale(None)
        for part in calibration.parts("layers that round them"):
            if part is calibration.function:
                with evaluating(model):
                    part(model)
            else:
                call(model, part)
    finally:
        for handle in handles:
            handle.remove()
        for layer, scale in before.items():
            layer.set_input_scale(None if scale is None else float(scale))
    return found

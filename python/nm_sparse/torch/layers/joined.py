# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that share their input, and whose weights are one in memory.

    nm_sparse::linear_joined(Tensor x, Tensor? x_scale, Tensor[] weights, int[] counts,
                             Tensor?[] biases, str spec) -> Tensor
        the results of `linear_shared`, or with x_scale of `scaled_linear_shared`, side
        by side in the last dimension

On CUDA it is one product where the weights lie one behind the other (`join_`): a launch
that fills the GPU, in place of several that do not. Else the results are put together.
It has no gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Sequence

import torch
from torch import Tensor, nn

from ..weight.joined import as_one, can_join, join, joined_spec
from ..weight.spec import LinearSpec
from ..weight.token_counts import for_rows
from ..weight.weight import LIBRARY
from .kernels import find_kernels, run_linear
from .scaled_kernels import find_layers, run_scaled
from .scaled_ops import refuses_gradients, several_layers
from .shared_ops import Layer, check_shared, split_layers

if TYPE_CHECKING:
    from .linear import NMLinear

LIBRARY.define(
    "linear_joined(Tensor x, Tensor? x_scale, Tensor[] weights, int[] counts, "
    "Tensor?[] biases, str spec) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def together(x: Tensor, x_scale: Optional[Tensor], *operands: Any) -> Tensor:
    """By the operators of several results."""
    if x_scale is None:
        results = torch.ops.nm_sparse.linear_shared(x, *operands)
    else:
        results = torch.ops.nm_sparse.scaled_linear_shared(x, x_scale, *operands)
    return torch.cat(results, -1)


def _fake(x: Tensor, x_scale: Optional[Tensor], *operands: Any) -> Tensor:
    specs = [spec for _, _, spec in split_layers(*operands)]
    outputs = sum(spec.shape[0] for spec in specs)
    return x.new_empty((*x.shape[:-1], outputs), dtype=specs[0].torch_dtype)


def joined_layer(layers: Sequence[Layer]) -> Optional[Layer]:
    """The one that has the outputs of all; None where memory has none."""
    weights, biases, specs = zip(*layers)
    if not can_join(specs):
        return None
    parts = [as_one(one) for one in zip(*weights)]
    bias = None
    if any(one is not None for one in biases):
        if any(one is None for one in biases):
            return None
        bias = as_one(biases)
        parts.append(bias)
    if any(part is None for part in parts):
        return None
    whole: List[Any] = parts if bias is None else parts[:-1]
    return whole, bias, joined_spec(specs)


def _cuda(x: Tensor, x_scale: Optional[Tensor], *operands: Any) -> Tensor:
    if x_scale is None:
        layers = check_shared(x, *operands)
    else:
        layers = several_layers(x, x_scale, *operands)
    one = joined_layer(layers)
    if one is None:
        return together(x, x_scale, *operands)
    if x_scale is None:
        return run_linear(x, *one)
    return run_scaled(x, x_scale, [one])[0]


LIBRARY.impl("linear_joined", together, "CompositeExplicitAutograd")
LIBRARY.impl("linear_joined", _cuda, "CUDA")
LIBRARY.impl(
    "linear_joined",
    refuses_gradients(torch.ops.nm_sparse.linear_joined.default),
    "Autograd",
)
torch.library.register_fake("nm_sparse::linear_joined", _fake, lib=LIBRARY)


def join_(layers: Sequence["NMLinear"]) -> bool:
    """Lays the weights and biases of layers on a GPU one behind the other, in place.

    Nothing else changes: names, shapes and `state_dict` are as before. Layers whose
    weight is made anew, as by `to`, are no longer joined.

    Returns whether it is done: kernels must read bitmaps, which all layers must be
    stored in.
    """
    specs = [LinearSpec.parse(layer.spec) for layer in layers]
    biases = [layer.bias for layer in layers]
    has_biases = {bias is not None for bias in biases}
    if not can_join(specs) or len(has_biases) > 1:
        return False
    if not _reads_bitmaps(layers, joined_spec(specs)):
        return False
    # Tensors that were made in inference mode could not be loaded outside of it.
    with torch.inference_mode(False), torch.no_grad():
        parts = zip(*[join(one) for one in zip(*[w.parts for w in _weights(layers)])])
        for layer, weight, own in zip(layers, _weights(layers), parts):
            named = dict(zip(weight.components, own))
            layer.hold(weight.detach().with_components(named), False)
        if None not in biases:
            given: List[Any] = biases
            for layer, bias, own in zip(layers, given, join(given)):
                made = nn.Parameter(own, requires_grad=bias.requires_grad)
                layer.register_parameter("bias", made)
    for layer in layers:
        layer.eager_shared.joined = len(layers)
    return True


def _weights(layers: Sequence["NMLinear"]) -> List[Any]:
    return [layer.weight for layer in layers]


def _reads_bitmaps(layers: Sequence["NMLinear"], spec: LinearSpec) -> bool:
    """Whether kernels of all outputs read the weights as they are."""
    first = layers[0]
    device, has_bias = first.weight.device, first.bias is not None
    form: Any
    if spec.elements is None:
        form = find_kernels(spec.canonical, has_bias, device)
    else:
        kind = "token" if first.input_scale is None else "tensor"
        own = first.components(), first.bias, spec.canonical
        made = find_layers([own], kind, False, device)
        form = None if made is None else made.forms[0]
    return form is not None and form.reads("bitmap")


def are_joined(x: Tensor, layers: Sequence["NMLinear"]) -> bool:
    """Whether x is multiplied by all layers at once: nothing records gradients, casts
    x, or exports the graph, whose readers know the layers alone."""
    count = len(layers)
    if any(layer.eager_shared.joined != count for layer in layers):
        return False
    if torch.is_grad_enabled() or torch.is_autocast_enabled(x.device.type):
        return False
    compiler = torch.compiler
    return compiler.is_dynamo_compiling() or not compiler.is_compiling()


def joined_linear(
    x: Tensor, x_scale: Optional[Tensor], layers: Sequence["NMLinear"]
) -> List[Tensor]:
    """The results [..., N] of each layer: parts of one tensor.

    x_scale:  of elements of 8 bits; None of other x.
    """
    parts = [layer.operands() for layer in layers]
    weights = [part for one in parts for part in one]
    counts = [len(one) for one in parts]
    biases = [layer.bias for layer in layers]
    spec = f"[{','.join([for_rows(layer.spec, x) for layer in layers])}]"
    own = weights, counts, biases, spec
    y = torch.ops.nm_sparse.linear_joined(x, x_scale, *own)
    return list(y.split([layer.out_features for layer in layers], -1))

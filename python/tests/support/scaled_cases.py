# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of 8 bits with scales, for tests, and what they must compute."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from nm_sparse.runtime.emulator import emulate
from nm_sparse.runtime.function import PreparedWeight
from nm_sparse.torch import NMLinear
from nm_sparse.torch.layers.ops import activate
from nm_sparse.torch.layers.scaled_kernels import stored_weights
from nm_sparse.torch.weight.spec import LinearSpec

ELEMENTS = ("e4m3", "int8")
LARGEST = {"e4m3": 448, "int8": 127}


def scaled_layer(e="2:4", elements="e4m3", k=64, n=48, seed=0, dtype=None, **options):
    """A layer of random weights."""
    torch.manual_seed(seed)
    linear = nn.Linear(k, n, bias=options.pop("bias", True))
    options.setdefault("activations", elements)
    layer = NMLinear.from_dense(linear, e, elements=elements, **options)
    return layer if dtype is None else layer.to(dtype)


def rounded(x, elements, scale=None):
    """Numbers that elements stand for, by the definition, in float64. Scales, and what
    is rounded, are float32: a bit of these may decide which of two elements it is."""
    x = x.float()
    limit = LARGEST[elements]
    if scale is None:
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-12) * (1 / limit)
    y = (x * scale.float().reciprocal()).clamp(-limit, limit)
    y = y.round() if elements == "int8" else y.to(torch.float8_e4m3fn)
    return y.double() * scale.double()


def wanted(x, layer, activation=None):
    """What a layer must compute, in float64."""
    scale = None if layer.input_scale is None else layer.input_scale.double()
    if layer.activations != "same":
        x = rounded(x, layer.activations, scale)
    own = layer.weight.canonical()
    dense = own.to(torch.float64).to_dense()
    bias = None if layer.bias is None else layer.bias.double()
    y = F.linear(x.double(), dense, bias)
    return activate(y, activation or layer.activation)


def parts_of(layers):
    """Layers as operators hold them."""
    return [
        (layer.components(), layer.bias, LinearSpec.parse(layer.spec))
        for layer in layers
    ]


def as_bytes(tensor):
    """A tensor as an array, of bf16 and f8 its bits."""
    plain = tensor.detach().contiguous()
    kinds = {torch.bfloat16: torch.int16, torch.float8_e4m3fn: torch.uint8}
    kind = kinds.get(plain.dtype)
    return (plain if kind is None else plain.view(kind)).numpy()


def emulated(made, x, x_scale, layers):
    """What the kernels of layers compute, in the emulator."""
    found = parts_of(layers)
    outs = [
        np.zeros((len(x), n), as_bytes(torch.empty(0, dtype=made.dtype)).dtype)
        for n in made.outputs
    ]
    whole = [
        PreparedWeight(tuple(map(as_bytes, parts)), None)
        for parts in stored_weights(made, found)
    ]
    others = [x_scale.reshape(-1), *(weight[-1] for weight, _, _ in found)]
    others += [bias for _, bias, _ in found if bias is not None]
    rest = [as_bytes(one) for one in others]
    results = emulate(made.program, as_bytes(x), *whole, *rest, *outs)
    return [torch.from_numpy(one).view(made.dtype) for one in results]

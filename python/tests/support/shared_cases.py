# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands of layers that share their input, for tests."""

import numpy as np
import torch
from torch import nn
from torch_cases import random_weight

from nm_sparse import Encoding
from nm_sparse.runtime.emulator import emulate
from nm_sparse.runtime.function import PreparedWeight
from nm_sparse.torch import LinearSpec, NMLinear
from nm_sparse.torch.weight.shared_spec import shared_text
from nm_sparse.torch.weight.spec import DTYPE_NAMES

GATED = torch.ops.nm_sparse.gated_mlp.default
MLP = torch.ops.nm_sparse.mlp.default
SHARED = torch.ops.nm_sparse.linear_shared.default


def gated_operands(e, seed, dtype=torch.float64, activation="silu"):
    """(x, gate, up, spec), and the two dense weights."""
    gate, dense = random_weight(e, seed, dtype)
    values = gate.components["values"]
    kept = values != 0
    up = dict(gate.components)
    up["values"] = torch.where(
        kept, torch.randn_like(values.double()).to(dtype), values
    )
    other = type(gate)(up, gate.encoding, gate.shape)
    x = torch.randn(2, 3, gate.shape[1], dtype=torch.float64).to(dtype)
    spec = LinearSpec(e, tuple(gate.shape), DTYPE_NAMES[dtype], activation).text
    parts = [list(one.components.values()) for one in (gate, other)]
    return (x, *parts, spec), (dense, other.to_dense())


def mlp_operands(e, seed, dtype=torch.float64, activation="silu"):
    """(x, gate, up, down, spec), and the three dense weights; down is 4:8."""
    (x, gate, up, spec), dense = gated_operands(e, seed, dtype, activation)
    first = LinearSpec.parse(spec)
    layer = packed(*first.shape, "4:8").to(dtype)
    down = [part.detach() for part in layer.weight.components.values()]
    last = LinearSpec(layer.encoding, first.shape[::-1], DTYPE_NAMES[dtype])
    weights = (*dense, layer.weight.to_dense().detach())
    return (x, gate, up, down, shared_text([first, last])), weights


def shared_operands(seed, dtype=torch.float64):
    """Operands of `linear_shared` for layers of several patterns, and their weights."""
    k, specs, parts, dense, biases = 24, [], [], [], []
    for at, e in enumerate((Encoding(2, 4, dim=1), Encoding(4, 8, (1, 4), dim=1))):
        n = 12 + 4 * at
        layer = NMLinear.from_dense(nn.Linear(k, n), e).to(dtype)
        parts.append([part.detach() for part in layer.weight.components.values()])
        dense.append(layer.weight.to_dense().detach())
        specs.append(LinearSpec(e, (n, k), DTYPE_NAMES[dtype]))
        biases.append(layer.bias.detach() if at else None)
    x = torch.randn(2, 5, k, dtype=torch.float64).to(dtype)
    counts = [len(one) for one in parts]
    weights = [part for one in parts for part in one]
    return (x, weights, counts, biases, shared_text(specs)), dense


def leaves(*groups):
    """Copies that want gradients, of tensors of floats."""
    return [
        one.clone().requires_grad_() if one.is_floating_point() else one
        for one in groups
    ]


def packed(k, n, encoding="2:4", bias=False, **options):
    return NMLinear.from_dense(nn.Linear(k, n, bias=bias), encoding, **options)


def parts_of(layer):
    """The components of a packed layer."""
    return layer.components()


def operators(function):
    """Names of the operators of this package that a function calls, in order."""
    called = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            name = operator._schema.name
            if name.startswith("nm_sparse::"):
                called.append(name[len("nm_sparse::") :])
            return operator(*args, **(kwargs or {}))

    with torch.no_grad(), Mode():
        function()
    return called


def as_bits(tensor):
    plain = tensor.detach().contiguous()
    return (plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain).numpy()


def emulated(made, x, weights, others):
    """What the kernels of a program compute, in the emulator."""
    tokens = as_bits(x)
    outs = [np.full((len(x), n), np.nan, tokens.dtype.newbyteorder("="))
            if tokens.dtype.kind == "f" else np.zeros((len(x), n), tokens.dtype)
            for n in made.outputs]  # fmt: skip
    whole = [
        PreparedWeight(tuple(map(as_bits, form.store(parts))), None)
        for form, parts in zip(made.forms, weights)
    ]
    rest = [as_bits(one) for one in others]
    found = emulate(made.program, tokens, *whole, *rest, *outs)
    return [torch.from_numpy(one).view(x.dtype) for one in found]

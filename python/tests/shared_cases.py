# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands of layers that share their input, for tests."""

import torch
from torch import nn
from torch_cases import random_weight

from nm_sparse import Encoding
from nm_sparse.torch import LinearSpec, NMLinear
from nm_sparse.torch.shared_spec import shared_text
from nm_sparse.torch.spec import DTYPE_NAMES

GATED = torch.ops.nm_sparse.gated_mlp.default
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

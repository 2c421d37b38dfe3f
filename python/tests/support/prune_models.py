# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small model that is pruned in tests, and data for it. Needs torch."""

import torch
from torch import nn

from nm_sparse.torch.prune import prune_

torch.set_num_threads(1)  # the problems are small


class Block(nn.Module):
    """Attention without softmax, and a gated MLP; defined in another order than run."""

    def __init__(self, size, hidden):
        super().__init__()
        self.down = nn.Linear(hidden, size)
        self.up = nn.Linear(size, hidden)
        self.gate = nn.Linear(size, hidden, bias=False)
        self.out = nn.Linear(size, size)
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        x = x + self.out(torch.sigmoid(q * k) * v)
        return x + self.down(torch.relu(self.gate(x)) * self.up(x))


class Model(nn.Module):
    def __init__(self, size=12, hidden=20, blocks=2, seed=0):
        torch.manual_seed(seed)
        super().__init__()
        self.blocks = nn.ModuleList(Block(size, hidden) for _ in range(blocks))
        self.dropout = nn.Dropout(0.5)

    def forward(self, x, attention_mask=None):
        for block in self.blocks:
            x = self.dropout(block(x))
        return x


def batches(count=3, size=12, seed=1):
    draw = torch.Generator().manual_seed(seed)
    mixed = torch.randn(size, size, generator=draw) / size**0.5
    return [torch.randn(4, 16, size, generator=draw) @ mixed for _ in range(count)]


def quiet(model, config, data=None, **more):
    return prune_(model, config, data, progress=False, **more)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small model of convolutions, and images for it. Needs torch."""

import copy

import torch
from torch import nn

from nm_sparse.torch import NMSparseConfig, to_dense_

ANY = NMSparseConfig("2:4", keep_slower=True)


def times(shape, dtype, encoding, tokens, chip):
    """A predictor: sparse is faster."""
    return [(count, 2.0, 1.0) for count in tokens]


class Block(nn.Module):
    """A residual block, as torchvision has it: one activation, called twice."""

    def __init__(self, channels, outputs, stride):
        super().__init__()
        more = dict(bias=False, padding=1)
        self.conv1 = nn.Conv2d(channels, outputs, 3, stride, **more)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, **more)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(channels, outputs, 1, stride)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class Model(nn.Module):
    def __init__(self, seed=0):
        torch.manual_seed(seed)
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.blocks = nn.ModuleList([Block(16, 16, 1), Block(16, 32, 2)])
        self.head = nn.Linear(32, 8)

    def forward(self, x):
        x = self.depthwise(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


def trained(model):
    """Statistics and scales that are not those of a new batch norm."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d) and module.track_running_stats:
            for one in (module.running_var, module.weight, module.bias):
                nn.init.uniform_(one, 0.5, 1.5)
            nn.init.normal_(module.running_mean, std=0.1)
    return model.eval()


def batch(count=2, size=10, seed=3):
    return torch.randn(
        count, 3, size, size, generator=torch.Generator().manual_seed(seed)
    )


def dense_of(model):
    dense = copy.deepcopy(model)
    to_dense_(dense)
    return dense

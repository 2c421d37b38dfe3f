# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Drawn encodings and weights that have bitmaps, for tests."""

import numpy as np
import torch
from torch_cases import ragged_shape

from nm_sparse import Encoding, Level
from nm_sparse.torch import LinearSpec, PackedWeight
from nm_sparse.torch.weight.levels import BITS
from nm_sparse.torch.weight.pack import gather_rows
from nm_sparse.torch.weight.spec import DTYPE_NAMES, component_types

DTYPES = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.int8,
    torch.float8_e4m3fn,
)


def draw_encoding(rng):
    """Of one level or two, shuffled or not."""
    order = ("identity", "shuffled")[rng.integers(2)]
    if rng.random() < 0.4:
        m = int(rng.integers(2, 4))
        n = int(rng.integers(1, m + 1))
        inner = Level(n, m, (int(rng.integers(1, 3)), int(rng.choice([1, 2, 16]))))
        # A window of the inner level is what the outer one keeps of its window.
        outer = m + int(rng.integers(0, 5))
        block = (inner.block[0], int(32 * rng.integers(1, 3)))
        return Encoding(m, outer, block, dim=1, order=order, inner=inner)
    m = int(rng.choice([2, 3, 4, 7, 16, 32, 300]))
    n = int(rng.integers(1, min(m, 40) + 1))
    block = (int(rng.integers(1, 4)), int(rng.choice([1, 2, 3, 16, 40, 128])))
    return Encoding(n, m, block, dim=1, order=order)


def random_bits(e, shape, dtype, rng):
    """A packed weight of any bits, NaNs and -0 among them, and +0 past its end."""
    n, k = shape
    parts = {}
    types = component_types(e, dtype)
    spec = LinearSpec(e, shape, DTYPE_NAMES[dtype])
    for (name, (size, _)), level in zip(list(spec.components.items())[1:], e.levels):
        rows, panels = size
        drawn = rng.random((rows // level.n, level.m, panels))
        kept = np.sort(np.argsort(drawn, axis=1)[:, : level.n], axis=1)
        parts[name] = torch.from_numpy(kept.reshape(size)).to(types[name])
    inside = gather_rows(torch.ones(k, n), [None, *parts.values()], e)
    size = spec.components["values"][0]
    itemsize = dtype.itemsize
    bits = torch.from_numpy(rng.integers(0, 256, (*size, itemsize), dtype=np.uint8))
    bits = bits.view(BITS[itemsize]).reshape(size)
    values = torch.where(inside != 0, bits, torch.zeros_like(bits)).view(dtype)
    parts = {"values": values, **parts}
    if e.is_shuffled:
        parts["perm"] = torch.from_numpy(rng.permutation(n)).to(torch.int32)
    weight = PackedWeight.from_components(parts, e, shape)
    weight.validate()
    return weight


def draw_weight(seed):
    """A weight of some encoding, shape and type."""
    rng = np.random.default_rng(seed)
    e = draw_encoding(rng)
    dtype = DTYPES[int(rng.integers(len(DTYPES)))]
    return random_bits(e, ragged_shape(rng, e), dtype, rng)


def same_bits(first, second):
    """Whether tensors have equal shapes, types and bits."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    first, second = (
        one.detach().contiguous().view(BITS[one.element_size()])
        for one in (first, second)
    )
    return torch.equal(first, second)

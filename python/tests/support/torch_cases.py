# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random packed weights, and numpy arrays as torch tensors, for tests."""

import numpy as np
import torch

from nm_sparse import Encoding, Level
from nm_sparse.torch.weight.spec import DTYPES

# Encodings of all kinds: element-wise, vector-wise, block-wise, two levels, shuffled.
ENCODINGS = [
    Encoding(2, 4, dim=1),
    Encoding(3, 7, (1, 4), dim=1),
    Encoding(1, 3, (2, 2), dim=1),
    Encoding(8, 32, (1, 16), dim=1),
    Encoding(4, 8, (1, 8), dim=1, inner=Level(2, 4)),
    Encoding(2, 3, (2, 4), dim=1, inner=Level(1, 2, (2, 2))),
    Encoding(2, 4, (1, 4), dim=1, order="shuffled"),
]


def as_tensor(array, dtype):
    """A numpy array, of bf16 and f8 an unsigned view, as a tensor of `dtype`."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.view(f"int{8 * array.dtype.itemsize}")
    return torch.from_numpy(array).view(DTYPES[dtype])


def as_array(tensor, like):
    """A tensor as an array of the type of `like`, by its bits."""
    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    plain = tensor.detach().contiguous().view(integers[tensor.element_size()])
    return plain.numpy().view(like.dtype)


def ragged_shape(rng, encoding):
    """Some [N, K] of a few windows and panels, which neither often divides."""
    rows, outputs = encoding.m * encoding.block[0], encoding.block[1]
    n = outputs + rng.integers(0, 2 * outputs + 3)
    return int(n), int(rows + rng.integers(0, 2 * rows + 1))


def random_weight(encoding, seed, dtype=torch.float64, shape=None):
    """A packed weight of random numbers, with some zeros, and its dense form."""
    from nm_sparse.torch import PackedWeight
    from nm_sparse.torch.weight.masks import prune_weight

    rng = np.random.default_rng(seed)
    n, k = shape or ragged_shape(rng, encoding)
    dense = torch.from_numpy(rng.standard_normal((n, k)) * (rng.random((n, k)) < 0.9))
    dense, perm = prune_weight(dense.to(dtype), encoding)
    return PackedWeight.from_dense(dense, encoding, perm), dense

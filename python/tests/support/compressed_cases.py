# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints with 2:4 weights in both layouts, for tests."""

import numpy as np
from checkpoint_cases import model, save  # noqa: F401

from nm_sparse import Encoding, prune

HALF = Encoding(2, 4, dim=1)


def sparse(rng, outputs, inputs, dtype=np.float32):
    return prune(rng.standard_normal((outputs, inputs)).astype(dtype), HALF)


def bitmask(name, dense, kind=None):
    """The three tensors of a 2:4 weight of which every window keeps two."""
    keep = dense != 0
    compressed = dense[keep].reshape(len(dense), -1)
    mask = np.packbits(keep, axis=1, bitorder="little")
    return {
        f"{name}__shape": np.array(dense.shape),
        f"{name}__compressed": (kind, compressed) if kind else compressed,
        f"{name}__bitmask": mask,
    }


def stored(folder, shards, config=None):
    """The folder of a model of these files."""
    folder.mkdir()
    model(folder, shards, config)
    return folder


def layers(rng):
    """Tensors of a model of two files, and the dense weights by name."""
    weights = {
        "m.0.up.weight": sparse(rng, 24, 16),
        "m.0.down.weight": sparse(rng, 16, 20, np.float16),
        "m.1.up.weight": sparse(rng, 8, 12),
        "m.1.full.weight": rng.standard_normal((8, 12)).astype(np.float32),
    }
    first = {
        **bitmask("m__0__up", weights["m.0.up.weight"]),
        "m__0__down__weight": weights["m.0.down.weight"],
        "m__0__up__bias": rng.standard_normal(24).astype(np.float32),
    }
    second = {
        **bitmask("m__1__up", weights["m.1.up.weight"]),
        "m__1__full__weight": weights["m.1.full.weight"],
        "m__1__steps": np.array([3, 4]),
    }
    # A part may lie in another file than the values.
    first["m__1__up__bitmask"] = second.pop("m__1__up__bitmask")
    return {"a.safetensors": first, "b.safetensors": second}, weights


CONFIG = {
    "hidden_size": 16,
    "quantization_config": {
        "quant_method": "compressed-tensors",
        "format": "dense",
        "sparsity_config": {
            "format": "sparse-24-bitmask",
            "sparsity_structure": "2:4",
            "targets": ["Linear"],
            "ignore": ["lm_head"],
        },
    },
}

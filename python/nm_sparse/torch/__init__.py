# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse linear layers for PyTorch.

`sparsify_` replaces the linear layers of a model by `NMLinear`, whose weight is packed
(docs/Encoding.md); `NMSparseConfig` says how. On a GPU they run compiled kernels, on
the CPU a reference in torch. The operator is `torch.ops.nm_sparse.linear`.

`prune` makes a model obey patterns and fits what is left; `advise` and `choose` say
which pattern suits which layer, and `sparsify_within_` does all of it within a budget
(docs/Pruning.md). `fuse_` makes one operator of layers that share their input, and
`store_for_kernels_` leaves each weight in the form that its kernels read, for
inference; `use_dense_` has layers multiply many tokens by dense copies where that is
faster (docs/Fusion.md). `export_mlir` writes a model as MLIR (docs/Export.md), and
`load_into` and `convert_checkpoint` read checkpoints with 2:4 weights
(docs/Checkpoints.md).
"""

from typing import Any

from .layers.linear import NMLinear
from .layers.masks import prune_weight
from .layers.mlp import GatedMLP, share_input_, shared_linear
from .layers.ops import packed_linear
from .layers.spec import LinearSpec
from .layers.weight import PackedWeight
from .models.budget import advise, choose, sparsify_within_
from .models.compressed import (
    Conversion,
    LoadReport,
    convert_checkpoint,
    load_compressed,
    load_into,
)
from .models.config import NMSparseConfig
from .models.convert import sparsify_
from .models.fuse import FuseReport, Fusion, fuse_
from .models.kernel_storage import StoredLayer, StoreReport, store_for_kernels_
from .models.report import Prediction, Report, Row
from .models.use_dense import DenseLayer, DenseReport, use_dense_

__all__ = [
    "Conversion",
    "DenseLayer",
    "DenseReport",
    "Exported",
    "ExportError",
    "FuseReport",
    "Fusion",
    "GatedMLP",
    "LinearSpec",
    "LoadReport",
    "NMLinear",
    "NMSparseConfig",
    "PackedWeight",
    "Prediction",
    "Report",
    "Row",
    "StoreReport",
    "StoredLayer",
    "advise",
    "choose",
    "convert_checkpoint",
    "export_mlir",
    "fuse_",
    "load_compressed",
    "load_into",
    "packed_linear",
    "prune_weight",
    "share_input_",
    "shared_linear",
    "sparsify_",
    "sparsify_within_",
    "store_for_kernels_",
    "use_dense_",
]


def __getattr__(name: str) -> Any:
    """Names of `export`, whose imports take half a second, when they are asked for."""
    if name in ("Exported", "ExportError", "export_mlir"):
        from . import export

        return getattr(export, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

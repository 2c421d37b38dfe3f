# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse layers for PyTorch.

`sparsify_` replaces the linear layers of a model by `NMLinear`, and its convolutions by
`NMConv2d` (docs/Convolutions.md), whose weights are packed (docs/Encoding.md);
`NMSparseConfig` says how. On a GPU they run compiled kernels, on the CPU a reference in
torch. The operators are `torch.ops.nm_sparse.linear` and `conv2d`.

`prune` makes a model obey patterns and fits what is left; `advise` and `choose` say
which pattern suits which layer, and `sparsify_within_` does all of it within a budget
(docs/Pruning.md). `fuse_` makes one operator of layers that share their input or have
an activation behind them, `store_for_kernels_` leaves each weight in the form that its
kernels read, for inference, and `use_dense_` has layers multiply many tokens by dense
copies where that is faster, and few by second forms of their weights
(`use_decode_forms_`, docs/Fusion.md). `export_mlir` writes a model as MLIR
(docs/Export.md), `to_importable` prepares one for an importer of other projects
(docs/IREE.md), and `load_into` and `convert_checkpoint` read checkpoints with 2:4
weights. Models of transformers with packed layers are loaded by their names, and
`convert_pretrained` makes them (docs/Checkpoints.md).
"""

from typing import Any

from .layers.conv2d import NMConv2d
from .layers.conv_geometry import Geometry
from .layers.halved_mlp import HalvedMLP
from .layers.linear import NMLinear
from .layers.mlp import GatedMLP, shared_linear
from .layers.ops import packed_linear
from .models.batch_norm import fold_batch_norm_
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
from .models.input_scales import calibrate_inputs_
from .models.kernel_storage import StoredLayer, StoreReport, store_for_kernels_
from .models.report import FewTokens, Prediction, Report, Row
from .models.stand_in import activate_inside_, share_input_
from .models.to_dense import to_dense_
from .models.use_decode_forms import DecodeLayer, DecodeReport, use_decode_forms_
from .models.use_dense import DenseLayer, DenseReport, use_dense_
from .pretrained import ConvertReport, Outcome, convert_pretrained, mark_pretrained
from .weight.masks import prune_weight
from .weight.plain import specialize_tokens
from .weight.quantize import quantize_tokens
from .weight.spec import LinearSpec
from .weight.weight import PackedWeight

__all__ = [
    "Conversion",
    "ConvertReport",
    "DecodeLayer",
    "DecodeReport",
    "DenseLayer",
    "DenseReport",
    "Exported",
    "ExportError",
    "FewTokens",
    "FuseReport",
    "Fusion",
    "GatedMLP",
    "Geometry",
    "HalvedMLP",
    "Importable",
    "LinearSpec",
    "LoadReport",
    "NMConv2d",
    "NMLinear",
    "NMSparseConfig",
    "Outcome",
    "PackedWeight",
    "Prediction",
    "Report",
    "Row",
    "StoreReport",
    "StoredLayer",
    "activate_inside_",
    "advise",
    "calibrate_inputs_",
    "choose",
    "convert_checkpoint",
    "convert_pretrained",
    "export_mlir",
    "fold_batch_norm_",
    "fuse_",
    "load_compressed",
    "load_into",
    "mark_pretrained",
    "packed_linear",
    "prune_weight",
    "quantize_tokens",
    "share_input_",
    "shared_linear",
    "sparsify_",
    "sparsify_within_",
    "specialize_tokens",
    "store_for_kernels_",
    "to_dense_",
    "to_importable",
    "use_decode_forms_",
    "use_dense_",
]


def __getattr__(name: str) -> Any:
    """Names of `export`, whose imports take half a second, when they are asked for."""
    if name in ("Importable", "to_importable"):
        from .export.importable import Importable, to_importable

        return Importable if name == "Importable" else to_importable
    if name in ("Exported", "ExportError", "export_mlir"):
        from . import export

        return getattr(export, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

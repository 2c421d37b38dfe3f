# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse linear layers for PyTorch.

`sparsify_` replaces the linear layers of a model by `NMLinear`, whose weight is packed
(docs/Encoding.md); `NMSparseConfig` says how. On a GPU they run compiled kernels, on
the CPU a reference in torch. The operator is `torch.ops.nm_sparse.linear`.

`prune` makes a model obey patterns and fits what is left; `advise` and `choose` say
which pattern suits which layer, and `sparsify_within_` does all of it within a budget.
"""

from .budget import advise, choose, sparsify_within_
from .config import NMSparseConfig
from .convert import sparsify_
from .linear import NMLinear
from .masks import prune_weight
from .ops import packed_linear
from .report import Prediction, Report, Row
from .spec import LinearSpec, encoding_text, parse_encoding
from .weight import PackedWeight

__all__ = [
    "LinearSpec",
    "NMLinear",
    "NMSparseConfig",
    "PackedWeight",
    "Prediction",
    "Report",
    "Row",
    "advise",
    "choose",
    "encoding_text",
    "packed_linear",
    "parse_encoding",
    "prune_weight",
    "sparsify_",
    "sparsify_within_",
]

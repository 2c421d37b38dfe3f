# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers that have packed layers are marked as such."""

from __future__ import annotations

import sys
from typing import Any, Mapping, Optional

from torch import nn

from ...files.sparse_config import METHOD
from .registration import REGISTRY
from .save import sparse_config

_MODELS = "transformers.modeling_utils"


def mark_pretrained(
    model: nn.Module, provenance: Optional[Mapping[str, str]] = None
) -> None:
    """Has `save_pretrained` of a model write which layers are packed, so that
    `from_pretrained` loads them. Does nothing to other models than transformers'.

    provenance:  free text by key, such as the method of pruning, that is saved, too.

    `sparsify_`, `pack_` and `load_into` call it. Whoever puts an `NMLinear` into a
    model by hand calls it once, at any time: what is saved is what layers are then. A
    model that another quantization marks stays as it is.
    """
    models = sys.modules.get(_MODELS)
    if models is None:  # and so the model is none of its
        return
    for module in model.modules():
        if isinstance(module, models.PreTrainedModel):
            _mark(module, provenance)


def _mark(model: Any, provenance: Optional[Mapping[str, str]]) -> None:
    registry = sys.modules[REGISTRY]  # which models import, and `register` fills
    make_config = registry.AUTO_QUANTIZATION_CONFIG_MAPPING[METHOD]
    make_quantizer = registry.AUTO_QUANTIZER_MAPPING[METHOD]
    known = getattr(model, "hf_quantizer", None)
    if known is not None and not isinstance(known, make_quantizer):
        return
    texts = known.quantization_config.sparse.provenance if known is not None else {}
    found = sparse_config(model, {**texts, **(provenance or {})})
    if found is None:
        return
    config = make_config(found)
    model.hf_quantizer = make_quantizer(config, pre_quantized=True)
    model.is_quantized = True
    model.quantization_method = config.quant_method

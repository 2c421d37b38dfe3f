# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers with packed layers: saved, and loaded by their names.

Importing this makes `quant_method: nm_sparse` known to transformers, whether that is
imported before or afterwards; transformers itself is not imported.
"""

from ...files.convert import ConvertReport, Outcome
from .convert import convert_pretrained
from .marking import mark_pretrained
from .registration import register
from .save import sparse_config

__all__ = [
    "ConvertReport",
    "Outcome",
    "convert_pretrained",
    "mark_pretrained",
    "register",
    "sparse_config",
]

register()

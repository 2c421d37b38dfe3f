# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ragged panels: how kernels read free weights (docs/Encoding.md, versions 10, 11)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Dict

import numpy as np

from ..bindings import packing_library
from ..encoding import EncodingError, Packed
from .canonical import decode

STEP = 64  # Rows that panels are filled up to where nothing is said.
PART = 16  # Rows of a part of a block at most.


def pack_ragged(packed: Packed, step: int = STEP) -> Dict[str, np.ndarray]:
    """`values` [S, bn], `index` [S / u, 1] and `panels` [(batch,) P, 4] of a free
    weight in its canonical form, and `perm` of a shuffled one, with panels of a
    multiple of `step` rows. Blocks are kept in parts of u rows, the most that divide
    theirs, a step and 16. Raises EncodingError for another pattern or step."""
    if not packed.encoding.is_free or step < 1:
        raise EncodingError(
            f"ragged panels of {packed.encoding} filled up to {step} rows: legal is a "
            "free encoding, and at least 1 row"
        )
    e, parts = packed.encoding, dict(packed.components)
    # The panels are those of the weight in packed order.
    perm = parts.pop("perm", None)
    own = replace(packed, components=parts, encoding=e.packed)
    part = math.gcd(e.block[0], step, PART)
    panels = packing_library.pack_ragged(decode(own), e.packed, own.dtype, step, part)
    return panels if perm is None else {**panels, "perm": perm}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Orders of outputs in which panels keep much: the permutations of shuffled weights."""

from __future__ import annotations

from typing import Callable, Optional, Union

import torch
from torch import Tensor

from ...encoding import Encoding, EncodingError
from ...packing.shuffled import search_order
from .masks import check_density, layer_encoding


def output_order(
    scores: Tensor,
    encoding: Union[Encoding, str],
    density: Optional[float] = None,
    seed: int = 0,
    progress: Optional[Callable[[int, int], None]] = None,
) -> Tensor:
    """int64 [N]: an order of the outputs in which outputs that need the same inputs
    share a panel. Place j of the packed outputs holds output order[j].

    scores:    [N, K], what stands for the magnitudes |w|.
    encoding:  of order "shuffled".
    density:   of a free encoding: the share of the blocks that stay.
    seed:      which inputs are looked at where there are too many for all.
    progress:  called with the number of steps that are done, and of all.

    The search is that of section 3 of docs/Encoding.md, on the CPU; it takes 20 s for
    4096 x 14336. Raises EncodingError when scores, encoding or density do not fit.
    """
    e = layer_encoding(encoding)
    check_density(e, density)
    if scores.ndim != 2:
        raise EncodingError(f"scores have rank {scores.ndim}: legal is 2, [N, K]")
    numbers = scores.detach().double().cpu().contiguous().numpy()
    found = search_order(numbers, e, density=density, seed=seed, progress=progress)
    return torch.from_numpy(found.astype("int64"))

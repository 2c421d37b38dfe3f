# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicted times of a layer, sparse and dense, by the compiler's cost model."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence, Tuple

from .encoding import Encoding
from .runtime.program import advise


class PredictedTime(NamedTuple):
    """Of one call with so many tokens.

    dense_us, sparse_us:  microseconds.
    """

    tokens: int
    dense_us: float
    sparse_us: float


def compile_advice(
    shape: Tuple[int, int],
    dtype: str,
    encoding: Encoding,
    tokens: Sequence[int],
    chip: Optional[str] = None,
    gpu: Optional[str] = None,
) -> List[PredictedTime]:
    """What a layer of a weight [outputs, inputs] takes.

    dtype:   element type, spelled as in MLIR: f16, bf16, f32, ...
    tokens:  numbers of tokens.
    chip, gpu:  that times are predicted for; none: an H200.

    Raises CompileError for what cannot be compiled, and LibraryNotFoundError.
    """
    found = advise(*shape, dtype, tokens, [str(encoding)], chip, gpu)
    dense, sparse = {}, {}
    for row in found["patterns"]:
        times = dense if row["pattern"] == "dense" else sparse
        for time in row["times"]:
            # A pattern may be there in several storages: the best one counts.
            best = times.get(time["tokens"], float("inf"))
            times[time["tokens"]] = min(best, time["predicted_us"])
    return [PredictedTime(count, dense[count], sparse[count]) for count in tokens]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search for the fastest schedules of layers, by measurement (docs/Tuning.md)."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple, Union

from ..encoding import Encoding
from .engine import Search
from .sources import find_tunable
from .tunable import TunableProduct

PathLike = Union[str, "os.PathLike[str]"]
DEVICES = ("cuda", "emulate")
_FAMILY = re.compile(r"product = (\w+)")
_NAN = float("nan")


@dataclass(frozen=True)
class Tuned:
    """What was found of one product. What was not measured is NaN.

    product:    with its number of tokens.
    schedule:   the best one, the attribute `#nm_tile.schedule<...>`; "" where results
                were only checked, or none is right.
    us, model_us, dense_us:  microseconds of it, of the model's choice, and of the dense
                product.
    mj, dense_mj:  millijoules of a call, and of the dense product.
    measured:   how many schedules are right.
    wrong:      schedules whose results were wrong: faults of the compiler.
    refused:    schedules that cannot be compiled or run.
    failure:    why there is no schedule; "" where there is one.
    """

    product: TunableProduct
    schedule: str = ""
    us: float = _NAN
    model_us: float = _NAN
    dense_us: float = _NAN
    mj: float = _NAN
    dense_mj: float = _NAN
    measured: int = 0
    wrong: Tuple[str, ...] = ()
    refused: Tuple[str, ...] = ()
    failure: str = ""

    @property
    def tokens(self) -> int:
        return self.product.tokens

    @property
    def names(self) -> Tuple[str, ...]:
        """The layers, or functions, that have the problem."""
        return self.product.names

    @property
    def family(self) -> str:
        """The kind of kernels, such as wgmma_sp; "" without a schedule."""
        found = _FAMILY.search(self.schedule)
        return found[1] if found else ""


def _read(product: TunableProduct, found: Dict[str, Any]) -> Tuned:
    entry = found["entry"] or {}
    return Tuned(
        product,
        entry.get("schedule", ""),
        **{
            name: entry.get(name) or _NAN
            for name in ("us", "model_us", "dense_us", "mj", "dense_mj")
        },
        measured=found["measured"],
        wrong=tuple(one["schedule"] for one in found["wrong"]),
        refused=tuple(one["schedule"] for one in found["refused"]),
        failure=found["failure"],
    )


def tune(
    layers: Any,
    tokens: Sequence[int],
    database: Optional[PathLike],
    gpu: str,
    candidates: int = 12,
    minutes: Optional[float] = None,
    seed: int = 0,
    encoding: Union[Encoding, str, None] = None,
    *,
    neighbours: int = 4,
    objective: str = "time",
    sample_ms: int = 400,
    lock: Optional[PathLike] = None,
    device: str = "cuda",
) -> Iterator[Tuned]:
    """Measures schedules of layers on GPU 0, and adds the best ones to a database.

    layers:      one or several `LinearSpec`, a module of torch, a checkpoint, a .mlir
                 file or MLIR text, as `find_tunable` takes them; or what that has found
                 already, with its tokens, GPU and objective. It warns of layers that
                 are not tuned.
    tokens:      numbers of tokens, each of which is a problem of its own; none: those
                 that programs for any number of tokens have kernels for.
    database:    a file of lines of JSON, which is made if there is none. Problems that
                 it has entries of are skipped, so that a search can go on where another
                 one ended.
    gpu:         h100 or h200, which GPU 0 must be.
    candidates:  schedules to measure for each problem at first, at most.
    minutes:     after which no further problem is begun.
    seed:        of weights and activations.
    encoding:    the pattern that dense layers of a model or checkpoint are to get.
    neighbours:  schedules to measure then, which differ from the best in one field.
    objective:   what the best one has least of: time, energy, or edp, their product.
    sample_ms:   milliseconds of samples for the first schedules, and for the others.
    lock:        a file: searches that name the same one take times one after another.
    device:      cuda, or emulate: results of all candidates are checked in the
                 emulator, without a GPU, and no database is written. A process that has
                 done so cannot use a GPU through this package any more.

    Yields what was found for each problem, as it is written, and measures the next one
    when it is asked for that. Raises ValueError for what
    cannot be measured, CheckpointError, OSError, CompileError, and RuntimeError for an
    error of the GPU or of the database.
    """
    if device not in DEVICES:
        raise ValueError(f"device is {device!r}: legal are {', '.join(DEVICES)}")
    if database is None and device == "cuda":
        raise ValueError("database is None: legal is a file, unless device is emulate")
    tunable = find_tunable(layers, tokens, gpu, encoding, objective=objective)
    if tunable._engine is None:
        raise ValueError("layers is a Tunable that find_tunable has not made")
    if tunable is not layers and tunable.skipped:
        warnings.warn(str(tunable), stacklevel=2)
    search = Search(
        os.fspath(database or ""), candidates, neighbours, sample_ms, seed, minutes,
        os.fspath(lock or ""), device == "emulate",
    )  # fmt: skip
    has_warned = False
    for one in tunable._engine.run(search):
        if one["dense_fault"] and not has_warned:
            warnings.warn(
                f"dense products are not timed: {one['dense_fault']}", stacklevel=2
            )
            has_warned = True
        yield _read(tunable.products[one["product"]], one)

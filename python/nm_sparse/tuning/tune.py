# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search for the fastest schedules of layers, by measurement (docs/Tuning.md).

The cost model ranks schedules; the best of each family of kernels are compiled in
parallel, compared with the product in float64, and timed in turns with the dense layer
of torch. The fastest one becomes a line of a database.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ..bindings import library
from ..compiler import CompileError
from ..encoding import Encoding
from ..runtime.program import Program, compile
from .measured import MeasuredLayer
from .product import Spec
from .sources import find_tunable
from .times import Graph, driver_version, sparse_layers, take_turns
from .tunable import TunableLayer, list_products

PathLike = Union[str, "os.PathLike[str]"]
# The fields of an entry that were measured; the others say the problem.
_MEASURED = (
    "schedule", "us", "spread", "dense_us", "mj", "dense_mj", "code", "compiler",
    "driver",
)  # fmt: skip
_FAMILY = re.compile(r"product = (\w+)")


@dataclass(frozen=True)
class Tuned:
    """The fastest schedule of one layer and number of tokens.

    spec:        of the program that was measured, a `LinearSpec` or another one.
    schedule:    the attribute `#nm_tile.schedule<...>`.
    us, model_us, dense_us:  microseconds of this schedule, of the model's choice (NaN
                 where that was not measured), and of the dense product in torch.
    candidates:  schedules that were measured.
    wrong:       schedules whose results were wrong: faults of the compiler.
    names:       the layers of a model, or the functions of a program, that have it.
    """

    spec: Spec
    tokens: int
    schedule: str
    us: float
    model_us: float
    dense_us: float
    candidates: int
    wrong: Tuple[str, ...] = ()
    names: Tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The kind of kernels, such as wgmma_sp; "" for a schedule that says none."""
        found = _FAMILY.search(self.schedule)
        return found[1] if found else ""


def list_candidates(
    spec: Spec, tokens: int, count: int, gpu: str, options: Sequence[str] = ()
) -> Tuple[Dict[str, Any], List[str]]:
    """The problem as databases have it, and schedules for it: the model's choice, then
    the best ones of all families of kernels, at most `count` in all.

    options:  further ones of nm-compile. Raises CompileError.
    """
    (product,) = list_products(spec.mlir(), gpu, [tokens], options, count)
    ranked = sorted(product["candidates"], key=lambda one: one["predicted_us"])
    best = [one["schedule"] for one in ranked[: max(1, count // 2)]]
    # The first of each family, for where the model is wrong about all of one.
    firsts = {one["family"]: one["schedule"] for one in reversed(ranked)}
    rest = [one["schedule"] for one in ranked]
    return product["tuning"], list(dict.fromkeys([*best, *firsts.values(), *rest]))[
        :count
    ]


def read_problems(database: PathLike) -> List[Dict[str, Any]]:
    """The problems that a database has entries of; none where there is no file.

    Raises ValueError for a line that is no JSON.
    """
    try:
        with open(database, encoding="utf-8") as file:
            entries = [json.loads(line) for line in file if line.strip()]
    except FileNotFoundError:
        return []
    return [{k: v for k, v in one.items() if k not in _MEASURED} for one in entries]


def compile_as(
    spec: Spec,
    tokens: int,
    gpu: str,
    problem: Dict[str, Any],
    schedule: str,
    options: Sequence[str] = (),
) -> Optional[Program]:
    """The program with that schedule, or None where it cannot be compiled.

    The compiler takes the model's choice where a schedule is not legal: its program
    would be timed under the name of another one.
    """
    entry = {**problem, "schedule": schedule, "us": 1.0, "spread": 0.0}
    entry.update(dense_us=0.0, compiler="", driver="")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "one.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        try:
            program = compile(
                spec, gpu=gpu, tokens=[tokens], options=options, tuned=[path],
                use_cache=False,
            )  # fmt: skip
        except CompileError:
            return None
    taken = [one["schedule"] for one in program.manifest["products"]]
    return program if taken == [schedule] else None


def _measure(
    layer: MeasuredLayer,
    tokens: int,
    gpu: str,
    problem: Dict[str, Any],
    schedules: Sequence[str],
    pool: ThreadPoolExecutor,
    own: TunableLayer,
) -> Tuple[Dict[str, Any], Tuned]:
    """An entry, and what was found."""
    spec = own.spec
    x, others, y, want = layer.operands(tokens)
    programs = pool.map(
        lambda one: compile_as(spec, tokens, gpu, problem, one, own.options), schedules
    )
    dense = layer.dense_operands(tokens)
    names, graphs, wrong = [], [Graph(layer.torch, layer.dense, *dense)], []
    for schedule, program in zip(schedules, programs):
        if program is None:
            continue
        layers = sparse_layers(program, layer.packed, x, others)
        y.fill_(float("nan"))
        layers[0](x, y)
        if not layer.is_right(y, want):
            wrong.append(schedule)
            continue
        names.append(schedule)
        graphs.append(Graph(layer.torch, layers, x, y))
    if not names:
        raise RuntimeError(
            f"no schedule of {spec} with {tokens} tokens gives a right result: "
            f"{len(wrong)} of {len(schedules)} are wrong, others do not compile"
        )
    dense_times, *times = take_turns(graphs)
    medians = [statistics.median(one) for one in times]
    best = min(range(len(names)), key=medians.__getitem__)
    spread = (max(times[best]) - min(times[best])) / medians[best]
    entry = {
        **problem,
        "schedule": names[best],
        "us": medians[best] * 1e6,
        "spread": spread,
        "dense_us": statistics.median(dense_times) * 1e6,
        "compiler": library.version(),
        "driver": driver_version(),
    }
    found = Tuned(
        spec,
        tokens,
        names[best],
        entry["us"],
        medians[0] * 1e6 if names[0] == schedules[0] else float("nan"),
        entry["dense_us"],
        len(names),
        tuple(wrong),
        own.names,
    )
    return entry, found


def tune(
    layers: Any,
    tokens: Sequence[int],
    database: PathLike,
    gpu: str,
    candidates: int = 12,
    minutes: Optional[float] = None,
    seed: int = 0,
    encoding: Union[Encoding, str, None] = None,
) -> Iterator[Tuned]:
    """Measures schedules of layers on GPU 0, and adds the fastest ones to a database.

    layers:      one or several `LinearSpec`, a module of torch, a checkpoint, a .mlir
                 file or MLIR text, as `find_tunable` takes them; or what that has found
                 already. It warns of layers that are not tuned.
    tokens:      numbers of tokens, each of which is a problem of its own; none: those
                 that programs for any number of tokens have kernels for.
    database:    a file of lines of JSON, which is made if there is none. Problems that
                 it has entries of are skipped, so that a search can go on where another
                 one ended.
    gpu:         h100 or h200: the name of GPU 0 in databases.
    candidates:  schedules to measure for each problem, at most.
    minutes:     after which no further problem is begun.
    seed:        of weights and activations.
    encoding:    the pattern that dense layers of a model or checkpoint are to get.

    Yields what was found for each problem, as it is written. Needs torch. Raises
    ValueError for what cannot be measured or a database that is none, CheckpointError,
    OSError, CompileError, and RuntimeError where no schedule is right.
    """
    import torch

    known = read_problems(database)
    begun = time.monotonic()
    tunable = find_tunable(layers, tokens, gpu, encoding)
    if tunable is not layers and tunable.skipped:
        warnings.warn(str(tunable), stacklevel=2)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for own in tunable.layers:
            layer: Optional[MeasuredLayer] = None
            for count in own.tokens:
                if minutes is not None and time.monotonic() - begun > 60 * minutes:
                    return
                problem, schedules = list_candidates(
                    own.spec, count, candidates, gpu, own.options
                )
                if problem in known:
                    continue
                if own.storage and own.storage != problem["storage"]:
                    warnings.warn(
                        f"{own.spec} is not tuned for {count} tokens: kernels for "
                        f"these read the weight as {problem['storage']}, and those "
                        f"for any number as {own.storage}",
                        stacklevel=2,
                    )
                    continue
                layer = layer or MeasuredLayer(torch, own.spec, seed)
                entry, found = _measure(
                    layer, count, gpu, problem, schedules, pool, own
                )
                with open(database, "a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
                known.append(problem)
                yield found

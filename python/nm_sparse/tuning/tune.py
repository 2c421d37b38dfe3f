# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search for the fastest schedules of layers, by measurement (docs/Tuning.md).

The cost model ranks schedules; the best of each family of kernels are compiled in
parallel, compared with the product in float64, and timed in turns with the dense layer
of torch. The fastest one becomes a line of a database.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from .. import compiler
from ..bindings import library
from ..compiler import CompileError
from ..encoding import Encoding
from ..layers.specs import LinearSpec
from ..pruning.prune import prune
from ..runtime.program import Program, compile
from ..tensors.packed_tensor import pack
from .times import Graph, dense_layers, draw, driver_version, sparse_layers, take_turns

PathLike = Union[str, "os.PathLike[str]"]
# The largest relative error of a result, by the type that it is rounded to.
TOLERANCES = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 1e-4}
# The fields of an entry that were measured; the others say the problem.
_MEASURED = ("schedule", "us", "spread", "dense_us", "compiler", "driver")


@dataclass(frozen=True)
class Tuned:
    """The fastest schedule of one layer and number of tokens.

    us, model_us, dense_us:  of this schedule, of the model's choice, and of torch.
    candidates:              schedules that were measured.
    wrong:                   schedules whose results were wrong: faults of the compiler.
    """

    spec: LinearSpec
    tokens: int
    schedule: str
    us: float
    model_us: float
    dense_us: float
    candidates: int
    wrong: Tuple[str, ...] = ()


def list_candidates(
    spec: LinearSpec, tokens: int, count: int, gpu: str
) -> Tuple[Dict[str, Any], List[str]]:
    """The problem as databases have it, and schedules for it: the model's choice, then
    the best ones of all families of kernels, at most `count` in all."""
    arguments = ["-", "-o", "-", f"--gpu={gpu}", f"--tokens={tokens}"]
    text = compiler.run([*arguments, f"--candidates={count}"], spec.mlir()).text
    (product,) = json.loads(text)
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
    spec: LinearSpec, tokens: int, gpu: str, problem: Dict[str, Any], schedule: str
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
                spec, gpu=gpu, tokens=[tokens], tuned=[path], use_cache=False
            )
        except CompileError:
            return None
    taken = [one["schedule"] for one in program.manifest["products"]]
    return program if taken == [schedule] else None


class _Layer:
    """A layer with a random weight, on a GPU."""

    def __init__(self, torch: Any, spec: LinearSpec, gpu: str, seed: int) -> None:
        self.torch, self.spec, self.gpu, self.seed = torch, spec, gpu, seed
        encoding = Encoding.parse(spec.encoding)
        drawn = draw(torch, spec.shape, spec.inputs, spec.dtype, seed)
        self.weight = prune(drawn, encoding)
        self.packed = pack(self.weight, encoding)
        self.dense = dense_layers(torch, self.weight)

    def measure(
        self,
        tokens: int,
        problem: Dict[str, Any],
        schedules: Sequence[str],
        pool: ThreadPoolExecutor,
    ) -> Tuple[Dict[str, Any], Tuned]:
        """An entry, and what was found."""
        torch, spec = self.torch, self.spec
        x = draw(torch, (tokens, spec.inputs), 1, spec.dtype, self.seed + tokens)
        want = x.double() @ self.weight.double().T
        y = torch.empty(tokens, spec.outputs, dtype=x.dtype, device=x.device)
        programs = pool.map(
            lambda one: compile_as(spec, tokens, self.gpu, problem, one), schedules
        )
        names, graphs, wrong = [], [Graph(torch, self.dense, x, y)], []
        for schedule, program in zip(schedules, programs):
            if program is None:
                continue
            layers = sparse_layers(program, self.packed, x)
            y.fill_(float("nan"))
            layers[0](x, y)
            error = float((y.double() - want).norm() / want.norm())
            if not error <= TOLERANCES[spec.dtype]:
                wrong.append(schedule)
                continue
            names.append(schedule)
            graphs.append(Graph(torch, layers, x, y))
        if not names:
            raise RuntimeError(
                f"no schedule of {spec} with {tokens} tokens gives a right result: "
                f"{len(wrong)} of {len(schedules)} are wrong, others do not compile"
            )
        dense, *times = take_turns(graphs)
        medians = [statistics.median(own) for own in times]
        best = min(range(len(names)), key=medians.__getitem__)
        spread = (max(times[best]) - min(times[best])) / medians[best]
        entry = {
            **problem,
            "schedule": names[best],
            "us": medians[best] * 1e6,
            "spread": spread,
            "dense_us": statistics.median(dense) * 1e6,
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
        )
        return entry, found


def tune(
    layers: Iterable[LinearSpec],
    tokens: Sequence[int],
    database: PathLike,
    gpu: str,
    candidates: int = 12,
    minutes: Optional[float] = None,
    seed: int = 0,
) -> Iterator[Tuned]:
    """Measures schedules of layers on GPU 0, and adds the fastest ones to a database.

    layers:      without bias and activation, of f16, bf16 or f32.
    tokens:      numbers of tokens, each of which is a problem of its own.
    database:    a file of lines of JSON, which is made if there is none. Problems that
                 it has entries of are skipped, so that a search can go on where another
                 one ended.
    gpu:         h100 or h200: the name of GPU 0 in databases.
    candidates:  schedules to measure for each problem, at most.
    minutes:     after which no further problem is begun.
    seed:        of weights and activations.

    Yields what was found for each problem, as it is written. Needs torch. Raises
    ValueError for a layer that cannot be measured or a database that is none,
    CompileError, and RuntimeError where no schedule is right.
    """
    import torch

    known = read_problems(database)
    begun = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for spec in layers:
            if spec.bias or spec.activation != "none" or spec.dtype not in TOLERANCES:
                raise ValueError(
                    f"{spec} cannot be tuned: legal are layers of "
                    f"{', '.join(TOLERANCES)} without bias and activation"
                )
            layer: Optional[_Layer] = None
            for count in tokens:
                if minutes is not None and time.monotonic() - begun > 60 * minutes:
                    return
                problem, schedules = list_candidates(spec, count, candidates, gpu)
                if problem in known:
                    continue
                layer = layer or _Layer(torch, spec, gpu, seed)
                entry, found = layer.measure(count, problem, schedules, pool)
                with open(database, "a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
                known.append(problem)
                yield found

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tune`: the fastest schedules of a layer, by measurement on this machine's GPU."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, List

from ..bindings.library import device_gpu
from ..layers.specs import LinearSpec
from ..tuning.times import TYPES, count_gpus
from ..tuning.tune import Tuned, tune
from .common import (
    OK,
    USAGE,
    CommandError,
    add_encoding,
    add_json,
    print_json,
    print_table,
    progress,
    read_counts,
    read_encoding,
    read_shape,
    require_gpu,
)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "tune",
        help="measure schedules of a layer on a GPU, for a database",
        description="Measures schedules of y = x W^T beside the dense product in "
        "torch, and adds the fastest ones to a database that --tuned and "
        "NM_SPARSE_TUNED name (docs/Tuning.md). Needs a GPU and torch.",
    )
    add_encoding(parser)
    parser.add_argument(
        "--shape", type=read_shape, required=True, action="append",
        metavar="K=INPUTS,N=OUTPUTS", help="may be given again",
    )  # fmt: skip
    parser.add_argument("--dtype", choices=tuple(TYPES), default="f16")
    parser.add_argument(
        "--tokens", type=read_counts, default=[1, 16, 64, 256, 1024, 4096],
        metavar="LIST", help="1,16,64,256,1024,4096",
    )  # fmt: skip
    parser.add_argument(
        "--database", type=Path, required=True, metavar="FILE",
        help="entries are added to; problems that it has are skipped",
    )  # fmt: skip
    parser.add_argument("--candidates", type=int, default=12, metavar="N",
                        help="schedules to measure for each problem (12)")  # fmt: skip
    parser.add_argument("--minutes", type=float, metavar="M",
                        help="after which no further problem is begun")  # fmt: skip
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    encoding = read_encoding(args)
    if args.candidates < 1:
        raise CommandError(f"--candidates is {args.candidates}: legal are 1 and more",
                           USAGE)  # fmt: skip
    require_gpu(count_gpus())
    gpu = device_gpu()
    if gpu is None:
        raise CommandError("GPU 0 has no name in databases: legal are h100 and h200")
    layers = [
        LinearSpec(encoding.mlir(), outputs, inputs, args.dtype)
        for inputs, outputs in args.shape
    ]
    search = tune(
        layers, args.tokens, args.database, gpu, args.candidates, args.minutes
    )
    total = len(layers) * len(args.tokens)
    found: List[Tuned] = list(progress(search, "problems", total))
    report(found, args)
    wrong = [schedule for one in found for schedule in one.wrong]
    if wrong:
        raise CommandError(
            f"{len(wrong)} schedules gave wrong results and were left out; the first "
            f"one is {wrong[0]}: please report this"
        )
    return OK


def report(found: List[Tuned], args: argparse.Namespace) -> None:
    rows = [
        {
            "inputs": one.spec.inputs,
            "outputs": one.spec.outputs,
            "tokens": one.tokens,
            "us": one.us,
            "model_us": None if math.isnan(one.model_us) else one.model_us,
            "dense_us": one.dense_us,
            "candidates": one.candidates,
            "schedule": one.schedule,
        }
        for one in found
    ]
    if args.json:
        print_json({"database": str(args.database), "tuned": rows})
        return
    columns = ("inputs", "outputs", "tokens", "us", "model_us", "dense_us")
    print_table(
        [name.replace("_", " ") for name in columns],
        [[row[name] for name in columns] for row in rows],
    )
    print(f"{len(rows)} entries are new in {args.database}")

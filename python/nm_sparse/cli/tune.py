# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tune`: the fastest schedules of layers and models, by measurement on this machine's
GPU."""

from __future__ import annotations

import argparse
import math
import statistics
from pathlib import Path
from typing import Any, List, Optional, Tuple, Union

from ..bindings.library import device_gpu
from ..layers.specs import LinearSpec
from ..tuning.sources import find_tunable
from ..tuning.times import TYPES, count_gpus
from ..tuning.tunable import Tunable
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

TOKENS = [1, 16, 64, 256, 1024, 4096]
OWN = "own"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "tune",
        help="measure schedules of layers or a model on a GPU, for a database",
        description="Measures schedules of y = x W^T beside the dense product in "
        "torch, and adds the fastest ones to a database that --tuned and "
        "NM_SPARSE_TUNED name (docs/Tuning.md): of the layers of a checkpoint, of the "
        "products of a program, or of layers of some shapes. Needs a GPU and torch.",
    )
    parser.add_argument(
        "model", nargs="?", metavar="MODEL",
        help="a .safetensors file, an index of several, a model's folder, or a .mlir "
        "file; in place of --shape",
    )  # fmt: skip
    add_encoding(parser, is_needed=False)
    parser.add_argument(
        "--shape", type=read_shape, action="append",
        metavar="K=INPUTS,N=OUTPUTS", help="with --encoding; may be given again",
    )  # fmt: skip
    parser.add_argument("--dtype", choices=tuple(TYPES), help="of --shape (f16)")
    parser.add_argument(
        "--tokens", type=_read_tokens, default=TOKENS, metavar="LIST",
        help="1,16,64,256,1024,4096; own: those that programs for any number of "
        "tokens have kernels for",
    )  # fmt: skip
    parser.add_argument("--gpu", help="h100 or h200, which GPU 0 must be")
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


def _read_tokens(text: str) -> List[int]:
    """Numbers, or none for those of programs, for argparse."""
    return [] if text == OWN else read_counts(text)


def run(args: argparse.Namespace) -> int:
    check(args)
    require_gpu(count_gpus())
    gpu = device_gpu()
    if gpu is None:
        raise CommandError("GPU 0 has no name in databases: legal are h100 and h200")
    if args.gpu not in (None, gpu):
        raise CommandError(f"--gpu is {args.gpu}, and GPU 0 is {gpu}: legal is that, "
                           "which is measured", USAGE)  # fmt: skip
    layers, total = find_layers(args, gpu)
    search = tune(
        layers, args.tokens, args.database, gpu, args.candidates, args.minutes
    )
    found: List[Tuned] = []
    try:
        for one in progress(search, "problems", total):
            found.append(one)
    except KeyboardInterrupt:
        report(found, layers, args)
        raise CommandError(
            f"interrupted; the same command goes on with {args.database}"
        ) from None
    report(found, layers, args)
    wrong = [schedule for one in found for schedule in one.wrong]
    if wrong:
        raise CommandError(
            f"{len(wrong)} schedules gave wrong results and were left out; the first "
            f"one is {wrong[0]}: please report this"
        )
    return OK


def check(args: argparse.Namespace) -> None:
    """Raises CommandError where options do not fit each other."""
    if args.candidates < 1:
        raise CommandError(f"--candidates is {args.candidates}: legal are 1 and more",
                           USAGE)  # fmt: skip
    if (args.model is None) == (args.shape is None):
        raise CommandError(
            "legal is a MODEL, or the --shape and the --encoding of layers", USAGE
        )
    if args.shape is not None and args.encoding is None:
        raise CommandError("--shape needs an --encoding", USAGE)
    if args.model is not None and args.dtype is not None:
        raise CommandError("--dtype is that of --shape, and a MODEL has its own: leave "
                           "out one of them", USAGE)  # fmt: skip
    given = [o for o in ("block", "dim", "order") if getattr(args, o) is not None]
    if args.encoding is None and given:
        raise CommandError(f"--{given[0]} is given without --encoding", USAGE)


def find_layers(
    args: argparse.Namespace, gpu: str
) -> Tuple[Union[Tunable, List[LinearSpec]], Optional[int]]:
    """What is tuned, and how many problems it has; None where that is not known."""
    encoding = None if args.encoding is None else read_encoding(args)
    if args.model is None:
        assert encoding is not None
        layers = [
            LinearSpec(encoding.mlir(), outputs, inputs, args.dtype or "f16")
            for inputs, outputs in args.shape
        ]
        return layers, len(layers) * len(args.tokens) or None
    if not Path(args.model).exists():
        raise CommandError(
            f"MODEL is {args.model!r}, which is not there: legal is a .safetensors "
            "file, an index of several, a model's folder, or a .mlir file",
            USAGE,
        )
    path = Path(args.model)
    found = find_tunable(path, args.tokens, gpu, encoding, progress=True)
    if not found.layers:
        raise CommandError(f"{args.model} has nothing to tune\n{found}".rstrip())
    return found, found.problems


def report(found: List[Tuned], layers: Any, args: argparse.Namespace) -> None:
    rows = [
        {
            "layers": list(one.names),
            "inputs": one.spec.inputs,
            "outputs": one.spec.outputs,
            "tokens": one.tokens,
            "us": one.us,
            "model_us": None if math.isnan(one.model_us) else one.model_us,
            "dense_us": one.dense_us,
            "candidates": one.candidates,
            "family": one.family,
            "schedule": one.schedule,
        }
        for one in found
    ]
    skipped = dict(layers.skipped) if isinstance(layers, Tunable) else {}
    if args.json:
        database = str(args.database)
        print_json({"database": database, "tuned": rows, "skipped": skipped})
        return
    print_table(
        ["layer", "tokens", "dense us", "model us", "tuned us", "family"],
        [
            [_called(one), row["tokens"], row["dense_us"], row["model_us"], row["us"],
             row["family"]]
            for one, row in zip(found, rows)
        ],
    )  # fmt: skip
    if skipped:
        print(layers)
    if found:
        print(summary(found))
    print(f"{len(rows)} entries are new in {args.database}")


def _called(one: Tuned) -> str:
    """The layer that was measured, and how many are alike."""
    if not one.names:
        return f"K={one.spec.inputs},N={one.spec.outputs}"
    others = len(one.names) - 1
    return one.names[0] + (f" and {others} others" if others else "")


def summary(found: List[Tuned]) -> str:
    """Geometric means over all problems."""
    mean = statistics.geometric_mean
    dense = mean(one.dense_us / one.us for one in found)
    text = f"tuned schedules are {dense:.2f} times as fast as dense layers"
    known = [one for one in found if not math.isnan(one.model_us)]
    if known:
        model = mean(one.model_us / one.us for one in known)
        text += f", and {model:.2f} times as the model's choice"
    return f"{text} (geometric means of {len(found)} problems)"

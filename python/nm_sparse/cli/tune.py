# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tune`: the fastest schedules of layers and models, by measurement on this machine's
GPU."""

from __future__ import annotations

import argparse
import math
import statistics
from pathlib import Path
from typing import Any, List, Optional

from ..bindings.library import device_gpu
from ..layers.layer_text import SCALED
from ..layers.specs import LinearSpec
from ..tuning.sources import find_tunable
from ..tuning.tunable import Tunable
from ..tuning.tune import DEVICES, Tuned, tune
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
from .times import TYPES, count_gpus

TOKENS = [1, 16, 64, 256, 1024, 4096]
OWN = "own"
_MEASURED = ("us", "model_us", "dense_us", "mj", "dense_mj")


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "tune",
        help="measure schedules of layers or a model on a GPU, for a database",
        description="Measures schedules of y = x W^T beside the dense product of "
        "cuBLAS, and adds the fastest ones to a database that --tuned and "
        "NM_SPARSE_TUNED name (docs/Tuning.md): of the layers of a checkpoint, of the "
        "products of a program, or of layers of some shapes.",
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
    parser.add_argument(
        "--dtype", choices=(*TYPES, *SCALED),
        help="of --shape (f16); results of 8-bit layers are bf16",
    )  # fmt: skip
    parser.add_argument(
        "--tokens", type=_read_tokens, default=TOKENS, metavar="LIST",
        help="1,16,64,256,1024,4096; own: those that programs for any number of "
        "tokens have kernels for",
    )  # fmt: skip
    parser.add_argument("--gpu", help="h100 or h200, which GPU 0 must be; with "
                        "--device emulate, that kernels are for (h200)")  # fmt: skip
    parser.add_argument(
        "--database", type=Path, metavar="FILE",
        help="entries are added to; problems that it has are skipped",
    )  # fmt: skip
    parser.add_argument(
        "--candidates", type=int, default=12, metavar="N",
        help="schedules to measure for each problem at first (12)",
    )  # fmt: skip
    parser.add_argument(
        "--neighbours", type=int, default=4, metavar="N",
        help="schedules to measure then, which differ from the best in one field (4)",
    )  # fmt: skip
    parser.add_argument(
        "--objective", choices=("time", "energy", "edp"), default="time",
        help="what the best schedule has least of (time); edp: energy times time",
    )  # fmt: skip
    parser.add_argument("--minutes", type=float, metavar="M",
                        help="after which no further problem is begun")  # fmt: skip
    parser.add_argument(
        "--sample-ms", type=int, default=400, metavar="N",
        help="milliseconds of samples for the first schedules, and for the others "
        "(400)",
    )  # fmt: skip
    parser.add_argument(
        "--lock", type=Path, metavar="FILE",
        help="searches that name the same file take times one after another",
    )  # fmt: skip
    parser.add_argument(
        "--device", choices=DEVICES, default="cuda",
        help="emulate: results of all candidates are checked in the emulator, and "
        "nothing is written",
    )  # fmt: skip
    add_json(parser)
    parser.set_defaults(run=run)


def _read_tokens(text: str) -> List[int]:
    """Numbers, or none for those of programs, for argparse."""
    return [] if text == OWN else read_counts(text)


def run(args: argparse.Namespace) -> int:
    check(args)
    gpu = choose_gpu(args)
    tunable = find_products(args, gpu)
    search = tune(
        tunable, args.tokens, args.database, gpu, args.candidates, args.minutes,
        neighbours=args.neighbours, objective=args.objective, sample_ms=args.sample_ms,
        lock=args.lock, device=args.device,
    )  # fmt: skip
    found: List[Tuned] = []
    try:
        for one in progress(search, "problems", len(tunable.products)):
            found.append(one)
    except KeyboardInterrupt:
        report(found, tunable, args)
        raise CommandError(
            "interrupted; nothing is written"
            if args.device == "emulate"
            else f"interrupted; the same command goes on with {args.database}"
        ) from None
    except (RuntimeError, ValueError) as error:
        report(found, tunable, args)
        raise CommandError(str(error)) from None
    report(found, tunable, args)
    wrong = [schedule for one in found for schedule in one.wrong]
    if wrong:
        raise CommandError(
            f"{len(wrong)} schedules gave wrong results and were left out; the first "
            f"one is {wrong[0]}: please report this"
        )
    failed = [one for one in found if one.failure]
    if failed:
        raise CommandError(f"{len(failed)} problems have no schedule; of the first one "
                           f"is said: {failed[0].failure}")  # fmt: skip
    return OK


def choose_gpu(args: argparse.Namespace) -> str:
    """The name of GPU 0 in databases."""
    if args.device == "emulate":
        return args.gpu or "h200"
    require_gpu(count_gpus())
    gpu = device_gpu()
    if gpu is None:
        raise CommandError("GPU 0 has no name in databases: legal are h100 and h200")
    if args.gpu not in (None, gpu):
        raise CommandError(f"--gpu is {args.gpu}, and GPU 0 is {gpu}: legal is that, "
                           "which is measured", USAGE)  # fmt: skip
    return gpu


def check(args: argparse.Namespace) -> None:
    """Raises CommandError where options do not fit each other."""
    for name, least in (("candidates", 1), ("neighbours", 0), ("sample_ms", 1)):
        value = getattr(args, name)
        if value < least:
            raise CommandError(
                f"--{name.replace('_', '-')} is {value}: legal are {least} and more",
                USAGE,
            )
    if args.minutes is not None and not args.minutes >= 0:
        raise CommandError(f"--minutes is {args.minutes}: legal are 0 and more", USAGE)
    if args.database is None and args.device == "cuda":
        raise CommandError("--database FILE is missing: entries are added to it", USAGE)
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


def find_products(args: argparse.Namespace, gpu: str) -> Tunable:
    """What is tuned."""
    encoding = None if args.encoding is None else read_encoding(args)
    source: Any = None
    if args.model is None:
        assert encoding is not None
        source = [
            LinearSpec(
                encoding.mlir(),
                outputs,
                inputs,
                args.dtype or "f16",
                result="bf16" if args.dtype in SCALED else None,
            )  # fmt: skip
            for inputs, outputs in args.shape
        ]
        encoding = None
    elif Path(args.model).exists():
        source = Path(args.model)
    else:
        raise CommandError(
            f"MODEL is {args.model!r}, which is not there: legal is a .safetensors "
            "file, an index of several, a model's folder, or a .mlir file",
            USAGE,
        )
    try:
        found = find_tunable(
            source, args.tokens, gpu, encoding, progress=True, objective=args.objective
        )
    except ValueError as error:
        raise CommandError(str(error), USAGE) from None
    if not found.products:
        what = args.model or "--shape"
        raise CommandError(f"{what} has nothing to tune\n{found}".rstrip())
    return found


def report(found: List[Tuned], tunable: Tunable, args: argparse.Namespace) -> None:
    rows = [
        {
            "layers": list(one.names),
            "inputs": one.product.inputs,
            "outputs": one.product.outputs,
            "tokens": one.tokens,
            **{name: _known(getattr(one, name)) for name in _MEASURED},
            "candidates": one.measured,
            "family": one.family,
            "schedule": one.schedule,
            "failure": one.failure,
        }
        for one in found
    ]
    if args.json:
        database = None if args.database is None else str(args.database)
        skipped = dict(tunable.skipped)
        print_json({"database": database, "tuned": rows, "skipped": skipped})
        return
    print_table(
        ["layer", "tokens", "dense us", "model us", "tuned us", "right", "family"],
        [
            [_called(one), row["tokens"], row["dense_us"], row["model_us"], row["us"],
             row["candidates"], row["family"] or row["failure"]]
            for one, row in zip(found, rows)
        ],
    )  # fmt: skip
    if tunable.skipped:
        print(tunable)
    timed = [one for one in found if one.schedule]
    if timed:
        print(summary(timed))
    if args.device == "cuda":
        print(f"{len(timed)} entries are new in {args.database}")


def _known(value: float) -> Optional[float]:
    return None if math.isnan(value) else value


def _called(one: Tuned) -> str:
    """The layer that was measured, and how many are alike."""
    others = len(one.names) - 1
    return one.names[0] + (f" and {others} others" if others else "")


def summary(found: List[Tuned]) -> str:
    """Geometric means over all problems."""

    def mean_over(name: str) -> float:
        """Of times under this name, over those of the best schedules; NaN if none."""
        speeds = [getattr(one, name) / one.us for one in found]
        known = [speed for speed in speeds if not math.isnan(speed)]
        return statistics.geometric_mean(known) if known else math.nan

    parts = []
    for name, than in (
        ("dense_us", "dense layers"),
        ("model_us", "the model's choice"),
    ):
        mean = mean_over(name)
        if not math.isnan(mean):
            parts.append(f"{mean:.2f} times as fast as {than}")
    said = " and ".join(parts) or "measured"
    return f"tuned schedules are {said} (geometric means of {len(found)} problems)"

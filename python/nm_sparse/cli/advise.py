# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`advise`: which pattern suits a layer, by predicted time and by what it keeps."""

from __future__ import annotations

import argparse
import sys
from typing import Any, List

from .common import DTYPES, OK, USAGE, CommandError, add_json, read_shape
from .explain import add_target, target_arguments


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "advise",
        help="compare patterns for a layer",
        description="Compares patterns for a layer of some shape, or for a trained "
        "weight, of which it says what each pattern keeps (docs/Advise.md).",
    )
    layer = parser.add_argument_group("the layer")
    layer.add_argument("--shape", type=read_shape, metavar="K=INPUTS,N=OUTPUTS")
    layer.add_argument("--checkpoint", metavar="MODEL", help="with --weight")
    layer.add_argument("--weight", metavar="NAME", help="of the checkpoint")
    layer.add_argument(
        "--gram", metavar="FILE[:NAME]", help="X^T X of inputs that it has seen"
    )
    parser.add_argument("--dtype", choices=DTYPES, help="f16, or that of the weight")
    parser.add_argument(
        "--pattern", action="append", default=[], metavar="P",
        help="in place of the usual ones, as '8:32, block = [1, 64]'; may be given "
        "again",
    )  # fmt: skip
    add_target(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def compiler_arguments(args: argparse.Namespace) -> List[str]:
    """The command line of nm-compile that says the same."""
    if (args.shape is None) == (args.checkpoint is None):
        raise CommandError("legal is --shape, or --checkpoint with --weight", USAGE)
    if (args.checkpoint is None) != (args.weight is None):
        raise CommandError("--checkpoint and --weight need each other", USAGE)
    arguments = ["--advise"]
    if args.shape is not None:
        arguments.append(f"--shape=K={args.shape[0]},N={args.shape[1]}")
    options = (
        ("checkpoint", args.checkpoint),
        ("weight", args.weight),
        ("gram", args.gram),
        ("type", args.dtype),
        *(("pattern", pattern) for pattern in args.pattern),
    )
    arguments += [f"--{name}={value}" for name, value in options if value is not None]
    return arguments + target_arguments(args)


def run(args: argparse.Namespace) -> int:
    from .. import compiler

    arguments = compiler_arguments(args)
    files = ("-",) if args.json else ()
    output = compiler.run(arguments + ["--json=-"] * args.json, None, files)
    if output.warnings:
        print(output.warnings, file=sys.stderr)
    text = output.files["-"].decode() if args.json else output.text
    print(text if text.endswith("\n") else f"{text}\n", end="")
    return OK

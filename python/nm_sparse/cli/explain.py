# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`explain`: what each stage of the compiler did to a program, and why this kernel."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, List

from .common import (
    DTYPES,
    OK,
    USAGE,
    CommandError,
    add_encoding,
    add_json,
    print_json,
    read_counts,
    read_encoding,
    read_shape,
)

FILES = ("kernels.ptx", "manifest.json")  # by these names, in memory


def add_target(parser: argparse.ArgumentParser) -> None:
    """The options that say for which GPU and how many tokens is compiled."""
    group = parser.add_argument_group("what is compiled for")
    group.add_argument("--chip", help="such as sm_90a, the default")
    group.add_argument("--gpu", help="h100 or h200: whose rates choose kernels")
    group.add_argument(
        "--tokens", type=read_counts, metavar="LIST", help="such as 1,16,2048"
    )


def target_arguments(args: argparse.Namespace) -> List[str]:
    """The same as options of nm-compile."""
    arguments = []
    if args.chip:
        arguments.append(f"--chip={args.chip}")
    if args.gpu:
        arguments.append(f"--gpu={args.gpu}")
    if args.tokens:
        arguments.append(f"--tokens={','.join(map(str, args.tokens))}")
    return arguments


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "explain",
        help="say what the compiler does with a program or a layer",
        description="Compiles a program, or a linear layer, and prints what each stage "
        "did.",
    )
    parser.add_argument(
        "program", nargs="?", help="MLIR (docs/Input.md), - for standard input"
    )
    add_encoding(parser, is_needed=False)
    layer = parser.add_argument_group("a layer, in place of a program")
    layer.add_argument("--shape", type=read_shape, metavar="K=INPUTS,N=OUTPUTS")
    layer.add_argument("--dtype", choices=DTYPES[:3], default="f16")
    add_target(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def read_program(args: argparse.Namespace) -> str:
    """The MLIR text of the program, or of the layer."""
    if (args.program is None) == (args.shape is None):
        raise CommandError(
            "legal is a program, or the --shape and the --encoding of a layer", USAGE
        )
    if args.program is not None:
        if args.encoding is not None:
            raise CommandError(
                "--encoding is that of a layer, and a program has its own: leave out "
                "one of them",
                USAGE,
            )
        if args.program == "-":
            return sys.stdin.read()
        return Path(args.program).read_text(encoding="utf-8")
    if args.encoding is None:
        raise CommandError("--shape needs an --encoding", USAGE)
    from ..layers.specs import LinearSpec

    inputs, outputs = args.shape
    encoding = read_encoding(args)
    return LinearSpec(encoding.mlir(), outputs, inputs, args.dtype).mlir()


def run(args: argparse.Namespace) -> int:
    from .. import compiler

    text = read_program(args)
    arguments = ["-", "-o", FILES[0], "--manifest", FILES[1], "--explain"]
    output = compiler.run([*arguments, *target_arguments(args)], text, FILES)
    if output.warnings:
        print(output.warnings, file=sys.stderr)
    if args.json:
        program = args.program or "layer"
        print_json({"program": program, "explanation": output.text.splitlines()})
    else:
        print(output.text, end="")
    return OK

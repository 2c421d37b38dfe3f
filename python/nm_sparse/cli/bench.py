# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`bench`: a sparse layer against the dense one of torch, on this machine's GPU."""

from __future__ import annotations

import argparse
from typing import Any, Dict, List

from ..encoding import Encoding
from ..layers.specs import LinearSpec
from ..pruning.prune import prune
from ..runtime.program import compile as compile_program
from ..tensors.packed_tensor import pack
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
from .times import (
    DEVICE,
    TYPES,
    count_gpus,
    dense_layers,
    draw,
    seconds_per_call,
    sparse_layers,
)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "bench",
        help="time a sparse layer against the dense one, on a GPU",
        description="Times y = x W^T of a random weight with a pattern, and of the "
        "dense one in torch. Needs a GPU and torch.",
    )
    add_encoding(parser)
    parser.add_argument(
        "--shape", type=read_shape, required=True, metavar="K=INPUTS,N=OUTPUTS"
    )
    parser.add_argument("--dtype", choices=tuple(TYPES), default="f16")
    parser.add_argument(
        "--tokens", type=read_counts, default=[1, 16, 256, 2048], metavar="LIST",
        help="1,16,256,2048",
    )  # fmt: skip
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    encoding = read_encoding(args)
    if encoding.is_free:
        raise CommandError("--encoding is free: legal is n:m, in one level or two",
                           USAGE)  # fmt: skip
    require_gpu(count_gpus())
    try:
        import torch
    except ImportError:
        raise CommandError(
            "torch is not installed, whose dense layer is the other side: install torch"
        ) from None
    rows = measure(torch, encoding, args)
    name = torch.cuda.get_device_name()
    inputs, outputs = args.shape
    if args.json:
        print_json(
            {
                "gpu": name,
                "encoding": str(encoding),
                "inputs": inputs,
                "outputs": outputs,
                "dtype": args.dtype,
                "times": rows,
            }
        )
        return OK
    print(f"{inputs} inputs, {outputs} outputs, {args.dtype}, {encoding}, on {name}")
    print_table(
        ["tokens", "us", "dense us", "speed", "error"],
        [[row[key] for key in ("tokens", "us", "dense_us", "speed", "error")]
         for row in rows],
    )  # fmt: skip
    return OK


def measure(
    torch: Any, encoding: Encoding, args: argparse.Namespace
) -> List[Dict[str, Any]]:
    """For each number of tokens: the times in microseconds, the dense one's over the
    sparse one's, and the error relative to the dense result's norm."""
    inputs, outputs = args.shape
    dtype = getattr(torch, TYPES[args.dtype])
    weight = draw(torch, (outputs, inputs), inputs, args.dtype, seed=0)
    weight = prune(weight, encoding)
    program = compile_program(LinearSpec(encoding.mlir(), outputs, inputs, args.dtype))
    packed = pack(weight, encoding)
    sides = (sparse_layers(program, packed, weight), dense_layers(torch, weight))
    rows = []
    for tokens in progress(args.tokens, "sizes"):
        x, results, times = (
            draw(torch, (tokens, inputs), inputs, args.dtype, tokens),
            [],
            [],
        )
        for layers in sides:
            y = torch.empty(tokens, outputs, dtype=dtype, device=DEVICE)
            layers[0](x, y)
            results.append(y.double())
            times.append(seconds_per_call(torch, layers, x, y))
        error = (results[0] - results[1]).norm() / results[1].norm()
        rows.append(
            {
                "tokens": tokens,
                "us": times[0] * 1e6,
                "dense_us": times[1] * 1e6,
                "speed": times[1] / times[0],
                "error": float(error),
            }
        )
    return rows

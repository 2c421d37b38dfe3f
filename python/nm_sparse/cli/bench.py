# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`bench`: a sparse layer against the dense one of torch, on this machine's GPU.

Both are captured in CUDA graphs, so that launching takes no part. Each call of a graph
reads another copy of the weight, as many as do not fit in the L2 cache together: in a
model, a weight is not there when its layer begins.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
from typing import Any, Callable, Dict, List, Sequence

from ..encoding import Encoding
from ..pruning.prune import prune
from ..tensors.packed_tensor import pack
from .common import (
    NO_GPU,
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
)

COLD_BYTES = 1 << 28  # of all copies of a weight, more than any L2 cache has
MOST_COPIES = 64
CALLS, REPEATS, WARM = 20, 15, 3  # in a graph at least, of a graph, before measuring
DEVICE = "cuda"
TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}
Layer = Callable[[Any, Any], Any]  # of x, and of y, which it writes


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


def count_gpus() -> int:
    """GPUs that the driver has; 0 where there is no driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value


def run(args: argparse.Namespace) -> int:
    encoding = read_encoding(args)
    if encoding.is_free:
        raise CommandError("--encoding is free: legal is n:m, in one level or two",
                           USAGE)  # fmt: skip
    if count_gpus() == 0:
        raise CommandError(
            "there is no GPU to measure on: legal is a machine with one; `advise` "
            "predicts times without",
            NO_GPU,
        )
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
    generator = torch.Generator(DEVICE).manual_seed(0)

    def draw(*shape: int) -> Any:
        numbers = torch.randn(*shape, device=DEVICE, generator=generator)
        return (numbers / inputs**0.5).to(dtype)

    weight = prune(draw(outputs, inputs), encoding)
    sides = (sparse_layers(weight, encoding, args), dense_layers(torch, weight))
    rows = []
    for tokens in progress(args.tokens, "sizes"):
        x, results, times = draw(tokens, inputs), [], []
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


def _copies(size: int) -> int:
    """How many weights of `size` bytes are not in a cache when their turn comes."""
    return min(-(-COLD_BYTES // max(size, 1)), MOST_COPIES)


def dense_layers(torch: Any, weight: Any) -> List[Layer]:
    """The layer of torch, of several copies of its weight."""
    size = weight.numel() * weight.element_size()
    weights = [weight.clone().T for _ in range(_copies(size))]
    return [lambda x, y, w=w: torch.mm(x, w, out=y) for w in weights]


def sparse_layers(
    weight: Any, encoding: Encoding, args: argparse.Namespace
) -> List[Layer]:
    """The compiled layer, of several copies of its packed weight."""
    from ..layers.specs import LinearSpec
    from ..runtime.program import compile as compile_program

    inputs, outputs = args.shape
    spec = LinearSpec(encoding.mlir(), outputs, inputs, args.dtype)
    program, packed = compile_program(spec), pack(weight, encoding)
    weights = [
        program.prepare(packed, like=weight) for _ in range(_copies(packed.nbytes))
    ]
    return [lambda x, y, w=w: program(x, w, y) for w in weights]


def seconds_per_call(torch: Any, layers: Sequence[Layer], x: Any, y: Any) -> float:
    """The median over replays of a graph of calls, each of the next layer."""
    calls = max(CALLS, len(layers))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        layers[0](x, y)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in range(calls):
            layers[call % len(layers)](x, y)
    times = []
    for repeat in range(WARM + REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        if repeat >= WARM:
            times.append(start.elapsed_time(end) / 1e3 / calls)
    return statistics.median(times)

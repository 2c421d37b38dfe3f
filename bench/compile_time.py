#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what compilation costs with two builds, in turns.

usage: compile_time.py BEFORE AFTER --out RESULT.json [--rounds N] [--only TEXT]

BEFORE and AFTER are build folders, or folders with an nm-compile. Times are CPU
seconds of the whole process, user and system, on all its threads: wall time says
little where others use the machine. The two builds take turns; `ratio` is the
median over the rounds of the time after by that before. Programs that the build
before is too slow for are measured with the one after alone.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time

from layers import Layer
from run import save

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIDES = ("before", "after")

LINEAR = """\
func.func @{name}(%x: tensor<?x{k}xf16>, %w: tensor<{k}x{n}xf16, #w>,
    %init: tensor<?x{n}xf32>) -> tensor<?x{n}xf32> {{
  %y = linalg.matmul ins(%x, %w : tensor<?x{k}xf16>, tensor<{k}x{n}xf16, #w>)
      outs(%init : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
  return %y : tensor<?x{n}xf32>
}}
"""

STEP = """\
  %y{next} = linalg.generic {{indexing_maps = [#same, #same],
      iterator_types = ["parallel", "parallel"]}}
      ins(%y{number} : tensor<?x1024xf32>) outs(%empty : tensor<?x1024xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.{op} %a, %c : f32
    linalg.yield %s : f32
  }} -> tensor<?x1024xf32>
"""

# (outputs, contraction) of the products of a transformer.
KINDS = [
    (6144, 4096),
    (4096, 4096),
    (28672, 4096),
    (4096, 14336),
    (5120, 5120),
    (13824, 5120),
    (5120, 13824),
]
ENCODING = "#w = #nm_sparse.encoding<8:32, block = [1, 128]>\n"


def layers(count):
    """`count` layers of the seven kinds, each a function."""
    return ENCODING + "".join(
        LINEAR.format(name=f"layer_{i}", n=KINDS[i % 7][0], k=KINDS[i % 7][1])
        for i in range(count)
    )


def distinct_layers(count):
    """`count` layers of as many sizes, each a function."""
    draw = random.Random(256)
    sizes = draw.sample([(n, k) for n in range(4, 65) for k in range(4, 65)], count)
    return ENCODING + "".join(
        LINEAR.format(name=f"layer_{i}", n=128 * n, k=64 * k)
        for i, (n, k) in enumerate(sizes)
    )


def equal_layers(count):
    n, k = KINDS[1]
    return ENCODING + "".join(
        LINEAR.format(name=f"layer_{i}", n=n, k=k) for i in range(count)
    )


def elementwise(count):
    """A product and that many elementwise operations on its result."""
    steps = "".join(
        STEP.format(number=i, next=i + 1, op=("addf", "mulf", "maximumf")[i % 3])
        for i in range(count)
    )
    return f"""{ENCODING}#same = affine_map<(m, n) -> (m, n)>
func.func @f(%x: tensor<?x1024xf16>, %w: tensor<1024x1024xf16, #w>)
    -> tensor<?x1024xf32> {{
  %zero = arith.constant 0.0 : f32
  %c = arith.constant 1.5 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x1024xf16>
  %empty = tensor.empty(%m) : tensor<?x1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x1024xf32>)
      -> tensor<?x1024xf32>
  %y0 = linalg.matmul ins(%x, %w : tensor<?x1024xf16>, tensor<1024x1024xf16, #w>)
      outs(%init : tensor<?x1024xf32>) -> tensor<?x1024xf32>
{steps}  return %y{count} : tensor<?x1024xf32>
}}
"""


# Which only the later one of two builds may know.
ANY = ("--tokens", "auto")


@dataclasses.dataclass
class Program:
    name: str
    source: str
    arguments: tuple = ("--tokens", "2048")
    rounds: int = 0  # of all, when 0
    sides: tuple = SIDES


def programs():
    single = {
        "linear example": (ROOT / "examples/linear.mlir").read_text("utf-8"),
        "mlp example": (ROOT / "examples/mlp.mlir").read_text("utf-8"),
    }
    for kind in ("token", "feature", "mixed"):
        for epilogue in ("product", "gelu"):
            layer = Layer("f16", "50", 128, kind, (2048, 4096, 4096), epilogue)
            single[f"f16 {kind} {epilogue}"] = layer.text()
    single["f32"] = Layer("f32", "75", 32, "feature", (2048, 4096, 4096)).text()
    token = single["f16 token product"]
    return [
        *(Program(name, source) for name, source in single.items()),
        Program("64 equal layers", equal_layers(64), rounds=1),
        Program("256 equal layers", equal_layers(256), rounds=3),
        Program("256 distinct layers", distinct_layers(256), rounds=3),
        Program("7 kinds of layers", layers(7)),
        Program("560 layers of 7 kinds", layers(560), sides=("after",)),
        Program("1000 elementwise operations", elementwise(1000), rounds=3),
        Program("f16 token product, any tokens", token, ANY, sides=("after",)),
        Program("7 kinds of layers, any tokens", layers(7), ANY, sides=("after",)),
        Program("1000 operations, any tokens", elementwise(1000), ANY, 3, ("after",)),
    ]


def tool_of(folder):
    for path in (folder / "bin" / "nm-compile", folder / "nm-compile"):
        if path.is_file():
            return path.resolve()
    sys.exit(f"compile_time.py: no nm-compile in {folder} or {folder}/bin")


def compile_once(tool, program, folder):
    """(CPU seconds, wall seconds, MB at most) of one compilation."""
    source = folder / "in.mlir"
    source.write_text(program.source, "utf-8")
    command = [str(tool), str(source), "-o", str(folder / "out.ptx")]
    started = time.monotonic()
    process = subprocess.Popen(
        [*command, *program.arguments], stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"compile_time.py: {tool} fails on '{program.name}'")
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def measure(tools, program, rounds, folder):
    samples = {side: [] for side in program.sides}
    for number in range(program.rounds or rounds):
        turn = program.sides if number % 2 == 0 else program.sides[::-1]
        for side in turn:
            samples[side].append(compile_once(tools[side], program, folder))
    found = {"program": program.name, "rounds": program.rounds or rounds}
    for side, taken in samples.items():
        cpu, wall, memory = (statistics.median(s) for s in zip(*taken))
        found[side] = {"cpu_s": cpu, "wall_s": wall, "memory_mb": memory}
    if len(samples) == 2:
        pairs = zip(*(samples[side] for side in SIDES))
        found["ratio"] = statistics.median(a[0] / b[0] for b, a in pairs)
    return found


def describe(found):
    times = ", ".join(
        f"{side} {found[side]['cpu_s']:.3f} s" for side in SIDES if side in found
    )
    ratio = f", ratio {found['ratio']:.3f}" if "ratio" in found else ""
    return f"{found['program']:32} {times}{ratio}"


def commit_of(tool, folder):
    manifest = folder / "manifest.json"
    source = folder / "in.mlir"
    source.write_text(equal_layers(1), "utf-8")
    command = [tool, source, "-o", folder / "out.ptx", "--manifest", manifest]
    subprocess.run(list(map(str, command)), check=True, stderr=subprocess.DEVNULL)
    return json.loads(manifest.read_text("utf-8"))["compiler"]["commit"]


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="programs with this in their name")
    arguments = parser.parse_args(argv)
    tools = dict(zip(SIDES, map(tool_of, (arguments.before, arguments.after))))
    done = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        commits = {side: commit_of(tool, folder) for side, tool in tools.items()}
        for program in programs():
            if arguments.only in program.name:
                done.append(measure(tools, program, arguments.rounds, folder))
                print(describe(done[-1]), flush=True)
    header = {
        "command": "bench/compile_time.py",
        "commits": commits,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    save(arguments.out, header, done, "programs")
    return 0


if __name__ == "__main__":
    sys.exit(main())

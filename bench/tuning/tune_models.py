#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes or continues the database of measured schedules that comes with the compiler,
share/nm_sparse/tuned/<gpu>.jsonl: layers of published models (model_layers.py), as
nm-tune measures them.

What comes first is measured first: patterns and divisions in the order in which they
are given. What the database has is not measured again, so that the next call goes on.
Several searches run side by side on each GPU, and take times one after another: the
driver compiles the kernels of a process one by one.

Usage: tune_models.py --tool NM-TUNE --database FILE --minutes M [--gpus N]
           [--processes P] [--encodings E ...] [--divisions D ...] [--models NAME ...]
           [--types T ...] [--tokens LIST]
"""

import argparse
import concurrent.futures
import os
import queue
import re
import subprocess
import sys
import time

import model_layers

TOKENS = "1,16,32,64,128,256,512,1024,2048,4096"
ENCODINGS = ["2:4", "8:32, block = [1, 128]", "16:32, block = [1, 128]", "8:16"]
# Layers of one call: their products are prepared together.
TOGETHER = 4


def window_of(encoding):
    """M of the innermost N:M, of which the inputs of a layer are a multiple."""
    return int(re.findall(r"\d+:(\d+)", encoding)[-1])


def list_tasks(arguments):
    """(shapes, encoding, type, tokens) of each call, in order."""
    tasks = []
    for division in arguments.divisions:
        shapes = model_layers.layers(arguments.models, [division])
        for encoding in arguments.encodings:
            legal = [one for one in shapes if one[0] % window_of(encoding) == 0]
            for element in arguments.types:
                tasks += [
                    (legal[at : at + TOGETHER], encoding, element, arguments.tokens)
                    for at in range(0, len(legal), TOGETHER)
                ]
    return tasks


class Searches:
    """Calls of nm-tune, as many at a time as there are places on GPUs."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.end = time.monotonic() + 60 * arguments.minutes
        self.places = queue.SimpleQueue()
        for _ in range(arguments.processes):
            for gpu in range(arguments.gpus):
                self.places.put(gpu)

    def run(self, task):
        """What nm-tune says last, and its status."""
        shapes, encoding, element, tokens = task
        own, gpu = self.arguments, self.places.get()
        minutes = (self.end - time.monotonic()) / 60
        try:
            if minutes <= 0.02:
                return "no time is left", 0
            command = [*own.tool.split(), "--database", own.database]
            command += ["--encoding", encoding, "--type", element]
            command += ["--tokens", tokens, "--minutes", f"{minutes:.3f}"]
            command += ["--sample-ms", str(own.sample_ms)]
            command += ["--candidates", str(own.candidates)]
            command += ["--neighbours", str(own.neighbours)]
            command += ["--lock", f"{own.database}.lock{gpu}"]
            for inputs, outputs in shapes:
                command += ["--shape", f"K={inputs},N={outputs}"]
            environment = {**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu)}
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False
            )
        finally:
            self.places.put(gpu)
        lines = done.stdout.splitlines()
        faults = [
            line for line in lines if re.match(r"    (WRONG|not run|FAILED)", line)
        ]
        last = [done.stderr.strip() or (lines or [""])[-1]]
        return "\n".join(faults + last), done.returncode

    def run_all(self, tasks):
        """Says what each call said; the worst status."""
        workers, worst = self.arguments.gpus * self.arguments.processes, 0
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for task, (said, status) in zip(tasks, pool.map(self.run, tasks)):
                shapes, encoding, element, tokens = task
                print(f"{encoding}, {element}, {shapes}, {tokens}: {said}", flush=True)
                worst = max(worst, status)
        return worst


def parser_of(description):
    """Of what all scripts that call nm-tune are told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tool", required=True, help="the words that call nm-tune")
    parser.add_argument("--database", required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--processes", type=int, default=5, help="on each GPU")
    parser.add_argument("--candidates", type=int, default=12)
    parser.add_argument("--neighbours", type=int, default=4)
    parser.add_argument("--sample-ms", type=int, default=150)
    parser.add_argument("--encodings", nargs="+", default=ENCODINGS)
    return parser


def main(argv=None):
    parser = parser_of(__doc__.split("\n")[0])
    parser.add_argument("--types", nargs="+", default=["bf16"])
    parser.add_argument("--tokens", default=TOKENS)
    parser.add_argument(
        "--divisions", nargs="+", type=int, default=list(model_layers.DIVISIONS)
    )
    parser.add_argument("--models", nargs="+", choices=model_layers.MODELS)
    arguments = parser.parse_args(argv)
    return Searches(arguments).run_all(list_tasks(arguments))


if __name__ == "__main__":
    sys.exit(main())

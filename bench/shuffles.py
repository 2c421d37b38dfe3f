#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What shuffled outputs keep of weights, beside other patterns of equal density.

Prunes the weights (outputs x inputs) of a safetensors file, and weights of random
numbers, to each pattern: single elements anywhere, n of every m of them, and blocks of
outputs as they are and shuffled. Writes the shares of the sums of |w| and of w^2 that
are kept, and the seconds that pruning takes; and the seconds of the search alone for
large weights (--time), with panels of 64 outputs.

Usage: shuffles.py [CHECKPOINT] --out OUT.json [--seed S] [--sizes N,K ...]
                   [--time N,K ...]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from nm_sparse import (  # noqa: E402
    Encoding,
    Level,
    kept_magnitude,
    prune,
    search_order,
)
from nm_sparse.files.tensor_file import TensorFile  # noqa: E402

LEAST_SIZE = 128  # of both dimensions of a weight of a file
WIDTHS = (32, 64, 128)


def patterns():
    """(name, density, encoding), of weights of outputs x inputs."""
    for density, n, m in ((0.5, 2, 4), (0.25, 1, 4)):
        kept = int(32 * density)
        yield "free", density, Encoding.free(dim=1)
        yield f"{n}:{m}", density, Encoding(n, m, dim=1)
        for bn in WIDTHS:
            for order in ("identity", "shuffled"):
                text = f", block = [1, {bn}]" + ", order = shuffled" * (
                    order == "shuffled"
                )
                block = (1, bn)
                yield f"free{text}", density, Encoding.free(block, 1, order)
                yield f"{kept}:32{text}", density, Encoding(kept, 32, block, 1, order)
    for bn in WIDTHS:
        for order in ("identity", "shuffled"):
            e = Encoding(4, 8, (1, bn), 1, order, Level(2, 4))
            yield f"[4:8, block = [1, {bn}]], [2:4], {order}", 0.25, e


def random_weights(outputs, inputs, rng):
    """Weights by the name of how they are made, all outputs x inputs."""
    yield "Gaussian", rng.standard_normal((outputs, inputs))
    # Magnitudes of 16 factors that outputs and inputs share, and long tails.
    left = rng.standard_normal((outputs, 16)) / 4
    right = rng.standard_normal((16, inputs))
    tails = rng.standard_t(5, (outputs, inputs))
    yield "shared factors", tails * np.exp(0.7 * left @ right)
    # Groups of 64 outputs whose magnitudes are alike, in some order.
    groups = np.exp(0.7 * rng.standard_normal((-(-outputs // 64), inputs)))
    alike = groups.repeat(64, axis=0)[:outputs] * rng.standard_t(5, (outputs, inputs))
    yield "groups of 64", alike[rng.permutation(outputs)]


def file_weights(path):
    """Each matrix of at least LEAST_SIZE outputs and inputs, embeddings left out."""
    file = TensorFile(path)
    for name, tensor in sorted(file.tensors.items()):
        if (
            len(tensor.shape) == 2
            and min(tensor.shape) >= LEAST_SIZE
            and tensor.dtype in ("F64", "F32", "F16")
            and "embeddings" not in name
        ):
            yield name, file.read(name)


def measure(weight):
    """A list of what each pattern keeps."""
    rows = []
    for name, density, encoding in patterns():
        start = time.monotonic()
        share = {"density": density} if encoding.is_free else {}
        pruned = prune(weight, encoding, **share)
        seconds = time.monotonic() - start
        first, second = kept_magnitude(weight, pruned)
        rows.append(
            {
                "pattern": name,
                "density": density,
                "sum_abs": round(first, 5),
                "sum_squares": round(second, 5),
                "seconds": round(seconds, 2),
            }
        )
    return rows


def mean(reports):
    """The mean of the rows of several weights."""
    rows = []
    for row in zip(*reports):
        numbers = ("sum_abs", "sum_squares", "seconds")
        means = {key: round(sum(r[key] for r in row) / len(row), 5) for key in numbers}
        rows.append({**row[0], **means})
    return rows


def time_search(outputs, inputs, seed):
    """Seconds to find an order, by pattern."""
    weight = np.random.default_rng(seed).standard_normal((outputs, inputs), np.float32)
    seconds = {}
    for name, encoding, density in (
        ("free", Encoding.free((1, 64), 1, "shuffled"), 0.25),
        ("8:32", Encoding(8, 32, (1, 64), 1, "shuffled"), None),
    ):
        start = time.monotonic()
        search_order(weight, encoding, density=density)
        seconds[name] = round(time.monotonic() - start, 1)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", nargs="?", type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", nargs="*", default=["1024,1024"])
    parser.add_argument("--time", nargs="*", default=[])
    options = parser.parse_args()
    runs = []
    if options.checkpoint:
        reports = {n: measure(w) for n, w in file_weights(options.checkpoint)}
        about = {"weights": options.checkpoint.stem, "matrices": len(reports)}
        runs.append({**about, "kept": mean(list(reports.values()))})
    for size in options.sizes:
        outputs, inputs = map(int, size.split(","))
        rng = np.random.default_rng(options.seed)
        for name, weight in random_weights(outputs, inputs, rng):
            about = {"weights": name, "outputs": outputs, "inputs": inputs}
            runs.append({**about, "kept": measure(weight.astype(np.float32))})
    times = []
    for size in options.time:
        outputs, inputs = map(int, size.split(","))
        seconds = time_search(outputs, inputs, options.seed)
        times.append({"outputs": outputs, "inputs": inputs, "seconds": seconds})
        print(times[-1])
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    report = {
        "commit": commit,
        "seed": options.seed,
        "weights": runs,
        "search": times,
    }
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for run in runs:
        print(run["weights"], {k: v for k, v in run.items() if k not in "weights kept"})
        for row in run["kept"]:
            print(
                f"  {row['density']:.2f} {row['pattern']:55} |w| {row['sum_abs']:.4f}"
                f"  w^2 {row['sum_squares']:.4f}  {row['seconds']:.1f} s"
            )


if __name__ == "__main__":
    main()

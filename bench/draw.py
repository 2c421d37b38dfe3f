#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws layers at random, by a seed: what the cost model is fitted to, and judged
by. Writes one MLIR file for each layer, and `list.txt` for `nm-run --batch`, which
runs in OUT.

A layer has any number of tokens, sizes as models have them and some that none
has, and every pattern, layout, type and result of layers.py. The same seed draws the
same layers on every machine. With --candidates, each is run with up to C
schedules: the one that the model chooses, first, the best of some other families
of kernels, and some of the next best, so that the choice can be compared with what
it was chosen from.

--domain says which layers: those whose panels tensor cores gather rows for
(panels, the default; wide panels, of 64 outputs and more; f32 panels), element-wise
ones and narrow panels, which are stored as bitmaps (elements), a few tokens of all of
them (decode, and f32 decode), 2:4 or V:N:M.

With --energy, the first schedule of each layer is measured in joules, too.

Usage: draw.py --seed S --count N --out OUT [--domain D]
               [--candidates C --bin FOLDER] [--energy [REPEATS]]
"""

import argparse
import concurrent.futures
import dataclasses
import json
import math
import os
import pathlib
import random
import subprocess
import sys

import shapes
from layers import Layer
from make_configs import line, write_list

# What is drawn, with its weight.
TYPES = {"f16": 4, "bf16": 4, "f32": 2}
LENGTHS = {
    "f32": {1: 1, 4: 2, 32: 3},
    "f16": {32: 1, 64: 2, 128: 2},
    "bf16": {32: 1, 64: 2, 128: 2},
}
ELEMENTS = {"f32": {1: 1}, "f16": {1: 6, 2: 1, 4: 1}, "bf16": {1: 6, 2: 1, 4: 1}}
DECODED = {
    "f32": {1: 2, 4: 1, 32: 1},
    "f16": {1: 4, 8: 1, 32: 2, 128: 1},
    "bf16": {1: 4, 8: 1, 32: 2, 128: 1},
}
SPARSITIES = {"50": 5, "75": 3, "87.5": 2}
WINDOWS = {32: 6, 16: 3, 8: 1, 4: 1}
LAYOUTS = {"token": 5, "feature": 4, "mixed": 1}
EPILOGUES = {"product": 5, "gelu": 3, "plain": 2}

HALVES = {"f16": {1: 1}, "bf16": {1: 1}}
PANELS = {"f16": {64: 1, 128: 2}, "bf16": {64: 1, 128: 2}}
# V:N:M keeps 4 rows of so many.
OUTER = {5: 1, 8: 2, 10: 1, 16: 1}

MOST_TOKENS, MOST_DECODED = 8192, 64


@dataclasses.dataclass(frozen=True)
class Domain:
    """Lengths of panels by type, and other choices with their weights."""

    lengths: dict
    most_tokens: int = MOST_TOKENS
    sparsities: dict = dataclasses.field(default_factory=lambda: SPARSITIES)
    windows: dict = dataclasses.field(default_factory=lambda: WINDOWS)
    outer: dict = dataclasses.field(default_factory=lambda: {0: 1})


DOMAINS = {
    "panels": Domain(LENGTHS),
    "wide panels": Domain(PANELS),
    "elements": Domain(ELEMENTS),
    "decode": Domain(DECODED, MOST_DECODED),
    "f32 panels": Domain({"f32": LENGTHS["f32"]}),
    "f32 decode": Domain({"f32": LENGTHS["f32"]}, MOST_DECODED),
    "2:4": Domain(HALVES, MOST_TOKENS, {"50": 1}, {4: 1}),
    "v:n:m": Domain(PANELS, MOST_TOKENS, {"50": 1}, {4: 1}, OUTER),
}
LEAST_SIZE, MOST_SIZE = 768, 14336
# Hidden and inner sizes, and those of attention, of published models.
MODEL_SIZES = (
    [768, 1024, 1152, 1280, 1536, 1600, 1792, 2048, 2304, 2560, 2880, 3072, 3200]
    + [3584, 4096, 4304, 4544, 4608, 4864, 5120, 5376, 5632, 6144, 6656, 6912, 7168]
    + [7680, 8192, 8960, 9216, 9728, 10240, 11008, 12288, 13696, 13824, 14336]
)
# One in so many sizes is a multiple of this.
UNITS = {"model": 9, 128: 4, 64: 4, 8: 2, 1: 1}

# Dense, 20 ms of an H200; a weight of half a gigabyte.
MOST_FLOPS = {"f16": 14e12, "bf16": 14e12, "f32": 1e12}
MOST_BYTES = 500e6

# Schedules that are predicted to take longer than this are not run.
SLOWEST = 4.0


class Draw:
    """Only random() of Python's generator gives the same numbers in all of its
    versions."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def pick(self, weights):
        """A key of `weights`."""
        left = self.random() * sum(weights.values())
        keys = list(weights)
        while len(keys) > 1 and left >= weights[keys[0]]:
            left -= weights[keys.pop(0)]
        return keys[0]

    def log_uniform(self, low, high, unit=1):
        """A multiple of `unit` from `low` to `high`, which are multiples too."""
        low, high = low // unit, high // unit
        exponent = self.random() * math.log((high + 1) / low)
        return unit * min(high, int(low * math.exp(exponent)))

    def size(self):
        unit = self.pick(UNITS)
        if unit == "model":
            return self.pick(dict.fromkeys(MODEL_SIZES, 1))
        return self.log_uniform(LEAST_SIZE, MOST_SIZE, unit)

    def tokens(self, most):
        """Any number, or one that leaves rows of feature-major activations aligned."""
        unit = self.pick({1: 1, 8: 1})
        return self.log_uniform(unit, most, unit)

    def layer(self, domain="panels"):
        of = DOMAINS[domain]
        types = {type_: TYPES[type_] for type_ in of.lengths}
        type_, sparsity = self.pick(types), self.pick(of.sparsities)
        whole = {w: of.windows[w] for w in of.windows if is_whole(sparsity, w)}
        return Layer(
            type_,
            sparsity,
            self.pick(of.lengths[type_]),
            self.pick(LAYOUTS),
            (self.tokens(of.most_tokens), self.size(), self.size()),
            self.pick(EPILOGUES),
            self.pick(whole),
            self.pick(of.outer),
        )

    def sample(self, items, count):
        """`count` of `items`, in a random order."""
        return sorted(items, key=lambda _: self.random())[:count]


def is_whole(sparsity, window):
    return window * (100 - float(sparsity)) % 100 == 0


def is_small(layer):
    m, n, k = layer.shape
    element = 4 if layer.type == "f32" else 2
    return 2 * m * n * k <= MOST_FLOPS[layer.type] and n * k * element <= MOST_BYTES


def draw(seed, count, domain="panels"):
    """`count` layers, no two of them equal. `seed` is a number or a text."""
    source, layers = Draw(seed), {}
    while len(layers) < count:
        layer = source.layer(domain)
        if is_small(layer):
            layers[layer] = None
    return list(layers)


def embedding_flags(layer, product):
    """What says that the weight is stored as 2:4, where the model has it so: a
    schedule does not."""
    stored = product["encoding"].startswith("#nm_sparse.encoding<2:4")
    return " --embed always" if stored and layer.pattern != "2:4" else ""


def rank(layer, tool, layout, count):
    """The `count` best schedules of each family, the best of all first, where the
    activations are laid out as `layout` says, and the flags that they need. `tool` are
    the words that call nm-compile."""
    command = [*tool, "-", "--candidates", str(count), "--layout", layout]
    command += ["--tokens", str(layer.shape[0])]
    done = subprocess.run(
        command, input=layer.text(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"draw.py: {layer.name}: {done.stderr.strip()}")
    (product,) = json.loads(done.stdout)
    return product["candidates"], embedding_flags(layer, product)


def choose(ranked, count, source):
    """Up to `count` of the schedules in `ranked`: the first, the best of some of the
    other families, and some of the next best of all."""
    first = ranked[0]
    limit = SLOWEST * first["predicted_us"]
    others = {c["schedule"]: c for c in ranked if c["predicted_us"] <= limit}
    del others[first["schedule"]]
    others = sorted(others.values(), key=lambda c: c["predicted_us"])
    families = {}
    for candidate in others:
        if candidate["family"] != first["family"]:
            families.setdefault(candidate["family"], candidate)
    chosen = [first, *source.sample(families.values(), (count - 1) // 2)]
    rest = [c for c in others if c not in chosen]
    left = count - len(chosen)
    chosen += source.sample(rest[: 2 * left], left)
    return [candidate["schedule"] for candidate in chosen]


def candidates(layer, tool, count):
    """Schedules of `layer`, the model's choice first, and the flags that they need.
    Of activations that the compiler would transpose, also those that read them as
    they are."""
    ranked, flags = rank(layer, [str(tool)], "auto", count)
    if layer.layout == "token":
        kept, kept_flags = rank(layer, [str(tool)], "keep", 1)
        ranked += kept if kept_flags == flags else []
    return choose(ranked, count, Draw(layer.name)), flags


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--domain", choices=DOMAINS, default="panels")
    parser.add_argument("--candidates", type=int, default=1, metavar="C")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--bench-ms", type=int, default=60)
    parser.add_argument(
        "--energy",
        type=int,
        nargs="?",
        const=2,
        default=0,
        metavar="REPEATS",
        help="loops of a second, of each layer and of its dense product; default 2",
    )
    arguments = parser.parse_args(argv)
    layers = draw(arguments.seed, arguments.count, arguments.domain)
    schedules = {layer: ([None], "") for layer in layers}
    if arguments.candidates > 1:
        tool = arguments.bin / "nm-compile"
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(
                lambda layer: candidates(layer, tool, arguments.candidates), layers
            )
            schedules = dict(zip(layers, found))
    arguments.out.mkdir(parents=True, exist_ok=True)
    lines = []
    for seed, layer in enumerate(layers):
        path = layer.write(arguments.out).relative_to(arguments.out)
        chosen, needed = schedules[layer]
        for number, schedule in enumerate(chosen):
            check = "" if number else "--check "
            flags = f"{check}--bench --bench-ms {arguments.bench_ms} --lock lock"
            flags += needed
            if arguments.energy and not number:
                flags += f" --energy --energy-repeats {arguments.energy}"
            case = shapes.Case(layer, schedule=schedule)
            lines.append(line(case, path, seed, flags))
    write_list(lines, arguments.out)
    print(f"{len(layers)} layers, {len(lines)} runs in {arguments.out}")


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of layers that were drawn from a seed, for `nm-run --batch`."""

import argparse
import pathlib
import random

from families import text


def draw_window(rng):
    """Kernel, strides, dilations and zeros around the image of a convolution: half of
    them the same for both axes and sides."""
    square = rng.random() < 0.5

    def pair(numbers):
        first = rng.choice(numbers)
        return (first, first if square else rng.choice(numbers))

    return {
        "kernel": pair((1, 1, 2, 3, 3, 5)),
        "strides": pair((1, 1, 2, 3)),
        "dilations": pair((1, 1, 1, 2)),
        "low": pair((0, 1, 1, 2)),
        "high": pair((0, 1, 1, 3)),
    }


def run(description, draw, spell=text):
    """A command that draws layers: `draw` makes a case, its number of tokens (of
    dynamic sizes) and flags of a generator, and `spell` its text."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)

    def draw_all():
        for number in range(arguments.count):
            case, tokens, flags = draw(rng)
            yield f"{arguments.seed}-{number}", case, tokens, number, flags

    write(arguments.out, draw_all(), spell)


def write(out, drawn, spell=text):
    """Writes a file for each (name, case, tokens, seed, flags) and `list.txt`."""
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, case, tokens, seed, flags in drawn:
        path = out / f"{name}.mlir"
        path.write_text(spell(case), encoding="utf-8")
        lines.append(f"{path} --check --size m={tokens} --seed {seed} {flags}")
    (out / "list.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} kernels in {out}")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of V:N:M drawn from a seed, with the schedules that the model chooses: as
they are, where there are kernels for that, or stored by another pattern.

usage: level_kernels.py OUT_DIR [--count N] [--seed S]

Writes one MLIR file for each layer and `list.txt` for `nm-run --batch`.
"""

import argparse
import pathlib
import random

import drawn
from families import Case


def draw(rng, embeds):
    others = ("f32", "f8E4M3FN") if embeds else ()
    element = rng.choice(("f16", "bf16", *others))
    epilogues = {"f32": ("none", "relu"), "f8E4M3FN": ("none",)}
    case = Case(
        element,
        4,
        rng.choice((5, 6, 8, 10, 16, 20)),
        rng.choice((1, 30, 32, 64, 96, 128) if embeds else (64, 128, 192, 256)),
        inner="2:4",
        k=rng.randint(1, 900),
        outputs=rng.randint(1, 420),
        dim=rng.randrange(2),
        x_feature_major=rng.random() < 0.5,
        y_feature_major=rng.random() < 0.5,
        batch=rng.choice((0, 0, 0, 2)),
        epilogue=rng.choice(epilogues.get(element, ("none", "cast", "relu"))),
    )
    return case, rng.choice((1, 3, 9, 31, 65, 100, 129, 200, 257))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--embed", choices=("auto", "always", "never"), default="never")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)

    def draw_all():
        for number in range(arguments.count):
            case, tokens = draw(rng, embeds=arguments.embed != "never")
            name = f"{arguments.seed}-{number}"
            flags = f"--device emulate --embed {arguments.embed}"
            yield name, case, tokens, number, flags

    drawn.write(arguments.out, draw_all())


if __name__ == "__main__":
    main()

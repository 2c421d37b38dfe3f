# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles many layers drawn from a seed; each must become a kernel, or be
refused because not even its smallest tile fits the chip.

usage: sweep.py --count N [--seed S] [--ptxas PATH --sample P]

Of each P cases one also goes through ptxas.
"""

import argparse
import concurrent.futures
import os
import random
import sys

from cases import Case, compile_text, text


def draw(rng):
    element = rng.choice(["f32", "f32", "f16", "bf16"])
    n, m = rng.choice(
        [
            (1, 2),
            (2, 4),
            (1, 4),
            (4, 8),
            (16, 32),
            (8, 32),
            (12, 32),
            (4, 32),
            (13, 16),
            (1, 1),
            (3, 7),
            (5, 64),
            (100, 300),
            (512, 1024),
            (128, 1024),
        ]
    )
    if element == "f32":
        panel = rng.choice([1, 1, 4, 7, 8, 24, 32, 32, 64, 100, 128])
    else:
        panel = rng.choice([8, 16, 24, 32, 40, 64, 96, 128, 128, 256, 512])
    batch = rng.choice([0, 0, 0, 0, 3])
    return Case(
        element=element,
        n=n,
        m=m,
        panel=panel,
        tokens=rng.choice([None, None, 1, 7, 64, 77, 333, 4096]),
        k=rng.choice([1, 31, 77, 128, 500, 1000, 1024, 4096]),
        outputs=rng.choice([1, 9, 64, 100, 333, 1000, 1333, 4096]),
        dim=rng.randrange(2),
        x_feature_major=rng.random() < 0.5,
        y_feature_major=rng.random() < 0.3,
        batch=batch,
        shared_weight=batch > 0 and rng.random() < 0.5,
        epilogue=rng.choice(["none", "relu", "gelu", "residual"]),
        chip=rng.choice(["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"]),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ptxas")
    parser.add_argument("--sample", type=int, default=8)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    cases = [draw(rng) for _ in range(options.count)]

    def run(indexed):
        i, case = indexed
        ptxas = options.ptxas if i % options.sample == 0 else None
        return compile_text(text(case), case.chip, ptxas)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(run, enumerate(cases)))
    failed = refused = 0
    for case, outcome in zip(cases, outcomes):
        if "no schedule fits" in outcome.message:
            refused += 1
        elif not outcome.ok and not outcome.spills:
            failed += 1
            print(f"FAILED {case}\n  {outcome.message}")
    print(f"{len(cases)} cases: {failed} failed, {refused} refused")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

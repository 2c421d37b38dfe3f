# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each kind of kernel through ptxas for each chip: none may spill.

usage: chips.py PTXAS
"""

import concurrent.futures
import dataclasses
import os
import sys

from cases import Case, compile_text, schedule, text

LAYERS = {
    "f32 panels of 32": Case("f32", 16, 32, 32),
    "f32 element-wise": Case("f32", 2, 4, 1, k=1024, outputs=1024),
    "f16 feature-major": Case(
        "f16", 8, 32, 128, x_feature_major=True, y_feature_major=True
    ),
    "bf16 token-major": Case("bf16", 16, 32, 64),
    "bias and GELU": Case("f16", 8, 32, 128, epilogue="gelu"),
    "residual": Case(
        "f16",
        4,
        32,
        32,
        4096,
        4096,
        4096,
        x_feature_major=True,
        y_feature_major=True,
        epilogue="residual",
    ),
    "few tokens": Case("f16", 8, 32, 128, tokens=8),
    "split K": Case(
        "f16",
        8,
        32,
        128,
        x_feature_major=True,
        schedule=schedule("mma", (64, 128, 4), (2, 4), split_k=4),
    ),
    "split K, f32, GELU": Case(
        "f32",
        16,
        32,
        32,
        epilogue="gelu",
        schedule=schedule("simt", (64, 64, 1), (1, 2), 2, 4, "copy", "staged"),
    ),
}

# Warps that copy and warps that multiply, which older chips cannot run.
PRODUCERS = {
    "producers": Case(
        "f16",
        8,
        32,
        128,
        x_feature_major=True,
        y_feature_major=True,
        schedule=schedule("mma", (128, 128, 4), (2, 2), producers=4),
    ),
    "producers, two warpgroups, token-major": Case(
        "bf16",
        8,
        32,
        64,
        schedule=schedule("mma", (128, 64, 4), (4, 2), producers=4),
    ),
}

# Products of warpgroups, which only sm_90a has, and what is chosen for it alone.
FEATURE = dict(x_feature_major=True, y_feature_major=True)
WARPGROUPS = {
    "L = 256, 50 %": Case(
        "f16",
        8,
        16,
        256,
        **FEATURE,
        schedule=schedule("wgmma", (128, 256, 8), (1, 8), 4),
    ),
    "L = 128, 25 %": Case(
        "bf16",
        8,
        32,
        128,
        **FEATURE,
        schedule=schedule("wgmma", (256, 128, 8), (1, 8), 4),
    ),
    "L = 64, 37.5 %": Case(
        "f16", 12, 32, 64, **FEATURE, schedule=schedule("wgmma", (256, 128, 4), (1, 8))
    ),
    "GELU": Case(
        "f16",
        4,
        16,
        256,
        **FEATURE,
        epilogue="gelu",
        schedule=schedule("wgmma", (128, 256, 16), (1, 8), 3),
    ),
    "split K and residual": Case(
        "f16",
        2,
        16,
        64,
        **FEATURE,
        epilogue="residual",
        schedule=schedule("wgmma", (128, 128, 16), (1, 8), 3, 2),
    ),
    "f32, split K, producers, GELU": Case(
        "f32",
        16,
        32,
        32,
        **FEATURE,
        epilogue="gelu",
        schedule=schedule("simt", (256, 128, 1), (2, 4), 4, 4, "copy", producers=4),
    ),
    "L = 256, 50 %, producers, persistent": Case(
        "f16",
        8,
        16,
        256,
        **FEATURE,
        schedule=schedule(
            "wgmma", (128, 256, 8), (1, 8), 4, producers=4, persistent=True
        ),
    ),
    "L = 128, 25 %, producers, GELU": Case(
        "bf16",
        4,
        16,
        128,
        **FEATURE,
        epilogue="gelu",
        schedule=schedule("wgmma", (256, 128, 16), (1, 8), 4, producers=4),
    ),
    "token-major": Case(
        "f16", 16, 32, 128, schedule=schedule("wgmma", (128, 128, 4), (1, 8), 3)
    ),
}


CHIPS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
NEW_CHIPS = CHIPS[3:]


def main():
    ptxas = sys.argv[1]
    cases = [
        (name, dataclasses.replace(layer, chip=chip))
        for chip in CHIPS
        for name, layer in (LAYERS | (PRODUCERS if chip in NEW_CHIPS else {})).items()
    ] + list(WARPGROUPS.items())

    def run(named):
        return compile_text(text(named[1]), named[1].chip, ptxas)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(run, cases))
    for (name, case), outcome in zip(cases, outcomes):
        if not outcome.ok:
            print(f"FAILED {case.chip} {name}: {outcome.message}")
    print(f"{sum(o.ok for o in outcomes)} of {len(cases)} without spills")


if __name__ == "__main__":
    main()

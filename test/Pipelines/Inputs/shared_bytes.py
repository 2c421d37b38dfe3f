# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the bytes of shared memory that the cost model counts for a schedule
with those that its kernel is launched with: no less, and no line of 128 more. Two
lines more where tiles may be shared, but come out even.

usage: shared_bytes.py OUT_DIR
"""

import json
import pathlib
import subprocess
import sys

INPUTS = pathlib.Path(__file__).parents[2] / "Integration" / "Emulator" / "Inputs"
sys.path.insert(0, str(INPUTS))
from hidden_order import NAMES  # noqa: E402
from kernels import kernels, text  # noqa: E402

LINE = 128
# Kernels that read bitmaps, copied by threads or by the tensor memory accelerator.
BITMAPS = """
warps-sp-split2-token warps-sp-tokens-feature warps-sp-ring-feature warps-sp-bulk-token
""".split()
# Kernels whose CTAs exchange shares of sums where their tiles were.
CLUSTERS = """
wgmma-cluster3-none-token wgmma-cluster4-residual-feature wgmma-cluster8-relu-token
mma-cluster4-token sp-cluster3-token sp-cluster3-feature sp-cluster2-feature
""".split()


def count(source, folder):
    """Bytes by the model, and of the largest launch."""
    command = ["nm-compile", "-", "--layout=keep", "--tokens=77"]
    asked = subprocess.run(
        [*command, "--candidates=1"],
        input=source,
        capture_output=True,
        text=True,
        check=True,
    )
    manifest = folder / "manifest.json"
    subprocess.run(
        [*command, "-o", str(folder / "kernel.mlir"), "--emit=nvvm"]
        + ["--manifest", str(manifest)],
        input=source,
        text=True,
        check=True,
    )
    product = json.loads(asked.stdout)[0]
    (function,) = json.loads(manifest.read_text("utf-8"))["functions"]
    launches = function["launches"]
    launched = max(int(launch["dynamic_shared_memory"]) for launch in launches)
    chosen = product.get("given") or product["candidates"][0]
    return chosen["shared_bytes"], launched


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    compared = 0
    for name, case in kernels():
        if name not in NAMES + BITMAPS + CLUSTERS and not name.startswith("parts-"):
            continue
        counted, launched = count(text(case), folder)
        compared += 1
        spare = 3 * LINE if "stream" in name else LINE
        if not 0 <= counted - launched < spare:
            print(f"{name}: counted {counted} bytes, launched with {launched}")
    print(f"{compared} kernels compared")


if __name__ == "__main__":
    main()

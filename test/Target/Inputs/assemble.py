"""Compiles one product of each type for each chip to a cubin, and says how many
there were and which of them spill.

Usage: assemble.py OUT_DIR
"""

import json
import pathlib
import subprocess
import sys

out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
count = 0
for kind in ("f32", "f16", "bf16"):
    source = out / f"{kind}.mlir"
    source.write_text(f"""\
#w = #nm_sparse.encoding<8:32, block = [1, 32]>
func.func @f(%x: tensor<?x1024x{kind}>, %w: tensor<1024x1024x{kind}, #w>,
      %y: tensor<?x1024xf32>) -> tensor<?x1024xf32> {{
  %r = linalg.matmul ins(%x,
      %w : tensor<?x1024x{kind}>, tensor<1024x1024x{kind}, #w>)
      outs(%y : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  return %r : tensor<?x1024xf32>
}}
""")
    for chip in ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"):
        manifest = out / f"{kind}_{chip}.json"
        subprocess.run(
            [
                "nm-compile",
                source,
                "-o",
                out / f"{kind}_{chip}.cubin",
                "--chip",
                chip,
                "--tokens",
                "16,2048",
                "--emit",
                "cubin",
                "--manifest",
                manifest,
            ],
            check=True,
        )
        for kernel in json.loads(manifest.read_text())["kernels"]:
            if kernel["spill_bytes"]:
                print("spill:", kind, chip, kernel)
        count += 1
print(count, "assembled")

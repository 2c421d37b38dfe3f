#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a module of many kernels takes to load: functions of C, and IREE.

usage: loads.py prepare FOLDER [--iree-compile TOOL]
       loads.py measure FOLDER --out RESULT.json

The module has a function for each pattern and shape of a product of a block of
Llama-3-8B, with kernels for all numbers of tokens, as machine code. `measure` loads it
in new processes, whose context exists before, with the driver's CUDA_MODULE_LOADING
LAZY (its default) and EAGER.
"""

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from cases import BLOCK, PATTERNS

NAME = "many_kernels"
ROUNDS = 7


def write_layers() -> str:
    """A function for each pattern and shape."""
    text = []
    for pattern in PATTERNS.values():
        for inputs, outputs in dict.fromkeys(BLOCK):
            w = f"tensor<{inputs}x{outputs}xf16, #nm_sparse.encoding<{pattern}>>"
            x, y = f"tensor<?x{inputs}xf16>", f"tensor<?x{outputs}xf32>"
            text.append(f"""func.func @layer{len(text)}(%x: {x}, %w: {w}) -> {y} {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : {x}
  %e = tensor.empty(%m) : {y}
  %z = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %y = linalg.matmul ins(%x, %w : {x}, {w}) outs(%z : {y}) -> {y}
  return %y : {y}
}}
""")
    return "\n".join(text)


def prepare(options: argparse.Namespace) -> None:
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / NAME
    source, model = stem.with_suffix(".mlir"), folder / f"{NAME}.iree.mlir"
    source.write_text(write_layers())

    def run(*command: object) -> None:
        subprocess.run([str(c) for c in command], check=True, stderr=subprocess.PIPE)

    compiler = pathlib.Path(options.bin) / "nm-compile"
    common = [compiler, source, "--object", "cubin"]
    manifest = stem.with_suffix(".c.json")
    run(*common, "--emit", "c", "-o", f"{stem}.c", "--manifest", manifest)
    iree = stem.with_suffix(".iree.json")
    run(
        *(*common, "--emit", "iree", "--weights", "arguments"),
        *("-o", model, "--manifest", iree),
    )
    run(
        *(options.iree_compile, model, "--iree-hal-target-device=cuda"),
        *("--iree-cuda-target=sm_80", "-o", stem.with_suffix(".vmfb")),
    )
    counts = {
        "c": len(json.loads(manifest.read_text())["kernels"]),
        "iree": len(json.loads(iree.read_text())["kernels"]),
    }
    (folder / f"{NAME}.json").write_text(json.dumps(counts))
    for path in (source, model, manifest, iree):
        path.unlink()
    print(counts)


def load_c(folder: pathlib.Path) -> float:
    driver = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    for status in (
        driver.cuInit(0),
        driver.cuDeviceGet(ctypes.byref(device), 0),
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
        driver.cuCtxSetCurrent(context),
    ):
        assert status == 0, status
    code = ctypes.CDLL(str(folder / f"{NAME}.so"))
    start = time.perf_counter()
    status = getattr(code, f"{NAME}_prepare")()
    seconds = time.perf_counter() - start
    assert status == 0, status
    return seconds


def load_iree(folder: pathlib.Path) -> float:
    import iree.runtime as rt

    context = rt.SystemContext(config=rt.Config("cuda"))
    start = time.perf_counter()
    path = str(folder / f"{NAME}.vmfb")
    context.add_vm_module(rt.VmModule.mmap(context.instance, path))
    return time.perf_counter() - start


def measure(options: argparse.Namespace) -> None:
    folder = pathlib.Path(options.folder)
    subprocess.run(
        ["gcc", "-std=c11", "-O1", "-fPIC", "-shared", "-I/usr/local/cuda/include"]
        + [str(folder / f"{NAME}.c"), "-o", str(folder / f"{NAME}.so")]
        + [f"-L{options.driver}", "-lcuda"],
        check=True,
    )
    result = {"kernels": json.loads((folder / f"{NAME}.json").read_text())}
    result["bytes"] = {
        form: (folder / f"{NAME}.{ending}").stat().st_size
        for form, ending in (("c", "so"), ("iree", "vmfb"))
    }
    for mode in ("LAZY", "EAGER"):
        environment = {**os.environ, "CUDA_MODULE_LOADING": mode}
        times: dict = {"c": [], "iree": []}
        for _ in range(ROUNDS):
            for form, found in times.items():
                done = subprocess.run(
                    [sys.executable, __file__, f"load-{form}", str(folder)],
                    check=True,
                    capture_output=True,
                    text=True,
                    env=environment,
                )
                found.append(float(done.stdout.split()[-1]))
        result[mode.lower()] = {
            form: {"median_s": statistics.median(found), "all_s": found}
            for form, found in times.items()
        }
    print(json.dumps(result), flush=True)
    pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("prepare", "measure", "load-c", "load-iree"):
        verbs.add_parser(verb).add_argument("folder")
    one = verbs.choices["prepare"]
    one.add_argument("--bin", default="build/bin")
    one.add_argument("--iree-compile", default="build/venv/bin/iree-compile")
    one = verbs.choices["measure"]
    one.add_argument("--out", required=True)
    one.add_argument("--driver", default="/usr/lib", help="folder of libcuda.so")
    options = parser.parse_args()
    if options.verb.startswith("load-"):
        load = load_c if options.verb == "load-c" else load_iree
        print(load(pathlib.Path(options.folder)))
    else:
        (prepare if options.verb == "prepare" else measure)(options)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the kernels of sparse tensor cores that budgets are for and those that
the emulator runs, and checks in their SASS that metadata keep their registers.

usage: metadata_kernels.py PTXAS NVDISASM [--only TEXT]
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(TESTS / "Pipelines/Inputs"),
    str(TESTS / "Integration/Emulator/Inputs"),
]
import cases  # noqa: E402
import families  # noqa: E402
import kernels  # noqa: E402
from budget_kernels import KERNELS  # noqa: E402
from metadata_registers import report  # noqa: E402


def find_kernels():
    """(name, text, options of nm-compile)"""
    for name, case in KERNELS.items():
        yield name, case.schedule, cases.text(case), ["--tokens=2048"]
    for name, case in kernels.kernels():
        yield name, case.schedule, families.text(case), ["--tokens=77"]


def disassemble(text, options, ptxas, nvdisasm):
    with tempfile.TemporaryDirectory() as folder:
        ptx, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
        command = ["nm-compile", "-", "-o", ptx, "--chip=sm_90a", "--layout=keep"]

        def run(*command, **more):
            done = subprocess.run(command, capture_output=True, text=True, **more)
            if done.returncode:
                sys.exit(f"{command[0]}: {done.stderr}")
            return done.stdout

        run(*command, *options, input=text)
        run(ptxas, "-arch=sm_90a", ptx, "-o", cubin)
        return run(nvdisasm, "-c", cubin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ptxas")
    parser.add_argument("nvdisasm")
    parser.add_argument("--only", default="", help="names that hold this text")
    arguments = parser.parse_args()
    tools = arguments.ptxas, arguments.nvdisasm
    chosen = [
        (name, text, options)
        for name, schedule, text, options in find_kernels()
        if "wgmma_sp" in (schedule or "") and arguments.only in name
    ]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        listings = pool.map(lambda k: disassemble(k[1], k[2], *tools), chosen)
        good = [
            report(name, listing) for (name, _, _), listing in zip(chosen, listings)
        ]
    print(f"{sum(good)} of {len(good)} kernels keep their metadata")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowers kernels with other passes between the passes of the compiler: first
`canonicalize` and `cse`, which rewrite what they may, then one that drops all
discardable attributes. Nothing that a pass leaves to a later one may get lost.

usage: hidden_order.py OUT_DIR [--bin DIR] [--only TEXT] [--jobs N]

Writes the lowered modules, and `list.txt` for `nm-run --batch`.
"""

import argparse
import concurrent.futures
import pathlib
import subprocess
import sys

from kernels import kernels, text

# Kernels of each family of schedules, and with each kind of work around a product.
NAMES = """
simt-token-gather-resident simt-feature-copy-staged simt-stages2-split4
simt-producers-token-gather-resident simt-producers-feature-copy-resident
mma-f16-token-gather-resident mma-f16-feature-copy-resident
mma-bf16-token-copy-staged mma-stages3-split2
mma-producers-token-copy-staged mma-producers-feature-gather-resident
mma-producers-stages2-split2-none mma-producers-stages4-split1-gelu
mma-persistent-split1 mma-persistent-split2 mma-stream-none mma-stream-gelu
mma-tma-bf16-gather-token-result mma-tma-bf16-copy
wgmma-f16-8of16-256-token wgmma-bf16-2of16-64-feature wgmma-bf16-12of32-64-feature
wgmma-residual wgmma-producers-stages2-split1-gelu
wgmma-producers-stages4-split2-none wgmma-tma-stages3-split2-none
wgmma-tokens-by-panel-bf16-gelu-150 wgmma-tma-batch3 simt-relu batch2-shared
""".split()
PIPELINE = "nm-sparse-to-nvvm{chip=sm_90a host-memory=true}"
# Up to here a given schedule is an attribute of linalg's operations. Behind the
# last pass, the module says by an attribute that it has launches; that it is
# missing is an error.
FIRST, LAST = "convert-linalg-to-nm-sparse", "gpu-kernel-outlining"


def split(passes):
    """The passes of a list: commas in (), {} and <> do not end one."""
    depth, found = 0, [""]
    for char in passes:
        depth += (char in "({<") - (char in ")}>")
        if char == "," and depth == 0:
            found.append("")
        else:
            found[-1] += char
    return found


def between(passes, inserted):
    """`passes` with `inserted` in front of each; those of functions one by one."""
    result = []
    for item in passes:
        name, _, nested = item.partition("(")
        if name == "func.func":
            item = f"func.func({','.join(between(split(nested[:-1]), inserted))})"
        result += [*inserted, item]
    return result


def compiled_pipeline(tool):
    """The passes that PIPELINE is."""
    done = subprocess.run(
        [tool, f"--pass-pipeline=builtin.module({PIPELINE})", "--dump-pass-pipeline"],
        input="",
        capture_output=True,
        text=True,
        check=True,
    )
    listed = "".join(line.strip() for line in done.stderr.splitlines())
    return split(listed.partition("builtin.module(")[2].removesuffix(")"))


def lower(tool, source, target, passes):
    """What the tool says, if it fails."""
    command = [tool, source, f"--pass-pipeline=builtin.module({','.join(passes)})"]
    done = subprocess.run([*command, "-o", target], capture_output=True, text=True)
    if not done.returncode:
        return ""
    # Behind each error is the operation, which may be a whole function.
    said = [line for line in done.stderr.splitlines() if "error:" in line]
    return f"{target.name}: {'; '.join(said) or done.stderr[-500:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path())
    parser.add_argument("--only", default="", help="names that hold this text")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    tool = str(arguments.bin / "nm-test-opt")
    passes = compiled_pipeline(tool)
    names = [item.split("{")[0] for item in passes]
    first, last = names.index(FIRST) + 1, names.index(LAST)
    simplified = between(passes[first:], ["canonicalize", "cse"])
    stripped = between(passes[first:last], ["test-strip-discardable"])
    variants = {
        "simplified": passes[:first] + simplified,
        "stripped": passes[:first] + stripped + passes[last:],
    }
    cases = dict(kernels())
    tasks, lines = [], []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name in (name for name in NAMES if arguments.only in name):
            source = arguments.out / f"{name}.mlir"
            source.write_text(text(cases[name]), encoding="utf-8")
            for variant, pipeline in variants.items():
                target = arguments.out / f"{name}.{variant}.mlir"
                tasks.append(pool.submit(lower, tool, source, target, pipeline))
                lines.append(
                    f"{source} --device emulate --check --size m=77 --lowered {target}"
                )
    (arguments.out / "list.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    failed = [task.result() for task in tasks if task.result()]
    print(f"{len(lines)} modules in {arguments.out}, {len(failed)} failed")
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()

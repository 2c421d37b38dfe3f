"""Compiles programs behind each pass that docs/Input.md says may run before ours,
and behind all of them; prints what differs from the program as it is.

Usage: upstream_passes.py NM_OPT PAGE PROGRAM...
"""

import re
import subprocess
import sys

nm_opt, page, *programs = sys.argv[1:]
with open(page, encoding="utf-8") as file:
    text = file.read()
table = text.split("## Passes that may run before")[1].split("These may not")[0]
passes = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def get_pipeline(name):
    """`name` on a module; passes of functions alone are nested."""
    nested = ("linalg-generalize", "linalg-morph", "convert-elementwise")
    return f"func.func({name})" if name.startswith(nested) else name


# Up to where launches are known: what follows sees single kernels.
STAGES = (
    "front",
    "specialize",
    "layout",
    "schedule",
    "tile",
    "promote",
    "vectorize",
    "bufferize",
    "map",
)


def compile_behind(before, program, layout, all_stages=False):
    """Launches of kernels, and linalg operations that the host has."""
    options = f"{{chip=sm_90a layout={layout} tokens=2048}}"
    stages = ["nm-sparse-to-nvvm"]
    if not all_stages:
        stages = [f"nm-sparse-stage-{name}" for name in STAGES]
    steps = [*before, *(stage + options for stage in stages)]
    run = subprocess.run(
        [nm_opt, program, f"--pass-pipeline=builtin.module({','.join(steps)})"],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        return run.stderr.splitlines()[0]
    launches = len(re.findall(r"\bgpu\.launch(_func)?\b", run.stdout))
    host = len(re.findall(r"\blinalg\.(?!yield)", run.stdout))
    return f"{launches} launches, {host} operations of the host"


differences = 0
for program in programs:
    pipelines = [[get_pipeline(name)] for name in passes]
    pipelines.append([get_pipeline(name) for name in passes])
    # Whether a transposition pays is for the cost model to say, which has to say the
    # same whatever ran before.
    for layout in ("auto", "keep", "feature-major"):
        expected = compile_behind([], program, layout)
        assert "launches" in expected, expected
        for before in pipelines:
            found = compile_behind(before, program, layout)
            if found == expected and before == pipelines[-1]:
                # All of them at once, through all stages.
                expected = compile_behind([], program, layout, all_stages=True)
                found = compile_behind(before, program, layout, all_stages=True)
            if found != expected:
                differences += 1
                print(f"{program} behind {before}: {found}, else {expected}")
print(f"{len(passes)} passes before {len(programs)} programs: {differences} differ")

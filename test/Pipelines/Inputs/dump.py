"""Runs a pipeline, then what --dump-pass-pipeline says it is; prints whether
both gave the same IR.

Usage: dump.py NM_OPT INPUT PIPELINE-OPTION
"""

import re
import subprocess
import sys

nm_opt, source, pipeline = sys.argv[1:]
first = subprocess.run(
    [nm_opt, source, pipeline, "--dump-pass-pipeline"],
    capture_output=True,
    text=True,
    check=True,
)
lines = first.stderr.splitlines()
start = next(i for i, line in enumerate(lines) if line.startswith("builtin.module("))
dumped = "".join(line.strip() for line in lines[start:])
second = subprocess.run(
    [nm_opt, source, f"--pass-pipeline={dumped}"],
    capture_output=True,
    text=True,
    check=True,
)


def normalize(text):
    """gpu.binary records how long the translation took."""
    return re.sub(r"TimeInMs = \d+", "TimeInMs = 0", text)


print("same" if normalize(first.stdout) == normalize(second.stdout) else "different")

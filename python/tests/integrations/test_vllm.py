# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin for vLLM against the classes of a release, in a process of its own: vLLM
changes settings of torch when it is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
PLUGIN = ROOT / "integrations/vllm"
VLLM = Path(sys.prefix) / "vllm"


def test_plugin():
    pytest.importorskip("torch")
    if not (VLLM / "version").exists():
        pytest.skip(
            f"{VLLM} has no vLLM: run integrations/vllm/get_vllm.sh, which downloads "
            "400 MB"
        )
    paths = [ROOT / "python", PLUGIN, VLLM, VLLM / "deps"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    env["OMP_NUM_THREADS"] = "1"  # the weights are small
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    # Not by the settings of this repository, whose `pythonpath` has other tests' files.
    command += ["-c", os.devnull, "--rootdir", str(PLUGIN), str(PLUGIN / "tests")]
    result = subprocess.run(command, env=env, text=True, capture_output=True)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
    assert "skipped" not in result.stdout, result.stdout[-1000:]

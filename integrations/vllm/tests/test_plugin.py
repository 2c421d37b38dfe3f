# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The wheel, as vLLM finds it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ASK = """
import sys
from vllm.plugins import load_general_plugins
load_general_plugins()
from vllm.model_executor.layers import quantization
found = quantization.get_quantization_config("nm_sparse")
assert found.__module__ == "nm_sparse_vllm.config", found
assert "nm_sparse_vllm.linear" not in sys.modules
import nm_sparse_vllm
nm_sparse_vllm.register()
assert quantization.get_quantization_config("nm_sparse") is found
assert quantization.QUANTIZATION_METHODS.count("nm_sparse") == 1
print("registered from", nm_sparse_vllm.__file__)
"""


def test_vllm_finds_the_wheel(tmp_path):
    """Its entry point is enough, in a process that knows nothing of it."""
    source, installed = tmp_path / "source", tmp_path / "installed"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    where = ["--no-build-isolation", "--target", str(installed), str(source)]
    subprocess.run([*pip, *where], check=True, cwd=tmp_path)
    assert (installed / "nm_sparse_vllm" / "py.typed").exists()
    paths = [str(installed)]
    paths += [p for p in os.environ.get("PYTHONPATH", "").split(":") if p != str(ROOT)]
    env = {**os.environ, "PYTHONPATH": ":".join(paths), "VLLM_PLUGINS": "nm_sparse"}
    result = subprocess.run(
        [sys.executable, "-c", ASK],
        env=env,
        cwd=tmp_path,
        text=True,
        capture_output=True,
    )
    assert result.returncode == 0, result.stderr
    assert f"registered from {installed}" in result.stdout

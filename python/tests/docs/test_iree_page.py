# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program of docs/IREE.md runs, on the emulated driver. Only the form of its
kernels is another one, which that driver can run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CHECKS = """
with torch.no_grad():
    wanted = model(x).float().numpy()
error = abs(y.astype("float32") - wanted).max()
assert error < 2e-3 * abs(wanted).max(), error
sparse = [one for one in exported.arguments if one.kind == "weight"]
assert len(sparse) == 2
"""


@pytest.mark.slow
def test_from_pytorch(tmp_path):
    pytest.importorskip("torch")
    from iree_cases import EMULATED, has_iree

    if not has_iree():
        pytest.skip("IREE is missing: scripts/bootstrap.sh installs it (Python 3.10)")
    if "NM_BUILD_DIR" not in os.environ or not EMULATED.exists():
        pytest.skip("NM_BUILD_DIR has no lib/emulated-cuda: scripts/check.sh sets it")
    page = (ROOT / "docs/IREE.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert block.count('"--object", "ptx"') == 1
    block = block.replace('"--object", "ptx"', '"--object", "emulator"')
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "LD_LIBRARY_PATH": str(EMULATED),
    }
    done = subprocess.run(
        [sys.executable, "-c", block + CHECKS],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 0, done.stderr

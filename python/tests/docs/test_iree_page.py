# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of docs/IREE.md run, on the emulated driver. Only the form of their
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


def blocks():
    """The first program, and the one that exports the model of the first otherwise."""
    page = (ROOT / "docs/IREE.md").read_text("utf-8")
    first, second = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert first.count('"--object", "ptx"') == 1
    return first.replace('"--object", "ptx"', '"--object", "emulator"'), second


def run(program, folder):
    pytest.importorskip("torch")
    from iree_cases import EMULATED, has_iree

    if not has_iree():
        pytest.skip("IREE is missing: scripts/bootstrap.sh installs it (Python 3.10)")
    if "NM_BUILD_DIR" not in os.environ or not EMULATED.exists():
        pytest.skip("NM_BUILD_DIR has no lib/emulated-cuda: scripts/check.sh sets it")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "LD_LIBRARY_PATH": str(EMULATED),
    }
    done = subprocess.run(
        [sys.executable, "-c", program + CHECKS],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_from_pytorch(tmp_path):
    run(blocks()[0], tmp_path)


@pytest.mark.slow
def test_from_an_importer(tmp_path):
    first, second = blocks()
    model, rest = first.split("exported = export_mlir", 1)
    rest = rest[rest.index("\n\n") :]
    assert rest.strip().startswith("manifest = exported.to_iree(")
    run(f"{model}{second}{rest}", tmp_path)

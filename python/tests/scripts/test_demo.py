# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/demo.sh fits one screen, whatever the tools print, and says of each example
whether it is right. Its tools are stand-ins here."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.mlir"))
LINES = 40

COMPILE = """#!/bin/sh
for i in $(seq 500); do
  echo "nm-compile: warning: candidate $i is slow"
  echo "  candidate $i"
done
"""
RUN = """#!/bin/sh
[ "$1" != --probe-device ] || exit 1
echo "$1 on the emulator"
for i in $(seq 20); do echo "  schedule @copy_$i: #nm_tile.schedule<...>"; done
echo "  emulated 64 CTAs"
case $1 in
*$WRONG)
  echo "  result #0: relative error 1.0 (f32, tolerance 1.0e-05): FAIL"
  exit 1
  ;;
esac
echo "  result #0: relative error 1e-7 (f32, tolerance 1.0e-05): PASS"
"""


@pytest.fixture
def demo(tmp_path):
    """Runs the demo of all examples, of which the one of this name is wrong."""
    for name, text in (("nm-compile", COMPILE), ("nm-run", RUN)):
        tool = tmp_path / "bin" / name
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(text)
        tool.chmod(0o755)

    def run(wrong):
        environment = {
            "PATH": "/usr/bin:/bin",
            "NM_BUILD_DIR": str(tmp_path),
            "NM_DEMO_DIR": str(tmp_path / "demo"),
            "NM_NO_BUILD": "1",
            "WRONG": wrong,
        }
        return subprocess.run(
            ["bash", str(ROOT / "scripts/demo.sh")],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
        )

    return run


def test_fits_one_screen(demo, tmp_path):
    done = demo("no such example")
    printed = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(EXAMPLES) >= 4 and len(printed) + len(done.stderr.splitlines()) <= LINES
    for example in EXAMPLES:
        (title,) = [line for line in printed if f"examples/{example.name}: " in line]
        assert title.endswith(example.read_text().splitlines()[0].lstrip("/ "))
        log = tmp_path / "demo" / f"{example.stem}.log"
        assert f"  right; each stage, PTX and manifest: {log.parent}" in done.stdout
        assert "  candidate 500" in log.read_text()
    assert sum(line.startswith("  schedule ") for line in printed) >= len(EXAMPLES)
    assert printed.count(
        "  result #0: relative error 1e-7 (f32, tolerance 1.0e-05): PASS"
    ) == len(EXAMPLES)
    assert "warning" not in done.stdout


def test_says_what_is_wrong(demo):
    done = demo("mlp.mlir")
    assert done.returncode == 1
    assert done.stdout.count("  WRONG; ") == 1 and ": FAIL" in done.stdout
    assert done.stdout.count("  right; ") == len(EXAMPLES) - 1
    assert "these examples failed: mlp" in done.stderr

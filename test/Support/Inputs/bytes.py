"""Runs nm-run on a file whose name is not UTF-8: its report is JSON, and says what
fails. Usage: bytes.py PROGRAM FOLDER"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir()
name = os.fsencode(folder) + b"/a\xffb.mlir"
shutil.copy(program, name)
report = folder / "report.json"
run = [b"nm-run", name, b"--device", b"cpu", b"--check", b"--json", bytes(report)]
subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
assert json.loads(report.read_text(encoding="utf-8"))["file"].endswith("/a\ufffdb.mlir")

listing = folder / "list.txt"
listing.write_bytes(name + b" --device cpu --check\n" + name + b" --entry none\n")
done = subprocess.run(["nm-run", "--batch", listing, "--json", report], check=False)
assert done.returncode == 1, done.returncode
runs = json.loads(report.read_text(encoding="utf-8"))["runs"]
assert runs[0]["passed"] and "no public function @none" in runs[1]["error"], runs

wrong = subprocess.run(run + [b"--entry", b"\xff"], check=False, capture_output=True)
assert wrong.returncode == 1 and b"no public function" in wrong.stderr, wrong

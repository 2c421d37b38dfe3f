# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what bench/pairs.py measures: of each layer the images of two builds,
and how they are launched. The images are cubins where there is a ptxas, so that
the GPU machine spends no time on PTX; all files are compressed."""

import json
import lzma
import pathlib
import re
import subprocess
import tempfile
import threading

SIDES = ("before", "after")


def version_of(ptxas):
    said = subprocess.run([ptxas, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"V(\d+\.\d+\.\d+)", said)
    return found[1] if found else "unknown"


def image_of(ptxas, ptx, chip):
    """A cubin, or the PTX text where there is no ptxas that takes it."""
    if not ptxas:
        return ptx.encode()
    with tempfile.TemporaryDirectory() as scratch:
        source, cubin = (pathlib.Path(scratch) / name for name in ("ptx", "cubin"))
        source.write_text(ptx, "utf-8")
        command = [ptxas, f"-arch={chip}", str(source), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True)
        return ptx.encode() if done.returncode else cubin.read_bytes()


class Writer:
    """Takes pairs from several threads; `finish` writes their list."""

    def __init__(self, folder, ptxas):
        self.folder, self.ptxas = folder, ptxas
        self.pairs, self.lock = [], threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, item, equal, compiled):
        """Writes both sides of a layer that bench/ can run."""
        if not item.layer or any("ptx" not in side for side in compiled):
            return
        pair = {"layer": item.layer, "label": item.label, "equal": equal}
        pair["chip"] = item.chip
        with self.lock:
            number = len(self.pairs)
            self.pairs.append(pair)
        for name, side in zip(SIDES, compiled):
            file = f"{number:04}.{name}.xz"
            image = image_of(self.ptxas, side["ptx"], item.chip)
            (self.folder / file).write_bytes(lzma.compress(image))
            pair[name] = {"image": file, "functions": side["functions"]}

    def finish(self, commits, equal):
        """`equal` is the number of layers whose kernels are equal: of those that
        are not in the list, too."""
        header = {
            "commits": commits,
            "equal_kernels": equal,
            "ptxas": version_of(self.ptxas) if self.ptxas else None,
            "pairs": sorted(self.pairs, key=lambda p: (p["layer"], p["label"])),
        }
        text = json.dumps(header).encode()
        (self.folder / "list.json.xz").write_bytes(lzma.compress(text))

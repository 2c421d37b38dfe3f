# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""undefined_symbols.py FOLDER ARCHIVE...: fails when an archive needs a symbol of
the LLVM, NVVM, NVGPU or GPU dialects, which the tensor level must not."""

import pathlib
import re
import shutil
import subprocess
import sys

nm = shutil.which("llvm-nm-22") or shutil.which("llvm-nm") or shutil.which("nm")
folder, *archives = sys.argv[1:]
for archive in archives:
    path = pathlib.Path(folder) / archive
    said = subprocess.run(
        [nm, "-C", "--undefined-only", path], capture_output=True, text=True, check=True
    ).stdout
    assert " U " in said, f"{archive} needs nothing at all: is it empty?"
    needed = re.findall(r"mlir::(?:LLVM|NVVM|nvgpu|gpu)::\w+.*", said)
    if needed:
        sys.exit(f"{archive} needs {needed[0]}")
print(len(archives), "libraries need no dialect of GPUs")

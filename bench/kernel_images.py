# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that are compiled on one machine and measured on another: cubins, which are
kept compressed, and what their manifests say of them."""

import json
import lzma
import pathlib
import subprocess
import tempfile
import time


class CompilationError(RuntimeError):
    """What the compiler says of a source that it refuses."""


def compile_image(tool, source, image, flags=()):
    """Compiles `source` and writes the cubin to `image`: its manifest, and the seconds
    that it took."""
    with tempfile.TemporaryDirectory() as folder:
        cubin, manifest = (pathlib.Path(folder, name) for name in ("cubin", "manifest"))
        command = [tool, str(source), "-o", str(cubin), "--emit", "cubin"]
        command += ["--manifest", str(manifest), *flags]
        started = time.time()
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        seconds = round(time.time() - started, 2)
        if done.returncode:
            raise CompilationError(done.stderr.strip())
        image.write_bytes(lzma.compress(cubin.read_bytes(), preset=1))
        return {"seconds": seconds, "manifest": json.loads(manifest.read_text())}


def load_kernels(driver, image, function):
    """The module of what compile_image wrote, and the kernels that a function of the
    manifest launches, by name."""
    module = driver.load(lzma.decompress(image.read_bytes()))
    names = {launch["kernel"] for launch in function["launches"]}
    return module, {name: driver.kernel(module, name) for name in names}


def describe_product(compiled):
    """What result files keep of a function with one product."""
    (product,) = compiled["manifest"]["products"]
    kernels = compiled["manifest"]["kernels"]
    return {
        "schedule": product["schedule"],
        "seconds": compiled["seconds"],
        "code_bytes": max(kernel.get("code_bytes") or 0 for kernel in kernels),
        "registers": max(kernel["registers"] for kernel in kernels),
    }

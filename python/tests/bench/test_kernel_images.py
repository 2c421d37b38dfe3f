# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/kernel_images.py with stand-ins for a compiler and a driver."""

import stat
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))
import kernel_images  # noqa: E402

pytestmark = pytest.mark.slow

# Its cubin is the source.
TOOL = """\
#!{python}
import json, sys
option = lambda name: sys.argv[sys.argv.index(name) + 1]
source = open(sys.argv[1]).read()
if source == "refuse":
    sys.exit("no schedule fits")
open(option("-o"), "w").write(source)
kernels = [dict(registers=40, code_bytes=None), dict(registers=32, code_bytes=128)]
functions = [dict(launches=[dict(kernel=name) for name in "fgf"])]
products = [dict(schedule=" ".join(sys.argv[-2:]))]
open(option("--manifest"), "w").write(json.dumps(
    dict(kernels=kernels, functions=functions, products=products)))
"""


class Driver:
    def __init__(self):
        self.asked = []

    def load(self, image):
        return image.decode()

    def kernel(self, module, name):
        self.asked.append(name)
        return f"{name} of {module}"


def compile_text(folder, text):
    tool, source = folder / "tool", folder / "layer.mlir"
    tool.write_text(TOOL.format(python=sys.executable))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    source.write_text(text)
    image = folder / "layer.xz"
    return image, kernel_images.compile_image(
        str(tool), source, image, ["--density", "10"]
    )


def test_images_are_compiled_and_loaded(tmp_path):
    image, compiled = compile_text(tmp_path, "program")
    assert compiled["seconds"] >= 0
    described = kernel_images.describe_product(compiled)
    assert described == {
        "schedule": "--density 10",
        "seconds": compiled["seconds"],
        "code_bytes": 128,
        "registers": 40,
    }
    (function,) = compiled["manifest"]["functions"]
    driver = Driver()
    module, kernels = kernel_images.load_kernels(driver, image, function)
    assert module == "program"
    assert kernels == {"f": "f of program", "g": "g of program"}
    assert sorted(driver.asked) == ["f", "g"]


def test_what_the_compiler_refuses(tmp_path):
    with pytest.raises(kernel_images.CompilationError, match="^no schedule fits$"):
        compile_text(tmp_path, "refuse")
    assert not (tmp_path / "layer.xz").exists()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The installed package works: tools run, and another project builds on it.

NM_BUILD_DIR names a finished build; everything is written into its `package`.
"""

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("NM_BUILD_DIR", ""))

pytestmark = pytest.mark.skipif(
    "NM_BUILD_DIR" not in os.environ, reason="NM_BUILD_DIR is not set"
)


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"{command} failed:\n{text}"
    return text


@pytest.fixture(scope="module")
def prefix():
    prefix = BUILD / "package" / "prefix"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


def test_installed_tools_run(prefix):
    tools = sorted((prefix / "bin").iterdir())
    assert prefix / "bin" / "nm-opt" in tools
    for tool in tools:
        assert run(tool, "--help")


def test_installed_headers_are_the_public_ones(prefix):
    root = HERE.parents[1] / "include"
    missing = [
        path.relative_to(root)
        for path in root.rglob("*.h")
        if not (prefix / "include" / path.relative_to(root)).exists()
    ]
    assert not missing


@pytest.fixture(scope="module")
def project(prefix):
    """The build folder of another project."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    kept = [
        "-D" + line
        for line in cache.splitlines()
        if line.startswith(
            ("CMAKE_C_COMPILER:", "CMAKE_CXX_COMPILER:", "CMAKE_EXE_LINKER_FLAGS:")
        )
    ]
    build = BUILD / "package" / "build"
    run("cmake", "-G", "Ninja", "-S", HERE, "-B", build, *kept,
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DNMSparse_DIR={prefix / 'lib' / 'cmake' / 'NMSparse'}")  # fmt: skip
    run("cmake", "--build", build)
    return build


def test_another_project_builds_on_it(project):
    assert run(project / "consumer") == (
        "#nm_sparse.encoding<2:4> packs into values tensor<32x32xf16> "
        "index tensor<32x32xi8>\n"
    )


def test_kernels_of_other_compilers_run(project, tmp_path):
    """The passes on GPU code and the emulator, with no dialect of this project."""
    lowered, kernel = tmp_path / "lowered.mlir", tmp_path / "kernel.mlir"
    source = HERE.parent / "GPU" / "alone.mlir"
    run(project / "gpu-opt", source, "--nm-sparse-lower-math", "-o", lowered)
    passes = "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1}"
    run("mlir-opt-22", lowered, f"--pass-pipeline=builtin.module(gpu.module({passes},"
        "reconcile-unrealized-casts))", "-o", kernel)  # fmt: skip
    assert run(project / "emulate", kernel, "--kernel=erf", "--block=4",
               "--array=-1,0,0.5,3").split() == [
        "-0.842701", "0", "0.5205", "0.999978",
    ]  # fmt: skip

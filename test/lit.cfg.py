"""lit configuration of the nm_sparse tests.

Features: nm-ptxas (a ptxas is on the PATH), nm-nvdisasm (an nvdisasm is, or in the
Python environment), nm-cuda (nm-run finds a GPU), nm-slow (all tests are wanted: a test
that takes longer than a few seconds has the line "REQUIRES: nm-slow", and `lit --param
quick=1` leaves it out), nm-all-products (this build has every product and every
transfer, so that the cost model has all of them to choose from), nm-emulated-cuda (the
emulator is built as libcuda.so, too), nm-cuda-header (there is a cuda.h),
nm-sparse-library (the library that Python calls is built, and there is ml_dtypes), iree
(IREE's compiler and runtime are in the Python environment of scripts/bootstrap.sh),
iree-3.12 (so is that older version). A test whose text names a product or a transfer
that this build lacks is unsupported.
"""

import glob
import os
import subprocess
import sys

from lit.llvm import llvm_config

config.name = "nm_sparse"

# Workers of lit import the format by its name.
sys.path.insert(0, os.path.dirname(__file__))
from parts_test import PartsTest, missing_names  # noqa: E402

root = config.nm_sparse_src_root
products = missing_names(root, "Products", config.nm_sparse_products)
transfers = missing_names(root, "Transfers", config.nm_sparse_transfers)
storages = missing_names(root, "Dialect/NMSparse/Storages", config.nm_sparse_storages)
if not products and not transfers and not storages:
    config.available_features.add("nm-all-products")
config.test_format = PartsTest(
    not llvm_config.use_lit_shell, products, transfers, storages
)
config.suffixes = [".mlir", ".test"]
config.excludes = [
    "Inputs",
    "Package",
    "lib",
    "lit.cfg.py",
    "lit.site.cfg.py.in",
    "parts_test.py",
]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.nm_sparse_obj_root, "test")

llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
llvm_config.with_environment("PATH", config.nm_sparse_tools_dir, append_path=True)
# Tests say which databases of measured schedules they read.
config.environment["NM_SPARSE_TUNED"] = ""
config.substitutions.append(("%nm_lib_dir", config.nm_sparse_lib_dir))
config.substitutions.append(("%nm_src", config.nm_sparse_src_root))
config.substitutions.append(("%nm_bin", config.nm_sparse_tools_dir))
config.substitutions.append(("%python", config.python))
emulated_cuda = os.path.join(config.nm_sparse_lib_dir, "emulated-cuda")
if os.path.exists(emulated_cuda):
    config.available_features.add("nm-emulated-cuda")
    config.substitutions.append(("%emulated_cuda", emulated_cuda))

if not lit_config.params.get("quick"):
    config.available_features.add("nm-slow")

for tool, path in (("ptxas", config.ptxas), ("nvdisasm", config.nvdisasm)):
    if path and "NOTFOUND" not in path:
        config.available_features.add(f"nm-{tool}")
        config.substitutions.append((f"%{tool}", path))

cuda_include = "/usr/local/cuda/include"
if os.path.exists(os.path.join(cuda_include, "cuda.h")):
    config.available_features.add("nm-cuda-header")
    config.substitutions.append(("%cuda_include", cuda_include))

venv = os.environ.get("NM_VENV") or os.path.join(
    config.nm_sparse_src_root, "build", "venv"
)
config.substitutions.append(("%venv_python", os.path.join(venv, "bin", "python")))
# The library that Python calls, and types of elements that numpy has not.
if os.path.exists(
    os.path.join(config.nm_sparse_lib_dir, "libnm_sparse.so")
) and glob.glob(os.path.join(venv, "lib", "python*", "site-packages", "ml_dtypes")):
    config.available_features.add("nm-sparse-library")
iree_tools = [
    os.path.join(venv, "bin", f"iree-{name}") for name in ("compile", "run-module")
]
if all(map(os.path.exists, iree_tools)):
    config.available_features.add("iree")
    old = os.path.join(venv, "iree-3.12")
    if os.path.exists(os.path.join(old, "iree")):
        config.available_features.add("iree-3.12")
        config.substitutions += [
            ("%old_iree_compile", f"env PYTHONPATH={old} {old}/bin/iree-compile"),
            ("%old_iree_path", old),
        ]
    config.substitutions.append(("%iree_compile", iree_tools[0]))
    config.substitutions.append(("%iree_python", os.path.join(venv, "bin", "python")))

nm_run = os.path.join(config.nm_sparse_tools_dir, "nm-run")
if os.path.exists(nm_run):
    probe = subprocess.run([nm_run, "--probe-device"], capture_output=True)
    if probe.returncode == 0:
        config.available_features.add("nm-cuda")

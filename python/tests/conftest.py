# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests use the library of the build that NM_BUILD_DIR names, and no cache of the
user's: one of their own, or the folder that NM_TEST_CACHE names. Schedules are the
model's choice, whatever was measured; tests of databases name theirs."""

import os
import tempfile

import pytest

BUILD = os.environ.get("NM_BUILD_DIR")
if BUILD:
    os.environ.setdefault("NM_SPARSE_LIBRARY", os.path.join(BUILD, "lib"))
_folder = tempfile.TemporaryDirectory(prefix="nm_sparse_cache_")
os.environ["NM_SPARSE_TUNED"] = ""
os.environ["NM_SPARSE_CACHE"] = os.environ.get("NM_TEST_CACHE", _folder.name)


@pytest.fixture
def hopper(monkeypatch):
    """A device that programs can be compiled for, and the emulator for it."""
    torch = pytest.importorskip("torch")
    from nm_sparse.torch.layers import kernels

    if torch.cuda.is_available():
        pytest.skip("a process that has used the emulator cannot use a GPU")
    monkeypatch.setattr(kernels, "chip_of", lambda device: "sm_90a")
    monkeypatch.setattr(kernels, "device_gpu_of", lambda device: None)
    return torch.device("cuda", 0)

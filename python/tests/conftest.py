# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests use the library of the build that NM_BUILD_DIR names, and no cache of the
user's: one of their own, or the folder that NM_TEST_CACHE names."""

import os
import tempfile

BUILD = os.environ.get("NM_BUILD_DIR")
if BUILD:
    os.environ.setdefault("NM_SPARSE_LIBRARY", os.path.join(BUILD, "lib"))
_folder = tempfile.TemporaryDirectory(prefix="nm_sparse_cache_")
os.environ["NM_SPARSE_CACHE"] = os.environ.get("NM_TEST_CACHE", _folder.name)

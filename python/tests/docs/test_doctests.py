# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in docstrings are true."""

import doctest
import importlib

import numpy as np
import pytest

pytestmark = pytest.mark.slow

MODULES = [
    "encoding",
    "encoding.slices",
    "interop.arrays",
    "pruning.prune",
    "tensors.packed_tensor",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"nm_sparse.{name}")
    with np.printoptions(threshold=1000, linewidth=75):
        result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0

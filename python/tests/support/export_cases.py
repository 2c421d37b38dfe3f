# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models as MLIR, compared with torch: by the compiler's oracle, where it is built."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from nm_sparse.bindings import library
from nm_sparse.runtime.oracle import Oracle
from nm_sparse.torch.export import export_mlir

BUILD = Path(os.environ.get("NM_BUILD_DIR", ""))
if "NM_BUILD_DIR" in os.environ:
    os.environ.setdefault("NM_SPARSE_LIBRARY", str(BUILD / "lib"))
needs_library = pytest.mark.skipif(
    not library.available(), reason="no library of nm_sparse"
)
needs_tools = pytest.mark.skipif(
    "NM_BUILD_DIR" not in os.environ or not (BUILD / "bin/nm-compile").exists(),
    reason="no build of nm-compile",
)


def tool(name, *arguments, text=None):
    """What a tool writes to standard output; it must succeed."""
    command = [BUILD / "bin" / name, *arguments]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def as_arrays(operands):
    """Operands of `Exported` as the oracle takes them."""
    arrays = []
    for one in operands:
        if not isinstance(one, torch.Tensor):
            arrays += list(one.components.values())
            continue
        one = one.detach()
        arrays.append(
            (one.view(torch.int16) if one.dtype == torch.bfloat16 else one).numpy()
        )
    return arrays


def as_float(array, dtype):
    if dtype == torch.bfloat16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


def check_same(model, args, dynamic=None, others=(), tolerance=1e-5):
    """The exported model computes what the model does, for `args` and `others`."""
    model = model.eval()
    exported = export_mlir(model, args, dynamic)
    oracle = Oracle(exported.text)
    for inputs in (args, *others):
        with torch.no_grad():
            wanted = torch.utils._pytree.tree_leaves(model(*inputs))
        found = oracle(as_arrays(exported.operands(*inputs)))
        assert len(found) == len(wanted) == exported.results
        for one, like in zip(found, wanted):
            assert one.shape == tuple(like.shape)
            np.testing.assert_allclose(
                as_float(one, like.dtype),
                like.detach().double().numpy(),
                rtol=tolerance,
                atol=tolerance,
            )
    return exported

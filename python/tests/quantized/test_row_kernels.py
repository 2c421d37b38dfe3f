# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled kernels of triton as layers of 8 bits launch them by themselves."""

import contextlib
import types

import pytest

torch = pytest.importorskip("torch")

from nm_sparse.torch.layers import scaled_eager  # noqa: E402
from nm_sparse.torch.weight import quantize_launch  # noqa: E402
from nm_sparse.torch.weight.quantize_launch import describe, row_kernel  # noqa: E402

NUMBERS = (64, 64, 448.0, 1 / 448, 1e-12, 64, 0, False, False)


def compiled(**changes):
    """What triton returns for `_quantize` of quantize_kernel.py."""
    kinds = ["*bf16", "*fp8e4nv", "*fp32", "i32", "i32", *["fp32"] * 3]
    kinds += ["constexpr"] * 4
    target = types.SimpleNamespace(warp_size=32)
    fields = dict(
        num_ctas=1, num_warps=4, shared=16, global_scratch_size=0, target=target
    )
    kinds = changes.pop("kinds", kinds)
    function = changes.pop("function", 7)
    source = types.SimpleNamespace(signature={i: one for i, one in enumerate(kinds)})
    metadata = types.SimpleNamespace(**{**fields, **changes})
    return types.SimpleNamespace(metadata=metadata, src=source, function=function)


@pytest.mark.parametrize("is_static", [False, True])
def test_what_is_launched(is_static):
    scale = torch.tensor(0.5) if is_static else None
    kernel = compiled()
    found = describe(kernel, NUMBERS, 64, scale)
    assert found[:4] == (7, 128, 16, 64) and found.kept is kernel
    scales = ("address", scale.data_ptr()) if is_static else ("scales", None)
    kinds = ("i32", "i32", "fp32", "fp32", "fp32")
    numbers = tuple(zip(kinds, NUMBERS))
    ends = (("address", 0), ("address", 0))
    assert found.values == (("x", None), ("out", None), scales, *numbers, *ends)


@pytest.mark.parametrize(
    "changes",
    [
        dict(num_ctas=2),
        dict(global_scratch_size=8),
        dict(profile_scratch_size=8),
        dict(launch_cooperative_grid=True),
        dict(launch_pdl=True),
        dict(function=None),
        dict(kinds=["*bf16", "*fp8e4nv", "*fp32", "i32"]),
        dict(kinds=["*bf16", "i32", "*fp32", *["i32"] * 9]),
        dict(kinds=["*bf16", "*fp8e4nv", "*fp32", "tensordesc", *["i32"] * 8]),
    ],
)
def test_kernels_of_another_form(changes):
    assert describe(compiled(**changes), NUMBERS, 64, None) is None


def test_kernels_without_what_is_read():
    """As the interpreter of triton returns, and other versions."""
    for kernel in (None, types.SimpleNamespace(function=7)):
        assert describe(kernel, NUMBERS, 64, None) is None


def test_what_is_compiled(monkeypatch):
    """A kernel for rows one behind the other, whatever x is like."""
    monkeypatch.setattr(quantize_launch, "find_kernel", lambda x, kind: None)
    x = torch.randn(1, 128)[:, :64]
    assert row_kernel(x, "e4m3", None) is None

    def launch(rows, out, scales, kind, has_scale, largest, least):
        assert rows.shape == out.shape == (1, 64) and rows.is_contiguous()
        assert rows.stride(0) == 64 and rows.data_ptr() % 16 == 0
        assert (kind, has_scale, largest) == ("f8E4M3FN", scales.ndim == 0, 448)
        assert out.dtype == torch.float8_e4m3fn and scales.dtype == torch.float32
        return compiled(), NUMBERS

    modules = types.SimpleNamespace(launch=launch)
    monkeypatch.setattr(quantize_launch, "find_kernel", lambda x, kind: True)
    monkeypatch.setattr(
        quantize_launch.importlib, "import_module", lambda *names: modules
    )
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    for scale in (None, torch.tensor(0.5)):
        found = row_kernel(x, "e4m3", scale)
        assert found == describe(found.kept, NUMBERS, 64, scale)


def test_launches_that_decline(monkeypatch):
    """What the kernel by itself does not take is rounded by `quantize_tokens`."""
    launch = scaled_eager._ScaledLaunch.__new__(scaled_eager._ScaledLaunch)
    launch.least, launch.elements, launch.input_scale = None, "int8", None
    launch.found = types.SimpleNamespace(takes=lambda x: True)
    asked, sparse = [], []

    def rounded(x):
        asked.append(x)
        return ["y"] if len(x) == 1 else None

    launch.bound = types.SimpleNamespace(with_rounder=lambda kernel: rounded)
    launch.run_sparse = lambda x, *given: sparse.append(given) or ["z"]
    monkeypatch.setattr(scaled_eager, "row_kernel", lambda x, *own: "kernel")
    one, two = torch.randn(1, 32), torch.randn(2, 32)
    assert launch.run(one) == ["z"] and not asked  # which finds the kernel
    assert launch.run(one) == ["y"] and len(sparse) == 1
    assert launch.run(two) == ["z"] and len(sparse) == len(asked) == 2
    rows, scales = sparse[1]
    assert rows.shape == (2, 32) and scales.shape == (2,)
    launch._rounded = None
    monkeypatch.setattr(scaled_eager, "row_kernel", lambda x, *own: None)
    assert launch.run(one) == launch.run(one) == ["z"] and len(asked) == 2

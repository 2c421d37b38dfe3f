# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements become numbers of f32 and back, and scales are checked."""

import numpy as np
import pytest
from checkpoint_cases import save

from nm_sparse import Checkpoint, CheckpointError
from nm_sparse.files.scales import check_readable, from_f32, read_scale, to_f32
from nm_sparse.reference import _numbers


@pytest.mark.parametrize("dtype, kind", [
    ("bf16", np.uint16), ("f8E4M3FN", np.uint8), ("f8E5M2", np.uint8), ("i8", np.int8),
    ("f16", np.float16),
])  # fmt: skip
def test_all_elements_are_numbers(dtype, kind):
    unsigned = np.dtype(f"uint{8 * np.dtype(kind).itemsize}")
    codes = np.arange(np.iinfo(unsigned).max + 1, dtype=np.int64).astype(unsigned)
    found = to_f32(codes.view(kind), dtype)
    assert found.dtype == np.float32
    with np.errstate(invalid="ignore"):
        expected = _numbers(codes.view(kind), dtype)
    assert np.array_equal(found, expected, equal_nan=True)
    if dtype in ("bf16", "f16"):
        again = from_f32(found, dtype).view(unsigned)
        assert np.array_equal(again[~np.isnan(found)], codes[~np.isnan(found)])
        assert np.isnan(to_f32(again.view(kind), dtype)[np.isnan(found)]).all()


def test_rounding_is_to_nearest_even():
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 1 << 32, 1 << 16, np.uint32).view(np.float32)
    ties = ((np.arange(1 << 12, dtype=np.uint32) + 0x3F80) << 16 | 0x8000).view("f4")
    torch = pytest.importorskip("torch")
    for one in (numbers, ties, np.array([np.inf, -np.inf, 3.4e38, -0.0], "f4")):
        theirs = torch.from_numpy(one).to(torch.bfloat16).view(torch.int16).numpy()
        ours, real = from_f32(one, "bf16").view(np.int16), ~np.isnan(one)
        assert np.array_equal(ours[real], theirs[real])
    assert from_f32(np.array([1e6], "f4"), "f16")[0] == np.inf


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("ending", ["_scale", "_scale_inv"])
@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_scales_are_read(tmp_path, count, ending, kind):
    scale = np.exp2(np.arange(count, dtype=np.float32) - 3).reshape(-1, 1)
    stored = {"F32": scale, "F16": scale.astype(np.float16),
              "BF16": from_f32(scale, "bf16")}[kind]  # fmt: skip
    tensors = {"w": np.ones((8, 4), np.int8), f"w{ending}": (kind, stored)}
    checkpoint = Checkpoint(save(tmp_path / "m.safetensors", **tensors))
    check_readable(checkpoint)
    assert read_scale(checkpoint, "w", 8).tolist() == scale.ravel().tolist()
    assert read_scale(checkpoint, "other", 8) is None


@pytest.mark.parametrize("tensors, message", [
    ({"w_scale": np.ones((2, 4), np.float32)}, r"'w_scale' has shape \[2, 4\]: legal"),
    ({"w_scale": np.ones((1, 8), np.float32)}, r"'w_scale' has shape \[1, 8\]: legal"),
    ({"w_scale": np.ones((8, 1), np.int64)}, "'w_scale' is I64: legal is F16"),
    ({"w_scale": np.ones(1, np.float32), "w_zero_point": np.ones(1, np.int8)},
     "'w_zero_point' is not zero: legal are weights whose zeros are zero"),
    ({"fc__weight_packed": np.ones((2, 4), np.int64)},
     "'fc.weight_packed' is part of a weight in the layout 'packed integers'"),
    ({"fc__qweight": np.ones((2, 4), np.int64)}, "in the layout 'GPTQ or AWQ'"),
])  # fmt: skip
def test_what_cannot_be_read_is_named(tmp_path, tensors, message):
    path = save(tmp_path / "m.safetensors", w=np.ones((8, 4), np.int8), **tensors)
    with pytest.raises(CheckpointError, match=message):
        check_readable(Checkpoint(path))

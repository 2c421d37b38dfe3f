# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that are sharded: DDP, FSDP2, checkpoints and tensor parallel on two
processes, and slices."""

import pytest

torch = pytest.importorskip("torch")

from sharded_cases import spawn  # noqa: E402
from torch_cases import ENCODINGS, random_weight  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import PackedWeight  # noqa: E402

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch has no torch.distributed"
)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["2:4", "4:8 2:4, block = [1, 32]"])
@pytest.mark.parametrize("name", ["run_ddp", "run_fsdp", "run_tensor_parallel"])
def test_two_processes(name, encoding, tmp_path):
    spawn(name, encoding, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["2:4", "4:8 2:4, block = [1, 32]"])
def test_elements_with_scales(encoding, tmp_path):
    spawn("run_elements", encoding, tmp_path)


@pytest.mark.slow
def test_tensor_parallel_of_transformers(tmp_path):
    pytest.importorskip("transformers.distributed.tensor_parallel")
    spawn("run_transformers", "2:4", tmp_path)


@pytest.mark.slow
def test_shards_that_cut_panels(tmp_path):
    spawn("run_errors", "2:4, block = [1, 32]", tmp_path)


@pytest.mark.parametrize("e", ENCODINGS, ids=str)
def test_slices(e):
    rows, width = e.m * e.block[0], e.block[1]
    weight, dense = random_weight(e, 4, torch.float32, (4 * width, 4 * rows))
    part = weight[:, rows : 3 * rows]
    assert isinstance(part, PackedWeight)
    assert torch.equal(part.to_dense(), dense[:, rows : 3 * rows])
    if e.is_shuffled:
        with pytest.raises(EncodingError, match="of a shuffled weight lie in any"):
            weight[:width]
        return
    for one, own in zip(weight.split(2 * width), dense.split(2 * width)):
        assert torch.equal(one.to_dense(), own)
        one.validate()
    first, last = weight.chunk(2, dim=1)
    assert torch.equal(first.to_dense(), dense[:, : 2 * rows])
    assert torch.equal(last.to_dense(), dense[:, 2 * rows :])
    assert torch.equal(weight.narrow(0, width, width).to_dense(), dense[width:][:width])
    first.zero_()  # in the same memory
    assert not weight.to_dense()[:, : 2 * rows].any()
    if rows > 1:
        with pytest.raises(EncodingError, match="cut a window"):
            weight[:, 1:]
    with pytest.raises(EncodingError, match="legal is 1"):
        weight[::2]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What does not fit is refused, with what to do."""

import json

import pytest
import torch
from conftest import TEXTS, as_rank, config, load, pruned, tensors_of
from vllm.model_executor.layers.linear import (
    ColumnParallelLinear,
    MergedColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)

from nm_sparse import EncodingError

BANDED = "8:32, block = [1, 128]"
FLOAT = dict(bias=False, params_dtype=torch.float32, prefix="model.layer")


@pytest.mark.parametrize("rank", [0, 1])
def test_parts_that_cut_panels_or_windows(rank):
    """On every rank, and before anything is loaded."""
    with as_rank(rank, 2):
        with pytest.raises(
            EncodingError,
            match="model.layer cannot be shared by 2 GPUs: outputs 0:192 of 384 cut a "
            "panel of 128 .* into 1, 3 equal parts",
        ):
            ColumnParallelLinear(256, 384, quant_config=config(BANDED), **FLOAT)
        with pytest.raises(EncodingError, match="outputs 0:64 of 128 cut a panel"):
            MergedColumnParallelLinear(
                256, [512, 128], quant_config=config(BANDED), **FLOAT
            )
        with pytest.raises(EncodingError, match="outputs 0:64 of 128 cut a panel"):
            QKVParallelLinear(256, 64, 8, 2, quant_config=config(BANDED), **FLOAT)
        with pytest.raises(EncodingError, match="inputs 0:48 of 96 cut a window of 32"):
            RowParallelLinear(96, 384, quant_config=config(BANDED), **FLOAT)
        shuffled = config(f"{BANDED}, order = shuffled")
        with pytest.raises(EncodingError, match="of a shuffled weight lie in any"):
            ColumnParallelLinear(256, 512, quant_config=shuffled, **FLOAT)


def test_a_head_of_k_that_all_ranks_share_may_be_any():
    with as_rank(1, 2):
        QKVParallelLinear(256, 64, 4, 1, quant_config=config(BANDED), **FLOAT)


def column():
    with as_rank(1, 2):
        return ColumnParallelLinear(64, 256, quant_config=config(BANDED), **FLOAT)


def test_tensors_of_another_weight():
    tensors = tensors_of(pruned(256, 96, BANDED, seed=0)[0], BANDED)
    layer = column()
    for name in ("values", "index"):
        with pytest.raises(
            EncodingError, match=rf"model.layer.{name}: the checkpoint has \[24, .* "
            r"a weight \[256, 64\] of 8:32, .* needs \[16, "
        ):  # fmt: skip
            load(layer, {name: tensors[name]})
    with pytest.raises(EncodingError, match=r"of shape \[256, 96\]: config.json and"):
        load(layer, {"_extra_state": tensors["_extra_state"]})
    other = tensors_of(pruned(256, 64, "8:32", seed=0)[0], "8:32")
    with pytest.raises(EncodingError, match=r"has 8:32, dim = 1 of .* say 8:32, block"):
        load(layer, {"_extra_state": other["_extra_state"]})
    with pytest.raises(EncodingError, match="no NMLinear wrote"):
        load(layer, {"_extra_state": torch.zeros(5, dtype=torch.uint8)})


def test_tensors_of_another_type():
    tensors = tensors_of(pruned(256, 64, BANDED, seed=0)[0], BANDED)
    layer = column()
    wrong = {
        "values": tensors["values"].to(torch.float8_e4m3fn),
        "index": tensors["index"].to(torch.int32),
    }
    for name, tensor in wrong.items():
        with pytest.raises(EncodingError, match=f"layer.{name}: the checkpoint has "):
            load(layer, {name: tensor})


@pytest.mark.parametrize("left_out", ["values", "index"])
def test_tensors_that_are_missing(left_out):
    tensors = tensors_of(pruned(128, 64, BANDED, seed=0)[0], BANDED)
    with as_rank(0, 1):
        layer = MergedColumnParallelLinear(
            64, [128, 128], quant_config=config(BANDED), **FLOAT
        )
    load(layer, tensors, 0)
    load(layer, {name: x for name, x in tensors.items() if name != left_out}, 1)
    with pytest.raises(
        EncodingError, match=rf"layer.{left_out}: .* lacks it for \[1\]"
    ):
        layer.quant_method.process_weights_after_loading(layer)


@pytest.mark.parametrize("text", TEXTS)
def test_damaged_positions(text):
    """Kernels would read past their operands."""
    text = f"{text}, order = shuffled"
    dense, perm = pruned(40, 300, text, seed=1)
    whole = tensors_of(dense, text, perm)
    for name in whole:
        if name in ("values", "_extra_state"):
            continue
        with as_rank(0, 1):
            layer = ColumnParallelLinear(300, 40, quant_config=config(text), **FLOAT)
        damaged = whole[name].clone()
        damaged.view(-1)[-1] = 127
        load(layer, {**whole, name: damaged})
        if name != "perm" and "200:300" in text:
            damaged.view(-1)[-1] = 3  # no longer increasing
            load(layer, {name: damaged})
        with pytest.raises(EncodingError, match="model.layer: "):
            layer.quant_method.process_weights_after_loading(layer)


def test_a_type_without_an_operator():
    with as_rank(0, 1), pytest.raises(EncodingError, match="the type is torch.float64"):
        ColumnParallelLinear(
            64, 64, bias=False, params_dtype=torch.float64, quant_config=config("2:4")
        )


def test_extra_state_is_what_layers_write():
    """The tensors of these tests are those of an NMLinear."""
    from nm_sparse.torch import NMLinear, PackedWeight

    dense, perm = pruned(40, 300, f"{BANDED}, order = shuffled", seed=1)
    own = tensors_of(dense, f"{BANDED}, order = shuffled", perm)
    weight = PackedWeight.from_dense(dense, f"{BANDED}, order = shuffled", perm)
    state = NMLinear.from_packed(weight).state_dict()
    assert set(state) == set(own)
    found, wanted = (
        json.loads(bytes(one["_extra_state"].tolist())) for one in (state, own)
    )
    assert {key: found[key] for key in wanted} == wanted

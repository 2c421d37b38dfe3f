# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each rank loads is its part of the whole, and multiplies like it."""

import pytest
import torch
from conftest import (
    TEXTS,
    as_rank,
    check_components,
    check_product,
    config,
    load,
    pruned,
    tensors_of,
)
from vllm.model_executor.layers.linear import (
    ColumnParallelLinear,
    MergedColumnParallelLinear,
    QKVParallelLinear,
    ReplicatedLinear,
    RowParallelLinear,
)

from nm_sparse import Encoding

RANKS = [(rank, size) for size in (1, 2, 4) for rank in range(size)]
FLOAT = dict(bias=False, params_dtype=torch.float32)


def inputs_of(text):
    """A number of inputs that 4 ranks can share."""
    e = Encoding(text)
    return 4 * e.m * e.block[0] * (2 if e.m < 100 else 1)


@pytest.mark.parametrize("rank, size", RANKS)
@pytest.mark.parametrize("text", TEXTS)
def test_column_parallel(text, rank, size):
    k = inputs_of(text) + 3  # outputs are shared, so inputs may be any
    dense, _ = pruned(128, k, text, seed=rank + size)
    with as_rank(rank, size):
        layer = ColumnParallelLinear(k, 128, quant_config=config(text), **FLOAT)
        load(layer, tensors_of(dense, text))
    part = dense.chunk(size)[rank]
    check_components(layer, part, text)
    check_product(layer, part)


@pytest.mark.parametrize("rank, size", RANKS)
@pytest.mark.parametrize("order", ["", ", order = shuffled"])
@pytest.mark.parametrize("text", TEXTS)
def test_row_parallel(text, order, rank, size):
    text, k = text + order, inputs_of(text)
    dense, perm = pruned(83, k, text, seed=rank + size)  # inputs are shared
    with as_rank(rank, size):
        layer = RowParallelLinear(k, 83, quant_config=config(text), **FLOAT)
        load(layer, tensors_of(dense, text, perm))
    part = dense.chunk(size, dim=1)[rank]
    check_components(layer, part, text, perm)
    bias = torch.randn(83, generator=torch.Generator().manual_seed(1))
    check_product(layer, part, bias)


@pytest.mark.parametrize("rank, size", RANKS)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("heads, kv_heads", [(8, 8), (8, 4), (8, 2), (4, 1)])
def test_qkv(text, heads, kv_heads, rank, size):
    """Ranks share heads of k and v where there are more ranks than those."""
    width, k = 16, inputs_of(text) + 3
    rows = {"q": heads * width, "k": kv_heads * width, "v": kv_heads * width}
    dense = {name: pruned(n, k, text, seed=n)[0] for name, n in rows.items()}
    with as_rank(rank, size):
        layer = QKVParallelLinear(
            k, width, heads, kv_heads, quant_config=config(text), **FLOAT
        )
        for name in ("v", "q", "k"):
            load(layer, tensors_of(dense[name], text), name)
    copies = max(1, size // kv_heads)
    parts = [dense["q"].chunk(size)[rank]]
    for name in ("k", "v"):
        parts.append(dense[name].chunk(size // copies)[rank // copies])
    whole = torch.cat(parts)
    check_components(layer, whole, text)
    check_product(layer, whole, torch.arange(len(whole)).float())


@pytest.mark.parametrize("rank, size", RANKS)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("is_fused", [False, True])
def test_gate_up(text, is_fused, rank, size):
    """`is_fused`: they are one in the checkpoint, too, as in Phi-3."""
    k, rows = inputs_of(text) + 3, (192, 192)
    dense = [pruned(n, k, text, seed=i)[0] for i, n in enumerate(rows)]
    with as_rank(rank, size):
        layer = MergedColumnParallelLinear(
            k, list(rows), quant_config=config(text), **FLOAT
        )
        if is_fused:
            load(layer, tensors_of(torch.cat(dense), text))
        else:
            for number in (1, 0):
                load(layer, tensors_of(dense[number], text), number)
    whole = torch.cat([one.chunk(size)[rank] for one in dense])
    check_components(layer, whole, text)
    check_product(layer, whole)


@pytest.mark.parametrize("rank, size", RANKS)
@pytest.mark.parametrize("text", TEXTS)
def test_fused_qkv(text, rank, size):
    width, heads, kv_heads, k = 16, 8, 2, inputs_of(text)
    dense, _ = pruned((heads + 2 * kv_heads) * width, k, text, seed=3)
    with as_rank(rank, size):
        layer = QKVParallelLinear(
            k, width, heads, kv_heads, quant_config=config(text), **FLOAT
        )
        load(layer, tensors_of(dense, text))
    q, key, value = dense.split([heads * width, kv_heads * width, kv_heads * width])
    copies = max(1, size // kv_heads)
    parts = [q.chunk(size)[rank]]
    parts += [one.chunk(size // copies)[rank // copies] for one in (key, value)]
    check_components(layer, torch.cat(parts), text)
    check_product(layer, torch.cat(parts))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("order", ["", ", order = shuffled"])
def test_one_rank_takes_any_sizes(text, order):
    """Partial panels in the middle are products of their own."""
    text, rows, k = text + order, (35, 16, 21), 77
    dense = [pruned(n, k, text, seed=n) for n in rows]
    with as_rank(0, 1):
        layer = MergedColumnParallelLinear(
            k, list(rows), quant_config=config(text), **FLOAT
        )
        for number, (one, perm) in enumerate(dense):
            load(layer, tensors_of(one, text, perm), number)
    whole = torch.cat([one for one, _ in dense])
    check_product(layer, whole, torch.arange(len(whole)).float())


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("order", ["", ", order = shuffled"])
def test_one_rank_takes_one_weight_as_it_is(text, order):
    """Where the checkpoint has merged the layers, panels may lie across them."""
    text, rows, k = text + order, (35, 16, 21), 77
    dense, perm = pruned(sum(rows), k, text, seed=5)
    with as_rank(0, 1):
        layer = MergedColumnParallelLinear(
            k, list(rows), quant_config=config(text), **FLOAT
        )
        load(layer, tensors_of(dense, text, perm))
    check_components(layer, dense, text, perm)
    check_product(layer, dense)


@pytest.mark.parametrize("rank, size", RANKS)
def test_layers_that_every_rank_has(rank, size):
    text = "8:32, block = [1, 16], order = shuffled"
    dense, perm = pruned(50, 70, text, seed=rank)
    with as_rank(rank, size):
        layers = [
            ReplicatedLinear(70, 50, quant_config=config(text), **FLOAT),
            ColumnParallelLinear(
                70, 50, quant_config=config(text), disable_tp=True, **FLOAT
            ),
        ]
        for layer in layers:
            load(layer, tensors_of(dense, text, perm))
    for layer in layers:
        check_components(layer, dense, text, perm)
        check_product(layer, dense)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_values_become_those_of_the_model(dtype):
    dense, _ = pruned(64, 96, "2:4", seed=0)
    with as_rank(1, 2):
        layer = ColumnParallelLinear(
            96, 64, bias=False, params_dtype=dtype, quant_config=config("2:4")
        )
        load(layer, tensors_of(dense, "2:4"))
    check_product(layer, dense[32:].to(dtype))


def test_positions_may_be_unsigned():
    """As numpy writes them; torch computes with signed ones of the same bits."""
    text = "200:300, block = [1, 4], order = shuffled"
    dense, perm = pruned(40, 300, text, seed=2)
    tensors = tensors_of(dense, text, perm)
    tensors["index"] = tensors["index"].view(torch.uint16)
    tensors["perm"] = tensors["perm"].view(torch.uint32)
    with as_rank(0, 1):
        layer = ColumnParallelLinear(300, 40, quant_config=config(text), **FLOAT)
        load(layer, tensors)
    check_product(layer, dense)

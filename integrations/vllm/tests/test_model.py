# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A block is loaded by vLLM's own loader, from tensors under the checkpoint's names."""

import pytest
import torch
from conftest import as_rank, config, pruned, tensors_of
from torch import nn
from vllm.model_executor.layers.linear import (
    MergedColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)
from vllm.model_executor.model_loader.utils import configure_quant_config
from vllm.model_executor.models.llama import LlamaForCausalLM
from vllm.model_executor.models.utils import AutoWeightsLoader

BANDED = "8:32, block = [1, 32]"
WIDTH, HIDDEN, HEADS, KV_HEADS, INNER = 32, 128, 4, 2, 256
SHAPES = {
    "self_attn.q_proj": (HEADS * WIDTH, HIDDEN),
    "self_attn.k_proj": (KV_HEADS * WIDTH, HIDDEN),
    "self_attn.v_proj": (KV_HEADS * WIDTH, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HEADS * WIDTH),
    "mlp.gate_proj": (INNER, HIDDEN),
    "mlp.up_proj": (INNER, HIDDEN),
    "mlp.down_proj": (HIDDEN, INNER),
}
LAYERS = {"*.k_proj": BANDED, "*.q_proj": BANDED, "*.v_proj": BANDED, "*.o_proj": None}


class Block(nn.Module):
    """The linear layers of a block of Llama, with the names of vLLM's model."""

    def __init__(self, made):
        super().__init__()
        own = dict(quant_config=made, params_dtype=torch.float32)
        self.self_attn, self.mlp = nn.Module(), nn.Module()
        self.self_attn.qkv_proj = QKVParallelLinear(
            HIDDEN, WIDTH, HEADS, KV_HEADS, prefix="a.self_attn.qkv_proj", **own
        )
        row = dict(bias=False, reduce_results=False, **own)
        self.self_attn.o_proj = RowParallelLinear(
            HEADS * WIDTH, HIDDEN, prefix="a.self_attn.o_proj", **row
        )
        self.mlp.gate_up_proj = MergedColumnParallelLinear(
            HIDDEN, [INNER, INNER], bias=False, prefix="a.mlp.gate_up_proj", **own
        )
        self.mlp.down_proj = RowParallelLinear(
            INNER, HIDDEN, prefix="a.mlp.down_proj", **row
        )

    def forward(self, x):
        qkv, _ = self.self_attn.qkv_proj(x)
        q, k, v = qkv.split(self.self_attn.qkv_proj.output_partition_sizes, dim=-1)
        heads = q.unflatten(-1, (-1, WIDTH)) * (k + v).mean(-1)[..., None, None]
        dense = self.self_attn.o_proj
        y = nn.functional.linear(heads.flatten(-2), dense.weight)
        gate, up = self.mlp.gate_up_proj(y)[0].chunk(2, dim=-1)
        return self.mlp.down_proj(nn.functional.silu(gate) * up)[0]


def checkpoint(made, seed):
    """The tensors, and the dense weights and biases that they stand for."""
    dense, tensors = {}, {}
    for number, (name, shape) in enumerate(SHAPES.items()):
        e = made.sparse.encoding_of(f"a.{name}")
        generator = torch.Generator().manual_seed(seed + number)
        weight = torch.randn(shape, generator=generator)
        parts = {"weight": weight}
        if e is not None:
            weight, _ = pruned(*shape, str(e), seed + number)
            parts = tensors_of(weight, str(e))
        if name.endswith(("q_proj", "k_proj", "v_proj")):
            bias = torch.randn(shape[0], generator=generator)
            parts["bias"] = dense[f"{name}.bias"] = bias
        dense[name] = weight
        tensors.update({f"{name}.{part}": x for part, x in parts.items()})
    return tensors, dense


def loaded(rank, size, seed=0):
    made = config("2:4", layers=LAYERS)
    configure_quant_config(made, LlamaForCausalLM)
    made.packed_modules_mapping = LlamaForCausalLM.packed_modules_mapping
    tensors, dense = checkpoint(made, seed)
    with as_rank(rank, size):
        block = Block(made)
        loader = AutoWeightsLoader(block)
        names = loader.load_weights(
            tensors.items(), mapper=LlamaForCausalLM.hf_to_vllm_mapper
        )
        assert names == {name for name, _ in block.named_parameters()}
    for layer in block.modules():
        if hasattr(layer, "quant_method") and layer is not block.self_attn.o_proj:
            layer.quant_method.process_weights_after_loading(layer)
    return block, dense


@pytest.mark.parametrize("size", [1, 2])
def test_ranks_together_are_the_block(size):
    """Outputs of ranks side by side, and partial sums of rows."""
    blocks = [loaded(rank, size) for rank in range(size)]
    dense = blocks[0][1]
    x = torch.randn(5, HIDDEN, generator=torch.Generator().manual_seed(9))
    found = [block.self_attn.qkv_proj(x)[0] for block, _ in blocks]
    for number, name in enumerate(("q", "k", "v")):
        wanted = nn.functional.linear(
            x, dense[f"self_attn.{name}_proj"], dense[f"self_attn.{name}_proj.bias"]
        )
        parts = []
        for (block, _), y in zip(blocks, found):
            sizes = block.self_attn.qkv_proj.output_partition_sizes
            parts.append(y.split(sizes, dim=-1)[number])
        torch.testing.assert_close(torch.cat(parts, dim=-1), wanted)
    y = torch.randn(5, INNER, generator=torch.Generator().manual_seed(8))
    parts = [
        block.mlp.down_proj.quant_method.apply(block.mlp.down_proj, part.contiguous())
        for (block, _), part in zip(blocks, y.chunk(size, dim=-1))
    ]
    wanted = nn.functional.linear(y, dense["mlp.down_proj"])
    torch.testing.assert_close(sum(parts), wanted)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_torch_compile_has_one_graph(backend):
    """vLLM compiles models for any number of tokens, as a whole."""
    block, _ = loaded(0, 1)
    graphs = []

    def counting(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(
        block,
        fullgraph=True,
        dynamic=True,
        backend=counting if backend == "eager" else backend,
    )
    with torch.inference_mode():
        for tokens in (3, 7, 12):
            x = torch.randn(tokens, HIDDEN)
            torch.testing.assert_close(compiled(x), block(x))
    if backend == "eager":
        (graph,) = graphs
        calls = [n.target for n in graph.graph.nodes if "nm_sparse" in str(n.target)]
        assert len(calls) == 3


def test_processing_again_changes_nothing():
    block, _ = loaded(0, 1)
    x = torch.randn(3, HIDDEN)
    before = block(x)
    for layer in (block.mlp.down_proj, block.self_attn.qkv_proj):
        layer.quant_method.process_weights_after_loading(layer)
    assert torch.equal(block(x), before)

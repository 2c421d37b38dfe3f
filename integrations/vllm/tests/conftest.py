# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints of single layers, and ranks of tensor parallel in one process."""

import contextlib
import json

import pytest
import torch

pytest.importorskip("vllm", reason="vLLM is not installed")

import vllm.model_executor.layers.linear as linear_module  # noqa: E402
import vllm.model_executor.parameter as parameter_module  # noqa: E402
from nm_sparse_vllm.config import NMSparseConfig  # noqa: E402

from nm_sparse import Encoding  # noqa: E402
from nm_sparse.torch import PackedWeight, prune_weight  # noqa: E402

TEXTS = [
    "2:4",
    "8:32, block = [1, 16]",
    "3:5, block = [2, 8]",
    "[4:10, block = [1, 16]], [2:4]",
    "200:300, block = [1, 4]",
]


@contextlib.contextmanager
def as_rank(rank, size):
    """Layers that are made here are those of rank `rank` of `size`."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (linear_module, parameter_module):
            patch.setattr(module, "get_tensor_model_parallel_rank", lambda: rank)
            patch.setattr(module, "get_tensor_model_parallel_world_size", lambda: size)
        yield


def config(encoding, **fields):
    """What vLLM makes of a config.json."""
    said = {"quant_method": "nm_sparse", "version": 1, "encoding": encoding, **fields}
    return NMSparseConfig.from_config(json.loads(json.dumps(said)))


def pruned(outputs, inputs, encoding, seed, dtype=torch.float32):
    """A dense weight [N, K] with the pattern; the order too, of a shuffled one."""
    generator = torch.Generator().manual_seed(seed)
    dense = torch.randn(outputs, inputs, generator=generator).to(dtype)
    return prune_weight(dense, Encoding(encoding), "magnitude", None)


def tensors_of(dense, encoding, perm=None):
    """What a checkpoint has of a layer, by name behind that of the layer."""
    weight = PackedWeight.from_dense(dense, Encoding(encoding), perm)
    state = {"encoding": weight.encoding.mlir(), "shape": list(dense.shape)}
    data = torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)
    return {**weight.components, "_extra_state": data}


def load(layer, tensors, shard_id=None):
    """As vLLM does, one tensor after the other."""
    for name, tensor in tensors.items():
        parameter = getattr(layer, name)
        if shard_id is None:
            parameter.weight_loader(parameter, tensor)
        else:
            parameter.weight_loader(parameter, tensor, shard_id)


def check_product(layer, dense, bias=None, seed=0):
    """The layer multiplies by `dense`, after its weights have been processed."""
    layer.quant_method.process_weights_after_loading(layer)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(3, 2, dense.shape[1], generator=generator).to(dense.dtype)
    y = layer.quant_method.apply(layer, x, bias)
    wanted = torch.nn.functional.linear(x.double(), dense.double())
    wanted = wanted if bias is None else wanted + bias.double()
    assert y.dtype == x.dtype and y.shape == wanted.shape
    tolerance = 1e-5 if dense.dtype == torch.float32 else 2e-2
    error = (y.double() - wanted).abs().max() / wanted.abs().max().clamp(min=1e-9)
    assert error < tolerance


def check_components(layer, dense, encoding, perm=None):
    """Before that, its components are those of `dense`."""
    own = tensors_of(dense, encoding, perm)
    for name, part in own.items():
        if name != "_extra_state":
            assert torch.equal(getattr(layer, name).data, part), name

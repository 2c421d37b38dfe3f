# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed models that two processes load by name, each its shard of every layer."""

import warnings

import pytest
import torch
import torch.distributed as dist
import transformers
from pretrained_cases import TOKENS, built, logits, pack, packed_layers
from sharded_cases import WORLD, close
from torch.distributed.tensor import DTensor
from transformers.distributed import DistributedConfig, sharding_utils

from nm_sparse import CheckpointError
from nm_sparse.torch import NMLinear, PackedWeight
from nm_sparse.torch.pretrained import mark_pretrained
from nm_sparse.torch.pretrained.quantizer import replace_module

AUTO = transformers.AutoModelForCausalLM


def save(folder, kind, config, encoding, elements=None, leave=("lm_head",), down=None):
    """A model with packed layers, and its folder of several files.

    down:  another pattern, of the layers whose inputs are sharded.
    """
    model = built(kind, config)
    others = [n for n, one in model.named_modules() if n.endswith(("o_proj", "n_proj"))]
    pack(model, encoding, (*leave, *(others if down else ())))
    pack(model, down or encoding, leave)
    for at, name in enumerate(packed_layers(model) if elements else ()):
        layer = model.get_submodule(name)
        made = NMLinear.from_packed(layer.weight.detach().quantize(elements))
        if elements == "e4m3":
            made.activations = "same" if at % 3 else elements
            made.set_input_scale(0.5 if at == 6 else None)
        replace_module(model, layer, made)
    for module in model.modules():  # zeros would hide where they are added
        if isinstance(module, NMLinear) and module.bias is not None:
            torch.nn.init.normal_(module.bias)
    mark_pretrained(model)
    model.save_pretrained(folder, max_shard_size="60KB")
    return str(folder)


class Reads:
    """Shapes of the tensors that the loader shards, and of what it reads of them."""

    def __enter__(self):
        self.found = []
        kind = sharding_utils.DtensorShardOperation
        self.shard = kind.shard_tensor

        def shard_tensor(own, source, *given, **named):
            part = self.shard(own, source, *given, **named)
            shape = getattr(source, "get_shape", lambda: list(source.shape))()
            assert not isinstance(source, torch.Tensor)  # but a slice of a file
            self.found.append((tuple(own.placements), shape, list(part.shape)))
            return part

        kind.shard_tensor = shard_tensor
        return self

    def __exit__(self, *error):
        sharding_utils.DtensorShardOperation.shard_tensor = self.shard


def load(folder, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # tp_plan has a new name
        return AUTO.from_pretrained(
            folder, output_loading_info=True, **{"tp_plan": "auto", **options}
        )


def generated(model):
    return model.generate(TOKENS, max_new_tokens=6, do_sample=False)


def check(model, folder, tolerance):
    """Compares a model that is shared with the whole one."""
    wanted = AUTO.from_pretrained(folder)
    error = (logits(model) - logits(wanted)).norm() / logits(wanted).norm()
    assert float(error) < tolerance, (folder, error)
    if tolerance < 1e-3:
        assert torch.equal(generated(model), generated(wanted)), folder
        close(model(TOKENS).logits, wanted(TOKENS).logits)  # with gradients


def run_load(rank, mesh, *folders):
    """Loads models whole and in shards, calls both, and saves the latter."""
    for folder in folders:
        wanted = AUTO.from_pretrained(folder)
        with Reads() as reads:
            model, info = load(folder)
        assert not any(info.values()), info
        names = packed_layers(wanted)
        assert packed_layers(model) == names
        for name in names:
            layer, own = model.get_submodule(name), wanted.get_submodule(name)
            assert type(layer) is NMLinear and isinstance(layer.weight, DTensor), name
            assert layer.values.numel() * WORLD == own.values.numel()
            assert layer.activations == own.activations
        halves = [
            (torch.Size(shape), torch.Size(part))
            for places, shape, part in reads.found
            if any(one.is_shard() for one in places)
        ]
        assert len(halves) >= 2 * len(names)
        assert all(WORLD * part.numel() == shape.numel() for shape, part in halves)
        # Each part of an input that is rounded has scales of its own.
        is_same = wanted.get_submodule(names[0]).activations == "same"
        check(model, folder, 1e-4 if is_same else 0.05)
        model.save_pretrained(f"{folder}/again")
        dist.barrier()
        again = AUTO.from_pretrained(f"{folder}/again")
        for name, tensor in wanted.state_dict().items():
            assert torch.equal(again.state_dict()[name], tensor), name
        assert torch.equal(logits(again), logits(wanted))


def raises(folder, *texts, **options):
    """Every process raises the same error, so none waits for another."""
    with pytest.raises(CheckpointError) as error:
        load(folder, **options)
    assert all(text in str(error.value) for text in texts), error.value


def run_plans(rank, mesh, plain, panels, shuffled):
    """Plans of callers, and what cannot be sharded."""
    mlp = "model.layers.*.mlp."
    whole = {f"{mlp}{name}_proj": "replicate" for name in ("gate", "up", "down")}
    model, info = load(plain, **plan(whole))
    assert not any(info.values()), info
    layer = model.model.layers[0]
    assert type(layer.mlp.up_proj) is NMLinear
    assert type(layer.mlp.up_proj.weight) is PackedWeight
    assert isinstance(layer.self_attn.q_proj.weight, DTensor)
    check(model, plain, 1e-4)
    with pytest.raises(ValueError, match="q_proj is shared by several processes"):
        model.dequantize()
    raises(
        panels,
        "model.layers.0.self_attn.k_proj is packed, and its rule in tp_plan is",
        "'colwise' for 2: outputs 0:48 of 96 cut a panel of 32",
        "into 1, 3 equal parts it can be sliced",
    )
    raises(shuffled, "'colwise' for 2: outputs 0:16 of 32 of a shuffled weight")
    fused = plan({f"{mlp}up_proj": "packed_colwise"})
    raises(
        plain,
        "is 'packed_colwise': legal is a colwise",
        "colwise_gather_output",
        **fused,
    )
    config = {"tp_size": 1, "fsdp_size": WORLD}
    other = {"tp_plan": None, "distributed_config": config}
    raises(plain, "fsdp_size of distributed_config is 2: legal", **other)


def plan(rules):
    config = DistributedConfig(tp_size=WORLD, tp_plan=rules)
    return {"tp_plan": None, "distributed_config": config}

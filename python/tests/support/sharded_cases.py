# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models on two processes that exchange by gloo, for tests of sharded weights."""

import copy
import os
import socket

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from nm_sparse.torch import NMLinear

WORLD = 2
K, HIDDEN = 64, 128


def model_of(encoding, seed=0):
    torch.manual_seed(seed)
    up = NMLinear.from_dense(nn.Linear(K, HIDDEN), encoding)
    down = NMLinear.from_dense(nn.Linear(HIDDEN, K), encoding)
    return nn.Sequential(up, nn.ReLU(), down)


def train(model, rank=0, parts=1, steps=3):
    """Some steps on this process's part of each batch."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    for step in range(steps):
        x = batch(step)
        x = x[rank * len(x) // parts : (rank + 1) * len(x) // parts]
        optimizer.zero_grad()
        model(x).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return optimizer


def batch(seed, rows=8):
    return torch.randn(rows, K, generator=torch.Generator().manual_seed(seed))


def outputs(model):
    with torch.no_grad():
        y = model(batch(99))
    return y.full_tensor() if isinstance(y, DTensor) else y


def close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def run_ddp(rank, mesh, encoding, folder):
    wanted = model_of(encoding)
    train(wanted)
    model = model_of(encoding)
    with torch.no_grad():  # which the first process decides
        model[0].weight.mul_(1 + rank)
    model = nn.parallel.DistributedDataParallel(model)
    close(outputs(model), outputs(model_of(encoding)))
    train(model, rank, WORLD)
    close(outputs(model), outputs(wanted))


def run_fsdp(rank, mesh, encoding, folder):
    wanted = model_of(encoding)
    train(wanted)
    model = model_of(encoding)
    for part in (model[0], model[2], model):
        fully_shard(part, mesh=mesh)
    optimizer = train(model, rank, WORLD)
    close(outputs(model), outputs(wanted))
    for name, tensor in model.state_dict().items():
        if isinstance(tensor, DTensor):
            close(tensor.full_tensor(), wanted.state_dict()[name])
    model.load_state_dict(model.state_dict())
    set_model_state_dict(model, get_model_state_dict(model))
    states = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
    checkpoint.save(states, checkpoint_id=folder)
    other = model_of(encoding, seed=7)
    fully_shard(other, mesh=mesh)
    trained = torch.optim.AdamW(other.parameters(), 1e-2)
    states = dict(zip(("model", "optimizer"), get_state_dict(other, trained)))
    checkpoint.load(states, checkpoint_id=folder)
    set_state_dict(
        other,
        trained,
        model_state_dict=states["model"],
        optim_state_dict=states["optimizer"],
    )
    close(outputs(other), outputs(wanted))
    # Whole states go in, too.
    other.reshard()
    fresh = model_of(encoding, seed=3)
    options = StateDictOptions(full_state_dict=True)
    set_model_state_dict(other, fresh.state_dict(), options=options)
    close(outputs(other), outputs(fresh))


def run_tensor_parallel(rank, mesh, encoding, folder):
    wanted = model_of(encoding)
    model = copy.deepcopy(wanted)
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallelize_module(model, mesh, plan)
    assert model[0].values.numel() * WORLD == wanted[0].values.numel()
    close(outputs(model), outputs(wanted))
    train(model)
    train(wanted)
    close(outputs(model), outputs(wanted))
    state = model.state_dict()
    assert tuple(state["0.values"].shape) == tuple(wanted[0].values.shape)
    close(state["2.values"].full_tensor(), wanted[2].values)
    fresh = model_of(encoding, seed=5)
    options = StateDictOptions(full_state_dict=True)
    set_model_state_dict(model, fresh.state_dict(), options=options)
    close(outputs(model), outputs(fresh))


def run_transformers(rank, mesh, encoding, folder):
    """Tensor parallel of transformers, on packed layers that are there."""
    import transformers
    from transformers.distributed.tensor_parallel import apply_tensor_parallelism

    from nm_sparse.torch import NMSparseConfig, sparsify_

    torch.manual_seed(0)
    sizes = dict(hidden_size=64, intermediate_size=HIDDEN, num_hidden_layers=2)
    heads = dict(num_attention_heads=4, num_key_value_heads=2, vocab_size=128)
    config = transformers.LlamaConfig(**sizes, **heads)
    model = transformers.LlamaForCausalLM(config).eval()
    patterns = {"*lm_head": None, "*": NMSparseConfig(encoding, keep_slower=True)}
    sparsify_(model, patterns, predictor=lambda *_: ())
    tokens = torch.arange(10)[None]
    wanted = model(tokens).logits.detach()
    plan = {}
    for name, module in model.model.layers.named_modules():
        kind = "rowwise" if name.endswith(("o_proj", "down_proj")) else "colwise"
        if isinstance(module, nn.Linear):
            for key in (name, f"{name}.weight"):
                plan[f"model.layers.{key}"] = kind
    apply_tensor_parallelism(model, mesh, plan)
    assert isinstance(model.model.layers[0].mlp.up_proj.weight, DTensor)
    with torch.no_grad():
        close(model(tokens).logits, wanted)
    logits = model(tokens).logits
    close(logits, wanted)
    logits.sum().backward()


def run_elements(rank, mesh, encoding, folder):
    """Layers whose weights and inputs are elements of 8 bits, without training."""

    def make(seed=0):
        torch.manual_seed(seed)
        own = dict(elements="e4m3", activations="e4m3")
        up = NMLinear.from_dense(nn.Linear(K, HIDDEN), encoding, **own)
        down = NMLinear.from_dense(nn.Linear(HIDDEN, K), encoding, **own)
        return nn.Sequential(up, nn.ReLU(), down)

    wanted = make()
    model = copy.deepcopy(wanted)
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallelize_module(model, mesh, plan)
    assert model[0].scale.numel() * WORLD == wanted[0].scale.numel()
    assert model[2].scale.numel() == wanted[2].scale.numel()
    # Each part of the input has scales of its own.
    error = (outputs(model) - outputs(wanted)).norm() / outputs(wanted).norm()
    assert float(error) < 0.05
    for one in (model[0], model[2]):  # as it is
        one.activations = "same"
    same = copy.deepcopy(wanted)
    same[0].activations = same[2].activations = "same"
    close(outputs(model), outputs(same))
    state = model.state_dict()
    for name in ("0.scale", "2.scale"):
        found = state[name].full_tensor()
        assert torch.equal(found, wanted.state_dict()[name])
    fresh = make(5)
    options = StateDictOptions(full_state_dict=True)
    set_model_state_dict(model, fresh.state_dict(), options=options)
    fresh[0].activations = fresh[2].activations = "same"
    close(outputs(model), outputs(fresh))

    model = make().requires_grad_(False)
    for part in (model[0], model[2], model):
        fully_shard(part, mesh=mesh)
    for _ in range(2):
        close(outputs(model), outputs(wanted))
    checkpoint.save({"model": model.state_dict()}, checkpoint_id=folder)
    other = make(7).requires_grad_(False)
    fully_shard(other, mesh=mesh)
    states = {"model": other.state_dict()}
    checkpoint.load(states, checkpoint_id=folder)
    other.load_state_dict(states["model"])
    close(outputs(other), outputs(wanted))


def run_errors(rank, mesh, encoding, folder):
    """Shards that would cut a panel."""
    layer = nn.Sequential(NMLinear(K, 96, encoding))
    for shard in (
        lambda: parallelize_module(layer, mesh, {"0": ColwiseParallel()}),
        lambda: fully_shard(layer, mesh=mesh),
    ):
        try:
            shard()
        except Exception as error:
            assert "cut a panel of 32" in str(error), error
            assert "into equal parts" in str(error) or "3" in str(error), error
        else:
            raise AssertionError("the panel was cut")


def run_process(rank, port, run, *given):
    """What each process does; ends with an exit code other than 0 on an error."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(WORLD))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    mesh = init_device_mesh("cpu", (WORLD,))
    run(rank, mesh, *given)
    dist.barrier()
    dist.destroy_process_group()


def spawn(run, *given):
    """Calls a function, or one of this file by its name, in each process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = globals()[run] if isinstance(run, str) else run
    arguments = (port, run, *map(str, given))
    torch.multiprocessing.spawn(run_process, arguments, nprocs=WORLD)

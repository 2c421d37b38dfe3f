# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hold_masks keeps zeros in any training loop: momentum, decay, averages, sharding."""

import copy
import gc
import os
import socket
import weakref

import pytest

torch = pytest.importorskip("torch")

import torch.multiprocessing as mp  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch.prune import PruneConfig, hold_masks, prune_  # noqa: E402

CONFIG = PruneConfig("2:4", score="magnitude", fit=False, keep_larger=True)
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
    "AdamW, one by one": lambda p: torch.optim.AdamW(p, 0.01, foreach=False),
    "AdamW, fused": lambda p: torch.optim.AdamW(p, 0.01, fused=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 0.1),
    "Adafactor": lambda p: torch.optim.Adafactor(p, 0.01),
    "NAdam": lambda p: torch.optim.NAdam(p, 0.01),
    "Rprop": lambda p: torch.optim.Rprop(p, 0.01),
}


def make(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(16, 33), nn.ReLU(), nn.Linear(33, 7))


def pruned(model):
    prune_(model, CONFIG, progress=False)
    return model


def zeros(model):
    return [layer.weight.detach() == 0 for layer in (model[0], model[2])]


def same(a, b):
    return all(torch.equal(one, other) for one, other in zip(a, b))


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.randn(8, 16)).square().mean().backward()
    optimizer.step()


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_an_optimizer_with_momentum_already(kind):
    model = make()
    optimizer = OPTIMIZERS[kind](model.parameters())
    for _ in range(3):
        step(model, optimizer)
    before = zeros(pruned(model))
    with hold_masks(model):
        for _ in range(3):
            step(model, optimizer)
            assert same(zeros(model), before)
    step(model, optimizer)
    assert not same(zeros(model), before)


def test_a_closure_and_infinite_momentum():
    model = pruned(make())
    before = zeros(model)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(4, 16)).square().mean()
        loss.backward()
        return loss

    with hold_masks(model):
        optimizer.step(closure)
        assert same(zeros(model), before)
        with torch.no_grad():
            model[0].weight.masked_fill_(before[0], float("inf"))
        step(model, torch.optim.SGD(model.parameters(), 0.0))
        assert same(zeros(model), before)


def test_averages_of_weights():
    model = make()
    early = torch.optim.swa_utils.AveragedModel(copy.deepcopy(model))
    early.update_parameters(model)
    before = zeros(pruned(model))
    late = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with hold_masks(model) as held:
        for _ in range(3):
            step(model, optimizer)
            for average in (early, late):
                average.update_parameters(model)
        assert same(zeros(late.module), before)
        assert not same(zeros(early.module), before)
        held.apply_(early)
        assert same(zeros(early.module), before)
        held.apply_(early.module)
        with pytest.raises(EncodingError, match="model has no parameter module.0.wei"):
            held.apply_(nn.Sequential())
        # A warning for what is changed behind the last step.
        with torch.no_grad():
            model[0].weight += 1
        with pytest.warns(UserWarning, match="264 elements of 0.weight that are held"):
            held.__exit__(None, None, None)
    assert same(zeros(model), before)


def test_loops_of_ones_own():
    model = pruned(make())
    before = zeros(model)
    with hold_masks(model):
        for _ in range(3):
            model.zero_grad()
            model(torch.randn(8, 16)).square().mean().backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
            assert same(zeros(model), before)


def test_steps_that_are_compiled():
    model = pruned(make())
    before = zeros(model)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    compiled = torch.compile(optimizer.step, backend="eager")
    with hold_masks(model):
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(8, 16)).square().mean().backward()
            with torch.no_grad():  # as momentum would
                model[0].weight.grad += 1
            compiled()
            assert same(zeros(model), before)


def test_other_optimizers_and_models_are_let_alone():
    model, other = pruned(make()), make(1)
    with hold_masks(model) as held:
        assert list(held.masks) == ["0.weight", "2.weight"]
        step(other, torch.optim.SGD(other.parameters(), 0.1))
        assert not any(bool(one.any()) for one in zeros(other))
    # Masks do not keep a model that nobody has any more.
    gone = weakref.ref(model)
    held = hold_masks(model)
    del model
    gc.collect()
    assert gone() is None and held.masks
    step(other, torch.optim.SGD(other.parameters(), 0.1))
    assert not held.masks
    del held
    for _ in range(2):
        step(other, torch.optim.SGD(other.parameters(), 0.1))


def test_models_that_move_or_change():
    model = pruned(make())
    before = zeros(model)
    with hold_masks(model):
        model.double()
        optimizer = torch.optim.AdamW(model.parameters(), 0.01)
        model(torch.randn(8, 16).double()).sum().backward()
        optimizer.step()
        assert same(zeros(model), before)
        model.load_state_dict(make(3).double().state_dict())
        optimizer.step()
        assert same(zeros(model), before)


def test_what_cannot_be_held_is_said():
    model = pruned(make())
    with pytest.raises(EncodingError, match="0.weight is no parameter any more"):
        with hold_masks(model):
            nn.utils.parametrizations.weight_norm(model[0])
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            step(model, optimizer)
    with pytest.raises(EncodingError, match="0 has no parameter named weight"):
        hold_masks(model, ["0"])
    with pytest.raises(EncodingError, match="names has '7', which is no layer"):
        hold_masks(model, ["0", "7"])
    model = pruned(make())
    with pytest.raises(EncodingError, match=r"0.weight has shape \[528\], its mask"):
        with hold_masks(model):  # as sharding by flat parameters does
            model[0]._parameters["weight"] = nn.Parameter(model[0].weight.data.view(-1))
            torch.optim.SGD(model[2].parameters(), 0.1).step()
    held = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten())
    with torch.no_grad():
        held[0].weight[:, 0] = 0
    with hold_masks(held, ["0"]) as masks:
        assert masks.masks["0.weight"].float().mean() == pytest.approx(2 / 3)


def train(model, optimizer, attach=None, accumulate=1):
    torch.manual_seed(7)
    for _ in range(3):
        for _ in range(accumulate):
            model(torch.randn(8, 16)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def shard(model, mesh):
    from torch.distributed.fsdp import fully_shard

    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def worker(rank, port, folder):
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    wanted = make()
    before = zeros(pruned(wanted))
    optimizer = torch.optim.AdamW(wanted.parameters(), 0.1, weight_decay=0.1)
    with hold_masks(wanted):
        train(wanted, optimizer)
    for when in ("before", "after", "attached", "with momentum"):
        model = make()
        if when == "with momentum":
            shard(model, mesh)
            optimizer = torch.optim.AdamW(model.parameters(), 0.1, weight_decay=0.1)
            train(model, optimizer)
            with torch.no_grad():
                for layer, zero in zip((model[0], model[2]), before):
                    local = zero.chunk(2)[rank]
                    layer.weight.to_local().masked_fill_(local, 0)
            held = hold_masks(model)
        else:
            held = hold_masks(pruned(model)) if when == "before" else None
            pruned(model) if held is None else None
            shard(model, mesh)
            held = held or hold_masks(model)
            optimizer = torch.optim.AdamW(model.parameters(), 0.1, weight_decay=0.1)
        if when == "attached":
            held.attach(optimizer)
        train(model, optimizer)
        whole = [layer.weight.full_tensor() for layer in (model[0], model[2])]
        assert same([w == 0 for w in whole], before), when
        if when != "with momentum":
            for found, layer in zip(whole, (wanted[0], wanted[2])):
                torch.testing.assert_close(found, layer.weight.detach())
        assert held._handles
        held.remove()
    model = nn.parallel.DistributedDataParallel(pruned(make()))
    with hold_masks(model):
        train(model, torch.optim.AdamW(model.parameters(), 0.1))
    assert same(zeros(model.module), before)
    dist.destroy_process_group()
    (folder / f"{rank}").write_text("done")


def test_two_processes(tmp_path):
    """FSDP2 in either order, and DDP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(worker, (port, tmp_path), nprocs=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training with held masks, and distillation."""

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch.prune import (  # noqa: E402
    PruneConfig,
    distill,
    hold_masks,
    prune_,
)

torch.set_num_threads(1)  # the problems are small


def models(seed=0):
    """(pruned, dense)"""
    torch.manual_seed(seed)
    dense = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8))
    pruned = copy.deepcopy(dense)
    config = PruneConfig("1:4", score="magnitude", fit=False)
    prune_(pruned, config, progress=False)
    return pruned, dense


def data(count=8, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(32, 16, generator=draw) for _ in range(count)]


def zeros(model):
    return [layer.weight.detach() == 0 for layer in (model[0], model[2])]


def loss_of(pruned, dense):
    x = torch.cat(data(seed=9))
    with torch.no_grad():
        return float((pruned(x) - dense(x)).square().mean())


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    ],
)
def test_zeros_stay_zero_in_any_training(optimizer):
    pruned, dense = models()
    before, loss = zeros(pruned), loss_of(pruned, dense)
    with hold_masks(pruned) as held:
        assert list(held.masks) == ["0.weight", "2.weight"]
        step = optimizer(pruned.parameters())
        for x in data(30):
            step.zero_grad()
            (pruned(x) - dense(x).detach()).square().mean().backward()
            assert all((g[z] == 0).all() for g, z in _gradients(pruned, before))
            step.step()
    assert all(torch.equal(a, b) for a, b in zip(zeros(pruned), before))
    assert loss_of(pruned, dense) < loss
    # The masks are let go.
    pruned(data()[0]).sum().backward()
    assert any((g[z] != 0).any() for g, z in _gradients(pruned, before))


def _gradients(model, masks):
    return zip((model[0].weight.grad, model[2].weight.grad), masks)


def test_masks_hold_against_changes_without_gradients():
    pruned, _ = models()
    before = zeros(pruned)
    optimizer = torch.optim.SGD(pruned.parameters(), 0.1)
    with hold_masks(pruned) as held:
        held.attach(optimizer)
        with torch.no_grad():
            pruned[0].weight += 1
        optimizer.step()
        assert torch.equal(pruned[0].weight == 0, before[0])
    with torch.no_grad():
        pruned[0].weight += 1
    optimizer.step()
    assert not (pruned[0].weight == 0).any()


@pytest.mark.parametrize("loss", ["mse", "cosine", lambda a, b: (a - b).abs().mean()])
def test_distillation_recovers_outputs(loss):
    pruned, dense = models()
    before, first = zeros(pruned), loss_of(pruned, dense)
    state = copy.deepcopy(dense.state_dict())
    report = distill(pruned, dense, data(), 100, 1e-2, loss=loss, progress=False)
    assert report.steps == 100 and report.ended == "steps" and report.seconds > 0
    assert report.losses[-1][1] < report.losses[0][1]
    if loss != "cosine":  # which knows no lengths
        assert loss_of(pruned, dense) < first
    assert all(torch.equal(a, b) for a, b in zip(zeros(pruned), before))
    unchanged = dense.state_dict()
    assert all(torch.equal(state[key], unchanged[key]) for key in state)


def test_distillation_goes_on_where_it_was(tmp_path):
    path = tmp_path / "state.pt"
    once, dense = models()
    twice, _ = models()
    distill(once, dense, data(), 20, 1e-2, progress=False)
    report = distill(
        twice, dense, data(), 20, 1e-2, max_minutes=0, checkpoint=path, progress=False
    )
    assert report.ended == "minutes" and report.steps == 0

    # A training that ends after some steps, as if it had been interrupted.
    def some(step):
        if step == 7:
            raise KeyboardInterrupt
        return all_batches(step)

    from nm_sparse.torch.prune import finetune

    all_batches, finetune.SAVE_SECONDS = finetune._shuffled(data(), 0), -1
    try:
        with pytest.raises(KeyboardInterrupt):
            distill(twice, dense, some, 20, 1e-2, checkpoint=path, progress=False)
    finally:
        finetune.SAVE_SECONDS = 60
    resumed, _ = models()
    report = distill(resumed, dense, data(), 20, 1e-2, checkpoint=path, progress=False)
    assert report.steps == 20
    for found, wanted in zip(resumed.parameters(), once.parameters()):
        torch.testing.assert_close(found, wanted)


def test_outputs_are_chosen():
    class Named(nn.Module):
        def __init__(self, layers):
            super().__init__()
            self.layers = layers

        def forward(self, x, more=None):
            return {"hidden": self.layers(x)}

    pruned, dense = models()
    named, teacher = Named(pruned), Named(dense)
    batches = [dict(x=x) for x in data()]
    seen = []

    def output(result, batch):
        seen.append(batch["x"].shape)
        return result["hidden"][:, :4]

    distill(named, teacher, batches, 3, output=output, progress=False)
    assert seen == [(32, 16)] * 6
    report = distill(named, teacher, batches, 3, progress=False)
    assert report.steps == 3


def test_progress(capfd):
    pruned, dense = models()
    distill(pruned, dense, data(), 3)
    assert "distilling: 100%" in capfd.readouterr().err


def test_errors():
    pruned, dense = models()
    with pytest.raises(EncodingError, match="no linear layer has a zero"):
        hold_masks(dense)
    with pytest.raises(EncodingError, match="names has '7', which is no layer"):
        hold_masks(pruned, ["0", "7"])
    for more, message in (
        (dict(steps=0), "steps is 0"),
        (dict(steps=1, lr=0.0), "lr 0.0: legal are positive"),
        (dict(steps=1, loss="l1"), "loss is 'l1': legal is 'mse', 'cosine'"),
        (dict(steps=1, batches=[]), "batches are none"),
    ):
        arguments = {"batches": data(), **more}
        with pytest.raises(EncodingError, match=message):
            distill(pruned, dense, progress=False, **arguments)
    with pytest.raises(FloatingPointError, match="loss of step 0 is nan"):
        distill(pruned, dense, [data()[0] / 0], 3, progress=False)
    with pytest.raises(EncodingError, match="requires gradients"):
        distill(pruned.requires_grad_(False), dense, data(), 3, progress=False)

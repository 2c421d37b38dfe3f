# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calibration runs a model: order of layers, shared inputs, padding, blocks."""

import copy

import pytest

torch = pytest.importorskip("torch")

from prune_models import Block, Model, batches, quiet  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch.prune import Calibration, PruneConfig, prune_  # noqa: E402


def test_layers_run_in_order_and_share_inputs():
    model = Model()
    names = [n for n, m in model.named_modules() if isinstance(m, nn.Linear)]
    groups = Calibration(batches(), progress=False).groups(model, names)
    assert [group.names for group in groups] == [
        [f"blocks.{block}.{name}" for name in part]
        for block in (0, 1)
        for part in (["query", "key", "value"], ["out"], ["gate", "up"], ["down"])
    ]
    assert {group.calls for group in groups} == {1}


def test_a_tensor_that_is_changed_in_place_is_another_input():
    class Changing(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            y = x.clone()
            a = self.first(y)
            y += 1
            return a + self.second(input=y)

    groups = Calibration([torch.ones(2, 4)]).groups(Changing(), ["first", "second"])
    assert [group.names for group in groups] == [["first"], ["second"]]


def test_a_layer_that_runs_again_sees_all_inputs():
    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.other = nn.Linear(16, 16), nn.Linear(16, 16)

        def forward(self, x):
            return self.layer(self.layer(x) + self.other(x))

    model = Again()
    data = [torch.ones(2, 16), torch.ones(3, 16)]
    calibration = Calibration(data, progress=False)
    groups = calibration.groups(model, ["layer", "other"])
    assert [(g.names, g.calls) for g in groups] == [(["layer"], 2), (["other"], 1)]
    report = quiet(model, "2:4", calibration)
    assert report["layer"].tokens == 10 and report["other"].tokens == 5


def test_padding_does_not_count():
    model, data = Model(), batches(2)
    masks = [torch.ones(4, 16, dtype=torch.int64) for _ in data]
    for mask in masks:
        mask[:, 10:] = 0
    cut = copy.deepcopy(model)
    padded = [dict(x=x, attention_mask=mask) for x, mask in zip(data, masks)]
    assert quiet(model, "2:4", padded)["blocks.0.out"].tokens == 2 * 4 * 10
    quiet(cut, "2:4", [(x[:, :10], None) for x in data])
    for found, wanted in zip(model.parameters(), cut.parameters()):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", [0.0, 0.5])
def test_blocks_are_run_once_each(target, monkeypatch):
    """With and without them pruning is the same, but not as many blocks run."""
    config, models, runs = PruneConfig("2:4", target=target), [], []
    forward = Block.forward
    monkeypatch.setattr(Block, "forward", lambda *a: runs.append(1) or forward(*a))
    counts = []
    for blocks in (None, "blocks", "auto"):
        model = Model(blocks=5)
        runs.clear()
        quiet(model, config, batches(), blocks=blocks)
        models.append(model)
        counts.append(len(runs))
    for other in models[1:]:
        for found, wanted in zip(other.parameters(), models[0].parameters()):
            torch.testing.assert_close(found, wanted)
        assert not any("forward" in vars(module) for module in other.modules())
    assert counts[1] == counts[2] < counts[0] / 2


def test_blocks_may_change_their_inputs():
    class Adding(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(12, 12), nn.Linear(12, 12)

        def forward(self, x):
            x += torch.relu(self.first(x))
            x += self.second(x)
            return (x,)

    class Chain(nn.Module):
        def __init__(self):
            torch.manual_seed(0)
            super().__init__()
            self.blocks = nn.ModuleList(Adding() for _ in range(3))

        def forward(self, x):
            x = x.clone()
            for block in self.blocks:
                (x,) = block(x)
            return x

    models = Chain(), Chain()
    for model, blocks in zip(models, (None, "blocks")):
        quiet(model, "2:4", batches(), blocks=blocks)
    for found, wanted in zip(models[1].parameters(), models[0].parameters()):
        torch.testing.assert_close(found, wanted)


def test_blocks_that_are_no_chain():
    class Skipping(Model):
        def forward(self, x):
            first = self.blocks[0](x)
            second = self.blocks[1](first)
            return self.blocks[2](first + second)

    with pytest.raises(EncodingError, match="block 2 takes more than what the one bef"):
        quiet(Skipping(blocks=3), "2:4", batches(), blocks="blocks")
    models = Skipping(blocks=3), Skipping(blocks=3)
    for model, blocks in zip(models, (None, "auto")):
        quiet(model, "2:4", batches(), blocks=blocks)
    for found, wanted in zip(models[1].parameters(), models[0].parameters()):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("target", [0.0, 0.5])
def test_a_function_may_run_the_model(target):
    data, config = batches(), PruneConfig("2:4", target=target)
    by_function, by_batches = Model(), Model()

    def run(model):
        for x in data:
            model(x)

    quiet(by_function, config, run)
    quiet(by_batches, config, data)
    for found, wanted in zip(by_function.parameters(), by_batches.parameters()):
        torch.testing.assert_close(found, wanted)


def test_modes_and_hooks_are_as_before():
    model = Model().train()
    model.blocks[0].eval()
    modes = [module.training for module in model.modules()]
    parameters = list(model.parameters())
    quiet(model, "2:4", batches())
    assert modes == [module.training for module in model.modules()]
    assert all(a is b for a, b in zip(parameters, model.parameters()))
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert not any(module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_types(dtype):
    model = Model().to(dtype)
    quiet(model, "2:4", [x.to(dtype) for x in batches()], dtype=torch.float32)
    assert {parameter.dtype for parameter in model.parameters()} == {dtype}


def test_progress_is_shown_on_stderr(capfd):
    prune_(Model(), "2:4", batches())
    shown = capfd.readouterr()
    assert "pruning layers: 100%" in shown.err and not shown.out
    quiet(Model(), "2:4", batches())
    assert not capfd.readouterr().err


def test_other_tokens_than_in_the_dense_model():
    class Routed(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.layer = nn.Linear(12, 4), nn.Linear(12, 12)

        def forward(self, x):
            return self.layer(x[self.gate(x)[..., 0] > 0])

    with pytest.raises(EncodingError, match="layer is given other tokens in the pr"):
        quiet(Routed(), PruneConfig("1:4", fit_bias=False), batches())
    report = quiet(Routed(), PruneConfig("1:4", target=0), batches())
    assert report["layer"].zeros == 0.75

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pruning of models: inputs of the layers before, configs, packing, errors."""

import copy
import json
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from prune_models import Model, batches, quiet  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import Encoding, EncodingError, encode, prune  # noqa: E402
from nm_sparse.torch import NMLinear  # noqa: E402
from nm_sparse.torch.prune import (  # noqa: E402
    PruneConfig,
    Statistics,
    pack_,
    prune_linear_,
)


def relative(model, dense, data):
    with torch.no_grad():
        wanted = torch.cat([dense.eval()(x) for x in data])
        found = torch.cat([model.eval()(x) for x in data])
    return float((found - wanted).norm() / wanted.norm())


def dense_inputs(model, name, data):
    seen = []

    def take(module, args):
        seen.append(args[0].detach().reshape(-1, args[0].shape[-1]))

    hook = model.get_submodule(name).register_forward_pre_hook(take)
    with torch.no_grad():
        for x in data:
            model.eval()(x)
    hook.remove()
    return torch.cat(seen)


@pytest.mark.parametrize("target", [0.0, 0.3, 1.0])
def test_inputs_are_those_of_the_pruned_layers_before(target):
    dense, data = Model(), batches()
    model = copy.deepcopy(dense)
    quiet(model, PruneConfig("2:4", score="magnitude", target=target), data)
    for name in ("blocks.0.out", "blocks.1.gate", "blocks.1.down"):
        x = dense_inputs(model, name, data).double()
        wanted = x.lerp(dense_inputs(dense, name, data).double(), target)
        linear, source = model.get_submodule(name), dense.get_submodule(name)
        y = wanted @ source.weight.double().t()
        if source.bias is not None:  # which takes the means
            x, y = x - x.mean(0), y - y.mean(0)
        # Further rows hold weights to what they were.
        root = (PruneConfig.damping * x.square().sum(0).mean()).sqrt()
        for output, w in enumerate(source.weight.detach().double()):
            kept = linear.weight[output].detach() != 0
            rows = torch.cat([x, root * torch.eye(len(w), dtype=x.dtype)])[:, kept]
            right = torch.cat([y[:, output], root * w])
            best = torch.linalg.lstsq(rows, right[:, None]).solution[:, 0]
            found = linear.weight[output, kept].detach().double()
            torch.testing.assert_close(found, best, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_each_step_makes_the_outputs_better(seed):
    dense, data = Model(16, 24, seed=seed), batches(6, 16, seed=seed)
    test = batches(6, 16, seed=seed)
    patterns = ["2:4", "3:6, block = [1, 4]", "[4:6, block = [1, 4]], [2:4]", "5:8"]
    pattern = patterns[seed]
    errors = []
    for config in (
        PruneConfig(pattern, score="magnitude", fit=False, keep_larger=True),
        PruneConfig(pattern, fit=False, keep_larger=True),
        PruneConfig(pattern, keep_larger=True),
    ):
        model = copy.deepcopy(dense)
        report = quiet(model, config, data)
        errors.append(relative(model, dense, test))
        for row in report.layers:
            assert config.fit == (row.damping is not None)
            assert row.error_after <= row.error_before
    assert errors[2] < min(errors[:2])


def test_wanda_agrees_with_the_reference():
    data, model = batches(), nn.Sequential(nn.Linear(12, 9))
    weight = model[0].weight.detach().double().numpy()
    norms = torch.cat(data).reshape(-1, 12).double().norm(dim=0).numpy()
    encoding = Encoding(3, 4, (2, 4), 1)
    kept = prune(np.abs(weight) * norms, encoding) != 0
    config = PruneConfig(encoding, fit=False, keep_larger=True)
    report = quiet(model, config, data)
    assert np.array_equal(model[0].weight.detach().numpy() != 0, kept)
    scores = (weight * norms) ** 2
    assert report["0"].kept == pytest.approx((scores * kept).sum() / scores.sum())
    assert report["0"].zeros == pytest.approx(1 - kept.mean())


@pytest.mark.parametrize(
    "pattern",
    [
        "2:4",
        "8:16, block = [1, 8], order = shuffled",
        "[4:10, block = [1, 16]], [2:4]",
        "[4:8, block = [1, 16]], [2:4], order = shuffled",
        "1:2, block = [3, 5]",
    ],
)
def test_pruned_layers_pack_without_further_pruning(pattern):
    model, data = Model(16, 24), batches(size=16)
    report = quiet(model, PruneConfig(pattern, keep_larger=True), data)
    assert len(report.layers) == 14
    for row in report.layers:
        linear = model.get_submodule(row.name)
        assert (row.perm is not None) == ("shuffled" in pattern)
        perm = None if row.perm is None else row.perm.numpy()
        encode(linear.weight.detach().numpy(), row.encoding, perm=perm)
        packed = NMLinear.from_dense(linear, row.encoding, prune=False, perm=row.perm)
        x = torch.randn(5, linear.in_features)
        torch.testing.assert_close(packed(x), linear(x), rtol=1e-4, atol=1e-5)


def test_models_pack_as_they_were_pruned():
    pattern = "[4:8, block = [1, 16]], [2:4], order = shuffled"
    model = Model(16, 24)
    model.again = model.blocks[0].query  # the same layer, in two places
    config = {"*": PruneConfig(pattern, keep_larger=True)}
    report = quiet(model, config, batches(size=16))
    x, perm = batches(size=16)[0], report["blocks.1.up"].perm
    wanted = model.eval()(x)
    pack_(model, report)
    assert isinstance(model.again, NMLinear) and model.again is model.blocks[0].query
    assert model.blocks[1].up.perm.tolist() == perm.tolist()
    assert not any(type(module) is nn.Linear for module in model.modules())
    torch.testing.assert_close(model(x), wanted, rtol=1e-4, atol=1e-5)


def test_weights_that_left_their_pattern_do_not_pack():
    model = Model()
    report = quiet(model, "2:4", batches())
    with torch.no_grad():
        model.blocks[1].down.weight += 1
    with pytest.raises(EncodingError, match="blocks.1.down: weight is not 2:4"):
        pack_(model, report)
    assert type(model.blocks[0].query) is nn.Linear
    alone = nn.Linear(12, 8)
    with pytest.raises(EncodingError, match="the model is a Linear: legal is an nn"):
        pack_(alone, quiet(alone, "2:4", batches()))


def test_free_encodings_keep_a_share():
    model = nn.Sequential(nn.Linear(12, 10))
    config = PruneConfig("free, block = [1, 5]", density=0.25)
    report = quiet(model, config, batches())
    assert report["0"].zeros == 0.75
    encode(model[0].weight.detach().numpy(), report["0"].encoding)


def test_names_decide():
    model, dense = Model(), Model()
    config = {
        "*.query": None,
        "blocks.0.*": "2:4",
        "*.down": PruneConfig("1:4", score="magnitude", fit=False),
    }
    report = quiet(model, config, batches())
    assert str(report["blocks.0.down"].encoding) == "2:4, dim = 1"
    assert report["blocks.1.down"].zeros == 0.75
    assert len(report.layers) == 7
    for name in ("blocks.0.query", "blocks.1.up"):
        found, wanted = model.get_submodule(name), dense.get_submodule(name)
        assert torch.equal(found.weight, wanted.weight)
    with pytest.raises(KeyError):
        report["blocks.1.up"]


def test_any_object_with_an_encoding_is_a_config():
    report = quiet(Model(), SimpleNamespace(encoding="2:4", score="surgeon"), batches())
    assert all(row.zeros == 0.5 for row in report.layers)


def test_tied_weights_stay_dense():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.body = nn.Embedding(7, 12), nn.Linear(12, 12)
            self.head = nn.Linear(12, 7, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, tokens):
            return self.head(self.body(self.embedding(tokens)))

    data = [torch.arange(7)[None]]
    for more in ({}, {"filter_fn": lambda module, name: True}):
        report = quiet(Tied(), "2:4", data, **more)
        assert [row.name for row in report.layers] == ["body"]
        reason = "it shares its weight with embedding.weight"
        assert report.left_dense == {"head": reason}


def test_the_bias_makes_up_for_the_mean():
    torch.manual_seed(0)
    x = torch.randn(50, 8) + 3
    dense = nn.Linear(8, 6)
    errors = []
    for fit_bias in (False, True):
        linear, seen = copy.deepcopy(dense), Statistics(8)
        seen.add(x)
        row = prune_linear_(linear, PruneConfig("2:4", fit_bias=fit_bias), seen)
        with torch.no_grad():
            change = (linear(x) - dense(x)).norm() / (dense(x) - dense.bias).norm()
        assert row.error_after == pytest.approx(float(change), rel=1e-3)
        errors.append(row.error_after)
    assert errors[1] < errors[0]


def test_the_report_is_a_table_and_json():
    pattern = "8:16, block = [1, 4], order = shuffled"
    config = {"*.value": None, "*": PruneConfig(pattern, keep_larger=True)}
    report = quiet(Model(16, 24), config, batches(size=16))
    lines = str(report).splitlines()
    assert lines[0].startswith("84.2 % of the model's bytes are sparse: 0.0 of 0.0 MiB")
    assert len(lines) == 16 and lines[1].startswith("layer")
    assert "8:16, block = [1, 4], order = shuffled" in lines[2]
    assert lines[14] == "blocks.0.value  dense: the config leaves '*.value' dense"
    rows = json.loads(report.to_json())
    assert rows[0]["name"] == "blocks.0.query" and rows[0]["shape"] == [16, 16]
    assert rows[0]["tokens"] == 3 * 4 * 16


def test_without_calibration():
    model = Model()
    report = quiet(model, PruneConfig("2:4", score="magnitude", fit=False))
    assert report["blocks.0.up"].error_after is None
    found, dense = (m.blocks[0].up.weight.detach().numpy() for m in (model, Model()))
    assert np.array_equal(found, prune(dense, Encoding("2:4", dim=1)))


class Idle(Model):
    def __init__(self):
        super().__init__()
        self.spare = nn.Linear(12, 12)


@pytest.mark.parametrize(
    "model, config, data, more, message",
    [
        (Model, "2:4", None, {}, "calibration is None: the fit or the score of blocks"),
        (Model, "2:4", [], {}, "calibration has no batch"),
        (Model, "2:4", batches(), {"blocks": "no"}, "blocks is 'no'.*model has blocks"),
        (Model, "2:4", lambda m: m(batches()[0]), {"blocks": "blocks"}, "a function"),
        (Model, {"*.no": "2:4"}, batches(), {}, r"'\*.no' of config matches no nn.Lin"),
        (Model, {"*": None}, batches(), {}, "config leaves no nn.Linear"),
        (Model, 5, batches(), {}, "config is 5: legal is a PruneConfig"),
        (Model, "2:5:4", batches(), {}, "encoding '2:5:4'"),
        (Model, "2:4", batches(), {"dtype": torch.float16}, "dtype is torch.float16"),
        (Idle, "2:4", batches(), {}, "calibration never runs spare: legal are layers"),
        (Model, "2:4", [batches()[0] / 0], {}, "NaN or infinite: legal are finite"),
    ],
)
def test_errors(model, config, data, more, message):
    with pytest.raises(EncodingError, match=message):
        quiet(model(), config, data, **more)


def test_wrong_configs():
    for name, value in (("damping", -1), ("target", 2)):
        with pytest.raises(EncodingError, match=f"{name} is {value}: legal is from 0"):
            PruneConfig("2:4", **{name: value})
    with pytest.raises(EncodingError, match="density is None of free"):
        PruneConfig("free")


def test_wrong_layers():
    with pytest.raises(EncodingError, match="pass calibration, or fit=False"):
        prune_linear_(nn.Linear(4, 4), "2:4")
    with pytest.raises(EncodingError, match="on the meta device; load the weigh"):
        prune_linear_(nn.Linear(4, 4, device="meta"), "2:4", Statistics(4))
    with pytest.raises(EncodingError, match="the layer cannot be pruned: it has par"):
        linear = torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        prune_linear_(linear, "2:4", Statistics(4))
    with pytest.raises(EncodingError, match=r"input has shape \[3, 5\]: legal is"):
        Statistics(4).add(torch.ones(3, 5))
    with pytest.raises(EncodingError, match="has_target was said"):
        Statistics(4, has_target=True).add(torch.ones(3, 4))

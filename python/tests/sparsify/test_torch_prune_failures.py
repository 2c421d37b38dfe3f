# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pruning that fails leaves the model as it was, and names the layer."""

import copy

import pytest

torch = pytest.importorskip("torch")

from prune_models import Model, batches, quiet  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import advise, sparsify_  # noqa: E402
from nm_sparse.torch.prune import PruneConfig, Statistics  # noqa: E402


def same(model, state):
    found = model.state_dict()
    return all(torch.equal(found[key], state[key]) for key in state)


class Late(Model):
    """Whose last block has infinite inputs, or none."""

    factor = float("inf")

    def forward(self, x):
        x = self.blocks[0](x)
        return self.blocks[1](x * self.factor)


@pytest.mark.parametrize("target", [0.0, 0.5])
@pytest.mark.parametrize("blocks", [None, "auto"])
def test_infinite_inputs_of_a_late_layer(target, blocks):
    model = Late()
    before = copy.deepcopy(model.state_dict())
    identities = [id(one) for one in model.parameters()]
    with pytest.raises(EncodingError, match=r"^blocks.1.query, batch 0: an input of t"):
        quiet(model, PruneConfig("2:4", target=target), batches(), blocks=blocks)
    assert same(model, before)
    assert identities == [id(one) for one in model.parameters()]
    assert not any(module._forward_pre_hooks for module in model.modules())
    assert not any("forward" in vars(module) for module in model.modules())


def test_the_batch_is_named():
    data = batches()
    data[2] = data[2] / 0
    model = Model()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(EncodingError, match="^blocks.0.query, batch 2: .* NaN or inf"):
        quiet(model, "2:4", data)
    assert same(model, before)
    with pytest.raises(EncodingError, match="^blocks.0.query: .*NaN or infinite"):
        quiet(model, "2:4", lambda m: m(data[2]))


def test_any_error_in_the_middle():
    class Interrupted(BaseException):
        pass

    model, calls = Model(), []
    before = copy.deepcopy(model.state_dict())

    def score(weight, statistics):
        calls.append(1)
        if len(calls) == 9:
            raise Interrupted
        return weight.abs()

    for fit in (True, False):
        calls.clear()
        with pytest.raises(Interrupted):
            quiet(model, PruneConfig("2:4", score=score, fit=fit), batches())
        assert len(calls) == 9 and same(model, before)
    with pytest.raises(EncodingError, match="^blocks.0.query: score has returned"):
        quiet(model, PruneConfig("2:4", score=lambda w, s: w[0]), batches())
    assert same(model, before)


EMPTY = {
    "no tokens": [torch.zeros(4, 0, 12)],
    "no rows": [torch.zeros(0, 12), torch.zeros(0, 12)],
    "padding": [
        {"x": torch.ones(2, 4, 12), "attention_mask": torch.zeros(2, 4)},
    ],
}


@pytest.mark.parametrize("case", EMPTY)
def test_calibration_without_tokens(case):
    model = Model()
    before = copy.deepcopy(model.state_dict())
    message = "^blocks.0.query: calibration has no token for it: legal are batches"
    with pytest.raises(EncodingError, match=message):
        quiet(model, "2:4", EMPTY[case])
    with pytest.raises(EncodingError, match=message):
        advise(
            model, 1, ["2:4"], EMPTY[case], progress=False,
            predictor=lambda *_: [(1, 2.0, 1.0)],
        )  # fmt: skip
    with pytest.raises(EncodingError, match=message):
        sparsify_(
            model, "2:4", budget=1.0, calibration=EMPTY[case], progress=False,
            predictor=lambda shape, t, e, tokens, chip: [(n, 2.0, 1.0) for n in tokens],
        )  # fmt: skip
    assert same(model, before)


def test_a_late_layer_without_tokens():
    class Routing(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(12, 12), nn.Linear(12, 12)

        def forward(self, x):
            return self.second(self.first(x)[:0])

    model = Routing()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(EncodingError, match="^second: calibration has no token for it"):
        quiet(model, "2:4", batches())
    assert same(model, before)


def test_some_batches_may_be_empty():
    report = quiet(Model(), "2:4", [torch.zeros(0, 12), *batches()])
    assert report["blocks.0.query"].tokens == 3 * 4 * 16


def test_sums_in_the_types_of_models():
    """Wide sums of narrow inputs: as exact as those of float64 inputs."""
    torch.manual_seed(0)
    x = (torch.randn(5000, 24) + 3).to(torch.bfloat16)
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        seen = Statistics(24)
        seen.add(x.to(dtype))
        wide = x.double()
        torch.testing.assert_close(seen.gram, wide.t() @ wide)
        torch.testing.assert_close(
            seen.centered().gram, 4999 * torch.cov(wide.t()), rtol=1e-6, atol=1e-6
        )

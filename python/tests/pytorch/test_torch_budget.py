# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparing patterns for a model, and choosing within a budget."""

import copy
import json

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from nm_sparse import Encoding, EncodingError  # noqa: E402
from nm_sparse import output_error as reference_error  # noqa: E402
from nm_sparse.compiler import CompileError  # noqa: E402
from nm_sparse.torch import NMLinear, NMSparseConfig, sparsify_  # noqa: E402
from nm_sparse.torch.models.budget import (  # noqa: E402
    advise,
    choose,
    output_error,
    sparsify_within_,
)
from nm_sparse.torch.prune import PruneConfig, Statistics  # noqa: E402

torch.set_num_threads(1)  # the problems are small
CANDIDATES = ("1:4", "2:4", "3:4", "4:8, block = [1, 8]")


def model(seed=0):
    torch.manual_seed(seed)
    layers = [nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(32, 16))


def batches(count=4):
    draw = torch.Generator().manual_seed(1)
    return [torch.randn(20, 16, generator=draw) for _ in range(count)]


class Predictor:
    """Time in proportion to what is kept; one pattern cannot be compiled."""

    def __init__(self, refused=None, overhead=0.0):
        self.calls, self.refused, self.overhead = [], refused, overhead

    def __call__(self, shape, dtype, encoding, tokens, chip=None):
        self.calls.append((shape, dtype, str(encoding), tuple(tokens), chip))
        if self.refused and str(encoding).startswith(self.refused):
            raise CompileError("no kernel multiplies it")
        size = shape[0] * shape[1] / 100
        share = encoding.n / encoding.m + self.overhead
        return [(n, size * n, size * n * share) for n in tokens]


def chosen(advice):
    return ["dense" if e is None else f"{e.n}:{e.m}" for e in advice.patterns.values()]


def test_the_fastest_within_the_budget_is_chosen():
    found = choose(model(), CANDIDATES, 0.4, Predictor(), batches(), progress=False)
    for layer in found.layers:
        times = {str(o.encoding): o.time(found.tokens) for o in layer.options}
        assert all(o.error > 0 for o in layer.options)
        within = [o for o in layer.options if o.error <= 0.4]
        fastest = min((o.time(found.tokens) for o in within), default=None)
        assert (layer.chosen is None) == (fastest is None)
        if fastest is not None:
            assert times[str(layer.chosen.encoding)] == fastest


def test_budgets_from_none_to_all():
    arguments = (Predictor(), batches())
    none = choose(model(), CANDIDATES, 0.0, *arguments, progress=False)
    assert chosen(none) == ["dense"] * 3 and none.speedup() == 1
    most = choose(model(), CANDIDATES, 1.0, *arguments, progress=False)
    assert chosen(most) == ["1:4"] * 3 and most.speedup() == pytest.approx(4)


def test_what_is_slower_than_dense_is_not_chosen():
    predictor = Predictor(overhead=0.6)
    found = choose(model(), CANDIDATES, 1.0, predictor, batches(), progress=False)
    assert chosen(found) == ["1:4"] * 3
    found = choose(model(), ["2:4"], 1.0, predictor, batches(), progress=False)
    assert chosen(found) == ["dense"] * 3


def test_of_equally_fast_ones_the_better_is_chosen():
    candidates = ("4:8, block = [1, 8]", "2:4", "4:8")
    found = choose(model(), candidates, 1.0, Predictor(), batches(), progress=False)
    for layer in found.layers:
        assert layer.chosen.error == min(option.error for option in layer.options)


def test_what_cannot_be_compiled_is_listed_with_the_reason():
    predictor = Predictor("1:4")
    found = choose(model(), CANDIDATES, 1.0, predictor, batches(), progress=False)
    assert all(pattern in ("2:4", "4:8") for pattern in chosen(found))
    assert "1:4: no kernel multiplies it" in str(found)
    rows = json.loads(found.to_json())["layers"]
    assert [len(row["options"]) for row in rows] == [4] * 3
    assert rows[0]["options"][0]["reason"] == "no kernel multiplies it"
    nothing = choose(model(), ["1:4"], 1.0, predictor, batches(), progress=False)
    assert chosen(nothing) == ["dense"] * 3


def test_errors_are_those_of_the_reference():
    torch.manual_seed(3)
    weight, x = torch.randn(24, 32), torch.randn(200, 32)
    seen = Statistics(32)
    seen.add(x)
    for encoding in (Encoding(2, 4, dim=1), Encoding(2, 4, (2, 8), 1)):
        config = PruneConfig(encoding, damping=1e-6)
        found = output_error(weight, config, seen, fit_rows=24)
        expected = reference_error(weight.double().numpy(), encoding, seen.gram.numpy())
        assert found == pytest.approx(expected, rel=1e-3)
        assert output_error(weight, config, seen, 8) == pytest.approx(expected, rel=0.3)
        worse = PruneConfig(encoding, fit=False)
        assert output_error(weight, worse, seen, 24) > found


def test_times_alone_need_no_calibration():
    predictor = Predictor()
    found = advise(model(), (1, 64), CANDIDATES, predictor=predictor, chip="sm_90a",
                   dtype="f16", progress=False)  # fmt: skip
    # Each shape and pattern is asked for once.
    assert len(predictor.calls) == 3 * len(CANDIDATES)
    assert len(set(predictor.calls)) == len(predictor.calls)
    assert predictor.calls[0] == ((32, 16), "f16", "1:4, dim = 1", (1, 64), "sm_90a")
    assert all(o.error is None for layer in found.layers for o in layer.options)
    lines = str(found).splitlines()
    assert lines[0] == "0  32 x 16" and "us, 64 tokens" in lines[1]
    assert "1:4" in lines[2] and "(4.00x)" in lines[2] and "dense" in lines[6]


def test_few_tokens_are_said():
    few = [torch.ones(5, 16)]
    found = choose(model(), ["2:4"], 0.5, Predictor(), few, progress=False)
    assert "0  32 x 16, errors are too small: 5 tokens for 16 inputs" in str(found)
    found = choose(model(), ["2:4"], 0.5, Predictor(), batches(), progress=False)
    assert "too small" not in str(found)
    assert json.loads(found.to_json())["layers"][0]["calibration_tokens"] == 80


def test_layers_can_be_left_out():
    found = advise(model(), 1, ["2:4"], predictor=Predictor(), progress=False,
                   filter_fn=lambda module, name: name != "2")  # fmt: skip
    assert [layer.name for layer in found.layers] == ["0", "4"]
    with pytest.raises(KeyError):
        found["2"]


def test_a_model_is_advised_upon_but_not_changed():
    own = model()
    before = copy.deepcopy(own.state_dict())
    choose(own, CANDIDATES, 0.5, Predictor(), batches(), progress=False)
    after = own.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("pack", [True, False])
def test_models_become_sparse_within_a_budget(pack):
    dense, own = model(), model()
    candidates = (*CANDIDATES, "4:8, block = [1, 8], order = shuffled")
    advice, report = sparsify_within_(
        own, 0.5, iter(batches()), candidates, pack=pack, predictor=Predictor(),
        progress=False,
    )  # fmt: skip
    kinds = [own[at] for at in (0, 2, 4)]
    for layer, kind, (name, e) in zip(advice.layers, kinds, advice.patterns.items()):
        assert isinstance(kind, NMLinear) == (pack and e is not None)
        if e is not None:
            assert report[name].encoding == e == layer.chosen.encoding
    x = torch.cat(batches())
    with torch.no_grad():
        wanted, found = dense(x), own(x)
    assert 0 < (found - wanted).norm() < wanted.norm()


def test_sparsify_with_a_budget():
    own, other = model(), model()
    report = sparsify_(
        own, CANDIDATES, budget=0.5, calibration=batches(), predictor=Predictor(),
        tokens=(1, 2048), progress=False,
    )  # fmt: skip
    advice, _ = sparsify_within_(
        other, 0.5, batches(), CANDIDATES, predictor=Predictor(), tokens=(1, 2048),
        progress=False,
    )  # fmt: skip
    assert len(report.rows) == len(advice.layers) and report.converted
    for row, layer in zip(report.rows, advice.layers):
        assert row.name == layer.name and row.shape == layer.shape
        assert row.is_converted == (layer.chosen is not None)
        assert isinstance(own.get_submodule(row.name), NMLinear) == row.is_converted
        if layer.chosen is not None:
            assert [one.tokens for one in row.predictions] == [1, 2048]
            assert row.packed_bytes < row.dense_bytes
            assert row.encoding and f"{row.encoding}, dim = 1" == str(
                layer.chosen.encoding
            )
    x = torch.cat(batches())
    with torch.no_grad():
        torch.testing.assert_close(own(x), other(x))
    assert "sparse" in str(report)


def test_layers_that_a_budget_leaves_dense():
    own = model()
    report = sparsify_(
        own, "2:4", lambda module, name: name != "2", budget=0.01,
        calibration=batches(), predictor=Predictor(), progress=False,
    )  # fmt: skip
    reasons = report.left_dense
    assert reasons["0"].startswith("the least error of a pattern is 0.")
    assert reasons["2"].startswith("filter_fn leaves it dense")
    report = sparsify_(
        own, "2:4", budget=1.0, calibration=batches(), progress=False,
        predictor=Predictor(overhead=1),
    )  # fmt: skip
    assert report.left_dense["0"] == (
        "no pattern within the budget is predicted to be faster"
    )


def test_what_goes_with_a_budget():
    with pytest.raises(EncodingError, match="calibration is None: legal with a budget"):
        sparsify_(model(), ["2:4"], budget=0.1)
    with pytest.raises(TypeError, match="config is a NMSparseConfig: legal with a"):
        sparsify_(model(), NMSparseConfig("2:4"), budget=0.1, calibration=batches())
    with pytest.raises(TypeError, match="tokens, calibration is given without a"):
        sparsify_(model(), NMSparseConfig("2:4"), calibration=batches(), tokens=3)
    with pytest.raises(TypeError, match="config is a NoneType: legal is"):
        sparsify_(model())


def test_nothing_is_within_the_budget():
    own = model()
    _, report = sparsify_within_(
        own, 0.0, batches(), CANDIDATES, predictor=Predictor(), progress=False
    )
    assert not report.layers
    assert torch.equal(own[0].weight, model()[0].weight)


@pytest.mark.parametrize(
    "more, message",
    [
        (dict(budget=2), "budget is 2: legal is an error from 0 to 1"),
        (dict(calibration=None), "calibration is None: legal are batches"),
        (dict(tokens=0), "tokens are 0: legal are positive"),
        (dict(tokens=()), r"tokens are \(\): legal are positive"),
        (dict(candidates=()), "patterns are none"),
        (dict(fit_rows=0), "fit_rows is 0: legal is at least 1"),
        (dict(filter_fn=lambda m, n: False), "config leaves no nn.Linear.*filter_fn"),
    ],
)
def test_wrong_choices(more, message):
    arguments = dict(candidates=["2:4"], budget=0.5, calibration=batches())
    arguments.update(more)
    with pytest.raises(EncodingError, match=message):
        choose(model(), predictor=Predictor(), progress=False, **arguments)


def test_layers_that_never_run():
    own = model()
    own.add_module("spare", nn.Linear(16, 16))
    own.forward = lambda x: own[2](own[0](x))
    with pytest.raises(EncodingError, match="calibration never runs 4"):
        choose(own, ["2:4"], 0.5, Predictor(), batches(), progress=False)

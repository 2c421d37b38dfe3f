# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/energy/compare_energy_models.py on products whose energy follows a law."""

import json
import math
import os
import pathlib
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn")
optimize = pytest.importorskip("scipy.optimize")

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "bench" / "energy"), str(ROOT / "bench" / "pages")]
import compare_energy_models as compare  # noqa: E402
import energy_features as features  # noqa: E402
import energy_page  # noqa: E402
import energy_samples  # noqa: E402
import energy_stand_ins as stand_ins  # noqa: E402
import fit_energy  # noqa: E402
from energy_samples import Sample  # noqa: E402
from energy_stand_ins import COSTS, EVENTS, write_counters  # noqa: E402
from sklearn.linear_model import Ridge  # noqa: E402

pytestmark = pytest.mark.slow
FAMILIES = ("dense", "mma", "simt", "wgmma, producers", "wgmma")


class Formula:
    """The formula of the energy model, without a build."""

    def joules(self, events, us, costs, few_runs=False):
        seconds = us * 1e-6
        running = max(0, seconds - costs["launch"] * events["launches"])
        total = costs["idle"] * seconds + costs["active"] * running * events["busySMs"]
        total += sum(costs[c] * events[e] for c, e in fit_energy.PER_EVENT.items())
        return min(total, costs["limit"] * seconds)

    def solve(self, rows, wanted):
        return list(optimize.nnls(np.array(rows), np.array(wanted))[0])


def make_sample(layer, family, draw, watts=None):
    us = float(np.exp(draw.uniform(2, 6)))
    # 0 to 60 W of each.
    events = {e: draw.uniform(0, 60) * us * 1e-6 / 1e-11 for e in EVENTS}
    events.update(busySMs=draw.uniform(0.3, 1), launches=1)
    if not watts:
        watts = Formula().joules(events, us, COSTS) / us * 1e6
    joules = watts * us * 1e-6
    costs = {"table": COSTS, "limit": 700}
    times = {"us": us, "few_us": us, "predicted_us": us}
    return Sample(
        layer, family, 8, joules * 1e3, watts=watts, events=events, **times, **costs
    )


def make_products(seed, count, tag="", law=None, sizes=None):
    """Pairs of a dense and another product. `law` is of watts, by three numbers."""
    draw = np.random.default_rng(seed)
    found = []
    for i in range(count):
        for family in ("dense", FAMILIES[1 + i % (len(FAMILIES) - 1)]):
            numbers = sizes(draw, family) if sizes else np.exp(draw.uniform(3, 9, 3))
            watts = law(numbers, family) if law else None
            sample = make_sample(f"layer{tag}{i}", family, draw, watts)
            groups = {
                "events": sample.events,
                "size": {f"number{j}": float(n) for j, n in enumerate(numbers)},
                "predicted": {"predictedNs": sample.predicted_us * 1e3},
                "measured": {"measuredNs": sample.us * 1e3},
            }
            if family != "dense":
                groups["code"] = {"instructions": float(draw.integers(9, 999))}
            found.append(features.Product(sample, groups))
    return found


def power_law(numbers, family):
    return 20 * np.prod(np.array(numbers) ** [0.3, -0.2, 0.25])


def errors(products, judged, make, groups, validation, target=compare.POWER):
    splits = list(compare.split(products, judged, validation))
    predict = compare.regress(groups, make, validation)
    return compare.try_out(predict, splits, target)


@pytest.mark.parametrize("validation", compare.VALIDATIONS)
def test_ridge_recovers_a_power_law(validation):
    products = make_products(1, 40, law=power_law)
    judged = make_products(2, 10, "j", law=power_law)
    found = errors(products, judged, compare.ridge, ("size",), validation)
    assert found["median"] < 0.01 and found["within_quarter"] == 1
    blind = errors(products, judged, compare.median, ("size",), validation)
    assert blind["median"] > 0.2
    # Energy is watts for the time that is known.
    groups = ("size", "measured")
    energy = errors(products, judged, compare.ridge, groups, validation, compare.ENERGY)
    assert energy["p95"] < 0.02


def test_trees_learn_a_step_that_ridge_does_not():
    def law(numbers, family):
        return 400 if 300 < numbers[0] < 1500 else 200

    products = make_products(3, 60, law=law)
    judged = make_products(4, 20, "j", law=law)
    arguments = (("size",), compare.OTHERS)
    trees = errors(products, judged, compare.trees, *arguments)
    ridge = errors(products, judged, compare.ridge, *arguments)
    assert trees["median"] < 0.02 < ridge["median"]


@pytest.mark.parametrize("time", ["measured", "predicted"])
def test_energy_is_learned_as_watts_for_a_time(time):
    """So that trees need not learn the time, which is all that there is to learn."""
    products = make_products(13, 30, law=lambda numbers, family: 300)
    for p in products:
        p.sample.predicted_us = p.sample.us * 2
    judged = make_products(14, 10, "j", law=lambda numbers, family: 300)
    for p in judged:
        p.sample.predicted_us = p.sample.us * 2
    arguments = (compare.trees, ("size", time), compare.OTHERS, compare.ENERGY)
    assert errors(products, judged, *arguments)["p95"] < 1e-6
    blind = (compare.trees, ("size",), compare.OTHERS, compare.ENERGY)
    assert errors(products, judged, *blind)["median"] > 0.2


def test_what_is_left_out_is_not_learned_from():
    """A family takes thrice as much; one number says which family it is."""

    def sizes(draw, family):
        return [*np.exp(draw.uniform(3, 6, 2)), 100.0 if family == "simt" else 1.0]

    def law(numbers, family):
        return 100 * (3 if family == "simt" else 1)

    products = make_products(5, 40, law=law, sizes=sizes)
    folds = errors(products, [], compare.trees, ("size",), compare.FOLDED)
    unseen = errors(products, [], compare.trees, ("size",), compare.LEFT_OUT)
    assert folds["families"]["simt"]["median"] < 0.01
    assert unseen["families"]["simt"]["median"] == pytest.approx(2 / 3, abs=0.01)
    assert unseen["families"]["dense"]["median"] < 0.7


def test_splits():
    fitted, judged = make_products(6, 20), make_products(7, 8, "j")
    every = [id(p) for p in (*fitted, *judged)]
    seen = []
    for learned, tried in compare.split(fitted, judged, compare.LEFT_OUT):
        (family,) = {p.family for p in tried}
        assert family not in {p.family for p in learned}
        assert len(learned) == sum(p.family != family for p in fitted)
        seen += [id(p) for p in tried]
    assert sorted(seen) == sorted(every)
    # However a family fetches its operands, it is one.
    assert {p.family for p in fitted} == {"dense", "mma", "simt", "wgmma"}
    seen = []
    for learned, tried in compare.split(fitted, judged, compare.FOLDED):
        layers = [{p.sample.layer for p in part} for part in (learned, tried)]
        assert not layers[0] & layers[1] and len(learned) + len(tried) == len(fitted)
        seen += [id(p) for p in tried]
    assert sorted(seen) == sorted(id(p) for p in fitted)
    ((learned, tried),) = compare.split(fitted, judged, compare.OTHERS)
    assert learned == fitted and tried == judged


def test_energy_model_is_fitted_anew():
    fitted, judged = make_products(8, 40), make_products(9, 10, "j")
    for time in ("predicted", "measured"):
        predict = compare.physical(Formula(), time)
        for target in (compare.ENERGY, compare.POWER):
            splits = list(compare.split(fitted, judged, compare.LEFT_OUT))
            assert compare.try_out(predict, splits, target)["p95"] < 1e-3
    # What no product that is learned from has takes nothing.
    for product in fitted:
        if product.family != "simt":
            product.sample.events["ffmaFlops"] = 0
            us = product.sample.us
            joules = Formula().joules(product.sample.events, us, COSTS)
            product.sample.mj, product.sample.watts = joules * 1e3, joules / us * 1e6
    splits = list(compare.split(fitted, [], compare.LEFT_OUT))
    found = compare.try_out(predict, splits, compare.ENERGY)["families"]
    assert found["simt"]["p95"] > 0.02 > found["mma"]["p95"]


def test_no_growth_without_products_at_the_limit():
    samples = [p.sample for p in make_products(10, 4)]
    samples = [s for s in samples if not s.is_at_limit]
    assert samples and fit_energy.fit_growth(samples, COSTS, Formula()) == 0


def test_rows_of_what_is_known():
    products = make_products(11, 12)
    sparse = [p for p in products if not p.is_dense]
    known = compare.known_sets(products, compare.ALL_SETS)
    assert list(known) == ["static", "static, predicted time", "static, measured time"]
    assert "code" in compare.known_sets(sparse, compare.SPARSE_SETS)
    for p in products:
        p.groups["counters"] = {"gpu__time_duration.sum": 1.0}
    assert set(compare.known_sets(products, compare.ALL_SETS)) == set(compare.ALL_SETS)
    assert set(compare.known_sets(sparse, compare.SPARSE_SETS)) == set(
        compare.SPARSE_SETS
    )


def test_too_few_products():
    products = make_products(12, 20)
    dense = [p for p in products if p.is_dense]
    for fitted, judged, said in (
        (dense, dense, "two families"),
        (products[:8], products, "10 layers or more"),
        (products, [], "--judge must have a product"),
    ):
        with pytest.raises(SystemExit, match=said):
            list(compare.compare(fitted, judged, compare.ALL_SETS, Formula()))


@pytest.fixture
def folder(tmp_path):
    return stand_ins.make_folder(tmp_path)


def run(monkeypatch, folder, *arguments):
    """The file that the script writes."""
    monkeypatch.setattr(compare, "Formula", lambda build: Formula())
    monkeypatch.setattr(compare, "REGRESSORS", {"ridge": lambda *_: Ridge()})
    out = folder / "out.json"
    command = ["compare", "--fit", folder / "fit.json", "--bin", folder / "bin"]
    command += ["--judge", folder / "judge.json", "--json", out, *arguments]
    monkeypatch.setattr(sys, "argv", [str(word) for word in command])
    compare.main()
    return json.loads(out.read_text())


def test_counters_add_rows(folder, monkeypatch, capsys):
    static = run(monkeypatch, folder)
    assert static["products"] == 40 and static["counters"] is None
    assert not {"dynamic", "both"} & {row["features"] for row in static["rows"]}
    counters = write_counters(folder, [*range(20, 36), *range(40, 44)])
    both = run(monkeypatch, folder, "--counters", counters)
    assert both["counters"] == "counters.json"
    added = [row for row in both["rows"] if row["features"] in ("dynamic", "both")]
    # Two sets of features, two groups of products, three validations and two targets.
    assert len(added) == 2 * 2 * 3 * 2
    assert [row for row in both["rows"] if row not in added] == static["rows"]
    assert "| sparse | power | family left out | dynamic | ridge | 20 |" in (
        capsys.readouterr().out
    )
    monkeypatch.setattr(energy_page, "REGRESSORS", folder / "out.json")
    page = energy_page.regressors()
    assert "| dynamic | ridge | " in page and "await" not in page
    (folder / "out.json").write_text(json.dumps(static))
    assert "await a profile" in energy_page.regressors()


def test_a_profile_of_some_layers(folder, monkeypatch):
    counters = write_counters(folder, [*range(22, 36), 41])
    with pytest.raises(SystemExit, match="_20x1024x2048_product and 1 more layers"):
        run(monkeypatch, folder, "--counters", counters)
    found = run(monkeypatch, folder, "--counters", counters, "--profiled")
    assert found["products"] == 30
    with pytest.raises(SystemExit):
        run(monkeypatch, folder, "--profiled")


def test_layers_in_both_lists(folder, monkeypatch):
    stand_ins.write_results(folder / "judge.json", [20, 50])
    with pytest.raises(SystemExit, match="_20x1024x2048_product is in both lists"):
        run(monkeypatch, folder)


def test_recorded_figures():
    """The energy model has the errors that fit_energy.py finds of the same lists, and
    these are the recorded ones where all of --fit is learned from."""
    found = json.loads(energy_page.REGRESSORS.read_text())
    build = pathlib.Path(os.environ.get("NM_BUILD_DIR", ROOT / "build"))
    if not (build / "bin/nm-compile").exists():
        pytest.skip("no build of the compiler")
    formula = energy_samples.Formula(build)
    fitted = energy_samples.read([energy_page.FIT], build / "bin")
    judged = energy_samples.read([energy_page.JUDGE], build / "bin")
    all_costs = fit_energy.fit(fitted, formula)
    # Regressors and the energy model learn from what was profiled.
    profiled = features.read_counters(energy_page.COUNTERS)
    known = [sample for sample in fitted if sample.layer in profiled]
    costs = fit_energy.fit(known, formula)
    model = json.loads(energy_page.MODEL.read_text())["errors"]
    for time in ("measured", "predicted"):
        errors = fit_energy.errors(judged, costs, formula, time == "predicted")
        expected = fit_energy.summarize(errors)
        errors = fit_energy.errors(judged, all_costs, formula, time == "predicted")
        recorded = model[f"judge, {time} time"]["all"]
        assert recorded == pytest.approx(fit_energy.summarize(errors), abs=2e-4)
        (row,) = (
            row
            for row in found["rows"]
            if row["features"] == f"static, {time} time"
            and row["model"] == "energy model"
            and (row["products_of"], row["target"]) == ("all", "energy")
            and row["validation"] == "other layers"
        )
        assert row["products"] == expected["products"]
        assert math.isclose(row["median"], expected["median"], abs_tol=2e-4)
        assert row["within_quarter"] == expected["within_quarter"]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of the model, fitted to times that are made up from known ones."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))
import fit  # noqa: E402
import fitting  # noqa: E402
import samples  # noqa: E402
from layers import Layer  # noqa: E402

BUILD = Path(os.environ.get("NM_BUILD_DIR", ROOT / "build"))
needs_formula = pytest.mark.skipif(
    not (BUILD / "lib/libnm_sparse_cost_model.so").exists(),
    reason="no build of the cost model",
)


@pytest.fixture(scope="module")
def formula():
    return fitting.Formula(BUILD / "lib")


@pytest.fixture(scope="module")
def costs():
    return json.loads((fit.TABLES / "h200.json").read_text("utf-8"))["costs"]


def make(formula, costs, seed, count=120):
    """Kernels of two families, 15 of each layer, that take what `costs` say."""
    rng = np.random.default_rng(seed)
    work = np.zeros((count, len(formula.work)))

    def put(name, low, high):
        work[:, formula.work.index(name)] = np.exp(
            rng.uniform(np.log(low), np.log(high), count)
        )

    for name, low, high in [
        ("ctas", 20, 2000), ("resident", 1, 1.001), ("steps", 8, 200),
        ("stages", 3, 8), ("math", 1e-7, 6e-7), ("ownMath", 1e-8, 1e-7),
        ("products", 1, 16), ("x", 1e-7, 6e-7), ("weight", 1e-7, 4e-7),
        ("shared", 1e-8, 3e-7), ("copies", 1, 30), ("index", 10, 500),
        ("written", 1e-7, 2e-6), ("dram", 1e-7, 4e-6),
    ]:  # fmt: skip
        put(name, low, high)
    for name, value in [("multiprocessors", 132), ("clock", 1.7e9), ("parts", 1)]:
        work[:, formula.work.index(name)] = value
    family = ["wgmma", "mma"] * (count // 2)
    dense = np.ones((count, len(formula.dense_work)))
    made = fitting.Counted([], work, family, dense, np.array([True] * count))
    for i, us in enumerate(formula.predict(made, costs)):
        layer = Layer("f16", "50", 128, "feature", (i // 15 + 1, 4096, 4096))
        made.samples.append(samples.Sample(layer, "#s", us, 10.0))
    return made


def change(costs, family, **factors):
    own = costs["families"][family]
    changed = {name: own[name] * factor for name, factor in factors.items()}
    families = {**costs["families"], family: {**own, **changed}}
    return {**costs, "families": families}


@needs_formula
@pytest.mark.parametrize("seed", range(3))
def test_fits_find_the_costs_of_the_times(formula, costs, seed):
    made = make(formula, change(costs, "wgmma", x=3.0, weight=3.0, copy=3.0), seed)
    before = np.abs(fit.errors(made, formula.predict(made, costs)))
    after = np.abs(
        fit.errors(made, formula.predict(made, fitting.fit(formula, made, costs)))
    )
    assert np.median(before[::2]) > 0.1 and np.median(after[::2]) < 0.03
    # The other family had no errors.
    assert np.max(before[1::2]) < 1e-6 and np.median(after[1::2]) < 0.03


@needs_formula
def test_more_work_never_takes_less(formula, costs):
    made = make(formula, costs, 7)
    least = formula.predict(made, costs)
    # CTAs that an SM holds, and stages, hide what others do; overlaps shorten.
    fixed = ("resident", "multiprocessors", "clock", "stages", "overlaps", "ctas")
    for i, name in enumerate(formula.work):
        if name in fixed or name == "streamK":
            continue
        made.work[:, i] = 1.5 * made.work[:, i] + 1e-7
        more = formula.predict(made, costs)
        assert np.all(more >= least * (1 - 1e-9)), name
        least = more


def least(made):
    """The times of the fastest kernels of each layer."""
    times = {}
    for one in made.samples:
        times[one.layer] = min(one.us, times.get(one.layer, one.us))
    return times.values()


@needs_formula
def test_judging_compares_the_first_with_the_best(formula, costs, capsys):
    made = make(formula, costs, 3)
    right = formula.predict(made, costs)
    assert not fit.judge(made, right, 0.8 * right)
    assert "in 100.0 %" in capsys.readouterr().out
    missed = fit.judge(made, 1.2 * right, right)
    assert [bar.split(" 0.")[0] for bar in missed] == ["median error"]
    # Kernels take longer than the 10 us of dense, which is predicted to take longer.
    (slow, *_) = fit.judge(made, right, 2 * right)
    assert (
        slow == f"{sum(one > 10.5 for one in least(made))} slower than dense, not said"
    )


def test_losses_are_of_the_first_schedules():
    layer = Layer("f16", "50", 128, "token", (5, 4096, 4096))
    kernels = [samples.Sample(layer, f"#{i}", 20.0 - i, 9.0) for i in range(14)]
    counted = fitting.Counted(kernels, np.empty(0), [], np.empty(0), np.empty(0))
    # Ranked as they are numbered: the last of the first 12 takes 9 us, the best 7.
    ((first, one),) = fit.losses(counted, range(14))
    assert first == 9 / 7 and one == 20 / 7
    # Of 12 the best is always one of the first.
    counted.samples = kernels[:12]
    assert fit.losses(counted, range(12)) == [(None, 20 / 9)]


def test_samples_are_lines(tmp_path):
    name = "f16_s50of4v8_L64_token_7x4096x4096_product"
    run = {"file": f"{name}.mlir", "gpu": "NVIDIA H200", "schedules": ["#s"]}
    run.update(cublas_us=13.123456, time={"median_us": 12.345678})
    run.update(kernels=["f_transpose", "f_kernel"], overlapping_launches=1)
    wrong = {**run, "passed": False}
    report = {"commit": "abc", "runs": [run, wrong, {"file": "other.mlir"}]}
    assert samples.write(report, tmp_path / "a.jsonl") == 1
    head, (sample,) = samples.read(tmp_path / "a.jsonl")
    assert head == {"commit": "abc", "gpu": "NVIDIA H200"}
    assert sample.layer.name == name and sample.layer.outer == 8
    assert (sample.us, sample.dense_us) == (12.35, 13.12)
    assert sample.before == "transposition" and sample.overlaps
    text = (tmp_path / "a.jsonl").read_text("utf-8")
    assert sample.line() == text.splitlines()[1]


@pytest.mark.parametrize(
    "path", sorted(fit.TABLES.glob("*.json")), ids=lambda p: p.stem
)
def test_tables_say_where_they_are_from(path):
    table = json.loads(path.read_text("utf-8"))
    assert table["gpu"] == path.stem and table["source"] and table["date"]
    # Costs are fitted to samples that are there, or those of a GPU that has some.
    if "costsOf" in table:
        other = json.loads((fit.TABLES / f"{table['costsOf']}.json").read_text("utf-8"))
        assert "costs" in other and "costs" not in table
    else:
        assert not table["estimated"] and (fit.SAMPLES / f"{path.stem}.jsonl").exists()

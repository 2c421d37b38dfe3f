# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/: the lists of shapes, a run on a stand-in for the tools, the report."""

import copy
import dataclasses
import json
import lzma
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "pages")]
import clocks  # noqa: E402
import drawn  # noqa: E402
import layers  # noqa: E402
import plots  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
import shapes  # noqa: E402

pytestmark = pytest.mark.slow

# Ranks three schedules, and runs what it is told to: predicted and measured
# times come from the schedule's number of stages.
TOOL = """\
#!{python}
import json, shlex, sys
if sys.argv[1] == "nm-compile":
    count = int(sys.argv[sys.argv.index("--candidates") + 1])
    ranked = [dict(schedule=f"stages {{i}}", predicted_us=10.0 * i, bound="L2")
              for i in (1, 2, 3)]
    print(json.dumps([dict(candidates=ranked[:count])]))
    sys.exit()
value = lambda words, name, other: (
    words[words.index(name) + 1] if name in words else other)
runs = []
for line in open(value(sys.argv, "--batch", "")):
    words = shlex.split(line)
    assert "--check" in words and "--bench" in words
    us = 10.0 * {{"1": 1.25, "2": 1.0, "3": 4.0}}[value(words, "--schedule", "1")[-1]]
    passed = "s87.5" not in line
    done = dict(arguments=line.strip(), file=words[0], passed=passed,
                schedules=[value(words, "--schedule", "stages 1")])
    if passed:
        timing = dict(median_us=us, min_us=us, max_us=us)
        done.update(time=timing, cublas_us=20.0, speedup=20.0 / us, sets=4,
                    cublas=dict(nn=timing, tn=timing, version=130000),
                    measured_at=[1.0, 2.0])
    runs.append(done)
with open(value(sys.argv, "--json", ""), "w") as file:
    json.dump(dict(commit="abc", runs=runs), file)
"""


@pytest.fixture
def tool(tmp_path):
    path = tmp_path / "nm-sparse"
    path.write_text(TOOL.format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def result(tool, tmp_path, monkeypatch):
    reading = {"sm_mhz": 1980.0}
    monkeypatch.setattr(clocks, "sample", lambda: reading)
    monkeypatch.setattr(clocks.Watch.__init__, "__defaults__", (0.01, lambda: reading))
    out = tmp_path / "results" / "one.json"
    out.parent.mkdir()
    options = ["--suite", "cubes", "--only", "f16,4096x*,L128", "--candidates", "3"]
    # The product at 87.5 % is wrong.
    assert run.main(["--tool", str(tool), "--out", str(out), *options]) == 1
    return out


def test_lists_of_shapes():
    assert len(set(shapes.NMSPMM)) == 100
    assert (256, 3 * 2048, 2048) in shapes.NMSPMM
    assert (4096, 8192, 22016) in shapes.NMSPMM
    assert len(set(shapes.NMSPARSE)) == 24
    assert (256, 20480, 5120) in shapes.NMSPARSE
    assert (8192,) * 3 in shapes.LARGE and (1024, 8192, 8192) not in shapes.LARGE
    for name, cases in shapes.SUITES.items():
        assert len(set(cases)) == len(cases), name
    assert shapes.select(["cubes", "cubes"]) == shapes.SUITES["cubes"]
    assert {c.layer.type for c in shapes.select(["cubes"], "f32,s75")} == {"f32"}


@pytest.mark.parametrize("epilogue", layers.EPILOGUES)
@pytest.mark.parametrize("layout", layers.LAYOUTS)
def test_a_name_says_everything(layout, epilogue):
    layer = layers.Layer("f16", "62.5", 128, layout, (77, 1000, 1333), epilogue)
    assert layers.parse(layer.name) == layer
    assert "<12:32, block = [1, 128]>" in layer.text()
    x = "?x1333xf16" if layout == "token" else "1333x?xf16"
    assert f"%x: tensor<{x}>" in layer.text()
    assert layers.parse("linear") is None


def test_run_keeps_what_was_known(result):
    found = json.loads(result.read_text())
    assert found["commit"] == "abc" and found["suites"] == ["cubes"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["date"])
    assert found["clocks"]["sm_mhz"] == [1980.0] * 3
    assert len(found["runs"]) == 4 * 3
    first, second = found["runs"][:2]
    assert first["role"] == "choice" and first["predicted_us"] == 10
    assert second["role"] == "candidate" and second["schedules"] == ["stages 2"]
    assert first["clocks"] == {"sm_mhz": 1980.0}
    assert "arguments" not in first
    # One line for each run.
    assert sum('"role"' in line for line in result.read_text().splitlines()) == 12


def test_a_packed_tool_is_unpacked(tool, tmp_path):
    packed = tmp_path / "nm-sparse.xz"
    packed.write_bytes(lzma.compress(tool.read_bytes()))
    (tmp_path / "scratch").mkdir()
    found = run.unpacked(packed, tmp_path / "scratch")
    assert found.read_bytes() == tool.read_bytes() and found.stat().st_mode & 0o100
    assert run.unpacked(tool, tmp_path) == tool


def test_forced_schedules_are_no_choice():
    case = shapes.SUITES["ablation"][0]
    ranked = {case.layer: [{"schedule": "a", "predicted_us": 1, "bound": "L2"}]}
    (entry,) = run.plan([case], ranked)
    assert entry[1]["role"] == "forced" and entry[1]["label"] == case.label
    (entry,) = run.plan([shapes.Case(case.layer)], ranked, schedule="b")
    assert entry[1] == {"role": "forced", "schedule": "b"}


def test_what_cusparselt_can_do():
    problems = run.two_to_four(shapes.SUITES["cubes"])
    assert {"type": "f16", "shape": (4096, 4096, 4096)} in problems
    assert len(problems) == 3


def test_clocks_are_of_the_visible_gpu(monkeypatch):
    def answer(command, **_):
        return subprocess.CompletedProcess(command, 0, f"{command[1]}, 580\n")

    monkeypatch.setattr(clocks.subprocess, "run", answer)
    for visible, expected in (("", "0"), ("3,1", "3"), ("GPU-8f", "GPU-8f")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert clocks.query(["name", "driver"])["name"] == f"--id={expected}"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert clocks.query(["name", "driver"])["name"] == "--id=0"


def test_clocks_between():
    watch = clocks.Watch()
    watch.readings = [(float(t), {"sm_mhz": 100.0 * t}) for t in range(10)]
    assert watch.between(2, 4) == {"sm_mhz": 300.0}
    assert watch.between(7.2, 7.3) == {"sm_mhz": 700.0}
    assert watch.range() == {"sm_mhz": [0.0, 450.0, 900.0]}
    assert clocks.Watch().between(0, 1) == {}


def test_tables(result):
    found, results = report.read(result)
    # 1.6x is 80 % of the ideal at 50 %, and 40 % at 75 %.
    text = report.speed(results)
    assert "| f16 | 128 | feature-major | 1.60x, 80 % | 1.60x, 60 % | 1.60x" in text
    # The wrong product is left out.
    assert "| 1.60x, 40 % |  |" in text
    # The second candidate is a quarter faster; predictions are 20 % too low.
    assert "| f16 | 3 | 1.250 | 1.25 | 3 | 20 % |" in report.model(results)
    page = report.page(result.parent)
    assert "## one.json" in page and "SM clocks seen 1980 to 1980 MHz" in page


def test_rivals_are_compared_over_cublas(result):
    rivals = {"rivals": {"Other": [dict(type="f16", sparsity="50", us=10.0)]}}
    rivals["rivals"]["Other"][0].update(shape=[4096] * 3, cublas_us=8.0)
    (result.parent / report.RIVALS).write_text(json.dumps(rivals))
    _, results = report.read(result)
    text = report.against_rivals(results, result.parent)
    assert "| Other | f16 | 128 | 50 % | 1 | 0.80x | 1.60x | 2.00 |" in text


def test_figures_have_one_point_of_a_layer(result):
    _, results = report.read(result)
    newest = report.latest([(0, 0, results)])
    old = copy.copy(newest[0])
    old.layer = dataclasses.replace(old.layer, epilogue="plain")
    for order in ([old, *newest], [*newest, old]):
        assert sorted(map(id, plots.plain(order))) == sorted(map(id, newest))


def test_cusparselt_of_the_same_run(result):
    found, results = report.read(result)
    entry = dict(type="f16", shape=[4096] * 3, time={"median_us": 5.0}, speedup=4.0)
    found["cusparselt"] = {"runs": [entry, dict(entry, shape=[1, 2, 3])]}
    text = report.beside_cusparselt(found, results)
    assert "| 5.0 | 4.00x | 128 | 12.5 | 1.60x | 0.40 |" in text
    assert text.count("\n") == 2


def test_mma_is_measured_against_its_ceiling(result):
    ceilings = {"ceilings": {"mma_tflops": 5.5}}
    (result.parent / report.RIVALS).write_text(json.dumps(ceilings))
    _, results = report.read(result)
    assert report.mma(results, result.parent) == ""
    results[0].label = shapes.MMA_LABEL
    results[0].us = 12.5e3
    # 68.7 GFLOP at 50 %.
    text = report.mma(results, result.parent)
    assert "12500.0 us, 5 TFLOP/s, 100 %, 1.60x" in text
    assert shapes.MMA_LABEL not in report.ablation(results)


def test_nothing_measured(tmp_path):
    assert report.page(tmp_path) == report.NONE
    assert plots.make("speedup", tmp_path / "images", tmp_path) == report.NONE


def test_figures_know_their_data(result, tmp_path):
    ceilings = {"ffma_tflops": 66, "mma_tflops": 636, "wgmma_tflops": 801}
    rivals = {"ceilings": {**ceilings, "dram_tbps": 4.6}}
    (result.parent / report.RIVALS).write_text(json.dumps(rivals))
    pytest.importorskip("matplotlib")
    for name, (collect, _, _) in plots.FIGURES.items():
        line = plots.make(name, tmp_path, result.parent)
        written = (tmp_path / f"{name}.svg").read_text()
        assert re.search(r"<!-- (\w{16}) -->", line)[1] in written, collect
        stamp = (tmp_path / f"{name}.svg").stat().st_mtime_ns
        plots.make(name, tmp_path, result.parent)
        assert (tmp_path / f"{name}.svg").stat().st_mtime_ns == stamp


def test_figures_of_the_pages_are_those_of_the_results():
    pages = ("Performance", "Energy", "Models")
    text = "".join((ROOT / f"docs/{page}.md").read_text("utf-8") for page in pages)
    found = re.findall(r"\(images/(\w+)\.svg\) <!-- (\w{16}) -->", text)
    assert {name for name, _ in found} == set(plots.FIGURES)
    for name, digest in found:
        assert f"data {digest}" in (ROOT / f"docs/images/{name}.svg").read_text()


def test_a_report_of_drawn_layers_is_condensed_and_read_again(tmp_path):
    name = "f16_s50_L128_token_7x4096x4096_product"
    run = {"file": f"{name}.mlir", "gpu": "NVIDIA H200", "schedules": ["#s"]}
    run.update(cublas_us=13.123456, time={"median_us": 12.345678})
    run.update(kernels=["f_transpose", "f_kernel"], overlapping_launches=1)
    report = {"commit": "abc", "runs": [run, {"file": "other.mlir"}]}
    drawn.write(report, tmp_path / "out.json", "of a test")
    condensed = json.loads((tmp_path / "out.json").read_text())
    assert condensed["note"] == "of a test" and len(condensed["drawn"]) == 1
    (again,) = drawn.runs(condensed)
    assert again["time"]["median_us"] == 12.346 and again["cublas_us"] == 13.123
    assert again["before"] == "transposition" and again["overlapping_launches"] == 1

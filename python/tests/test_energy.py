# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scripts of bench/ that compare and profile energies."""

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import energy_choice  # noqa: E402
import energy_page  # noqa: E402
import energy_samples  # noqa: E402
import profile_energy  # noqa: E402

LAYER = "f16_s50_L64_feature_8x1024x1024_product"


def run_of(schedule, mj, us, **other):
    energy = {"ours": {"mj": mj, "us": us}}
    return {
        "file": f"{LAYER}.mlir",
        "size": 8,
        "gpu": "NVIDIA H100",
        "schedules": [schedule],
        "kernels": ["f_kernel"],
        "energy": energy,
        "time": {"median_us": us},
        **other,
    }


@pytest.fixture
def chosen(tmp_path):
    """A result file: `slow` takes the least energy, and `wrong` less, wrongly."""
    runs = [
        run_of("fast", 2.0, 5, passed=True),
        run_of("slow", 1.5, 8, passed=True),
        run_of("wrong", 0.5, 4, passed=False),
        run_of("slow", 1.7, 8),
        run_of("fast", 2.0, 5),
    ]
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"commit": "c", "runs": runs}))
    out = tmp_path / "choice.json"
    energy_choice.condense(options_of(report=report, out=out))
    return out


def options_of(**values):
    return type("Options", (), values)()


def test_condense_choices(chosen):
    (entry,) = json.loads(chosen.read_text())["choices"]
    assert entry["layer"] == LAYER and entry["tokens"] == 8
    assert entry["schedules"]["slow"]["mj"] == [1.5, 1.7]
    assert entry["schedules"]["fast"]["us"] == [5, 5]
    assert not entry["schedules"]["wrong"]["passed"]


def test_judge_choices(chosen, monkeypatch):
    choices = {"energy": "slow", "time": "fast", "edp": "fast"}
    monkeypatch.setattr(
        energy_choice,
        "ask",
        lambda layer, tool, gpu, name, count=1: [{"schedule": choices[name]}],
    )
    loss, text = energy_choice.judge(chosen, pathlib.Path("none"))
    assert loss == pytest.approx(1)
    # 1.6 mJ for 2, and 8 us for 5.
    assert f"| {LAYER} | -20.0% | +60.0% |" in text
    assert "| time | 1.250 | 1.25 | 1.000 |" in text
    # What was wrong is no choice that was measured.
    choices["time"] = "wrong"
    with pytest.raises(SystemExit, match="at least one choice"):
        energy_choice.judge(chosen, pathlib.Path("none"))


LOG = """==PROF== Connected
"ID","Process ID","Kernel Name","gpu__time_duration.sum","smsp__inst_executed.sum",\
"sm__warps_active.avg.pct_of_peak_sustained_active"
"","","","ns","inst","%"
"0","7","f_transpose(float*)","1,000","10","20"
"1","8","f_kernel","500","5","30"
"2","7","f_kernel","3,000","30","40"
"3","7","f_pack","9","9","9"
"4","9","void FillFunctor<float>","1","1","1"
"5","9","gemm","100","2","50"
"6","9","splitK","50","1","20"
"7","9","void FillFunctor<float>","1","1","1"
"""


def test_profiles(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    rows = profile_energy.read_rows(path)
    layers = [
        {"layer": "a", "kernels": ["f_kernel"]},
        {"layer": "b", "kernels": ["f_transpose", "f_kernel"]},
    ]
    processes = [{"layer": "b", "process": 7}, {"layer": "a", "process": 8}]
    a, b = profile_energy.by_process(rows, layers, processes)
    assert [row["ID"] for row in a] == ["1"] and [row["ID"] for row in b] == ["0", "2"]
    total = profile_energy.add(b)
    assert total["gpu__time_duration.sum"] == 4000
    assert total["smsp__inst_executed.sum"] == 40
    # Of shares the mean by time.
    assert total["sm__warps_active.avg.pct_of_peak_sustained_active"] == 35
    (dense,) = profile_energy.between_marks(rows)
    assert [row["Kernel Name"] for row in dense] == ["gemm", "splitK"]


def test_gpus():
    assert energy_samples.gpu_of({"gpu": "NVIDIA H100 80GB HBM3"}) == "h100"
    with pytest.raises(SystemExit, match="unknown GPU 'Tesla V100'"):
        energy_samples.gpu_of({"gpu": "Tesla V100"})


@pytest.mark.parametrize(
    "text, said", [(None, "No such file"), ("{", "legal is"), ("{}", "has no layers")]
)
def test_files_that_hold_no_energies(tmp_path, text, said):
    path = tmp_path / "result.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SystemExit, match=f"result.json.*{said}"):
        energy_samples.read([path], tmp_path)


def test_pages():
    products = energy_page.products()
    assert len(products) == 125
    assert "| a byte from or to memory | " in energy_page.costs()
    assert "| all | 100 | " in energy_page.errors()
    rows = energy_page.headline().splitlines()[2:]
    assert sum(int(row.split("|")[3]) for row in rows) == 125
    assert sum(len(points) for points in energy_page.points().values()) == 125

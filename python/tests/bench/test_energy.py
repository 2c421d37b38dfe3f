# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scripts of bench/ that compare and profile energies."""

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [
    str(ROOT / "bench"),
    str(ROOT / "bench" / "energy"),
    str(ROOT / "bench" / "pages"),
]
import draw  # noqa: E402
import energy_choice  # noqa: E402
import energy_llm  # noqa: E402
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
    measured = [
        run_of("fast", 2.0, 5),
        run_of("slow", 1.5, 8),
        run_of("wrong", 0.5, 4),
        run_of("slow", 1.7, 8),
        run_of("fast", 2.0, 5),
    ]
    keys = ("file", "size", "schedules")
    checked = [{**{k: r[k] for k in keys}, "passed": True} for r in measured[:3]]
    checked[2]["passed"] = False
    failed = {"arguments": "x.mlir", "error": "no memory"}
    paths = []
    for name, runs in (("energy", [*measured, failed]), ("check", checked)):
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps({"commit": "c", "runs": runs}))
    out = tmp_path / "choice.json"
    energy_choice.condense(options_of(reports=paths, out=out, beside=None))
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
    scores = {
        "slow": {"energy": 1.0, "time": 2.0, "edp": 2.0},
        "fast": {"energy": 1.5, "time": 1.0, "edp": 1.5},
    }
    monkeypatch.setattr(
        energy_choice, "predict", lambda layer, tool, gpu, name: scores.get(name)
    )
    loss, text = energy_choice.judge(chosen, pathlib.Path("none"))
    assert loss == pytest.approx(1)
    # 1.6 mJ for 2, and 8 us for 5.
    assert f"| {LAYER} | -20.0% | +60.0% |" in text
    # The geometric mean of 2 / 1.5 and 2 / 1.7.
    assert "| time | 1.250 | 1.25 | 1.252 | 1.000 |" in text
    assert "| all of these | -20.0% | +60.0% |" in text
    # Both loops have the same best.
    assert "by one loop takes 1.000 times" in text
    scores["slow"]["time"] = 0.5
    assert "chooses what time" in energy_choice.judge(chosen, pathlib.Path("none"))[1]
    # A schedule that is no longer legal cannot be chosen.
    scores.clear()
    with pytest.raises(SystemExit, match="at least one schedule must be legal"):
        energy_choice.judge(chosen, pathlib.Path("none"))


def test_schedules_beside_a_result(chosen):
    """Another run takes 10 % less of all: `fast` tells, and `new` is as `slow`."""
    runs = [
        run_of("fast", 1.8, 4.5),
        run_of("new", 1.44, 7.2),
        run_of("new", 1.44, 7.2),
        run_of("fast", 1.8, 4.5),
        run_of("slow", 9.0, 9.0, file="f16_s50_L64_feature_9x1024x1024_product.mlir"),
    ]
    report = chosen.with_name("beside.json")
    report.write_text(json.dumps({"commit": "d", "runs": runs}))
    options = options_of(reports=[report], out=chosen, beside=chosen)
    energy_choice.condense(options)
    (entry,) = json.loads(chosen.read_text())["choices"]
    assert entry["schedules"]["new"]["mj"] == pytest.approx([1.6, 1.6])
    assert entry["schedules"]["new"]["us"] == pytest.approx([8, 8])
    assert entry["schedules"]["fast"]["mj"] == [2.0, 2.0]


def test_schedules_that_a_result_lacks():
    layers = [energy_samples.parse(LAYER.replace("8x", f"{t}x")) for t in (8, 9, 7)]
    known = {LAYER: {"schedules": {"a": {}, "b": {}}}}
    chosen = [(["c", "b", "a"], " --embed always"), (["a"], ""), (["x"], "")]
    known[layers[1].name] = {"schedules": {"a": {}}}
    kept = energy_choice.leave_out(layers, chosen, known)
    found = [(["b", "c"], " --embed always"), (["x"], "")]
    assert kept == ([layers[0], layers[2]], found)


def test_weights_stored_as_2_4_say_so():
    layer = energy_samples.parse(LAYER)
    for encoding, flags in (
        ("<2:4>", " --embed always"),
        (f"<{layer.pattern}, block = [1, 64]>", ""),
    ):
        product = {"encoding": f"#nm_sparse.encoding{encoding}"}
        assert draw.embedding_flags(layer, product) == flags


HEAD = """==PROF== Connected
"ID","Process ID","Kernel Name","gpu__time_duration.sum","smsp__inst_executed.sum",\
"sm__warps_active.avg.pct_of_peak_sustained_active"
"","","","ns","inst","%"
"""
OURS = f"""{HEAD}"0","8","f_kernel","500","5","30"
"1","8","f_transpose(float*)","1,000","10","20"
"2","8","f_kernel","3,000","30","40"
"3","8","f_transpose","9","9","9"
"4","8","f_kernel","9","9","9"
"""
DENSE = f"""{HEAD}"0","9","void FillFunctor<float>","1","1","1"
"1","9","gemm","100","2","50"
"2","9","splitK","50","1","20"
"3","9","void FillFunctor<float>","1","1","1"
"""


def write_profile(folder, runs, log=OURS):
    (folder / "ours-0.csv").write_text(log)
    (folder / "ours-0.json").write_text(json.dumps({"runs": runs}))
    both = ["f_transpose", "f_kernel"]
    return [
        {"layer": "a", "kernels": ["f_kernel"]},
        {"layer": "b", "kernels": both},
        # It ran a transposition that was not measured.
        {"layer": "c", "kernels": ["f_kernel"]},
    ]


RUNS = [{"file": f"{name}.mlir", "arguments": name} for name in "abc"]


def test_profiles(tmp_path, capsys):
    found = profile_energy.by_layer(tmp_path, write_profile(tmp_path, RUNS))
    ids = {name: [row["ID"] for row in rows] for name, rows in found.items()}
    assert ids == {"a": ["0"], "b": ["1", "2"]}
    assert "c ran ['f_transpose', 'f_kernel']" in capsys.readouterr().out
    total = profile_energy.add(found["b"])
    assert total["gpu__time_duration.sum"] == 4000
    assert total["smsp__inst_executed.sum"] == 40
    # Shares are averaged by time.
    assert total["sm__warps_active.avg.pct_of_peak_sustained_active"] == 35


def test_dense_profiles(tmp_path):
    path = tmp_path / "dense.csv"
    path.write_text(DENSE)
    (dense,) = profile_energy.between_marks(profile_energy.read_rows(path))
    assert [row["Kernel Name"] for row in dense] == ["gemm", "splitK"]


@pytest.mark.parametrize(
    "runs, log, said",
    [
        (RUNS[:2], OURS, "2 kernels more than the runs have"),
        (RUNS, OURS[: OURS.index('"3"')], "the log ends before c"),
        ([{**RUNS[0], "error": "no memory"}], OURS, "a: no memory"),
    ],
)
def test_profiles_of_other_runs(tmp_path, runs, log, said):
    layers = write_profile(tmp_path, runs, log)
    with pytest.raises(SystemExit, match=said):
        profile_energy.by_layer(tmp_path, layers)


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


def llm_run(name, number, tokens):
    """The first pattern takes 2 mJ in 2 us, and the dense product beside it 4 mJ."""
    values = {key: 2.0 + number for key in energy_llm.KEPT}
    energy = {"ours": values}
    if number == 0:
        energy["cublas"] = {**values, "mj": 4.0}
    return {
        "file": f"{name}-{number}.mlir",
        "arguments": name,
        "gpu": "NVIDIA H100",
        "size": tokens,
        "energy": energy,
    }


@pytest.fixture
def block(tmp_path, monkeypatch):
    """All products of a block at one token; at 16 one is not there."""
    runs = [
        llm_run(name, number, tokens)
        for tokens in (16, 1)
        for name in energy_llm.LAYERS
        for number in range(len(energy_llm.PATTERNS))
    ]
    report, out = tmp_path / "list.json", tmp_path / "llm.json"
    report.write_text(json.dumps({"commit": "c", "runs": runs[1:]}))
    monkeypatch.setattr(energy_page, "LLM", out)
    energy_llm.condense(options_of(reports=[report], out=out))
    return report


def test_products_of_a_block(block):
    head, _, dense, first, second = energy_page.llm().splitlines()[2:7]
    assert head == "| weights | zeros | 1 token |"
    # Five products, since gate counts twice: of 4 mJ, 2 mJ and 3 mJ.
    assert dense == "| dense |  | 20 mJ |"
    assert first == "| `2:4` | 50 % | 10 mJ, 2.00x (1.00x) |"
    assert second == "| `8:16` | 50 % | 15 mJ, 1.33x (0.67x) |"


def test_wrong_products_of_a_block(block):
    report = json.loads(block.read_text())
    report["runs"][2]["passed"] = False
    block.write_text(json.dumps(report))
    with pytest.raises(SystemExit, match="qkv failed"):
        energy_llm.condense(options_of(reports=[block], out=block))


def test_layers_of_a_block(tmp_path):
    energy_llm.make(options_of(out=tmp_path))
    text = (tmp_path / "down-4.mlir").read_text()
    assert "#w = #nm_sparse.encoding<[4:8, block = [1, 64]], [2:4]>" in text
    assert "tensor<14336x4096xf16, #w>" in text
    counts = [
        len((tmp_path / f"{name}.txt").read_text().splitlines())
        for name in ("dense", "list", "check")
    ]
    assert counts == [16, 64, 80]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search for the fastest schedules: results are checked in the emulator, times are
made up. NMSparseTunerTests have the search itself."""

import itertools
import math
import os
import subprocess
import sys
import threading

import pytest

import nm_sparse as nm
from nm_sparse.bindings import library as native
from nm_sparse.cli.times import count_gpus
from nm_sparse.layers.specs import LinearSpec
from nm_sparse.tuning.engine import Engine, Search

pytestmark = pytest.mark.skipif(
    not native.available(), reason="no library of the compiler"
)

SPEC = LinearSpec("#nm_sparse.encoding<2:4, dim = 1>", 32, 64, "f32")
PANELS = "#nm_sparse.encoding<8:32, block = [1, 16], dim = 1>"
SCHEDULE = "#nm_tile.schedule<tile = [8], product = mma<warps = 4>>"
FOUND = {
    "entry": {
        "schedule": SCHEDULE,
        "us": 2.0,
        "model_us": 3.0,
        "dense_us": 5.0,
        "mj": 0.5,
    },
    "measured": 4,
    "wrong": [{"schedule": "#b", "problem": "relative error 0.5"}],
    "refused": [],
    "failure": "",
    "dense_fault": "",
}


def emulate(source, tokens, **options):
    return nm.tune(source, tokens, None, "h200", device="emulate", **options)


def threads():
    return [one for one in threading.enumerate() if one.name == "nm_sparse tuner"]


@pytest.fixture
def searches(monkeypatch):
    """Searches end at once, with made up times of the products."""
    asked = []

    def run(self, search):
        asked.append(search)
        for place, _ in enumerate(self.list()["products"]):
            yield {**FOUND, "product": place}

    monkeypatch.setattr(Engine, "run", run)
    return asked


@pytest.mark.parametrize(
    "spec",
    [
        LinearSpec(SPEC.encoding, 32, 64, "f16", bias=True, activation="gelu_tanh"),
        LinearSpec(PANELS, 48, 64, "bf16"),
        SPEC,
    ],
    ids=lambda spec: spec.dtype,
)
def test_results_of_all_candidates_are_checked(spec):
    found = list(emulate(spec, [3, 5], candidates=3))
    assert [one.tokens for one in found] == [3, 5]
    for one in found:
        assert one.measured > 1 and not one.wrong and not one.refused
        assert not one.failure and one.schedule == "" and math.isnan(one.us)
        assert one.names == (f"K=64,N={spec.outputs}",)


def test_a_search_ends_where_nobody_asks_for_more():
    search = emulate(SPEC, [1, 2, 3, 4, 5, 6, 7, 8], candidates=1)
    assert [one.tokens for one in itertools.islice(search, 2)] == [1, 2]
    search.close()
    assert not threads()


def test_no_problem_is_begun_when_time_is_up():
    assert not list(emulate(SPEC, [1, 2], minutes=0))


def test_what_is_found(searches, tmp_path):
    database = tmp_path / "a.jsonl"
    (found,) = nm.tune(
        SPEC, [3], database, "h200", 5, 1.5, 7, neighbours=2, sample_ms=9,
        lock=tmp_path / "lock",
    )  # fmt: skip
    assert searches == [
        Search(str(database), 5, 2, 9, 7, 1.5, str(tmp_path / "lock"), False)
    ]
    assert found.schedule == SCHEDULE and found.family == "mma"
    assert (found.us, found.model_us, found.dense_us) == (2, 3, 5)
    assert found.mj == 0.5 and math.isnan(found.dense_mj)
    assert found.wrong == ("#b",) and found.measured == 4
    product = found.product
    assert (product.inputs, product.outputs, product.tokens) == (64, 32, 3)
    assert product.problem["gpu"] == "h200" and product.dtype == "f32"


def test_what_is_not_timed_is_told_once(searches, monkeypatch, tmp_path):
    monkeypatch.setitem(FOUND, "dense_fault", "there is no cuBLAS")
    with pytest.warns(UserWarning, match="dense products are not timed") as warned:
        assert len(list(nm.tune(SPEC, [1, 3], tmp_path / "a.jsonl", "h200"))) == 2
    assert len(warned) == 1


def test_bias_and_activation_are_no_part_of_a_problem(searches, tmp_path):
    specs = [
        LinearSpec(SPEC.encoding, 32, 64, "f16", bias=bias, activation=activation)
        for bias in (True, False)
        for activation in ("gelu", "none")
    ]
    (found,) = nm.tune(specs, [3], tmp_path / "a.jsonl", "h200")
    assert found.names == ("K=64,N=32",) * 4


def test_what_is_refused(tmp_path):
    database = tmp_path / "a.jsonl"
    for source in (3, [SPEC.encoding], "none.safetensors"):
        with pytest.raises(ValueError, match="legal are LinearSpecs, a module of"):
            list(nm.tune(source, [1], database, "h200"))
    for wrong, said in (
        (dict(encoding="free"), "encoding is free"),
        (dict(gpu="h300"), "gpu is 'h300': legal is one of .*h200"),
        (dict(tokens=[0]), "tokens has 0: legal are 1 and more"),
        (dict(objective="speed"), "objective"),
        (dict(candidates=0), "candidates is 0: legal are 1 and more"),
        (dict(minutes=-1), "minutes is -1: legal are 0 and more"),
        (dict(seed=-1), "seed is -1: legal are 0 to"),
        (dict(neighbours=-1), "neighbours is -1: legal are 0 and more"),
        (dict(device="tpu"), "device is 'tpu': legal are cuda, emulate"),
        (dict(database=None), "database is None: legal is a file"),
    ):
        usual = dict(tokens=[1], database=database, gpu="h200")
        with pytest.raises(ValueError, match=said):
            list(nm.tune(SPEC, **{**usual, **wrong}))
    with pytest.raises(ValueError, match="that find_tunable has not made"):
        list(nm.tune(nm.Tunable(()), [1], database, "h200"))
    assert not database.exists() and not threads()
    database.write_text("{\n")
    with pytest.raises(RuntimeError, match="a.jsonl:1"):
        list(nm.tune(SPEC, [1], database, "h200"))
    assert database.read_text() == "{\n"


@pytest.mark.skipif(count_gpus() > 0, reason="there is a GPU")
def test_times_need_a_gpu(tmp_path):
    """In a process that has not used the emulator."""
    text = (
        "import nm_sparse as nm\n"
        f"spec = nm.LinearSpec({SPEC.encoding!r}, 32, 64, 'f32')\n"
        "list(nm.tune(spec, [1], 'a.jsonl', 'h200'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode and "without one, results can be checked" in done.stderr
    assert not list(tmp_path.iterdir())


def test_processes_that_emulate_measure_nothing(tmp_path):
    list(emulate(SPEC, [1], candidates=1))
    assert native.emulates()
    with pytest.raises(RuntimeError, match="this process emulates one"):
        list(nm.tune(SPEC, [1], tmp_path / "a.jsonl", "h200"))
    assert not list(tmp_path.iterdir()) and not threads()
    # Failures of the runtime are exceptions still.
    library = native.library()
    with pytest.raises(native.RuntimeFailure):
        native.checked(library.mgpuMemAlloc, 1 << 60, None, False)


def test_a_search_waits_until_it_is_asked(tmp_path):
    search = emulate(SPEC, [1, 2, 3], candidates=1)
    assert next(search).tokens == 1
    with pytest.raises(RuntimeError, match="another search of this process"):
        list(emulate(SPEC, [1], candidates=1))
    assert [one.tokens for one in search] == [2, 3]
    assert len(list(emulate(SPEC, [1], candidates=1))) == 1


def test_layers_that_are_not_tuned_are_told(searches, tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(64, 32), "b": torch.nn.ReLU()})
    with pytest.warns(UserWarning, match="not tuned: a: its weight has no pattern"):
        assert not list(nm.tune(model, [1], tmp_path / "a.jsonl", "h200"))
    (found,) = nm.tune(model, [1], tmp_path / "a.jsonl", "h200", encoding="2:4")
    assert found.names == ("a",)


def test_numbers_of_tokens_are_those_of_programs_where_none_are_given(
    searches, tmp_path
):
    found = list(nm.tune(SPEC, [], tmp_path / "a.jsonl", "h200"))
    program = nm.compile(SPEC, gpu="h200", tuned=[])
    functions = {one["function"] for one in program.manifest["products"]}
    assert {f"linear_tokens_{one.tokens}" for one in found} == functions

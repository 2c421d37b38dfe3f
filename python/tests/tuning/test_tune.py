# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search for the fastest schedules, with times that are made up."""

import itertools
import json

import pytest

import nm_sparse as nm
from nm_sparse.bindings import library as native
from nm_sparse.layers.specs import LinearSpec
from nm_sparse.tuning import times
from nm_sparse.tuning import tune as search
from nm_sparse.tuning.measured import MeasuredLayer
from nm_sparse.tuning.product import ProductSpec
from nm_sparse.tuning.tunable import Tunable, TunableLayer

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not native.available(), reason="no library of the compiler"
)

SPEC = LinearSpec("#nm_sparse.encoding<2:4, dim = 1>", 32, 64, "f32")
SCHEDULES = ["a", "wrong", "none", "b"]  # one of which cannot be compiled
SECONDS = {"dense": 5e-6, "a": 3e-6, "b": 2e-6}


class Program:
    def __init__(self, schedule):
        self.schedule = schedule

    def prepare(self, packed, like):
        return packed.to_dense(like=like)

    def __call__(self, x, weight, y):
        y.copy_(x @ weight.T)
        if self.schedule == "wrong":
            y[0, 0] += 1


@pytest.fixture
def gpu(monkeypatch):
    """No GPU: layers run on the CPU, and take the times above."""

    monkeypatch.setattr(times, "DEVICE", "cpu")
    monkeypatch.setattr(times, "COLD_BYTES", 1)

    def compile_as(spec, tokens, gpu, problem, schedule, options=()):
        if schedule == "none":
            return None
        return Program(schedule)

    def take_turns(graphs):
        names = list(SECONDS)[: len(graphs)]
        return [[SECONDS[name], SECONDS[name] * 1.1, SECONDS[name]] for name in names]

    def list_candidates(spec, tokens, count, gpu, options=()):
        problem = {"gpu": gpu, "tokens": tokens, "inputs": spec.inputs}
        return problem, SCHEDULES[:count]

    monkeypatch.setattr(search, "Graph", lambda *unused: None)
    monkeypatch.setattr(search, "compile_as", compile_as)
    monkeypatch.setattr(search, "take_turns", take_turns)
    monkeypatch.setattr(search, "list_candidates", list_candidates)


def test_the_fastest_right_schedule_is_kept(gpu, tmp_path):
    database = tmp_path / "a.jsonl"
    (found,) = nm.tune([SPEC], [3], database, "h200")
    assert found.schedule == "b" and found.wrong == ("wrong",)
    assert found.us == pytest.approx(2) and found.model_us == pytest.approx(3)
    assert found.dense_us == pytest.approx(5) and found.candidates == 2
    (entry,) = map(json.loads, database.read_text().splitlines())
    assert entry["schedule"] == "b" and entry["us"] == pytest.approx(2)
    assert entry["spread"] == pytest.approx(0.1)
    assert entry["gpu"] == "h200" and entry["tokens"] == 3
    (found,) = nm.tune([SPEC], [4], database, "h200", candidates=1)
    assert found.schedule == "a" and not found.wrong


def test_a_search_goes_on_where_another_one_ended(gpu, tmp_path):
    database = tmp_path / "a.jsonl"
    first = list(itertools.islice(nm.tune([SPEC], [1, 2, 3], database, "h200"), 2))
    assert [one.tokens for one in first] == [1, 2]
    rest = list(nm.tune([SPEC], [1, 2, 3], database, "h200"))
    assert [one.tokens for one in rest] == [3]
    assert len(database.read_text().splitlines()) == 3
    assert not list(nm.tune([SPEC], [4], database, "h200", minutes=0))


def test_what_is_refused(gpu, tmp_path, monkeypatch):
    database = tmp_path / "a.jsonl"
    narrow = LinearSpec(SPEC.encoding, 32, 64, "i8", result="f16")
    with pytest.raises(ValueError, match="legal are layers of f16, bf16, f32"):
        list(nm.tune([narrow], [1], database, "h200"))
    for source in (3, [SPEC.encoding], "none.safetensors"):
        with pytest.raises(ValueError, match="legal are LinearSpecs, a module of"):
            list(nm.tune(source, [1], database, "h200"))
    with pytest.raises(ValueError, match="encoding is free"):
        list(nm.tune([SPEC], [1], database, "h200", encoding="free"))
    monkeypatch.setattr(search, "list_candidates", lambda *unused: ({}, ["wrong"]))
    with pytest.raises(RuntimeError, match="1 of 1 are wrong"):
        list(nm.tune([SPEC], [1], database, "h200"))
    assert not database.exists()
    database.write_text("{\n")
    with pytest.raises(ValueError):
        list(nm.tune([SPEC], [1], database, "h200"))


def test_candidates_are_those_of_the_model():
    spec = LinearSpec("#nm_sparse.encoding<8:32, block = [1, 64], dim = 1>", 128, 256)
    problem, schedules = search.list_candidates(spec, 64, 6, "h200")
    assert problem["gpu"] == "h200" and problem["tokens"] == 64
    assert (problem["inputs"], problem["outputs"]) == (256, 128)
    assert 2 <= len(schedules) <= 6 and len(set(schedules)) == len(schedules)
    program = search.compile_as(spec, 64, "h200", problem, schedules[-1])
    other = search.compile_as(spec, 64, "h200", problem, schedules[0])
    assert program.ptx != other.ptx
    assert nm.compile(spec, gpu="h200", tokens=[64], tuned=[]).ptx == other.ptx


def test_schedules_that_are_not_legal_are_no_programs():
    spec = LinearSpec("#nm_sparse.encoding<8:32, block = [1, 64], dim = 1>", 128, 256)
    problem, (best, *_, last) = search.list_candidates(spec, 64, 6, "h200")
    for schedule in (best, last):
        assert search.compile_as(spec, 64, "h200", problem, schedule) is not None
    # A tile of too many tokens, a product of sparse tensor cores, which have
    # no such pattern, and a text of another compiler.
    for wrong in (
        best.replace("tile = [", "tile = [100000, "),
        "#nm_tile.schedule<tile = [8, 64, 64], product = wgmma_sp<warps = 4>, "
        "transfers = {x = bulk, values = bulk, index = bulk}, "
        "pipeline = ring<stages = 8, producers = 4>, grid = flat>",
        "#nm_tile.schedule<of_old = 1>",
    ):
        assert search.compile_as(spec, 64, "h200", problem, wrong) is None
    # The schedule of another problem is not looked up at all.
    other = {**problem, "tokens": 1024}
    assert search.compile_as(spec, 64, "h200", other, last) is None


@pytest.fixture
def host(monkeypatch):
    """No GPU: programs are those of the compiler, and run on the host; times are made
    up, the later the shorter."""

    def take_turns(graphs):
        return [[(len(graphs) - at) * 1e-6] * 3 for at in range(len(graphs))]

    monkeypatch.setattr(times, "DEVICE", "cpu")
    monkeypatch.setattr(times, "COLD_BYTES", 1)
    monkeypatch.setattr(search, "Graph", lambda *unused: None)
    monkeypatch.setattr(search, "take_turns", take_turns)


PANELS = "#nm_sparse.encoding<8:32, block = [1, 16]{dim}>"


@pytest.mark.parametrize(
    "spec",
    [
        LinearSpec(SPEC.encoding, 32, 64, "f16", bias=True, activation="gelu_tanh"),
        LinearSpec(SPEC.encoding, 32, 64, "f32", bias=True, activation="silu"),
        LinearSpec(PANELS.format(dim=", dim = 1"), 32, 64, "bf16", activation="relu"),
        ProductSpec(PANELS.format(dim=""), 32, 64, "f16", "f32", "f32"),
        ProductSpec(PANELS.format(dim=""), 48, 64, "f16", "f16", None, True, True),
        ProductSpec(SPEC.encoding, 32, 64, "bf16", "bf16", "bf16", False, True),
    ],
    ids=lambda spec: f"{type(spec).__name__}-{spec.dtype}",
)
def test_results_are_compared_with_those_of_the_whole_layer(host, tmp_path, spec):
    layer = TunableLayer(spec, (3, 5), ("a", "b"))
    found = list(
        nm.tune(Tunable((layer,)), [], tmp_path / "a.jsonl", "h200", candidates=3)
    )
    assert [one.tokens for one in found] == [3, 5]
    for one in found:
        assert not one.wrong and one.candidates > 1 and one.names == ("a", "b")
        assert one.family and f"product = {one.family}" in one.schedule
        assert one.us < one.model_us < one.dense_us


def test_bias_and_activation_are_no_part_of_a_problem(host, tmp_path):
    database = tmp_path / "a.jsonl"
    specs = [
        LinearSpec(SPEC.encoding, 32, 64, "f16", bias=bias, activation=activation)
        for bias in (True, False)
        for activation in ("gelu", "none")
    ]
    (first,) = nm.tune(specs, [3], database, "h200", candidates=2)
    assert first.spec == specs[0]
    for spec in specs:
        assert not list(nm.tune(spec, [3], database, "h200"))
        program = nm.compile(spec, gpu="h200", tokens=[3], tuned=database)
        (product,) = program.manifest["products"]
        assert product["schedule"] == first.schedule
        # A right result without its bias or activation is a wrong one.
        other = MeasuredLayer(pytest.importorskip("torch"), spec, 0)
        x, others, y, want = other.operands(3)
        assert other.is_right(want.half(), want)
        plain = x.double() @ other.weight.double().T
        assert other.is_right(plain.half(), want) == (spec == specs[-1])


def test_layers_that_are_not_tuned_are_told(host, tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(64, 32), "b": torch.nn.ReLU()})
    with pytest.warns(UserWarning, match="not tuned: a: its weight has no pattern"):
        assert not list(nm.tune(model, [1], tmp_path / "a.jsonl", "h200"))
    (found,) = nm.tune(
        model, [1], tmp_path / "a.jsonl", "h200", candidates=2, encoding="2:4"
    )
    assert found.names == ("a",) and found.spec.bias


def test_numbers_of_tokens_are_those_of_programs_where_none_are_given(host, tmp_path):
    found = list(nm.tune(SPEC, [], tmp_path / "a.jsonl", "h200", candidates=1))
    program = nm.compile(SPEC, gpu="h200", tuned=[])
    functions = {one["function"] for one in program.manifest["products"]}
    assert {f"linear_tokens_{one.tokens}" for one in found} == functions

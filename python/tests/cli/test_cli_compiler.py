# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m nm_sparse explain | advise | bench | tune`: what they ask for."""

import json
import sys
import types

import numpy as np
import pytest

from nm_sparse import Encoding, LinearSpec, prune
from nm_sparse.bindings import library as native
from nm_sparse.cli import bench, main, tune
from nm_sparse.cli import times as times_module
from nm_sparse.files.tensor_file import write_tensors
from nm_sparse.tuning.tune import Tuned

pytestmark = pytest.mark.slow


def run(*arguments):
    return main([str(argument) for argument in arguments])


def report(capsys):
    return json.loads(capsys.readouterr().out)


class Compiler:
    """Takes the place of nm_sparse.compiler, and keeps what it was asked."""

    def __init__(self, text="", files=(), error=None):
        self.text, self.files, self.error = text, dict(files), error

    def run(self, arguments, program=None, files=()):
        self.arguments, self.program, self.named = list(arguments), program, files
        if self.error is not None:
            raise self.error
        return types.SimpleNamespace(text=self.text, warnings="", files=self.files)


@pytest.fixture
def use(monkeypatch):
    def replace(name, module):
        package, _, last = f"nm_sparse.{name}".rpartition(".")
        monkeypatch.setitem(sys.modules, f"nm_sparse.{name}", module)
        monkeypatch.setattr(sys.modules[package], last, module, raising=False)
        return module

    return replace


def test_explain(use, tmp_path, capsys):
    compiler = use("compiler", Compiler("stage 1\nstage 2\n"))
    program = tmp_path / "linear.mlir"
    program.write_text("func.func @f()")
    assert run("explain", program, "--chip", "sm_80", "--tokens", "1,8") == 0
    assert capsys.readouterr().out == "stage 1\nstage 2\n"
    assert compiler.program == "func.func @f()" and compiler.arguments[0] == "-"
    assert compiler.arguments[-3:] == ["--explain", "--chip=sm_80", "--tokens=1,8"]
    assert run("explain", program, "--json") == 0
    assert report(capsys)["explanation"] == ["stage 1", "stage 2"]


def test_explain_a_layer(use, capsys):
    class LinearSpec:
        def __init__(self, encoding, outputs, inputs, dtype):
            self.fields = (encoding, outputs, inputs, dtype)

        def mlir(self):
            return repr(self.fields)

    compiler = use("compiler", Compiler("done\n"))
    use("layers.specs", types.SimpleNamespace(LinearSpec=LinearSpec))
    layer = ("explain", "--encoding", "8:32", "--block", "1,64", "--shape", "K=96,N=64")
    assert run(*layer) == 0
    assert compiler.program == repr((Encoding("8:32", block=(1, 64), dim=1).mlir(), 64,
                                     96, "f16"))  # fmt: skip
    for arguments, message in [
        ((), "legal is a program, or the --shape"),
        (("x.mlir", "--shape", "K=4,N=4"), "legal is a program, or the --shape"),
        (("x.mlir", "--encoding", "2:4"), "--encoding is that of a layer"),
        (("--shape", "K=4,N=4"), "--shape needs an --encoding"),
    ]:
        capsys.readouterr()
        assert run("explain", *arguments) == 2
        assert message in capsys.readouterr().err


def test_advise(use, capsys):
    compiler = use("compiler", Compiler("table\n", {"-": b'{"patterns": []}\n'}))
    layer = ("--shape", "K=64,N=128", "--dtype", "bf16", "--pattern", "2:4",
             "--pattern", "1:4", "--tokens", "1")  # fmt: skip
    assert run("advise", *layer) == 0
    assert capsys.readouterr().out == "table\n"
    expected = ["--advise", "--shape=K=64,N=128", "--type=bf16", "--pattern=2:4",
                "--pattern=1:4", "--tokens=1"]  # fmt: skip
    assert compiler.arguments == expected and compiler.named == ()
    assert run("advise", *layer, "--json") == 0
    assert report(capsys) == {"patterns": []}
    assert compiler.arguments == [*expected, "--json=-"] and compiler.named == ("-",)
    assert run("advise", "--checkpoint", "m", "--weight", "w", "--gram", "g:x") == 0
    expected = ["--advise", "--checkpoint=m", "--weight=w", "--gram=g:x"]
    assert compiler.arguments == expected
    assert run("advise") == 2 and run("advise", "--checkpoint", "m") == 2
    assert "--checkpoint and --weight need each other" in capsys.readouterr().err


@pytest.mark.parametrize("status", [1, 2])
def test_what_the_compiler_refuses(use, capsys, status):
    error = RuntimeError("'sm_5' is not a known chip")
    error.status = status
    use("compiler", Compiler(error=error))
    assert run("advise", "--shape", "K=4,N=4", "--chip", "sm_5") == status
    assert capsys.readouterr().err == "nm_sparse advise: 'sm_5' is not a known chip\n"


def test_without_the_library(use, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("NM_SPARSE_LIBRARY", str(tmp_path))
    assert run("advise", "--shape", "K=4,N=4") == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("nm_sparse advise: NM_SPARSE_LIBRARY is ")
    assert captured.err.count("\n") == 1 and not captured.out


def test_bench_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(bench, "count_gpus", lambda: 0)
    layer = ("bench", "--encoding", "2:4", "--shape", "K=64,N=32")
    assert run(*layer) == 3
    assert "there is no GPU to measure on" in capsys.readouterr().err
    assert run("bench", "--encoding", "free", "--shape", "K=64,N=32") == 2


def test_tune_without_a_gpu(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tune, "count_gpus", lambda: 0)
    database = str(tmp_path / "a.jsonl")
    layer = ("tune", "--encoding", "2:4", "--shape", "K=64,N=32")
    assert run(*layer, "--database", database) == 3
    assert "there is no GPU to measure on" in capsys.readouterr().err
    assert run(*layer, "--database", database, "--candidates", "0") == 2
    assert "--candidates is 0: legal are 1 and more" in capsys.readouterr().err


@pytest.mark.skipif(not native.available(), reason="no library of the compiler")
def test_tune_says_what_it_found(monkeypatch, capsys, tmp_path):
    def search(found, tokens, database, gpu, candidates, minutes, **options):
        assert gpu == "h200" and candidates == 12 and minutes is None
        assert options["device"] == "cuda" and options["objective"] == "time"
        for product in found.products:
            wrong = ("#b",) if product.tokens == 5 else ()
            failed = "no schedule is right" if product.tokens == 6 else ""
            yield Tuned(
                product, "" if failed else "#a", 2.0, dense_us=3.0, measured=4,
                wrong=wrong, failure=failed,
            )  # fmt: skip

    monkeypatch.setattr(tune, "count_gpus", lambda: 1)
    monkeypatch.setattr(tune, "device_gpu", lambda: "h200")
    monkeypatch.setattr(tune, "tune", search)
    database = str(tmp_path / "a.jsonl")
    layers = ("--shape", "K=64,N=32", "--shape", "K=128,N=32")
    command = ("tune", "--encoding", "2:4", *layers, "--database", database)
    assert run(*command, "--tokens", "1,3", "--json") == 0
    rows = report(capsys)["tuned"]
    assert [(row["inputs"], row["tokens"]) for row in rows] == [
        (64, 1), (64, 3), (128, 1), (128, 3),
    ]  # fmt: skip
    assert rows[0]["us"] == 2 and rows[0]["model_us"] is None
    # Wrong results are told, and are a failure.
    assert run(*command, "--tokens", "5") == 1
    said = capsys.readouterr()
    assert f"2 entries are new in {database}" in said.out
    assert "2 schedules gave wrong results and were left out" in said.err
    # A layer for each line, and means over all.
    assert run(*command, "--tokens", "6") == 1
    said = capsys.readouterr().err
    assert "2 problems have no schedule; of the first one is said: no sch" in said
    assert run(*command, "--tokens", "1,3", "--gpu", "h200") == 0
    text = capsys.readouterr().out.splitlines()
    head = "layer tokens dense us model us tuned us right family".split()
    assert text[0].split() == head
    assert text[1].split() == ["K=64,N=32", "1", "3", "2", "4"]
    assert "tuned schedules are 1.50 times as fast as dense layers" in text[-2]
    assert run(*command, "--gpu", "h100") == 2
    assert "--gpu is h100, and GPU 0 is h200" in capsys.readouterr().err
    monkeypatch.setattr(tune, "device_gpu", lambda: None)
    assert run(*command) == 1
    assert "GPU 0 has no name in databases" in capsys.readouterr().err


@pytest.mark.skipif(not native.available(), reason="no library of the compiler")
def test_tune_takes_models(monkeypatch, capsys, tmp_path):
    def search(found, tokens, database, gpu, candidates, minutes, **options):
        for product in found.products:
            schedule = "#nm_tile.schedule<tile = [8], product = mma<warps = 4>>"
            yield Tuned(product, schedule, 2.0, 4.0, 3.0)
            if product.tokens == 7:
                raise KeyboardInterrupt

    monkeypatch.setattr(tune, "count_gpus", lambda: 1)
    monkeypatch.setattr(tune, "device_gpu", lambda: "h200")
    monkeypatch.setattr(tune, "tune", search)
    drawn = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float16)
    sparse = prune(drawn, Encoding("2:4", dim=1))
    path = tmp_path / "model.safetensors"
    tensors = {"a.weight": sparse, "b.weight": sparse, "c.weight": drawn}
    write_tensors(path, {name: ("F16", w) for name, w in tensors.items()}, {})
    command = ("tune", str(path), "--database", str(tmp_path / "a.jsonl"))
    assert run(*command, "--tokens", "1,16") == 0
    text = capsys.readouterr().out
    assert "a and 1 others" in text and "mma" in text
    assert "not tuned: c.weight: its weight has no pattern" in text
    assert "are 1.50 times as fast as dense layers and 2.00 times as fast as" in text
    assert run(*command, "--tokens", "own", "--encoding", "8:16", "--json") == 0
    found = report(capsys)
    assert {tuple(row["layers"]) for row in found["tuned"]} == {("a", "b", "c")}
    assert len(found["tuned"]) > 2 and found["skipped"] == {}
    # A search that is broken off tells its findings first.
    assert run(*command, "--tokens", "7,8") == 1
    said = capsys.readouterr()
    assert "1 entries are new in" in said.out
    assert "interrupted; the same command goes on with" in said.err
    program = tmp_path / "layer.mlir"
    program.write_text(LinearSpec("#nm_sparse.encoding<2:4, dim = 1>", 32, 64).mlir())
    assert run("tune", str(program), *command[2:], "--json") == 0
    found = report(capsys)["tuned"]
    assert [row["tokens"] for row in found] == [1, 16, 64, 256, 1024, 4096]
    program.write_text("func.func @f() { return }")
    assert run("tune", str(program), *command[2:]) == 1
    assert "has nothing to tune" in capsys.readouterr().err


@pytest.mark.skipif(not native.available(), reason="no library of the compiler")
def test_tune_checks_results_without_a_gpu(capsys):
    layer = ("tune", "--encoding", "2:4", "--shape", "K=64,N=32", "--tokens", "3")
    assert run(*layer, "--device", "emulate", "--candidates", "2") == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    assert row == ["K=64,N=32", "3", "2"]
    assert run(*layer, "--device", "emulate", "--gpu", "h300") == 2
    assert "gpu is 'h300': legal is one of" in capsys.readouterr().err


def test_command_lines_of_tune(monkeypatch, capsys, tmp_path):
    rest = ("--database", str(tmp_path / "a.jsonl"))
    shape = ("--shape", "K=64,N=32")
    for wrong, said in (
        ((), "legal is a MODEL, or the --shape"),
        (("a", *shape, "--encoding", "2:4"), "legal is a MODEL, or the --shape"),
        (shape, "--shape needs an --encoding"),
        (("a", "--dtype", "f16"), "--dtype is that of --shape"),
        (("a", "--block", "1,8"), "--block is given without --encoding"),
        (("a", "--minutes", "nan"), "--minutes is nan: legal are 0 and more"),
        (("a", "--neighbours", "-1"), "--neighbours is -1: legal are 0 and more"),
        (("a", "--sample-ms", "0"), "--sample-ms is 0: legal are 1 and more"),
    ):
        assert run("tune", *wrong, *rest) == 2
        assert said in capsys.readouterr().err
    assert run("tune", "a") == 2
    assert "--database FILE is missing" in capsys.readouterr().err
    monkeypatch.setattr(tune, "count_gpus", lambda: 1)
    monkeypatch.setattr(tune, "device_gpu", lambda: "h200")
    assert run("tune", "none.safetensors", *rest) == 2
    assert "MODEL is 'none.safetensors', which is not there" in capsys.readouterr().err


def test_bench_compares_with_the_dense_layer(monkeypatch, capsys):
    torch = pytest.importorskip("torch")

    class Program:
        prepared = 0

        def prepare(self, packed, like):
            self.prepared += 1
            return packed.to_dense(like=like)

        def __call__(self, x, weight, y):
            return y.copy_(x @ weight.T)

    program = Program()
    monkeypatch.setattr(bench, "compile_program", lambda spec: program)
    monkeypatch.setattr(bench, "count_gpus", lambda: 1)
    monkeypatch.setattr(bench, "DEVICE", "cpu")
    monkeypatch.setattr(times_module, "DEVICE", "cpu")
    monkeypatch.setattr(times_module, "COLD_BYTES", 10000)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    times = iter([2e-6, 4e-6] * 4)
    monkeypatch.setattr(bench, "seconds_per_call", lambda *unused: next(times))
    layer = ("bench", "--encoding", "2:4", "--shape", "K=64,N=32", "--dtype", "f32")
    assert run(*layer, "--tokens", "1,5", "--json") == 0
    said = report(capsys)
    assert said["gpu"] == "a GPU" and said["encoding"] == "2:4, dim = 1"
    assert [row["tokens"] for row in said["times"]] == [1, 5]
    for row in said["times"]:
        assert row["us"] == pytest.approx(2) and row["speed"] == pytest.approx(2)
        assert 0 <= row["error"] < 1e-5
    assert program.prepared == -(-10000 // (32 * 64 // 2 * 5))
    assert run(*layer, "--tokens", "3") == 0
    text = capsys.readouterr().out
    assert "64 inputs, 32 outputs, f32, 2:4, dim = 1, on a GPU" in text

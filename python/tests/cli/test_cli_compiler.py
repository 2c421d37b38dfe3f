# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m nm_sparse explain | advise | bench`: what they ask of the compiler."""

import json
import sys
import types

import pytest

from nm_sparse import Encoding
from nm_sparse.cli import bench, main

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


def test_bench_compares_with_the_dense_layer(use, monkeypatch, capsys):
    torch = pytest.importorskip("torch")

    class Program:
        prepared = 0

        def prepare(self, packed, like):
            self.prepared += 1
            return packed.to_dense(like=like)

        def __call__(self, x, weight, y):
            return y.copy_(x @ weight.T)

    program = Program()
    use("runtime.program", types.SimpleNamespace(compile=lambda spec: program))
    use("layers.specs", types.SimpleNamespace(LinearSpec=lambda *fields: fields))
    monkeypatch.setattr(bench, "count_gpus", lambda: 1)
    monkeypatch.setattr(bench, "DEVICE", "cpu")
    monkeypatch.setattr(bench, "COLD_BYTES", 10000)
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

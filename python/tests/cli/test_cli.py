# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m nm_sparse`: files in and out, reports, and exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nm_sparse
from nm_sparse import Checkpoint, Encoding, PackedTensor, pack, prune, write_packed
from nm_sparse.cli import main
from nm_sparse.files.tensor_file import CheckpointError, TensorFile, write_tensors
from nm_sparse.files.tensor_writer import TensorWriter

FOLDER = Path(nm_sparse.__file__).parents[1]
E = Encoding("2:4", block=(1, 8), dim=1)


def random(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bf16(shape, seed=0):
    return (random(shape, seed).view(np.uint32) >> 16).astype(np.uint16)


@pytest.fixture
def model(tmp_path):
    """A checkpoint of weights, and of tensors that are none."""
    tensors = {
        "layers.0.up.weight": ("F16", random((48, 64)).astype(np.float16)),
        "layers.0.down.weight": ("BF16", bf16((32, 48))),
        "embed.weight": ("F32", random((20, 16))),
        "layers.0.norm.weight": ("F32", random((64,))),
        "layers.0.up.weight_scale": ("F32", random((48, 1))),
        "layers.0.count": ("I64", np.arange(3)),
    }
    path = tmp_path / "model.safetensors"
    write_tensors(path, tensors, {"format": "pt"})
    return path


def run(*arguments):
    return main([str(argument) for argument in arguments])


def report(capsys):
    return json.loads(capsys.readouterr().out)


def code_of(*arguments):
    """Of a wrong command line, which argparse ends."""
    with pytest.raises(SystemExit) as raised:
        run(*arguments)
    return raised.value.code


def test_prune_writes_what_prune_returns(model, tmp_path, capsys):
    out = tmp_path / "out.safetensors"
    status = run("prune", model, "-o", out, "--encoding", "2:4", "--block", "1,8",
                 "--exclude", "embed*", "--json")  # fmt: skip
    assert status == 0
    said = report(capsys)
    assert [w["name"] for w in said["weights"]] == [
        "layers.0.down.weight",
        "layers.0.up.weight",
    ]
    assert said["encoding"] == str(E) and said["copied"] == 4
    before, after = TensorFile(model), TensorFile(out)
    assert after.metadata == {"format": "pt"}
    assert {n: (t.dtype, t.shape) for n, t in before.tensors.items()} == {
        n: (t.dtype, t.shape) for n, t in after.tensors.items()
    }
    for name, tensor in before.tensors.items():
        expected = before.read(name)
        if name.startswith("layers") and name.endswith((".up.weight", ".down.weight")):
            expected = prune(expected, E, tensor.element_type)
        assert np.array_equal(after.read(name), expected), name
    for weight in said["weights"]:
        assert weight["density"] == 0.5 and 0.5 < weight["kept"] < 1
        assert weight["bytes"] == weight["bytes_before"]
    assert said["bytes"] == out.stat().st_size


def test_prune_and_pack(model, tmp_path, capsys):
    out = tmp_path / "out.safetensors"
    command = ("prune", model, "-o", out, "--encoding", "[2:4, block = [1, 8]]",
               "--include", "*.up.*", "--include", "embed*", "--pack")  # fmt: skip
    assert run(*command) == 0
    text = capsys.readouterr().out
    assert "2 weights have 2:4, block = [1, 8], dim = 1, 4 tensors are copied" in text
    names = set(TensorFile(out).tensors)
    assert {"embed.weight.values", "embed.weight.index"} <= names
    assert "embed.weight" not in names and "layers.0.down.weight" in names
    packed = PackedTensor.load(out, "layers.0.up.weight")
    expected = prune(TensorFile(model).read("layers.0.up.weight"), E)
    assert packed.encoding == E and np.array_equal(packed.to_dense(), expected)
    # The file of packed weights is pruned again: they are no matrices to prune.
    again = tmp_path / "again.safetensors"
    assert run("prune", out, "-o", again, "--encoding", "1:4", "--json") == 0
    assert [w["name"] for w in report(capsys)["weights"]] == ["layers.0.down.weight"]
    assert np.array_equal(
        PackedTensor.load(again, "layers.0.up.weight").to_dense(), expected
    )


def test_safetensors_reads_what_is_written(model, tmp_path):
    safetensors = pytest.importorskip("safetensors")
    out = tmp_path / "out.safetensors"
    assert run("prune", model, "-o", out, "--encoding", "free", "--density", "0.25",
               "--block", "4,1", "--pack", "--include", "*weight") == 0  # fmt: skip
    with safetensors.safe_open(out, "np") as file:
        offsets = file.get_tensor("embed.weight.offsets")
        assert offsets.dtype == np.uint32 and offsets[-1] == 20
        assert "embed.weight.nm_sparse" in file.metadata()
    for tensor in TensorFile(out).tensors.values():
        width = {"F32": 4, "U32": 4, "I64": 8, "F16": 2, "BF16": 2, "U8": 1}
        assert tensor.start % width[tensor.dtype] == 0


def test_prune_models_of_several_files(tmp_path, capsys):
    folder = tmp_path / "model"
    folder.mkdir()
    weights = {"a.weight": random((8, 16)), "b.weight": random((8, 16), 1)}
    for name, weight in weights.items():
        write_tensors(folder / f"{name[0]}.safetensors", {name: ("F32", weight)}, {})
    index = {"weight_map": {name: f"{name[0]}.safetensors" for name in weights}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    out = tmp_path / "out.safetensors"
    assert run("prune", folder, "-o", out, "--encoding", "2:4") == 0
    for name, weight in weights.items():
        assert np.array_equal(
            TensorFile(out).read(name), prune(weight, Encoding(2, 4, dim=1))
        )


def test_prune_leaves_embeddings_unless_named(tmp_path, capsys):
    """And heads that are tied to one; and a folder makes a folder."""
    folder = tmp_path / "model"
    folder.mkdir()
    names = ("model.embed_tokens", "lm_head", "model.layers.0.mlp.up_proj", "wte")
    weights = {f"{name}.weight": random((8, 16), at) for at, name in enumerate(names)}
    tensors = {name: ("F32", weight) for name, weight in weights.items()}
    write_tensors(folder / "model.safetensors", tensors, {})
    config = {"tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    out = tmp_path / "out"
    assert run("prune", folder, "-o", out, "--encoding", "2:4") == 0
    text = capsys.readouterr().out
    assert "model.embed_tokens.weight stays as it is: its name is that of an em" in text
    assert "lm_head.weight stays as it is: it is the head, which shares its we" in text
    assert sorted(path.name for path in out.iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.json",
    ]  # fmt: skip
    half = Encoding(2, 4, dim=1)
    for name, weight in weights.items():
        expected = prune(weight, half) if "up_proj" in name else weight
        assert np.array_equal(Checkpoint(out).tensor(name), expected), name
    named = tmp_path / "named"
    assert run("prune", folder, "-o", named, "--encoding", "2:4", "--include",
               "*embed*", "--json") == 0  # fmt: skip
    assert report(capsys)["left"] == {}
    pruned = Checkpoint(named).tensor("model.embed_tokens.weight")
    assert np.array_equal(pruned, prune(weights["model.embed_tokens.weight"], half))


def test_prune_overwrites_nothing_unasked(model, tmp_path, capsys):
    out = tmp_path / "out"
    out.write_text("precious")
    command = ("prune", model, "-o", out, "--encoding", "2:4")
    assert run(*command) == 2
    assert "which is there: choose another, or replace it by" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert run(*command, "--force") == 0
    assert "layers.0.up.weight" in TensorFile(out).tensors
    folder, target = tmp_path / "model", tmp_path / "target"
    folder.mkdir()
    model.rename(folder / "model.safetensors")
    (folder / "config.json").write_text("{}")
    target.mkdir()
    (target / "notes").write_text("precious")
    command = ("prune", folder, "-o", target, "--encoding", "2:4")
    assert run(*command) == run(*command, "--force") == 1
    assert "is no checkpoint, and is not replaced" in capsys.readouterr().err
    assert run("prune", folder, "-o", folder, "--encoding", "2:4", "--force") == 1
    assert "holds the source" in capsys.readouterr().err
    assert [path.name for path in target.iterdir()] == ["notes"]
    new = ("prune", folder, "-o", tmp_path / "new", "--encoding", "2:4")
    assert run(*new) == 0 and run(*new) == 1 and run(*new, "--force") == 0


def test_prune_folders_of_several_files(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    weights = {f"{name}.weight": random((8, 16), at) for at, name in enumerate("ab")}
    for name, weight in weights.items():
        write_tensors(folder / f"{name[0]}.safetensors", {name: ("F32", weight)}, {})
    index = {"weight_map": {name: f"{name[0]}.safetensors" for name in weights}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert run("prune", folder, "-o", tmp_path / "out", "--encoding", "2:4", "--pack",
               "--exclude", "b*") == 0  # fmt: skip
    found = Checkpoint(tmp_path / "out")
    assert sorted(path.name for path in found.files) == [
        "a.safetensors",
        "b.safetensors",
    ]
    assert set(found.packed) == {"a.weight"} and set(found.weights) == {"b.weight"}
    expected = prune(weights["a.weight"], Encoding(2, 4, dim=1))
    assert np.array_equal(
        PackedTensor(found.read_packed("a.weight")).to_dense(), expected
    )


def test_failures_leave_nothing(model, tmp_path, capsys):
    out = tmp_path / "out.safetensors"
    there = set(tmp_path.iterdir())
    for arguments, status, message in [
        ((tmp_path / "none", "--encoding", "2:4"), 1, "No such file"),
        ((model, "--encoding", "2:4", "--include", "x"), 1, "none of its 3 dense matr"),
        ((model, "--encoding", "2;4"), 2, "encoding '2;4' has ';'"),
        ((model, "--encoding", "2:4", "--block", "0,1"), 2, r"block is [0, 1]: legal"),
        ((model, "--encoding", "2:4, dim = 1", "--dim", "1"), 2, "says it, too"),
        ((model, "--encoding", "2:4, dim = 2"), 1, "dim is 2: a weight of rank 2"),
        ((model, "--encoding", "2:4", "--density", "0.5"), 2, "--density belongs to"),
        ((model, "--encoding", "free", "--density", "5"), 1, "density is 5.0: legal"),
    ]:
        assert run("prune", *arguments, "-o", out) == status
        captured = capsys.readouterr()
        assert message in captured.err and captured.err.count("\n") == 1
        assert captured.err.startswith("nm_sparse prune: ") and not captured.out
        assert set(tmp_path.iterdir()) == there
    assert run("prune", model, "-o", model, "--encoding", "2:4") == 2
    assert "-o names the input" in capsys.readouterr().err
    assert run("prune", model, "-o", tmp_path / "x" / "y", "--encoding", "2:4") == 1
    assert set(tmp_path.iterdir()) == there


def test_damage_in_the_middle_leaves_nothing(model, tmp_path, monkeypatch, capsys):
    there = set(tmp_path.iterdir())

    def fail(*unused):
        raise OSError("no space is left")

    monkeypatch.setattr("nm_sparse.files.tensor_writer._copy", fail)
    out = tmp_path / "out.safetensors"
    assert run("prune", model, "-o", out, "--encoding", "2:4") == 1
    assert "no space is left" in capsys.readouterr().err
    assert set(tmp_path.iterdir()) == there


def test_wrong_command_lines(model, capsys):
    assert code_of() == 2
    assert code_of("sparsify") == 2
    assert code_of("prune", model, "--encoding", "2:4") == 2
    assert code_of("prune", model, "-o", "x", "--encoding", "2:4", "--block", "4") == 2
    assert "'4' is no block: legal is BK,BN" in capsys.readouterr().err
    assert code_of("advise", "--shape", "K=4") == 2
    assert "'K=4' is no shape: legal is" in capsys.readouterr().err
    assert code_of("advise", "--shape", "K=4,N=4", "--tokens", "1,x") == 2
    assert "'1,x' is no list of numbers" in capsys.readouterr().err
    assert code_of("--help") == code_of("--version") == 0
    assert capsys.readouterr().out.endswith(f"\nnm_sparse {nm_sparse.__version__}\n")
    for command in (
        "convert", "prune", "inspect", "explain", "advise", "bench", "tune",
    ):  # fmt: skip
        assert code_of(command, "--help") == 0


def test_inspect(model, tmp_path, capsys):
    pruned = tmp_path / "pruned.safetensors"
    run("prune", model, "-o", pruned, "--encoding", "2:4", "--exclude", "embed*")
    capsys.readouterr()
    assert run("inspect", pruned, "--json") == 0
    rows = {row["name"]: row for row in report(capsys)["tensors"]}
    assert rows["layers.0.up.weight"] == {
        "name": "layers.0.up.weight",
        "shape": [48, 64],
        "dtype": "f16",
        "stored": "dense",
        "encoding": "2:4, dim = 1",
        "density": 0.5,
        "bytes": 6144,
    }
    assert rows["layers.0.down.weight"]["encoding"] == "2:4, dim = 1"
    assert rows["embed.weight"]["encoding"] is None
    assert rows["embed.weight"]["density"] == 1
    assert rows["layers.0.count"]["dtype"] == "I64"
    assert rows["layers.0.count"]["density"] is None
    assert run("inspect", pruned) == 0
    text = capsys.readouterr().out
    assert "layers.0.up.weight" in text and "48 x 64" in text and "6 tensors, " in text
    assert run("inspect", pruned, "--quick", "--json") == 0
    assert all(row["density"] is None for row in report(capsys)["tensors"])


@pytest.mark.parametrize("storage", ["canonical", "bitmap", "k_major"])
def test_inspect_packed_weights(tmp_path, capsys, storage):
    e, path = Encoding("8:32", block=(1, 4), dim=1), tmp_path / "packed"
    packed = pack(prune(random((24, 64)), e), e)
    write_packed(path, {"w": packed.packed, "v.w": packed.packed}, storage)
    assert run("inspect", path, "--json") == 0
    rows = report(capsys)["tensors"]
    assert sorted(row["name"] for row in rows) == ["v.w", "w"]
    for row in rows:
        assert row["encoding"] == str(e) and row["shape"] == [24, 64]
        assert row["density"] == 0.25
        assert row["stored"] == ("packed" if storage == "canonical" else storage)
    sizes = [t.size for t in TensorFile(path).tensors.values()]
    assert sum(row["bytes"] for row in rows) == sum(sizes)
    assert run("inspect", path, "--json", "--quick") == 0
    for quick, row in zip(report(capsys)["tensors"], rows):
        assert quick == {**row, "density": None}


def test_inspect_bitmasks_of_compressed_tensors(tmp_path, capsys):
    kept = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
    tensors = {
        "up.shape": ("I64", np.array([4, 8])),
        "up.compressed": ("F32", kept),
        "up.bitmask": ("U8", np.full((4, 1), 0b00110101, np.uint8)),
    }
    write_tensors(tmp_path / "w", tensors, {})
    assert Checkpoint(tmp_path / "w").weights["up.weight"].stored != "dense"
    assert run("inspect", tmp_path / "w", "--json") == 0
    (row,) = report(capsys)["tensors"]
    assert row["name"] == "up.weight" and row["stored"] == "sparse-24-bitmask"
    assert row["encoding"] == "2:4, dim = 1" and row["density"] == 0.5
    assert row["bytes"] == 16 + 64 + 4


def test_inspect_says_what_is_damaged(tmp_path, capsys):
    write_tensors(tmp_path / "w", {}, {"w.nm_sparse": "5"})
    assert run("inspect", tmp_path / "w") == 1
    assert "weight 'w': metadata is not a JSON object" in capsys.readouterr().err
    (tmp_path / "w").write_bytes(b"no file")
    assert run("inspect", tmp_path / "w") == 1
    assert "this is no safetensors file" in capsys.readouterr().err


def test_names_are_written_once(tmp_path):
    with TensorWriter(tmp_path / "w") as writer:
        writer.add("a", "F32", np.zeros(2, np.float32))
        with pytest.raises(CheckpointError, match="tensor 'a' is there twice"):
            writer.add("a", "F32", np.zeros(2, np.float32))
        with pytest.raises(CheckpointError, match="array of float32, which is not F16"):
            writer.add("b", "F16", np.zeros(2, np.float32))
    assert not list(tmp_path.iterdir())


def test_as_a_program(model, tmp_path):
    command = [sys.executable, "-m", "nm_sparse"]
    done = subprocess.run([*command, "inspect", str(model), "--quick"], cwd=FOLDER,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0 and "embed.weight" in done.stdout and not done.stderr
    done = subprocess.run([*command, "inspect", str(tmp_path / "none")], cwd=FOLDER,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 1 and done.stderr.count("\n") == 1

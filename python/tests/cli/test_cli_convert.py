# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert` on the command line, where names say which weights layers have."""

import json

import numpy as np
import pytest
from convert_cases import CONFIG, folder_of, weights

from nm_sparse import Checkpoint, decode, prune
from nm_sparse.cli import main
from nm_sparse.files.convert.shard_writer import ShardWriter
from nm_sparse.files.sparse_config import weight_encoding


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture
def source(tmp_path):
    return folder_of(tmp_path / "m", weights(), {**CONFIG, "model_type": "unknown"})


def test_a_model_is_converted(source, tmp_path, capsys):
    target = tmp_path / "out"
    status = run("convert", source, "-o", target, "--by-name", "--encoding", "2:4",
                 "--layers", "layers.0.up=8:32, block = [1, 4]", "--layers",
                 "lm_head=dense", "--dtype", "bf16", "--shard-size", "1MB",
                 "--json")  # fmt: skip
    assert status == 0
    report = json.loads(capsys.readouterr().out)
    assert report["share"] > 0.5 and not report["is_known"]
    found = Checkpoint(target)
    assert found.read_packed("layers.0.up.weight").encoding == weight_encoding(
        "8:32, block = [1, 4]"
    )
    assert found.config["quantization_config"]["provenance"] == {
        "source": "m",
        "method": "magnitude, without calibration",
        "made by": "nm_sparse 0.1.0",
    }
    assert found.weights["lm_head.weight"].dtype == "bf16"
    assert run("inspect", target, "--quick") == 0
    text = capsys.readouterr().out
    assert "layers.0.up.weight" in text and ".values" not in text
    assert run("convert", source, "-o", tmp_path / "b", "--by-name", "--encoding",
               "2:4", "--block", "1,2") == 0  # fmt: skip
    text = capsys.readouterr().out
    assert text.splitlines()[0].endswith("of the packed magnitudes are kept")
    assert "2:4, block = [1, 2]" in text and "dense: its name is that of an" in text


def test_weights_that_are_pruned(tmp_path):
    tensors, half = weights(), weight_encoding("2:4")
    tensors["layers.0.up.weight"] = prune(tensors["layers.0.up.weight"], half)
    source = folder_of(tmp_path / "m", tensors)
    assert run("convert", source, "-o", tmp_path / "out", "--by-name", "--encoding",
               "2:4", "--prune", "none") == 0  # fmt: skip
    found = Checkpoint(tmp_path / "out")
    assert set(found.packed) == {"layers.0.up.weight"}
    dense = decode(found.read_packed("layers.0.up.weight"))
    assert np.array_equal(dense, tensors["layers.0.up.weight"])


def test_weights_of_eight_bits(source, tmp_path, capsys):
    command = ("convert", source, "--by-name", "--encoding", "2:4", "--weights", "e4m3")
    assert run(*command, "-o", tmp_path / "a", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    said = {key: report[key] for key in ("weights", "scales", "activations", "method")}
    assert said == {"weights": "e4m3", "scales": "output", "activations": "e4m3",
                    "method": "magnitude, without calibration"}  # fmt: skip
    packed = [one for one in report["outcomes"] if one["encoding"]]
    assert all(one["elements"] == "e4m3" and one["rounding"] > 0 for one in packed)
    assert run(*command, "-o", tmp_path / "b", "--scales", "tensor", "--activations",
               "same") == 0  # fmt: skip
    text = capsys.readouterr().out
    assert text.splitlines()[0].endswith("; inputs are multiplied as they are")
    assert "  e4m3  2:4  " in text and "  error   rounding  bytes" in text
    scale = Checkpoint(tmp_path / "b").tensor("layers.0.up.scale")
    assert scale.shape == (300,) and len(set(scale)) == 1
    assert run("inspect", tmp_path / "a", "--quick") == 0
    text = capsys.readouterr().out
    assert "layers.0.up.weight" in text and ".scale" not in text


def test_what_is_packed_already(source, tmp_path, capsys):
    command = ("convert", source, "-o", tmp_path / "a", "--by-name", "--encoding")
    assert run(*command, "2:4") == 0
    again = ("convert", tmp_path / "a", "--by-name", "-o")
    assert run(*again, tmp_path / "no", "--encoding", "8:16") == 1
    said = capsys.readouterr().err
    for text in (
        "is packed already, as 2:4, and 8:16 is asked for: legal is the sa",
        "or prune none, which keeps what is packed; for another pat",
    ):
        assert text in said
    assert run(*again, tmp_path / "no", "--encoding", "2:4", "--layers",
               "*.up=dense") == 1  # fmt: skip
    assert "leaves layers.0.up dense, whose weight is packed" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
    config = tmp_path / "a" / "config.json"
    fields = json.loads(config.read_text())
    fields["quantization_config"]["provenance"]["method"] = "by hand"
    config.write_text(json.dumps(fields))
    assert run(*again, tmp_path / "b", "--encoding", "2:4", "--weights", "int8") == 0
    found = Checkpoint(tmp_path / "b")
    said = found.config["quantization_config"]
    method = "by hand; of what was dense: magnitude, without calibration"
    assert said["weights"] == "int8" and said["provenance"]["method"] == method
    for name in found.packed:
        layer = name[: -len(".weight")]
        index = Checkpoint(tmp_path / "a").tensor(f"{layer}.index")
        assert np.array_equal(found.tensor(f"{layer}.index"), index)


@pytest.mark.parametrize("arguments, status, message", [
    ((), 2, "no encoding is given: legal is --encoding, or --layers with one"),
    (("--block", "1,2"), 2, "--block is given without --encoding"),
    (("--encoding", "free"), 2, "legal for layers of transformers are n:m levels with"),
    (("--encoding", "2:4", "--dim", "0"), 2, "are n:m levels with dim = 1"),
    (("--encoding", "2;4"), 2, "encoding '2;4' has ';'"),
    (("--encoding", "2:4", "--activations", "e4m3"), 2,
     "--activations is given without --weights: legal is --weights e4m3 or int8"),
    (("--encoding", "2:4", "--scales", "output"), 2, "--scales is given without --wei"),
    (("--encoding", "2:4", "--weights", "e4m3", "--activations", "int8"), 2,
     "--activations is 'int8', and weights 'e4m3': legal is 'same' or 'e4m3'"),
    (("--encoding", "2:4", "--layers", "x.*=2:4"), 1, "decides about no layer"),
    (("--encoding", "2:4", "--layers", "embed_tokens=2:4"), 1, "cannot be packed"),
])  # fmt: skip
def test_what_is_wrong_is_said(source, tmp_path, capsys, arguments, status, message):
    out = tmp_path / "out"
    assert run("convert", source, "-o", out, "--by-name", *arguments) == status
    captured = capsys.readouterr()
    assert captured.err.startswith("nm_sparse convert: ") and message in captured.err
    assert captured.err.count("\n") == 1 and not captured.out
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize("arguments, message", [
    (("--layers", "lm_head"), "'lm_head' is no layer: legal is PATTERN=ENCODING"),
    (("--layers", "a=5"), "'a=5': encoding '5'"),
    (("--shard-size", "5 GB"), "'5 GB' is no size: legal is a number with MB or GB"),
    (("--shard-size", "0"), "'0' is no size"),
    (("--dtype", "i8"), "invalid choice: 'i8'"),
    (("--prune", "wanda"), "invalid choice: 'wanda'"),
    (("--weights", "e5m2"), "invalid choice: 'e5m2'"),
    (("--weights", "e4m3", "--scales", "row"), "invalid choice: 'row'"),
])  # fmt: skip
def test_wrong_command_lines(source, tmp_path, capsys, arguments, message):
    with pytest.raises(SystemExit) as raised:
        run("convert", source, "-o", tmp_path / "out", *arguments)
    assert raised.value.code == 2 and message in capsys.readouterr().err


def test_interrupts_say_how_to_go_on(source, tmp_path, capsys, monkeypatch):
    command = (
        "convert",
        source,
        "-o",
        tmp_path / "out",
        "--by-name",
        "--encoding",
        "2:4",
    )
    finish = ShardWriter.finish

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(ShardWriter, "finish", interrupt)
    assert run(*command) == 1
    said = capsys.readouterr().err
    assert "interrupted; the same command goes on with out.unfinished" in said
    monkeypatch.setattr(ShardWriter, "finish", finish)
    assert run(*command) == 0 and (tmp_path / "out" / "README.md").is_file()
    assert run(*command) == 1
    assert "force, or --force, replaces a checkpoint" in capsys.readouterr().err
    assert run(*command, "--force") == 0

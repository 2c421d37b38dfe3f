# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints are converted layer by layer, whole or not at all."""

import json
import tracemalloc

import numpy as np
import pytest
from compressed_cases import bitmask
from convert_cases import as_bf16, convert, folder_of, weights
from marlin_cases import encode_marlin, integers, scales

from nm_sparse import (
    Checkpoint,
    CheckpointError,
    decode,
    encode,
    prune,
    write_packed,
)
from nm_sparse.files.convert import Structure
from nm_sparse.files.convert.shard_writer import ShardWriter
from nm_sparse.files.scales import from_f32, to_f32
from nm_sparse.files.sparse_config import SparseConfig, weight_encoding
from nm_sparse.packing.two_four import ENCODING as HALF

LAYERS = [f"layers.{b}.{name}" for b in (0, 1) for name in ("q", "up")] + ["lm_head"]


@pytest.mark.parametrize("encoding", [
    "2:4", "8:32, block = [1, 64]", "[4:8, block = [1, 32]], [2:4]", "3:5",
    "2:4, order = shuffled",
])  # fmt: skip
@pytest.mark.parametrize("inputs", [64, 50])
def test_weights_are_what_prune_and_encode_make(tmp_path, encoding, inputs):
    tensors = weights(inputs=inputs)
    source = folder_of(tmp_path / "m", tensors)
    report = convert(source, tmp_path / "out", encoding, largest=20_000)
    assert len(report.files) > 2 and report.resumed == 0
    found, e = Checkpoint(tmp_path / "out"), weight_encoding(encoding)
    assert sorted(found.packed) == sorted(f"{layer}.weight" for layer in LAYERS)
    for name in found.packed:
        pruned, packed = prune(tensors[name], e), found.read_packed(name)
        assert np.array_equal(decode(packed), pruned)
        if not e.is_shuffled:
            expected = encode(pruned, e).components
            for part, array in packed.components.items():
                assert np.array_equal(array, expected[part]), (name, part)
    for name in ("embed_tokens.weight", "norm.weight", "layers.0.up.bias"):
        assert np.array_equal(found.tensor(name), tensors[name])
    config = SparseConfig.parse(found.config["quantization_config"])
    assert all(config.encoding_of(layer) == e for layer in LAYERS)
    assert config.weights == "f16" and found.config["model_type"] == "none"
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {*report.files, "config.json", "model.safetensors.index.json",
                     "README.md", "tokenizer.json"}  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "out"]
    total = sum(t.size for f in found.files.values() for t in f.tensors.values())
    assert report.bytes_after == total < report.bytes_before


def test_what_is_reported(tmp_path):
    tensors = weights()
    source = folder_of(tmp_path / "m", tensors)
    layers = {"*.0.up": "8:16", "lm_head": None}
    texts = {"source": "m", "method": "by magnitude"}
    report = convert(source, tmp_path / "out", layers=layers, provenance=texts)
    one = {outcome.name: outcome for outcome in report.outcomes}["layers.0.up.weight"]
    before = tensors["layers.0.up.weight"].astype(np.float64)
    after = prune(tensors["layers.0.up.weight"], weight_encoding("8:16"))
    after = after.astype(np.float64)
    assert one.kept == pytest.approx(np.abs(after).sum() / np.abs(before).sum())
    wanted = np.linalg.norm(before - after) / np.linalg.norm(before)
    assert one.error == pytest.approx(wanted, rel=1e-5)
    assert one.bytes_after < one.bytes_before == 300 * 64 * 2
    dense = {one.name: one.reason for one in report.outcomes if not one.is_packed}
    assert dense == {"embed_tokens.weight": "its name is that of an embedding",
                     "lm_head.weight": "'lm_head' leaves it dense"}  # fmt: skip
    share = 100 * sum(one.bytes_before for one in report.packed) / report.bytes_before
    assert str(report).startswith(f"{share:.1f} % of the bytes, 4 of 6 matrices, are p")
    card = (tmp_path / "out" / "README.md").read_text()
    for text in ("`8:16` in 1 layer\n", "by magnitude", "from_pretrained(", str(report),
                 f"| `layers.0.up.weight` | 300 x 64 | `8:16` | {one.bytes_after} | "
                 f"{one.kept:.4f} |"):  # fmt: skip
        assert text in card
    said = json.loads((tmp_path / "out/config.json").read_text())["quantization_config"]
    assert said["provenance"] == texts and said["encoding"] == "2:4"
    assert said["layers"] == {"lm_head": None, "layers.0.up": "8:16"}


def test_tied_heads_and_cards_of_the_source(tmp_path):
    config = {"model_type": "none", "tie_word_embeddings": True}
    source = folder_of(tmp_path / "m", weights(), config, README_md="their words")
    report = convert(source, tmp_path / "out")
    reasons = {one.name: one.reason for one in report.outcomes}
    assert "shares its weight with the embedding" in reasons["lm_head.weight"]
    assert (tmp_path / "out" / "README.source.md").read_text() == "their words"


def test_types_change(tmp_path):
    tensors = {**weights(), "steps": np.arange(3)}
    source = folder_of(tmp_path / "m", tensors)
    convert(source, tmp_path / "out", dtype="bf16")
    found = Checkpoint(tmp_path / "out")
    for name in ("norm.weight", "embed_tokens.weight"):
        expected = from_f32(tensors[name].astype(np.float32), "bf16")
        assert np.array_equal(found.tensor(name), expected)
    packed = found.read_packed("layers.0.up.weight")
    bits = from_f32(tensors["layers.0.up.weight"].astype(np.float32), "bf16")
    assert packed.dtype == "bf16"
    assert np.array_equal(decode(packed), prune(bits, HALF, "bf16"))
    assert found.tensor("steps").tolist() == [0, 1, 2]
    assert found.config["dtype"] == "bfloat16"


def test_quantized_weights_become_numbers(tmp_path):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 120, (64, 32)).astype(np.uint8)
    scale = np.exp2(rng.integers(-6, 2, (64, 1))).astype(np.float32)
    i8 = prune(rng.integers(-99, 99, (64, 32)).astype(np.int8), HALF)
    q, s = integers(64, 32, 4), scales(64, 1)
    marlin = dict(zip(("weight_packed", "scale_packed", "meta"),
                      encode_marlin(q, s, 4)))  # fmt: skip
    tensors = {
        "a.weight": ("F8_E4M3", codes), "a.weight_scale": scale,
        "a.input_scale": np.ones(1, np.float32),
        "b.weight_scale": as_bf16(scale), "b.weight_zero_point": np.zeros(1, np.int8),
        "c.weight_packed": ("I32", marlin["weight_packed"]),
        "c.scale_packed": marlin["scale_packed"], "c.meta": ("I16", marlin["meta"]),
        "embed.weight": ("F8_E5M2", codes[:, :8]),
        "embed.weight_scale": np.full(1, 0.25, np.float32),
        **{k.replace("__", "."): v for k, v in bitmask("b", i8).items()},
    }  # fmt: skip
    source = folder_of(tmp_path / "m", tensors, {"torch_dtype": "bfloat16"})
    report = convert(source, tmp_path / "out")
    found = Checkpoint(tmp_path / "out")
    assert sorted(found.packed) == ["a.weight", "b.weight", "c.weight"]
    assert "quantization_config" in found.config
    assert not any("scale" in name or "zero" in name for f in found.files.values()
                   for name in f.tensors)  # fmt: skip
    a = from_f32(to_f32(codes, "f8E4M3FN") * scale, "bf16")
    b = from_f32(i8.astype(np.float32) * scale, "bf16")
    c = from_f32((q * s.astype(np.float32)).astype(np.float32), "bf16")
    assert np.array_equal(decode(found.read_packed("a.weight")), prune(a, HALF, "bf16"))
    assert np.array_equal(to_f32(decode(found.read_packed("b.weight")), "bf16"),
                          to_f32(b, "bf16"))  # fmt: skip
    assert np.array_equal(to_f32(decode(found.read_packed("c.weight")), "bf16"),
                          to_f32(c, "bf16"))  # fmt: skip
    embed = from_f32(to_f32(codes[:, :8], "f8E5M2") * 0.25, "bf16")
    assert np.array_equal(found.tensor("embed.weight"), embed)
    assert {one.name: one.error for one in report.packed}["c.weight"] == 0


def test_weights_that_are_pruned_already(tmp_path):
    tensors = weights()
    for name in ("layers.0.up.weight", "layers.1.q.weight"):
        tensors[name] = prune(tensors[name], HALF)
    tensors["lm_head.weight"] = prune(tensors["lm_head.weight"], HALF)
    tensors["lm_head.weight"][7, 8:11] = 1
    source = folder_of(tmp_path / "m", tensors)
    report = convert(source, tmp_path / "out", prune="none")
    assert [one.name for one in report.packed] == [
        "layers.0.up.weight", "layers.1.q.weight",
    ]  # fmt: skip
    assert all(one.kept == 1 and one.error == 0 for one in report.packed)
    reasons = {one.name: one.reason for one in report.outcomes}
    assert reasons["lm_head.weight"].endswith("the first is window 2 of output 7")
    assert reasons["layers.0.q.weight"] == "dense"
    again = convert(tmp_path / "out", tmp_path / "again", "8:16", prune="none")
    assert {one.name for one in again.packed if one.was_packed} == {
        "layers.0.up.weight", "layers.1.q.weight",
    }  # fmt: skip
    for name in ("layers.0.up.weight", "layers.1.q.weight"):
        for folder in ("out", "again"):
            packed = Checkpoint(tmp_path / folder).read_packed(name)
            assert np.array_equal(decode(packed), tensors[name])


def test_files_of_packed_weights_are_read(tmp_path):
    rng = np.random.default_rng(2)
    dense = prune(rng.standard_normal((40, 32)).astype(np.float32), HALF)
    packed = encode(dense, HALF)
    write_packed(tmp_path / "m.safetensors", {"a.weight": packed, "table": packed})
    structure = Structure({"a.weight": (40, 32)}, {"table.weight": "it is none"}, True)
    convert(tmp_path / "m.safetensors", tmp_path / "out", dtype="f16",
            structure=structure)  # fmt: skip
    found = Checkpoint(tmp_path / "out")
    assert set(found.packed) == {"a.weight"}
    assert np.array_equal(found.tensor("table.weight"), dense.astype(np.float16))
    kept = decode(found.read_packed("a.weight"))
    assert np.array_equal(kept, dense.astype(np.float16))
    assert not (tmp_path / "out" / "config.json").exists()


@pytest.mark.parametrize("layers, message", [
    ({"embed_tokens": "2:4"}, r"layers\['embed_tokens'\] names embed_tokens.weight, w"),
    ({"none.*": "2:4"}, r"layers\['none.\*'\] decides about no layer: legal are pat"),
    ({"*": None}, "none of its matrices can be packed: legal is .*leaves it dense"),
    ({"*": "2:128"}, "none of its .* inputs are less than a window of 128"),
    ({"*": "2:4, block = [1, 512]"}, "outputs are less than a panel of 512"),
    ({"*": "7:8"}, "packed it takes [0-9]* bytes, dense [0-9]*"),
])  # fmt: skip
def test_what_is_not_possible_is_refused_first(tmp_path, layers, message):
    source = folder_of(tmp_path / "m", weights())
    with pytest.raises(CheckpointError, match=message):
        convert(source, tmp_path / "out", layers=layers)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_layers_of_other_shapes_are_refused_first(tmp_path):
    source = folder_of(tmp_path / "m", weights())
    structure = Structure({"layers.0.up.weight": (300, 65)}, {}, True)
    with pytest.raises(CheckpointError, match=r"has shape \[300, 64\]: the model has "):
        convert(source, tmp_path / "out", structure=structure)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize("tensors, message", [
    ({"a.weight_scale_inv": np.ones((2, 2), np.float32)}, "a.weight_scale_inv' has s"),
    ({"a.weight_scale": np.ones(1, np.float32), "a.weight_zero_point":
      np.ones(1, np.int8)}, "'a.weight_zero_point' is not zero"),
    ({"c.weight_packed": np.ones((2, 2), np.int64)},
     "'c.weight_packed' is part of a"),
])  # fmt: skip
def test_what_could_not_be_loaded_is_refused_first(tmp_path, tensors, message):
    tensors = {"a.weight": np.ones((16, 32), np.int8), **tensors}
    source = folder_of(tmp_path / "m", tensors)
    with pytest.raises(CheckpointError, match=message):
        convert(source, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


class Stop(Exception):
    pass


def test_a_stopped_run_goes_on(tmp_path, monkeypatch):
    source = folder_of(tmp_path / "m", weights())
    convert(source, tmp_path / "whole", largest=30_000)
    finish, calls = ShardWriter.finish, []

    def stop(self):
        calls.append(self.path.name)
        if len(calls) == 3:
            raise Stop
        finish(self)

    monkeypatch.setattr(ShardWriter, "finish", stop)
    with pytest.raises(Stop):
        convert(source, tmp_path / "out", largest=30_000)
    work = tmp_path / "out.unfinished"
    assert not (tmp_path / "out").exists() and len(list(work.iterdir())) == 3
    (work / "model-00003-of-00009.safetensors.part").write_bytes(b"half")
    with pytest.raises(CheckpointError, match="is an unfinished conversion of another"):
        convert(source, tmp_path / "out", "1:4", largest=30_000)
    monkeypatch.setattr(ShardWriter, "finish", finish)
    report = convert(source, tmp_path / "out", largest=30_000)
    assert report.resumed == 2 and not work.exists()
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()
    assert len(list((tmp_path / "out").iterdir())) == len(
        list((tmp_path / "whole").iterdir())
    )


def test_nothing_is_overwritten_unasked(tmp_path):
    source = folder_of(tmp_path / "m", weights())
    target = tmp_path / "out"
    target.mkdir()
    (target / "notes.txt").write_text("mine")
    for force, message in ((False, "is there: legal is a new"), (True, "is no checkp")):
        with pytest.raises(CheckpointError, match=message):
            convert(source, target, force=force)
    assert [path.name for path in target.iterdir()] == ["notes.txt"]
    with pytest.raises(CheckpointError, match="holds the source: legal is another"):
        convert(source, tmp_path, force=True)
    convert(source, tmp_path / "new")
    with pytest.raises(CheckpointError, match="force, or --force, replaces"):
        convert(source, tmp_path / "new", "1:4")
    convert(source, tmp_path / "new", "1:4", force=True)
    assert (
        Checkpoint(tmp_path / "new").config["quantization_config"]["encoding"] == "1:4"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "new", "out"]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["2:4", "8:32, block = [1, 128]", "4:10 2:4"])
def test_memory_is_less_than_a_layer_twice(tmp_path, encoding):
    rng = np.random.default_rng(3)
    shape = (2048, 8192)
    names = [f"layers.{at}.up.weight" for at in range(2)]
    tensors = {name: rng.standard_normal(shape, np.float32).astype(np.float16)
               for name in names}  # fmt: skip
    source = folder_of(tmp_path / "m", tensors)
    largest = tensors[names[0]].nbytes
    del tensors
    tracemalloc.start()
    convert(source, tmp_path / "out", encoding)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * largest

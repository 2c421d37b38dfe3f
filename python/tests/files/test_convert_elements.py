# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints are converted to packed weights of 8 bits, part by part. That elements
are those of torch is tested where models are loaded (tests/pretrained)."""

import json
import tracemalloc

import numpy as np
import pytest
from convert_cases import convert, folder_of, weights

from nm_sparse import Checkpoint, CheckpointError, encode, prune
from nm_sparse.files.convert.rounding import Rounding
from nm_sparse.files.convert.shard_writer import ShardWriter
from nm_sparse.files.scales import numpy_type, to_elements, to_f32, to_scale
from nm_sparse.files.sparse_config import weight_encoding
from nm_sparse.packing.two_four import ENCODING as HALF

KINDS = {"e4m3": "f8E4M3FN", "int8": "i8"}
UP = "layers.0.up"


def test_elements_are_the_nearest_ones():
    codes = np.arange(127, dtype=np.uint8)
    numbers = to_f32(codes, "f8E4M3FN")
    middles = (numbers[1:] + numbers[:-1]) / 2
    for sign in (1, -1):
        bit = np.uint8(0x80 if sign < 0 else 0)
        assert np.array_equal(to_elements(sign * numbers, "f8E4M3FN"), codes | bit)
        # The even one wins where two are as near.
        even = (codes[:-1] + 1) // 2 * 2
        assert np.array_equal(to_elements(sign * middles, "f8E4M3FN"), even | bit)
        for toward, wanted in ((np.inf, codes[1:]), (0, codes[:-1])):
            near = sign * np.nextafter(middles, np.float32(toward))
            assert np.array_equal(to_elements(near, "f8E4M3FN"), wanted | bit)
    large = np.array([448, 465, 1e9, np.inf, -np.inf, np.nan], np.float32)
    assert to_elements(large, "f8E4M3FN").tolist() == [126] * 4 + [254, 127]
    some = np.array([0.5, 1.5, -2.5, 126.6, 300, -300], np.float32)
    assert to_elements(some, "i8").tolist() == [0, 2, -2, 127, 127, -127]
    assert to_scale(np.zeros(1, np.float32), "i8") == np.float32(1e-12) / 127


@pytest.mark.parametrize("scales", ["output", "tensor"])
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("inputs", [64, 50])
def test_values_are_rounded_with_scales(tmp_path, kind, scales, inputs):
    tensors = weights(inputs=inputs)
    tensors[f"{UP}.weight"][7] = 0
    source = folder_of(tmp_path / "m", tensors)
    report = convert(source, tmp_path / "out", weights=kind, scales=scales,
                     largest=20_000)  # fmt: skip
    found = Checkpoint(tmp_path / "out")
    for name in found.packed:
        layer, stored = name[: -len(".weight")], KINDS[kind]
        packed = encode(prune(tensors[name], HALF), HALF)
        values = packed.values.astype(np.float32)
        largest = np.abs(values).max(0)
        if scales == "tensor":
            largest = np.full_like(largest, largest.max())
        scale = to_scale(largest, stored)
        assert np.array_equal(found.tensor(f"{layer}.scale"), scale)
        elements = found.tensor(f"{layer}.values")
        assert elements.dtype == numpy_type(stored)
        assert np.array_equal(elements, to_elements(values / scale, stored))
        index = packed.components["index"]
        assert np.array_equal(found.tensor(f"{layer}.index"), index)
    total = sum(t.size for f in found.files.values() for t in f.tensors.values())
    assert report.bytes_after == total
    said = found.config["quantization_config"]
    assert (said["weights"], said["scales"], said["activations"]) == (
        kind, "output", kind,
    )  # fmt: skip


def test_what_is_reported(tmp_path):
    tensors = weights()
    source = folder_of(tmp_path / "m", tensors)
    layers = {"lm_head": None}
    report = convert(source, tmp_path / "out", layers=layers, weights="e4m3",
                     provenance={"source": "m"})  # fmt: skip
    one = {outcome.name: outcome for outcome in report.outcomes}[f"{UP}.weight"]
    found = Checkpoint(tmp_path / "out")
    values = encode(prune(tensors[one.name], HALF), HALF).values.astype(np.float32)
    stood = to_f32(found.tensor(f"{UP}.values"), "f8E4M3FN")
    stood = (stood * found.tensor(f"{UP}.scale")).astype(np.float16)
    wanted = np.linalg.norm(stood - values) / np.linalg.norm(values)
    assert one.rounding == pytest.approx(wanted, rel=1e-4) and 0.01 < wanted < 0.04
    assert (one.elements, one.dtype) == ("e4m3", "f16")
    dense = [one for one in report.outcomes if not one.is_packed]
    assert all(one.elements is one.rounding is None for one in dense)
    card = (tmp_path / "out" / "README.md").read_text()
    for text in (
        "* packed values are `e4m3`, with a scale for each output: those next to ",
        "* inputs of packed layers are rounded to `e4m3`, each token with a scale",
        "* method: magnitude, without calibration\n* source: m\n",
        "| kept | error | rounding |", f"{one.error:.4f} | {one.rounding:.4f} |",
        f"off by {100 * report.rounding:.2f} %; inputs are rounded to e4m3",
    ):  # fmt: skip
        assert text in card, text
    fields = json.loads(json.dumps(report.to_dict()))
    assert {key: fields[key] for key in ("weights", "scales", "activations")} == {
        "weights": "e4m3", "scales": "output", "activations": "e4m3",
    }  # fmt: skip
    assert fields["method"].startswith("magnitude") and fields["rounding"] > 0
    same = convert(source, tmp_path / "same", layers=layers, weights="int8",
                   scales="tensor", activations="same")  # fmt: skip
    assert str(same).endswith("%; inputs are multiplied as they are")
    card = (tmp_path / "same" / "README.md").read_text()
    assert "a scale for each weight, the same for all of its outputs" in card
    assert "* inputs of packed layers are multiplied as they are" in card
    config = Checkpoint(tmp_path / "same").config["quantization_config"]
    assert config["activations"] is None and config["scales"] == "output"


class Stop(Exception):
    pass


def test_a_stopped_run_goes_on_with_the_same_options(tmp_path, monkeypatch):
    source = folder_of(tmp_path / "m", weights())
    own = dict(weights="e4m3", scales="tensor", largest=30_000)
    convert(source, tmp_path / "whole", **own)
    finish, calls = ShardWriter.finish, []

    def stop(self):
        calls.append(self.path.name)
        if len(calls) == 3:
            raise Stop
        finish(self)

    monkeypatch.setattr(ShardWriter, "finish", stop)
    with pytest.raises(Stop):
        convert(source, tmp_path / "out", **own)
    monkeypatch.setattr(ShardWriter, "finish", finish)
    for changed in (
        {"weights": "int8"}, {"scales": "output"}, {"activations": "same"},
        {"weights": None, "scales": "output"}, {"prune": "none"},
    ):  # fmt: skip
        message = "is an unfinished conversion of another|none of its matrices"
        with pytest.raises(CheckpointError, match=message):
            convert(source, tmp_path / "out", **{**own, **changed})
    # The report says what activations become, not what they are by default.
    report = convert(source, tmp_path / "out", **own, activations="e4m3")
    assert report.resumed == 2
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("scales", ["output", "tensor"])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_is_named(tmp_path, value, scales):
    tensors = weights()
    tensors[f"{UP}.weight"][290, 5] = value
    source = folder_of(tmp_path / "m", tensors)
    message = f"weight '{UP}.weight': output 290 has an infinity or a NaN: legal for"
    with pytest.raises(CheckpointError, match=message):
        convert(source, tmp_path / "out", weights="int8", scales=scales)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("scale, is_kept", [
    (np.full(1, 0.5), True), (np.full((40, 1), 0.5), True),
    (np.arange(40)[:, None], False), (np.full(1, -0.5), False),
])  # fmt: skip
def test_scales_that_no_packed_weight_may_have(tmp_path, scale, is_kept):
    """Elements are kept beside legal scales alone."""
    rng = np.random.default_rng(5)
    codes = prune(rng.integers(-128, 128, (40, 32)).astype(np.int8), HALF)
    tensors = {"a.weight": codes, "a.weight_scale": scale.astype(np.float32)}
    source = folder_of(tmp_path / "m", tensors, {"dtype": "bfloat16"})
    own = dict(weights="int8", prune="none")
    report = convert(source, tmp_path / "out", **own)
    assert (report.rounding == 0) == is_kept
    found = Checkpoint(tmp_path / "out")
    if is_kept:
        assert np.array_equal(found.tensor("a.values"), encode(codes, HALF).values)
    assert (found.tensor("a.scale") > 0).all()


def test_parts_of_a_shuffled_weight_keep_their_scales():
    """Scales are in the order of the outputs, elements in that of the panels."""
    values = np.array([[1, 2, 4], [-8, 0, 1]], np.float32)
    perm = np.array([2, 0, 1], np.uint32)
    parts = {"values": values, "index": np.zeros((2, 3), np.uint8), "perm": perm}
    found, error = Rounding("i8", "f32", "output").apply(parts, 3)
    assert np.allclose(found["scale"] * 127, [2, 4, 8])
    assert found["values"].tolist() == [[16, 127, 127], [-127, 0, 32]]
    assert 0 < error.relative < 0.01 and found["perm"] is perm


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["2:4", "8:32, block = [1, 128]", "4:10 2:4"])
@pytest.mark.parametrize("kind, scales", [("e4m3", "output"), ("int8", "tensor")])
def test_memory_is_a_packed_layer_and_parts(tmp_path, encoding, kind, scales):
    rng = np.random.default_rng(3)
    names = [f"layers.{at}.up.weight" for at in range(2)]
    tensors = {name: rng.standard_normal((2048, 8192), np.float32).astype(np.float16)
               for name in names}  # fmt: skip
    source = folder_of(tmp_path / "m", tensors)
    del tensors
    tracemalloc.start()
    report = convert(source, tmp_path / "out", encoding, weights=kind, scales=scales)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Parts are whole panels, of which some are there at once, dense and pruned.
    panel = weight_encoding(encoding).block[1] * 8192 * 2
    assert peak < report.packed[0].bytes_after + (8 << 20) + 4 * panel

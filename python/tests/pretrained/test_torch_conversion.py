# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints with 2:4 weights are read as packed ones, and converted to such."""

import json
import tracemalloc

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from compressed_cases import (  # noqa: E402
    CONFIG,
    HALF,
    bitmask,
    layers,
    save,
    sparse,
    stored,
)
from safetensors import safe_open  # noqa: E402

from nm_sparse import Checkpoint, CheckpointError, encode, read_packed  # noqa: E402
from nm_sparse.files import contents  # noqa: E402
from nm_sparse.torch import PackedWeight  # noqa: E402
from nm_sparse.torch.models.compressed import (  # noqa: E402
    convert_checkpoint,
    load_compressed,
)


def test_weights_are_read(tmp_path):
    shards, weights = layers(np.random.default_rng(0))
    folder = stored(tmp_path / "m", shards, CONFIG)
    found = dict(load_compressed(folder))
    assert set(found) == {*weights, "m.0.up.bias", "m.1.steps"}
    for name, dense in weights.items():
        is_packed = name != "m.1.full.weight"
        assert isinstance(found[name], PackedWeight) == is_packed
        tensor = found[name].to_dense() if is_packed else found[name]
        assert torch.equal(tensor, torch.from_numpy(dense))
    assert found["m.1.steps"].tolist() == [3, 4]


def test_types_without_numpy_are_read(tmp_path):
    bits = np.array([[0x3F80, 0, 0, 0x4000], [0, 0xC000, 0x8000, 0]], np.uint16)
    small = np.array([[0x38, 0, 0x40, 0]], np.uint8)
    path = save(
        tmp_path / "m.safetensors",
        a__weight=("BF16", bits),
        b__weight=("F8_E4M3", small),
        c=("BF16", bits.reshape(-1)),
        d=np.array(2.5, np.float32),
    )
    found = dict(load_compressed(path))
    dense = torch.tensor([[1.0, 0, 0, 2], [0, -2, 0, 0]])
    assert found["a.weight"].dtype == torch.bfloat16
    assert torch.equal(found["a.weight"].to_dense().float(), dense)
    assert found["b.weight"].dtype == torch.float8_e4m3fn
    assert found["b.weight"].to_dense().float().tolist() == [[1, 0, 2, 0]]
    assert torch.equal(found["c"].float(), dense.reshape(-1))
    assert found["d"].shape == () and found["d"] == 2.5


def test_a_folder_is_converted(tmp_path):
    shards, weights = layers(np.random.default_rng(1))
    folder = stored(tmp_path / "m", shards, CONFIG)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "optimizer.pt").write_bytes(b"a pickle")
    target = tmp_path / "out" / "packed"
    done = convert_checkpoint(folder, target, progress=False)
    names = ["m.0.down.weight", "m.0.up.weight", "m.1.up.weight"]
    assert sorted(done.packed) == names
    assert done.left == {"m.1.full.weight": "dense"}
    assert "3 of 4 weights are packed" in str(done)
    assert sorted(path.name for path in target.iterdir()) == [
        "README.md", "config.json", "model.safetensors", "tokenizer.json",
    ]  # fmt: skip
    config = json.loads((target / "config.json").read_text())
    assert config.pop("quantization_config")["encoding"] == "2:4"
    assert config == {"hidden_size": 16}
    with safe_open(target / "model.safetensors", "pt") as file:
        # Aligned, whatever comes first.
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        assert file.metadata() == {"format": "pt"}
    assert done.bytes_after == sum(tensor.nbytes for tensor in tensors.values())
    found = Checkpoint(target)
    packed = {name: found.read_packed(name) for name in found.packed}
    assert set(packed) == set(names) == set(read_packed(target / "model.safetensors"))
    for name in names:
        expected = encode(weights[name], HALF)
        for part, array in expected.components.items():
            assert np.array_equal(packed[name].components[part], array)
        assert f"{name[:-7]}.values" in tensors
    before, after = dict(load_compressed(folder)), dict(load_compressed(target))
    assert set(before) == set(after)
    for name, value in before.items():
        other = after[name]
        if isinstance(value, PackedWeight):
            value, other = value.to_dense(), other.to_dense()
        assert torch.equal(value, other)
    again = convert_checkpoint(target, tmp_path / "again", progress=False)
    assert again.packed == () and set(again.left) == {"m.1.full.weight"}


def test_a_file_is_converted(tmp_path):
    rng = np.random.default_rng(2)
    dense = sparse(rng, 8, 16)
    path = save(
        tmp_path / "m.safetensors", a__weight=dense, b__weight=dense, c=dense[0]
    )
    target = tmp_path / "packed.safetensors"
    done = convert_checkpoint(path, target, progress=False, weights=["a.*"])
    assert done.packed == ("a.weight",)
    assert done.left == {"b.weight": "no pattern of weights names it"}
    assert set(read_packed(target)) == {"a.weight"}
    assert np.array_equal(Checkpoint(target).tensor("b.weight"), dense)


def test_quantization_is_said_anew(tmp_path):
    config = json.loads(json.dumps(CONFIG))
    groups = {"group_0": {"targets": ["Linear"]}}
    config["quantization_config"]["config_groups"] = groups
    config["quantization_config"]["format"] = "float-quantized"
    rng = np.random.default_rng(3)
    file = {"m.safetensors": {"a__weight": sparse(rng, 32, 64)}}
    folder = stored(
        tmp_path / "m", {**file, "n.safetensors": {"b": np.ones(2)}}, config
    )
    convert_checkpoint(folder, tmp_path / "out", progress=False)
    found = json.loads((tmp_path / "out/config.json").read_text())
    said = found["quantization_config"]
    assert said["quant_method"] == "nm_sparse" and "config_groups" not in said
    assert "compression_config" not in found and "sparsity_config" not in found


def test_an_error_leaves_nothing(tmp_path, monkeypatch):
    shards, _ = layers(np.random.default_rng(4))
    shards["b.safetensors"]["m__1__up__compressed"][:] = 1
    shards["a.safetensors"]["m__1__up__bitmask"][2] = 0
    folder = stored(tmp_path / "m", shards, CONFIG)
    with pytest.raises(
        CheckpointError, match=r"a.safetensors: tensor 'm.1.up.bitmask'"
    ):
        convert_checkpoint(folder, tmp_path / "out", progress=False)
    with pytest.raises(
        CheckpointError, match=r"'m.1.up.bitmask' has 0 bits in window 0"
    ):
        list(load_compressed(folder))
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_wrong_places_are_named(tmp_path):
    shards, _ = layers(np.random.default_rng(5))
    folder = stored(tmp_path / "m", shards, CONFIG)
    with pytest.raises(
        CheckpointError, match="m: holds the source: legal is another fo"
    ):
        convert_checkpoint(folder, folder)
    with pytest.raises(
        CheckpointError, match="the source has 2 files: legal is the nam"
    ):
        convert_checkpoint(folder, tmp_path / "out.safetensors")
    path = save(tmp_path / "m.safetensors", a__weight=np.ones((4, 4), np.float32))
    with pytest.raises(CheckpointError, match="is the source: legal is another file"):
        convert_checkpoint(path, path)


@pytest.mark.parametrize("where", ["quantization_config", "sparsity_config"])
@pytest.mark.parametrize("layout", ["marlin-24", "sparse-bitmask", "pack-quantized"])
def test_tensors_decide_whatever_the_config_says(tmp_path, where, layout):
    config = {"sparsity_config": {"format": layout}}
    if where == "quantization_config":
        config = {where: {"quant_method": "compressed-tensors", "format": layout}}
    shards, weights = layers(np.random.default_rng(6))
    folder = stored(tmp_path / "m", shards, config)
    found = dict(load_compressed(folder))
    dense = weights["m.0.up.weight"]
    assert torch.equal(found["m.0.up.weight"].to_dense(), torch.from_numpy(dense))
    done = convert_checkpoint(folder, tmp_path / "out", progress=False)
    assert len(done.packed) == 3
    shards["b.safetensors"]["m__2__weight_packed"] = np.ones((4, 4), np.int64)
    folder = stored(tmp_path / "n", shards, config)
    message = f"'m.2.weight_packed' is part of a weight in the layout '{layout}', whi"
    with pytest.raises(CheckpointError, match=message):
        list(load_compressed(folder))
    with pytest.raises(CheckpointError, match=message):
        convert_checkpoint(folder, tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_memory_holds_one_weight_at_a_time(tmp_path):
    rng = np.random.default_rng(7)
    weights = {f"m.{at}.weight": sparse(rng, 2048, 2048, np.float16) for at in range(4)}
    tensors = {}
    for at, dense in enumerate(weights.values()):
        own = bitmask(f"m__{at}", dense)
        if at % 2 or (dense != 0).sum() * 2 != dense.size:
            own = {f"m__{at}__weight": dense}
        tensors[f"{at}.safetensors"] = own
    folder = stored(tmp_path / "m", tensors)
    size = next(iter(weights.values())).nbytes
    del tensors, weights
    tracemalloc.start()
    convert_checkpoint(folder, tmp_path / "out", progress=False)
    converted = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    for name, value in load_compressed(folder):
        assert name.startswith("m.")
        del value  # which else lives until the next one is there
    loaded = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Beside the weight and its packed form, what a few rows of it need.
    assert converted < 1.2 * size + (6 << 20)
    assert size < loaded < 2 * size + (6 << 20)


def test_progress_is_optional(tmp_path, monkeypatch):
    items = [1, 2]
    assert contents.bar(items, "tensors", False) is items
    assert list(contents.bar(items, "tensors", True)) == items
    monkeypatch.setitem(__import__("sys").modules, "tqdm", None)
    assert contents.bar(items, "tensors", True) is items

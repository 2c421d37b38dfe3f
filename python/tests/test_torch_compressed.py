# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints with 2:4 weights become packed ones, and models of torch."""

import json
import tracemalloc

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors import safe_open  # noqa: E402
from test_checkpoint import model, save  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import (  # noqa: E402  # noqa: E402
    Checkpoint,
    CheckpointError,
    Encoding,
    conversion,
    encode,
    prune,
    read_packed,
    write_packed,
)
from nm_sparse.torch import NMLinear, PackedWeight  # noqa: E402
from nm_sparse.torch.compressed import (  # noqa: E402
    convert_checkpoint,
    load_compressed,
    load_into,
)

HALF = Encoding(2, 4, dim=1)


def sparse(rng, outputs, inputs, dtype=np.float32):
    return prune(rng.standard_normal((outputs, inputs)).astype(dtype), HALF)


def bitmask(name, dense, kind=None):
    """The three tensors of a 2:4 weight of which every window keeps two."""
    keep = dense != 0
    compressed = dense[keep].reshape(len(dense), -1)
    mask = np.packbits(keep, axis=1, bitorder="little")
    return {
        f"{name}__shape": np.array(dense.shape),
        f"{name}__compressed": (kind, compressed) if kind else compressed,
        f"{name}__bitmask": mask,
    }


def stored(folder, shards, config=None):
    """The folder of a model of these files."""
    folder.mkdir()
    model(folder, shards, config)
    return folder


def layers(rng):
    """Tensors of a model of two files, and the dense weights by name."""
    weights = {
        "m.0.up.weight": sparse(rng, 24, 16),
        "m.0.down.weight": sparse(rng, 16, 20, np.float16),
        "m.1.up.weight": sparse(rng, 8, 12),
        "m.1.full.weight": rng.standard_normal((8, 12)).astype(np.float32),
    }
    first = {
        **bitmask("m__0__up", weights["m.0.up.weight"]),
        "m__0__down__weight": weights["m.0.down.weight"],
        "m__0__up__bias": rng.standard_normal(24).astype(np.float32),
    }
    second = {
        **bitmask("m__1__up", weights["m.1.up.weight"]),
        "m__1__full__weight": weights["m.1.full.weight"],
        "m__1__steps": np.array([3, 4]),
    }
    # A part may lie in another file than the values.
    first["m__1__up__bitmask"] = second.pop("m__1__up__bitmask")
    return {"a.safetensors": first, "b.safetensors": second}, weights


CONFIG = {
    "hidden_size": 16,
    "quantization_config": {
        "quant_method": "compressed-tensors",
        "format": "dense",
        "sparsity_config": {
            "format": "sparse-24-bitmask",
            "sparsity_structure": "2:4",
            "targets": ["Linear"],
            "ignore": ["lm_head"],
        },
    },
}


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
        "a.safetensors", "b.safetensors", "config.json",
        "model.safetensors.index.json", "tokenizer.json",
    ]  # fmt: skip
    assert json.loads((target / "config.json").read_text()) == {"hidden_size": 16}
    index = json.loads((target / "model.safetensors.index.json").read_text())
    assert index["weight_map"]["m.1.up.weight.values"] == "b.safetensors"
    assert index["metadata"]["total_size"] == done.bytes_after
    packed = {}
    for path in target.glob("*.safetensors"):
        packed.update(read_packed(path))
        with safe_open(path, "pt") as file:  # aligned, whatever comes first
            assert all(file.get_tensor(name) is not None for name in file.keys())
            assert file.metadata()["format"] == "pt"
    for name in names:
        expected = encode(weights[name], HALF)
        for part, array in expected.components.items():
            assert np.array_equal(packed[name].components[part], array)
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


def test_quantization_stays_in_the_config(tmp_path):
    config = json.loads(json.dumps(CONFIG))
    groups = {"group_0": {"targets": ["Linear"]}}
    config["quantization_config"]["config_groups"] = groups
    config["quantization_config"]["format"] = "float-quantized"
    rng = np.random.default_rng(3)
    file = {"m.safetensors": {"a__weight": sparse(rng, 4, 8)}}
    folder = stored(
        tmp_path / "m", {**file, "n.safetensors": {"b": np.ones(2)}}, config
    )
    convert_checkpoint(folder, tmp_path / "out", progress=False)
    found = json.loads((tmp_path / "out/config.json").read_text())[
        "quantization_config"
    ]
    assert found["config_groups"] == groups and "sparsity_config" not in found


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
        CheckpointError, match="m: is there: legal is a new or empty fol"
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
def test_other_layouts_are_named(tmp_path, where):
    config = {"sparsity_config": {"format": "marlin-24"}}
    if where == "quantization_config":
        config = {where: {"quant_method": "compressed-tensors", "format": "marlin-24"}}
    shards, _ = layers(np.random.default_rng(6))
    folder = stored(tmp_path / "m", shards, config)
    message = (
        r"config.json: the weights are stored as 'marlin-24': legal is dense, spar"
    )
    with pytest.raises(CheckpointError, match=message):
        list(load_compressed(folder))
    with pytest.raises(CheckpointError, match=message):
        convert_checkpoint(folder, tmp_path / "out")


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
    assert size < converted < 2 * size + (6 << 20)
    assert size < loaded < 2 * size + (6 << 20)


def test_progress_is_optional(tmp_path, monkeypatch):
    items = [1, 2]
    assert conversion.bar(items, "tensors", False) is items
    assert list(conversion.bar(items, "tensors", True)) == items
    monkeypatch.setitem(__import__("sys").modules, "tqdm", None)
    assert conversion.bar(items, "tensors", True) is items


class Small(nn.Module):
    """Layers of several kinds, and a tied weight."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(12, 16)
        self.up, self.down = nn.Linear(16, 24), nn.Linear(24, 16, bias=False)
        self.full = nn.Linear(16, 16)
        self.head = nn.Linear(16, 12, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("shift", torch.zeros(16))

    def forward(self, tokens):
        x = self.table(tokens)
        x = x + self.down(self.up(x).relu()) + self.full(x) + self.shift
        return self.head(x)


def saved(tmp_path, seed):
    """A model with two 2:4 layers, and the folder of its checkpoint."""
    torch.manual_seed(seed)
    small = Small()
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        small.up.weight.copy_(torch.from_numpy(sparse(rng, 24, 16)))
        small.down.weight.copy_(torch.from_numpy(sparse(rng, 16, 24)))
        small.table.weight.copy_(torch.from_numpy(sparse(rng, 12, 16)))
        small.shift.normal_()
    state = {n.replace(".", "__"): v.numpy() for n, v in small.state_dict().items()}
    del state["head__weight"]
    state.update(bitmask("up", state.pop("up__weight")))
    names = list(state)
    shards = {"a.safetensors": {n: state[n] for n in names[::2]},
              "b.safetensors": {n: state[n] for n in names[1::2]}}  # fmt: skip
    return small, stored(tmp_path / "m", shards, CONFIG)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("is_converted", [False, True])
def test_models_are_loaded(tmp_path, device, is_converted):
    small, folder = saved(tmp_path, 8)
    if is_converted:
        convert_checkpoint(folder, tmp_path / "packed", progress=False)
        folder = tmp_path / "packed"
    with torch.device(device):
        other = Small()
    other.up.bias.requires_grad_(False)
    report = load_into(other.eval(), folder, progress=False)
    assert sorted(report.packed) == ["down", "up"]
    assert type(other.up) is NMLinear and type(other.full) is nn.Linear
    assert report.missing == report.unexpected == ()
    assert other.head.weight is other.table.weight
    assert not other.up.training and not other.up.bias.requires_grad
    tokens = torch.randint(0, 12, (3, 5))
    torch.testing.assert_close(other(tokens), small(tokens))
    assert str(report).startswith("2 packed layers, ")


def test_a_model_of_another_type(tmp_path):
    small, folder = saved(tmp_path, 9)
    other = Small().bfloat16()
    load_into(other, folder, progress=False)
    assert other.up.values.dtype == torch.bfloat16
    dense = other.up.weight.to_dense()
    assert torch.equal(dense, small.up.weight.bfloat16())


def test_missing_and_unexpected_tensors(tmp_path):
    _, folder = saved(tmp_path, 10)
    other = Small()
    other.extra = nn.Linear(3, 3)
    with pytest.raises(
        CheckpointError, match="missing are extra.weight, extra.bias: leg"
    ):
        load_into(other, folder, progress=False)
    other = Small()
    del other.full
    with pytest.raises(CheckpointError, match="unexpected are full.*weight"):
        load_into(other, folder, progress=False)
    other = Small()
    del other.full
    report = load_into(other, folder, strict=False, progress=False)
    assert set(report.unexpected) == {"full.weight", "full.bias"}
    other = Small()
    other.full = nn.Linear(16, 20)
    with pytest.raises(
        CheckpointError, match=r"'full.\w+' has shape .*: the model has "
    ):
        load_into(other, folder, progress=False)


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("is_packed", [False, True])
def test_scales_are_multiplied(tmp_path, count, is_packed):
    rng = np.random.default_rng(11)
    dense = (sparse(rng, 8, 16) * 20).astype(np.int8)
    scale = rng.random((count, 1)).astype(np.float32)
    path = save(
        tmp_path / "m.safetensors",
        weight=dense,
        weight_scale=scale,
        weight_zero_point=np.zeros((count, 1), np.int8),
        input_scale=np.ones(1, np.float32),
    )
    if is_packed:
        source, path = path, tmp_path / "packed.safetensors"
        convert_checkpoint(source, path, progress=False)
    holder = nn.ModuleDict({"fc": nn.Linear(16, 8, bias=False)})
    with pytest.raises(CheckpointError, match="missing are fc.weight"):
        load_into(holder, path, progress=False)
    prefixed = {}
    for name in ("weight", "weight_scale", "weight_zero_point", "input_scale"):
        prefixed[f"fc__{name}"] = Checkpoint(tmp_path / "m.safetensors").tensor(name)
    path = save(tmp_path / "fc.safetensors", **prefixed)
    if is_packed:
        source, path = path, tmp_path / "fc_packed.safetensors"
        convert_checkpoint(source, path, progress=False)
    load_into(holder, path, progress=False)
    wanted = torch.from_numpy(dense * scale)
    torch.testing.assert_close(holder["fc"].weight.to_dense(), wanted)


def test_wrong_scales_are_named(tmp_path):
    dense = np.zeros((8, 16), np.int8)
    dense[:, 0] = 1

    def load(**tensors):
        path = save(tmp_path / "m.safetensors", fc__weight=dense, **tensors)
        layer = nn.ModuleDict({"fc": nn.Linear(16, 8, bias=False)})
        load_into(layer, path, progress=False)

    with pytest.raises(
        CheckpointError, match=r"'fc.weight_scale' has shape \[2, 4\]: le"
    ):
        load(fc__weight_scale=np.ones((2, 4), np.float32))
    with pytest.raises(
        CheckpointError, match="'fc.weight_zero_point' is not zero: legal"
    ):
        load(
            fc__weight_scale=np.ones((8, 1), np.float32),
            fc__weight_zero_point=np.ones((8, 1), np.int8),
        )


def test_packed_weights_of_any_pattern(tmp_path):
    rng = np.random.default_rng(12)
    e = Encoding(3, 7, (1, 4), 1, "shuffled")
    dense = prune(rng.standard_normal((10, 30)).astype(np.float32), e)
    write_packed(tmp_path / "m.safetensors", {"fc.weight": encode(dense, e)})
    layer = nn.ModuleDict({"fc": nn.Linear(30, 10, bias=False)})
    load_into(layer, tmp_path / "m.safetensors", progress=False)
    assert layer["fc"].encoding == e
    assert torch.equal(layer["fc"].weight.to_dense(), torch.from_numpy(dense))


def test_a_transformer_is_loaded(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, vocab_size=40,
        num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(0)
    llama = transformers.LlamaForCausalLM(config).eval()
    rng = np.random.default_rng(13)
    with torch.no_grad():
        for module in llama.model.modules():
            if isinstance(module, nn.Linear):
                module.weight.copy_(torch.from_numpy(sparse(rng, *module.weight.shape)))
    llama.save_pretrained(tmp_path / "m", max_shard_size="20KB")
    assert len(list((tmp_path / "m").glob("*.safetensors"))) > 1
    convert_checkpoint(tmp_path / "m", tmp_path / "packed", progress=False)
    tokens = torch.randint(0, 40, (2, 5))
    for folder in ("m", "packed"):
        found = transformers.AutoConfig.from_pretrained(tmp_path / folder)
        other = transformers.LlamaForCausalLM(found).eval()
        assert len(load_into(other, tmp_path / folder, progress=False).packed) == 14
        with torch.no_grad():
            torch.testing.assert_close(other(tokens).logits, llama(tokens).logits)

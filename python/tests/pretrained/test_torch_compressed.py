# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints with 2:4 or packed weights are loaded into models of torch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from compressed_cases import (  # noqa: E402
    CONFIG,
    bitmask,
    save,
    sparse,
    stored,
)
from torch import nn  # noqa: E402

from nm_sparse import (  # noqa: E402
    Checkpoint,
    CheckpointError,
    Encoding,
    encode,
    prune,
    write_packed,
)
from nm_sparse.torch import NMLinear  # noqa: E402
from nm_sparse.torch.models.compressed import (  # noqa: E402
    convert_checkpoint,
    load_into,
)


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


def stored_llama(tmp_path):
    """A Llama with 2:4 weights in its blocks, and its folder."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=1, vocab_size=40,
        num_attention_heads=2, num_key_value_heads=1,
    )  # fmt: skip
    torch.manual_seed(0)
    llama = transformers.LlamaForCausalLM(config).eval()
    rng = np.random.default_rng(14)
    with torch.no_grad():
        for module in llama.model.modules():
            if isinstance(module, nn.Linear):
                module.weight.copy_(torch.from_numpy(sparse(rng, *module.weight.shape)))
    llama.save_pretrained(tmp_path / "m")
    return llama, tmp_path / "m"


def test_buffers_that_no_checkpoint_has(tmp_path):
    llama, folder = stored_llama(tmp_path)
    tokens = torch.arange(8)[None]
    with torch.device("meta"):
        other = type(llama)(llama.config).eval()
    assert other.model.rotary_emb.inv_freq.is_meta
    report = load_into(other, folder, progress=False)
    assert report.missing == ()
    tensors = [*other.parameters(), *other.buffers()]
    assert not any(tensor.is_meta for tensor in tensors)
    assert not any(hasattr(tensor, "_is_hf_initialized") for tensor in tensors)
    with torch.no_grad():
        torch.testing.assert_close(other(tokens).logits, llama(tokens).logits)

    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(16, 8)
            self.register_buffer("shift", torch.ones(8), persistent=False)

    rng = np.random.default_rng(15)
    path = save(tmp_path / "s.safetensors", fc__weight=sparse(rng, 8, 16),
                fc__bias=np.zeros(8, np.float32))  # fmt: skip
    with torch.device("meta"):
        shifted = Shifted()
    with pytest.raises(CheckpointError, match="missing are shift: legal is the check"):
        load_into(shifted, path, progress=False)
    assert shifted.fc.weight.is_meta  # nothing is changed
    report = load_into(shifted, path, strict=False, progress=False)
    assert report.missing == ("shift",) and report.packed == ("fc",)
    assert load_into(Shifted(), path, progress=False).missing == ()


def test_models_with_packed_layers_are_loaded(tmp_path):
    """From a dense checkpoint that is 2:4, and from one of packed layers."""
    llama, folder = stored_llama(tmp_path)
    tokens = torch.arange(8)[None]
    packed = type(llama)(llama.config).eval()
    load_into(packed, folder, progress=False)
    packed.save_pretrained(tmp_path / "packed", max_shard_size="4KB")
    for where in (folder, tmp_path / "packed"):
        other = type(llama)(llama.config).eval()
        load_into(other, folder, progress=False)
        report = load_into(other, where, progress=False)
        assert len(report.packed) == 7 and report.missing == ()
        with torch.no_grad():
            torch.testing.assert_close(other(tokens).logits, llama(tokens).logits)
    with pytest.raises(CheckpointError, match="'fc.weight' is dense, and fc of the"):
        dense = np.ones((8, 16), np.float32)
        path = save(tmp_path / "d.safetensors", fc__weight=dense)
        layer = NMLinear(16, 8, "2:4", bias=False)
        load_into(nn.ModuleDict({"fc": layer}), path, progress=False)


def test_weights_of_marlin_24(tmp_path):
    from marlin_cases import encode_marlin, integers, scales

    numbers, scale = integers(64, 256, 4), scales(64, 2)
    parts = encode_marlin(numbers, scale, 4)
    path = save(
        tmp_path / "m.safetensors", fc__weight_packed=("I32", parts[0]),
        fc__scale_packed=parts[1], fc__meta=("I16", parts[2]),
    )  # fmt: skip
    layer = nn.ModuleDict({"fc": nn.Linear(256, 64, bias=False)}).half()
    assert load_into(layer, path, progress=False).packed == ("fc",)
    wanted = torch.from_numpy(numbers * scale.astype(np.float32).repeat(128, axis=1))
    assert torch.equal(layer["fc"].weight.to_dense().float(), wanted.float())


def test_nothing_is_changed_where_something_does_not_fit(tmp_path):
    small, folder = saved(tmp_path, 16)
    other = Small()
    other.extra = nn.Linear(3, 3)
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    with pytest.raises(CheckpointError):
        load_into(other, folder, progress=False)
    del other.extra
    other.full = nn.Linear(16, 20)
    with pytest.raises(CheckpointError):
        load_into(other, folder, progress=False)
    assert type(other.up) is nn.Linear
    for name, tensor in other.state_dict().items():
        if not name.startswith("full"):
            assert torch.equal(tensor, before[name])

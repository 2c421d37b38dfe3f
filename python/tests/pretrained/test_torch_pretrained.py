# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with packed layers are saved, and loaded by the name of their folder."""

import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pretrained_cases import (  # noqa: E402
    TOKENS,
    built,
    configs,
    copied,
    llama,
    logits,
    pack,
    packed_layers,
)
from torch import nn  # noqa: E402

from nm_sparse import Checkpoint  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    NMLinear,
    NMSparseConfig,
    PackedWeight,
    load_into,
    prune_weight,
)
from nm_sparse.torch.layers.conv2d import pack_layer  # noqa: E402
from nm_sparse.torch.layers.convertible import (  # noqa: E402
    is_convertible,
    matrix_of,
)
from nm_sparse.torch.pretrained import mark_pretrained  # noqa: E402
from nm_sparse.torch.pretrained.quantizer import replace_module  # noqa: E402

AUTO = transformers.AutoModelForCausalLM


def test_the_config_says_what_is_packed(saved):
    model, folder = saved
    said = json.loads((folder / "config.json").read_text())["quantization_config"]
    assert said == {
        "quant_method": "nm_sparse",
        "version": 1,
        "encoding": "2:4",
        "layers": {"model.layers.0.mlp.up_proj": "8:16", "lm_head": None},
        "weights": "f32",
        "activations": None,
        "scales": None,
        "provenance": {"method": "magnitude"},
    }
    found = Checkpoint(folder)
    assert len(found.packed) == 14 and "lm_head.weight" in found.weights
    assert not any(".values" in name for name in found.weights)


@pytest.mark.parametrize("options", [
    {}, {"device_map": "cpu"}, {"device_map": "auto"}, {"low_cpu_mem_usage": True},
    {"device_map": {"model": "cpu", "lm_head": "cpu"}},
])  # fmt: skip
def test_it_is_loaded_by_its_name(saved, options):
    if "device_map" in options:
        pytest.importorskip("accelerate")
    model, folder = saved
    other, info = AUTO.from_pretrained(folder, output_loading_info=True, **options)
    assert not any(info.values()), info
    assert packed_layers(other) == packed_layers(model)
    assert torch.equal(logits(other), logits(model))
    assert str(other.model.layers[0].mlp.up_proj.encoding) == "8:16, dim = 1"
    assert not any(one.training for one in other.modules())
    assert other.config.quantization_config.sparse.weights == "f32"


def test_other_types(saved):
    model, folder = saved
    other = AUTO.from_pretrained(folder, dtype=torch.bfloat16)
    layer, own = other.model.layers[1].mlp.down_proj, model.model.layers[1].mlp
    assert layer.weight.dtype == torch.bfloat16
    dense = own.down_proj.weight.to_dense().bfloat16()
    assert torch.equal(layer.weight.to_dense(), dense)


def test_a_base_model_of_a_whole_one_and_back(saved, tmp_path):
    model, folder = saved
    base = transformers.AutoModel.from_pretrained(folder)
    assert len(packed_layers(base)) == 14
    with torch.no_grad():
        wanted = model.model(TOKENS).last_hidden_state
        assert torch.equal(base(TOKENS).last_hidden_state, wanted)
    base.save_pretrained(tmp_path / "base")
    whole = AUTO.from_pretrained(tmp_path / "base")
    assert len(packed_layers(whole)) == 14
    with torch.no_grad():
        assert torch.equal(whole.model(TOKENS).last_hidden_state, wanted)


@pytest.mark.parametrize("name", list(configs()))
def test_architectures(tmp_path, name):
    model = pack(built(*configs()[name]))
    mark_pretrained(model)
    model.save_pretrained(tmp_path / "m", max_shard_size="80KB")
    kind = type(model)
    other, info = kind.from_pretrained(tmp_path / "m", output_loading_info=True)
    assert not any(info.values()), info
    assert packed_layers(other) == packed_layers(model) != []
    assert torch.equal(logits(other), logits(model))
    # The same folder is read without transformers' loading.
    third = built(*configs()[name], seed=1)
    report = load_into(third, tmp_path / "m", progress=False, strict=name != "mixtral")
    assert sorted(report.packed) == sorted(packed_layers(model))
    if name != "mixtral":  # whose experts have other names in files
        assert torch.equal(logits(third), logits(model))


def test_layers_that_are_no_linear_ones(tmp_path):
    """Conv1D of transformers, and convolutions."""
    config = transformers.GPT2Config(n_embd=64, n_layer=1, n_head=2, vocab_size=50,
                                     bos_token_id=1, eos_token_id=2)  # fmt: skip
    gpt = built(transformers.GPT2LMHeadModel, config)
    sizes = {"embedding_size": 16, "hidden_sizes": [32, 32], "depths": [1, 1]}
    config = transformers.ResNetConfig(**sizes, layer_type="basic")
    resnet = built(transformers.ResNetModel, config)
    pixels = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    for number, (model, given) in enumerate(((gpt, TOKENS), (resnet, pixels))):
        packed = 0
        for name, module in list(model.named_modules()):
            if is_convertible(module) and name != "lm_head":
                matrix, perm = prune_weight(matrix_of(module), "2:4")
                weight = PackedWeight.from_dense(matrix, "2:4", perm)
                bias = None if module.bias is None else module.bias.detach()
                replace_module(model, module, pack_layer(module, weight, bias))
                packed += 1
        mark_pretrained(model)
        folder = tmp_path / str(number)
        model.save_pretrained(folder)
        other, info = type(model).from_pretrained(folder, output_loading_info=True)
        assert packed > 3 and not any(info.values()), info
        kinds = [type(one) for one in model.modules()]
        assert [type(one) for one in other.modules()] == kinds
        third = built(type(model), model.config, seed=1)
        assert len(load_into(third, folder, progress=False).packed) == packed
        with torch.no_grad():
            wanted = model(given)[0]
            assert torch.equal(other(given)[0], wanted)
            assert torch.equal(third(given)[0], wanted)


@pytest.mark.parametrize("elements", ["e4m3", "int8"])
def test_elements_of_eight_bits(tmp_path, elements):
    """With the scales of outputs, and inputs that are rounded, or not."""
    model = pack(llama(), "2:4", leave=("lm_head",))
    for at, name in enumerate(packed_layers(model)):
        layer = model.get_submodule(name)
        weight = layer.weight.detach().quantize(elements)
        made = NMLinear.from_packed(weight, layer.bias)
        made.activations = "same" if at % 3 else elements
        if at == 6:
            made.set_input_scale(0.5)
        replace_module(model, layer, made)
    mark_pretrained(model)
    model.save_pretrained(tmp_path / "m", max_shard_size="40KB")
    said = json.loads((tmp_path / "m" / "config.json").read_text())
    said = said["quantization_config"]
    assert said["weights"] == elements and said["scales"] == "output"
    assert isinstance(said["activations"], dict)
    other, info = AUTO.from_pretrained(tmp_path / "m", output_loading_info=True)
    assert not any(info.values()), info
    for name in packed_layers(model):
        one, two = model.get_submodule(name), other.get_submodule(name)
        assert two.elements == elements and two.activations == one.activations
        assert (one.input_scale is None) == (two.input_scale is None)
    assert torch.equal(logits(other), logits(model.eval()))
    # Others read the numbers that elements and scales stand for.
    third = llama(seed=1)
    assert len(load_into(third, tmp_path / "m", progress=False).packed) == 14
    for name in packed_layers(model):
        wanted = model.get_submodule(name).weight.dequantize().to_dense()
        assert torch.equal(third.get_submodule(name).weight.to_dense(), wanted)
    half = AUTO.from_pretrained(tmp_path / "m", dtype=torch.bfloat16)
    down = half.model.layers[1].mlp.down_proj
    assert down.elements == elements and down.weight.dtype == torch.bfloat16


def test_sparsified_models_are_saved(tmp_path):
    model = llama(tie_word_embeddings=True)
    from nm_sparse.torch import sparsify_

    sparsify_(model, NMSparseConfig("2:4", keep_slower=True))
    model.save_pretrained(tmp_path / "m")
    other = AUTO.from_pretrained(tmp_path / "m")
    assert len(packed_layers(other)) == 14
    assert other.lm_head.weight is other.model.embed_tokens.weight
    assert torch.equal(logits(other), logits(model))


def test_what_was_loaded_is_saved_again(saved, tmp_path):
    model, folder = saved
    other = AUTO.from_pretrained(folder)
    other.model.layers[0].mlp.up_proj = other.model.layers[0].mlp.up_proj.to_dense()
    other.save_pretrained(tmp_path / "again")
    third = AUTO.from_pretrained(tmp_path / "again")
    assert len(packed_layers(third)) == 13
    assert type(third.model.layers[0].mlp.up_proj) is nn.Linear
    assert torch.equal(logits(third), logits(model))
    assert third.config.quantization_config.sparse.provenance == {"method": "magnitude"}
    dense = third.dequantize()
    assert packed_layers(dense) == [] and torch.equal(logits(dense), logits(model))
    dense.save_pretrained(tmp_path / "dense")
    config = json.loads((tmp_path / "dense" / "config.json").read_text())
    assert "quantization_config" not in config
    assert type(AUTO.from_pretrained(tmp_path / "dense").lm_head) is nn.Linear


def test_a_state_dict_is_loaded_by_torch(saved, tmp_path):
    model, folder = saved
    folder, tensors, _ = copied(saved, tmp_path)
    other = pack(llama(seed=1), "2:4", leave=("lm_head", "model.layers.0.mlp.up_proj"))
    up = NMLinear(64, 128, "8:16", bias=False)
    other.model.layers[0].mlp.up_proj = up
    missing, unexpected = other.load_state_dict(tensors, strict=True)
    assert not missing and not unexpected
    assert torch.equal(logits(other), logits(model))


def test_layers_that_are_kept_on_disk(saved, tmp_path):
    pytest.importorskip("accelerate")
    model, folder = saved
    places = {"model.embed_tokens": "cpu", "model.rotary_emb": "cpu",
              "model.layers.0": "cpu", "model.layers.1": "disk", "model.norm": "cpu",
              "lm_head": "disk"}  # fmt: skip
    other = AUTO.from_pretrained(
        folder, device_map=places, offload_folder=tmp_path / "offloaded"
    )
    # Those that stay are packed layers, with hooks of accelerate.
    assert len(packed_layers(other)) == 7
    assert all(
        hasattr(other.get_submodule(n), "_hf_hook") for n in packed_layers(other)
    )
    parts = other.model.layers[1].mlp.down_proj
    assert parts.is_offloaded and "encoding='2:4'" in repr(parts)
    assert torch.equal(logits(other), logits(model))
    assert parts.is_offloaded
    other.save_pretrained(tmp_path / "again")
    assert torch.equal(logits(AUTO.from_pretrained(tmp_path / "again")), logits(model))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("places", ["auto", "two", "offloaded"])
def test_on_gpus(saved, tmp_path, places):
    """On all GPUs, block by block on two, and with a block on the CPU between calls."""
    pytest.importorskip("accelerate")
    model, folder = saved
    second = {"two": 1, "offloaded": "cpu"}.get(places)
    if second == 1 and torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    parts = ("model.embed_tokens", "model.rotary_emb", "model.layers.0")
    rest = ("model.layers.1", "model.norm", "lm_head")
    device_map = {**dict.fromkeys(parts, 0), **dict.fromkeys(rest, second)}
    other = AUTO.from_pretrained(
        folder, dtype=torch.float16,
        device_map="auto" if places == "auto" else device_map,
    )  # fmt: skip
    assert other.model.layers[0].mlp.up_proj.weight.is_cuda
    wanted, found = logits(model), logits(other, TOKENS.cuda()).float().cpu()
    torch.testing.assert_close(found, wanted, rtol=0.02, atol=0.02)


def test_marks(tmp_path):
    plain = nn.Sequential(nn.Linear(8, 8))
    mark_pretrained(plain)
    assert not hasattr(plain, "hf_quantizer")
    model = llama()
    mark_pretrained(model)  # in which nothing is packed
    assert getattr(model, "hf_quantizer", None) is None
    holder = nn.ModuleDict({"inner": pack(model)})
    mark_pretrained(holder, {"a": "1"})
    mark_pretrained(holder, {"b": "2"})
    assert model.hf_quantizer.quantization_config.sparse.provenance == {
        "a": "1", "b": "2",
    }  # fmt: skip
    assert model.hf_quantizer.is_trainable and model.hf_quantizer.is_compileable
    model.save_pretrained(tmp_path / "m")
    assert len(packed_layers(AUTO.from_pretrained(tmp_path / "m"))) == 15

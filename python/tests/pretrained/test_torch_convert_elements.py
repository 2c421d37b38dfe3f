# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints are converted to packed layers of 8 bits: those of `sparsify_`."""

import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pretrained_cases import built, llama, logits, packed_layers  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import CheckpointError, EncodingError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    NMSparseConfig,
    convert_pretrained,
    load_into,
    sparsify_,
)

AUTO = transformers.AutoModelForCausalLM
ELEMENTS = {"e4m3": torch.float8_e4m3fn, "int8": torch.int8}
# Windows and panels that are cut, and rows that are no multiple of anything.
RAGGED = dict(hidden_size=72, intermediate_size=102, vocab_size=157)


def components(model):
    """Of all packed layers, by name."""
    return {
        name: (layer.activations, layer.weight.dtype, layer.weight.components)
        for name in packed_layers(model)
        if (layer := model.get_submodule(name))
    }


def assert_same(found, wanted):
    """Layers that are equal to the bit."""
    found, wanted = components(found), components(wanted)
    assert found.keys() == wanted.keys() and found
    for name, (*own, parts) in wanted.items():
        assert list(found[name][:2]) == own, name
        assert found[name][2].keys() == parts.keys()
        for part, tensor in parts.items():
            other = found[name][2][part]
            assert other.dtype == tensor.dtype and other.shape == tensor.shape
            assert torch.equal(_bits(other), _bits(tensor)), (name, part)


def _bits(tensor):
    return tensor.detach().contiguous().view(torch.uint8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("activations", ["same", None])
@pytest.mark.parametrize("scales", ["output", "tensor"])
@pytest.mark.parametrize("weights", list(ELEMENTS))
def test_layers_are_those_of_sparsify(tmp_path, weights, scales, activations, dtype):
    llama(**RAGGED).to(dtype).save_pretrained(tmp_path / "m", max_shard_size="80KB")
    model = AUTO.from_pretrained(tmp_path / "m")
    report = convert_pretrained(
        tmp_path / "m", tmp_path / "out", "2:4", weights=weights, scales=scales,
        activations=activations, shard_bytes=50_000, progress=False,
    )  # fmt: skip
    config = NMSparseConfig("2:4", weights=weights, scales=scales, keep_slower=True,
                            activations=activations or weights)  # fmt: skip
    rows = {row.name: row for row in sparsify_(model, config).rows}
    other, info = AUTO.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(info.values()), info
    assert_same(other, model)
    assert torch.equal(logits(other), logits(model))
    for one in report.packed:
        row = rows[one.name[: -len(".weight")]]
        assert one.elements == weights and one.bytes_after > row.packed_bytes
        assert one.kept == pytest.approx(row.kept_magnitude, rel=1e-5)
        assert one.rounding == pytest.approx(row.rounding, rel=1e-4)
    said = json.loads((tmp_path / "out" / "config.json").read_text())
    said = said["quantization_config"]
    assert (said["weights"], said["scales"]) == (weights, "output")
    assert said["activations"] == (None if activations else weights)
    other.save_pretrained(tmp_path / "again")
    third = AUTO.from_pretrained(tmp_path / "again")
    assert_same(third, model)
    again = json.loads((tmp_path / "again" / "config.json").read_text())
    assert again["quantization_config"] == said


@pytest.mark.parametrize("scales", ["output", "tensor"])
@pytest.mark.parametrize("encoding", [
    "8:32, block = [1, 16]", "[4:8, block = [1, 16]], [2:4]", "1:300",
    "2:4, block = [2, 3]", "2:4, order = shuffled",
    "8:32, block = [1, 16], order = shuffled",
])  # fmt: skip
def test_other_patterns(tmp_path, encoding, scales):
    """Rounding is that of the packed weight, whatever its pattern."""
    llama(**RAGGED).save_pretrained(tmp_path / "m")
    own = {"encoding": encoding, "progress": False}
    if encoding == "1:300":  # of few layers, for positions of 16 bits
        model = llama(hidden_size=32, intermediate_size=400, num_hidden_layers=1)
        model.save_pretrained(tmp_path / "m")
        own = {"layers": {"*.down_proj": encoding}, "progress": False}
    convert_pretrained(tmp_path / "m", tmp_path / "wide", **own)
    convert_pretrained(tmp_path / "m", tmp_path / "out", **own, weights="e4m3",
                       scales=scales)  # fmt: skip
    wide = AUTO.from_pretrained(tmp_path / "wide")
    found = AUTO.from_pretrained(tmp_path / "out")
    assert packed_layers(found) == packed_layers(wide) != []
    for name in packed_layers(wide):
        weight = wide.get_submodule(name).weight.detach().quantize("e4m3", scales)
        other = found.get_submodule(name).weight
        other.validate()
        for part, tensor in weight.components.items():
            assert torch.equal(_bits(other.components[part]), _bits(tensor)), name


def test_layers_that_are_not_packed_keep_their_type(tmp_path):
    """Those of a GPT-2 are Conv1D, all but its head."""
    config = transformers.GPT2Config(
        n_embd=36, n_layer=1, n_head=2, vocab_size=51, bos_token_id=1, eos_token_id=2,
        tie_word_embeddings=False,
    )  # fmt: skip
    model = built(transformers.GPT2LMHeadModel, config)
    model.save_pretrained(tmp_path / "m")
    report = convert_pretrained(tmp_path / "m", tmp_path / "out", "2:4", weights="int8")
    assert [one.name for one in report.packed] == ["lm_head.weight"]
    reasons = {one.name: one.reason for one in report.outcomes}
    assert "Conv1D" in reasons["transformer.h.0.attn.c_attn.weight"]
    head = NMSparseConfig("2:4", weights="int8", activations="int8", keep_slower=True)
    sparsify_(model, {"lm_head": head})
    other = AUTO.from_pretrained(tmp_path / "out")
    assert_same(other, model)
    assert torch.equal(logits(other), logits(model))


def test_conv1d_of_sparsify_is_converted_on(tmp_path):
    """What is packed with 16 bits or more gets elements, and keeps them then."""
    config = transformers.GPT2Config(n_embd=36, n_layer=1, n_head=2, vocab_size=51,
                                     bos_token_id=1, eos_token_id=2)  # fmt: skip
    model = built(transformers.GPT2LMHeadModel, config)
    sparsify_(model, NMSparseConfig("2:4", keep_slower=True))
    model.save_pretrained(tmp_path / "m")
    kind = transformers.GPT2LMHeadModel
    wanted = built(kind, config)
    own = dict(weights="e4m3", activations="e4m3", keep_slower=True)
    sparsify_(wanted, NMSparseConfig("2:4", **own))
    report = convert_pretrained(tmp_path / "m", tmp_path / "out", "2:4",
                                weights="e4m3", progress=False)  # fmt: skip
    assert len(report.packed) == 4 and report.rounding > 0
    other = kind.from_pretrained(tmp_path / "out")
    assert_same(other, wanted)
    assert torch.equal(logits(other), logits(wanted))
    message = r"'\*.c_proj'\] leaves transformer.h.0.*, and its layer is a Conv1D"
    with pytest.raises(CheckpointError, match=message):
        convert_pretrained(tmp_path / "m", tmp_path / "no", "2:4", {"*.c_proj": None})


def quantized(folder, kind, scale, is_pruned=True):
    """The folder of a Llama as compressed-tensors saves it, and its tensors."""
    model = llama(**RAGGED)
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    for name in [n for n in tensors if n.endswith("_proj.weight")]:
        weight = tensors[name]
        if is_pruned:
            weight[:, ::4] = weight[:, 3::4] = 0
        dim = 1 if scale == "output" else None
        most = 127 if kind == "int8" else 448
        step = weight.abs().amax(dim=dim, keepdim=True) / most
        codes = weight / step
        codes = codes.round() if kind == "int8" else codes
        tensors[name] = codes.to(ELEMENTS[kind])
        # Few bits make other elements of another scale.
        tensors[f"{name}_scale"] = step.reshape(-1, 1).bfloat16()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "compressed-tensors",
                                     "format": "float-quantized"}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return tensors


@pytest.mark.parametrize("scale, asked, is_kept", [
    ("output", "output", True), ("tensor", "output", True), ("tensor", "tensor", True),
    ("output", "tensor", False),
])  # fmt: skip
@pytest.mark.parametrize("kind", list(ELEMENTS))
def test_elements_that_are_there_are_kept(tmp_path, kind, scale, asked, is_kept):
    tensors = quantized(tmp_path / "m", kind, scale)
    report = convert_pretrained(
        tmp_path / "m", tmp_path / "out", "2:4", {"lm_head": None}, prune="none",
        weights=kind, scales=asked, progress=False,
    )  # fmt: skip
    assert len(report.packed) == 14
    assert all((one.rounding == 0) == is_kept for one in report.packed)
    other = AUTO.from_pretrained(tmp_path / "out")
    for name in packed_layers(other):
        weight = other.get_submodule(name).weight
        codes = tensors[f"{name}.weight"].float()
        step = tensors[f"{name}.weight_scale"].float().flatten().expand(len(codes))
        if is_kept:
            assert torch.equal(weight.components["scale"], step)
            elements = weight.with_components({"scale": torch.ones(len(codes))})
            assert torch.equal(elements.to_dense(), codes)
        else:
            assert len(weight.components["scale"].unique()) == 1
        off = weight.to_dense() - codes * step[:, None]
        assert off.norm() <= (0 if is_kept else 0.04) * (codes * step[:, None]).norm()


def test_elements_of_others_are_rounded_anew(tmp_path):
    """Of another type, and of weights that are pruned."""
    for folder, weights, options in (("a", "int8", {"prune": "none"}),
                                     ("b", "e4m3", {})):  # fmt: skip
        own = tmp_path / folder
        quantized(own, "e4m3", "output", is_pruned=folder == "a")
        convert_pretrained(own, tmp_path / f"{folder}-dense", layers={"lm_head": "2:4"})
        dense = AUTO.from_pretrained(tmp_path / f"{folder}-dense")
        dense = dense.dequantize()
        dense.lm_head = llama(**RAGGED).lm_head
        report = convert_pretrained(own, tmp_path / f"{folder}-out", "2:4",
                                    {"lm_head": None}, weights=weights,
                                    **options)  # fmt: skip
        assert len(report.packed) == 14
        assert all(one.rounding > 0 for one in report.packed) == (folder == "a")
        config = NMSparseConfig("2:4", weights=weights, activations=weights,
                                keep_slower=True)  # fmt: skip
        sparsify_(dense, {"lm_head": None, "*": config})
        other = AUTO.from_pretrained(tmp_path / f"{folder}-out")
        assert_same(other, dense)


def test_packed_checkpoints_are_converted_again(tmp_path):
    model = llama(**RAGGED)
    model.save_pretrained(tmp_path / "m")
    own = dict(weights="e4m3", progress=False)
    texts = {"method": "by hand"}
    convert_pretrained(tmp_path / "m", tmp_path / "a", "2:4", {"lm_head": None}, **own,
                       provenance=texts)  # fmt: skip
    first = AUTO.from_pretrained(tmp_path / "a")
    first.model.layers[0].mlp.up_proj.set_input_scale(0.5)
    first.save_pretrained(tmp_path / "b")
    # The same, with all that is there.
    report = convert_pretrained(tmp_path / "b", tmp_path / "c", "2:4",
                                {"lm_head": None}, **own)  # fmt: skip
    assert all(one.was_packed and one.rounding == 0 for one in report.packed)
    second = AUTO.from_pretrained(tmp_path / "c")
    assert_same(second, first)
    assert float(second.model.layers[0].mlp.up_proj.input_scale) == 0.5
    assert torch.equal(logits(second), logits(first))
    # Without --weights, and as other elements.
    convert_pretrained(tmp_path / "b", tmp_path / "d", "2:4", {"lm_head": None})
    wide = AUTO.from_pretrained(tmp_path / "d")
    convert_pretrained(tmp_path / "b", tmp_path / "e", "2:4", {"lm_head": None},
                       weights="int8", scales="tensor", activations="same")  # fmt: skip
    narrow = AUTO.from_pretrained(tmp_path / "e")
    for name in packed_layers(first):
        weight = first.get_submodule(name).weight.detach().dequantize()
        dense = weight.to_dense()
        assert torch.equal(wide.get_submodule(name).weight.to_dense(), dense)
        wanted = weight.quantize("int8", "tensor").components
        found = narrow.get_submodule(name).weight.components
        assert all(torch.equal(found[part], wanted[part]) for part in wanted)
        assert narrow.get_submodule(name).input_scale is None
    # A layer may become dense again.
    convert_pretrained(tmp_path / "b", tmp_path / "f", "2:4",
                       {"lm_head": None, "*.up_proj": None}, **own)  # fmt: skip
    mixed = AUTO.from_pretrained(tmp_path / "f")
    up = mixed.model.layers[1].mlp.up_proj
    assert type(up) is nn.Linear and len(packed_layers(mixed)) == 12
    dense = first.model.layers[1].mlp.up_proj.weight.to_dense()
    assert torch.equal(up.weight, dense)
    with pytest.raises(CheckpointError, match="_proj is packed already, as 2:4, and 8"):
        convert_pretrained(tmp_path / "b", tmp_path / "no", "8:16", {"lm_head": None})
    config = json.loads((tmp_path / "b" / "config.json").read_text())
    config["quantization_config"]["version"] = 9
    (tmp_path / "b" / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="this nm_sparse reads up to 1; install"):
        convert_pretrained(tmp_path / "b", tmp_path / "no", "2:4")
    assert not (tmp_path / "no").exists()


def test_others_read_the_numbers(tmp_path):
    llama(**RAGGED).save_pretrained(tmp_path / "m")
    convert_pretrained(tmp_path / "m", tmp_path / "out", "2:4", weights="e4m3")
    found = AUTO.from_pretrained(tmp_path / "out")
    other = llama(seed=1, **RAGGED)
    report = load_into(other, tmp_path / "out", progress=False)
    assert sorted(report.packed) == sorted(packed_layers(found))
    for name in packed_layers(found):
        layer = other.get_submodule(name)
        wanted = found.get_submodule(name).weight.to_dense()
        assert layer.elements is None and torch.equal(layer.weight.to_dense(), wanted)


@pytest.mark.parametrize("options, message", [
    ({"weights": "e5m2"}, "weights is 'e5m2': legal is 'e4m3', 'int8', None"),
    ({"weights": "e4m3", "activations": "int8"},
     "activations is 'int8', and weights 'e4m3': legal is 'same' or 'e4m3'"),
    ({"activations": "e4m3"}, "activations is 'e4m3', and weights None: legal is 'sa"),
    ({"scales": "tensor"}, "scales is 'tensor', and weights None: legal is weights 'e"),
    ({"weights": "int8", "scales": "row"}, "scales is 'row': legal is 'output', 'ten"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_first(tmp_path, options, message):
    with pytest.raises(EncodingError, match=message):
        convert_pretrained(tmp_path / "m", tmp_path / "out", "2:4", **options)
    assert not list(tmp_path.iterdir())

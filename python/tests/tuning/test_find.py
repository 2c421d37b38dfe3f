# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What there is to tune in models, checkpoints and programs, and that compilations look
up what was tuned."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from candidate_schedules import list_products, other_schedules, storage_options

import nm_sparse as nm
from nm_sparse.bindings import library as native
from nm_sparse.files.sparse_config import NARROW, SparseConfig
from nm_sparse.files.tensor_file import write_tensors
from nm_sparse.gated_mlp import gated_mlp_mlir
from nm_sparse.layers.conv_text import conv2d_mlir
from nm_sparse.runtime.program import compile

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not native.available(), reason="no library of the compiler"
)
from safetensors.torch import save_file  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse.torch import GatedMLP, HalvedMLP, NMConv2d, NMLinear  # noqa: E402
from nm_sparse.torch.layers.kernels import LinearKernels  # noqa: E402
from nm_sparse.torch.layers.shared_kernels import SharedKernels  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PANELS = "8:32, block = [1, 64]"
TWO_FOUR = "#nm_sparse.encoding<2:4, dim = 1>"


def packed(inputs, outputs, encoding=PANELS, bias=False, dtype=torch.float16, **more):
    return NMLinear(inputs, outputs, encoding, bias=bias, dtype=dtype, **more)


def pruned(layer, encoding):
    """The dense layer with a weight of a pattern."""
    weight = layer.weight.detach()
    matrix = weight.permute(0, 2, 3, 1).flatten(1) if weight.ndim == 4 else weight
    kept = nm.prune(matrix, nm.Encoding(encoding, dim=1))
    if weight.ndim == 4:
        n, c, rows, columns = weight.shape
        kept = kept.reshape(n, rows, columns, c).permute(0, 3, 1, 2)
    layer.weight.data = kept.contiguous()
    return layer


def names(tunable):
    """Those of each product for the first of its numbers of tokens."""
    return list(dict.fromkeys(product.names for product in tunable.products))


def schedules(program):
    assert "ignores" not in program.warnings
    return [one["schedule"] for one in program.manifest["products"]]


def test_layers_that_are_alike_are_one():
    model = nn.Sequential(
        packed(256, 128, bias=True, activation="gelu"),
        packed(256, 128),
        packed(256, 128, dtype=torch.bfloat16),
        packed(256, 128, "2:4"),
        packed(128, 256),
        nn.ReLU(),
    )
    found = nm.find_tunable(model, [1, 64], "h200")
    assert names(found) == [("0", "1"), ("2",), ("3",), ("4",)]
    assert not found.skipped and len(found.products) == 8
    first = found.products[0]
    assert (first.dtype, first.outputs, first.inputs) == ("f16", 128, 256)
    assert first.encoding == nm.Encoding(PANELS, dim=1).mlir()
    assert [product.tokens for product in found.products] == [1, 64] * 4


@pytest.mark.parametrize(
    "layer",
    [
        packed(256, 128, bias=True, activation="gelu"),
        pytest.param(
            packed(256, 512, "2:4", dtype=torch.float32), marks=pytest.mark.slow
        ),
        packed(256, 512, "2:4", bias=True, elements="e4m3"),
    ],
    ids=["activation", "f32", "scaled"],
)
def test_what_is_tuned_of_a_layer_is_what_it_looks_up(layer, tmp_path, monkeypatch):
    monkeypatch.setenv("NM_SPARSE_CACHE", "off")
    own = nm.find_tunable(nn.Sequential(layer), [], "h200").products
    spec, has_bias = layer.linear_spec.canonical, layer.bias is not None
    (first, *_) = own
    text = nm.LinearSpec(
        first.encoding, first.outputs, first.inputs, first.dtype
    ).mlir()
    taken = other_schedules(own, text, tmp_path / "a.jsonl")
    before = schedules(LinearKernels(spec, has_bias, "sm_90a", "h200").program)
    monkeypatch.setenv("NM_SPARSE_TUNED", str(tmp_path / "a.jsonl"))
    usual = LinearKernels(spec, has_bias, "sm_90a", "h200")
    after = schedules(usual.program)
    by_tokens = {product.tokens: one for product, one in zip(own, taken)}
    functions = [one["function"] for one in usual.program.manifest["products"]]
    assert after != before and len(functions) > 1
    assert after == [by_tokens[int(name.rpartition("_")[2])] for name in functions]
    # In graphs kernels for one number of tokens read the weight as those for any do.
    (one,) = nm.find_tunable(nn.Sequential(layer), [1], "h200").products
    (schedule,) = other_schedules([one], text, tmp_path / "b.jsonl")
    monkeypatch.setenv("NM_SPARSE_TUNED", str(tmp_path / "b.jsonl"))
    exact = LinearKernels(
        replace(spec, tokens=1), has_bias, "sm_90a", "h200", usual.storage
    )
    assert schedules(exact.program) == [schedule] and exact.key == usual.key


def test_layers_look_up_what_was_tuned_without_bias_and_activation(tmp_path):
    specs = [
        nm.LinearSpec(TWO_FOUR, 32, 64, "f16", bias=bias, activation=activation)
        for bias in (True, False)
        for activation in ("gelu", "none")
    ]
    found = nm.find_tunable(specs, [3], "h200")
    path = tmp_path / "a.jsonl"
    (schedule,) = other_schedules(found.products, specs[-1].mlir(), path)
    for spec in specs:
        assert schedules(compile(spec, gpu="h200", tokens=[3], tuned=path)) == [
            schedule
        ]
        assert schedules(compile(spec, gpu="h200", tokens=[3], tuned=[])) != [schedule]


def test_operators_of_several_layers_are_tuned_as_they_are_compiled(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("NM_SPARSE_CACHE", "off")
    gate = [packed(128, 256) for _ in range(2)]
    down = packed(256, 128)
    mlp = GatedMLP(*gate, down)
    model = nn.ModuleDict({"mlp": mlp, "other": GatedMLP(*gate, down)})
    found = nm.find_tunable(model, [], "h200")
    assert not found.skipped
    assert {name for one in found.products for name in one.names} == {
        "mlp @mlp",
        "other @mlp",
    }
    assert mlp.is_whole()
    one = gate[0].linear_spec.canonical
    text = gated_mlp_mlir(128, 256, one.encoding.mlir(), down=one.encoding.mlir(),
                          name="mlp")  # fmt: skip
    other_schedules(found.products, text, tmp_path / "a.jsonl")
    monkeypatch.setenv("NM_SPARSE_TUNED", str(tmp_path / "a.jsonl"))
    kernels = SharedKernels(text, (one, one, one), (128,), "sm_90a", "h200")
    known = {
        (e["inputs"], e["tokens"], e["read_bytes"]): e["schedule"]
        for e in map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    }
    # Of those for any number of tokens some do without a kernel of their own.
    chosen = set(schedules(kernels.program))
    assert len(chosen) > 1 and chosen <= set(known.values())
    (storage,) = {product.storage for product in found.products}
    options = storage_options(storage)
    every = set()
    for count in {tokens for _, tokens, _ in known}:
        alone = compile(text, gpu="h200", tokens=[count], options=options)
        every |= set(schedules(alone))
    assert every == set(known.values())
    # Those of one layer with both, and those that cannot be one operator.
    halved = HalvedMLP(packed(128, 512), packed(256, 128))
    found = nm.find_tunable(nn.ModuleDict({"a": halved}), [64], "h200")
    assert names(found) == [("a.down_proj",), ("a @gated_mlp",)]
    apart = GatedMLP(packed(128, 256, bias=True), packed(128, 256), packed(256, 128))
    found = nm.find_tunable(nn.ModuleDict({"a": apart}), [64], "h200")
    assert names(found) == [("a.gate_proj", "a.up_proj"), ("a.down_proj",)]


def test_dense_layers_have_the_pattern_of_their_zeros():
    torch.manual_seed(0)
    shared = nn.Linear(64, 64).half()
    model = nn.Sequential(
        pruned(nn.Linear(256, 128).half(), PANELS),
        pruned(nn.Linear(256, 128).half(), "2:4"),
        nn.Linear(256, 128).half(),
        pruned(nn.Linear(256, 128).double(), "2:4"),
        nn.ModuleList([shared, nn.Linear(64, 64).half()]),
        nn.Embedding(10, 256),
    )
    model[4][1].weight = shared.weight
    found = nm.find_tunable(model, [16], "h200")
    assert names(found) == [("0",), ("1",)]
    assert found.products[0].encoding == nm.Encoding(PANELS, dim=1).mlir()
    assert found.products[1].encoding == TWO_FOUR
    assert "has no pattern: prune it" in found.skipped["2"]
    assert found.skipped["3"] == "its type is f64: legal is f16, bf16, f32"
    assert "4.0" in found.skipped and "4.1" in found.skipped
    assert "not tuned: 2: its weight has no pattern" in str(found)
    # With an encoding, zeros are not looked at.
    found = nm.find_tunable(model, [16], "h200", encoding="8:16")
    assert names(found) == [("0", "1", "2")]
    assert found.products[0].encoding == nm.Encoding("8:16", dim=1).mlir()


def test_convolutions_whose_program_is_a_linear_one():
    torch.manual_seed(0)
    conv = nn.Conv2d(64, 128, 1).half()
    model = nn.ModuleDict(
        {
            "pixel": NMConv2d.from_dense(conv, PANELS, activation="relu"),
            "dense": pruned(nn.Conv2d(64, 128, 1).half(), PANELS),
            "window": NMConv2d.from_dense(nn.Conv2d(64, 128, 3).half(), PANELS),
            "copied": NMConv2d.from_dense(nn.Conv2d(6, 128, 3).half(), "3:6"),
        }
    )
    found = nm.find_tunable(model, [196], "h200")
    assert names(found) == [("pixel", "dense"), ("copied",)]
    assert tuple(one.inputs for one in found.products) == (64, 54)
    assert list(found.skipped) == ["window"]
    assert "read images in place" in found.skipped["window"]


@pytest.mark.parametrize("encoding", ["2:4", "4:16, block = [1, 128]"])
@pytest.mark.parametrize("elements, name", [("e4m3", "e4m3"), ("int8", "i8")])
def test_layers_with_inputs_of_8_bits_look_up_what_was_tuned(
    encoding, elements, name, tmp_path, monkeypatch
):
    monkeypatch.setenv("NM_SPARSE_CACHE", "off")
    kinds = dict(elements=elements, activations=elements)
    layer = packed(512, 256, encoding, bias=True, activation="relu", **kinds)
    found = nm.find_tunable(nn.Sequential(layer), [64], "h200")
    (product,) = found.products
    assert not found.skipped and product.dtype == name
    pattern, dtype = layer.encoding.mlir(), NARROW[elements]
    own = dict(bias=True, activation="relu", result="f16")
    spec = nm.LinearSpec(pattern, 256, 512, dtype, **own)
    path = tmp_path / "a.jsonl"
    (schedule,) = other_schedules([product], spec.mlir(), path)
    # Programs for x^T, and those whose x has one scale, have the same problem.
    for more in (dict(), dict(feature_major=True), dict(x_scale="tensor")):
        text = replace(spec, **more).mlir()
        listed = list_products(text, [64], storage_options(product.storage))
        has_own = product.problem["x"] == "feature-major" or "feature_major" not in more
        assert has_own == (listed[0]["tuning"].items() >= product.problem.items())
        if has_own:
            options = dict(gpu="h200", tokens=[64], tuned=path)
            assert schedules(compile(text, **options)) == [schedule]


def test_mlps_with_inputs_of_8_bits_are_tuned_as_their_program_has_them():
    kinds = dict(elements="e4m3", activations="e4m3")
    wide = "4:16, block = [1, 128]"
    gate = [packed(256, 512, wide, **kinds) for _ in range(2)]
    down = packed(512, 256, wide, **kinds)
    found = nm.find_tunable(nn.ModuleDict({"a": GatedMLP(*gate, down)}), [64], "h200")
    assert not found.skipped
    assert {name for one in found.products for name in one.names} == {
        "a @gated_mlp",
        "a.down_proj",
    }
    # Eager calls of both halves are those of one layer.
    halved = HalvedMLP(packed(256, 1024, wide, **kinds), down)
    found = nm.find_tunable(nn.ModuleDict({"a": halved}), [64], "h200")
    assert {name for one in found.products for name in one.names} == {
        "a @gated_mlp",
        "a.gate_up_proj",
        "a.down_proj",
    }


@pytest.fixture
def checkpoint(tmp_path):
    """Weights that are packed, pruned, dense, and those of no layer."""
    draw = np.random.default_rng(0).standard_normal
    panels, two_four = (nm.Encoding(e, dim=1) for e in (PANELS, "2:4"))
    weight = nm.prune(draw((128, 256)).astype(np.float16), panels)
    turned = nm.prune(draw((256, 128)).astype(np.float16), nm.Encoding("2:4", dim=0))
    nm.write_packed(
        tmp_path / "packed.safetensors",
        {
            "a.weight": nm.encode(weight, panels),
            "turned.weight": nm.encode(turned, nm.Encoding("2:4", dim=0)),
        },
    )
    sparse = nm.prune(draw((128, 256)).astype(np.float16), two_four)
    tensors = {
        "b.weight": ("F16", weight),
        "b.bias": ("F16", draw(128).astype(np.float16)),
        "c.weight": ("F16", sparse),
        "dense.weight": ("F16", draw((128, 256)).astype(np.float16)),
        "narrow.weight": ("I8", np.ones((128, 256), np.int8)),
        "embed.weight": ("F16", sparse),
        "norm.weight": ("F16", draw(128).astype(np.float16)),
    }
    write_tensors(tmp_path / "dense.safetensors", tensors, {})
    return tmp_path


def test_checkpoints(checkpoint, tmp_path):
    found = nm.find_tunable(checkpoint / "packed.safetensors", [1], "h200")
    assert names(found) == [("a",)] and list(found.skipped) == ["turned.weight"]
    path = checkpoint / "dense.safetensors"
    found = nm.find_tunable(str(path), [1], "h200")
    assert names(found) == [("b",), ("c",)]
    assert set(found.skipped) == {"dense.weight", "narrow.weight", "embed.weight"}
    assert "--encoding" in found.skipped["dense.weight"]
    assert found.skipped["narrow.weight"].startswith("its type is i8")
    assert found == nm.find_tunable(nm.Checkpoint(path), [1], "h200")
    found = nm.find_tunable(path, [1], "h200", encoding="8:16")
    assert names(found) == [("b", "c", "dense")]
    # An index of several, and the folder of a model.
    folder = tmp_path / "model"
    folder.mkdir()
    (checkpoint / "dense.safetensors").rename(folder / "model.safetensors")
    assert names(nm.find_tunable(folder, [1], "h200")) == [("b",), ("c",)]
    (tmp_path / "empty").mkdir()
    with pytest.raises(nm.CheckpointError):
        nm.find_tunable(tmp_path / "empty", [1], "h200")


@pytest.mark.parametrize("activations, name", [("e4m3", "e4m3"), (None, "bf16")])
def test_packed_checkpoints_of_8_bits(tmp_path, activations, name):
    wide = "4:16, block = [1, 128]"
    kinds = dict(dtype=torch.bfloat16, elements="e4m3", activations="e4m3")
    model = nn.ModuleDict({"a": packed(512, 256, wide, **kinds)})
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    config = SparseConfig(
        nm.Encoding(wide, dim=1),
        weights="e4m3",
        activations=activations,
        scales="output",
    )
    said = {"dtype": "bfloat16", "quantization_config": config.to_dict()}
    (tmp_path / "config.json").write_text(json.dumps(said))
    (product,) = nm.find_tunable(tmp_path, [64], "h200").products
    # Where inputs are not rounded, kernels read products of elements and scales.
    assert (product.names, product.dtype) == (("a",), name)
    assert product.problem["written_bytes"] == 2


def test_what_is_tuned_of_a_program_is_what_it_looks_up(tmp_path, monkeypatch):
    monkeypatch.setenv("NM_SPARSE_CACHE", "off")
    path = EXAMPLES / "mlp.mlir"
    text = path.read_text()
    found = nm.find_tunable(path, [8, 2048], "h200")
    assert found == nm.find_tunable(text, [8, 2048], "h200") and not found.skipped
    assert {product.names for product in found.products} == {("@mlp",)}
    taken = other_schedules(found.products, text, tmp_path / "a.jsonl")
    numbers = [product.tokens for product in found.products]
    for count in (8, 2048):
        options = dict(gpu="h200", tokens=[count])
        program = compile(text, tuned=tmp_path / "a.jsonl", **options)
        own = [one for one, number in zip(taken, numbers) if number == count]
        assert sorted(schedules(program)) == sorted(own)
        assert schedules(program) != schedules(compile(text, tuned=[], **options))


@pytest.mark.parametrize("name", ["linear", "linear_f32", "mlp", "pytorch_layout"])
def test_all_products_of_examples_are_found(name):
    found = nm.find_tunable(EXAMPLES / f"{name}.mlir", [], "h200")
    assert not found.skipped and len(found.products) >= 5


def test_products_that_are_not_found_are_named():
    text = conv2d_mlir((14, 14, 64), 128, (3, 3), TWO_FOUR, padding=(1, 1, 1, 1))
    found = nm.find_tunable(text, [196], "h200")
    assert not found.products
    ((name, reason),) = found.skipped.items()
    assert name == "@conv2d, 576 inputs, 128 outputs, 196 tokens"
    assert reason == "it is a convolution: legal are products of matrices"
    narrow = nm.LinearSpec(TWO_FOUR, 128, 256, "i8", result="f16").mlir()
    found = nm.find_tunable(narrow, [196], "h200")
    assert [one.dtype for one in found.products] == ["i8"] and not found.skipped
    with pytest.raises(nm.CompileError):
        nm.find_tunable("nonsense\n", [1], "h200")
    assert not nm.find_tunable("func.func @f() { return }", [1], "h200").products

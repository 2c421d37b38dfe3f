# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dense checkpoints of transformers are converted, and loaded by their names."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pretrained_cases import (  # noqa: E402
    TOKENS,
    built,
    configs,
    llama,
    logits,
    pack,
    packed_layers,
)
from safetensors.torch import load_file, save_file  # noqa: E402
from torch import nn  # noqa: E402

import nm_sparse  # noqa: E402
from nm_sparse import Checkpoint, CheckpointError, EncodingError  # noqa: E402
from nm_sparse.cli import main  # noqa: E402
from nm_sparse.torch.models.compressed import convert_checkpoint  # noqa: E402
from nm_sparse.torch.pretrained.convert import convert_pretrained  # noqa: E402

AUTO = transformers.AutoModelForCausalLM


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.mark.parametrize("name", list(configs()))
def test_architectures(tmp_path, name, capsys):
    kind, config = configs()[name]
    model = built(kind, config)
    model.save_pretrained(tmp_path / "m", max_shard_size="80KB")
    status = run("convert", tmp_path / "m", "--encoding", "2:4", "-o", tmp_path / "out",
                 "--shard-size", "100000", "--json")  # fmt: skip
    assert status == 0
    report = json.loads(capsys.readouterr().out)
    assert report["is_known"] and len(report["files"]) > 1
    other, info = kind.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(info.values()), info
    pack(model)
    assert packed_layers(other) == packed_layers(model) != []
    assert torch.equal(logits(other), logits(model))
    reasons = {one["name"]: one["reason"] for one in report["outcomes"]}
    embedding = next(n for n in reasons if "word_embed" in n or "embed_" in n)
    assert ("embedding" if name not in ("tied", "bert") else "head") in reasons[
        embedding
    ]
    if name == "mixtral":
        expert = "model.layers.0.block_sparse_moe.experts.0.w1.weight"
        assert "joins it with other tensors as" in reasons[expert]


@pytest.mark.parametrize("layer, message", [
    ("model.embed_tokens", "cannot be packed: it is .*embedding"),
    ("lm_head", "decides about no layer: legal are patterns of the names of lin"),
    ("model.norm", "decides about no layer"),
])  # fmt: skip
def test_what_no_layer_could_be_is_refused_first(tmp_path, layer, message):
    llama(tie_word_embeddings=True).save_pretrained(tmp_path / "m")
    with pytest.raises(CheckpointError, match=message):
        convert_pretrained(tmp_path / "m", tmp_path / "out", "2:4", {layer: "2:4"})
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_conv1d_is_no_linear_layer(tmp_path):
    config = transformers.GPT2Config(n_embd=64, n_layer=1, n_head=2, vocab_size=50,
                                     bos_token_id=1, eos_token_id=2)  # fmt: skip
    built(transformers.GPT2LMHeadModel, config).save_pretrained(tmp_path / "m")
    with pytest.raises(CheckpointError, match="layer is a Conv1D, not an nn.Linear"):
        convert_pretrained(tmp_path / "m", tmp_path / "out", "2:4")


def test_patterns_types_and_texts(tmp_path):
    model = llama()
    model.generation_config.max_new_tokens = 7
    model.save_pretrained(tmp_path / "m")
    (tmp_path / "m" / "tokenizer.json").write_text("{}")
    report = convert_pretrained(
        tmp_path / "m", tmp_path / "out", "2:4",
        {"lm_head": None, "*.down_proj": "8:32, block = [1, 16]"},
        dtype=torch.bfloat16, provenance={"data": "none"},
    )  # fmt: skip
    assert len(report.packed) == 14
    other = AUTO.from_pretrained(tmp_path / "out")
    assert other.dtype == torch.bfloat16 and other.generation_config.max_new_tokens == 7
    assert type(other.lm_head) is nn.Linear
    down = other.model.layers[1].mlp.down_proj
    assert str(down.encoding) == "8:32, block = [1, 16], dim = 1"
    said = other.config.quantization_config.sparse
    assert said.weights == "bf16" and said.provenance == {"data": "none"}
    assert (tmp_path / "out" / "tokenizer.json").read_text() == "{}"
    for wrong in ({"dtype": torch.int8}, {"prune": "wanda"}):
        with pytest.raises(EncodingError, match=f"{next(iter(wrong))} is .*: legal is"):
            convert_pretrained(tmp_path / "m", tmp_path / "no", "2:4", **wrong)


def test_pruned_checkpoints_are_packed_as_they_are(tmp_path):
    model = pack(llama(), "2:4", leave=("lm_head",))
    dense = llama(seed=1)
    state = {
        f"{name}.weight": model.get_submodule(name).weight.to_dense().detach()
        for name in packed_layers(model)
    }
    dense.load_state_dict({**model.state_dict(), **state}, strict=False)
    dense.save_pretrained(tmp_path / "m", max_shard_size="60KB")
    done = convert_checkpoint(tmp_path / "m", tmp_path / "out", progress=False)
    assert len(done.packed) == 14 and done.left["lm_head.weight"] == "dense"
    other = AUTO.from_pretrained(tmp_path / "out")
    assert packed_layers(other) == packed_layers(model)
    assert torch.equal(logits(other), logits(dense))


@pytest.mark.parametrize("scale", ["tensor", "output"])
@pytest.mark.parametrize("kind", [torch.float8_e4m3fn, torch.int8])
def test_eight_bits_of_compressed_tensors(tmp_path, kind, scale):
    """Static scales of weights, dynamic or static ones of activations."""
    model = llama()
    model.save_pretrained(tmp_path / "dense")
    tensors = load_file(tmp_path / "dense" / "model.safetensors")
    wanted = dict(tensors)
    for name in [n for n in tensors if n.endswith("_proj.weight")]:
        pruned = pack_dense(tensors[name])
        dim = 1 if scale == "output" else None
        most = 448 if kind.is_floating_point else 127
        step = pruned.abs().amax(dim=dim, keepdim=True) / most
        codes = pruned / step
        codes = codes.to(kind) if kind.is_floating_point else codes.round().to(kind)
        tensors[name] = codes
        tensors[f"{name}_scale"] = step.reshape(-1, 1) if dim else step.reshape(1)
        tensors[name.replace("weight", "input_scale")] = torch.ones(1)
        wanted[name] = codes.float() * step
    config = json.loads((tmp_path / "dense" / "config.json").read_text())
    args = {"num_bits": 8, "type": "float", "strategy": scale, "dynamic": True}
    config["quantization_config"] = {
        "quant_method": "compressed-tensors", "format": "float-quantized",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": args}},
        "sparsity_config": {"format": "dense", "sparsity_structure": "2:4"},
    }  # fmt: skip
    (tmp_path / "m").mkdir()
    save_file(tensors, tmp_path / "m" / "model.safetensors", {"format": "pt"})
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    convert_pretrained(tmp_path / "m", tmp_path / "out", "2:4", {"lm_head": None},
                       prune="none", progress=False)  # fmt: skip
    model.load_state_dict(wanted)
    other = AUTO.from_pretrained(tmp_path / "out")
    assert len(packed_layers(other)) == 14
    assert torch.equal(logits(other), logits(model))


def pack_dense(weight):
    windows = weight.abs().reshape(-1, 4)
    keep = torch.zeros_like(windows, dtype=torch.bool)
    keep.scatter_(1, windows.topk(2, dim=1).indices, True)
    return torch.where(keep.reshape(weight.shape), weight, torch.zeros(()))


# Kills its process as soon as three files of tensors have their names. The run has no
# record of the third yet.
KILLED = """
import os, signal, sys
from nm_sparse.cli import main
files, rename = [], os.replace
def replace(source, target):
    rename(source, target)
    files.extend([target] * str(target).endswith(".safetensors"))
    if len(files) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
os.replace = replace
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on(tmp_path):
    model = llama(hidden_size=512, intermediate_size=1024, num_hidden_layers=4)
    model.save_pretrained(tmp_path / "m")
    arguments = ["convert", str(tmp_path / "m"), "-o", str(tmp_path / "out"),
                 "--encoding", "2:4", "--shard-size", "1MB", "--by-name",
                 "--json"]  # fmt: skip
    command = [sys.executable, "-m", "nm_sparse", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(nm_sparse.__file__).parents[1])}
    work = tmp_path / "out.unfinished"
    first = subprocess.run([sys.executable, "-c", KILLED, *arguments], env=environment)
    assert first.returncode == -signal.SIGKILL
    assert len(list(work.glob("*.safetensors"))) == 3
    assert not (tmp_path / "out").exists() and not (work / "config.json").exists()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["resumed"] >= 2
    assert not work.exists() and not list((tmp_path / "out").glob("*.part"))
    other = AUTO.from_pretrained(tmp_path / "out")
    assert torch.equal(logits(other, TOKENS), logits(pack(model), TOKENS))


def test_names_decide_where_no_model_is_known(tmp_path, capsys):
    llama().save_pretrained(tmp_path / "m")
    config = tmp_path / "m" / "config.json"
    said = json.loads(config.read_text())
    config.write_text(json.dumps({**said, "model_type": "of their own"}))
    assert (
        run("convert", tmp_path / "m", "--encoding", "2:4", "-o", tmp_path / "o") == 0
    )
    text = capsys.readouterr().out
    assert "names alone say which weights are those of linear layers" in text
    assert "dense: its name is that of an embedding" in text
    found = Checkpoint(tmp_path / "o")
    assert len(found.packed) == 15
    assert np.array_equal(found.tensor("model.norm.weight"), np.ones(64, np.float32))

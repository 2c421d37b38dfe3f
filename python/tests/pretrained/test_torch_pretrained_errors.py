# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What does not fit is named when a model is loaded by its name; and imports come in
any order."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pretrained_cases import copied, llama, logits, pack, write  # noqa: E402

import nm_sparse  # noqa: E402
from nm_sparse import CheckpointError  # noqa: E402
from nm_sparse.torch.pretrained import mark_pretrained  # noqa: E402

AUTO = transformers.AutoModelForCausalLM


def changed(name, value):
    def change(tensors, config):
        tensors[name] = value(tensors[name]) if value else tensors.pop(name)
        if value is None:
            del tensors[name]

    return change


def said(**fields):
    return lambda tensors, config: config["quantization_config"].update(fields)


DOWN = "model.layers.1.mlp.down_proj"


@pytest.mark.parametrize("change, message", [
    (changed(f"{DOWN}.index", None), f"{DOWN}.index is missing in the checkpoint"),
    (changed(f"{DOWN}.values", None), f"{DOWN}.values is missing in the checkpoint"),
    (changed(f"{DOWN}._extra_state", None), f"{DOWN}._extra_state is missing in the c"),
    (changed(f"{DOWN}.index", lambda x: x[:-1].clone()),
     f"{DOWN}.index has shape .*: legal is "),
    (changed(f"{DOWN}.index", lambda x: x + 3),
     f"{DOWN}: index of window 0, panel 0 is .* strictly increasing and below 4"),
    (said(version=9), "version is 9: this nm_sparse reads up to 1; install a newer"),
    (said(group_size=4), "group_size is there: legal is one of quant_method, version"),
    (said(weights="e4m3"), "scales is null: legal is 'output' for weights of e4m3"),
    (changed(f"{DOWN}.values", lambda x: x.to(torch.int8)),
     f"{DOWN}.scale is missing in the checkpoint"),
    (said(layers={"lm_head": None}), "up_proj is 8:16, and quantization_config .* 2:4"),
    (said(encoding=None, layers={}), "_proj is .*, and quantization_config .* dense"),
    (said(layers={"lm_head": "2:4", "model.layers.0.mlp.up_proj": "8:16"}),
     "lm_head.weight is dense, and quantization_config of config.json says 2:4"),
])  # fmt: skip
def test_what_does_not_fit_is_named(saved, tmp_path, change, message):
    folder, tensors, config = copied(saved, tmp_path)
    change(tensors, config)
    write(folder, tensors, config)
    with pytest.raises(CheckpointError, match=message):
        AUTO.from_pretrained(folder)


def test_a_bias_that_is_missing(tmp_path):
    model = pack(llama(attention_bias=True), "2:4", leave=("lm_head",))
    mark_pretrained(model)
    model.save_pretrained(tmp_path / "saved")
    folder, tensors, config = copied((model, tmp_path / "saved"), tmp_path)
    del tensors["model.layers.0.self_attn.q_proj.bias"]
    write(folder, tensors, config)
    with pytest.raises(CheckpointError, match="q_proj.bias is missing in the chec"):
        AUTO.from_pretrained(folder)


def test_models_that_have_no_place_for_it(saved, tmp_path):
    folder, tensors, config = copied(saved, tmp_path)
    write(folder, tensors, {**config, "tie_word_embeddings": True})
    tensors.pop("lm_head.weight")
    head = pack(llama(), "2:4").lm_head.state_dict()
    tensors.update({f"lm_head.{name}": part for name, part in head.items()})
    del config["quantization_config"]["layers"]["lm_head"]
    write(folder, tensors, {**config, "tie_word_embeddings": True})
    with pytest.raises(CheckpointError, match="lm_head is packed, and the model's co"):
        AUTO.from_pretrained(folder)
    with pytest.raises(ValueError, match="the checkpoint is dense: legal is one with"):
        dense = llama()
        dense.save_pretrained(tmp_path / "dense")
        registry = transformers.quantizers.auto.AUTO_QUANTIZATION_CONFIG_MAPPING
        asked = registry["nm_sparse"].from_dict(config["quantization_config"])
        AUTO.from_pretrained(tmp_path / "dense", quantization_config=asked)


def test_a_state_dict_that_lacks_a_tensor(saved):
    model, folder = saved
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    config = transformers.AutoConfig.from_pretrained(folder)
    kind = transformers.LlamaForCausalLM
    whole = kind.from_pretrained(None, config=config, state_dict=dict(state))
    assert torch.equal(logits(whole), logits(model))
    del state[f"{DOWN}.values"]
    with pytest.raises(CheckpointError, match=f"{DOWN}.values is missing in the chec"):
        kind.from_pretrained(None, config=config, state_dict=state)


IMPORTS = {
    "before": "import nm_sparse.torch\nassert 'transformers' not in sys.modules\n"
    "import transformers\n",
    "after": "import transformers.quantizers.auto\nimport nm_sparse.torch\n"
    "import transformers\n",
    "inside": "import nm_sparse.torch.pretrained.quantizer\nimport transformers\n",
    "between": "import transformers\nimport nm_sparse.torch\n",
    "twice": "import nm_sparse.torch\nfrom nm_sparse.torch.pretrained import register\n"
    "register()\nimport transformers\nregister()\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("order", list(IMPORTS))
def test_imports_in_any_order(saved, order):
    folder = saved[1]
    code = f"""
import sys
{IMPORTS[order]}
import inspect
from transformers.quantizers import auto
assert "register_quantizer" in inspect.getsource(auto)
model = transformers.AutoModelForCausalLM.from_pretrained({str(folder)!r})
assert type(model.model.layers[0].mlp.up_proj).__name__ == "NMLinear"
"""
    root = str(Path(nm_sparse.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr

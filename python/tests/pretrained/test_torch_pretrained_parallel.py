# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`from_pretrained` with `tp_plan`: each process loads its shards of packed layers."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("transformers.distributed.tensor_parallel")
if not torch.distributed.is_available():
    pytest.skip("torch has no torch.distributed", allow_module_level=True)

from parallel_cases import run_load, run_plans, save  # noqa: E402
from pretrained_cases import SIZES  # noqa: E402
from sharded_cases import spawn  # noqa: E402


def config(kind, **changes):
    """Class and config of a tiny model."""
    sizes = {**SIZES, "num_key_value_heads": 2, "vocab_size": 128, **changes}
    name = f"{kind}ForCausalLM"
    return getattr(transformers, name), getattr(transformers, f"{kind}Config")(**sizes)


@pytest.mark.slow
def test_shards_are_loaded_and_saved(tmp_path):
    """The results are those of the whole model, which is what is saved again."""
    tied = config("Llama", tie_word_embeddings=True)
    heads = config("Qwen2", num_key_value_heads=4)
    leave = ("lm_head", "model.layers.0.mlp.up_proj")
    shuffled = "8:16, block = [1, 16], order = shuffled"
    levels = "4:8 2:4, block = [1, 32]"
    spawn(
        run_load,
        save(tmp_path / "tied", *tied, "2:4", leave=leave, down=shuffled),
        # With bias, and a head that is packed.
        save(tmp_path / "qwen2", *heads, "8:32, block = [1, 32]", leave=()),
        # Outputs that are fused are gathered.
        save(tmp_path / "phi3", *config("Phi3", num_key_value_heads=4), levels),
    )


@pytest.mark.slow
def test_elements_of_eight_bits(tmp_path):
    folders = [
        save(tmp_path / name, *config("Llama"), "2:4", name)
        for name in ("e4m3", "int8")
    ]
    spawn(run_load, *folders)


@pytest.mark.slow
def test_plans(tmp_path):
    spawn(
        run_plans,
        save(tmp_path / "plain", *config("Llama"), "2:4"),
        # Three panels of keys and values.
        save(
            tmp_path / "panels",
            *config("Llama", hidden_size=192, num_attention_heads=4),
            "8:32, block = [1, 32]",
        ),
        save(
            tmp_path / "shuffled",
            *config("Llama"),
            "8:16, block = [1, 16], order = shuffled",
        ),
    )

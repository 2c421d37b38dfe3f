# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python examples of README.md and python/README.md work. Each runs in a process of
its own: they ask for the GPU, after which a process cannot use the emulator."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nm_sparse.bindings.library import available

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not available(), reason="the library is not built"),
]


def run(page, checks, folder, number=0):
    """What a block of Python of a page prints, with `checks` behind it."""
    text = (ROOT / page).read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) == (2 if page == "README.md" else 1)
    return execute(["-c", blocks[number] + checks], folder)


def execute(arguments, folder):
    """What Python prints, called so in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_quick_start(tmp_path):
    pytest.importorskip("torch")
    checks = """
assert report.converted == ["0", "2"]
assert all(one.speedup > 1 for row in report.rows for one in row.predictions)
assert y.shape == (4, 2048) and bool(torch.isfinite(y).all())
"""
    printed = run("README.md", checks, tmp_path)
    assert "2 of 2 layers are sparse" in printed


def test_a_model_that_is_loaded_by_its_name(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=1, vocab_size=100,
        num_attention_heads=2, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "MODEL")
    text = (ROOT / "README.md").read_text("utf-8")
    (command,) = re.findall(r"^python (-m nm_sparse convert .*)$", text, re.M)
    assert "7 of 9 matrices, are packed" in execute(command.split(), tmp_path)
    checks = """
layers = [type(module).__name__ for module in model.modules()]
assert layers.count("NMLinear") == 7 and type(model.lm_head).__name__ == "Linear"
again = AutoModelForCausalLM.from_pretrained("AGAIN")
assert [type(module).__name__ for module in again.modules()] == layers
"""
    printed = run("README.md", checks, tmp_path, 1)
    assert printed.startswith("NMLinear(in_features=64, ")


def test_example_of_the_package(tmp_path):
    checks = """
expected = packed.to_dense().astype(np.float64).sum(1)
assert np.abs(y - expected).max() < 1e-3 * np.abs(expected).max()
"""
    printed = run("python/README.md", checks, tmp_path)
    assert "predicted_us" in printed
    assert (tmp_path / "weight.safetensors").is_file()


def test_a_wrong_example_is_found(tmp_path):
    with pytest.raises(AssertionError, match="y is wrong"):
        run("python/README.md", "\nraise SystemExit('y is wrong')\n", tmp_path)

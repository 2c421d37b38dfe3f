# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A saved model that tests load."""

import pytest


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """A Llama with two patterns and a dense head, and its folder of several files."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from pretrained_cases import llama, pack

    from nm_sparse.torch import NMLinear
    from nm_sparse.torch.pretrained import mark_pretrained

    model = pack(llama(), "2:4", leave=("lm_head", "model.layers.0.mlp.up_proj"))
    up = NMLinear.from_dense(model.model.layers[0].mlp.up_proj, "8:16")
    model.model.layers[0].mlp.up_proj = up
    mark_pretrained(model, {"method": "magnitude"})
    folder = tmp_path_factory.mktemp("saved") / "model"
    model.save_pretrained(folder, max_shard_size="60KB")
    assert len(list(folder.glob("*.safetensors"))) > 3
    return model, folder

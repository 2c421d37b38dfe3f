# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small Llama on a GPU, sparse and fused, against the dense one with the same zeros.
Skipped without a GPU."""

import pytest

torch = pytest.importorskip("torch")

from nm_sparse.bindings import library  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    NMLinear,
    NMSparseConfig,
    fuse_,
    sparsify_,
    store_for_kernels_,
)

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or not library.available(),
    reason="needs a GPU and the compiler's library",
)


def make_llama(dtype):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=512,
        intermediate_size=1408,
        num_attention_heads=8,
        num_key_value_heads=2,
        num_hidden_layers=2,
        vocab_size=320,
        bos_token_id=None,
        eos_token_id=None,
    )
    return transformers.LlamaForCausalLM(config).to("cuda", dtype).eval()


@pytest.mark.parametrize("encoding", ["2:4", "8:16", "8:32, block = [1, 128]"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_text_of_a_llama(encoding, dtype):
    """Greedy decoding is that of the dense model with the same zeros in f32; logits
    agree in f16."""
    model = make_llama(dtype)
    config = NMSparseConfig(encoding, keep_slower=True)
    assert sparsify_(model, {"model.layers.*": config}).converted
    assert fuse_(model).fused
    store_for_kernels_(model)
    masked = make_llama(dtype)
    for name, layer in model.named_modules():
        if isinstance(layer, NMLinear):
            weight = layer.weight.to_dense().detach()
            masked.get_submodule(name).weight.data.copy_(weight)
    ids = torch.randint(320, (3, 11), device="cuda")
    mask = torch.ones_like(ids)
    with torch.no_grad():
        found, wanted = (one(ids).logits.float() for one in (model, masked))
        error = (found - wanted).abs().max() / wanted.abs().max()
        assert float(error) < (1e-5 if dtype == torch.float32 else 1e-2)
        if dtype == torch.float32:
            options = dict(attention_mask=mask, max_new_tokens=24, do_sample=False)
            texts = [one.generate(ids, **options) for one in (model, masked)]
            assert torch.equal(*texts)

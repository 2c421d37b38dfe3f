# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What config.json says becomes methods of vLLM's layers."""

import pytest
import torch
from conftest import as_rank, config
from nm_sparse_vllm.linear import NMSparseLinearMethod
from vllm.model_executor.layers.fused_moe import RoutedExperts
from vllm.model_executor.layers.linear import (
    MergedColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
    UnquantizedLinearMethod,
)
from vllm.model_executor.layers.vocab_parallel_embedding import (
    ParallelLMHead,
    VocabParallelEmbedding,
)
from vllm.model_executor.models.utils import WeightsMapper

from nm_sparse import Encoding

MERGED = {
    "qkv_proj": ["q_proj", "k_proj", "v_proj"],
    "gate_up_proj": ["gate_proj", "up_proj"],
}


def of_model(encoding, **fields):
    """As vLLM has it once it knows the model's class."""
    made = config(encoding, **fields)
    made.packed_modules_mapping = MERGED
    return made


def bare(kind):
    """A layer of that class, of which only the class is asked."""
    return kind.__new__(kind)


def method_of(made, kind, name):
    return made.get_quant_method(bare(kind), name)


def test_layers_are_packed_or_dense_by_name():
    layers = {"*.k_proj": "8:32, block = [1, 16]", "*.o_proj": None, "model.1.*": None}
    layers.update({f"*.{name}_proj": layers["*.k_proj"] for name in "qv"})
    made = of_model("2:4", layers=layers)
    qkv = method_of(made, QKVParallelLinear, "model.0.qkv_proj")
    assert isinstance(qkv, NMSparseLinearMethod)
    assert qkv.encoding == Encoding("8:32", block=(1, 16), dim=1)
    gate = method_of(made, MergedColumnParallelLinear, "model.0.gate_up_proj")
    assert gate.encoding == Encoding("2:4", dim=1)
    down = method_of(made, RowParallelLinear, "down_proj")  # without a parent
    assert down.encoding == Encoding("2:4", dim=1)
    for name in ("model.0.o_proj", "model.1.down_proj"):
        assert type(method_of(made, RowParallelLinear, name)) is UnquantizedLinearMethod


def test_a_dense_layer_loads_a_weight():
    made = of_model("2:4", layers={"*.o_proj": None})
    with as_rank(1, 2):
        layer = RowParallelLinear(64, 32, quant_config=made, prefix="a.o_proj")
    assert layer.weight.shape == (32, 32) and not hasattr(layer, "values")


def test_layers_that_vllm_merges_must_be_alike():
    made = of_model("2:4", layers={"*.up_proj": None, "*.v_proj": "1:4"})
    with pytest.raises(ValueError, match="of layers that differ: a.gate_proj is 2:4, "):
        method_of(made, MergedColumnParallelLinear, "a.gate_up_proj")
    with pytest.raises(ValueError, match="a.v_proj is 1:4, dim = 1; legal is one enc"):
        method_of(made, QKVParallelLinear, "a.qkv_proj")


@pytest.mark.parametrize(
    "fields, match",
    [
        ({"version": 2}, "version is 2"),
        ({"encoding": "5:4"}, "encoding: .* 5:4"),
        ({"encoding": "free"}, "encoding is free"),
        ({"layers": {"a": "2;4"}}, r"layers\['a'\]"),
        ({"layers": []}, "layers is"),
        ({"wrong": 1}, "wrong is there: legal is one of quant_method, version"),
        ({"scales": "output"}, "scales is 'output'"),
        ({"quant_method": "gptq"}, "quant_method is 'gptq'"),
    ],
)
def test_errors_name_the_field(fields, match):
    fields = {"encoding": "2:4", **fields}
    with pytest.raises(ValueError, match=match):
        config(fields.pop("encoding"), **fields)


def test_the_head_and_experts_are_dense_or_refused():
    made = of_model("2:4")
    with pytest.raises(ValueError, match='lm_head is 2:4.*"lm_head": null in layers'):
        method_of(made, ParallelLMHead, "lm_head")
    with pytest.raises(ValueError, match=r'"model.experts.\*": null in layers'):
        method_of(made, RoutedExperts, "model.experts")
    dense = of_model("2:4", layers={"lm_head": None, "*.experts.*.gate_proj": None,
                                    "*.experts.*.up_proj": None,
                                    "*.experts.*.down_proj": None})  # fmt: skip
    assert method_of(dense, ParallelLMHead, "lm_head") is None
    assert method_of(dense, RoutedExperts, "model.experts") is None
    assert method_of(made, VocabParallelEmbedding, "model.embed_tokens") is None
    assert made.get_quant_method(torch.nn.Identity(), "model.attn") is None

    class Tied:
        tie_word_embeddings = True

    made.maybe_update_config("model", hf_config=Tied())
    assert method_of(made, ParallelLMHead, "lm_head") is None


def test_names_become_those_of_the_model():
    made = of_model("2:4", layers={"model.text.*.o_proj": None})
    made.apply_vllm_mapper(WeightsMapper(orig_to_new_prefix={"model.text.": "text."}))
    for name, kind in (
        ("text.0.o_proj", UnquantizedLinearMethod),
        ("model.text.0.o_proj", NMSparseLinearMethod),
    ):
        assert type(method_of(made, RowParallelLinear, name)) is kind


def test_what_vllm_asks_of_a_method():
    made = config("2:4")
    assert made.get_name() == "nm_sparse" and made.get_config_filenames() == []
    assert torch.bfloat16 in made.get_supported_act_dtypes()
    assert made.get_min_capability() == 80
    assert made.override_quantization_method({"quant_method": "gptq"}, None) is None

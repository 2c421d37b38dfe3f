# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers of many architectures: sparse, fused, compiled, loaded."""

import copy
import io

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from architectures import NAMES, inputs, make  # noqa: E402
from shared_cases import operators  # noqa: E402

from nm_sparse.torch import (  # noqa: E402
    NMSparseConfig,
    fuse_,
    sparsify_,
    to_dense_,
)

LAYERS = {
    "*lm_head": None,
    "*classifier*": None,
    "*": NMSparseConfig("2:4", keep_slower=True),
}
# Kinds of blocks that are fused, and how many of each.
FUSED = {
    "GPT2": {"activation": 2},
    "Bert": {"shared input": 2, "activation": 3},
    "ViT": {"shared input": 2, "activation": 2},
    "Whisper": {"shared input": 6, "activation": 4},
    "Phi3": {"gated MLP": 2},
    "GPTNeoX": {"activation": 2},
    "Falcon": {"activation": 2},
    "Llama": {"shared input": 2, "gated MLP": 2},
    "Bloom": {"activation": 2},
    "DistilBert": {"shared input": 2, "activation": 2},
    "T5": {"shared input": 2, "activation": 2},
    "ResNet": {},
}
# One block calls these, in order.
CALLED = {
    "GPT2": ["linear"] * 4,
    "Bert": ["linear_shared", "linear", "linear", "linear"],
    "ViT": ["linear_shared", "linear", "linear", "linear"],
    "Phi3": ["linear", "linear", "gated_linear", "linear"],
    "Llama": ["linear_shared", "linear", "gated_mlp", "linear"],
}


def sparse(name, seed=0, before=False):
    model = make(name, seed)
    if before:
        fuse_(model)
    sparsify_(model, LAYERS, predictor=lambda *_: ())
    return model


def run(model, name):
    with torch.no_grad():
        return model(**inputs(name), return_dict=True)[0]


@pytest.mark.parametrize("name", NAMES)
def test_they_compute_what_masked_dense_ones_do(name):
    model = sparse(name)
    dense = copy.deepcopy(model)
    replaced = to_dense_(dense)
    assert len(replaced) >= 4
    assert {k: v.shape for k, v in dense.state_dict().items()} == {
        k: v.shape for k, v in make(name).state_dict().items()
    }
    wanted = run(dense, name)
    torch.testing.assert_close(run(model, name), wanted, rtol=1e-4, atol=1e-4)
    keys = list(model.state_dict())
    report = fuse_(model)
    done = [row.kind for row in report.rows if not row.reason]
    assert {kind: done.count(kind) for kind in done} == FUSED[name], str(report)
    assert list(model.state_dict()) == keys
    torch.testing.assert_close(run(model, name), wanted, rtol=1e-4, atol=1e-4)
    if name in CALLED:
        found = operators(lambda: model(**inputs(name)))
        found = [one for one in found if one != "conv2d"]
        assert found[: 2 * len(CALLED[name])] == CALLED[name] * 2


@pytest.mark.parametrize("name", NAMES)
def test_fused_first_saved_and_loaded(name):
    model, plain = sparse(name, before=True), sparse(name)
    state = plain.state_dict()
    assert list(model.state_dict()) == list(state)
    other = sparse(name, seed=5, before=True)
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    wanted = run(plain, name)
    for one in (model, other, copy.deepcopy(model)):
        torch.testing.assert_close(run(one, name), wanted, rtol=1e-4, atol=1e-4)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    whole = torch.load(file, weights_only=False)
    torch.testing.assert_close(run(whole, name), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("Bloom", "T5")])
def test_compiled_as_one_graph(name):
    model = sparse(name)
    fuse_(model)
    more = (
        {} if name in ("Bert", "ViT", "DistilBert", "ResNet") else {"use_cache": False}
    )
    wanted = run(model, name)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        found = compiled(**inputs(name), **more)[0]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["GPT2", "Whisper", "Phi3", "Llama"])
def test_fused_models_generate_the_same(name):
    model, plain = sparse(name), sparse(name)
    fuse_(model)
    options = dict(max_new_tokens=5, do_sample=False)
    given = inputs(name)
    given.pop("decoder_input_ids", None)
    with torch.no_grad():
        wanted = plain.generate(**given, **options)
        assert torch.equal(model.generate(**given, **options), wanted)


@pytest.mark.parametrize("name", ["GPT2", "Bert", "Whisper", "Phi3"])
def test_fused_models_are_trained_as_before(name):
    model, plain = sparse(name), sparse(name)
    fuse_(model)
    for one in (model, plain):
        one.train(name == "Phi3")  # others have dropout
        one(**inputs(name))[0].square().mean().backward()
    wanted = dict(plain.named_parameters())
    for key, parameter in model.named_parameters():
        other = wanted[key].grad
        if other is None:
            assert parameter.grad is None
            continue
        found = parameter.grad
        values = (one.values if hasattr(one, "values") and not callable(one.values)
                  else one for one in (found, other))  # fmt: skip
        torch.testing.assert_close(*values, rtol=1e-3, atol=1e-6)

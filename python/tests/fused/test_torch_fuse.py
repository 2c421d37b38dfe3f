# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of one input as one operator: `GatedMLP`, and `fuse_` on whole models."""

import copy
import io

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from export_cases import check_same, needs_library  # noqa: E402
from shared_cases import operators, packed  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    NMSparseConfig,
    sparsify_,
)
from nm_sparse.torch.layers.mlp import GatedMLP, shared_linear  # noqa: E402
from nm_sparse.torch.layers.ops import activate  # noqa: E402
from nm_sparse.torch.models.fuse import find_activation, fuse_  # noqa: E402
from nm_sparse.torch.models.stand_in import share_input_  # noqa: E402
from nm_sparse.torch.weight.spec import ACTIVATIONS  # noqa: E402

SIZES = dict(
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    vocab_size=60,
    max_position_embeddings=32,
)


def test_gated_mlp_runs_whatever_its_layers_are():
    mlp = GatedMLP(*(nn.Linear(*size) for size in ((32, 48), (32, 48), (48, 32))))
    x = torch.randn(3, 32)
    wanted = mlp.down_proj(F.silu(mlp.gate_proj(x)) * mlp.up_proj(x))
    torch.testing.assert_close(mlp(x), wanted)
    assert "gate_proj is no packed layer" in mlp.obstacle()
    mlp.gate_proj = packed(32, 48)
    mlp.up_proj = packed(32, 48, "4:8")
    assert (
        mlp.obstacle() == "gate_proj and up_proj have other encodings, shapes or types"
    )
    mlp.up_proj = packed(32, 48, bias=True)
    assert mlp.obstacle() == "up_proj has a bias"
    mlp.up_proj = packed(32, 48)
    assert mlp.obstacle() is None
    with torch.no_grad():
        gate, up = (one.to_dense() for one in (mlp.gate_proj, mlp.up_proj))
        wanted = mlp.down_proj(F.silu(gate(x)) * up(x))
        torch.testing.assert_close(mlp(x), wanted)
        compiled = torch.compile(mlp, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), wanted)


@needs_library
def test_both_operators_are_exported():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            layers = [packed(32, 48, "4:8"), packed(32, 48, "4:8"), packed(48, 32)]
            self.mlp = GatedMLP(*layers, "gelu_tanh")
            self.layers = nn.ModuleList([packed(32, 16), packed(32, 24, bias=True)])

        def forward(self, x):
            return shared_linear(self.mlp(x), list(self.layers))

    batch = torch.export.Dim("batch")
    x = torch.randn(2, 3, 32)
    exported = check_same(Model(), (x,), ({0: batch},), [(torch.randn(5, 3, 32),)])
    assert [one.target for one in exported.arguments] == [
        "x", "layers.1.bias", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
        "layers.0", "layers.1",
    ]  # fmt: skip


def make(name, **options):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(len(name))
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **options})
    return getattr(transformers, f"{name}ForCausalLM")(config).eval()


def sparsify(model):
    config = NMSparseConfig("2:4", keep_slower=True)
    layers = {"*lm_head": None, "*": config}
    return sparsify_(model, layers, predictor=lambda *_: ())


MODELS = ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2")


@pytest.mark.parametrize("name", MODELS)
def test_models_compute_the_same(name):
    model = make(name)
    before = name in MODELS[::2]
    if before:
        fuse_(model)
    sparsify(model)
    tokens = torch.randint(0, 60, (2, 6))
    plain = make(name)
    sparsify(plain)
    if not before:
        report = fuse_(model)
        assert len(report.fused) == 4 and "4 of 4 are fused" in str(report)
        assert [row.kind for row in report.rows] == ["shared input", "gated MLP"] * 2
    state = plain.state_dict()
    assert list(model.state_dict()) == list(state)
    model.load_state_dict(state)
    with torch.no_grad():
        wanted, found = plain(tokens).logits, model(tokens).logits
        torch.testing.assert_close(found, wanted)
        options = dict(max_new_tokens=4, do_sample=False, pad_token_id=0)
        wanted = plain.generate(tokens, **options)
        assert torch.equal(model.generate(tokens, **options), wanted)
    called = operators(lambda: model(tokens))
    assert called == ["linear_shared", "linear", "gated_mlp", "linear"] * 2
    expected = "silu" if name[0] != "G" else "gelu_tanh"
    assert {m.activation for m in model.modules() if isinstance(m, GatedMLP)} == {
        expected
    }


def test_fused_models_are_copied_saved_compiled_and_trained():
    model = make("Qwen2")
    sparsify(model)
    tokens = torch.randint(0, 60, (2, 6))
    loss = model(tokens, labels=tokens).loss
    loss.backward()
    wanted = {name: one.grad for name, one in model.named_parameters()}
    model.zero_grad()
    fuse_(model)
    fused = model(tokens, labels=tokens).loss
    fused.backward()
    torch.testing.assert_close(fused, loss)
    for name, one in model.named_parameters():
        torch.testing.assert_close(one.grad, wanted[name])
    clone = copy.deepcopy(model)
    attention = clone.model.layers[0].self_attn
    assert attention.forward.args[0] is attention
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        logits = model(tokens, use_cache=False).logits
        for other in (clone, loaded, compiled):
            torch.testing.assert_close(other(tokens, use_cache=False).logits, logits)


def test_what_stays_as_it_is_has_a_reason():
    biased = fuse_(make("Llama", mlp_bias=True))
    reasons = {row.kind: row.reason for row in biased.rows}
    assert reasons == {
        "shared input": "",
        "gated MLP": "gate_proj or up_proj has a bias",
    }

    class Other(nn.Module):
        def __init__(self, activation):
            super().__init__()
            sizes = dict(gate_proj=(16, 24), up_proj=(16, 24), down_proj=(24, 16))
            for name, size in sizes.items():
                setattr(self, name, nn.Linear(*size, bias=False))
            self.act_fn = activation

        def forward(self, x):
            inside = self.act_fn(self.gate_proj(x).clamp(-0.1, 0.1))
            return self.down_proj(inside * self.up_proj(x))

    def reason(module):
        return fuse_(nn.Sequential(module)).rows[0].reason

    assert "computes another result" in reason(Other(nn.SiLU()))
    assert "act_fn is none of none, relu" in reason(Other(nn.Softplus()))
    assert "on the meta device" in reason(Other(nn.SiLU()).to("meta"))
    assert "of torch.float64" in reason(Other(nn.SiLU()).double())
    hooked = Other(nn.SiLU())
    hooked.register_forward_hook(lambda *_: None)
    assert "it has hooks" in reason(hooked)
    assert "the model itself" in fuse_(Other(nn.SiLU())).rows[0].reason
    mixed = Other(nn.SiLU())
    mixed.gate_proj, mixed.up_proj = packed(16, 24), packed(16, 24, "4:8")
    assert "have other encodings" in reason(mixed)
    model = make("Llama", num_hidden_layers=1)
    fuse_(model)
    again = [row.reason for row in fuse_(model).rows]
    assert again == ["it has a forward of its own", "it is one already"]


def test_activations_are_found_by_what_they_compute():
    for name in ACTIVATIONS:
        assert find_activation(lambda x, name=name: activate(x, name)) == name
    assert find_activation(nn.GELU(approximate="tanh")) == "gelu_tanh"
    for other in (nn.ELU(), None, lambda x: x.sum(), lambda: 1, nn.Linear(3, 3)):
        assert find_activation(other) is None


def test_shared_input_of_other_layers():
    class Cross(nn.Module):
        """Keys are of another input than queries."""

        def __init__(self):
            super().__init__()
            self.q_proj, self.k_proj = packed(16, 16), packed(16, 16, bias=True)
            self.calls = 0

        def forward(self, x, memory):
            self.calls += 1
            assert self.q_proj.in_features == 16
            return self.q_proj(x) + self.k_proj(memory)

    module, other = Cross(), Cross()
    other.load_state_dict(module.state_dict())
    share_input_(module, ("q_proj", "k_proj"))
    x, memory = torch.randn(2, 16), torch.randn(2, 16)
    with torch.no_grad():
        torch.testing.assert_close(module(x, memory), other(x, memory))
        torch.testing.assert_close(module(x=x, memory=x), other(x, x))
    assert module.calls == 2
    del module.forward
    module.k_proj.register_forward_hook(lambda *_: torch.zeros(2, 16))
    share_input_(module, ("q_proj", "k_proj"))
    with torch.no_grad():  # a hook is called
        torch.testing.assert_close(module(x, x), module.q_proj(x))
    with pytest.raises(
        EncodingError, match="Cross has no layer v_proj: legal are names"
    ):
        share_input_(module)
    with pytest.raises(EncodingError, match="Cross has a forward of its own"):
        share_input_(module, ("q_proj", "k_proj"))

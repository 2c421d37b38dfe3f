# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of one input as one operator: the operators, and `fuse_` on whole models."""

import copy
import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from export_cases import check_same, needs_library  # noqa: E402
from torch import nn  # noqa: E402
from torch_cases import ENCODINGS, random_weight  # noqa: E402

from nm_sparse import Encoding, EncodingError  # noqa: E402
from nm_sparse.emulator import emulate  # noqa: E402
from nm_sparse.function import PreparedWeight  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    LinearSpec,
    NMLinear,
    NMSparseConfig,
    encoding_text,
    kernels,
    shared_kernels,
    sparsify_,
)
from nm_sparse.torch.fuse import find_activation, fuse_  # noqa: E402
from nm_sparse.torch.mlp import GatedMLP, share_input_, shared_linear  # noqa: E402
from nm_sparse.torch.ops import activate  # noqa: E402
from nm_sparse.torch.shared_spec import parse_shared, shared_text, with_activation  # noqa: E402
from nm_sparse.torch.spec import ACTIVATIONS, DTYPE_NAMES  # noqa: E402

EACH = pytest.mark.parametrize("e", ENCODINGS, ids=encoding_text)
GATED = torch.ops.nm_sparse.gated_mlp.default
SHARED = torch.ops.nm_sparse.linear_shared.default
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


def gated_operands(e, seed, dtype=torch.float64, activation="silu"):
    """(x, gate, up, spec), and the two dense weights."""
    gate, dense = random_weight(e, seed, dtype)
    values = gate.components["values"]
    kept = values != 0
    up = dict(gate.components)
    up["values"] = torch.where(
        kept, torch.randn_like(values.double()).to(dtype), values
    )
    other = type(gate)(up, gate.encoding, gate.shape)
    x = torch.randn(2, 3, gate.shape[1], dtype=torch.float64).to(dtype)
    spec = LinearSpec(e, tuple(gate.shape), DTYPE_NAMES[dtype], activation).text
    parts = [list(one.components.values()) for one in (gate, other)]
    return (x, *parts, spec), (dense, other.to_dense())


def shared_operands(seed, dtype=torch.float64):
    """Operands of `linear_shared` for layers of several patterns, and their weights."""
    k, specs, parts, dense, biases = 24, [], [], [], []
    for at, e in enumerate((Encoding(2, 4, dim=1), Encoding(4, 8, (1, 4), dim=1))):
        n = 12 + 4 * at
        layer = NMLinear.from_dense(nn.Linear(k, n), e).to(dtype)
        parts.append([part.detach() for part in layer.weight.components.values()])
        dense.append(layer.weight.to_dense().detach())
        specs.append(LinearSpec(e, (n, k), DTYPE_NAMES[dtype]))
        biases.append(layer.bias.detach() if at else None)
    x = torch.randn(2, 5, k, dtype=torch.float64).to(dtype)
    counts = [len(one) for one in parts]
    weights = [part for one in parts for part in one]
    return (x, weights, counts, biases, shared_text(specs)), dense


def leaves(*groups):
    """Copies that want gradients, of tensors of floats."""
    return [
        one.clone().requires_grad_() if one.is_floating_point() else one
        for one in groups
    ]


@EACH
def test_gated_mlp_is_two_dense_layers(e):
    for seed, activation in enumerate(ACTIVATIONS):
        operands, (gate, up) = gated_operands(e, seed, activation=activation)
        x = operands[0]
        wanted = activate(F.linear(x, gate), activation) * F.linear(x, up)
        torch.testing.assert_close(GATED(*operands), wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_shared_layers_are_dense_layers(dtype):
    operands, dense = shared_operands(1, dtype)
    x, _, _, biases, _ = operands
    for y, weight, bias in zip(SHARED(*operands), dense, biases):
        bias = None if bias is None else bias.double()
        wanted = F.linear(x.double(), weight.double(), bias)
        assert y.dtype == dtype
        tolerance = 2e-2 if dtype == torch.bfloat16 else 2e-3
        torch.testing.assert_close(y.double(), wanted, rtol=tolerance, atol=tolerance)


def test_opcheck():
    (x, gate, up, spec), _ = gated_operands(ENCODINGS[0], 2, torch.float32)
    torch.library.opcheck(GATED, (*leaves(x), leaves(*gate), leaves(*up), spec))
    x, weights, counts, biases, spec = shared_operands(2, torch.float32)[0]
    biases = [
        None if bias is None else bias.clone().requires_grad_() for bias in biases
    ]
    torch.library.opcheck(SHARED, (*leaves(x), leaves(*weights), counts, biases, spec))


def test_gradients():
    (x, gate, up, spec), _ = gated_operands(ENCODINGS[1], 3)

    def gated(x, first, second):
        return GATED(x, [first, *gate[1:]], [second, *up[1:]], spec)

    assert torch.autograd.gradcheck(gated, leaves(x, gate[0], up[0]), fast_mode=True)
    x, weights, counts, biases, spec = shared_operands(3)[0]

    def shared(x, first, second, bias):
        parts = [first, weights[1], second, *weights[3:]]
        return tuple(SHARED(x, parts, counts, [None, bias], spec))

    assert torch.autograd.gradcheck(
        shared, leaves(x, weights[0], weights[2], biases[1]), fast_mode=True
    )


def test_autocast():
    operands, _ = gated_operands(ENCODINGS[0], 4, torch.float32)
    shared, _ = shared_operands(4, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        y, several = GATED(*operands), SHARED(*shared)
    assert y.dtype == torch.bfloat16
    assert [one.dtype for one in several] == [torch.bfloat16] * 2
    torch.testing.assert_close(y.float(), GATED(*operands), rtol=0.05, atol=0.05)
    for one, other in zip(several, SHARED(*shared)):
        torch.testing.assert_close(one.float(), other, rtol=0.05, atol=0.05)


def test_wrong_operands_are_named():
    x, gate, up, spec = gated_operands(ENCODINGS[0], 5, torch.float32)[0]
    with pytest.raises(EncodingError, match="x has shape .*: a weight"):
        GATED(x[..., :-1], gate, up, spec)
    with pytest.raises(EncodingError, match="weight has components"):
        GATED(x, gate, up[:1], spec)
    x, weights, counts, biases, spec = shared_operands(5, torch.float32)[0]
    with pytest.raises(EncodingError, match="counts are .* of 4 components, with 1 bi"):
        SHARED(x, weights, counts, biases[:1], spec)
    with pytest.raises(EncodingError, match="and a sum of 4"):
        SHARED(x, weights, [1, 2], biases, spec)
    for text in ("", "[]", "{}"):
        with pytest.raises(EncodingError, match="legal is a JSON array of the texts"):
            parse_shared(text)
    with pytest.raises(
        EncodingError, match="activation is 'tanh': legal is none, relu"
    ):
        GatedMLP(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4), "tanh")


def as_bits(tensor):
    plain = tensor.detach().contiguous()
    return (plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain).numpy()


def emulated(made, x, weights, others):
    """What the kernels of a program compute, in the emulator."""
    tokens = as_bits(x)
    outs = [np.full((len(x), n), np.nan, tokens.dtype.newbyteorder("="))
            if tokens.dtype.kind == "f" else np.zeros((len(x), n), tokens.dtype)
            for n in made.outputs]  # fmt: skip
    whole = [
        PreparedWeight(tuple(map(as_bits, form.store(parts))), None)
        for form, parts in zip(made.forms, weights)
    ]
    rest = [as_bits(one) for one in others]
    found = emulate(made.program, tokens, *whole, *rest, *outs)
    return [torch.from_numpy(one).view(x.dtype) for one in found]


@pytest.fixture
def hopper(monkeypatch):
    """A device that programs can be compiled for, and the emulator for it."""
    if torch.cuda.is_available():
        pytest.skip("a process that has used the emulator cannot use a GPU")
    monkeypatch.setattr(kernels, "chip_of", lambda device: "sm_90a")
    monkeypatch.setattr(kernels, "device_gpu_of", lambda device: None)
    return torch.device("cuda", 0)


def components(layer):
    return [getattr(layer, name) for name in layer._names]


@needs_library
def test_compiled_kernels_of_a_gated_mlp(hopper):
    """Through the emulator: what a GPU would be given, and would compute."""
    x = torch.randn(1, 96).half()
    layers = [packed(96, 64, "8:32, block = [1, 32]").half() for _ in range(2)]
    text = with_activation(layers[0]._specs[torch.float16], "silu")
    made = shared_kernels.find_gated.__wrapped__(LinearSpec.parse(text), hopper)
    with torch.no_grad():
        (found,) = emulated(made, x, map(components, layers), [])
        wanted = F.silu(layers[0](x)) * layers[1](x)
        torch.testing.assert_close(found, wanted, rtol=0.02, atol=0.02)


@needs_library
def test_compiled_kernels_of_shared_layers(hopper):
    x = torch.randn(3, 64).bfloat16()
    layers = [packed(64, n, "2:4", bias).bfloat16() for n, bias in ((40, 0), (32, 1))]
    specs = tuple(LinearSpec.parse(one._specs[x.dtype]) for one in layers)
    made = shared_kernels.find_shared.__wrapped__(specs, (False, True), hopper)
    with torch.no_grad():
        several = emulated(made, x, map(components, layers), [layers[1].bias])
        for found, layer in zip(several, layers):
            torch.testing.assert_close(found, layer(x), rtol=0.02, atol=0.02)


class StandIn(shared_kernels.SharedKernels):
    """Kernels that multiply by the dense weights."""

    def __init__(self, specs, compute):
        names = [list(spec.components) for spec in specs]
        self.forms = [
            shared_kernels.StoredForm(
                spec,
                {
                    "encoding": encoding_text(spec.encoding),
                    "components": [{"name": name} for name in own],
                    "packed_layout": spec.encoding.version,
                },
            )
            for spec, own in zip(specs, names)
        ]
        self.compute = compute

    def __call__(self, x, weights, others, stream):
        assert x.ndim == 2 and stream == 7
        assert len(weights) == len(self.forms)
        return self.compute(x, *others)


def test_programs_are_called(monkeypatch):
    (x, gate, up, spec), dense = gated_operands(Encoding(2, 4, dim=1), 6, torch.float32)
    shared, weights = shared_operands(6, torch.float32)
    made = []

    def find_gated(spec, device):
        made.append(spec)
        inside = lambda x: [F.silu(x @ dense[0].t()) * (x @ dense[1].t())]  # noqa: E731
        return StandIn((spec, spec), inside)

    def find_shared(specs, biases, device):
        made.append((specs, biases))
        first, second = weights
        products = lambda x, b: [x @ first.t(), F.linear(x, second, b)]  # noqa: E731
        return StandIn(specs, products)

    monkeypatch.setattr(shared_kernels, "find_gated", find_gated)
    monkeypatch.setattr(shared_kernels, "find_shared", find_shared)
    monkeypatch.setattr(kernels, "stream_of", lambda x: 7)
    one = LinearSpec.parse(spec)
    found = shared_kernels.run_gated_mlp(x, gate, up, (one, one))
    torch.testing.assert_close(found, GATED(x, gate, up, spec))
    x, parts, counts, biases, spec = shared
    layers = list(zip([parts[:2], parts[2:]], biases, parse_shared(spec)))
    for found, wanted in zip(shared_kernels.run_shared(x, layers), SHARED(*shared)):
        torch.testing.assert_close(found, wanted)
    assert made == [one, (parse_shared(spec), (False, True))]


def test_layers_run_alone_without_a_compiler(monkeypatch):
    monkeypatch.setattr(shared_kernels, "find_gated", lambda *_: None)
    monkeypatch.setattr(shared_kernels, "find_shared", lambda *_: None)
    monkeypatch.setattr(kernels, "find_kernels", lambda *_: None)
    x, gate, up, spec = gated_operands(ENCODINGS[0], 7, torch.float32)[0]
    both = LinearSpec.parse(spec), LinearSpec.parse(spec.replace("silu", "none"))
    found = shared_kernels.run_gated_mlp(x, gate, up, both)
    torch.testing.assert_close(found, GATED(x, gate, up, spec))
    shared = shared_operands(7, torch.float32)[0]
    x, parts, counts, biases, spec = shared
    layers = list(zip([parts[:2], parts[2:]], biases, parse_shared(spec)))
    for found, wanted in zip(shared_kernels.run_shared(x, layers), SHARED(*shared)):
        torch.testing.assert_close(found, wanted)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_cuda(dtype):
    model = nn.Module()
    sizes = ((64, 96), (64, 96), (96, 64))
    model.mlp = GatedMLP(*(packed(*size, "8:32, block = [1, 32]") for size in sizes))
    model.to(device="cuda", dtype=dtype)
    x = torch.randn(2, 3, 64, dtype=dtype, device="cuda")
    layers = [packed(64, 32), packed(64, 48, bias=True)]
    layers = [layer.to(device="cuda", dtype=dtype) for layer in layers]
    with torch.no_grad():
        gate, up, down = (m.to_dense() for m in model.mlp.children())
        wanted = down(F.silu(gate(x)) * up(x))
        torch.testing.assert_close(model.mlp(x), wanted, rtol=0.03, atol=0.03)
        for y, layer in zip(shared_linear(x, layers), layers):
            torch.testing.assert_close(y, layer.to_dense()(x), rtol=0.03, atol=0.03)


def packed(k, n, encoding="2:4", bias=False, **options):
    return NMLinear.from_dense(nn.Linear(k, n, bias=bias), encoding, **options)


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


def operators(function):
    """Names of the operators of this package that a function calls, in order."""
    called = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            name = operator._schema.name
            if name.startswith("nm_sparse::"):
                called.append(name[len("nm_sparse::") :])
            return operator(*args, **(kwargs or {}))

    with torch.no_grad(), Mode():
        function()
    return called


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

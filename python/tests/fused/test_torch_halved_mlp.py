# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gated MLPs whose gate and up are the halves of one weight."""

import copy
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from export_cases import needs_library  # noqa: E402
from shared_cases import as_bits, emulated, leaves, operators, packed  # noqa: E402
from torch import nn  # noqa: E402
from torch_cases import ENCODINGS, random_weight  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    HalvedMLP,
    LinearSpec,
    NMLinear,
    export_mlir,
    fuse_,
    store_for_kernels_,
    to_importable,
    use_dense_,
)
from nm_sparse.torch.layers import halved_ops, kernels, shared_kernels  # noqa: E402
from nm_sparse.torch.layers.dense_copies import products  # noqa: E402
from nm_sparse.torch.layers.ops import activate  # noqa: E402
from nm_sparse.torch.models import kernel_storage  # noqa: E402
from nm_sparse.torch.models.kernel_storage import find_uses  # noqa: E402
from nm_sparse.torch.weight.spec import ACTIVATIONS, DTYPE_NAMES  # noqa: E402

GATED = torch.ops.nm_sparse.gated_linear.default


def operands(e, seed, dtype=torch.float64, activation="silu"):
    """(x, weight, spec), and the dense weight, of an even number of outputs."""
    n = 2 * e.block[1]
    weight, dense = random_weight(e, seed, dtype, (n, 3 * e.m * e.block[0]))
    x = torch.randn(2, 3, dense.shape[1], dtype=torch.float64).to(dtype)
    spec = LinearSpec(e, tuple(weight.shape), DTYPE_NAMES[dtype], activation)
    parts = [part.detach() for part in weight.components.values()]
    return (x, parts, spec.text), dense


@pytest.mark.parametrize("e", ENCODINGS, ids=str)
def test_it_is_a_dense_layer_and_a_product(e):
    for seed, activation in enumerate(ACTIVATIONS):
        (x, weight, spec), dense = operands(e, seed, activation=activation)
        first, second = F.linear(x, dense).chunk(2, -1)
        wanted = activate(first, activation) * second
        torch.testing.assert_close(GATED(x, weight, spec), wanted)


def test_opcheck_gradients_and_autocast():
    (x, weight, spec), _ = operands(ENCODINGS[0], 1, torch.float32)
    torch.library.opcheck(GATED, (*leaves(x), leaves(*weight), spec))
    with torch.autocast("cpu", torch.bfloat16):
        y = GATED(x, weight, spec)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), GATED(x, weight, spec), rtol=0.05, atol=0.1)
    (x, weight, spec), _ = operands(ENCODINGS[1], 2)

    def run(x, values):
        return GATED(x, [values, *weight[1:]], spec)

    assert torch.autograd.gradcheck(run, leaves(x, weight[0]), fast_mode=True)


def test_what_does_not_fit_is_named():
    (x, weight, spec), _ = operands(ENCODINGS[0], 1)
    with pytest.raises(EncodingError, match="x has shape"):
        GATED(x[..., :-1], weight, spec)
    odd = LinearSpec("2:4", (7, 16), "f32").text
    with pytest.raises(EncodingError, match="7 outputs: legal is an even number"):
        GATED(x, weight, odd)
    with pytest.raises(EncodingError, match="activation is 'tanh'"):
        HalvedMLP(nn.Linear(4, 8), nn.Linear(4, 4), "tanh")


def module(encoding="2:4", sizes=(64, 192), **options):
    k, n = sizes
    layers = packed(k, n, encoding, **options), packed(n // 2, k, "2:4")
    return HalvedMLP(*layers).eval()


def by_layers(mlp, x):
    first, second = mlp.gate_up_proj(x).chunk(2, -1)
    return mlp.down_proj(F.silu(first) * second)


def test_a_module_is_one_operator_while_it_can_be():
    mlp, x = module(), torch.randn(2, 3, 64)
    assert operators(lambda: mlp(x)) == ["gated_linear", "linear"]
    others = [
        (module("2:4", bias=True), "gate_up_proj has a bias"),
        (module("8:32, block = [1, 128]"), "panels of gate_up_proj do not divide"),
        (module("2:4", (64, 96)), "panels of gate_up_proj do not divide"),
        (HalvedMLP(nn.Linear(64, 192), nn.Linear(96, 64)), "no packed layer"),
    ]
    hooked = copy.deepcopy(mlp)
    hooked.gate_up_proj.register_forward_hook(lambda *_: None)
    others.append((hooked, "no packed layer without activation and hooks"))
    for other, reason in others:
        assert reason in other.obstacle()
        assert "gated_linear" not in operators(lambda other=other: other(x))
    with torch.no_grad():
        for one in [mlp] + [other for other, _ in others]:
            torch.testing.assert_close(one(x), by_layers(one, x))
        compiled = torch.compile(mlp, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), mlp(x))
        mlp.gate_up_proj.store_("bitmap")
        torch.testing.assert_close(mlp(x), by_layers(mlp, x))


def test_a_module_trains():
    mlp, x = module(), torch.randn(5, 64)
    mlp(x).square().sum().backward()
    found = [layer.weight.grad.values for layer in mlp.children()]
    mlp.zero_grad()
    by_layers(mlp, x).square().sum().backward()
    for layer, one in zip(mlp.children(), found):
        torch.testing.assert_close(layer.weight.grad.values, one)


def test_compiled_graphs_have_the_operator():
    mlp, x, found = module(), torch.randn(2, 64), []

    def backend(graph, _):
        found.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    with torch.no_grad():
        torch.compile(mlp, fullgraph=True, backend=backend)(x)
    assert any("gated_linear" in name for name in found)


def test_exports():
    mlp, x = module(), torch.randn(2, 64)
    graph = torch.export.export(mlp, (x,)).graph
    assert any("gated_linear" in str(node.target) for node in graph.nodes)
    text = export_mlir(mlp, (x,)).text
    assert text.count("x96xf32, #weight0>) outs") == 1 and "math.exp" in text
    made = to_importable(torch.export.export(mlp, (x,)))
    names = [str(node.target) for node in made.program.graph.nodes]
    assert not any("gated_linear" in name for name in names)


@pytest.mark.parametrize("storage", ["canonical", "bitmap"])
@pytest.mark.parametrize("tokens", [1, 9])
@needs_library
def test_kernels_read_halves_of_bitmaps(hopper, storage, tokens):
    """Through the emulator: what a GPU would be given, and would compute."""
    mlp = module("8:16").half()
    layer = mlp.gate_up_proj.store_(storage)
    spec = LinearSpec.parse(layer.spec.replace("none", "silu"))
    made = halved_ops.find_halves(spec, hopper)
    assert made.outputs == [96]
    assert [form.storage for form in made.forms] == ["bitmap"] * 2
    halves = halved_ops.halves_of(layer.components(), spec)
    for half in halves:
        for part, whole in zip(half, layer.components()):
            same = (
                part.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
            )
            assert same
    half = halved_ops.half_spec(spec)
    parts = shared_kernels._store(made, halves, (half, half))
    if storage == "bitmap":  # nothing is copied
        assert [[p.data_ptr() for p in one] for one in parts] == [
            [p.data_ptr() for p in one] for one in halves
        ]
    x = torch.randn(tokens, 64).half()
    stored = [form.store(one, storage) for form, one in zip(made.forms, halves)]
    for one, other in zip(stored, parts):
        assert all((as_bits(a) == as_bits(b)).all() for a, b in zip(one, other))
    as_given = [SimpleNamespace(store=lambda parts: parts)] * 2
    program = SimpleNamespace(
        program=made.program, outputs=made.outputs, forms=as_given
    )
    (found,) = emulated(program, x, stored, [])
    with torch.no_grad():
        wanted = GATED(x, layer.components(), spec.text)
    torch.testing.assert_close(found, wanted, rtol=0.02, atol=0.02)


@needs_library
def test_kernels_that_read_no_bitmaps_multiply_by_the_whole_weight(hopper):
    spec = LinearSpec("8:32, block = [1, 32]", (192, 64), "f16", "silu")
    assert halved_ops.has_halves(spec.encoding, 192)
    assert halved_ops.find_halves(spec, hopper) is None
    two = LinearSpec("[4:8, block = [1, 32]], [2:4]", (192, 64), "f16", "silu")
    assert halved_ops.find_halves(two, hopper) is None


def test_on_a_gpu_without_a_compiler_and_with_copies(monkeypatch):
    monkeypatch.setattr(shared_kernels, "find_gated", lambda *_: None)
    monkeypatch.setattr(kernels, "find_kernels", lambda *_: None)
    (x, weight, spec), dense = operands(ENCODINGS[0], 7, torch.float32)
    found = halved_ops._cuda(x, weight, spec)
    torch.testing.assert_close(found, GATED(x, weight, spec))
    layer = (weight, None, LinearSpec.parse(spec))
    (copied,) = products(x, [dense], [layer], "silu")
    torch.testing.assert_close(copied, found)


def test_uses_of_a_model(monkeypatch):
    """Weights are stored as the programs of fused modules read them."""

    class Phi(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_up_proj = packed(64, 192)
            self.down_proj = packed(96, 64)
            self.activation_fn = nn.SiLU()

        def forward(self, x):
            gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
            return self.down_proj(up * self.activation_fn(gate))

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = packed(64, 96, bias=True), packed(96, 64)
            self.act = nn.GELU()

        def forward(self, x):
            return self.fc2(self.act(self.fc1(x)))

    model = nn.Sequential(Phi(), Mlp()).eval()
    report = fuse_(model)
    assert [(row.kind, row.layers) for row in report.rows] == [
        ("gated MLP", ("gate_up_proj",)),
        ("activation", ("fc1",)),
    ]
    assert len(report.fused) == 2 and isinstance(model[0], HalvedMLP)
    names = {m: n for n, m in model.named_modules() if isinstance(m, NMLinear)}
    uses = find_uses(model, names)
    assert sorted(use.name for use in uses) == [
        "0.down_proj", "0.gate_up_proj", "1.fc1", "1.fc2",
    ]  # fmt: skip
    asked = []

    def find(spec, *_):
        asked.append((spec.shape, spec.activation))

    for module_, name in ((shared_kernels, "find_gated"), (kernels, "find_kernels")):
        monkeypatch.setattr(module_, name, find)
    monkeypatch.setattr(kernel_storage, "_is_on_gpu", lambda _: True)
    rows = store_for_kernels_(model).rows
    assert all("library is missing" in row.reason for row in rows)
    assert ((96, 64), "silu") in asked and ((96, 64), "gelu") in asked
    numbers = use_dense_(model, 7).dense_from
    assert set(numbers.values()) == {7}
    assert [row.dense_from for row in fuse_(model).rows] == [None, None]  # as they were


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("encoding", ["2:4", "8:16", "8:32, block = [1, 32]"])
def test_cuda(encoding):
    mlp = module(encoding, (256, 640)).half().cuda()
    for storage in ("canonical", "bitmap"):
        mlp.gate_up_proj.store_(storage)
        for tokens in (1, 7, 200, 513):
            x = torch.randn(tokens, 256, dtype=torch.float16, device="cuda")
            with torch.no_grad():
                first, last = (m.to_dense() for m in mlp.children())
                one, two = first(x).chunk(2, -1)
                wanted = last(F.silu(one) * two)
                torch.testing.assert_close(mlp(x), wanted, rtol=0.03, atol=0.03)
                compiled = torch.compile(mlp, backend="aot_eager")
                torch.testing.assert_close(compiled(x), wanted, rtol=0.03, atol=0.03)
            x.requires_grad_()
            torch.testing.assert_close(mlp(x), wanted, rtol=0.03, atol=0.03)

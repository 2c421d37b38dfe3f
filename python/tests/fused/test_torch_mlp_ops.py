# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator of a whole gated MLP, its kernels, and modules that use it."""

import copy

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from export_cases import needs_library  # noqa: E402
from shared_cases import (  # noqa: E402
    MLP,
    emulated,
    leaves,
    mlp_operands,
    operators,
    packed,
    parts_of,
)
from torch import nn  # noqa: E402
from torch_cases import ENCODINGS  # noqa: E402

from nm_sparse import Encoding, EncodingError  # noqa: E402
from nm_sparse.torch import LinearSpec, NMLinear  # noqa: E402
from nm_sparse.torch.layers import kernels, shared_kernels  # noqa: E402
from nm_sparse.torch.layers.mlp import GatedMLP  # noqa: E402
from nm_sparse.torch.layers.mlp_ops import mlp_specs  # noqa: E402
from nm_sparse.torch.layers.ops import activate  # noqa: E402
from nm_sparse.torch.weight.shared_spec import shared_text, whole_text  # noqa: E402
from nm_sparse.torch.weight.spec import ACTIVATIONS  # noqa: E402


@pytest.mark.parametrize("e", ENCODINGS, ids=str)
def test_it_is_three_dense_layers(e):
    for seed, activation in enumerate(ACTIVATIONS):
        operands, (gate, up, down) = mlp_operands(e, seed, activation=activation)
        x = operands[0]
        inside = activate(F.linear(x, gate), activation) * F.linear(x, up)
        torch.testing.assert_close(MLP(*operands), F.linear(inside, down))


def test_opcheck():
    (x, gate, up, down, spec), _ = mlp_operands(ENCODINGS[0], 2, torch.float32)
    weights = leaves(*gate), leaves(*up), leaves(*down)
    torch.library.opcheck(MLP, (*leaves(x), *weights, spec))


def test_gradients():
    (x, gate, up, down, spec), _ = mlp_operands(ENCODINGS[1], 3)

    def mlp(x, *values):
        weights = [[own, *rest[1:]] for own, rest in zip(values, (gate, up, down))]
        return MLP(x, *weights, spec)

    operands = leaves(x, gate[0], up[0], down[0])
    assert torch.autograd.gradcheck(mlp, operands, fast_mode=True)


def test_autocast():
    operands, _ = mlp_operands(ENCODINGS[0], 4, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        y = MLP(*operands)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), MLP(*operands), rtol=0.05, atol=0.1)


def test_wrong_operands_are_named():
    x, gate, up, down, spec = mlp_operands(ENCODINGS[0], 5, torch.float32)[0]
    with pytest.raises(EncodingError, match="x has shape .*: a weight"):
        MLP(x[..., :-1], gate, up, down, spec)
    with pytest.raises(EncodingError, match="weight has components"):
        MLP(x, gate, up, down[:1], spec)
    first, _, last = mlp_specs(spec)
    for specs in ([first], [first, first, last], [first, first]):
        with pytest.raises(EncodingError, match=r"legal are \[N, K\] of gate and up"):
            MLP(x, gate, up, down, shared_text(specs))


def module(encoding="4:8", down="2:4", sizes=(64, 96), **options):
    k, n = sizes
    layers = [packed(k, n, encoding, **options) for _ in range(2)]
    return GatedMLP(*layers, packed(n, k, down, **options)).eval()


def test_a_module_is_one_operator_while_down_is_packed():
    mlp = module()
    x = torch.randn(2, 3, 64)
    with torch.no_grad():
        wanted = mlp.down_proj(F.silu(mlp.gate_proj(x)) * mlp.up_proj(x))
        torch.testing.assert_close(mlp(x), wanted)
    assert operators(lambda: mlp(x)) == ["mlp"]
    hooked = copy.deepcopy(mlp)
    hooked.down_proj.register_forward_hook(lambda *_: None)
    assert operators(lambda: hooked(x)) == ["gated_mlp", "linear"]
    for down in (
        nn.Linear(96, 64),
        packed(96, 64, bias=True),
        packed(96, 72),
        NMLinear.from_dense(nn.Linear(96, 64, bias=False), "2:4", activation="relu"),
    ):
        other = GatedMLP(mlp.gate_proj, mlp.up_proj, down).eval()
        assert not other.is_whole()
        assert operators(lambda other=other: other(x))[0] == "gated_mlp"
        with torch.no_grad():
            inside = F.silu(mlp.gate_proj(x)) * mlp.up_proj(x)
            torch.testing.assert_close(other(x), down(inside))


def test_products_of_sparse_tensor_cores_stay_apart():
    for first, second, is_whole in (
        ("2:4", "2:4", False),
        ("1:4", "2:4", False),
        ("2:4", "8:16", True),
        ("8:16", "2:4", True),
        ("2:4, block = [1, 16]", "2:4, block = [1, 16]", True),
        ("[4:8, block = [1, 64]], [2:4]", "[4:8, block = [1, 64]], [2:4]", True),
    ):
        assert module(first, second).is_whole() == is_whole, (first, second)


def test_a_module_trains_and_compiles():
    mlp = module()
    x = torch.randn(5, 64)
    mlp(x).square().sum().backward()
    found = [layer.weight.grad.values for layer in mlp.children()]
    mlp.zero_grad()
    plain = mlp.down_proj(F.silu(mlp.gate_proj(x)) * mlp.up_proj(x))
    plain.square().sum().backward()
    for layer, one in zip(mlp.children(), found):
        torch.testing.assert_close(layer.weight.grad.values, one)
    compiled = torch.compile(mlp, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), mlp(x))


@pytest.mark.parametrize("tokens", [1, 9])
@pytest.mark.parametrize(
    "patterns", [("8:32, block = [1, 32]", "8:32, block = [1, 32]"), ("2:4", "8:16")]
)
@needs_library
def test_compiled_kernels(hopper, patterns, tokens):
    """Through the emulator: what a GPU would be given, and would compute."""
    mlp = module(*patterns).half()
    specs = [LinearSpec.parse(layer.spec) for layer in mlp.children()]
    texts = [specs[0].text, specs[2].text]
    gate, _, down = mlp_specs(whole_text(*texts, "silu"))
    made = shared_kernels.find_mlp.__wrapped__(gate, down, hopper)
    assert made.outputs == [64] and len(made.forms) == 3
    x = torch.randn(tokens, 64).half()
    (found,) = emulated(made, x, [parts_of(layer) for layer in mlp.children()], [])
    with torch.no_grad():
        torch.testing.assert_close(found, mlp(x), rtol=0.02, atol=0.02)


def test_without_a_compiler_it_is_three_products(monkeypatch):
    monkeypatch.setattr(shared_kernels, "find_mlp", lambda *_: None)
    monkeypatch.setattr(shared_kernels, "find_gated", lambda *_: None)
    monkeypatch.setattr(kernels, "find_kernels", lambda *_: None)
    e = Encoding(2, 4, dim=1)
    x, gate, up, down, spec = mlp_operands(e, 7, torch.float32)[0]
    found = shared_kernels.run_mlp(x, (gate, up, down), mlp_specs(spec))
    torch.testing.assert_close(found, MLP(x, gate, up, down, spec))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("down", ["2:4", "8:16", "8:32, block = [1, 32]"])
def test_cuda(down):
    mlp = module("8:16", down, (256, 320)).half().cuda()
    for tokens in (1, 7, 200, 513):
        x = torch.randn(tokens, 256, dtype=torch.float16, device="cuda")
        with torch.no_grad():
            first, second, last = (m.to_dense() for m in mlp.children())
            wanted = last(F.silu(first(x)) * second(x))
            torch.testing.assert_close(mlp(x), wanted, rtol=0.03, atol=0.03)

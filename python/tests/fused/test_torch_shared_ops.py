# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of layers that share their input, and their kernels."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from export_cases import needs_library  # noqa: E402
from shared_cases import (  # noqa: E402
    GATED,
    SHARED,
    emulated,
    gated_operands,
    leaves,
    packed,
    parts_of,
    shared_operands,
)
from torch import nn  # noqa: E402
from torch_cases import ENCODINGS  # noqa: E402

from nm_sparse import Encoding, EncodingError  # noqa: E402
from nm_sparse.torch import LinearSpec  # noqa: E402
from nm_sparse.torch.layers import kernels, shared_kernels  # noqa: E402
from nm_sparse.torch.layers.mlp import GatedMLP, shared_linear  # noqa: E402
from nm_sparse.torch.layers.ops import activate  # noqa: E402
from nm_sparse.torch.weight.shared_spec import parse_shared, with_activation  # noqa: E402
from nm_sparse.torch.weight.spec import ACTIVATIONS  # noqa: E402

EACH = pytest.mark.parametrize("e", ENCODINGS, ids=str)


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


@needs_library
def test_compiled_kernels_of_a_gated_mlp(hopper):
    """Through the emulator: what a GPU would be given, and would compute."""
    x = torch.randn(1, 96).half()
    layers = [packed(96, 64, "8:32, block = [1, 32]").half() for _ in range(2)]
    text = with_activation(layers[0]._specs[torch.float16], "silu")
    made = shared_kernels.find_gated.__wrapped__(LinearSpec.parse(text), hopper)
    with torch.no_grad():
        (found,) = emulated(made, x, map(parts_of, layers), [])
        wanted = F.silu(layers[0](x)) * layers[1](x)
        torch.testing.assert_close(found, wanted, rtol=0.02, atol=0.02)


@needs_library
def test_compiled_kernels_of_shared_layers(hopper):
    x = torch.randn(3, 64).bfloat16()
    layers = [packed(64, n, "2:4", bias).bfloat16() for n, bias in ((40, 0), (32, 1))]
    specs = tuple(LinearSpec.parse(one._specs[x.dtype]) for one in layers)
    made = shared_kernels.find_shared.__wrapped__(specs, (False, True), hopper)
    with torch.no_grad():
        several = emulated(made, x, map(parts_of, layers), [layers[1].bias])
        for found, layer in zip(several, layers):
            torch.testing.assert_close(found, layer(x), rtol=0.02, atol=0.02)


class StandIn(shared_kernels.SharedKernels):
    """Kernels that multiply by the dense weights."""

    def __init__(self, specs, compute):
        names = [list(spec.components) for spec in specs]
        self.forms = [
            kernels.StoredForm(
                spec,
                {
                    "encoding": spec.encoding.mlir(),
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

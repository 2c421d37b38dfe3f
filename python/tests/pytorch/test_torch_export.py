# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of torch become MLIR that computes the same and that the compiler takes.

What needs a build is skipped without NM_BUILD_DIR.
"""

import json
import math
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from export_cases import check_same, needs_library, needs_tools, tool  # noqa: E402
from torch import nn  # noqa: E402
from torch_cases import ENCODINGS, ragged_shape  # noqa: E402

from nm_sparse.torch import NMLinear  # noqa: E402
from nm_sparse.torch.export import ExportError, export_mlir  # noqa: E402

BATCH, SEQUENCE = torch.export.Dim("batch"), torch.export.Dim("sequence")
TOLERANCE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def sparse(inputs, outputs, encoding="2:4", **options):
    return NMLinear.from_dense(nn.Linear(inputs, outputs), encoding, **options)


class Function(nn.Module):
    """A function as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Block(nn.Module):
    """Normalization, an MLP and a residual."""

    def __init__(self, hidden=64):
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.up = sparse(hidden, 96)
        self.down = sparse(96, hidden, "4:8, block = [1, 8]")

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


@needs_library
@pytest.mark.parametrize("seed", range(len(ENCODINGS)))
def test_layers_of_any_pattern(seed):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    n, k = ragged_shape(rng, ENCODINGS[seed])
    dtype = list(TOLERANCE)[seed % 3]
    activation = ("none", "relu", "gelu", "gelu_tanh", "silu")[seed % 5]
    layer = NMLinear.from_dense(
        nn.Linear(k, n, bias=seed % 2 == 0), ENCODINGS[seed], activation=activation
    ).to(dtype)
    shape = [int(size) for size in rng.integers(1, 5, seed % 4)]
    x = torch.randn(*shape, k, dtype=dtype)
    exported = check_same(layer, (x,), tolerance=TOLERANCE[dtype])
    kinds = [one.kind for one in exported.arguments]
    assert kinds == ["input"] + ["parameter"] * (seed % 2 == 0) + ["weight"]


@needs_library
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_batch_and_sequence_of_any_size(dtype):
    model = Block().to(dtype)
    inputs = [torch.randn(b, s, 64, dtype=dtype) for b, s in ((2, 5), (1, 1), (3, 7))]
    exported = check_same(
        model,
        (inputs[0],),
        ({0: BATCH, 1: SEQUENCE},),
        [(x,) for x in inputs[1:]],
        TOLERANCE[dtype],
    )
    assert "%x: tensor<?x?x64x" in exported.text


ELEMENTWISE = {
    "math": lambda x, y: torch.exp(x) * torch.rsqrt(y) + torch.log(y) / torch.sqrt(y),
    "waves": lambda x, y: torch.sin(x) - torch.cos(y) * torch.tanh(x).abs(),
    "gates": lambda x, y: F.relu(x) + torch.sigmoid(y) * F.silu(x) - F.gelu(y),
    "powers": lambda x, y: x**2 + x**3 - y**0.5 + y**1.7 + 2.0**x + y**-0.5,
    "numbers": lambda x, y: 3 - x * 2 + (y - 1) / 7 + (-x) + 1 / y,
    "alpha": lambda x, y: torch.add(x, y, alpha=3) - torch.sub(x, y, alpha=0.5),
    "bounds": lambda x, y: x.clamp(-0.5, 0.5) + y.clamp(min=1) + torch.maximum(x, y),
    "choice": lambda x, y: torch.where((x > 0) & ~(y < 1), x, y) + (x != y),
    "types": lambda x, y: (x.half() + y.half()).float() + x.double() * y.long(),
    "broadcast": lambda x, y: x[:, :1] * y + x[1] - y[:, 2:3] + torch.ones(5, 1, 1),
    "infinite": lambda x, y: torch.where(x > 0, x, -math.inf).exp() + y,
}


@needs_library
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name):
    torch.manual_seed(7)
    x, y = torch.randn(3, 4), torch.rand(3, 4) + 0.5
    rows = ({0: BATCH}, {0: BATCH}) if name in ("gates", "choice", "numbers") else None
    dynamic = None if rows is None else (rows,)
    others = [(torch.randn(6, 4), torch.rand(6, 4) + 0.5)] if rows else []
    check_same(Function(ELEMENTWISE[name]), (x, y), dynamic, others)


MOVES = {
    "views": lambda x: (x.reshape(-1, 6), x.unsqueeze(1), x.transpose(0, 1).flatten()),
    "permuted": lambda x: x.permute(2, 0, 1) * 2,
    "expanded": lambda x: x.unsqueeze(2).expand(-1, -1, 3, -1).reshape(x.shape[0], -1),
    "parts": lambda x: torch.cat([x[:, 1:], x[:, :-1], x[:, ::2]], dim=1),
    "last": lambda x: (x[:, -1], x[..., 2:4], x.select(2, -2)),
    "split": lambda x: x.split([1, 2, 1], dim=1),
    "chunks": lambda x: sum(x.chunk(2, dim=-1)),
    "sums": lambda x: (x.sum(), x.mean(-1), x.mean((0, 2), keepdim=True), x.amax(1)),
    "softmax": lambda x: (x.softmax(-1), x.softmax(0)),
    "variance": lambda x: (x.var(-1), x.var((1, 2), correction=0)),
    "norms": lambda x: (F.layer_norm(x, (4, 6)), F.rms_norm(x, (6,), eps=1e-6)),
    "running": lambda x: x.cumsum(1) + (x > 0).long().cumsum(-1) * (x > 2).any(1, True),
    "made": lambda x: (
        x + torch.arange(6) + torch.full((4, 1), 2.5) - torch.zeros_like(x)
    ),
    "picked": lambda x: (x[:, torch.tensor([2, 0, -1])], x[[0, 1], [1, 2]]),
    "mask": lambda x: x.masked_fill(torch.ones(4, 6, dtype=torch.bool).tril(), 0.0),
}


@needs_library
@pytest.mark.parametrize("name", MOVES)
def test_moves_and_reductions(name):
    torch.manual_seed(8)
    x = torch.randn(2, 4, 6)
    dynamic = None if name == "picked" else (({0: BATCH},),)
    others = [] if name == "picked" else [(x.repeat(3, 1, 1),)]
    check_same(Function(MOVES[name]), (x,), dynamic, others)


@needs_library
def test_products_of_dense_tensors():
    torch.manual_seed(9)
    layer = nn.Linear(6, 5)

    def products(x, w):
        y = layer(x) + F.linear(x, layer.weight)
        return y, x[0] @ w, torch.addmm(w[0], x[0], w), x @ x.transpose(1, 2)

    x, w = torch.randn(2, 4, 6), torch.randn(6, 5)
    check_same(Function(products), (x, w), (({0: BATCH}, {}),), [(x[:1], w)])
    half = Function(lambda a, b: a @ b)
    check_same(half, (x.half(), x.transpose(1, 2).half()), tolerance=4e-3)


@needs_library
def test_attention_and_embedding():
    torch.manual_seed(10)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(50, 64)
            self.qkv, self.out = sparse(64, 192), sparse(64, 64)
            self.register_buffer("scale", torch.tensor(0.5))

        def forward(self, tokens):
            x = self.table(tokens) * self.scale
            q, k, v = (
                one.view(*tokens.shape, 4, 16).transpose(1, 2)
                for one in self.qkv(x).chunk(3, dim=-1)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + self.out(y.transpose(1, 2).reshape(x.shape))

    tokens = [torch.randint(0, 50, shape) for shape in ((2, 5), (3, 9))]
    dynamic = ({0: BATCH, 1: SEQUENCE},)
    exported = check_same(Attention(), (tokens[0],), dynamic, [(tokens[1],)])
    assert "scale" not in exported.parameters  # a number is part of the text


@needs_library
def test_sizes_of_inputs_in_relation():
    double = {0: 2 * BATCH}
    model = Function(lambda x, y: x.reshape(-1, 2, 3).sum(1) + y)
    inputs = [(torch.randn(2 * n, 3), torch.randn(n, 3)) for n in (2, 5)]
    check_same(model, inputs[0], ((double, {0: BATCH}),), inputs[1:])
    alone = Function(lambda x: x.reshape(-1, 2, 3).sum(1))
    check_same(alone, inputs[0][:1], ((double,),), [inputs[1][:1]])


def test_arguments_name_what_they_are():
    exported = export_mlir(Block(), (torch.randn(2, 64),), ({0: BATCH},), "block")
    assert [(one.name, one.kind, one.target) for one in exported.arguments] == [
        ("x", "input", "x"),
        ("norm_weight", "parameter", "norm.weight"),
        ("norm_bias", "parameter", "norm.bias"),
        ("up_bias", "parameter", "up.bias"),
        ("down_bias", "parameter", "down.bias"),
        ("up_weight", "weight", "up"),
        ("down_weight", "weight", "down"),
    ]
    up = exported.arguments[-2]
    assert up.components == {"values": "up.values", "index": "up.index"}
    assert up.type == "tensor<96x64xf32, #weight0>"
    assert "#weight0 = #nm_sparse.encoding<2:4, dim = 1>" in exported.text
    assert exported.parameters["norm_bias"] == "norm.bias"
    assert exported.results == 1
    assert exported.text.count("func.func @block(") == 1


def test_a_weight_of_two_products_is_one_argument():
    layer = sparse(64, 64)
    exported = export_mlir(nn.Sequential(layer, layer), (torch.randn(2, 64),))
    assert [one.kind for one in exported.arguments] == ["input", "parameter", "weight"]
    assert exported.text.count("linalg.matmul") == 2


def test_operands_are_checked():
    exported = export_mlir(sparse(64, 64), (torch.randn(2, 64),))
    with pytest.raises(ExportError, match="2 tensors are given: legal are 1, for x"):
        exported.operands(torch.randn(2, 64), torch.randn(2, 64))


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        return x * 2


WRONG = {
    "sort": (Function(lambda x: x.sort()[0]), r"'sort', aten.sort.default.* at File .*"
             r"test_torch_export.py.*, is not known: legal is an operator of docs/Exp"),
    "buffer": (Counting(), r"changes calls \(BUFFER_MUTATION\): legal is a model that"),
    "shift": (Function(lambda x: x.int() & x.int()), "i32: legal is tensors of bool"),
    "sum": (Function(lambda x: x.int().sum()), "is of i32: legal is floats"),
    "complex": (Function(lambda x: x * 1j), "is torch.complex64: legal is torch.fl"),
    "power": (Function(lambda x: x.int() ** 2), "is of i32: legal is a power of f"),
    "integers": (Function(lambda x: x.int() @ x.int()), "i32, i32: legal is floats"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_has_no_form_is_named(name):
    model, message = WRONG[name]
    with pytest.raises(ExportError, match=message):
        export_mlir(model, (torch.ones(4, 4),))


def test_wrong_arguments_are_named():
    x = torch.ones(2, 64)
    with pytest.raises(ExportError, match=r"args is a tensor: legal is a tuple"):
        export_mlir(sparse(64, 64), x)
    with pytest.raises(ExportError, match="name is 'a b': legal is a name of MLIR"):
        export_mlir(sparse(64, 64), (x,), name="a b")


def test_computed_components_are_refused():
    layer = sparse(64, 64)

    def doubled(x):
        spec = layer._specs[torch.float32]
        parts = [layer.values * 2, layer.index]
        return torch.ops.nm_sparse.linear(x, parts, None, spec)

    twice = Function(doubled)
    twice.layer = layer
    with pytest.raises(ExportError, match="has the component mul, which is computed"):
        export_mlir(twice, (torch.ones(2, 64),))
    both = Function(lambda x: layer(x) + layer.values.sum())
    both.layer = layer
    with pytest.raises(ExportError, match="shares the component .* with aten.sum"):
        export_mlir(both, (torch.ones(2, 64),))


COMPILED = {
    "linear": (sparse(256, 512), (4, 256), None),
    "mlp": (
        nn.Sequential(
            sparse(256, 512, "8:32, block = [1, 64]"),
            nn.GELU(),
            sparse(512, 256, "8:32, block = [1, 64]"),
        ),
        (4, 256),
        {0: BATCH},
    ),
    "tokens": (
        nn.Sequential(sparse(64, 128), nn.ReLU(), sparse(128, 64)),
        (2, 3, 64),
        {0: BATCH, 1: SEQUENCE},
    ),
}


@needs_tools
@pytest.mark.parametrize("name", COMPILED)
def test_compiler_makes_kernels(name, tmp_path):
    model, shape, dynamic = COMPILED[name]
    x = torch.randn(shape).half()
    exported = export_mlir(model.half(), (x,), dynamic and (dynamic,))
    source, ptx, manifest = (tmp_path / n for n in ("in.mlir", "out.ptx", "out.json"))
    source.write_text(exported.text)
    assert "linalg.matmul" in tool("nm-opt", source)
    options = ["--tokens", "16"] if dynamic else []
    tool("nm-compile", source, "-o", ptx, "--manifest", manifest, *options)
    layers = [m for m in model.modules() if isinstance(m, NMLinear)]
    # Bias, activation and rounding are in the kernels of the products.
    assert len(re.findall(r"\.entry", ptx.read_text())) == len(layers)
    functions = json.loads(manifest.read_text())["functions"]
    assert len(functions[0]["weights"]) == len(layers)
    tool("nm-run", source, "--device", "cpu", "--check", "--size", "m=5")


@needs_tools
def test_host_code_stays_beside_kernels(tmp_path):
    """A layer normalization has no kernel; the products have theirs."""
    exported = export_mlir(Block(), (torch.randn(2, 3, 64),))
    source, ptx = tmp_path / "in.mlir", tmp_path / "out.ptx"
    source.write_text(exported.text)
    tool("nm-compile", source, "-o", ptx)
    assert len(re.findall(r"\.entry", ptx.read_text())) == 2
    tool("nm-run", source, "--device", "cpu", "--check")

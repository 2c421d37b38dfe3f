# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator nm_sparse::linear, and its gradients."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch_cases import ENCODINGS, as_array, random_weight  # noqa: E402

import nm_sparse as nm  # noqa: E402
from nm_sparse import Encoding, EncodingError, Level  # noqa: E402
from nm_sparse.torch import LinearSpec, packed_linear  # noqa: E402
from nm_sparse.torch.weight.spec import ACTIVATIONS, DTYPE_NAMES  # noqa: E402
from nm_sparse.torch.weight.storage import to_storage  # noqa: E402

EACH = pytest.mark.parametrize("e", ENCODINGS, ids=str)
LINEAR = torch.ops.nm_sparse.linear.default
FUNCTIONS = {
    "none": lambda y: y,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda y: F.gelu(y, approximate="tanh"),
    "silu": F.silu,
}
# Each is rounded to the type of x once, the reference sums of half types in float32.
TOLERANCES = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
}


def operands(e, seed, dtype=torch.float64, activation="none", shape=(3,), bias=True):
    """(x, components, bias, spec) for the operator, and the dense weight."""
    packed, dense = random_weight(e, seed, dtype)
    generator = torch.Generator().manual_seed(seed)
    n, k = packed.shape
    x = torch.randn(*shape, k, generator=generator, dtype=torch.float64).to(dtype)
    b = torch.randn(n, generator=generator, dtype=torch.float64).to(dtype)
    spec = LinearSpec(e, (n, k), DTYPE_NAMES[dtype], activation).text
    parts = list(packed.components.values())
    return (x, parts, b if bias else None, spec), dense


def differentiable(arguments):
    x, parts, bias, spec = arguments
    leaves = [tensor.clone().requires_grad_() for tensor in (x, parts[0])]
    bias = None if bias is None else bias.clone().requires_grad_()
    return leaves[0], [leaves[1], *parts[1:]], bias, spec


@EACH
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_it_is_the_dense_layer(e, dtype):
    for seed, activation in enumerate(ACTIVATIONS):
        arguments, dense = operands(e, seed, dtype, activation, (2, 5), seed % 2 == 0)
        x, _, bias, _ = arguments
        bias = None if bias is None else bias.double()
        y = LINEAR(*arguments)
        expected = FUNCTIONS[activation](F.linear(x.double(), dense.double(), bias))
        assert y.dtype == dtype and y.shape == expected.shape
        tolerance = TOLERANCES[dtype]
        torch.testing.assert_close(y.double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.int8])
@pytest.mark.parametrize("order", ["identity", "shuffled"])
def test_weights_of_8_bits(dtype, order):
    packed, dense = random_weight(Encoding(2, 4, (1, 2), 1, order), 5, dtype)
    x = torch.randn(4, packed.shape[1])
    y = packed_linear(x, packed)
    torch.testing.assert_close(y, F.linear(x, dense.float()))


@EACH
def test_opcheck(e):
    seed = ENCODINGS.index(e)
    activation, bias = ACTIVATIONS[seed % len(ACTIVATIONS)], seed % 2 == 0
    arguments, _ = operands(e, seed, torch.float32, activation, (2, 3), bias)
    torch.library.opcheck(LINEAR, differentiable(arguments))
    if seed == 0:
        torch.library.opcheck(LINEAR, arguments)


@EACH
def test_gradients(e):
    for seed, activation in enumerate(ACTIVATIONS):
        bias = seed % 2 == 0
        arguments, _ = operands(e, 10 + seed, activation=activation, bias=bias)
        x, parts, b, spec = differentiable(arguments)

        def layer(x, values, *bias, rest=parts[1:], spec=spec):
            return LINEAR(x, [values, *rest], bias[0] if bias else None, spec)

        leaves = (x, parts[0]) if b is None else (x, parts[0], b)
        assert torch.autograd.gradcheck(layer, leaves, fast_mode=True)
        if e is ENCODINGS[1]:
            assert torch.autograd.gradgradcheck(layer, leaves, fast_mode=True)


@EACH
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_are_the_masked_ones_of_the_dense_layer(e, dtype):
    arguments, dense = operands(e, 3, dtype, "relu", (4, 2))
    x, parts, bias, spec = differentiable(arguments)
    upstream = torch.randn(4, 2, len(dense)).to(dtype)
    LINEAR(x, parts, bias, spec).backward(upstream)
    wide = [t.detach().double().requires_grad_() for t in (x, dense, bias)]
    F.relu(F.linear(*wide)).backward(upstream.double())
    tolerance = {"rtol": TOLERANCES[dtype], "atol": 4 * TOLERANCES[dtype]}
    torch.testing.assert_close(x.grad.double(), wide[0].grad, **tolerance)
    torch.testing.assert_close(bias.grad.double(), wide[2].grad, **tolerance)
    s = LinearSpec.parse(spec)
    grads = dict(zip(nm.packed_shapes(e, s.shape), [parts[0].grad, *parts[1:]]))
    packed = nm.torch.PackedWeight.from_components(grads, e, s.shape)
    packed.validate()  # zero past the end of the weight
    kept = packed.to_dense()[dense != 0].double()
    torch.testing.assert_close(kept, wide[1].grad[dense != 0], **tolerance)


def test_only_what_is_needed_is_computed():
    arguments, _ = operands(ENCODINGS[0], 4)
    x, parts, bias, spec = differentiable(arguments)
    LINEAR(x, [part.detach() for part in parts], bias.detach(), spec).sum().backward()
    assert x.grad is not None and parts[0].grad is None and bias.grad is None
    LINEAR(x.detach(), parts, None, spec).sum().backward()
    assert parts[0].grad is not None
    LINEAR(x.detach(), arguments[1], bias, spec).sum().backward()
    assert torch.equal(bias.grad, torch.full_like(bias, len(x)))


@pytest.mark.parametrize("activation", ["none", "gelu"])
def test_any_batch_shape_and_strides(activation):
    packed, dense = random_weight(ENCODINGS[1], 6, torch.float32)
    n, k = packed.shape
    wide = torch.randn(3, 4, 2 * k)
    inputs = [
        torch.randn(k),
        torch.randn(0, k),
        torch.randn(2, 0, k),
        torch.randn(2, 3, 1, k),
        wide[..., ::2],
        torch.randn(k, 7).t(),
        torch.randn(1, k).expand(5, k),
    ]
    for x in inputs:
        leaf = x.detach().requires_grad_()
        y = packed_linear(leaf, packed, activation=activation)
        torch.testing.assert_close(y, FUNCTIONS[activation](F.linear(x, dense)))
        assert y.is_contiguous()
        y.sum().backward()
        assert leaf.grad.shape == x.shape


def test_weights_of_no_size():
    for shape in ((0, 8), (8, 0), (0, 0)):
        packed, dense = random_weight(ENCODINGS[0], 0, torch.float32, shape)
        x = torch.randn(2, shape[1])
        assert torch.equal(packed_linear(x, packed), F.linear(x, dense))


def test_it_is_the_weight_of_functional_linear():
    packed, dense = random_weight(ENCODINGS[4], 8, torch.float32)
    x, bias = torch.randn(5, packed.shape[1]), torch.randn(packed.shape[0])
    expected = F.linear(x, dense, bias)
    torch.testing.assert_close(F.linear(x, packed, bias), expected)
    torch.testing.assert_close(F.linear(x, weight=packed, bias=bias), expected)
    torch.testing.assert_close(torch.matmul(x, packed.T), x @ dense.T)
    with pytest.raises(TypeError, match="legal is a packed weight"):
        F.linear(packed, x)


def test_operands_must_fit():
    arguments, _ = operands(ENCODINGS[0], 1, torch.float32)
    x, parts, bias, spec = arguments
    n, k = LinearSpec.parse(spec).shape
    cases = [
        ((x[:, 1:], parts, bias, spec), rf"x has shape .* needs \[..., {k}\]"),
        ((x, parts[:1], bias, spec), "weight has components"),
        ((x.double(), parts, bias, spec), "x is torch.float64 and the weight torch.fl"),
        ((x, parts, bias[1:], spec), rf"bias is .* legal is \[{n}\] of torch.float32"),
        ((x, parts, bias.double(), spec), "bias is .* of torch.float64"),
        (
            (x, [parts[0].half(), parts[1]], bias, spec),
            r"of torch.float16, .*: the spec says values \[.*\] of torch.float32,",
        ),
        ((x, [parts[0], parts[1].long()], bias, spec), "of torch.int64: the spec says"),
        ((x, parts, bias, spec.replace("canonical", "code")), "storage is 'code'"),
        (
            (x, parts, bias, spec.replace("canonical", "bitmap")),
            r"the spec says values \[.*\] of torch.float32, bits \[.*\] of torch.int32",
        ),
        ((x, parts, bias, "linear"), "spec is 'linear'"),
        ((x.to("meta"), parts, bias, spec), "x is on meta and the weight on cpu"),
    ]
    for wrong, message in cases:
        with pytest.raises(EncodingError, match=message):
            LINEAR(*wrong)
        with pytest.raises(Exception, match=message):
            with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
                LINEAR(*wrong)
    packed, _ = random_weight(Encoding(2, 4, dim=1), 1, torch.int8)
    with pytest.raises(EncodingError, match="x is torch.int8: legal are float types"):
        packed_linear(torch.ones(1, packed.shape[1], dtype=torch.int8), packed)


@EACH
def test_compile(e):
    seed = ENCODINGS.index(e)
    dynamic, activation = seed % 2 == 0, ACTIVATIONS[-1 - seed % len(ACTIVATIONS)]
    arguments, _ = operands(e, seed, torch.float32, activation)
    x, parts, bias, spec = differentiable(arguments)

    def layer(x, parts, bias):
        return LINEAR(2 * x, parts, bias, spec) + 1

    torch._dynamo.reset()
    compiled = torch.compile(
        layer, backend="aot_eager", fullgraph=True, dynamic=dynamic
    )
    for tokens in (3, 5) if dynamic else (3,):
        rows = torch.randn(tokens, x.shape[1])
        y, expected = compiled(rows, parts, bias), layer(rows, parts, bias)
        torch.testing.assert_close(y, expected)
        grads = torch.autograd.grad(y.sum(), (parts[0], bias))
        same = torch.autograd.grad(expected.sum(), (parts[0], bias))
        torch.testing.assert_close(grads, same)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    arguments, dense = operands(ENCODINGS[1], 2, torch.float32, "silu")
    x, parts, bias, spec = differentiable(arguments)
    with torch.autocast("cpu", dtype=dtype):
        y = LINEAR(x, parts, bias, spec)
        compiled = torch.compile(LINEAR, backend="aot_eager", fullgraph=True)
        again = compiled(x, parts, bias, spec)
    assert y.dtype == again.dtype == dtype
    assert torch.equal(y, again)
    expected = F.silu(F.linear(x.to(dtype).float(), dense.to(dtype).float(), bias))
    tolerance = TOLERANCES[dtype]
    torch.testing.assert_close(y.float(), expected, rtol=tolerance, atol=tolerance)
    y.sum().backward()
    assert x.grad.dtype == parts[0].grad.dtype == bias.grad.dtype == torch.float32
    arguments, _ = operands(ENCODINGS[1], 2)
    with torch.autocast("cpu", dtype=dtype):
        assert LINEAR(*arguments).dtype == torch.float64


STORED = [
    Encoding(2, 4, dim=1),
    Encoding(4, 9, (1, 3), dim=1),
    Encoding(1, 2, (2, 40), dim=1),
    Encoding(3, 8, (1, 2), dim=1, order="shuffled"),
    Encoding(4, 8, (1, 32), dim=1, inner=Level(2, 4)),
]


@pytest.mark.parametrize("e", STORED, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
def test_bitmaps_are_those_of_the_reference(e, dtype):
    packed, _ = random_weight(e, 9, dtype, (41, 90))
    s = LinearSpec(e, packed.shape, DTYPE_NAMES[dtype])
    stored = to_storage(list(packed.components.values()), s, "bitmap")
    plain = packed.to_packed()
    inner, rows, outputs = nm.innermost_weight(e, 90, 41)
    index = plain.index if e.inner is None else plain.inner_index
    values, bits = nm.pack_bitmap(inner, plain.values, index, rows, outputs)
    assert np.array_equal(as_array(stored[0], values), values)
    at = 1 if e.inner is None else 2
    assert np.array_equal(as_array(stored[at], bits), bits)
    names = ["values", *(["index"] if e.inner else []), "bits"]
    assert len(stored) == len(names) + e.is_shuffled
    if e.is_shuffled:
        assert stored[-1] is packed.components["perm"]
    if e.inner is not None:
        assert stored[1] is packed.components["index"]
    assert to_storage(stored, s, "canonical") == stored


def test_storage_must_exist():
    packed, _ = random_weight(ENCODINGS[4], 1, torch.float32)
    s = LinearSpec(ENCODINGS[4], packed.shape, "f32")
    parts = list(packed.components.values())
    with pytest.raises(EncodingError, match="storage is 'code': legal is canonical"):
        to_storage(parts, s, "code")
    with pytest.raises(EncodingError, match=r"block is \[1, 8\]: bitmaps of two"):
        to_storage(parts, s, "bitmap")


@pytest.mark.parametrize("encoding", ["2:4", "2:3, block = [1, 4], order = shuffled"])
def test_vmap(encoding):
    layer = nm.torch.NMLinear.from_dense(torch.nn.Linear(12, 8), encoding)
    dense = layer.to_dense()
    x = torch.randn(5, 3, 12)
    close = torch.testing.assert_close
    close(torch.vmap(layer)(x), dense(x))
    close(torch.vmap(layer, in_dims=1, out_dims=1)(x), dense(x))
    bias = torch.randn(5, 8)
    for arguments, dims in (((x, bias), (0, 0)), ((x[0], bias), (None, 0))):
        found = torch.vmap(
            lambda x, b: torch.func.functional_call(layer, {"bias": b}, (x,)),
            in_dims=dims,
        )(*arguments)
        wanted = torch.stack(
            [
                torch.nn.functional.linear(
                    arguments[0] if dims[0] is None else x[i], dense.weight, bias[i]
                )
                for i in range(5)
            ]
        )
        close(found, wanted)
    values = torch.stack([layer.values, 2 * layer.values])
    rest, linear = layer.components()[1:], torch.ops.nm_sparse.linear
    found = torch.vmap(lambda v: linear(x, [v, *rest], layer.bias, layer.spec))(values)
    close(found, torch.stack([dense(x), 2 * dense(x) - dense.bias]))

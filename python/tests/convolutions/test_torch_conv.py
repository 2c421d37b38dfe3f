# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`NMConv2d`, its operator, and its kernels in the emulator."""

import copy
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from export_cases import needs_library  # noqa: E402
from shared_cases import as_bits, leaves  # noqa: E402
from torch import nn  # noqa: E402
from torch_cases import ENCODINGS  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.runtime.emulator import emulate  # noqa: E402
from nm_sparse.runtime.function import PreparedWeight  # noqa: E402
from nm_sparse.torch import Geometry, NMConv2d  # noqa: E402
from nm_sparse.torch.layers import conv_kernels, kernels  # noqa: E402
from nm_sparse.torch.layers.conv_geometry import as_kernel, as_matrix  # noqa: E402
from nm_sparse.torch.weight.spec import ACTIVATIONS  # noqa: E402

CONV = torch.ops.nm_sparse.conv2d.default
GEOMETRIES = [
    dict(kernel_size=3),
    dict(kernel_size=3, padding=1),
    dict(kernel_size=(2, 3), stride=(2, 1), padding=(0, 1)),
    dict(kernel_size=3, dilation=(1, 2), padding=2),
    dict(kernel_size=(2, 4), padding="same"),
    dict(kernel_size=3, padding="valid", stride=2),
    dict(kernel_size=1),
    dict(kernel_size=1, stride=2),
    dict(kernel_size=1, padding=1),
]


def conv(channels=8, outputs=12, seed=0, **options):
    torch.manual_seed(seed)
    return nn.Conv2d(channels, outputs, **options)


def images(batch=2, channels=8, height=7, width=9, dtype=torch.float32):
    return torch.randn(batch, channels, height, width).to(dtype)


@pytest.mark.parametrize("options", GEOMETRIES, ids=str)
def test_it_is_a_dense_convolution_of_the_pruned_weight(options):
    for seed, activation in enumerate(ACTIVATIONS):
        layer = NMConv2d.from_dense(
            conv(seed=seed, **options), "2:4", activation=activation
        )
        dense = layer.to_dense()
        for x in (images(), images(0), images(1)[0]):
            torch.testing.assert_close(layer(x), dense(x))
        x = images().contiguous(memory_format=torch.channels_last)
        y = layer(x)
        assert y.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(y, dense(x))
        assert layer(images()).is_contiguous()


@pytest.mark.parametrize("e", ENCODINGS, ids=str)
def test_encodings(e):
    layer = NMConv2d.from_dense(conv(16, 24, kernel_size=3, padding=1), e)
    x = images(channels=16)
    torch.testing.assert_close(layer(x), layer.to_dense()(x))
    assert layer.weight.shape == (24, 144)
    if not e.is_shuffled:  # bitmaps hold the same
        with torch.no_grad():
            y = layer(x)
            stored = layer.store_("bitmap") if e.block[1] % 32 == 0 else layer
            torch.testing.assert_close(stored(x), y)


def test_windows_are_channels_of_one_place():
    dense = conv(8, 4, kernel_size=3, bias=False)
    weight = NMConv2d.from_dense(dense, "2:4").to_dense().weight
    kept = (weight != 0).reshape(4, 2, 4, 3, 3).sum(2)
    assert torch.equal(kept, torch.full_like(kept, 2))
    largest = dense.weight.abs().reshape(4, 2, 4, 3, 3).topk(2, dim=2).values.sum()
    torch.testing.assert_close(weight.abs().sum(), largest)
    again = as_kernel(as_matrix(dense.weight), dense.kernel_size)
    assert torch.equal(again, dense.weight)


@pytest.mark.parametrize("options", GEOMETRIES, ids=str)
def test_patches_are_what_the_matrix_multiplies(options):
    dense = conv(**options)
    geometry, x = Geometry.of(dense), images()
    rows = torch.cat(list(geometry.chunks(x)))
    y = rows @ as_matrix(dense.weight).t() + dense.bias
    torch.testing.assert_close(y.permute(0, 3, 1, 2), dense(x))


@pytest.mark.parametrize("options", GEOMETRIES[::2], ids=str)
@pytest.mark.parametrize("activation", ["none", "relu", "gelu_tanh"])
def test_gradients_are_those_of_the_dense_layer(options, activation):
    layer = NMConv2d.from_dense(conv(**options), "2:4", activation=activation)
    layer = layer.double()
    dense = layer.to_dense()
    inner = dense[0] if isinstance(dense, nn.Sequential) else dense
    x = images(dtype=torch.float64).requires_grad_()
    other = x.detach().clone().requires_grad_()
    layer(x).square().sum().backward()
    dense(other).square().sum().backward()
    torch.testing.assert_close(x.grad, other.grad)
    torch.testing.assert_close(layer.bias.grad, inner.bias.grad)
    kept = layer.weight.detach().to_dense() != 0
    wanted = as_matrix(inner.weight.grad) * kept
    torch.testing.assert_close(layer.weight.grad.to_dense(), wanted)


def operands(e, dtype=torch.float64, residual=True, **options):
    layer = NMConv2d.from_dense(conv(16, 24, **options), e, activation="silu").to(dtype)
    x = images(channels=16, dtype=dtype)
    with torch.no_grad():
        other = torch.randn_like(layer(x)) if residual else None
    g, spec = layer.geometry, layer.weight.spec.text.replace("none", "silu")
    parts = [one.detach() for one in layer.components()]
    own = (g.kernel, g.stride, g.padding, g.dilation, spec)
    return (x, parts, layer.bias.detach(), other, *own), layer


@pytest.mark.parametrize("e", ENCODINGS[::3], ids=str)
def test_opcheck_and_gradcheck(e):
    own, layer = operands(e, kernel_size=(3, 2), padding=1)
    x, parts, bias, residual, *rest = own
    torch.testing.assert_close(CONV(*own), F.silu(layer.to_dense()[0](x) + residual))
    leaf = leaves(x, *parts, bias, residual)
    given = (leaf[0], leaf[1:-2], *leaf[-2:], *rest)
    torch.library.opcheck(CONV, given)
    last = x.contiguous(memory_format=torch.channels_last)
    torch.library.opcheck(CONV, (last, parts, None, None, *rest))

    def run(x, values, bias, residual):
        return CONV(x, [values, *parts[1:]], bias, residual, *rest)

    small = leaves(x, parts[0], bias, residual)
    assert torch.autograd.gradcheck(run, small, fast_mode=True)


def test_autocast():
    layer = NMConv2d.from_dense(conv(kernel_size=3), "2:4")
    x = images()
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), layer(x), rtol=0.05, atol=0.1)


def test_layers_are_saved_copied_compiled_and_cast():
    dense = conv(kernel_size=3, padding=1)
    dense.weight.requires_grad_(False)
    layer = NMConv2d.from_dense(dense, "2:4").eval()
    assert not layer.weight.requires_grad and layer.bias.requires_grad
    x = images()
    y = layer(x)
    state = layer.state_dict()
    assert list(state) == ["bias", "values", "index", "_extra_state"] or set(state) == {
        "bias",
        "values",
        "index",
        "_extra_state",
    }
    other = NMConv2d(8, 12, Geometry.of(dense), "2:4")
    other.load_state_dict(state)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    others = [
        other,
        copy.deepcopy(layer),
        pickle.loads(pickle.dumps(layer)),
        torch.load(file, weights_only=False),
        torch.compile(layer, fullgraph=True, backend="aot_eager"),
        NMConv2d.from_packed(layer.weight, layer.bias, layer.geometry),
    ]
    for one in others:
        torch.testing.assert_close(one(x), y)
    half = copy.deepcopy(layer).bfloat16()
    torch.testing.assert_close(half(x.bfloat16()).float(), y, rtol=0.05, atol=0.1)
    stored = copy.deepcopy(layer).store_("bitmap")
    assert stored.storage == "bitmap" and list(stored.state_dict()) == list(state)
    torch.testing.assert_close(stored(x), y)
    assert "kernel_size=(3, 3)" in str(layer) and "encoding='2:4'" in str(layer)
    pointwise = NMConv2d(72, 12, Geometry((1, 1)), "2:4")
    with pytest.raises(RuntimeError, match=r"a kernel \[3, 3\], the layer a kernel"):
        pointwise.load_state_dict(state)


def test_what_does_not_fit_is_named():
    with pytest.raises(EncodingError, match="it has 2 groups"):
        NMConv2d.from_dense(conv(kernel_size=3, groups=2), "2:4")
    with pytest.raises(EncodingError, match="pads with reflect"):
        NMConv2d.from_dense(
            conv(kernel_size=3, padding=1, padding_mode="reflect"), "2:4"
        )
    layer = NMConv2d.from_dense(conv(kernel_size=3), "2:4")
    with pytest.raises(EncodingError, match=r"legal is \[B, 8, H, W\]"):
        layer(images(channels=4))
    with pytest.raises(EncodingError, match="x has 2 x 9 pixels: legal are as many"):
        layer(images(height=2))
    with pytest.raises(EncodingError, match="legal is the shape of the result"):
        layer(images(), images())
    with pytest.raises(EncodingError, match="activation is 'tanh'"):
        NMConv2d(8, 12, Geometry((3, 3)), "2:4", activation="tanh")
    with pytest.raises(EncodingError, match="padding is .*legal are as many zeros on"):
        NMConv2d(8, 12, Geometry((3, 3), padding=(0, 1, 0, 0)), "2:4")
    with pytest.raises(EncodingError, match="stride is .*legal are 2 numbers from 1"):
        Geometry.make((3, 3), (0, 1), (0, 0, 0, 0), (1, 1))


@pytest.fixture
def emulator(hopper, monkeypatch):
    """Has programs of convolutions run in the emulator, on tensors of the CPU."""
    calls = []

    def run(made, images, parts, addends, stream):
        calls.append(made)
        n, rows, columns = made.outputs
        size = (images.shape[0], rows, columns, n)
        whole = PreparedWeight(tuple(map(as_bits, parts)), None)
        rest = [as_bits(one) for one in addends]
        if made.has_out:
            empty = as_bits(images.new_zeros(size))
            rest.append(np.full_like(empty, np.nan) if empty.dtype.kind == "f"
                        else empty)  # fmt: skip
        (found,) = emulate(made.program, as_bits(images), whole, *rest)
        return torch.from_numpy(found).view(images.dtype)

    monkeypatch.setattr(conv_kernels.ConvKernels, "__call__", run)
    monkeypatch.setattr(kernels, "stream_of", lambda x: 0)
    monkeypatch.setattr(kernels, "find_kernels", lambda *_: None)
    conv_kernels.find_conv.cache_clear()
    yield calls
    conv_kernels.find_conv.cache_clear()


CASES = [
    ("2:4, block = [16, 32]", torch.float16, dict(kernel_size=3, padding=1)),
    ("1:2, block = [16, 16]", torch.bfloat16, dict(kernel_size=(2, 3), stride=2)),
    ("8:16, block = [1, 32]", torch.float16, dict(kernel_size=3, dilation=2)),
    ("[4:8, block = [1, 32]], [2:4]", torch.float16, dict(kernel_size=2, padding=1)),
    ("2:4", torch.float16, dict(kernel_size=3, padding=1)),
    ("1:4", torch.bfloat16, dict(kernel_size=(3, 2), stride=2, padding=1)),
    ("8:16", torch.float32, dict(kernel_size=(2, 4), padding="same")),
    ("2:4, block = [1, 4], order = shuffled", torch.float16, dict(kernel_size=3)),
    ("8:16, block = [1, 32]", torch.float16, dict(kernel_size=1, stride=2)),
]


@pytest.mark.parametrize(
    "encoding, dtype, options", CASES, ids=[f"{c[0]}-{c[2]}" for c in CASES]
)
@needs_library
def test_kernels(emulator, encoding, dtype, options):
    """What runs on a GPU, with the kernels of programs in the emulator."""
    dense = conv(32, 64, **options)
    layer = NMConv2d.from_dense(dense, encoding, activation="relu").to(dtype)
    gathers = "32]" in encoding or "16]" in encoding
    copies = encoding in ("2:4", "1:4")
    is_program = (gathers or copies) and options["kernel_size"] != 1
    for seed, last in enumerate((False, True)):
        torch.manual_seed(seed)
        x = images(1 + seed, channels=32, height=6, width=5, dtype=dtype)
        if last:
            x = x.contiguous(memory_format=torch.channels_last)
        with torch.no_grad():
            wanted = layer(x)
            residual = torch.randn_like(wanted)
            added = layer(x, residual)
        spec = layer.weight.spec.parse(layer.weight.spec.text.replace("none", "relu"))
        own = (layer.geometry, spec)
        parts, bias = layer.components(), layer.bias
        for other, result in ((None, wanted), (residual, added)):
            found = conv_kernels.run_conv(x, parts, bias, other, *own)
            torch.testing.assert_close(found, result, rtol=0.02, atol=0.02)
            assert found.stride() == result.stride()
    assert len(emulator) == (4 if is_program else 0)


@needs_library
def test_lines_of_channels_are_copied_in_bulk(emulator):
    """64 channels of 16 bits are a line, which the tensor memory accelerator reads."""
    layer = NMConv2d.from_dense(conv(64, 40, kernel_size=3, padding=1), "2:4").half()
    x = images(2, channels=64, height=5, width=9, dtype=torch.float16)
    with torch.no_grad():
        wanted = layer(x)
        own = (layer.geometry, layer.weight.spec)
        found = conv_kernels.run_conv(x, layer.components(), layer.bias, None, *own)
    torch.testing.assert_close(found, wanted, rtol=0.02, atol=0.02)
    (made,) = emulator
    assert "im2col" in made.program.manifest_text


def test_programs_that_cannot_be_compiled_are_done_without(emulator):
    """By a product with patches: panels of 8 outputs have no program that transposes
    its result."""
    layer = NMConv2d.from_dense(conv(32, 64, kernel_size=3), "8:32, block = [1, 8]")
    x = images(channels=32)
    with torch.no_grad():
        wanted = layer(x)
        found = conv_kernels.run_conv(
            x, layer.components(), layer.bias, None, layer.geometry, layer.weight.spec
        )
    torch.testing.assert_close(found, wanted)
    assert emulator == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[2]}")
def test_cuda(case):
    encoding, dtype, options = case
    layer = NMConv2d.from_dense(conv(64, 128, **options), encoding, activation="silu")
    layer = layer.to(dtype).cuda()
    dense = layer.to_dense()
    for batch, height, width in ((1, 14, 14), (3, 17, 10), (16, 28, 28)):
        x = images(batch, 64, height, width, dtype).cuda()
        for one in (x, x.contiguous(memory_format=torch.channels_last)):
            with torch.no_grad():
                y, wanted = layer(one), dense(one)
                residual = torch.randn_like(y)
                added = layer(one, residual)
                torch.testing.assert_close(y, wanted, rtol=0.03, atol=0.03)
                inner = dense[0](one).float() + residual.float()
                silu = F.silu(inner).to(dtype)
                torch.testing.assert_close(added, silu, rtol=0.03, atol=0.03)
    x = x.requires_grad_()
    layer(x).float().square().mean().backward()
    other = x.detach().clone().requires_grad_()
    dense(other).float().square().mean().backward()
    torch.testing.assert_close(x.grad, other.grad, rtol=0.05, atol=1e-3)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed forms made of each other, and operators that take bitmaps."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from storage_cases import draw_weight, random_bits, same_bits  # noqa: E402
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch_cases import as_array, random_weight  # noqa: E402

import nm_sparse as nm  # noqa: E402
from nm_sparse import Encoding, EncodingError, Level  # noqa: E402
from nm_sparse.torch import LinearSpec  # noqa: E402
from nm_sparse.torch.weight import storage  # noqa: E402
from nm_sparse.torch.weight.shared_spec import shared_text  # noqa: E402
from nm_sparse.torch.weight.spec import DTYPE_NAMES  # noqa: E402
from nm_sparse.torch.weight.storage import from_storage, to_storage  # noqa: E402

LINEAR = torch.ops.nm_sparse.linear.default
TWO = Encoding(4, 8, (1, 32), dim=1, inner=Level(2, 4))


def specs_of(packed, activation="none"):
    """Those of a weight in canonical form, and as bitmaps."""
    name = DTYPE_NAMES[packed.dtype]
    return [
        LinearSpec(packed.encoding, packed.shape, name, activation, form)
        for form in ("canonical", "bitmap")
    ]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("size", [1, 1 << 21])
def test_forms_go_back_and_forth(seed, size, monkeypatch):
    monkeypatch.setattr(storage, "_SLICE", size)
    packed = draw_weight(seed)
    canonical, bitmap = specs_of(packed)
    parts = list(packed.components.values())
    stored = to_storage(parts, canonical, "bitmap")
    assert [(part.shape, part.dtype) for part in stored] == [
        *bitmap.components.values()
    ]
    plain = packed.to_packed()
    inner, rows, outputs = nm.innermost_weight(packed.encoding, *packed.shape[::-1])
    index = list(plain.components.values())[len(packed.encoding.levels)]
    values, bits = nm.pack_bitmap(inner, plain.values, index, rows, outputs)
    assert as_array(stored[0], values).tobytes() == values.tobytes()
    at = list(bitmap.components).index("bits")
    assert np.array_equal(as_array(stored[at], bits), bits)
    back = from_storage(stored, bitmap)
    assert all(map(same_bits, back, parts)) and len(back) == len(parts)
    fake = [part.to("meta") for part in stored]
    for found, wanted in zip(from_storage(fake, bitmap), back):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)


@pytest.mark.parametrize("shape", [(0, 8), (8, 0), (0, 0)])
def test_empty_weights(shape):
    packed, _ = random_weight(Encoding(2, 4, dim=1), 0, torch.float16, shape)
    canonical, bitmap = specs_of(packed)
    parts = list(packed.components.values())
    back = from_storage(to_storage(parts, canonical, "bitmap"), bitmap)
    assert all(map(same_bits, back, parts))


class Peak(TorchDispatchMode):
    """The most bytes of tensors that live at once, of those that are made in it."""

    def __init__(self, *known):
        super().__init__()
        self.live, self.most = {}, 0
        self.known = {StorageWeakRef(one.untyped_storage()).cdata for one in known}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for one in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(one, torch.Tensor):
                memory = StorageWeakRef(one.untyped_storage())
                if memory.cdata not in self.known:
                    self.live[memory.cdata] = (memory, one.untyped_storage().nbytes())
        self.live = {k: x for k, x in self.live.items() if not x[0].expired()}
        self.most = max(self.most, sum(size for _, size in self.live.values()))
        return result


@pytest.mark.parametrize("text", ["2:4", "8:16", "8:32, block = [1, 128]"])
def test_memory_between_the_forms(text, monkeypatch):
    monkeypatch.setattr(storage, "_SLICE", 1 << 14)
    e = Encoding(text, dim=1)
    packed = random_bits(e, (512, 1024), torch.float16, np.random.default_rng(0))
    canonical, bitmap = specs_of(packed)
    operands = nm.innermost_weight(canonical.encoding, 1024, 512)
    parts = list(packed.components.values())
    with Peak(*parts) as packing:
        stored = storage._pack(*parts, *operands)
    with Peak(*stored) as unpacking:
        storage._unpack(*stored, *operands)
    dense = 512 * 1024 * 2
    results = [sum(part.nbytes for part in one) for one in (stored, parts)]
    for mode, result in zip((packing, unpacking), results):
        # What they return, and slices.
        assert result <= mode.most < result + dense / 2 < 1.5 * dense


def operands(packed, activation="none", form="bitmap"):
    canonical, bitmap = specs_of(packed, activation)
    parts = list(packed.components.values())
    x = torch.randn(2, 3, packed.shape[1], dtype=torch.float64).to(packed.dtype)
    bias = torch.randn(packed.shape[0]).to(packed.dtype)
    if form == "canonical":
        return x, parts, bias, canonical.text
    return x, to_storage(parts, canonical, "bitmap"), bias, bitmap.text


ENCODINGS = [
    Encoding(2, 4, dim=1),
    Encoding(3, 7, (2, 5), dim=1),
    Encoding(2, 4, (1, 3), dim=1, order="shuffled"),
    TWO,
]
EACH = pytest.mark.parametrize("e", ENCODINGS, ids=str)


@EACH
def test_the_operator_takes_bitmaps(e):
    packed, dense = random_weight(e, 2, torch.float32, (45, 50))
    for activation in ("none", "relu", "silu"):
        x, parts, bias, spec = operands(packed, activation)
        canonical = LinearSpec.parse(spec).canonical.text
        same = LINEAR(x, list(packed.components.values()), bias, canonical)
        assert torch.equal(LINEAR(x, parts, bias, spec), same)
        x.requires_grad_()
        y = LINEAR(x, parts, bias, spec)
        (grad,) = torch.autograd.grad(y.square().sum(), x)
        z = LINEAR(x, list(packed.components.values()), bias, canonical)
        (wanted,) = torch.autograd.grad(z.square().sum(), x)
        torch.testing.assert_close(grad, wanted)
    torch.library.opcheck(LINEAR, (x, parts, bias.requires_grad_(), spec))
    compiled = torch.compile(LINEAR, backend="aot_eager", fullgraph=True)
    y = compiled(x, parts, bias, spec)
    assert torch.equal(y, LINEAR(x, parts, bias, spec))
    (grad,) = torch.autograd.grad(y.square().sum(), x)
    torch.testing.assert_close(grad, wanted)


def test_the_operator_that_unpacks():
    packed, _ = random_weight(TWO, 4, torch.float16, (45, 50))
    _, parts, _, spec = operands(packed)
    torch.library.opcheck(
        torch.ops.nm_sparse.unpack_bitmap.default, (parts[0], parts[2], spec)
    )


def test_bitmaps_are_not_trained():
    packed, _ = random_weight(ENCODINGS[0], 3, torch.float32)
    x, parts, bias, spec = operands(packed)
    parts[0].requires_grad_()
    message = r"values ask for gradients, .* call store_\('canonical'\)"
    with pytest.raises(EncodingError, match=message):
        LINEAR(x, parts, bias, spec)
    with torch.autocast("cpu", torch.bfloat16):
        with pytest.raises(EncodingError, match=message):
            LINEAR(x, parts, bias, spec)
    with torch.no_grad():
        LINEAR(x, parts, bias, spec)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_autocast(dtype):
    """With elements of another size, and of the same."""
    packed, _ = random_weight(ENCODINGS[2], 5, dtype)
    x, parts, bias, spec = operands(packed)
    canonical = list(packed.components.values())
    with torch.autocast("cpu", torch.bfloat16):
        y = LINEAR(x, parts, bias, spec)
        wanted = LINEAR(x, canonical, bias, LinearSpec.parse(spec).canonical.text)
    assert y.dtype == torch.bfloat16 and torch.equal(y, wanted)


def test_wrong_bitmaps_are_named():
    packed, _ = random_weight(ENCODINGS[0], 6, torch.float32)
    x, parts, bias, spec = operands(packed)
    legal = r"the spec says values \[1, 1, 512\] of torch.float32, bits \[1, 1, 32\]"
    for wrong in (
        parts[:1],
        [parts[0], parts[1][..., 1:]],
        [parts[0], parts[1].long()],
        [parts[0].half(), parts[1]],
        list(packed.components.values()),
    ):
        with pytest.raises(EncodingError, match=legal):
            LINEAR(x, wrong, bias, spec)
    with pytest.raises(EncodingError, match="storage is 'code': legal is canonical, b"):
        LINEAR(x, parts, bias, spec.replace("bitmap", "code"))
    with pytest.raises(EncodingError, match="values are torch.float64: legal in b"):
        LINEAR(x, parts, bias, spec.replace("f32", "f64"))
    inner = Encoding(4, 8, (1, 8), dim=1, inner=Level(2, 4))
    with pytest.raises(EncodingError, match=r"block is \[1, 8\]: bitmaps of two"):
        LinearSpec(inner, (8, 8), "f16", storage="bitmap")


def test_shared_operators_take_bitmaps():
    first, _ = random_weight(TWO, 7, torch.float32, (40, 24))
    second, _ = random_weight(ENCODINGS[2], 8, torch.float32, (12, 24))
    x, gate, _, spec = operands(first, "silu")
    gated = torch.ops.nm_sparse.gated_mlp.default
    one = F.linear(x, first.to_dense())
    torch.testing.assert_close(gated(x, gate, gate, spec), F.silu(one) * one)
    torch.library.opcheck(gated, (x.clone().requires_grad_(), gate, gate, spec))
    shared = torch.ops.nm_sparse.linear_shared.default
    _, parts, bias, other = operands(second, form="canonical")
    specs = [LinearSpec.parse(text) for text in (spec, other)]
    arguments = ([*gate, *parts], [len(gate), len(parts)], [None, bias])
    found = shared(x, *arguments, shared_text(specs))
    torch.testing.assert_close(found[0], F.silu(one))
    torch.testing.assert_close(found[1], F.linear(x, second.to_dense(), bias))
    x.requires_grad_()
    torch.library.opcheck(shared, (x, *arguments, shared_text(specs)))
    with torch.autocast("cpu", torch.bfloat16):
        half = gated(x, gate, gate, spec)
        several = shared(x, *arguments, shared_text(specs))
    torch.testing.assert_close(half.float(), F.silu(one) * one, rtol=0.1, atol=0.1)
    for y, wanted in zip(several, found):
        torch.testing.assert_close(y.float(), wanted, rtol=0.1, atol=0.1)

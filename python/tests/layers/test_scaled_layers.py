# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of layers whose x and weights have 8 bits and scales, in the emulator."""

import json

import numpy as np
import pytest

from nm_sparse import Encoding, EncodingError, encode, prune
from nm_sparse.bindings import library
from nm_sparse.gated_mlp import gated_mlp_mlir
from nm_sparse.layers.specs import LinearSpec
from nm_sparse.linear_shared import SharedLayer, linear_shared_mlir
from nm_sparse.reference import _numbers
from nm_sparse.runtime.emulator import emulate
from nm_sparse.runtime.program import compile

pytestmark = pytest.mark.slow
needs_library = pytest.mark.skipif(
    not library.available(), reason="no library of nm_sparse"
)

TYPES = ("f8E4M3FN", "i8")
# Element-wise, two levels that are 2:4 as well, two levels that are not, and a pattern
# that has no kernels for sparse tensor cores.
ENCODINGS = (
    "2:4, dim = 1",
    "[4:8, block = [1, 32]], [2:4], dim = 1",
    "[4:5, block = [1, 32]], [2:4], dim = 1",
    "8:16, dim = 1",
)


def draw(rng, shape, dtype):
    """Elements of 8 bits, of all sizes, and the numbers that they are."""
    if dtype == "i8":
        elements = rng.integers(-127, 128, shape, dtype=np.int8)
        return elements, elements.astype(np.float64)
    codes = rng.integers(0, 256, shape, dtype=np.uint8)
    codes[(codes & 0x7F) == 0x7F] = 0x7E  # a NaN
    return codes, _numbers(codes, dtype).astype(np.float64)


def draw_weight(rng, shape, text, dtype):
    """A packed weight, and its numbers."""
    e = Encoding.parse(text)
    mask = prune(rng.standard_normal(shape).astype(np.float32), e) != 0
    elements, numbers = draw(rng, shape, dtype)
    elements[~mask] = 0
    kind = {} if dtype == "i8" else {"dtype": dtype}
    return encode(elements, e, **kind), numbers * mask


def scales(rng, size):
    return (2.0 ** rng.uniform(-9, -4, size)).astype(np.float32)


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + np.exp(-x))


def bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def close(found, wanted, tolerance):
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert error <= tolerance


def compiled(source, tokens):
    return compile(source, chip="sm_90a", tokens=(tokens,))


@needs_library
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "tokens, x_scale", [(1, "token"), (70, "token"), (5, "tensor")]
)
def test_a_layer(encoding, dtype, tokens, x_scale):
    spec = LinearSpec(encoding, 72, 144, dtype, True, "gelu_tanh", "f16", x_scale)
    program = compiled(spec, tokens)
    check_layer(program, spec, tokens, 1e-3)
    functions = [one for one in program.manifest["functions"] if "launches" in one]
    assert all(len(one["launches"]) == 1 for one in functions)


def check_layer(program, spec, tokens, tolerance):
    """The results in f16 of random operands, with gelu_tanh."""
    rng = np.random.default_rng(tokens)
    x, wide = draw(rng, (tokens, spec.inputs), spec.dtype)
    weight, dense = draw_weight(rng, spec.shape, spec.encoding, spec.dtype)
    of_x = scales(rng, tokens if spec.x_scale == "token" else 1)
    of_outputs = scales(rng, spec.outputs)
    bias = rng.standard_normal(spec.outputs).astype(np.float16)
    y = (wide @ dense.T) * of_x[:, None]
    of_outputs *= np.float32(8 / np.abs(y * of_outputs).max())  # within the range
    wanted = gelu(y * of_outputs + bias)
    out = np.zeros(wanted.shape, np.float16)
    (found,) = emulate(program, x, weight, of_x, of_outputs, bias, out)
    close(found.astype(np.float64), wanted, tolerance)


TRANSFERS = "{x = bulk, values = bulk, index = bulk}"
SCHEDULES = (
    f"tile = [16, 64, 128], product = wgmma_sp<warps = 4>, transfers = {TRANSFERS}, "
    "pipeline = ring<stages = 2, producers = 4>, grid = flat<split_k = 2>",
    f"tile = [48, 64, 64], product = wgmma_sp<warps = 4, ahead = true>, transfers = "
    f"{TRANSFERS}, pipeline = ring<stages = 4, producers = 4>, "
    "grid = persistent<stream_k = true>",
)


@needs_library
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_parts_of_a_contraction(schedule, dtype):
    """Scales are applied to the whole sum."""
    spec = LinearSpec(ENCODINGS[0], 136, 1040, dtype, True, "gelu_tanh", "f16")
    config = f"{{nm_sparse.config = #nm_tile.schedule<{schedule}>}}"
    text = spec.mlir().replace("[#mk, #nk, #mn] ", f"[#mk, #nk, #mn] {config} ")
    program = compiled(text, 50)
    check_layer(program, spec, 50, 1e-3)


@needs_library
@pytest.mark.parametrize("dtype", TYPES)
def test_layers_of_one_input(dtype):
    rng = np.random.default_rng(3)
    tokens, k, sizes = 9, 128, (64, 32, 24)
    layers = [SharedLayer(n, ENCODINGS[0], at > 0) for at, n in enumerate(sizes)]
    text = linear_shared_mlir(k, layers, dtype, result="bf16")
    x, wide = draw(rng, (tokens, k), dtype)
    of_x = scales(rng, tokens)
    drawn = [draw_weight(rng, (n, k), ENCODINGS[0], dtype) for n in sizes]
    of_outputs = [scales(rng, n) for n in sizes]
    biases = [rng.integers(0x3F00, 0x4000, n).astype(np.uint16) for n in sizes[1:]]
    outs = [np.zeros((tokens, n), np.uint16) for n in sizes]
    weights = [packed for packed, _ in drawn]
    arguments = [x, *weights, of_x, *of_outputs, *biases, *outs]
    found = emulate(compiled(text, tokens), *arguments)
    added = [0, *map(bf16, biases)]
    for y, (_, dense), scale, bias in zip(found, drawn, of_outputs, added):
        wanted = (wide @ dense.T) * of_x[:, None] * scale + bias
        close(bf16(y), wanted, 5e-3)


@needs_library
@pytest.mark.parametrize("dtype", TYPES)
def test_a_gated_mlp(dtype):
    rng = np.random.default_rng(4)
    tokens, k, n = 6, 128, 64
    text = gated_mlp_mlir(k, n, ENCODINGS[0], dtype, result="f32")
    x, wide = draw(rng, (tokens, k), dtype)
    of_x = scales(rng, tokens)
    drawn = [draw_weight(rng, (n, k), ENCODINGS[0], dtype) for _ in range(2)]
    of_gate, of_up = scales(rng, n), scales(rng, n)
    gate, up = ((wide @ dense.T) * of_x[:, None] for _, dense in drawn)
    weights = [packed for packed, _ in drawn]
    out = np.zeros((tokens, n), np.float32)
    (found,) = emulate(compiled(text, tokens), x, *weights, of_x, of_gate, of_up, out)
    close(found, silu(gate * of_gate) * (up * of_up), 5e-4)


def test_specs_are_text():
    spec = LinearSpec("2:4, dim = 1", 64, 32, "i8", True, "gelu", "bf16", "tensor")
    assert LinearSpec.from_json(spec.to_json()) == spec
    old = {"encoding": "2:4, dim = 1", "outputs": 64, "inputs": 32}
    assert LinearSpec.from_json(json.dumps(old)) == LinearSpec(**old)
    assert "#row" not in LinearSpec(**old).mlir()


@pytest.mark.parametrize(
    "options, said",
    [
        ({"dtype": "i8"}, "dtype is 'i8': legal is f16, bf16, f32; with scales"),
        ({"dtype": "f16", "result": "bf16"}, "legal for that is f8E4M3FN, i8"),
        ({"dtype": "i8", "result": "f64"}, "result is 'f64': legal is f16, bf16, f32"),
        (
            {"dtype": "i8", "result": "f16", "x_scale": "row"},
            "x_scale is 'row': legal is token, tensor",
        ),
    ],
)
def test_wrong_types_are_named(options, said):
    for make in (
        lambda: LinearSpec("2:4, dim = 1", 8, 8, **options),
        lambda: gated_mlp_mlir(8, 8, "2:4, dim = 1", **options),
        lambda: linear_shared_mlir(8, [SharedLayer(8, "2:4, dim = 1")], **options),
    ):
        with pytest.raises(EncodingError, match=said):
            make()


def test_a_whole_mlp_has_no_scale_inside():
    with pytest.raises(EncodingError, match="quantize the result"):
        gated_mlp_mlir(8, 8, "2:4, dim = 1", "i8", down="2:4, dim = 1", result="f16")

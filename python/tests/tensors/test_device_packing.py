# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel that packs weights on a GPU, in the emulator: bit for bit what the host
packs, and the same errors. Skipped where there is no library of the compiler."""

import random

import numpy as np
import pytest
from strategies import TYPES, bits_of, random_bits

from nm_sparse import (
    Encoding,
    EncodingError,
    Level,
    Packed,
    PackedTensor,
    compile,
    decode,
    emulate,
    pack,
    prune,
)
from nm_sparse.bindings import library as native
from nm_sparse.bindings.library import RuntimeFailure
from nm_sparse.tensors import device_packing
from nm_sparse.tensors.device_packing import has_kernel, pack_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not native.available(), reason="no library of the compiler"),
]
PATTERNS = [(2, 4), (1, 2), (8, 16), (5, 13), (3, 3), (1, 7), (8, 32), (16, 64)]
BLOCKS = [(1, 1), (1, 1), (1, 8), (1, 5), (2, 2), (4, 16), (3, 1), (1, 64)]


def draw_case(seed):
    """A weight of random bits, without a pattern, its encoding and element type."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    (n, m), block = draw.choice(PATTERNS), draw.choice(BLOCKS)
    dtype = draw.choice(device_packing.DTYPES)
    sizes = [draw.randint(1, 90), draw.randint(1, 150)]
    if draw.random() < 0.3:  # whole reads of 16 bytes
        sizes = [16 * (size // 16 + 1) for size in sizes]
    shape = tuple(sizes if draw.random() < 0.7 else [draw.randint(1, 3), *sizes])
    encoding = Encoding(n, m, block, draw.choice((len(shape) - 2, len(shape) - 1)))
    weight = random_bits(rng, shape, dtype).view(TYPES[dtype][1])
    return weight, encoding, dtype


def with_pattern(weight, encoding, dtype, seed):
    """The weight with +0 in all but some n blocks of each window, drawn at random: of
    what they hold some blocks are zero, +0 or -0."""
    rng, (bk, bn) = np.random.default_rng(seed), encoding.block
    turned = encoding.dim == weight.ndim - 1
    rows = bits_of(weight).swapaxes(-1, -2) if turned else bits_of(weight)
    *lead, k, outputs = rows.shape
    windows, panels = -(-k // (encoding.m * bk)), -(-outputs // bn)
    order = rng.random((*lead, windows, encoding.m, panels)).argsort(axis=-2)
    kept = (order < encoding.n).reshape(*lead, windows * encoding.m, panels)
    kept = kept.repeat(bk, axis=-2).repeat(bn, axis=-1)[..., :k, :outputs]
    rows = np.where(kept, rows, 0)
    rows = rows.swapaxes(-1, -2) if turned else rows
    return np.ascontiguousarray(rows).view(weight.dtype)


def emulate_pack(weight, encoding, dtype):
    program = pack_program(encoding, weight.shape, dtype)
    return emulate(program, weight)


@pytest.mark.parametrize("seed", range(30))
def test_components_are_those_of_the_host(seed):
    dense, encoding, dtype = draw_case(seed)
    assert has_kernel(encoding, dense.shape, dtype)
    weight = with_pattern(dense, encoding, dtype, seed)
    host = pack(weight, encoding, dtype).components
    values, index = emulate_pack(weight, encoding, dtype)
    assert values.shape == host["values"].shape and index.shape == host["index"].shape
    assert np.array_equal(bits_of(values), bits_of(host["values"]))
    assert np.array_equal(bits_of(index), host["index"])


@pytest.mark.parametrize("seed", range(12))
def test_weights_without_the_pattern_are_refused_alike(seed):
    weight, encoding, dtype = draw_case(100 + seed)
    if seed % 2:  # in few windows
        mostly = with_pattern(weight, encoding, dtype, seed)
        at = np.random.default_rng(seed).random(weight.shape) < 0.02
        weight = np.where(at, weight, mostly)
    try:
        pack(weight, encoding, dtype)
    except EncodingError as error:
        said = str(error)
    else:  # no window has more than n blocks
        emulate_pack(weight, encoding, dtype)
        return
    if weight.ndim == 3 and weight.shape[0] == 1:
        said = said.replace(" of batch 0", "")
    with pytest.raises(EncodingError) as raised:
        emulate_pack(weight, encoding, dtype)
    assert str(raised.value) == said


def test_what_kernels_pack():
    f16 = (64, 128), "f16"
    assert has_kernel(Encoding("2:4", dim=1), *f16)
    assert has_kernel(Encoding("8:64", dim=0), *f16)
    assert not has_kernel(Encoding("8:65", dim=0), *f16)
    assert not has_kernel(Encoding.free(dim=1), *f16)
    assert not has_kernel(Encoding("2:4", dim=1, order="shuffled"), *f16)
    nested = Encoding(4, 8, (1, 64), 1, inner=Level(2, 4))
    assert not has_kernel(nested, *f16)
    assert not has_kernel(Encoding("2:4", dim=1), (64, 128), "f64")
    assert not has_kernel(Encoding("2:4", dim=1), (0, 128), "f16")
    with pytest.raises(EncodingError, match="rank 1"):
        has_kernel(Encoding("2:4", dim=1), (64,), "f16")


def test_programs_are_compiled_once():
    e = Encoding("2:4", dim=1)
    assert pack_program(e, (32, 64), "f16") is pack_program(e, (32, 64), "f16")
    assert pack_program(e, (32, 64), "f16") is not pack_program(e, (32, 64), "bf16")


TWO = """
#a = #nm_sparse.encoding<2:4, block = [1, 8], dim = 1>
#b = #nm_sparse.encoding<3:8, dim = 1>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @two(%x: tensor<?x64xf16>, %first: tensor<48x64xf16>,
    %second: tensor<40x48xf16>, %hidden: tensor<?x48xf16>, %out: tensor<?x40xf32>)
    -> tensor<?x40xf32> {
  %a = tensor.cast %first : tensor<48x64xf16> to tensor<48x64xf16, #a>
  %b = tensor.cast %second : tensor<40x48xf16> to tensor<40x48xf16, #b>
  %h = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%x, %a : tensor<?x64xf16>, tensor<48x64xf16, #a>)
      outs(%hidden : tensor<?x48xf16>) -> tensor<?x48xf16>
  %y = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%h, %b : tensor<?x48xf16>, tensor<40x48xf16, #b>)
      outs(%out : tensor<?x40xf32>) -> tensor<?x40xf32>
  return %y : tensor<?x40xf32>
}"""


def test_programs_that_pack_before_products():
    rng = np.random.default_rng(5)

    def draw(*shape):
        return (rng.standard_normal(shape) / 4).astype(np.float16)

    a, b = Encoding("2:4", block=(1, 8), dim=1), Encoding("3:8", dim=1)
    x, first, second = draw(9, 64), prune(draw(48, 64), a), prune(draw(40, 48), b)
    program = compile(TWO, options=["--pack=device"])
    assert [c["m"] for c in program.manifest["functions"][0]["checks"]] == [4, 8]
    # Launches alone would leave the checks out.
    assert program["two"].results_in == [4] and program["two"].direct(None) is None
    hidden, out = np.zeros((9, 48), np.float16), np.zeros((9, 40), np.float32)
    (y,) = emulate(program, x, first, second, hidden, out)
    h = (x.astype(np.float64) @ first.T).astype(np.float16)
    np.testing.assert_allclose(y, h.astype(np.float64) @ second.T, rtol=1e-2, atol=1e-2)
    dense = draw(40, 48)
    with pytest.raises(EncodingError) as host:
        pack(dense, b)
    with pytest.raises(EncodingError) as raised:
        emulate(program, x, first, dense, hidden, out)
    assert str(raised.value) == str(host.value)


ANY = """
#w = #nm_sparse.encoding<8:32, block = [1, 128], dim = 1>
func.func @any(%x: tensor<?x64xf16>, %w: tensor<256x64xf16>, %out: tensor<?x256xf16>)
    -> tensor<?x256xf16> {
  %e = tensor.cast %w : tensor<256x64xf16> to tensor<256x64xf16, #w>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %e : tensor<?x64xf16>, tensor<256x64xf16, #w>)
      outs(%out : tensor<?x256xf16>) -> tensor<?x256xf16>
  return %y : tensor<?x256xf16>
}"""


def test_programs_that_select_by_tokens_check_too():
    program = compile(ANY, tokens=(8, 4096), options=["--pack=device"])
    assert "cases" in program.manifest["functions"][0]
    assert program.manifest["manifest_version"] == 4
    assert program["any"].direct(None) is None
    dense = np.random.default_rng(1).standard_normal((256, 64)).astype(np.float16)
    weight = prune(dense, Encoding(8, 32, (1, 128), 1))
    x, out = np.ones((2, 64), np.float16), np.zeros((2, 256), np.float16)
    (y,) = emulate(program, x, weight, out)
    wanted = x.astype(np.float64) @ weight.astype(np.float64).T
    np.testing.assert_allclose(y, wanted, rtol=1e-2, atol=3e-2)
    with pytest.raises(EncodingError, match="not 8:32: window 0 of panel 0 has 32"):
        emulate(program, x, dense, out)


def test_what_the_driver_refuses_is_no_encoding_error(monkeypatch):
    weight = np.zeros((32, 64), np.float16)
    program = pack_program(Encoding("2:4", dim=1), weight.shape, "f16")
    emulate(program, weight)
    monkeypatch.setattr(native.library(), "nmsProgramCheck", lambda *_: 1)
    with pytest.raises(RuntimeFailure):
        emulate(program, weight)


def test_components_of_other_libraries():
    """PackedTensor with tensors of torch, as `pack` makes them on a GPU."""
    torch = pytest.importorskip("torch")
    e = Encoding("2:4", block=(1, 8), dim=1)
    dense = torch.randn(24, 40).bfloat16()
    host = pack(prune(dense, e), e)
    values = torch.from_numpy(host.components["values"].view(np.int16))
    index = torch.from_numpy(host.components["index"].copy())
    parts = {"values": values.view(torch.bfloat16), "index": index}
    placed = PackedTensor(Packed(parts, e, (24, 40), "bf16"))
    assert placed.components is parts and placed.placed.components is parts
    assert host.placed is None and host.packed.components == host.components
    assert placed.nbytes == host.nbytes and placed.density == host.density
    for name, part in host.components.items():
        found = placed.packed.components[name]
        assert isinstance(found, np.ndarray) and found.dtype == part.dtype
        assert np.array_equal(found, part)
    assert np.array_equal(placed.to_dense(), decode(host.packed))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of the emulator: as the kernels left them, wherever they lie, or an error."""

import numpy as np
import pytest

from nm_sparse import Encoding, compile, pack
from nm_sparse.bindings import library as native
from nm_sparse.bindings.library import RuntimeFailure
from nm_sparse.reference import prune
from nm_sparse.runtime import emulator

pytestmark = pytest.mark.skipif(
    not native.available(), reason="no library of the compiler"
)

PRODUCT = """
func.func @product(%x: tensor<?x64xf16>,
    %w: tensor<64x{n}xf16, #nm_sparse.encoding<{e}>>)
    -> {type} {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x64xf16>
  %e = tensor.empty(%m) : tensor<?x{n}xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x64xf16>, tensor<64x{n}xf16,
      #nm_sparse.encoding<{e}>>) outs(%z : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
  {rest}
}}
"""
MATRIX = ("tensor<?x{n}xf32>", "return %y : tensor<?x{n}xf32>")
SPLIT = (
    "tensor<?x4x{q}xf32>",
    "%s = tensor.expand_shape %y [[0], [1, 2]] output_shape [%m, 4, {q}]\n"
    "      : tensor<?x{n}xf32> into tensor<?x4x{q}xf32>\n"
    "  return %s : tensor<?x4x{q}xf32>",
)


def make_product(encoding, n, form=MATRIX):
    names = {"n": n, "q": n // 4, "e": encoding}
    kind, rest = (text.format(**names) for text in form)
    text = PRODUCT.format(**names, type=kind, rest=rest)
    program = compile(text, chip="sm_90a", tokens=[40], use_cache=False)
    rng = np.random.default_rng(6307 + n)
    e = Encoding.parse(encoding)
    dense = prune(rng.standard_normal((64, n)).astype(np.float16), e)
    x = rng.standard_normal((21, 64)).astype(np.float16)
    wanted = x.astype(np.float32) @ dense.astype(np.float32)
    return program, x, pack(dense, e), wanted


@pytest.mark.parametrize("form", [MATRIX, SPLIT])
@pytest.mark.parametrize("n", [40, 72, 128])
@pytest.mark.parametrize("encoding", ["2:4", "8:32, block = [1, 128]"])
def test_rows_have_gaps_between_them(encoding, n, form):
    """Kernels write none of what fills rows up."""
    program, x, packed, wanted = make_product(encoding, n, form)
    (found,) = emulator.emulate(program, x, packed)
    wanted = wanted.reshape(found.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    assert found.flags.c_contiguous


class Idle:
    """The library, whose launches do nothing."""

    def __getattr__(self, name):
        return getattr(native.library(), name)

    def nmsProgramLaunch(self, *operands):
        return 0


def test_what_no_kernel_wrote_is_an_error(monkeypatch):
    program, x, packed, _ = make_product("2:4", 72)
    monkeypatch.setattr(emulator, "library", Idle)
    with pytest.raises(RuntimeFailure, match="copying .*nothing wrote"):
        emulator.emulate(program, x, packed)
    monkeypatch.undo()
    (found,) = emulator.emulate(program, x, packed)
    assert np.isfinite(found).all()

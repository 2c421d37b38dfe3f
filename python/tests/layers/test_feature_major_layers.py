# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of layers that are given x^T."""

import numpy as np
import pytest
from export_cases import needs_library

import nm_sparse as nm
from nm_sparse import EncodingError, LinearSpec
from nm_sparse.gated_mlp import gated_mlp_mlir
from nm_sparse.linear_shared import SharedLayer, linear_shared_mlir

PANELS = "16:32, block = [1, 64], dim = 1"
GIVEN = "tensor<96x{}xi8> {{bufferization.buffer_layout = strided<[?, 1]>}}"
OWN = dict(dtype="i8", result="f32", feature_major=True)


def programs(tokens=None, **more):
    """Text of one layer, where there are any number of tokens, of two, and of gate and
    up."""
    own = {**OWN, **more}
    layers = [SharedLayer(64, PANELS), SharedLayer(128, PANELS, True, "relu")]
    found = [
        linear_shared_mlir(96, layers, tokens=tokens, **own),
        gated_mlp_mlir(96, 64, PANELS, tokens=tokens, **own),
    ]
    if tokens is None:
        found.append(LinearSpec(PANELS, 64, 96, **own).mlir())
    return found


def test_text():
    for tokens, size in ((None, "?"), (40, "40")):
        for text in programs(tokens):
            assert f"%x: {GIVEN.format(size)}" in text
            assert "[#km, #nk, #mn]" in text and "[#mk, #nk, #mn]" not in text
            assert "#km = affine_map<(m, n, k) -> (k, m)>" in text
            dim = "%first = arith.constant 1 : index" in text
            assert dim == (tokens is None)
        for text in programs(tokens, feature_major=False):
            assert "#km" not in text and "buffer_layout" not in text


def test_whole_mlps_may_be_given_features():
    """Their result is token-major."""
    down = PANELS
    text = gated_mlp_mlir(96, 64, PANELS, "f16", down=down, feature_major=True)
    assert "%x: tensor<96x?xf16> {" in text and "-> tensor<?x96xf16> {" in text


def test_fields():
    spec = LinearSpec(PANELS, 64, 96, **OWN)
    assert LinearSpec.from_json(spec.to_json()) == spec
    assert spec != LinearSpec(PANELS, 64, 96, **{**OWN, "feature_major": False})
    said = "feature_major is 'x': legal is True or False"
    for make in (
        lambda: LinearSpec(PANELS, 64, 96, feature_major="x"),
        lambda: linear_shared_mlir(96, [SharedLayer(64, PANELS)], feature_major="x"),
        lambda: gated_mlp_mlir(96, 64, PANELS, feature_major="x"),
    ):
        with pytest.raises(EncodingError, match=said):
            make()


@needs_library
def test_nothing_is_transposed():
    """Kernels that gather rows of x read them as they are."""
    for is_feature_major in (True, False):
        for text in programs(feature_major=is_feature_major):
            made = nm.compile(text, chip="sm_90a", options=["--storage=k_major"])
            names = [one["name"] for one in made.manifest["kernels"]]
            assert names
            transposed = [name for name in names if name.endswith("_transpose")]
            assert bool(transposed) != is_feature_major


@needs_library
@pytest.mark.parametrize("tokens", [1, 7, 33])
def test_arrays_of_the_host(tokens):
    """Features may lie at any distance."""
    draw = np.random.default_rng(tokens)
    encoding = nm.Encoding.parse(PANELS)
    dense = nm.prune(draw.normal(size=(64, 96)).astype(np.float32), encoding)
    weight = np.clip(np.rint(40 * dense), -127, 127).astype(np.int8)
    x = draw.integers(-9, 9, (tokens, 96), np.int8)
    x_scale, scale = draw.random(tokens, np.float32), draw.random(64, np.float32)
    made = nm.compile(LinearSpec(PANELS, 64, 96, **OWN), chip="sm_90a")
    wanted = (x.astype(float) @ weight.T.astype(float)) * x_scale[:, None] * scale
    for pitch in (tokens, tokens + 3, 64):
        whole = np.full((96, pitch), 77, np.int8)
        whole[:, :tokens] = x.T
        out = np.zeros((tokens, 64), np.float32)
        packed = nm.pack(weight, encoding)
        y = made(whole[:, :tokens], packed, x_scale, scale, out)
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-4)

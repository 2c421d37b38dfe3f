# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of layers that share their input: a gated MLP, and layers of any kind.

What needs a build is skipped without NM_BUILD_DIR.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nm_sparse import Encoding, EncodingError, decode, encode, prune
from nm_sparse.bindings import library
from nm_sparse.gated_mlp import gated_mlp_mlir
from nm_sparse.layers.activation_text import ACTIVATIONS, activation_steps
from nm_sparse.linear_shared import SharedLayer, linear_shared_mlir
from nm_sparse.runtime.oracle import Oracle

pytestmark = pytest.mark.slow

BUILD = Path(os.environ.get("NM_BUILD_DIR", ""))
if "NM_BUILD_DIR" in os.environ:
    os.environ.setdefault("NM_SPARSE_LIBRARY", str(BUILD / "lib"))
needs_library = pytest.mark.skipif(
    not library.available(), reason="no library of nm_sparse"
)
needs_tools = pytest.mark.skipif(
    "NM_BUILD_DIR" not in os.environ or not (BUILD / "bin/nm-compile").exists(),
    reason="no build of nm-compile",
)


def activate(x, activation):
    if activation == "relu":
        return np.maximum(x, 0)
    if activation == "silu":
        return x / (1 + np.exp(-x))
    if activation == "gelu_tanh":
        inside = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
        return x / 2 * (1 + np.tanh(inside))
    if activation == "gelu":
        erf = np.vectorize(__import__("math").erf)
        return x / 2 * (1 + erf(x / np.sqrt(2)))
    return x


@needs_library
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("down", [None, "1:2, dim = 1"])
def test_it_computes_a_gated_mlp(activation, down):
    rng = np.random.default_rng(len(activation))
    hidden, inside, tokens = 24, 40, 5
    text = gated_mlp_mlir(
        hidden, inside, "4:8, block = [1, 4], dim = 1", "f32", activation, down=down
    )
    x = rng.standard_normal((tokens, hidden)).astype(np.float32)
    shapes = [(inside, hidden)] * 2 + ([(hidden, inside)] if down else [])
    encodings = [Encoding(4, 8, (1, 4), dim=1)] * 2 + [Encoding(1, 2, dim=1)]
    weights = [
        encode(prune(rng.standard_normal(shape).astype(np.float32), encoding), encoding)
        for shape, encoding in zip(shapes, encodings)
    ]
    gate, up, *rest = [decode(one).astype(np.float64) for one in weights]
    wanted = activate(x @ gate.T, activation) * (x @ up.T)
    wanted = wanted @ rest[0].T if down else wanted
    parts = [part for one in weights for part in one.components.values()]
    out = np.zeros(wanted.shape, np.float32)
    (found,) = Oracle(text)([x, *parts, out])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


PANELS = "8:32, block = [1, 128], dim = 1"


@needs_tools
@pytest.mark.parametrize(
    "text",
    [
        gated_mlp_mlir(2048, 4096, PANELS),
        linear_shared_mlir(2048, [SharedLayer(n, PANELS, True) for n in (2048, 512)]),
    ],
)
def test_x_is_transposed_once(text, tmp_path):
    """And what is elementwise is in the kernels of the two products."""
    source, ptx, manifest = (tmp_path / n for n in ("g.mlir", "g.ptx", "g.json"))
    source.write_text(text)
    tool = BUILD / "bin" / "nm-compile"
    command = [tool, source, "-o", ptx, "--manifest", manifest, "--tokens", "512"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    functions = json.loads(manifest.read_text())["functions"]
    launches = [one for one in functions if "launches" in one][-1]["launches"]
    assert ["transpose" in one["kernel"] for one in launches] == [True, False, False]


LAYERS = [
    SharedLayer(24, "4:8, block = [1, 4], dim = 1", activation="silu"),
    SharedLayer(16, "2:4, dim = 1", bias=True),
    SharedLayer(9, "2:4, dim = 1", bias=True, activation="relu"),
]


@needs_library
def test_it_computes_several_layers():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((4, 32)).astype(np.float32)
    weights, biases, wanted = [], [], []
    for layer in LAYERS:
        e = Encoding.parse(layer.encoding)
        dense = prune(rng.standard_normal((layer.outputs, 32)).astype(np.float32), e)
        weights += encode(dense, e).components.values()
        y = x.astype(np.float64) @ dense.T
        if layer.bias:
            biases.append(rng.standard_normal(layer.outputs).astype(np.float32))
            y = y + biases[-1]
        wanted.append(activate(y, layer.activation))
    outs = [np.zeros(y.shape, np.float32) for y in wanted]
    found = Oracle(linear_shared_mlir(32, LAYERS, "f32"))([x, *weights, *biases, *outs])
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_sizes_are_in_the_text(dtype):
    text = gated_mlp_mlir(64, 96, "2:4, dim = 1", dtype, tokens=7, name="half")
    assert f"func.func @half(%x: tensor<7x64x{dtype}>" in text
    assert f"%up_weight: tensor<96x64x{dtype}, #weight>" in text
    assert "tensor.dim" not in text
    assert "#weight = #nm_sparse.encoding<2:4, dim = 1>" in text


def test_wrong_arguments_are_named():
    with pytest.raises(
        EncodingError, match="hidden is 0: legal is an integer from 1 on"
    ):
        gated_mlp_mlir(0, 8, "2:4, dim = 1")
    with pytest.raises(EncodingError, match="dtype is 'i8': legal is f16, bf16, f32"):
        gated_mlp_mlir(8, 8, "2:4, dim = 1", "i8")
    with pytest.raises(EncodingError, match="has dim 0: legal is 1, the contraction"):
        gated_mlp_mlir(8, 8, "2:4, dim = 0")
    with pytest.raises(EncodingError, match="activation is 'sine': legal is one of"):
        gated_mlp_mlir(8, 8, "2:4, dim = 1", activation="sine")
    with pytest.raises(EncodingError, match="there are 0 layers: legal is at least 1"):
        linear_shared_mlir(8, [])
    with pytest.raises(
        EncodingError, match="outputs is 0: legal is an integer from 1 on"
    ):
        linear_shared_mlir(8, [SharedLayer(0, "2:4, dim = 1")])
    with pytest.raises(EncodingError, match="activation is 'sine'"):
        activation_steps("sine", "%x", "%")

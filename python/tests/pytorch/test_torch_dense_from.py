# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From how many tokens on layers use dense copies: who is told, and who is not."""

import copy
import io
import json
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dense_cases import Sparse, layer_of, mlp_of  # noqa: E402
from shared_cases import (  # noqa: E402
    GATED,
    MLP,
    SHARED,
    gated_operands,
    leaves,
    mlp_operands,
    shared_operands,
)
from torch import nn  # noqa: E402
from torch_cases import ENCODINGS  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    LinearSpec,
    export_mlir,
    shared_linear,
    store_for_kernels_,
)
from nm_sparse.torch.layers.dense_copies import dense_form  # noqa: E402
from nm_sparse.torch.weight.shared_spec import (  # noqa: E402
    parse_shared,
    shared_text,
    with_dense_from,
)
from nm_sparse.torch.weight.spec import DTYPE_NAMES  # noqa: E402

K, N = 32, 24


def test_texts():
    spec = LinearSpec(ENCODINGS[0], (N, K), "f16", "silu")
    assert "dense_from" not in spec.text and spec.dense_from is None
    other = LinearSpec(ENCODINGS[0], (N, K), "f16", "silu", dense_from=64)
    assert other.text == spec.text[:-1] + ',"dense_from":64}'
    assert other.text == with_dense_from(spec.text, 64)
    assert with_dense_from(spec.text, None) == spec.text
    assert LinearSpec.parse(other.text) == other != spec
    assert other.canonical == spec.canonical and other.components == spec.components
    assert dense_form(other.canonical) is dense_form(spec.canonical)


@pytest.mark.parametrize("wrong", [0, -1, True, "x", 1.0])
def test_wrong_numbers_are_named(wrong):
    said = f"dense_from is {wrong!r}: legal is a number of tokens from 1 on, or None"
    with pytest.raises(EncodingError, match=said):
        LinearSpec(ENCODINGS[0], (N, K), "f16", dense_from=wrong)
    layer = layer_of(K, N)
    with pytest.raises(EncodingError, match=said):
        layer.dense_from = wrong
    assert layer.dense_from is None
    text = LinearSpec(ENCODINGS[0], (N, K), "f16").text
    with pytest.raises(EncodingError, match=said):
        LinearSpec.parse(f'{text[:-1]},"dense_from":{json.dumps(wrong)}}}')


@pytest.mark.parametrize("storage", ["canonical", "bitmap"])
def test_nothing_of_the_layer_changes(storage):
    layer = layer_of(K, N, bias=True).store_(storage)
    before = layer.state_dict()
    layer.dense_from = 5
    after = layer.state_dict()
    assert list(before) == list(after)
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert "dense_from=5" in repr(layer)
    saved = io.BytesIO()
    torch.save(layer, saved)
    saved.seek(0)
    for other in (
        copy.deepcopy(layer),
        pickle.loads(pickle.dumps(layer)),
        torch.load(saved, weights_only=False),
        copy.deepcopy(layer).store_("bitmap"),
        copy.deepcopy(layer).bfloat16(),
    ):
        assert other.dense_from == 5
        assert LinearSpec.parse(other.spec).dense_from == 5
        other.load_state_dict(before)
        assert other.dense_from == 5
    assert layer_of(K, N).dense_from is None


def with_number(text, tokens):
    specs = [one for one in text.strip("[]").replace("},{", "}\n{").split("\n")]
    found = [with_dense_from(one, tokens) for one in specs]
    return f"[{','.join(found)}]" if text.startswith("[") else found[0]


def test_opcheck():
    (x, gate, up, text), _ = gated_operands(ENCODINGS[0], 1, torch.float32)
    text = with_number(text, 4)
    torch.library.opcheck(GATED, (*leaves(x), leaves(*gate), leaves(*up), text))
    linear = torch.ops.nm_sparse.linear.default
    torch.library.opcheck(linear, (*leaves(x), leaves(*gate), None, text))
    (x, *weights, text), _ = mlp_operands(ENCODINGS[0], 2, torch.float32)
    weights = [leaves(*one) for one in weights]
    torch.library.opcheck(MLP, (*leaves(x), *weights, with_number(text, 4)))
    (x, parts, counts, biases, text), _ = shared_operands(3, torch.float32)
    text = with_number(text, 4)
    torch.library.opcheck(SHARED, (*leaves(x), leaves(*parts), counts, biases, text))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("storage", ["canonical", "bitmap"])
def test_autocast_keeps_it(dtype, storage):
    seen = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            if operator._schema.name == "nm_sparse::linear":
                seen.append(LinearSpec.parse(args[-1]))
            return operator(*args, **(kwargs or {}))

    layer = layer_of(K, N).requires_grad_(False).store_(storage)
    layer.dense_from = 5
    with torch.autocast("cpu", dtype), Mode():
        assert layer(torch.randn(3, K)).dtype == dtype
    (spec,) = seen
    assert spec.dense_from == 5 and spec.dtype == DTYPE_NAMES[dtype]


def test_gradients_and_graphs_of_modules():
    mlp, _ = mlp_of(K, N, "silu", (3, 5, 4))
    plain, _ = mlp_of(K, N, "silu", (None,) * 3)
    x = torch.randn(9, K)
    for one in (mlp, plain):
        one(x).square().sum().backward()
    for layer, other in zip(mlp.children(), plain.children()):
        torch.testing.assert_close(layer.weight.grad.values, other.weight.grad.values)
    compiled = torch.compile(mlp, backend="aot_eager", fullgraph=True)
    shared = torch.compile(shared_linear, backend="aot_eager", fullgraph=True)
    layers = [mlp.gate_proj, mlp.up_proj]
    with torch.no_grad():
        for tokens in (5, 7, None):
            mlp.up_proj.dense_from = tokens
            torch.testing.assert_close(compiled(x), plain(x))
            for y, layer in zip(shared(x, layers), layers):
                torch.testing.assert_close(y, layer(x))
        mlp.up_proj.dense_from = 4
        texts = [export_mlir(one.eval(), (x,)).text for one in (mlp, plain)]
    assert texts[0] == texts[1]


def test_storing_for_kernels(monkeypatch):
    from nm_sparse.torch.models import kernel_storage

    Sparse(monkeypatch, "bitmap")
    monkeypatch.setattr(kernel_storage, "_is_on_gpu", lambda layer: True)
    model = nn.Module()
    model.one = layer_of(K, N).eval()
    model.one.dense_from = 3
    model.mlp = mlp_of(K, N, "silu", (3, 5, 4))[0].eval()
    report = store_for_kernels_(model)
    assert report.changed == [
        "one",
        *(f"mlp.{name}_proj" for name in ("gate", "up", "down")),
    ]
    assert [one.dense_from for one in model.mlp.children()] == [3, 5, 4]
    assert model.mlp.obstacle() is None


def test_shared_texts_hold_it():
    specs = [
        LinearSpec(ENCODINGS[0], (n, K), "f16", dense_from=n)
        for n in np.random.default_rng(0).integers(1, 99, 3).tolist()
    ]
    assert parse_shared(shared_text(specs)) == tuple(specs)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements that are stored feature-major: quantization, programs that read them, and
which layers ask for them."""

import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from export_cases import needs_library  # noqa: E402
from scaled_cases import (  # noqa: E402
    ELEMENTS,
    as_bytes,
    emulated,
    parts_of,
    scaled_layer,
    wanted,
)

from nm_sparse import EncodingError, LinearSpec  # noqa: E402
from nm_sparse.runtime import emulator  # noqa: E402
from nm_sparse.torch import GatedMLP, quantize_tokens, shared_linear  # noqa: E402
from nm_sparse.torch.layers import (  # noqa: E402
    feature_major,
    scaled_calls,
    scaled_eager,
    scaled_kernels,
    shared_kernels,
)
from nm_sparse.torch.layers.scaled_kernels import find_layers  # noqa: E402
from nm_sparse.torch.weight.token_layout import (  # noqa: E402
    is_feature_major,
    pitch_of,
    to_feature_major,
)

BOTH = pytest.mark.parametrize("elements", ELEMENTS)
PANELS = "16:32, block = [1, 64]"


@pytest.fixture
def fresh(hopper):
    """Programs are found anew, for another chip than that of other tests."""
    scaled_kernels.find_scaled.cache_clear()
    feature_major._KNOWN.clear()
    yield hopper
    scaled_kernels.find_scaled.cache_clear()
    feature_major._KNOWN.clear()


@pytest.fixture
def panels(fresh, monkeypatch):
    """The same, with storage that is K-major, as large layers have it."""

    def make(text, specs, outputs, device, dtype, storage, *own):
        return shared_kernels.make_kernels(
            text, specs, outputs, device, dtype, storage or "k_major", *own
        )

    monkeypatch.setattr(scaled_kernels, "make_kernels", make)
    return fresh


def same(x, y):
    """Whether both have the same elements."""
    is_like = x.shape == y.shape and x.dtype == y.dtype
    return is_like and torch.equal(x.float(), y.float())


@BOTH
@pytest.mark.parametrize("tokens", [1, 3, 17, 33, 100, 128, 129])
def test_both_layouts_have_the_same_elements(elements, tokens):
    for k in (1, 33, 64, 100):
        x = torch.randn(tokens, k, dtype=torch.bfloat16)
        for scale in (None, torch.tensor(0.01)):
            plain, x_scale = quantize_tokens(x, elements, scale)
            found, own = quantize_tokens(x, elements, scale, feature_major=True)
            assert same(found, plain) and torch.equal(own, x_scale)
            assert found.stride(1) == pitch_of(tokens)
            assert is_feature_major(found) == (k > 1) and not is_feature_major(plain)
            # Zeros behind the last token.
            whole = found.as_strided((k, pitch_of(tokens)), (pitch_of(tokens), 1))
            assert not whole[:, tokens:].float().any()


@BOTH
@pytest.mark.parametrize("shape", [(64,), (2, 5, 64), (2, 1, 3, 40), (1, 1, 64)])
def test_batches(elements, shape):
    x = torch.randn(shape)
    plain, x_scale = quantize_tokens(x, elements)
    found, own = quantize_tokens(x, elements, feature_major=True)
    assert same(found, plain) and torch.equal(own, x_scale) and is_feature_major(found)
    rows = found.view(-1, shape[-1])  # nothing is copied
    assert rows.data_ptr() == found.data_ptr() and is_feature_major(rows)


def test_empty_tokens():
    for shape in ((0, 8), (4, 0), (2, 0, 8)):
        found, scale = quantize_tokens(torch.randn(shape), feature_major=True)
        assert found.shape == shape and scale.shape == (*shape[:-1], 1)
        assert not is_feature_major(found)


def test_what_is_no_layout_of_programs():
    x = torch.zeros(5, 64, dtype=torch.int8)
    stored = to_feature_major(x)
    assert is_feature_major(stored) and is_feature_major(stored[:3])
    assert not is_feature_major(stored[1:])  # begins within 16 bytes
    assert not is_feature_major(stored[::2])
    assert not is_feature_major(x.t().contiguous().t())  # features 5 bytes apart
    assert not is_feature_major(
        to_feature_major(x.view(1, 5, 64)).transpose(0, 1)[:, :0]
    )


@BOTH
def test_the_operator_of_graphs(elements):
    kind = "i8" if elements == "int8" else "f8E4M3FN"
    operator = torch.ops.nm_sparse.quantize_columns
    for shape in ((3, 40), (2, 3, 5), (0, 8), (1, 64)):
        x = torch.randn(shape, dtype=torch.bfloat16)
        for scale in (None, torch.tensor(0.01)):
            found, own = operator(x, scale, kind)
            plain, x_scale = quantize_tokens(x, elements, scale)
            assert same(found, plain)
            assert own.shape == (0,) if scale is not None else torch.equal(own, x_scale)
            torch.library.opcheck(operator, (x, scale, kind))
    torch._dynamo.reset()
    run = torch.compile(
        lambda x: quantize_tokens(x, elements, feature_major=True),
        backend="aot_eager",
        fullgraph=True,
    )
    for tokens in (5, 7, 150):
        x = torch.randn(tokens, 40)
        found, scale = run(x)
        assert same(found, quantize_tokens(x, elements)[0]) and is_feature_major(found)
        assert found.stride() == (1, pitch_of(tokens))


def test_what_is_wrong_is_named():
    x = torch.randn(2, 8)
    with pytest.raises(EncodingError, match="feature_major is 1: legal is True or"):
        quantize_tokens(x, feature_major=1)
    with pytest.raises(EncodingError, match="feature_major is 'yes': legal is True or"):
        LinearSpec(f"{PANELS}, dim = 1", 64, 64, feature_major="yes")


@BOTH
def test_operators_take_either_layout(elements):
    layer, x = scaled_layer(elements=elements, activation="relu"), torch.randn(2, 3, 64)
    product = torch.ops.nm_sparse.scaled_linear
    own = layer.operands(), layer.bias, layer.spec
    with torch.no_grad():
        plain = product(*quantize_tokens(x, elements), *own)
        given = quantize_tokens(x, elements, feature_major=True)
        assert torch.equal(product(*given, *own), plain)
        assert plain.is_contiguous()
    parts, bias = [one.to("meta") for one in own[0]], own[1].detach().to("meta")
    fake = product(*(one.to("meta") for one in given), parts, bias, own[2])
    assert fake.shape == plain.shape and fake.stride() == plain.stride()


class Pitched:
    """The emulator is given x^T with as many elements between features as `pitch`, and
    bytes that are no number behind the last token."""

    def __init__(self, monkeypatch, shape, pitch):
        self.shape, self.pitch, self.calls = shape, pitch, 0
        self.copy = emulator._copy_in
        monkeypatch.setattr(emulator, "_copy_in", self)

    def __call__(self, array, memory):
        if array.shape != self.shape or array.itemsize != 1:
            return self.copy(array, memory)
        self.calls += 1
        whole = np.full((self.shape[0], self.pitch), 0x7F, array.dtype)
        whole[:, : self.shape[1]] = array
        made = self.copy(whole, memory)
        own = dict(sizes=self.shape, strides=(self.pitch, 1))
        return emulator.Operand(0, made.address, **own, dtype="", owner=whole)


def kernels_of(made):
    functions = made.program.manifest["functions"]
    return [one["kernel"] for f in functions for one in f.get("launches", ())]


def close(found, expected, tolerance=0.02):
    error = (found.double() - expected).abs().max() / expected.abs().max()
    assert float(error) < tolerance


@pytest.mark.slow
@needs_library
@BOTH
@pytest.mark.parametrize("tokens", [1, 3, 33, 100])
def test_programs_read_features(panels, monkeypatch, elements, tokens):
    """They have no transposition, and what others compute."""
    k, n = 192, 64
    own = dict(k=k, n=n, dtype=torch.bfloat16, activation="relu")
    layer = scaled_layer(PANELS, elements, **own)
    about = parts_of([layer]), "token", False, panels
    usual, made = find_layers(*about), find_layers(*about, True)
    assert usual.transposes() and usual.transposes(tokens) and not made.transposes()
    assert not any("transpose" in one for one in kernels_of(made))
    assert [form.key for form in made.forms] == [form.key for form in usual.forms]
    x = torch.randn(tokens, k, dtype=torch.bfloat16)
    rounded, x_scale = quantize_tokens(x, elements)
    (plain,) = emulated(usual, rounded, x_scale, [layer])
    close(plain, wanted(x, layer))
    for pitch in (tokens, pitch_of(tokens), tokens + 5):
        given = Pitched(monkeypatch, (k, tokens), pitch)
        (y,) = features(made, rounded, x_scale, [layer])
        monkeypatch.undo()
        assert given.calls == 1 and torch.equal(y, plain), pitch


def features(made, rounded, x_scale, layers):
    """As `emulated`, of x^T."""
    found = parts_of(layers)
    outs = [
        np.zeros((len(rounded), n), as_bytes(torch.empty(0, dtype=made.dtype)).dtype)
        for n in made.outputs
    ]
    whole = [
        emulator.PreparedWeight(tuple(map(as_bytes, parts)), None)
        for parts in scaled_kernels.stored_weights(made, found)
    ]
    others = [x_scale.reshape(-1), *(weight[-1] for weight, _, _ in found)]
    others += [bias for _, bias, _ in found if bias is not None]
    given = [*whole, *map(as_bytes, others), *outs]
    results = emulator.emulate(made.program, as_bytes(rounded.t()), *given)
    return [torch.from_numpy(one).view(made.dtype) for one in results]


@pytest.mark.slow
@needs_library
def test_several_layers_read_features(panels, monkeypatch):
    own = dict(k=64, dtype=torch.float16)
    layers = [scaled_layer(PANELS, n=n, bias=n > 64, seed=n, **own) for n in (64, 128)]
    x = torch.randn(5, 64, dtype=torch.float16)
    rounded, x_scale = quantize_tokens(x)
    made = find_layers(parts_of(layers), "token", False, panels, True)
    assert not made.transposes() and len(made.forms) == 2
    for y, layer in zip(features(made, rounded, x_scale, layers), layers):
        close(y, wanted(x, layer), 0.005)
    gate, up = (scaled_layer(PANELS, n=64, bias=False, seed=i, **own) for i in range(2))
    found = parts_of([gate, up])
    found[0] = (*found[0][:2], found[0][2].with_activation("silu"))
    made = find_layers(found, "tensor", True, panels, True)
    rounded, x_scale = quantize_tokens(x, "e4m3", torch.tensor(0.01))
    assert not made.transposes()
    (y,) = features(made, rounded, x_scale, [gate, up])
    for layer in (gate, up):
        layer.set_input_scale(0.01)
    close(y, wanted(x, gate, "silu") * wanted(x, up), 0.005)


@needs_library
def test_layers_of_other_patterns_do_not(fresh):
    """Their kernels read x token-major, or other forms of the weight."""
    layer = scaled_layer("2:4", dtype=torch.bfloat16)
    assert find_layers(parts_of([layer]), "token", False, fresh) is not None
    assert find_layers(parts_of([layer]), "token", False, fresh, True) is None
    reads = feature_major.reads_feature_major
    assert not reads((layer.spec,), (True,), "token", False, 0, torch.bfloat16, 100)


@needs_library
def test_which_programs_are_asked_for(panels, monkeypatch):
    prepared = []
    monkeypatch.setattr(
        feature_major, "prepare_columns", lambda *own: prepared.append(own) or True
    )
    layer = scaled_layer(PANELS, k=64, n=64, dtype=torch.bfloat16)
    reads = feature_major.reads_feature_major
    about = (True,), "token", False, 0, torch.bfloat16
    assert reads((layer.spec,), *about, 100) and reads((layer.spec,), *about, None)
    assert len(prepared) == 1 and prepared[0][0] == 64
    plain = layer.linear_spec.dequantized.text
    assert not reads((plain,), *about, 100)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert reads((layer.spec,), *about, 33)  # which is known
    assert not reads((layer.spec,), (False,), *about[1:], 33)  # for which it is late


@pytest.fixture
def asked(monkeypatch):
    """All layers ask for elements that are stored feature-major; a list of these."""
    given, kinds = [], []

    def reads(specs, biases, kind, gated, device, dtype, tokens):
        kinds.append((len(specs), gated, tokens))
        return True

    def rounded(x, elements, scale, layout=False):
        found = quantize_tokens(x, elements, scale, layout)
        given.append(is_feature_major(found[0]))
        return found

    monkeypatch.setattr(feature_major, "is_on_gpu", lambda x: True)
    monkeypatch.setattr(
        feature_major,
        "reads_feature_major",
        torch.compiler.assume_constant_result(reads),
    )
    monkeypatch.setattr(scaled_calls, "quantize_tokens", rounded)
    monkeypatch.setattr(scaled_calls, "quantize_alone", rounded)
    return given, kinds


@BOTH
def test_modules_that_ask(asked, elements):
    given, kinds = asked
    layers = [scaled_layer(elements=elements, n=n, seed=n) for n in (32, 48)]
    x = torch.randn(2, 3, 64)
    for y, layer in zip(shared_linear(x, layers), layers):
        torch.testing.assert_close(y.double(), wanted(x, layer), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        y = layers[0](x)
    torch.testing.assert_close(y.double(), wanted(x, layers[0]), rtol=1e-4, atol=1e-5)
    own = dict(elements=elements, bias=False)
    gate, up = (scaled_layer(k=64, n=96, seed=i, **own) for i in range(2))
    mlp = GatedMLP(gate, up, scaled_layer(k=96, n=64, seed=3, **own))
    with torch.no_grad():
        mlp(x)
    assert given == [True] * 4
    assert kinds == [(2, False, 6), (1, False, 6), (2, True, 6), (1, False, 6)]
    layers[0].dense_from = 6
    with torch.no_grad():
        layers[0](x)  # which is multiplied by a dense copy
    assert given[-1] is False and len(kinds) == 4
    x.requires_grad_()
    layers[1](x).sum().backward()
    found, x.grad = x.grad, None
    torch.nn.functional.linear(x, layers[1].weight.to_dense()).sum().backward()
    torch.testing.assert_close(found, x.grad, rtol=1e-4, atol=1e-4)


def test_graphs_that_ask(monkeypatch):
    """A graph has the operator, and asks for no number that it does not know."""
    counts = []

    def reads(specs, biases, kind, gated, device, dtype, tokens):
        counts.append(tokens)
        return True

    monkeypatch.setattr(feature_major, "is_on_gpu", lambda x: True)
    monkeypatch.setattr(
        feature_major,
        "reads_feature_major",
        torch.compiler.assume_constant_result(reads),
    )
    layer, graphs = scaled_layer(), []

    def backend(graph, inputs):
        graphs.append([str(node.target) for node in graph.graph.nodes])
        return graph

    for dynamic, tokens in ((False, 5), (True, None)):
        torch._dynamo.reset()
        run = torch.compile(layer, backend=backend, fullgraph=True, dynamic=dynamic)
        with torch.no_grad():
            for size in (5, 9) if dynamic else (5,):
                x = torch.randn(size, 64)
                torch.testing.assert_close(run(x), layer(x))
        assert any("quantize_columns" in one for one in graphs[-1])
        assert tokens in counts
    assert len(graphs) == 2
    torch._dynamo.reset()


def test_eager_calls_of_many_tokens(monkeypatch):
    """Many are given to the program of x^T, few are rounded as before."""
    launch = scaled_eager._ScaledLaunch.__new__(scaled_eager._ScaledLaunch)
    launch.least, launch.elements, launch.input_scale = None, "int8", None
    launch.found = types.SimpleNamespace(takes=lambda x: True)
    launch._rounded, launch.run_sparse = False, lambda x, *given: ["few"]
    given = []
    launch.columns = types.SimpleNamespace(
        run_sparse=lambda x, *own: given.append(own) or ["many"]
    )
    monkeypatch.setattr(scaled_eager, "_MANY", 64)
    assert launch.run(torch.randn(1, 32)) == ["few"] and not given
    x = torch.randn(2, 3, 32)
    assert launch.run(x) == ["many"]
    ((columns, scales),) = given
    rounded, x_scale = quantize_tokens(x, "int8")
    assert columns.shape == (32, 6) and columns.stride() == (128, 1)
    assert torch.equal(columns, rounded.view(6, 32).t())
    assert torch.equal(scales, x_scale.view(-1))
    launch.input_scale = torch.tensor(0.01)
    launch.run(x)
    assert len(given[1]) == 1

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that hold a second form of their weight for few tokens, by stand-ins of
kernels."""

import copy
import gc
import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from decode_cases import TwoPrograms, call, check, forms_of  # noqa: E402
from dense_cases import layer_of  # noqa: E402
from storage_cases import same_bits  # noqa: E402
from torch import nn  # noqa: E402
from torch_cases import ENCODINGS, random_weight  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    LinearSpec,
    NMLinear,
    activate_inside_,
    store_for_kernels_,
)
from nm_sparse.torch.layers import eager  # noqa: E402
from nm_sparse.torch.models import kernel_storage  # noqa: E402
from nm_sparse.torch.weight.spec import EACH  # noqa: E402
from nm_sparse.torch.weight.stored_forms import STORED  # noqa: E402
from nm_sparse.torch.weight.token_counts import numbers_of, settled  # noqa: E402

K, N = 32, 24


def test_specs_say_up_to_how_many_tokens():
    layer = layer_of(K, N)
    assert layer.decode_to is None and layer.call_spec == layer.spec
    layer.decode_to, layer.dense_from = 16, 64
    assert LinearSpec.parse(layer.spec).decode_to is None
    spec = LinearSpec.parse(layer.call_spec)
    assert (spec.decode_to, spec.dense_from, spec.text) == (16, 64, layer.call_spec)
    assert spec.canonical.decode_to == 16 and spec.of_weight.decode_to is None
    graph = LinearSpec.parse(layer.call_spec[:-1] + f',"tokens":{EACH}}}')
    assert settled(graph, torch.empty(2, 8, K)).decode_to == 16
    assert settled(graph, torch.empty(2, 8, K)).tokens == 16
    assert settled(graph, torch.empty(17, K)).decode_to is None
    assert settled(graph, torch.empty(17, K)).tokens == 24
    assert settled(spec, torch.empty(K)).decode_to == 16
    assert settled(spec, torch.empty(17, K)) == settled(spec, torch.empty(999, K))
    assert "decode_to=16, dense_from=64" in repr(layer)


@pytest.mark.parametrize("most", [1, 2, 3, 16, 17, 64, 100, 1 << 20])
def test_numbers_of_few_tokens(most):
    spec = LinearSpec("2:4", (N, K), "f32", decode_to=most)
    found = numbers_of(spec)
    assert found[0] == 1 and found[-1] == most and list(found) == sorted(set(found))
    assert len(found) <= 8  # as many as are compiled by default


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "16", [1]])
def test_what_is_no_number_of_tokens(value):
    layer = layer_of(K, N)
    with pytest.raises(EncodingError, match="decode_to is .*legal is a number of tok"):
        layer.decode_to = value
    with pytest.raises(EncodingError, match="decode_to is .*legal is a number of tok"):
        LinearSpec("2:4", (N, K), "f32", decode_to=value)
    assert layer.decode_to is None


@pytest.mark.parametrize("storage", ["canonical", "bitmap"])
@pytest.mark.parametrize("text", ["2:4", "3:7, block = [2, 8], order = shuffled"])
def test_either_program_gets_its_form(monkeypatch, text, storage):
    programs = TwoPrograms(monkeypatch)
    layer = layer_of(K, N, text, bias=True, activation="silu").store_(storage)
    layer.decode_to = 6
    shapes = [(K,), (1, K), (6, K), (2, 3, K), (7, K), (2, 4, K), (5, 2, 1, K)]
    for shape in shapes:
        check(layer, torch.randn(shape))
    check(layer, torch.randn(K, 9).t())
    assert programs.calls == ["few"] * 4 + ["many"] * 4
    # One form is the layer's own: there is one other, whichever that is.
    ((key, form),) = forms_of().items()
    assert form.kernels.storage != storage and key.startswith(form.kernels.storage)
    assert call(layer, torch.empty(0, K)).shape == (0, N)


@pytest.mark.parametrize("seed", range(24))
def test_random_weights(monkeypatch, seed):
    """Of any encoding and of ragged sizes, on both sides of the limit."""
    TwoPrograms(monkeypatch)
    encoding = ENCODINGS[seed % len(ENCODINGS)]
    packed, dense = random_weight(encoding, seed, torch.float32)
    layer = NMLinear.from_packed(packed).requires_grad_(False)
    if seed % 2 and encoding.inner is None:
        layer.store_("bitmap")
    if encoding.inner is not None:
        TwoPrograms(monkeypatch, few="canonical")
    rng = np.random.default_rng(seed)
    layer.decode_to = int(rng.integers(1, 20))
    for tokens in (layer.decode_to, layer.decode_to + 1, 1):
        x = torch.from_numpy(rng.standard_normal((tokens, packed.shape[1]))).float()
        wanted = (x.double() @ dense.double().t()).float()
        torch.testing.assert_close(call(layer, x), wanted, rtol=1e-4, atol=1e-4)


def test_equal_forms_are_one(monkeypatch):
    TwoPrograms(monkeypatch, many="bitmap", few="bitmap")
    layer = layer_of(K, N).requires_grad_(False)
    layer.decode_to = 4
    check(layer, torch.randn(4, K)), check(layer, torch.randn(5, K))
    (form,) = forms_of().values()
    layer.decode_to = None  # which others read
    check(layer, torch.randn(4, K))
    assert list(forms_of().values()) == [form]


def test_no_form_is_made_before_it_is_read(monkeypatch):
    TwoPrograms(monkeypatch)
    layer = layer_of(K, N).requires_grad_(False)
    layer.decode_to = 4
    check(layer, torch.randn(5, K))
    assert not forms_of()
    check(layer, torch.randn(4, K))
    assert len(forms_of()) == 1
    layer.decode_to = 2  # the same form for less
    check(layer, torch.randn(2, K))
    assert len(forms_of()) == 1
    layer.decode_to = None
    assert not forms_of()
    check(layer, torch.randn(1, K))
    assert not forms_of()


def test_forms_follow_the_weight(monkeypatch):
    """Graphs read them in the same memory, whichever form the next call reads."""
    TwoPrograms(monkeypatch)
    layer = layer_of(K, N).requires_grad_(False)
    layer.decode_to = 4
    few, many = torch.randn(4, K), torch.randn(5, K)
    check(layer, few)
    (form,) = forms_of().values()
    parts = form.parts
    for x in (few, many, few, many):
        layer.values.mul_(2)
        check(layer, x)
        state = copy.deepcopy(layer.state_dict())
        state["values"].mul_(torch.rand(()) + 0.5)
        layer.load_state_dict(state)
        check(layer, x)
        assert form.parts is parts and list(forms_of().values()) == [form]
        assert all(map(same_bits, parts, form.kernels.store(layer.components())))
    memory = form.memory
    layer = form = None
    gc.collect()
    STORED.drop_expired()
    assert memory.expired() and not STORED._forms


def test_types_without_kernels_have_one_form(monkeypatch):
    programs = TwoPrograms(monkeypatch)
    layer = layer_of(K, N).double().requires_grad_(False)
    layer.decode_to, layer.dense_from = 4, 6
    for tokens in (4, 5, 6):
        x = torch.randn(tokens, K, dtype=torch.float64)
        torch.testing.assert_close(call(layer, x), layer.to_dense()(x))
    layer.decode_to = None
    assert programs.calls == [] and len(forms_of()) == 1  # the dense copy


def test_store_agrees(monkeypatch):
    """A layer that holds the form for few tokens needs no second one for these, and the
    other when many tokens come."""
    programs = TwoPrograms(monkeypatch)
    layer = layer_of(K, N).requires_grad_(False)
    layer.decode_to = 4
    layer.store_("bitmap")
    check(layer, torch.randn(4, K))
    assert not forms_of()
    check(layer, torch.randn(5, K))
    assert [one.kernels.storage for one in forms_of().values()] == ["canonical"]
    layer.store_("canonical")
    check(layer, torch.randn(5, K)), check(layer, torch.randn(4, K))
    STORED.drop_expired()
    assert [one.kernels.storage for one in forms_of().values()] == ["bitmap"]
    assert programs.calls == ["few", "many", "many", "few"]


@pytest.mark.parametrize(
    "dense_from, storage",
    [(None, "canonical"), (9, "canonical"), (5, "bitmap"), (3, "bitmap")],
)
def test_store_for_kernels(monkeypatch, dense_from, storage):
    """What is left is the second form, where all others are for a dense copy."""
    TwoPrograms(monkeypatch)
    monkeypatch.setattr(kernel_storage, "_is_on_gpu", lambda layer: True)
    model = nn.Sequential(layer_of(K, N)).eval()
    model[0].decode_to, model[0].dense_from = 4, dense_from
    report = store_for_kernels_(model)
    assert model[0].storage == storage == report.rows[0].storage
    x = torch.randn(4, K)
    check(model[0], x), check(model[0], x[:1])


def test_dense_copies_come_first(monkeypatch):
    programs = TwoPrograms(monkeypatch)
    layer = layer_of(K, N).requires_grad_(False)
    layer.decode_to, layer.dense_from = 8, 4
    for tokens in (3, 4, 8, 9):
        check(layer, torch.randn(tokens, K))
    assert programs.calls == ["few"]


def test_training_reads_what_it_writes(monkeypatch):
    TwoPrograms(monkeypatch)
    layer = layer_of(K, N, bias=True)
    layer.decode_to = 4
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    for tokens in (3, 5, 4, 6):
        x = torch.randn(tokens, K)
        check(layer, x)
        optimizer.zero_grad()
        layer(x).square().sum().backward()
        optimizer.step()
        check(layer, x)


def test_copies_and_states(monkeypatch):
    """The number is copied with the layer, and no form is; checkpoints have neither."""
    TwoPrograms(monkeypatch)
    layer = layer_of(K, N).requires_grad_(False)
    keys = list(layer.state_dict())
    layer.decode_to = 4
    x = torch.randn(4, K)
    check(layer, x)
    assert list(layer.state_dict()) == keys
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    other = layer_of(K, N).requires_grad_(False)
    other.values.zero_()
    other.load_state_dict(layer.state_dict())
    assert other.decode_to is None
    for one in (loaded, copy.deepcopy(layer)):
        assert one.decode_to == 4 and type(one._eager) is eager.EagerByRows
        check(one, x)
        torch.testing.assert_close(call(one, x), call(layer, x))
    assert len(STORED._forms) == 3
    half = copy.deepcopy(layer).half()
    assert half.decode_to == 4 and half.call_spec.count('"f16"') == 1
    torch.testing.assert_close(half(x.half()), half.to_dense()(x.half()))
    check(half.float(), x)


class Activated(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.act = layer_of(K, N, bias=True), nn.GELU()

    def forward(self, x):
        return self.act(self.one(x))


def test_layers_with_an_activation_behind(monkeypatch):
    module = Activated()
    activate_inside_(module, ["one"], "act", "gelu")
    module.one.decode_to = 4
    asked = []
    operator = torch.ops.nm_sparse.linear
    monkeypatch.setattr(
        torch.ops.nm_sparse,
        "linear",
        lambda *operands: asked.append(operands[3]) or operator(*operands),
    )
    x = torch.randn(3, K)
    torch.testing.assert_close(module(x), F.gelu(module.one.to_dense()(x)))
    (spec,) = map(LinearSpec.parse, asked)
    assert (spec.decode_to, spec.activation) == (4, "gelu")


@pytest.fixture
def gpu(monkeypatch):
    """Layers are called eagerly as on a GPU, by stand-ins of both programs."""
    programs = TwoPrograms(monkeypatch)
    monkeypatch.setattr(eager, "is_plain_call", lambda x: type(x) is torch.Tensor)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 7, False)
    return programs


def test_eager_calls(gpu):
    layer = layer_of(K, N, bias=True).requires_grad_(False)

    def run(shape):
        x = torch.randn(shape)
        torch.testing.assert_close(layer(x), layer.to_dense()(x), rtol=1e-4, atol=1e-5)

    run((3, K))
    layer.decode_to = 6
    for shape in ((K,), (2, 3, K), (1, K), (7, K), (2, 4, K), (6, K)):
        run(shape)
    assert gpu.calls == ["many", *["few"] * 3, *["many"] * 2, "few"]
    assert gpu.made == 3  # either is found once
    (form,) = forms_of().values()
    for shape, name in (((7, K), "many"), ((6, K), "few")):
        layer.values.mul_(2)
        run(shape)
        assert gpu.calls[-1] == name
        assert all(map(same_bits, form.parts, form.kernels.store(layer.components())))
    layer.dense_from = 5
    run((5, K)), run((4, K))
    assert gpu.calls[-2:] == ["few", "few"] and len(gpu.calls) == 10
    layer.decode_to = None
    run((1, K))
    assert gpu.calls[-1] == "many" and type(layer._eager) is eager.EagerCall


def test_compiled_graphs_of_any_shape():
    """Up to the limit and beyond it by one graph."""
    layer = layer_of(K, N, bias=True).requires_grad_(False)
    layer.decode_to = 4
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    compiled = torch.compile(layer, backend=backend, fullgraph=True, dynamic=True)
    for tokens in (3, 5, 4, 64):
        x = torch.randn(tokens, K)
        torch.testing.assert_close(compiled(x), layer.to_dense()(x))
    assert len(graphs) == 1
    text = str(graphs[0].code)
    assert text.count('"decode_to":4') == 1 and text.count(f'"tokens":{EACH}') == 1

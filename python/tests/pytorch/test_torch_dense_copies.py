# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that multiply many tokens by dense copies: stand-ins of kernels, and a GPU."""

import copy
import gc

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from dense_cases import (  # noqa: E402, F401
    Sparse,
    call,
    dense_mlp,
    layer_of,
    machine,
    mlp_of,
)
from storage_cases import draw_weight, same_bits  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse.torch import LinearSpec, NMLinear, shared_linear, store_for_kernels_  # noqa: E402
from nm_sparse.torch.layers import dense_copies, eager, shared_kernels  # noqa: E402
from nm_sparse.torch.layers.dense_copies import dense_form, unpack_dense  # noqa: E402
from nm_sparse.torch.weight import stored_forms  # noqa: E402
from nm_sparse.torch.weight.spec import ACTIVATIONS, DTYPE_NAMES  # noqa: E402
from nm_sparse.torch.weight.stored_forms import STORED  # noqa: E402

CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
K, N = 32, 24


@pytest.mark.parametrize("size", [1, 700, 1 << 21])
def test_dense_weights_have_the_same_bits(monkeypatch, size):
    """Of any encoding, type and form, whatever is unpacked at a time."""
    monkeypatch.setattr(dense_copies, "_SLICE", size)
    for seed in range(40):
        weight = draw_weight(seed)
        parts = list(weight.components.values())
        spec = LinearSpec(weight.encoding, weight.shape, DTYPE_NAMES[weight.dtype])
        assert same_bits(unpack_dense(parts, spec), weight.to_dense())
        layer = NMLinear.from_packed(weight).store_("bitmap")
        (found,) = dense_form(spec).store(layer.components(), "bitmap")
        assert same_bits(found, weight.to_dense())


@pytest.mark.parametrize("storage", ["canonical", "bitmap"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("text", ["2:4", "3:7, block = [2, 8], order = shuffled"])
def test_a_layer(monkeypatch, text, activation, storage):
    sparse = Sparse(monkeypatch)
    layer = layer_of(K, N, text, bias=True, activation=activation).store_(storage)
    layer.dense_from = 6
    shapes = [(K,), (5, K), (6, K), (2, 3, K), (7, K)]
    for shape, count in zip(shapes, (1, 2, 2, 2, 2)):
        x = torch.randn(shape)
        torch.testing.assert_close(call(layer, x), layer.to_dense()(x))
        assert sparse.calls == count
    assert call(layer, x[:0]).shape == (0, N) and sparse.calls == 2
    turned = torch.randn(K, 9).t()
    torch.testing.assert_close(call(layer, turned), layer.to_dense()(turned))
    assert sparse.calls == 2
    assert sparse.specs == {LinearSpec.parse(layer.kernel_spec).canonical}


def test_types_that_torch_does_not_multiply_by(monkeypatch):
    sparse = Sparse(monkeypatch)
    layer = NMLinear(K, N, "2:4", bias=False, dtype=torch.int8)
    layer.dense_from = 1
    assert call(layer, torch.randn(3, K)).shape == (3, N)
    with torch.inference_mode():
        other = NMLinear(K, N, "2:4", bias=False)
        other.dense_from = 1
        call(other, torch.randn(3, K))
    assert sparse.calls == 1 and not STORED._forms
    double = layer_of(K, N).double()
    double.dense_from = 1
    x = torch.randn(3, K, dtype=torch.float64)
    torch.testing.assert_close(call(double, x), double.to_dense()(x))
    assert len(STORED._forms) == 1


def test_layers_of_one_operator(monkeypatch):
    """They go together, from the largest of their numbers on."""
    sparse = Sparse(monkeypatch)
    layers = [layer_of(K, n, bias=n == 16) for n in (8, 16)]

    def run(x):
        found = shared_kernels.run_shared(
            x,
            [(one.operands(), one.bias, LinearSpec.parse(one.spec)) for one in layers],
        )
        for y, layer in zip(found, layers):
            torch.testing.assert_close(y, layer.to_dense()(x))

    layers[0].dense_from = 3
    run(torch.randn(2, 4, K))
    assert sparse.calls == 1
    layers[1].dense_from = 7
    run(torch.randn(6, K))
    assert sparse.calls == 2
    run(torch.randn(7, K))
    assert sparse.calls == 2


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gated_mlps(monkeypatch, activation):
    sparse = Sparse(monkeypatch)
    numbers = (2, 4, 6)
    mlp, run = mlp_of(K, N, activation, numbers)
    wanted = mlp_of(K, N, activation, (None,) * 3)[0]
    for tokens in (3, 4, 5, 6):
        x = torch.randn(tokens, K)
        gated, whole = run(x)
        with torch.no_grad():
            torch.testing.assert_close(whole, wanted(x))
            torch.testing.assert_close(wanted.down_proj(gated), wanted(x))
    # The gated product of 3 tokens, and the whole of 3 to 5.
    assert sparse.calls == 1 + 3
    mlp.down_proj.dense_from = None
    run(x)
    assert sparse.calls == 1 + 3 + 1
    assert mlp.obstacle() is None and mlp.is_whole()


def test_both_forms_follow_the_weight(monkeypatch):
    """Graphs read them in the same memory, whichever of them the next call reads."""
    sparse = Sparse(monkeypatch, "bitmap")
    layer = layer_of(K, N).requires_grad_(False)
    layer.dense_from = 4
    few, many = torch.randn(3, K), torch.randn(4, K)
    call(layer, few), call(layer, many)
    ((place, forms),) = STORED._forms.items()
    assert len(forms) == 2
    parts = {key: form.parts for key, form in forms.items()}

    def check():
        assert dict(STORED._forms) == {place: forms} and len(forms) == 2
        for key, form in forms.items():
            assert form.parts is parts[key]
            components = list(layer.weight.components.values())
            assert all(map(same_bits, form.parts, form.kernels.store(components)))

    for x in (few, many, few):
        layer.values.mul_(2)
        torch.testing.assert_close(call(layer, x), layer.to_dense()(x))
        check()
        state = copy.deepcopy(layer.state_dict())
        state["values"].add_(torch.where(state["values"] != 0, 1.0, 0.0))
        layer.load_state_dict(state)
        torch.testing.assert_close(call(layer, x), layer.to_dense()(x))
        check()
    # A weight that is trained has its own in graphs: only what is read is written.
    layer.requires_grad_()
    with torch.no_grad():
        layer.values.mul_(2)
    call(layer, many)
    assert len({str(form.version) for form in forms.values()}) == 2
    assert sparse.calls == 5
    layer = None
    sparse.forget()
    gc.collect()
    STORED.drop_expired()
    assert not STORED._forms


def test_kernels_that_read_the_layer_itself(monkeypatch):
    """Few tokens then look up nothing, but the copy follows all the same."""
    Sparse(monkeypatch, "canonical")
    layer = layer_of(K, N).requires_grad_(False)
    layer.dense_from = 4
    few, many = torch.randn(3, K), torch.randn(4, K)
    call(layer, few)
    assert not STORED._forms
    call(layer, many)
    ((forms),) = STORED._forms.values()
    ((copied,),) = (form.parts for form in forms.values())
    layer.values.mul_(2)
    call(layer, few)
    assert torch.equal(copied, layer.to_dense().weight)
    layer.dense_from = None
    assert not any(STORED._forms.values())
    call(layer, many)
    STORED.drop_expired()
    assert not STORED._forms


def test_graphs_read_the_copy_that_is_there(monkeypatch):
    Sparse(monkeypatch)
    layer = layer_of(K, N).requires_grad_(False)
    layer.dense_from = 4
    x = torch.randn(4, K)
    call(layer, x)
    read = []
    product = dense_copies.products
    monkeypatch.setattr(
        dense_copies,
        "products",
        lambda x, copies, *rest: read.extend(copies) or product(x, copies, *rest),
    )
    call(layer, x)
    with monkeypatch.context() as context:
        context.setattr(stored_forms, "_is_captured", lambda tensor: True)
        call(layer, x)
    layer.values.mul_(2)
    call(layer, x[:3])
    kept, captured = read
    assert kept is captured and torch.equal(captured, layer.to_dense().weight)


def test_eager_calls(machine):  # noqa: F811
    layer = layer_of(K, N, bias=True).requires_grad_(False)
    x = torch.randn(2, 3, K)

    def check(x, sparse, found):
        before = machine.calls, machine.found
        torch.testing.assert_close(layer(x), layer.to_dense()(x))
        assert (machine.calls - before[0], machine.found - before[1]) == (sparse, found)

    check(x, 1, 1)
    layer.dense_from = 6
    check(x[:1], 1, 1)
    assert not STORED._forms  # decoding alone makes no copy
    check(x, 0, 0)
    (forms,) = STORED._forms.values()
    (form,) = forms.values()
    for change in (
        lambda: layer.values.mul_(2),
        lambda: layer.load_state_dict(
            {**layer.state_dict(), "values": layer.values * 3}
        ),
    ):
        change()
        check(x[:1], 1, 1)
        assert torch.equal(form.parts[0], layer.to_dense().weight)
        change()
        check(x, 0, 1)
        check(x.transpose(0, 1), 0, 0)
        check(x[:1], 1, 0)
    layer.dense_from = 7
    check(x, 1, 1)
    layer.dense_from = None
    check(x, 1, 1)
    assert type(layer._eager._launch) is eager.Launch
    other = copy.deepcopy(layer)
    assert other._eager._launch is None


def test_eager_calls_of_several_layers(machine):  # noqa: F811
    mlp, _ = mlp_of(K, N, "gelu", (2, 4, 3))
    mlp.requires_grad_(False)
    machine.mlp, layers = mlp, [mlp.gate_proj, mlp.up_proj]

    def calls(x):
        before = machine.calls
        torch.testing.assert_close(mlp(x), dense_mlp(mlp, x))
        middle = machine.calls
        for y, layer in zip(shared_linear(x, layers), layers):
            torch.testing.assert_close(y, layer.to_dense()(x))
        return middle - before, machine.calls - middle

    x = torch.randn(4, K)
    assert calls(x[:3]) == (1, 1) and machine.found == 2
    assert calls(x) == (0, 0) and machine.found == 2
    # Launches of several layers see what only one of them is told.
    mlp.up_proj.dense_from = 5
    assert calls(x) == (1, 1) and calls(torch.randn(5, K)) == (0, 0)
    mlp.up_proj.dense_from = None
    assert calls(torch.randn(9, K)) == (1, 1)
    mlp.up_proj.dense_from = 4
    mlp.down_proj.values.mul_(2)
    assert calls(x) == (0, 0)
    mlp.down_proj.bias = nn.Parameter(torch.randn(K), requires_grad=False)
    assert not mlp.is_whole() and calls(x) == (0, 0)
    assert calls(x[:3]) == (1, 1)  # of which down is dense by itself


@CUDA
@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("text", ["8:16", "2:4", "8:32, block = [1, 32]"])
def test_on_a_gpu(text, is_stored):
    """The least and the most that is multiplied, by all operators, as they are and
    captured, while weights change."""
    torch.manual_seed(0)
    model = nn.Module()
    model.mlp = mlp_of(128, 256, "silu", (33, 33, 33), text)[0]
    model.one = layer_of(128, 64, text, bias=True, activation="gelu")
    model.q, model.k = layer_of(128, 64, text), layer_of(128, 96, text, bias=True)
    for layer in (model.one, model.q, model.k):
        layer.dense_from = 33
    model.half().cuda().eval().requires_grad_(False)
    if is_stored:
        store_for_kernels_(model)

    def run(x):
        return [model.mlp(x), model.one(x), *shared_linear(x, [model.q, model.k])]

    def dense(x):
        gate, up, down = (layer.to_dense() for layer in model.mlp.children())
        others = [one.to_dense()(x) for one in (model.one, model.q, model.k)]
        return [down(F.silu(gate(x)) * up(x)), *others]

    def check(found, x):
        for y, wanted in zip(found, dense(x)):
            torch.testing.assert_close(y, wanted, rtol=0.02, atol=0.02)

    xs = [torch.randn(n, 128, dtype=torch.float16, device="cuda") for n in (32, 33)]
    graphs = []
    for x in xs:
        check(run(x), x)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            run(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = run(x)
        graphs.append((graph, results, x))
    for at in (0, 1, 0):
        state = {
            key: 1.5 * part if key.endswith("values") else part
            for key, part in model.state_dict().items()
        }
        model.load_state_dict(state)
        run(xs[at])  # either writes both forms anew
        for graph, results, x in graphs:
            graph.replay()
            check(results, x)
            check(run(x), x)
    wanted = model.q.to_dense()(xs[1])
    torch.testing.assert_close(model.q(xs[1]), wanted, rtol=1e-3, atol=1e-3)

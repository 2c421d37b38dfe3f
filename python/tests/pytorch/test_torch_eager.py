# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers called without the dispatcher: what is kept between calls, and until when."""

import copy
import gc
import pickle
import types

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: E402

from nm_sparse.torch import NMLinear, PackedWeight  # noqa: E402
from nm_sparse.torch.layers import eager, kernels, watch  # noqa: E402
from nm_sparse.torch.layers.mlp import GatedMLP, shared_linear  # noqa: E402
from nm_sparse.torch.layers.ops import activate  # noqa: E402

N, K = 24, 32


class Kernels:
    """Multiplies by what it was made of, and counts."""

    def __init__(self, layers, product, outputs):
        self.outputs, self.calls, self.declines = outputs, [], False
        dense = [layer.weight.to_dense().detach() for layer in layers]

        def direct(stream, x, *rest):
            self.calls.append(stream)
            assert x.ndim == 2 and x.is_contiguous()
            weights, others = rest[: len(layers)], rest[len(layers) :]
            assert all(isinstance(one, tuple) for one in weights)
            results = others[len(others) - len(outputs) :]
            if self.declines:
                return None
            for y, value in zip(results, product(x, dense, others)):
                y.copy_(value)
            return results if len(results) > 1 else results[0]

        self.function = types.SimpleNamespace(direct=direct, writes_to_arguments=True)


@pytest.fixture
def machine(monkeypatch):
    """Calls are as on a GPU, on stream 7."""
    state = types.SimpleNamespace(stream=7, found=[], kernels=None)
    monkeypatch.setattr(eager, "is_plain_call", lambda x: type(x) is torch.Tensor)
    monkeypatch.setattr(
        torch._C, "_cuda_getCurrentRawStream", lambda device: state.stream, False
    )

    def find(layer):
        state.found.append(layer)
        bias = layer.bias
        state.kernels = Kernels(
            [layer],
            lambda x, w, others: [activate(F.linear(x, w[0], bias), layer.activation)],
            [layer.out_features],
        )
        return state.kernels, [layer.components()]

    monkeypatch.setattr(kernels, "find_eager", find)
    return state


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return NMLinear.from_dense(nn.Linear(K, N), "2:4").requires_grad_(False)


def check(layer, x):
    torch.testing.assert_close(layer(x), layer.to_dense()(x))


@pytest.mark.parametrize("shape", [(K,), (1, K), (5, K), (2, 3, K), (2, 1, 3, K)])
def test_shapes(machine, layer, shape):
    check(layer, torch.randn(shape))
    check(layer, torch.randn(shape[::-1]).permute(*range(len(shape))[::-1]))
    assert machine.kernels.calls == [7, 7] and len(machine.found) == 1


@pytest.mark.parametrize("is_native", [True, False])
def test_kernels_are_found_anew_where_something_has_changed(
    monkeypatch, machine, layer, is_native
):
    x = torch.randn(3, K)
    if not is_native:  # as where torch does not offer its tensors to C
        monkeypatch.setattr(watch.direct, "watch", lambda count, places: None)

    def finds():
        before = len(machine.found)
        for _ in range(2):
            check(layer, x)
        return len(machine.found) - before

    assert finds() == 1 and finds() == 0
    with torch.no_grad():
        layer.values.mul_(2)
    assert finds() == 1 and finds() == 0
    layer.load_state_dict(copy.deepcopy(layer.state_dict()), assign=True)
    assert finds() == 1
    copied = layer.weight.with_components({"index": layer.index.clone()})
    layer.weight = nn.Parameter(copied, requires_grad=False)
    assert finds() == 1
    layer.bias = nn.Parameter(torch.randn(N), requires_grad=False)
    assert finds() == 1
    layer.bias.data.add_(1)  # which kernels read anew
    assert finds() == 0
    layer.bias.data = layer.bias.data.clone()
    assert finds() == 1
    layer.bias = None
    assert finds() == 1
    machine.stream = 8
    assert finds() == 1 and machine.kernels.calls == [8, 8]
    layer.values.data = layer.values.data.clone()
    assert finds() == 1 and finds() == 0


def test_what_the_operator_computes(machine, layer):
    x = torch.randn(3, K)
    trained = copy.deepcopy(layer).requires_grad_(True)
    with torch.no_grad():
        check(trained, x)
    assert machine.found == [trained]
    assert layer(x[:0]).shape == (0, N)
    with pytest.raises(Exception, match="needs"):
        layer(torch.randn(3, K + 1))
    with pytest.raises(Exception, match="x is torch.float64"):
        layer(x.double())
    machine.kernels.declines = True
    with torch.no_grad():
        check(trained, x)  # by the operator


def test_other_types_and_devices_are_not_looked_for(machine):
    narrow = NMLinear(K, N, "2:4", bias=False, dtype=torch.float8_e4m3fn)
    narrow.requires_grad_(False)
    x = torch.randn(3, K).half()
    assert narrow(x).shape == (3, N)
    elsewhere = NMLinear(K, N, "2:4", bias=False, device="meta").requires_grad_(False)
    with pytest.raises(Exception, match="the weight on meta"):
        elsewhere(x.float())
    assert not machine.found


def test_swapped_tensors(machine, layer):
    """The parameter is the same object, and has another's components."""
    x = torch.randn(3, K)
    check(layer, x)
    with torch.no_grad():
        other = nn.Parameter(layer.weight.clone().mul_(2), requires_grad=False)
    torch.utils.swap_tensors(layer.weight, other)
    check(layer, x)
    assert len(machine.found) == 2


def test_biases_that_kernels_cannot_read(machine, layer):
    class Bias(torch.Tensor):
        pass

    x = torch.randn(3, K)
    for bias in (
        torch.randn(2 * N)[::2],
        torch.randn(N).as_subclass(Bias),
        torch.randn(1).expand(N),
    ):
        layer._parameters["bias"] = bias
        torch.testing.assert_close(layer(x), layer.to_dense()(x), check_dtype=False)
    assert not machine.found


def test_what_is_loaded_while_kernels_are_found(machine, layer, monkeypatch):
    """As another thread may."""
    find = kernels.find_eager

    def slowly(one):
        found = find(one)
        if len(machine.found) == 1:
            with torch.no_grad():
                layer.values.mul_(3)
        return found

    monkeypatch.setattr(kernels, "find_eager", slowly)
    x = torch.randn(3, K)
    layer(x)
    check(layer, x)
    assert len(machine.found) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda layer: layer.store_("bitmap"),
        lambda layer: layer.to(torch.float64),
        lambda layer: layer.to("meta"),
    ],
)
def test_nothing_of_the_weight_is_kept_behind_a_change(machine, layer, change):
    with torch.no_grad():
        layer(torch.randn(3, K))
    memory = StorageWeakRef(layer.values.untyped_storage())
    change(layer)
    machine.kernels = None
    gc.collect()
    assert memory.expired()


def test_values_that_a_hook_computes(machine, layer):
    """As those of torch.nn.utils.weight_norm, which are no parameter."""
    wanted = layer.to_dense()
    weight = layer.weight.detach()
    del layer.weight
    layer.register_forward_pre_hook(lambda own, x: setattr(own, "weight", 2 * weight))
    x = torch.randn(3, K)
    y = layer(x) - layer.bias
    torch.testing.assert_close(y, 2 * (wanted(x) - layer.bias))
    assert not machine.found


@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "silu"])
@pytest.mark.parametrize("needs", ["x", "weight", "bias", "x weight bias"])
def test_gradients(machine, layer, activation, needs):
    """Those of the operator, by kernels that are found once."""
    layer.activation = activation
    layer.hold(layer.weight, is_trained=False)
    for name in needs.split():
        if name != "x":
            getattr(layer, name).requires_grad_()
    found = []
    for is_eager in (True, False):
        x = torch.randn(2, 3, K, generator=torch.Generator().manual_seed(1))
        x.requires_grad_("x" in needs)
        y = layer(x)
        if not is_eager:
            y = torch.ops.nm_sparse.linear(x, layer.operands(), layer.bias, layer.spec)
        wanted = [x if name == "x" else getattr(layer, name) for name in needs.split()]
        found.append(torch.autograd.grad(y.square().sum(), wanted))
    for one, other in zip(*found):
        if isinstance(one, PackedWeight):
            assert isinstance(other, PackedWeight)
            one, other = one.to_dense(), other.to_dense()
        torch.testing.assert_close(one, other)
    assert len(machine.found) == 1


def test_copies_know_nothing(machine, layer):
    x = torch.randn(3, K)
    check(layer, x)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        with torch.no_grad():
            other.values.add_(1)
        check(other, x)
    check(layer, x)
    assert [one is layer for one in machine.found] == [True, False, False]


def test_layers_of_one_input(machine, monkeypatch):
    from nm_sparse.torch.layers import shared_kernels

    torch.manual_seed(1)
    sizes = ((K, N), (K, N), (N, K))
    layers = [
        NMLinear.from_dense(nn.Linear(*size, bias=False), text).requires_grad_(False)
        for size, text in zip(sizes, ("2:4", "2:4", "4:8"))
    ]
    made = []

    def gated(x, w):
        return F.silu(F.linear(x, w[0])) * F.linear(x, w[1])

    def find_gated(spec, device):
        made.append(Kernels(layers[:2], lambda x, w, others: [gated(x, w)], [N]))
        return made[-1]

    def find_mlp(spec, down, device):
        def product(x, w, others):
            return [F.linear(gated(x, w), w[2])]

        made.append(Kernels(layers, product, [K]))
        return made[-1]

    def find_shared(specs, biases, device):
        def product(x, w, others):
            return [F.linear(x, one) for one in w]

        assert biases == (False, False)
        made.append(Kernels(layers[:2], product, [N, N]))
        return made[-1]

    monkeypatch.setattr(shared_kernels, "find_gated", find_gated)
    monkeypatch.setattr(shared_kernels, "find_mlp", find_mlp)
    monkeypatch.setattr(shared_kernels, "find_shared", find_shared)
    monkeypatch.setattr(
        shared_kernels, "find_eager", lambda kernels, weights, specs: (kernels, weights)
    )
    mlp = GatedMLP(*layers)
    gate, up, down = (layer.to_dense() for layer in layers)
    for tokens in ((2, 3), (2, 3), (4,)):
        x = torch.randn(*tokens, K)
        torch.testing.assert_close(mlp(x), down(F.silu(gate(x)) * up(x)))
        for y, dense in zip(shared_linear(x, layers[:2]), (gate, up)):
            torch.testing.assert_close(y, dense(x))
    assert [len(one.calls) for one in made] == [3, 3]
    mlp.activation = "relu"
    found = len(made)
    mlp(x)
    assert len(made) == found + 1  # kernels of another activation
    mlp.down_proj = down  # which is dense
    torch.testing.assert_close(mlp(x), down(F.silu(gate(x)) * up(x)))
    assert len(made) == found + 2 and made[-1].outputs == [N]
    mlp.down_proj = layers[2]
    layers[0].forward = lambda x: torch.zeros(*x.shape[:-1], N)
    torch.testing.assert_close(mlp(x), torch.zeros(4, K))
    assert len(made) == found + 2

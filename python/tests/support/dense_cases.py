# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stand-ins of sparse kernels that count their calls, for tests of dense copies."""

import types

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nm_sparse.torch import GatedMLP, LinearSpec, NMLinear
from nm_sparse.torch.layers import eager, kernels, shared_kernels
from nm_sparse.torch.layers.mlp_ops import gated_specs, mlp_specs
from nm_sparse.torch.layers.ops import activate
from nm_sparse.torch.weight.shared_spec import whole_text, with_activation
from nm_sparse.torch.weight.storage import from_storage
from nm_sparse.torch.weight.stored_forms import STORED, StoredForm
from nm_sparse.torch.weight.weight import PackedWeight


def numbers(model):
    """`dense_from` of each packed layer, by its name."""
    return {
        name: layer.dense_from
        for name, layer in model.named_modules()
        if isinstance(layer, NMLinear)
    }


class Form(StoredForm):
    """Of kernels that read weights of `spec` as `storage`."""

    def __init__(self, spec, storage):
        assert spec.dense_from is None
        self.spec, self.storage, self.encoding = spec, storage, spec.encoding
        stored = LinearSpec(spec.encoding, spec.shape, spec.dtype, storage=storage)
        self.names = list(stored.components)

    def dense(self, parts):
        """The weight that they would multiply by."""
        spec = LinearSpec(
            self.encoding, self.spec.shape, self.spec.dtype, storage=self.storage
        )
        own = [
            part.view(dtype)
            for part, (_, dtype) in zip(parts, spec.components.values())
        ]
        named = dict(zip(spec.canonical.components, from_storage(own, spec)))
        return PackedWeight(named, self.encoding, torch.Size(spec.shape)).to_dense()


class Sparse:
    """Kernels in the place of compiled ones.

    storage:  the form of weights that they read.
    calls:    how often they were called.
    specs:    for which single layers they were asked.
    """

    def __init__(self, monkeypatch, storage="bitmap"):
        self.storage, self.calls, self.specs = storage, 0, set()
        monkeypatch.setattr(kernels, "find_kernels", self.find)
        monkeypatch.setattr(shared_kernels, "find_gated", self.find_gated)
        monkeypatch.setattr(shared_kernels, "find_mlp", self.find_mlp)
        monkeypatch.setattr(shared_kernels, "find_shared", self.find_shared)
        monkeypatch.setattr(kernels, "stream_of", lambda x: 0)
        monkeypatch.setattr(STORED, "_forms", {})

    def find(self, spec, has_bias, device):
        self.specs.add(spec)
        form = Form(spec, self.storage)
        form.__class__ = type("Called", (Form,), {"__call__": self._linear})
        self._form = form
        return form

    def forget(self):
        del self._form

    def _linear(self, x, parts, bias, stream):
        self.calls += 1
        form = self._form
        return activate(F.linear(x, form.dense(parts), bias), form.spec.activation)

    def find_gated(self, spec, device):
        return self._several([spec, spec], self._gated)

    def find_mlp(self, gate, down, device):
        return self._several([gate, gate, down], self._gated)

    def find_shared(self, specs, biases, device):
        def product(x, dense, others, specs):
            others = iter(others)
            given = [next(others) if one else None for one in biases]
            return [F.linear(x, w, bias) for w, bias in zip(dense, given)]

        return self._several(specs, product)

    @staticmethod
    def _gated(x, dense, others, specs):
        y = activate(F.linear(x, dense[0]), specs[0].activation) * F.linear(x, dense[1])
        return [F.linear(y, dense[2]) if len(dense) == 3 else y]

    def _several(self, specs, product):
        forms = [Form(spec, self.storage) for spec in specs]

        class Several:
            def __call__(_, x, weights, others, stream):
                self.calls += 1
                dense = [form.dense(one) for form, one in zip(forms, weights)]
                return product(x, dense, others, specs)

        made = Several()
        made.forms = forms
        return made


def layer_of(k, n, text="2:4", bias=False, **options):
    """A packed layer; the same for equal sizes."""
    torch.manual_seed(k + n)
    return NMLinear.from_dense(nn.Linear(k, n, bias=bias), text, **options)


def call(layer, x):
    """The layer, as on a GPU, by its operator."""
    spec = LinearSpec.parse(layer.spec)
    return kernels.run_linear(x, layer.operands(), layer.bias, spec)


def mlp_of(k, n, activation, numbers, text="4:8"):
    """A gated MLP whose layers have these numbers; and what runs gate and up, and the
    whole, as on a GPU."""
    layers = [layer_of(k, n, text), layer_of(k, n, text), layer_of(n, k, text)]
    with torch.no_grad():
        layers[1].values.mul_(-0.5)
    for layer, number in zip(layers, numbers):
        layer.dense_from = number
    mlp = GatedMLP(*layers, activation)

    def run(x):
        parts = [layer.operands() for layer in layers]
        gate = mlp._gate_spec()
        specs = gated_specs(with_activation(gate, activation))
        gated = shared_kernels.run_gated_mlp(x, *parts[:2], specs)
        whole = mlp_specs(whole_text(gate, layers[2].spec, activation))
        with torch.no_grad():
            return gated.detach(), shared_kernels.run_mlp(x, parts, whole).detach()

    return mlp, run


def dense_mlp(mlp, x, is_whole=True):
    """What a gated MLP computes, or its gate and up, by dense layers."""
    gate, up, down = (layer.to_dense() for layer in mlp.children())
    y = activate(gate(x), mlp.activation) * up(x)
    return down(y) if is_whole else y


@pytest.fixture
def machine(monkeypatch):
    """Layers are called eagerly as on a GPU, by kernels that count."""
    state = types.SimpleNamespace(calls=0, found=0)
    monkeypatch.setattr(eager, "is_plain_call", lambda x: type(x) is torch.Tensor)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 7, False)
    monkeypatch.setattr(STORED, "_forms", {})

    def made(product, outputs):
        state.found += 1

        def direct(stream, x, *rest):
            state.calls += 1
            results = rest[len(rest) - len(outputs) :]
            for y, value in zip(results, product(x)):
                y.copy_(value)
            return results

        function = types.SimpleNamespace(direct=direct, writes_to_arguments=True)
        return types.SimpleNamespace(function=function, outputs=outputs)

    def find_eager(layer):
        dense = layer.to_dense()
        return made(lambda x: [dense(x)], [layer.out_features]), [layer.components()]

    def whole(gate, down, device):
        return made(lambda x: [dense_mlp(state.mlp, x)], [down.shape[0]])

    def gated(gate, device):
        return made(lambda x: [dense_mlp(state.mlp, x, False)], [gate.shape[0]])

    def shared(specs, biases, device):
        layers = state.mlp.gate_proj, state.mlp.up_proj
        outputs = [spec.shape[0] for spec in specs]
        return made(lambda x: [layer.to_dense()(x) for layer in layers], outputs)

    monkeypatch.setattr(kernels, "find_eager", find_eager)
    monkeypatch.setattr(shared_kernels, "find_mlp", whole)
    monkeypatch.setattr(shared_kernels, "find_gated", gated)
    monkeypatch.setattr(shared_kernels, "find_shared", shared)
    monkeypatch.setattr(
        shared_kernels, "find_eager", lambda kernels, weights, specs: (kernels, weights)
    )
    return state

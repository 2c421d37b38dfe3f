# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations in the kernels of the layers before them, and when they are not."""

import copy
import functools
import pickle

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from shared_cases import operators, packed  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    NMConv2d,
    NMSparseConfig,
    activate_inside_,
    fuse_,
    share_input_,
    sparsify_,
)
from nm_sparse.torch.models.stand_in import activated_names  # noqa: E402


class Mlp(nn.Module):
    def __init__(self, act=None):
        super().__init__()
        self.fc1, self.fc2 = packed(32, 48, bias=True), packed(48, 32)
        self.act = act or nn.GELU()

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


def activations(function):
    """The activations in the specs of the linear operators that are called."""
    found = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            if operator is torch.ops.nm_sparse.linear.default:
                found.append(args[3].partition('"activation":"')[2].partition('"')[0])
            return operator(*args, **(kwargs or {}))

    with torch.no_grad(), Mode():
        function()
    return found


def reason(module, name="0"):
    (row,) = fuse_(nn.Sequential(module)).rows
    assert row.name == name and row.kind == "activation"
    return row.reason


def test_an_activation_is_in_the_kernel_before_it():
    x = torch.randn(2, 5, 32)
    for act, name in ((nn.GELU(), "gelu"), (nn.ReLU(), "relu"), (F.silu, "silu")):
        mlp = Mlp(act)
        mlp(x).square().sum().backward()
        wanted = {key: one.grad for key, one in mlp.named_parameters()}
        mlp.zero_grad()
        with torch.no_grad():
            y = mlp(x)
        assert reason(mlp) == ""
        assert activated_names(mlp) == (("fc1",), name)
        assert activations(lambda mlp=mlp: mlp(x)) == [name, "none"]
        copies = [mlp, copy.deepcopy(mlp)]
        if act is not F.silu:
            copies.append(pickle.loads(pickle.dumps(mlp)))
        for one in copies:
            assert activations(lambda one=one: one(x)) == [name, "none"]
            with torch.no_grad():
                torch.testing.assert_close(one(x), y)
        mlp(x).square().sum().backward()
        for key, one in mlp.named_parameters():
            other = wanted[key]
            values = (one.grad, other) if key.endswith("bias") else (
                one.grad.values, other.values)  # fmt: skip
            torch.testing.assert_close(*values)
        compiled = torch.compile(mlp, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), y)
        del mlp.forward
        assert activations(lambda mlp=mlp: mlp(x)) == ["none", "none"]


def test_layers_and_activations_may_change_afterwards():
    mlp, x = Mlp(), torch.randn(3, 32)
    fuse_(nn.Sequential(mlp))
    with torch.no_grad():
        y = mlp(x)
        layer, mlp.fc1 = mlp.fc1, mlp.fc1.to_dense()
        torch.testing.assert_close(mlp(x), y)
        assert activations(lambda: mlp(x)) == ["none"]
        mlp.fc1 = layer
        mlp.act = nn.ReLU()
        torch.testing.assert_close(mlp(x), mlp.fc2(F.relu(mlp.fc1(x))))
    other = Mlp()
    fuse_(nn.Sequential(other))
    seen = []
    other.act.register_forward_hook(lambda *_: seen.append(1))
    other(x)
    assert seen == [1]
    hooked = Mlp()
    fuse_(nn.Sequential(hooked))
    hooked.fc1.register_forward_hook(lambda *_: torch.zeros(3, 48))
    with torch.no_grad():
        zeros = hooked.fc2(hooked.act(torch.zeros(3, 48)))
        torch.testing.assert_close(hooked(x), zeros)
    dense = nn.Sequential(Mlp())
    dense[0].fc1 = nn.Linear(32, 48)
    dense[0].fc2 = nn.Linear(48, 32)
    fuse_(dense)
    sparsify_(dense, NMSparseConfig("2:4", keep_slower=True), predictor=lambda *_: ())
    assert activations(lambda: dense(x)) == ["gelu", "none"]


def test_what_is_activated_besides_stays():
    class Twice(Mlp):
        def forward(self, x, flag=False):
            y = self.act(self.fc1(x))
            return self.fc2(self.act(y)) if not flag else self.fc2(y)

    mlp, x = Twice(), torch.randn(3, 32)
    with torch.no_grad():
        wanted = mlp(x)
        assert reason(mlp) == ""
        torch.testing.assert_close(mlp(x), wanted)
        torch.testing.assert_close(mlp(x, True), Mlp.forward(mlp, x))

    class Chunks(Mlp):
        """The layers are called by a method, and that by a function."""

        def chunk(self, x):
            return self.fc2(self.act(self.fc1(x)))

        def forward(self, x):
            return torch.cat([self.chunk(one) for one in x.split(2)])

    chunks = Chunks()
    with torch.no_grad():
        wanted = chunks(x)
        assert reason(chunks) == ""
        torch.testing.assert_close(chunks(x), wanted)
    assert activations(lambda: chunks(x)) == ["gelu", "none"] * 2

    class Decorated(Mlp):
        @functools.wraps(Mlp.forward)
        def forward(self, *args, **kwargs):
            assert type(self).forward is Decorated.forward
            return Mlp.forward(self, *args, **kwargs)

    assert reason(Decorated()) == ""


def test_what_stays_as_it_is_has_a_reason():
    class Normed(Mlp):
        def forward(self, x):
            return self.fc2(self.act(F.layer_norm(self.fc1(x), (48,))))

    class Residual(Mlp):
        def forward(self, x):
            y = self.fc1(x)
            return self.fc2(self.act(y) + y)

    class Returned(Mlp):
        def forward(self, x):
            y = self.fc1(x)
            return self.fc2(self.act(y)), y

    class Again(Mlp):
        def forward(self, x):
            y = self.fc1(x)
            return self.fc2(self.act(y) + self.act(y))

    class InPlace(Mlp):
        def forward(self, x):
            y = self.fc1(x)
            y += 1
            return self.fc2(self.act(y))

    for kind in (Normed, Residual, Returned, Again, InPlace):
        assert reason(kind()) == "act is not applied to what fc1 returns"
    assert (
        reason(Mlp(nn.Softplus())) == "its act is none of relu, gelu, gelu_tanh, silu"
    )
    wrapped = Mlp()
    wrapped.forward = lambda x: x
    assert reason(wrapped) == "it has a forward of its own"

    class Broken(Mlp):
        def forward(self, x, sizes):
            return super().forward(x.view(sizes["rows"], 32))

    assert "it cannot be tried by itself (" in reason(Broken())
    with pytest.raises(EncodingError, match="Mlp has no layer fc3"):
        activate_inside_(Mlp(), ("fc3",), "act", "gelu")
    with pytest.raises(EncodingError, match="Mlp has no activation function"):
        activate_inside_(Mlp(), ("fc1",), "function", "gelu")
    fused = Mlp()
    activate_inside_(fused, ("fc1",), "act", "gelu")
    with pytest.raises(EncodingError, match="has a forward of its own"):
        activate_inside_(fused, ("fc1",), "act", "gelu")


def test_convolutions_are_activated():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            dense = nn.Conv2d(8, 8, 3, padding=1)
            self.convolution = NMConv2d.from_dense(dense, "2:4")
            self.activation = nn.ReLU()

        def forward(self, x):
            return self.activation(self.convolution(x))

    layer, x = Layer(), torch.randn(2, 8, 5, 5)
    with torch.no_grad():
        wanted = layer(x)
        assert reason(layer) == ""
        torch.testing.assert_close(layer(x), wanted)
    assert operators(lambda: layer(x)) == ["conv2d"]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (packed(16, 16, bias=True) for _ in range(3))

    def forward(self, hidden_states, key_value_states=None, scale=1.0):
        other = hidden_states if key_value_states is None else key_value_states
        return self.query(hidden_states) * scale + self.key(other) * self.value(other)


def test_attention_to_others_shares_nothing():
    attention, x, other = Attention(), torch.randn(2, 3, 16), torch.randn(2, 3, 16)
    plain = copy.deepcopy(attention)
    (row,) = fuse_(nn.Sequential(attention)).rows
    assert (row.kind, row.reason) == ("shared input", "")
    assert operators(lambda: attention(x)) == ["linear_shared"]
    calls = (
        lambda one: one(x, other),
        lambda one: one(x, key_value_states=other, scale=2.0),
        lambda one: one(hidden_states=x, key_value_states=other),
    )
    with torch.no_grad():
        torch.testing.assert_close(attention(x), plain(x))
        for call in calls:
            torch.testing.assert_close(call(attention), call(plain))
            assert operators(lambda call=call: call(attention)) == ["linear"] * 3

    class Cross(Attention):
        def forward(self, hidden_states, memory):
            return super().forward(hidden_states, memory)

    (row,) = fuse_(nn.Sequential(Cross())).rows
    assert "are not given the input of the module" in row.reason
    share_input_(Attention(), ("key", "value"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dense_from", [None, 100])
def test_cuda(dense_from):
    mlp = Mlp()
    mlp.fc1, mlp.fc2 = packed(256, 512, bias=True), packed(512, 256)
    mlp = mlp.half().cuda().eval()
    fuse_(nn.Sequential(mlp))
    mlp.fc1.dense_from = dense_from
    first, last = mlp.fc1.to_dense(), mlp.fc2.to_dense()
    for tokens in (1, 7, 200):
        x = torch.randn(tokens, 256, dtype=torch.float16, device="cuda")
        wanted = last(F.gelu(first(x)))
        with torch.no_grad():
            for _ in range(2):  # the second one without a search
                torch.testing.assert_close(mlp(x), wanted, rtol=0.03, atol=0.03)
        torch.testing.assert_close(mlp(x), wanted, rtol=0.03, atol=0.03)
    mlp.zero_grad()
    mlp(x).float().square().mean().backward()
    last(F.gelu(first(x))).float().square().mean().backward()
    found, wanted = mlp.fc1.bias.grad, first.bias.grad
    torch.testing.assert_close(found, wanted, rtol=0.05, atol=1e-3)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that stay dense: one rule for sparsify_, prune_, advise and pack_."""

import copy

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from prune_models import quiet  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.utils import parametrizations, prune  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    NMLinear,
    NMSparseConfig,
    advise,
    sparsify_,
)
from nm_sparse.torch.prune import PruneConfig, pack_  # noqa: E402

SIZE = 16
DATA = [torch.randn(32, SIZE, generator=torch.Generator().manual_seed(0))]


def linear():
    return nn.Linear(SIZE, SIZE)


def masked():
    return prune.l1_unstructured(linear(), "weight", 0.3)


def hooked():
    layer = linear()
    layer.register_forward_hook(lambda *_: None)
    return layer


def normed_by_hook():
    return nn.utils.weight_norm(linear())


class Scaled(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2


class Mixed(nn.Linear):
    """Converts types, which `nn.Linear` does not."""

    def forward(self, x):
        return F.linear(x.to(self.weight.dtype), self.weight, self.bias)


class Dropping(nn.Linear):
    def forward(self, x):
        return F.dropout(super().forward(x), 0.5, self.training)


class Adapted(nn.Linear):
    """As LoRA begins: what it adds is zero."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.more = nn.Parameter(torch.zeros(sizes[1], sizes[0]))

    def forward(self, x):
        return super().forward(x) + F.linear(x, self.more)


class Merging(nn.Linear):
    def merge(self):
        """For others to call."""


def replaced():
    layer = linear()
    layer.forward = lambda x: F.linear(x, layer.weight, layer.bias) + 1
    return layer


class Quantized(torch.Tensor):
    """Stands for the tensors of a library that quantizes weights."""


def quantized():
    layer = linear()
    layer.weight = nn.Parameter(layer.weight.detach().as_subclass(Quantized))
    return layer


def in_integers():
    layer = linear()
    layer.weight = nn.Parameter(layer.weight.data.to(torch.int8), requires_grad=False)
    return layer


# A layer that stays dense, and a part of the reason.
CASES = {
    "parametrized": (lambda: parametrizations.weight_norm(linear()), "parametrizatio"),
    "spectral_norm": (lambda: nn.utils.spectral_norm(linear()), "computed by a hook"),
    "weight_norm": (normed_by_hook, "computed by a hook of torch.nn.utils"),
    "masked": (masked, "computed by a hook of torch.nn.utils"),
    "hooked": (hooked, "it has hooks"),
    "scaled": (lambda: Scaled(SIZE, SIZE), "its forward is not x W^T + b"),
    "mixed": (lambda: Mixed(SIZE, SIZE), "its forward is not x W^T + b"),
    "dropping": (lambda: Dropping(SIZE, SIZE), "its forward is not x W^T + b"),
    "adapted": (lambda: Adapted(SIZE, SIZE), "it has more as well"),
    "merging": (lambda: Merging(SIZE, SIZE), "it has merge as well"),
    "replaced": (replaced, "its forward has been replaced"),
    "quantized": (quantized, "its weight is a Quantized; make the model sparse befo"),
    "integers": (in_integers, "its weight is of torch.int8"),
    "meta": (lambda: nn.Linear(SIZE, SIZE, device="meta"), "on the meta device"),
    "lazy": (lambda: nn.LazyLinear(SIZE), "its shape is unknown"),
    "narrow": (lambda: nn.Linear(3, SIZE), "3 inputs are less than a window of 4"),
    "small": (lambda: nn.Linear(4, 4), "packed it takes"),
}


def slow(shape, dtype, encoding, tokens, chip=None):
    """A predictor, for which sparse layers are twice as fast."""
    return [(count, 2.0, 1.0) for count in tokens]


class Beside(nn.Module):
    """A plain layer that runs, beside a special one."""

    def __init__(self, special):
        super().__init__()
        self.plain, self.special = linear(), special

    def forward(self, x):
        return self.plain(x)


@pytest.mark.parametrize("case", CASES)
def test_one_rule_for_all(case):
    make, wanted = CASES[case]
    model = Beside(make())
    report = quiet(model, "2:4", DATA)
    assert [row.name for row in report.layers] == ["plain"]
    assert wanted in report.left_dense["special"]
    assert f"special  dense: {report.left_dense['special']}" in str(report)
    other = Beside(make())
    found = sparsify_(other, "2:4", predictor=slow)
    assert found.converted == ["plain"]
    assert found.left_dense == report.left_dense
    third = Beside(make())
    advice = advise(third, 1, ["2:4"], DATA, predictor=slow, progress=False)
    assert [layer.name for layer in advice.layers] == ["plain"]
    assert advice.left_dense == report.left_dense


@pytest.mark.parametrize("case", CASES)
def test_a_model_of_nothing_else_is_refused_with_the_reason(case):
    make, wanted = CASES[case]
    model = nn.Sequential(make())
    with pytest.raises(EncodingError) as error:
        quiet(model, "2:4", [])  # before it looks at the data
    assert "config leaves no nn.Linear of the model to prune: 0: " in str(error.value)
    assert wanted in str(error.value)


def test_pack_follows_the_same_rule():
    model = nn.Sequential(linear(), linear())
    report = quiet(model, "2:4", DATA)
    handle = model[1].register_forward_hook(lambda *_: None)
    with pytest.raises(EncodingError, match="^1 cannot be packed: it has hooks"):
        pack_(model, report)
    assert type(model[0]) is type(model[1]) is nn.Linear
    handle.remove()
    pack_(model, report)
    assert all(isinstance(layer, NMLinear) for layer in model)


def test_whatever_is_pruned_can_be_packed():
    """Small layers, too: none takes more memory than before."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    for pattern in ("8:32, block = [1, 128]", "8:32, block = [1, 64]", "2:4"):
        own = copy.deepcopy(model)
        dense = {
            name: one.weight.nbytes for name, one in own.named_children() if name != "1"
        }
        try:
            report = quiet(own, pattern, [torch.randn(64, 64)])
        except EncodingError as error:
            assert "128" in pattern and "outputs are less than a panel" in str(error)
            continue
        pack_(own, report)
        for row in report.layers:
            assert own.get_submodule(row.name).weight.nbytes < dense[row.name]
        assert ("2" in report.left_dense) == ("64]" in pattern)


def test_larger_weights_are_kept_only_when_asked_for():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 64))
    config = PruneConfig("2:4", keep_larger=True)
    report = quiet(copy.deepcopy(model), config, [torch.randn(8, 4)])
    assert [row.name for row in report.layers] == ["0", "1"]
    config = NMSparseConfig("2:4", keep_slower=True)
    assert sparsify_(model, config).converted == ["0", "1"]


class Inheriting(nn.Linear):
    """Adds nothing but what it begins with, as ESMFold's."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        nn.init.normal_(self.weight)


class Multiplying(nn.Linear):
    """As Falcon's: the same by other operators."""

    def forward(self, input):
        hidden_states = input @ self.weight.T
        if self.bias is None:
            return hidden_states
        return hidden_states + self.bias


@pytest.mark.parametrize("kind", [Inheriting, Multiplying])
@pytest.mark.parametrize("bias", [True, False])
def test_classes_that_add_nothing_become_sparse(kind, bias):
    model = nn.Sequential(kind(SIZE, SIZE), nn.ReLU(), linear())
    if not bias:
        model[0].bias = None
    other = copy.deepcopy(model)
    assert sparsify_(model, "2:4", predictor=slow).converted == ["0", "2"]
    report = quiet(other, PruneConfig("2:4", score="magnitude", fit=False))
    wanted = other(DATA[0])
    pack_(other, report)
    torch.testing.assert_close(model(DATA[0]), wanted)
    torch.testing.assert_close(other(DATA[0]), wanted)


def test_falcon():
    transformers = pytest.importorskip("transformers")
    config = transformers.FalconConfig(
        vocab_size=100, hidden_size=64, num_hidden_layers=1, num_attention_heads=4
    )
    model = transformers.FalconForCausalLM(config).eval()
    ids = torch.arange(16)[None]
    report = quiet(model, "2:4", [ids])
    names = {row.name.rpartition(".")[2] for row in report.layers}
    assert names == {"query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"}
    with torch.no_grad():
        wanted = model(ids).logits
        pack_(model, report)
        torch.testing.assert_close(model(ids).logits, wanted, rtol=1e-4, atol=1e-5)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers whose weight others read stay dense: modules of torch, of models, adapters."""

import copy

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from prune_models import quiet  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse.torch import (  # noqa: E402
    NMLinear,
    sparsify_,
    sparsify_within_,
)
from nm_sparse.torch.prune import pack_  # noqa: E402

SIZE = 16
DATA = [torch.randn(32, SIZE, generator=torch.Generator().manual_seed(0))]


def linear():
    return nn.Linear(SIZE, SIZE)


def slow(shape, dtype, encoding, tokens, chip=None):
    """A predictor, for which sparse layers are twice as fast."""
    return [(count, 2.0, 1.0) for count in tokens]


class Reading(nn.Module):
    """Reads the weight of one layer as a tensor, and asks for the type of another."""

    def __init__(self, how="matmul"):
        super().__init__()
        self.asked, self.read, self.how = linear(), linear(), how

    def forward(self, x):
        x = self.asked(x.to(self.asked.weight.dtype))
        return self._product(x)

    def _product(self, x):
        if self.how == "matmul":
            return x + (self.read.weight @ x.transpose(-1, -2)).transpose(-1, -2)
        if self.how == "linear":
            return F.linear(x, self.read.weight, self.read.bias)
        return self.read(x) + self.read.weight.T.sum()


@pytest.mark.parametrize("how", ["matmul", "linear", "both"])
def test_layers_that_others_read_stay_dense(how):
    model = nn.Sequential(linear(), Reading(how))
    before = model[1].read.weight.detach().clone()
    reason = "its weight is read outside of its forward, by Reading 1"
    report = quiet(model, "2:4", DATA)
    assert [row.name for row in report.layers] == ["0", "1.asked"]
    assert report.left_dense == {"1.read": reason}
    assert torch.equal(model[1].read.weight, before)
    wanted = model(DATA[0])
    pack_(model, report)
    torch.testing.assert_close(model(DATA[0]), wanted, rtol=1e-4, atol=1e-5)
    model = nn.Sequential(linear(), Reading(how))
    assert sparsify_(model, "2:4", predictor=slow).left_dense == {"1.read": reason}
    model(DATA[0])
    advice, _ = sparsify_within_(
        model := nn.Sequential(linear(), Reading(how)), 1.0, DATA, ["2:4"],
        predictor=slow, progress=False,
    )  # fmt: skip
    assert advice.left_dense == {"1.read": reason}
    assert isinstance(model[0], NMLinear) and type(model[1].read) is nn.Linear


def test_reads_that_no_source_shows_are_found_in_the_run():
    class Hidden(Reading):
        def _product(self, x):
            layer = dict(self.named_children())["read"]
            return x @ layer.weight

    model = nn.Sequential(linear(), Hidden())
    report = quiet(model, "2:4", DATA)
    assert report.left_dense == {
        "1.read": "its weight is read outside of its forward, by matmul"
    }
    # sparsify_ sees no run, but a packed weight is a tensor, too.
    other = nn.Sequential(linear(), Hidden())
    assert sparsify_(other, "2:4", predictor=slow).left_dense == {}
    dense = other[1].read.weight.to_dense()
    x = other[1].asked(other[0](DATA[0]))
    torch.testing.assert_close(other(DATA[0]), x @ dense)


class Settings:
    parts = 1


class Branching(nn.Module):
    """As models that can be told to multiply by slices of their weights."""

    def __init__(self, parts, exact=True):
        super().__init__()
        self.config, self.exact = Settings(), exact
        self.config.parts = parts
        self.layer, self.other = linear(), linear()

    def forward(self, x):
        if self.config.parts > 1 and self.exact:
            x = sum(F.linear(a, w) for a, w in self.slices(x))
        elif x is not None:
            x = self.layer(x)
        return self.other(x) if not self.exact or self.config.parts == 1 else x

    def slices(self, x):
        size = SIZE // self.config.parts
        return zip(x.split(size, -1), self.layer.weight.split(size, 1))


@pytest.mark.parametrize("parts, exact", [(1, True), (2, True), (2, False)])
def test_branches_that_settings_rule_out_read_nothing(parts, exact):
    model = nn.Sequential(linear(), Branching(parts, exact))
    found = sparsify_(model, "2:4", predictor=slow)
    reads = {"1.layer"} if parts == 2 and exact else set()
    assert set(found.left_dense) == reads
    model(DATA[0])


def test_training_rules_out_nothing():
    class Training(Reading):
        def forward(self, x):
            if self.training and self.how == "matmul":
                return x @ self.read.weight
            return self.read(x)

    for mode in (True, False):
        model = nn.Sequential(Training("matmul")).train(mode)
        assert set(sparsify_(model, "2:4", predictor=slow).left_dense) == {"0.read"}
        model = nn.Sequential(Training("other")).train(mode)
        assert not sparsify_(model, "2:4", predictor=slow).left_dense


def test_attention_of_torch():
    layer = nn.TransformerEncoderLayer(SIZE, 4, 2 * SIZE, batch_first=True, dropout=0)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = [torch.randn(2, 8, SIZE)]
    reason = "its weight is read outside of its forward, by MultiheadAttention layers."
    found = sparsify_(copy.deepcopy(model), "2:4", predictor=slow)
    report = quiet(model, "2:4", x)
    names = [f"layers.{i}.linear{j}" for i in (0, 1) for j in (1, 2)]
    assert [row.name for row in report.layers] == found.converted == names
    assert report.left_dense == found.left_dense
    assert all(text.startswith(reason) for text in report.left_dense.values())
    with torch.no_grad():
        wanted = model(x[0])
        pack_(model, report)
        torch.testing.assert_close(model(x[0]), wanted, rtol=1e-4, atol=1e-5)


def test_mamba():
    transformers = pytest.importorskip("transformers")
    config = transformers.MambaConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=1, state_size=8
    )
    torch.manual_seed(0)
    model, ids = transformers.MambaForCausalLM(config).eval(), torch.arange(16)[None]
    report = quiet(copy.deepcopy(model), "2:4", [ids])
    found = sparsify_(model, "2:4", predictor=slow)
    assert report.left_dense == found.left_dense
    assert "by MambaMixer" in found.left_dense["backbone.layers.0.mixer.dt_proj"]
    assert "backbone.layers.0.mixer.in_proj" in found.converted
    dense = copy.deepcopy(model)
    from nm_sparse.torch import to_dense_

    to_dense_(dense)
    with torch.no_grad():
        torch.testing.assert_close(
            model(ids).logits, dense(ids).logits, rtol=1e-4, atol=1e-5
        )


def test_adapters_stay_dense():
    class Lora(nn.Module):
        adapter_layer_names = ("lora_A", "lora_B")

        def __init__(self):
            super().__init__()
            self.base_layer = linear()
            self.lora_A = nn.ModuleDict({"default": linear()})
            self.lora_B = nn.ModuleDict({"default": linear()})

        def forward(self, x):
            return self.base_layer(x) + self.lora_B.default(self.lora_A.default(x))

    model = nn.Sequential(Lora())
    assert [row.name for row in quiet(model, "2:4", DATA).layers] == ["0.base_layer"]
    found = sparsify_(model, "2:4", predictor=slow)
    assert found.converted == ["0.base_layer"]
    assert set(found.left_dense.values()) == {"it is an adapter of 0"}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with convolutions and `Conv1D`: pruned, packed, folded and fused."""

import pytest

torch = pytest.importorskip("torch")

from conv_models import ANY, Model, batch, dense_of, times  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse.torch import (  # noqa: E402
    NMConv2d,
    NMLinear,
    advise,
    sparsify_,
)
from nm_sparse.torch.layers.convertible import (  # noqa: E402
    conv1d_class,
    matrix_of,
    matrix_shape,
    write_matrix_,
)
from nm_sparse.torch.prune import (  # noqa: E402
    PruneConfig,
    Statistics,
    hold_masks,
    pack_,
    prune_,
    prune_linear_,
)


def test_sparsify_replaces_convolutions():
    model = Model().eval()
    report = sparsify_(model, ANY, predictor=times)
    assert report.left_dense == {
        "stem": "its 3 channels are less than a window of 4",
        "depthwise": "it has 16 groups; there are kernels for one",
    }
    row = next(one for one in report.rows if one.name == "blocks.1.conv1")
    assert row.shape == (32, 144) and row.packed_bytes < row.dense_bytes
    assert isinstance(model.blocks[0].conv1, NMConv2d)
    assert not any(isinstance(m, nn.Conv2d) for m in model.blocks.modules())
    convolutions = 16 * (144 + 144 + 16) + 32 * (144 + 288 + 16)
    assert report.size.sparse == 4 * (convolutions + 32 * 8)
    dense = dense_of(model)
    assert isinstance(dense.blocks[1].shortcut, nn.Conv2d)
    assert dense.blocks[1].shortcut.stride == (2, 2)
    with torch.no_grad():
        torch.testing.assert_close(model(batch()), dense(batch()))
    state = model.state_dict()
    other = Model(seed=1).eval()
    sparsify_(other, ANY, predictor=times)
    other.load_state_dict(state)
    with torch.no_grad():
        torch.testing.assert_close(other(batch()), model(batch()))
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(batch()), model(batch()))


def test_convolutions_that_would_copy_patches_stay_dense():
    """Where times are predicted, and the config does not say otherwise."""
    report = sparsify_(Model(), "2:4", predictor=times)
    assert "blocks.1.shortcut" in report.converted
    assert "copy patches" in report.left_dense["blocks.0.conv1"]
    gathers = sparsify_(Model(), "2:4, block = [1, 16]", predictor=times)
    assert {"blocks.0.conv1", "blocks.1.conv2"} <= set(gathers.converted)
    copies = sparsify_(Model().half(), "2:4", predictor=times)
    assert {"blocks.0.conv1", "blocks.1.conv2"} <= set(copies.converted)
    found = advise(Model(), 256, ["2:4"], predictor=times, progress=False)
    assert "copy patches" in found["blocks.0.conv1"].options[0].reason
    with pytest.raises(TypeError, match="NMConv2d.from_dense"):
        sparsify_(nn.Conv2d(8, 8, 3), "2:4")


@pytest.mark.parametrize("score", ["wanda", "surgeon"])
def test_prune_fits_convolutions_on_patches(score):
    data = [batch(4, seed=seed) for seed in range(3)]
    errors = {}
    for fit in (True, False):
        model, dense = Model().eval(), Model().eval()
        config = dict(score=score, fit=fit, fit_bias=False)
        report = prune_(model, PruneConfig("2:4", **config), data, progress=False)
        assert {row.name for row in report.layers} == {
            "blocks.0.conv1", "blocks.0.conv2", "blocks.0.shortcut",
            "blocks.1.conv1", "blocks.1.conv2", "blocks.1.shortcut", "head",
        }  # fmt: skip
        row = report["blocks.1.conv1"]
        assert row.tokens == 3 * 4 * 5 * 5 and row.shape == (32, 144)
        assert report["blocks.0.conv1"].tokens == 3 * 4 * 10 * 10
        with torch.no_grad():
            wanted = dense(data[0])
            errors[fit] = float((model(data[0]) - wanted).norm() / wanted.norm())
            pruned = model(data[0])
            pack_(model, report)
            torch.testing.assert_close(model(data[0]), pruned)
        assert isinstance(model.blocks[0].conv1, NMConv2d)
    assert errors[True] < errors[False]


def test_statistics_are_those_of_the_layer():
    """The fit of a convolution is that of a linear layer on its patches."""
    torch.manual_seed(0)
    conv = nn.Conv2d(8, 6, (3, 2), padding=1, stride=2, bias=False)
    model = nn.Sequential(conv)
    linear = nn.Linear(48, 6, bias=False)
    with torch.no_grad():
        linear.weight.copy_(matrix_of(conv))
    x = torch.randn(5, 8, 7, 9)
    unfolded = nn.functional.unfold(x, (3, 2), padding=1, stride=2)
    rows = unfolded.reshape(5, 8, 6, -1).permute(0, 3, 2, 1).reshape(-1, 48)
    seen = Statistics(48)
    seen.add(rows)
    config = PruneConfig("2:4")
    prune_linear_(linear, config, seen)
    report = prune_(model, config, [x], progress=False)
    torch.testing.assert_close(matrix_of(conv), linear.weight.detach())
    assert report["0"].tokens == len(rows)


def test_kernels_of_several_sizes_of_one_image_have_statistics_of_their_own():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.small, self.large = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, padding=1)

        def forward(self, x):
            return self.small(x) + self.large(x)

    report = prune_(Two(), "2:4", [torch.randn(2, 8, 6, 6)], progress=False)
    assert [row.shape for row in report.layers] == [(8, 8), (8, 72)]


def test_masks_of_convolutions_are_held():
    model = Model()
    prune_(
        model,
        {"blocks.*": "2:4", "*": None},
        [batch()],
        progress=False,
    )
    zeros = model.blocks[0].conv1.weight == 0
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    with hold_masks(model):
        for _ in range(3):
            model(batch()).square().mean().backward()
            optimizer.step()
    assert torch.equal(model.blocks[0].conv1.weight == 0, zeros)
    assert float(zeros.float().mean()) == 0.5


def conv1d(inputs, outputs):
    transformers = pytest.importorskip("transformers")
    layer = transformers.pytorch_utils.Conv1D(outputs, inputs)
    nn.init.normal_(layer.bias)
    return layer


def test_conv1d_is_a_linear_layer():
    torch.manual_seed(0)
    layer = conv1d(16, 24)
    assert matrix_shape(layer) == (24, 16)
    packed = NMLinear.from_dense(layer, "2:4", activation="gelu")
    dense = packed.to_dense()[0]
    assert type(dense) is type(layer) and dense.weight.shape == (16, 24)
    x = torch.randn(3, 5, 16)
    torch.testing.assert_close(packed(x), nn.functional.gelu(dense(x)))
    again = NMLinear.from_dense(dense, "2:4")
    assert torch.equal(again.weight.to_dense(), packed.weight.to_dense())
    write_matrix_(layer, torch.ones(24, 16))
    assert bool((layer.weight == 1).all())
    assert conv1d_class(nn.Linear(2, 2)) is None


@pytest.mark.parametrize("calibrated", [False, True])
def test_gpt2_is_pruned_and_packed(calibrated):
    transformers = pytest.importorskip("transformers")
    sizes = dict(vocab_size=60, n_embd=32, n_layer=2, n_head=4, n_positions=32)
    ends = dict(bos_token_id=0, eos_token_id=0)
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **ends))
    model.eval()
    tokens = torch.randint(0, 60, (3, 7))
    layers = {"lm_head": None, "*": "2:4"}
    if calibrated:
        report = prune_(model, layers, [tokens], progress=False)
        assert report["transformer.h.0.attn.c_attn"].shape == (96, 32)
        assert report["transformer.h.0.attn.c_attn"].tokens == 21
        kept = model.transformer.h[0].attn.c_attn.weight != 0
        assert bool((kept.reshape(8, 4, 96).sum(1) == 2).all())
        with torch.no_grad():
            wanted = model(tokens).logits
        pack_(model, report)
    else:
        config = {"lm_head": None, "*": ANY}
        report = sparsify_(model, config, predictor=times)
        assert len(report.converted) == 8 and list(report.left_dense) == ["lm_head"]
        with torch.no_grad():
            wanted = dense_of(model)(tokens).logits
    with torch.no_grad():
        torch.testing.assert_close(model(tokens).logits, wanted)
    dense = dense_of(model)
    same = transformers.GPT2LMHeadModel(model.config)
    assert {n: p.shape for n, p in dense.named_parameters()} == {
        n: p.shape for n, p in same.named_parameters()
    }


def test_other_layers_of_these_classes_stay_dense():
    class Standardized(nn.Conv2d):
        def forward(self, x):
            weight = self.weight - self.weight.mean()
            return self._conv_forward(x, weight, self.bias)

    class Plain(nn.Conv2d):
        """As libraries have them, to give it another name."""

    class Scaled(type(conv1d(4, 4))):
        def forward(self, x):
            return 2 * super().forward(x)

    model = nn.ModuleDict(
        dict(
            own=Standardized(8, 8, 3),
            plain=Plain(8, 8, 3),
            mirrored=nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect"),
            scaled=Scaled(8, 8),
        )
    )
    report = sparsify_(model, ANY, predictor=times)
    assert report.converted == ["plain"]
    assert "not a plain nn.Conv2d: it has a forward" in report.left_dense["own"]
    assert "not a plain Conv1D: it has a forward" in report.left_dense["scaled"]
    assert report.left_dense["mirrored"] == "it pads with reflect, not with zeros"

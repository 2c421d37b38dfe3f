# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose layers become sparse with elements of 8 bits."""

import pytest

torch = pytest.importorskip("torch")

from scaled_cases import ELEMENTS, LARGEST  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    ExportError,
    NMLinear,
    NMSparseConfig,
    calibrate_inputs_,
    export_mlir,
    fuse_,
    sparsify_,
    sparsify_within_,
    store_for_kernels_,
    to_dense_,
    use_dense_,
)
from nm_sparse.torch.prune import PruneConfig, pack_, prune_  # noqa: E402
from nm_sparse.torch.prune.least_squares import fit  # noqa: E402
from nm_sparse.torch.prune.rounding import round_fitted, round_weight  # noqa: E402
from nm_sparse.torch.weight.masks import prune_weight  # noqa: E402

BOTH = pytest.mark.parametrize("elements", ELEMENTS)


class Block(nn.Module):
    """A part of a Llama, as far as its layers share inputs."""

    def __init__(self, size=64, inside=128):
        super().__init__()
        self.norm = nn.RMSNorm(size)
        for name in ("q_proj", "k_proj", "v_proj"):
            setattr(self, name, nn.Linear(size, size, bias=name == "q_proj"))
        self.mlp = Gated(size, inside)

    def forward(self, x):
        y = self.norm(x)
        y = self.q_proj(y) * self.k_proj(y) + self.v_proj(y)
        return x + self.mlp(y)


class Gated(nn.Module):
    def __init__(self, size, inside):
        super().__init__()
        self.gate_proj = nn.Linear(size, inside, bias=False)
        self.up_proj = nn.Linear(size, inside, bias=False)
        self.down_proj = nn.Linear(inside, size, bias=False)
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


def model_of(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(Block(), Block()).eval()


def times(shape, dtype, encoding, tokens, chip):
    """Sparse is twice as fast as dense for few tokens, and elements as f32."""
    unit = 4.0 if dtype == "f32" else 1.0
    return [(n, 8 * unit, 4 * unit if n < 100 else 9 * unit) for n in tokens]


def layers_of(model):
    return [one for one in model.modules() if isinstance(one, NMLinear)]


def relative(found, wanted):
    return float((found - wanted).norm() / wanted.norm())


@BOTH
def test_a_model(elements):
    model, x = model_of(), torch.randn(2, 5, 64)
    plain = model_of()
    sparsify_(plain, NMSparseConfig("2:4", keep_slower=True), predictor=times)
    config = NMSparseConfig("2:4", weights=elements, activations=elements)
    report = sparsify_(model, config, predictor=times)
    layers = layers_of(model)
    assert len(layers) == 12 == len(report.converted)
    for layer, row in zip(layers, report.rows):
        assert (layer.elements, layer.activations) == (elements, elements)
        assert 0 < row.rounding < 0.04 and row.packed_bytes < row.dense_bytes / 3.5
        assert layer.weight.nbytes == row.packed_bytes
        few, _, many, most = row.predictions
        assert (few.dense_us, few.dense_elements_us, few.sparse_us) == (32, 8, 4)
        assert (most.copy_us, most.speedup) == (8, 32 / 9)
        # Beside a dense layer with the same elements, sparse is slower for many.
        assert layer.dense_from == 128 and row.copy_bytes == row.shape[0] * row.shape[1]
    said = str(report)
    assert "rounding error" in said and "32.0 -> 8.0 -> 4.0" in said
    assert "that of a dense layer with the same elements" in said
    with torch.no_grad():
        before = model(x)
        error = relative(before, plain(x))
        assert 0 < error < (0.1 if elements == "e4m3" else 0.03)
        fuse_(model, predictor=times)
        torch.testing.assert_close(model(x), before, rtol=1e-3, atol=1e-3)
    assert not store_for_kernels_(model).changed  # on the CPU
    assert use_dense_(model, 7).rows[0].dense_from == 7
    dense = to_dense_(model)
    assert dense is None or len(layers_of(model)) == 0
    assert not layers_of(model)


def test_same_activations():
    model, x = model_of(), torch.randn(2, 5, 64)
    config = NMSparseConfig("2:4", weights="e4m3", scales="tensor")
    report = sparsify_(model, config, predictor=times)
    row, layer = report.rows[0], layers_of(model)[0]
    assert layer.activations == "same" and row.predictions[0].sparse_us == 16
    assert row.predictions[0].dense_elements_us is None
    assert len(layer.scale.unique()) == 1
    assert row.copy_bytes == 4 * row.shape[0] * row.shape[1]  # of what it stands for
    before = model(x)
    to_dense_(model)
    torch.testing.assert_close(model(x), before, rtol=1e-4, atol=1e-4)


def test_small_and_odd_layers():
    """The bytes of elements decide."""
    model = nn.Sequential(nn.Linear(64, 64).half(), nn.Conv2d(64, 64, 1).half())
    config = NMSparseConfig("3:4", weights="e4m3")
    report = sparsify_(model, config, predictor=lambda *a: [])
    assert isinstance(model[0], NMLinear) and model[0].elements == "e4m3"
    assert report.rows[0].packed_bytes < report.rows[0].dense_bytes
    assert getattr(model[1], "elements", None) is None


def test_wrong_configs_are_named():
    for options, said in (
        ({"weights": "e5m2"}, "weights is 'e5m2': legal is 'e4m3', 'int8', or None"),
        ({"activations": "e4m3"}, "and weights None: legal is 'same'"),
        ({"weights": "int8", "activations": "e4m3"}, "legal is 'same' or 'int8'"),
        ({"weights": "int8", "scales": "row"}, "scales is 'row': legal is 'output'"),
    ):
        for kind in (NMSparseConfig, PruneConfig):
            with pytest.raises(EncodingError, match=said):
                kind("2:4", **options)


def cases():
    """A weight, its mask, its fit and what is known of its inputs."""
    torch.manual_seed(1)
    n, k = 48, 96
    weight = torch.randn(n, k)
    x = torch.randn(4 * k, k) @ (torch.eye(k) + 2 * torch.randn(k, k) / k**0.5)
    gram = (x.t() @ x).double()
    mask = prune_weight(weight, "2:4")[0] != 0
    return weight, mask, gram


def off(weight, other, gram):
    change = (weight - other).double()
    return float(((change @ gram) * change).sum())


@BOTH
@pytest.mark.parametrize("scales", ["output", "tensor"])
def test_rounding_knows_the_inputs(elements, scales):
    weight, mask, gram = cases()
    fitted = fit(weight, mask, gram, damping=0.01).weight
    plain = round_weight(fitted, elements, scales)
    found = [
        round_fitted(fitted, weight, mask, gram, None, 0.01, elements, scales, sweeps)
        for sweeps in (0, 1, 3)
    ]
    assert torch.equal(found[0].weight, plain.weight)
    # Rounding adds less to the error of the fit.
    added = [off(weight, one.weight, gram) - off(weight, fitted, gram) for one in found]
    assert 0 < added[2] <= added[1] < 0.8 * added[0]
    for one in (plain, *found):
        assert not one.weight[~mask].any()
        units = one.weight / one.scale[:, None]
        packed = NMLinear.from_dense(
            _linear(one.weight.bfloat16()), "2:4", prune=False, elements=elements,
            scale=one.scale,
        )  # fmt: skip
        again = packed.weight.to(torch.float32).to_dense()
        # Elements are found again, also of numbers that were rounded to bf16.
        torch.testing.assert_close(again, one.weight, rtol=1e-5, atol=1e-7)
        assert float(units.abs().max()) <= LARGEST[elements] * 1.0001


def _linear(weight):
    linear = nn.Linear(*weight.shape[::-1], bias=False, dtype=weight.dtype)
    with torch.no_grad():
        linear.weight.copy_(weight)
    return linear


def test_inputs_that_say_nothing():
    weight, mask, gram = cases()
    fitted = weight * mask
    for matrix in (torch.zeros_like(gram), gram * float("nan")):
        one = round_fitted(fitted, weight, mask, matrix, damping=0.0)
        assert torch.isfinite(one.weight).all() and not one.weight[~mask].any()


@BOTH
@pytest.mark.parametrize("has_fit", [True, False])
def test_pruned_models(elements, has_fit):
    batches = [torch.randn(4, 16, 64) for _ in range(4)]
    found = {}
    for weights in (None, elements):
        model = model_of()
        config = PruneConfig("2:4", weights=weights, fit=has_fit,
                             activations=weights or "same")  # fmt: skip
        report = prune_(model, config, batches, progress=False)
        found[weights] = [row.error_after for row in report.layers]
        before = {name: p.clone() for name, p in model.state_dict().items()}
        pack_(model, report)
    assert all(row.scale is not None for row in report.layers)
    assert "scale" not in report.layers[0].to_dict()
    for row in report.layers:
        layer = model.get_submodule(row.name)
        assert layer.elements == elements == layer.activations
        assert torch.equal(layer.scale, row.scale)
        wanted = before[f"{row.name}.weight"]
        torch.testing.assert_close(layer.weight.to_dense(), wanted, rtol=1e-5, atol=0)
    # Little more than without rounding.
    assert sum(found[elements]) < 1.05 * sum(found[None])


def test_a_budget():
    model, batches = model_of(), [torch.randn(4, 16, 64) for _ in range(4)]
    patterns = [
        "2:4",
        PruneConfig("2:4", weights="e4m3", activations="e4m3"),
        PruneConfig("2:4", weights="int8"),
    ]
    advice, _ = sparsify_within_(
        model, 0.9, batches, patterns, predictor=times, tokens=16, progress=False
    )
    layer = advice.layers[0]
    assert [one.text for one in layer.options] == ["2:4", "2:4, e4m3", "2:4, int8"]
    assert layer.chosen is layer.options[1] and layer.dense == {16: 32}
    assert all(one.elements == "e4m3" for one in layers_of(model))
    assert "2:4, e4m3" in str(advice)


def test_scales_of_inputs():
    model, batches = model_of(), [torch.randn(4, 16, 64) for _ in range(3)]
    with pytest.raises(EncodingError, match="no layer of the model rounds its input"):
        calibrate_inputs_(model, batches, progress=False)
    config = NMSparseConfig("2:4", weights="e4m3", activations="e4m3")
    sparsify_(model, config, predictor=times)
    fuse_(model, predictor=times)
    with torch.no_grad():
        dynamic = model(batches[0])
    scales = calibrate_inputs_(model, batches, progress=False)
    assert len(scales) == 12
    largest = max(float(model[0].norm(x).abs().max()) for x in batches)
    assert scales["0.q_proj"] == pytest.approx(largest / 448, rel=1e-5)
    with torch.no_grad():
        assert 0 < relative(model(batches[0]), dynamic) < 0.1
    again = calibrate_inputs_(model, lambda m: m(batches[1]), progress=False)
    assert again["0.q_proj"] <= scales["0.q_proj"]
    before = {name: float(model.get_submodule(name).input_scale) for name in scales}
    bad = [batches[0], torch.full((1, 2, 64), float("nan"))]
    with pytest.raises(EncodingError, match="is given nan in calibration"):
        calibrate_inputs_(model, bad, progress=False)
    after = {name: float(model.get_submodule(name).input_scale) for name in scales}
    assert after == before


def test_exports_say_what_they_do_not_have():
    for activations in ("same", "e4m3"):
        linear = nn.Linear(64, 32)
        own = dict(elements="e4m3", activations=activations)
        model = nn.Sequential(NMLinear.from_dense(linear, "2:4", **own)).eval()
        with pytest.raises(ExportError, match="elements of 8 bits with scales: legal"):
            export_mlir(model, (torch.randn(2, 64),))
        layer = model[0]
        model[0] = NMLinear.from_packed(layer.weight.dequantize(), layer.bias)
        text = export_mlir(model, (torch.randn(2, 64),)).text
        assert "#nm_sparse.encoding<2:4" in text

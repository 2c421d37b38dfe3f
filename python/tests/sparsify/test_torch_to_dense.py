# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts for configs, and to_dense_: the way back, and to tools that know no packed
layers."""

import copy
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from nm_sparse import Encoding, EncodingError  # noqa: E402
from nm_sparse.torch import NMLinear, NMSparseConfig, sparsify_, to_dense_  # noqa: E402

X = torch.randn(4, 32, generator=torch.Generator().manual_seed(0))


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16, bias=False))
    model[2].requires_grad_(False)
    return model.eval()


def fast(shape, dtype, encoding, tokens, chip=None):
    return [(count, 2.0, 1.0) for count in tokens]


@pytest.mark.parametrize("config", ["2:4", Encoding(2, 4), NMSparseConfig("2:4")])
def test_a_text_is_a_config(config):
    model = make()
    report = sparsify_(model, config, predictor=fast)
    assert report.converted == ["0", "2"]
    assert {row.encoding for row in report.rows} == {"2:4"}
    other = make()
    report = sparsify_(other, {"2": None, "*": config}, predictor=fast)
    assert report.converted == ["0"]
    wide = {"0": "8:32, block = [1, 16]", "*": config}
    sparsify_(other := make(), wide, predictor=fast)
    assert [str(other[at].encoding) for at in (0, 2)] == [
        "8:32, block = [1, 16], dim = 1",
        "2:4, dim = 1",
    ]


def test_the_way_back():
    model = make()
    model[1].again = model[0]  # the same layer, in two places
    sparsify_(model, "2:4", predictor=fast)
    wanted, state = model(X), [model[0].to_dense().weight, model[2].to_dense().weight]
    assert to_dense_(model) == ["0", "2"]
    assert [type(layer) for layer in model] == [nn.Linear, nn.ReLU, nn.Linear]
    assert model[1].again is model[0] and not model[0].training
    assert model[0].weight.requires_grad and not model[2].weight.requires_grad
    for layer, weight in zip((model[0], model[2]), state):
        assert torch.equal(layer.weight, weight) and (weight == 0).sum() >= 256
    torch.testing.assert_close(model(X), wanted)
    assert to_dense_(model) == []
    assert sparsify_(model, "2:4", predictor=fast).rows[0].kept_magnitude == 1


def test_some_layers_and_refusals():
    model = make()
    sparsify_(model, "2:4", predictor=fast)
    packed = model[2]
    with pytest.raises(
        EncodingError, match="model is a packed layer.*use its to_dense"
    ):
        to_dense_(packed)
    handle = packed.register_forward_hook(lambda *_: None)
    with pytest.raises(EncodingError, match="^2 has hooks, which the dense layer"):
        to_dense_(model)
    assert isinstance(model[0], NMLinear) and model[2] is packed
    assert to_dense_(model, lambda layer, name: name == "0") == ["0"]
    assert type(model[0]) is nn.Linear and model[2] is packed
    handle.remove()
    model[2] = NMLinear.from_packed(packed.weight, packed.bias, activation="relu")
    wanted = model(X)
    assert to_dense_(model) == ["2"]
    assert [type(one) for one in model[2]] == [nn.Linear, nn.ReLU]
    torch.testing.assert_close(model(X), wanted)


@pytest.mark.parametrize("tool", ["trace", "script", "func", "onnx", "dynamic"])
def test_tools_that_know_no_packed_layers(tool):
    model = make()
    sparsify_(model, "2:4", predictor=fast)
    wanted = model(X)
    to_dense_(model)
    if tool in ("trace", "script"):
        make_script = torch.jit.script
        if tool == "trace":

            def make_script(one):
                return torch.jit.trace(one, X)

        file = io.BytesIO()
        torch.jit.save(make_script(model), file)
        file.seek(0)
        torch.testing.assert_close(torch.jit.load(file)(X), wanted)
    elif tool == "func":
        parameters = {name: one.detach() for name, one in model.named_parameters()}

        def loss(given):
            return torch.func.functional_call(model, given, (X,)).square().sum()

        found = torch.func.grad(loss)(parameters)
        model.requires_grad_()(X).square().sum().backward()
        for name, one in model.named_parameters():
            torch.testing.assert_close(found[name], one.grad)
    elif tool == "onnx":
        pytest.importorskip("onnxscript")
        program = torch.onnx.export(copy.deepcopy(model), (X,), dynamo=True)
        torch.testing.assert_close(program(X)[0], wanted)
    else:
        from torch.ao.quantization import quantize_dynamic

        found = quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
        assert (found(X) - wanted).norm() < 0.1 * wanted.norm()


def test_exported_programs_are_loaded_by_others(tmp_path):
    """docs/Export.md: by a process that imports the package, and nothing else of it."""
    model = make()
    sparsify_(model, "2:4", predictor=fast)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(model, (X,)), path)
    torch.save(model(X), tmp_path / "wanted.pt")
    code = f"""
import nm_sparse.torch, torch
program = torch.export.load({str(path)!r})
x = torch.randn(4, 32, generator=torch.Generator().manual_seed(0))
torch.testing.assert_close(
    program.module()(x), torch.load({str(tmp_path / "wanted.pt")!r})
)
"""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr

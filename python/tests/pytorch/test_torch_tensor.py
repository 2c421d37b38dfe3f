# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed weights as tensors: copied, saved, moved, averaged, trained and traced."""

import copy
import io
import pickle

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.utils import parametrize  # noqa: E402
from torch_cases import ENCODINGS, random_weight  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import NMLinear, PackedWeight  # noqa: E402

EACH = pytest.mark.parametrize("e", ENCODINGS, ids=str)
FREE = {"lr": 1e-2, "weight_decay": 0.1}
OPTIMIZERS = [
    (torch.optim.SGD, {"momentum": 0.9}),
    (torch.optim.Adam, {"amsgrad": True}),
    (torch.optim.AdamW, {}),
    (torch.optim.RMSprop, {"momentum": 0.5, "centered": True}),
    (torch.optim.Adagrad, {"initial_accumulator_value": 0.1}),
    (torch.optim.Adadelta, {}),
    (torch.optim.Adamax, {}),
    (torch.optim.NAdam, {}),
    (torch.optim.RAdam, {}),
]
FUSED = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad)


def layer_of(e="2:4", seed=0, **options):
    torch.manual_seed(seed)
    return NMLinear.from_dense(nn.Linear(40, 24), e, **options)


def same(a, b):
    return all(
        torch.equal(x, y)
        for x, y in zip(a.components.values(), b.components.values(), strict=True)
    )


@EACH
def test_copies(e):
    layer = layer_of(e)
    weight = layer.weight
    file = io.BytesIO()
    torch.save(weight, file)
    file.seek(0)
    held = (
        copy.deepcopy(layer).weight,
        pickle.loads(pickle.dumps(layer)).weight,
        torch.load(file, weights_only=True),
    )
    for other in (*held, weight.clone(), weight.detach().clone()):
        assert isinstance(other, PackedWeight) and same(other, weight)
        assert all(isinstance(one, nn.Parameter) for one in held)
        with torch.no_grad():
            other.mul_(2)
        assert not same(other, weight)


def test_it_is_a_tensor():
    weight, dense = random_weight(ENCODINGS[4], 3, torch.float32)
    x = torch.randn(5, weight.shape[1])
    assert (weight.numel(), weight.dim()) == (dense.numel(), 2)
    assert weight.size() == dense.size() and weight.nbytes < dense.nbytes
    for read in (
        lambda w: w.abs(),
        lambda w: w.norm(),
        lambda w: w.T,
        lambda w: x @ w.T,
        lambda w: w @ x.T,
        lambda w: w.sum(dim=1),
        lambda w: w.mean(),
        lambda w: w + 1,
        lambda w: torch.exp(w),
        lambda w: w.max(),
        lambda w: F.linear(x, w),
        lambda w: torch.count_nonzero(w),
        lambda w: torch.isnan(w).any(),
    ):
        found = read(weight)
        found = found.to_dense() if isinstance(found, PackedWeight) else found
        torch.testing.assert_close(found, read(dense))
    assert "PackedWeight([" in repr(weight) and "encoding='[4:8" in repr(weight)


def test_what_would_be_lost_is_refused():
    weight, _ = random_weight(ENCODINGS[0], 3, torch.float32)
    before = weight.clone()
    for write in (
        lambda: weight[0].zero_(),
        lambda: weight.__setitem__((0, 0), 1),
        lambda: weight.index_add_(0, torch.tensor([0]), torch.ones(1, weight.shape[1])),
        lambda: weight.view(2, -1),
        lambda: weight.add_(torch.ones(3, 5)),
        lambda: torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=weight),
    ):
        with pytest.raises((EncodingError, RuntimeError)):
            write()
    with pytest.raises(EncodingError, match="use to_dense"):
        weight[0]
    assert same(weight, before)


@EACH
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_types_and_devices(e, dtype):
    weight, dense = random_weight(e, 1, torch.float32)
    converted = weight.to(dtype)
    assert torch.equal(converted.to_dense(), dense.to(dtype))
    meta = weight.to("meta")
    assert meta.is_meta and meta.shape == weight.shape
    layer = NMLinear.from_packed(weight)
    assert type(layer.to("meta").weight) is PackedWeight
    layer.to_empty(device="cpu").weight.validate()  # positions are legal, and zero
    layer.load_state_dict(NMLinear.from_packed(weight).state_dict())
    assert same(layer.weight, weight)
    with pytest.raises(EncodingError, match="element type is torch.complex64"):
        weight.to(torch.complex64)


def _add_one(weight):
    with torch.no_grad():
        weight.add_(1)


def test_shared_memory():
    layer = layer_of()
    layer.share_memory()
    assert layer.weight.is_shared()
    before = layer.values.clone()
    context = torch.multiprocessing.get_context("spawn")
    process = context.Process(target=_add_one, args=(layer.weight.detach(),))
    process.start()
    process.join()
    assert process.exitcode == 0
    torch.testing.assert_close(layer.values, before + 1)


def test_parametrizations_are_refused():
    layer = layer_of()
    parametrize.register_parametrization(layer, "weight", nn.Identity(), unsafe=True)
    x = torch.randn(2, 40)
    expected = layer_of()(x)
    torch.testing.assert_close(layer(x), expected)  # which changes nothing
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)

    class Doubled(nn.Module):
        def forward(self, weight):
            return weight.to_dense() * 2

    parametrize.register_parametrization(layer, "weight", Doubled(), unsafe=True)
    with pytest.raises(EncodingError, match="remove the parametrization"):
        layer(x)


@pytest.mark.parametrize("kind, options", OPTIMIZERS, ids=lambda x: str(x)[-12:])
@pytest.mark.parametrize("way", ["single", "foreach", "fused"])
def test_training_is_that_of_the_masked_dense_layer(kind, options, way):
    if way == "fused" and kind not in FUSED:
        pytest.skip("it has no such form")
    layer = layer_of("2:4, order = shuffled")
    dense = layer.to_dense()
    mask = dense.weight.detach() != 0
    chosen = {} if way == "single" else {way: True}
    each = []
    for one in (layer, dense):
        each.append((one, kind(one.parameters(), **FREE, **options, **chosen)))
    average = torch.optim.swa_utils.AveragedModel(
        layer, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    wanted = dense.weight.detach().clone()
    for step in range(4):
        x = torch.randn(8, 40, generator=torch.Generator().manual_seed(step))
        for one, optimizer in each:
            optimizer.zero_grad()
            (one(x) ** 2).mean().backward()
            if one is dense:
                one.weight.grad.mul_(mask)
            nn.utils.clip_grad_norm_(one.parameters(), 0.5)
            optimizer.step()
        average.update_parameters(layer)
        held = dense.weight.detach()
        wanted = held.clone() if step == 0 else wanted.lerp(held, 0.1)
    layer.weight.validate()
    torch.testing.assert_close(layer.weight.to_dense(), dense.weight * mask)
    torch.testing.assert_close(average.module.weight.to_dense(), wanted * mask)
    assert type(average.module.weight) is PackedWeight
    state = each[0][1].state_dict()
    new = kind(layer.parameters(), **FREE, **options, **chosen)
    new.load_state_dict(copy.deepcopy(state))


def test_changes_are_counted():
    """By which kernels know that their form of the weight is old."""
    layer = layer_of()
    optimizer = torch.optim.SGD(layer.parameters(), 0.1, foreach=True)

    def changes(function):
        before = layer.values._version
        with torch.no_grad():
            function()
        return layer.values._version > before

    layer(torch.randn(2, 40)).sum().backward()
    other = layer_of(seed=1)
    assert changes(optimizer.step)
    assert changes(lambda: layer.weight.mul_(2))
    assert changes(lambda: layer.weight.detach().add_(1))
    assert changes(lambda: layer.weight.copy_(other.weight))
    assert changes(lambda: layer.load_state_dict(other.state_dict()))
    assert changes(lambda: torch._foreach_lerp_([layer.weight], [other.weight], 0.5))
    assert not changes(lambda: layer(torch.randn(2, 40)))


def test_copies_of_other_patterns_leave_that_of_the_source():
    first, second = layer_of(seed=1).weight.detach(), layer_of(seed=2).weight.detach()
    before = first.clone()
    like = torch.zeros_like(first)
    assert like.index is first.index  # as in the states of optimizers
    like.copy_(second)
    assert same(like, second) and same(first, before)
    empty = torch.empty_like(first)
    empty.copy_(second)
    assert same(empty, second) and same(first, before)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_functions_of_a_weight(dynamic):
    layer, x = layer_of(), torch.randn(3, 40)
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda x: F.linear(x, layer.weight, layer.bias) + layer.values.sum(),
        backend="aot_eager",
        fullgraph=True,
        dynamic=dynamic,
    )
    with torch.no_grad():
        wanted = layer(x) + layer.values.sum()
    torch.testing.assert_close(compiled(x), wanted)
    compiled(x).sum().backward()
    found, layer.weight.grad = layer.weight.grad, None
    (F.linear(x, layer.weight).sum() + 3 * 8 * layer.weight.to_dense().sum()).backward()
    assert found.to_dense().shape == layer.weight.grad.to_dense().shape


def test_export_for_inductor(tmp_path):
    model = nn.Sequential(layer_of(), nn.ReLU(), layer_of("2:4, block = [1, 4]"))
    model[2] = NMLinear.from_dense(nn.Linear(24, 8), "2:4, order = shuffled")
    model.eval().requires_grad_(False)
    tokens = torch.export.Dim("tokens", min=2, max=64)
    program = torch.export.export(
        model, (torch.randn(3, 40),), dynamic_shapes=({0: tokens},)
    )
    path = torch._inductor.aoti_compile_and_package(
        program, package_path=str(tmp_path / "model.pt2")
    )
    x = torch.randn(5, 40)
    run = torch._inductor.aoti_load_package(path)
    torch.testing.assert_close(run(x), model(x))


def test_functions_of_torch_func():
    layer, x = layer_of(), torch.randn(3, 40)
    parameters = dict(layer.named_parameters())

    def loss(parameters):
        return torch.func.functional_call(layer, parameters, (x,)).square().sum()

    assert loss(parameters) == layer(x).square().sum()
    doubled = {name: 2 * p.detach() for name, p in parameters.items()}
    torch.testing.assert_close(loss(doubled), 4 * loss(parameters))
    with pytest.raises(EncodingError, match="by torch.autograd, not by torch.func"):
        torch.func.grad(loss)(doubled)


def test_lora_on_top():
    peft = pytest.importorskip("peft")

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = layer_of()

        def forward(self, x):
            return self.up(x)

    model = Model()
    frozen = model.up.weight.to_dense().detach()
    tuned = peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=["up"]))
    optimizer = torch.optim.AdamW((p for p in tuned.parameters() if p.requires_grad))
    x = torch.randn(4, 40)
    before = tuned(x).detach()
    for _ in range(3):
        optimizer.zero_grad()
        tuned(x).square().mean().backward()
        optimizer.step()
    assert not torch.allclose(tuned(x), before)
    assert torch.equal(model.up.base_layer.weight.to_dense(), frozen)

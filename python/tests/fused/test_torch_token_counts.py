# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for the number of tokens that a compiled graph has."""

import json
import threading
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from export_cases import needs_library  # noqa: E402
from shared_cases import emulated, packed, parts_of  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    GatedMLP,
    HalvedMLP,
    LinearSpec,
    quantize_tokens,  # noqa: E402
    shared_linear,
    specialize_tokens,
)
from nm_sparse.torch.layers import (  # noqa: E402
    halved_ops,
    kernels,
    scaled_kernels,
    shared_kernels,
)
from nm_sparse.torch.layers.dense_copies import dense_form  # noqa: E402
from nm_sparse.torch.weight import plain, token_counts  # noqa: E402
from nm_sparse.torch.weight.spec import EACH  # noqa: E402
from nm_sparse.torch.weight.token_counts import (  # noqa: E402
    finds_kernels,
    round_tokens,
    settled,
)

E4M3 = dict(elements="e4m3", activations="e4m3")


class Shared(nn.Module):
    """Layers of one input."""

    def __init__(self, **kinds):
        super().__init__()
        self.layers = nn.ModuleList(packed(64, n, "2:4", **kinds) for n in (32, 96))

    def forward(self, x):
        return torch.cat(shared_linear(x, list(self.layers)), -1)


def modules(**kinds):
    return [
        packed(64, 96, "2:4", **kinds),
        Shared(**kinds),
        GatedMLP(
            *[packed(64, 96, "2:4", **kinds) for _ in range(2)], nn.Linear(96, 64)
        ),
        GatedMLP(*[packed(64, 96, "8:16") for _ in range(2)], packed(96, 64, "8:16")),
        HalvedMLP(packed(64, 192, "2:4", **kinds), nn.Linear(96, 64)),
    ]


def tokens_in_graphs(module, inputs, **how):
    """`tokens` of the specs in each graph that is compiled for the inputs."""
    graphs = []

    def backend(graph, _):
        texts = [
            one
            for node in graph.graph.nodes
            if node.op == "call_function" and "nm_sparse" in str(node.target)
            for one in node.args
            if isinstance(one, str) and one.startswith(("{", "["))
        ]
        fields = [json.loads(text) for text in texts]
        flat = [x for each in fields for x in (each if type(each) is list else [each])]
        graphs.append({one.get("tokens") for one in flat})
        return graph.forward

    torch._dynamo.reset()
    run = torch.compile(module, fullgraph=True, backend=backend, **how)
    with torch.no_grad():
        for x in inputs:
            torch.testing.assert_close(run(x), module(x))
    return graphs


@pytest.mark.parametrize("kinds", [{}, E4M3], ids=["f32", "e4m3"])
@pytest.mark.parametrize("at", range(5))
def test_graphs_of_one_shape_ask_for_their_number(at, kinds):
    module = modules(**kinds)[at].eval()
    x = [torch.randn(2, n, 64) for n in (3, 5)]
    assert tokens_in_graphs(module, x[:1]) == [{6}]
    assert tokens_in_graphs(module, x, dynamic=False) == [{6}, {10}]
    # The second number makes the graph one for any.
    assert tokens_in_graphs(module, x) == [{6}, {EACH}]
    assert tokens_in_graphs(module, x, dynamic=True) == [{EACH}]


class Operators(TorchDispatchMode):
    """Notes `tokens` of the specs that operators of this package are told."""

    def __init__(self):
        super().__init__()
        self.tokens = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "nm_sparse":
            (text,) = [one for one in args if isinstance(one, str) and one[0] in "[{"]
            found = json.loads(text)
            self.tokens |= {
                one.get("tokens") for one in (found if type(found) is list else [found])
            }
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("kinds", [{}, E4M3], ids=["f32", "e4m3"])
@pytest.mark.parametrize("at", range(5))
def test_eager_calls_ask_for_their_number_where_they_are_told(at, kinds):
    module, x = modules(**kinds)[at].eval(), torch.randn(2, 3, 64)
    with torch.no_grad(), Operators() as usual:
        wanted = module(x)
    assert usual.tokens == {None}
    with torch.no_grad(), specialize_tokens(), Operators() as own:
        torch.testing.assert_close(module(x), wanted)
    assert own.tokens == {6}
    with torch.no_grad(), Operators() as usual:
        module(x)
    assert usual.tokens == {None}


def test_kernels_that_calls_share_are_not_taken_where_calls_are_specialized(
    monkeypatch,
):
    """Eager calls keep these, whose numbers of tokens nobody asks for again."""
    monkeypatch.setattr(plain, "is_untraced", lambda x: True)
    monkeypatch.setattr(plain, "_is_autocast", lambda: False)
    monkeypatch.setattr(plain, "_is_capturing", lambda: False)
    x = torch.randn(3, 64)
    seen = []
    with specialize_tokens():
        inside = plain.is_plain_call(x)
        thread = threading.Thread(target=lambda: seen.append(plain.is_plain_call(x)))
        thread.start()
        thread.join()
        with pytest.raises(ZeroDivisionError), specialize_tokens():
            raise ZeroDivisionError
        again = plain.is_plain_call(x)
    assert (inside, again, seen, plain.is_plain_call(x)) == (False, False, [True], True)


def test_no_tokens():
    layer = packed(64, 96, "2:4").eval()
    assert tokens_in_graphs(layer, [torch.randn(0, 64)]) == [{0}]


def test_numbers_of_calls_are_rounded():
    numbers = [round_tokens(n) for n in range(5000)]
    assert numbers[:2] == [1, 1] and numbers[2:10] == [8] * 7 + [16]
    for n, rounded in enumerate(numbers[1:], 1):
        assert (
            n <= rounded <= max(n + 7, n * 1.125) and round_tokens(rounded) == rounded
        )
    assert sorted(numbers) == numbers
    for low in (64, 512, 2048):
        assert len({n for n in numbers if low < n <= 2 * low}) == 8
    spec = LinearSpec("2:4", (96, 64), "f16", tokens=EACH)
    assert settled(spec, torch.empty(2, 300, 64)).tokens == 640
    assert settled(spec, torch.empty(64)).tokens == 1
    assert settled(spec.for_any_tokens, torch.empty(9, 64)).tokens is None


def test_specs():
    spec = LinearSpec("2:4", (96, 64), "f16", dense_from=7, tokens=594)
    assert LinearSpec.parse(spec.text) == spec
    assert spec.canonical.tokens == 594
    assert spec.for_any_tokens.text == spec.text.replace(',"tokens":594', "")
    for tokens in (-1, 1.5, True, "8"):
        with pytest.raises(EncodingError, match="tokens is .*: legal is a number"):
            LinearSpec("2:4", (96, 64), "f16", tokens=tokens)


@needs_library
def test_kernels_for_one_number_read_the_same_weight(hopper):
    """Through the emulator, for that number and for another."""
    layer = packed(64, 96, "2:4", True).half()
    spec = LinearSpec.parse(layer._specs[torch.float16])
    exact = LinearSpec.parse(layer._specs[torch.float16][:-1] + ',"tokens":5}')
    usual = kernels.find_kernels(spec, True, hopper)
    made = kernels.find_kernels(exact, True, hopper)
    assert made is not usual and made is kernels.find_kernels(exact, True, hopper)
    assert made.key == usual.key
    assert "--tokens=5" in made.program.arguments
    for tokens in (5, 9):
        x = torch.randn(tokens, 64).half()
        with torch.no_grad():
            (found,) = emulated(made, x, [parts_of(layer)], [layer.bias])
            torch.testing.assert_close(found, layer(x), rtol=0.02, atol=0.02)


@needs_library
def test_programs_of_several_layers_for_one_number(hopper):
    layers = [packed(64, 96, "2:4").half() for _ in range(2)]
    text = layers[0]._specs[torch.float16]
    specs = [LinearSpec.parse(text[:-1] + f',"tokens":{n}}}') for n in (3, 4)]
    made = [shared_kernels.find_gated(spec, hopper) for spec in specs]
    assert made[0] is not made[1]
    x = torch.randn(3, 64).half()
    with torch.no_grad():
        wanted = layers[0](x) * layers[1](x)
        for one in made:
            (found,) = emulated(one, x, map(parts_of, layers), [])
            torch.testing.assert_close(found, wanted, rtol=0.02, atol=0.02)


def test_operators_ask_for_the_number_of_a_call(monkeypatch):
    asked = []

    def note(name, module):
        def find(*args):
            first = args[0][0] if isinstance(args[0], tuple) else args[0]
            asked.append((name, first.tokens))

        monkeypatch.setattr(module, name, find)

    note("find_kernels", kernels)
    for name in ("find_gated", "find_mlp", "find_shared"):
        note(name, shared_kernels)
    note("find_scaled", scaled_kernels)
    monkeypatch.setattr(scaled_kernels, "dense_products", lambda *_: [])
    note("find_halves", halved_ops)
    each = dict(dtype="f32", tokens=EACH)
    spec = LinearSpec("2:4", (96, 64), **each)
    down = LinearSpec("2:4", (64, 96), **each)
    layers = [
        packed(64, 96, "2:4"),
        packed(96, 64, "2:4"),
        packed(64, 96, "2:4", **E4M3),
    ]
    parts, last, narrow = [[one.detach() for one in parts_of(x)] for x in layers]
    x = torch.randn(3, 100, 64)
    kernels.run_linear(x, parts, None, spec)
    shared_kernels.run_gated_mlp(x, parts, parts, (spec, spec))
    shared_kernels.run_mlp(x, (parts, parts, last), (spec, spec, down))
    shared_kernels.run_shared(x, [(parts, None, spec)] * 2)
    halved_ops._cuda(x, parts, spec.text)
    scaled = replace(spec, elements="f8E4M3FN")
    scaled_kernels.run_scaled(*quantize_tokens(x, "e4m3"), [(narrow, None, scaled)])
    assert {name for name, _ in asked} == {
        *("find_kernels", "find_gated", "find_mlp", "find_shared"),
        *("find_halves", "find_scaled"),
    }
    assert {tokens for _, tokens in asked} == {320}


class Made:
    def __init__(self, key, storage="bitmap"):
        form = type("Form", (), {"key": key, "storage": storage})
        self.forms = [form]


def test_another_form_of_the_weight_is_no_choice():
    """A second copy of the weight would be kept for it."""
    spec = LinearSpec("2:4", (96, 64), "f16")
    exact = LinearSpec("2:4", (96, 64), "f16", tokens=8)
    given = []

    def finder(other):
        @finds_kernels
        def find(specs, device, storage=None):
            given.append((specs[0].tokens, storage))
            return Made("usual") if specs[0].tokens is None else other

        return find

    alike, unlike = Made("usual"), Made("other")
    assert finder(alike)((exact,), "cuda") is alike
    assert given == [(None, None), (8, "bitmap")]
    for other in (unlike, None):
        find = finder(other)
        assert find((exact,), "cuda") is find((spec,), "cuda")


def test_graphs_that_are_captured_first(monkeypatch):
    """They cannot wait for a program, and the next call finds it."""
    exact = LinearSpec("2:4", (96, 64), "f16", tokens=8)
    usual, own = Made("usual"), Made("usual")
    find = finds_kernels(lambda spec, storage=None: usual if storage is None else own)
    answers = iter((True, False))
    monkeypatch.setattr(token_counts, "_is_capturing", lambda: next(answers))
    assert [find(exact) for _ in range(3)] == [usual, own, own]


def test_copies_of_weights_are_those_of_any_number():
    exact = LinearSpec("2:4", (96, 64), "f16", tokens=8)
    assert dense_form(exact).key == dense_form(exact.for_any_tokens).key
    made = Made("usual")
    made.forms.append(Made("usual", "canonical").forms[0])
    find = finds_kernels(lambda spec, storage=None: made if storage is None else None)
    assert find(exact) is made  # two forms, which no option names


def test_versions_that_cannot_be_asked(monkeypatch):
    monkeypatch.setattr(token_counts, "_CAN_ASK", False)
    layer = packed(64, 96, "2:4").eval()
    assert tokens_in_graphs(layer, [torch.randn(3, 64)]) == [{EACH}]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Up to how many tokens layers of a model hold a second form of their weight, why, and
what reports say of it."""

import json

import pytest

torch = pytest.importorskip("torch")

from dense_cases import layer_of, mlp_of  # noqa: E402
from export_cases import needs_library  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import Encoding, EncodingError  # noqa: E402
from nm_sparse.bindings.library import LibraryNotFoundError  # noqa: E402
from nm_sparse.compiler import CompileError  # noqa: E402
from nm_sparse.predict import FormTimes, compile_forms  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    FewTokens,
    HalvedMLP,
    NMLinear,
    NMSparseConfig,
    share_input_,
    sparsify_,
    use_decode_forms_,
)
from nm_sparse.torch.models.decode_plan import (  # noqa: E402
    COUNTS,
    ONE_FORM,
    choose_decoding,
)

NAMES = ["q", "k", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "out", "one"]


class Model(nn.Module):
    """Outputs say which layer is which: 40 and 48 of those that are alone."""

    def __init__(self):
        super().__init__()
        self.q, self.k = layer_of(32, 8), layer_of(32, 16)
        share_input_(self, ("q", "k"))
        self.mlp = mlp_of(32, 24, "silu", (None,) * 3)[0]
        self.out, self.one = layer_of(32, 40, bias=True), layer_of(32, 48)

    def forward(self, x):
        return self.q(x), self.k(x), self.mlp(x), self.out(x), self.one(x)


def forms_of(gains, size=100):
    """Both forms, the second of which is so many times as fast."""
    encoding = Encoding(2, 4, dim=1)
    times = dict.fromkeys(COUNTS, 12.0)
    own = {n: 12.0 / gain for n, gain in zip(COUNTS, gains)}
    return [
        FormTimes("canonical", encoding, 2 * size, times),
        FormTimes("bitmap", encoding, size, own),
    ]


class Predictor:
    """What is predicted of layers, by their numbers of outputs."""

    def __init__(self, **found):
        self.found, self.calls = found, []

    def __call__(self, shape, dtype, encoding, tokens, chip):
        assert dtype == "f32" and encoding == Encoding(2, 4, dim=1)
        assert tuple(tokens) == COUNTS
        self.calls.append((shape, chip))
        found = self.found[f"n{shape[0]}"]
        if isinstance(found, Exception):
            raise found
        return found


GAINS = (3, 2.5, 2, 1.5, 1.0, 0.9, 1.1)


@pytest.mark.parametrize(
    "gains, wanted",
    [
        (GAINS, 16),
        ((1.2, 0.99) + (2,) * 5, 1),
        ((1.19,) + (9,) * 6, None),
        ((9,) * 7, 64),
    ],
)
def test_what_is_worth_it(gains, wanted):
    choice = choose_decoding(forms_of(gains))
    assert choice.decode_to == wanted
    assert f"{gains[0]:.2f} times as fast" in choice.reason
    assert [one.tokens for one in choice.few] == list(COUNTS)
    assert [one.gain for one in choice.few] == pytest.approx(gains)
    same = choose_decoding(forms_of(gains)[:1])
    assert (same.decode_to, same.reason, same.few) == (None, ONE_FORM, ())


def test_layers_that_are_alone_get_forms():
    model = Model()
    predictor = Predictor(n40=forms_of(GAINS), n48=forms_of(GAINS)[:1])
    report = use_decode_forms_(model, predictor=predictor, chip="sm_90a")
    assert report.decode_to == {**dict.fromkeys(NAMES), "out": 16}
    assert predictor.calls == [((40, 32), "sm_90a"), ((48, 32), "sm_90a")]
    assert (model.out.decode_to, model.one.decode_to) == (16, None)
    rows = {row.name: row for row in report.rows}
    assert list(rows) == NAMES
    for name in NAMES[:5]:
        assert "its operator multiplies by more than this layer" in rows[name].reason
    assert rows["one"].reason == ONE_FORM and rows["one"].few_tokens == ()
    assert report.form_bytes == rows["out"].form_bytes == 100
    assert rows["out"].few_tokens[0] == FewTokens(1, 12.0, 4.0)
    text = str(report)
    assert "12.0 -> 4.0" in text and "16 tokens" in text
    assert "1 of 7 layers hold a second form for few tokens; these take 0.0" in text
    # Where the layer holds that form itself, it is the other that takes memory.
    model.out.store_("bitmap")
    assert use_decode_forms_(model, predictor=predictor).form_bytes == 200
    model.out.dense_from = 17
    assert use_decode_forms_(model, predictor=predictor).form_bytes == 0
    model.out.dense_from = None
    asked = use_decode_forms_(
        model, 7, lambda layer, name: name != "one", predictor=predictor
    )
    assert asked.decode_to == {**dict.fromkeys(NAMES), "out": 7}
    assert asked.form_bytes == 200
    assert {row.name: row.reason for row in asked.rows}["one"] == "filter_fn leaves it"
    off = use_decode_forms_(model, None)
    assert set(off.decode_to.values()) == {None} and off.form_bytes == 0


def test_layers_that_stay():
    model = nn.ModuleDict({"f64": layer_of(32, 40).double(), "i8": nn.Identity()})
    model["i8"] = NMLinear(32, 40, "2:4", dtype=torch.int8)
    linear = nn.Linear(32, 40)
    model["rounded"] = NMLinear.from_dense(
        linear, "2:4", elements="e4m3", activations="e4m3"
    )
    model["none"] = layer_of(32, 44)
    predictor = Predictor(n44=CompileError("no kernels"))
    report = use_decode_forms_(model, predictor=predictor)
    reasons = {row.name: row.reason for row in report.rows}
    assert reasons == {
        "f64": "layers of torch.float64 have no kernels to choose from",
        "i8": "layers of torch.int8 have no kernels to choose from",
        "rounded": "its input is rounded to elements of 8 bits, whose kernels read one "
        "form",
        "none": "no times are predicted for it: no kernels",
    }
    assert set(report.decode_to.values()) == {None}
    # A number that is asked for needs no times.
    report = use_decode_forms_(model, 3, predictor=predictor)
    assert report.decode_to == {"f64": None, "i8": None, "rounded": None, "none": 3}
    report = use_decode_forms_(model, None)
    assert set(report.decode_to.values()) == {None}


def test_halves_of_one_weight_are_one_operator():
    model = HalvedMLP(layer_of(32, 128), layer_of(64, 32), "silu")
    assert model.obstacle() is None
    predictor = Predictor(n128=forms_of(GAINS), n32=forms_of(GAINS))
    report = use_decode_forms_(model, predictor=predictor)
    assert report.decode_to == {"gate_up_proj": None, "down_proj": 16}


def test_no_compiler(monkeypatch):
    def predictor(*asked):
        raise LibraryNotFoundError("none")

    model = nn.Sequential(layer_of(32, 40))
    with pytest.raises(LibraryNotFoundError):
        use_decode_forms_(model, predictor=predictor)
    assert use_decode_forms_(model, 2, predictor=predictor).decode_to == {"0": 2}


@pytest.mark.parametrize("tokens", [0, -3, True, 2.0, "all"])
def test_what_is_no_number(tokens):
    model = Model()
    with pytest.raises(EncodingError, match="tokens is .*legal is 'auto', a number"):
        use_decode_forms_(model, tokens)


@pytest.mark.parametrize("value", [1, "yes", None])
def test_what_is_no_choice(value):
    with pytest.raises(EncodingError, match="decode_forms is .*legal is True or False"):
        NMSparseConfig("2:4", decode_forms=value)


class Both:
    """Times of layers, and of forms."""

    def __init__(self, forms=None):
        if forms is not None:
            self.forms = forms

    def __call__(self, shape, dtype, encoding, tokens, chip):
        return [(n, 20.0, 10.0) for n in tokens]


@pytest.mark.parametrize("is_held", [False, True])
def test_sparsify_says_what_forms_gain_or_what_is_given_up(is_held):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 40), nn.Linear(40, 48), nn.Linear(48, 56))
    forms = Predictor(
        n40=forms_of(GAINS), n48=forms_of(GAINS)[:1], n56=CompileError("none")
    )
    config = NMSparseConfig("2:4", decode_forms=is_held)
    report = sparsify_(model, config, predictor=Both(forms))
    first, second, third = report.rows
    assert model[0].decode_to == first.decode_to == (16 if is_held else None)
    assert first.form_bytes == (100 if is_held else 0)
    assert first.few_tokens[0] == FewTokens(1, 12.0, 4.0)
    assert second.few_tokens == third.few_tokens == ()
    text = str(report)
    held = "1 layers hold a second form of their weight for few tokens: one token is "
    held += "predicted to take 4.0 us there instead of 12.0"
    given_up = "one token is predicted to take 12.0 us there, and 4.0 in forms of its "
    given_up += "own, which decode_forms=True in the config holds, too"
    assert (held in text, given_up in text) == (is_held, not is_held)
    assert ("second form to 16 tokens" in text) == is_held
    plain = json.loads(json.dumps(report.to_dict()))["rows"][0]
    assert plain["decode_to"] == model[0].decode_to
    assert plain["few_tokens"][0] == {"tokens": 1, "common_us": 12.0, "own_us": 4.0}


def test_other_predictors_know_no_forms():
    model = nn.Sequential(nn.Linear(32, 40))
    config = NMSparseConfig("2:4", decode_forms=True)
    report = sparsify_(model, config, predictor=Both())
    assert model[0].decode_to is None and report.rows[0].few_tokens == ()


@needs_library
@pytest.mark.parametrize("gpu", ["h100", "h200"])
@pytest.mark.parametrize(
    "text, dtype, forms",
    [
        ("16:32", "f32", [("canonical", "16:32"), ("bitmap", "16:32")]),
        ("1:4", "f16", [("bitmap", "2:4"), ("bitmap", "1:4")]),
        (
            "[4:8, block = [1, 64]], [2:4]",
            "f16",
            [("bitmap", "2:4"), ("bitmap", "2:8")],
        ),
        ("2:4", "bf16", [("bitmap", "2:4")]),
        ("8:32, block = [1, 32]", "f32", [("canonical", "8:32, block = [1, 32]")]),
        (
            "2:4, order = shuffled",
            "f32",
            [("canonical", "2:4, order = shuffled")],
        ),
    ],
)
def test_forms_by_the_compiler(text, dtype, forms, gpu):
    e = Encoding.parse(text.replace(", order", ", dim = 1, order"))
    layer = NMLinear(1024, 2048, e, dtype=torch.float32)
    encoding = layer.encoding
    found = compile_forms((2048, 1024), dtype, encoding, (1, 16), gpu=gpu)
    wanted = [
        (storage, NMLinear(32, 64, Encoding.parse(one)).encoding)
        for storage, one in forms
    ]
    assert [(form.storage, form.encoding) for form in found] == wanted
    if len(found) == 2:
        common, own = found
        assert list(common.times) == list(own.times) == [1, 16]
        assert own.times[1] < common.times[1] and own.bytes < common.bytes
        assert all(0.1 < us < 1000 for form in found for us in form.times.values())


@needs_library
def test_the_default_predictor():
    model = nn.Sequential(nn.Linear(1024, 1024), nn.Linear(1024, 1024))
    configs = {
        "0": NMSparseConfig("16:32", decode_forms=True),
        "1": NMSparseConfig("16:32"),
    }
    report = sparsify_(model, configs)
    assert model[0].decode_to >= 16 and model[1].decode_to is None
    first, second = report.rows
    assert first.few_tokens == second.few_tokens and first.few_tokens[0].gain > 1.2
    packed = model[0].weight.detach().stored("bitmap")
    assert first.form_bytes == packed.nbytes and second.form_bytes == 0
    x = torch.randn(3, 1024)
    torch.testing.assert_close(model[0](x), model[0].to_dense()(x))
    assert use_decode_forms_(model).decode_to == dict.fromkeys("01", model[0].decode_to)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that hold what their kernels read: stand-ins of kernels, and compiled ones."""

import copy

import pytest

torch = pytest.importorskip("torch")

from export_cases import needs_library  # noqa: E402
from storage_cases import same_bits  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import Encoding  # noqa: E402
from nm_sparse.compiler import CompileError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    GatedMLP,
    LinearSpec,
    NMLinear,
    share_input_,
    store_for_kernels_,
)
from nm_sparse.torch.layers import kernels, shared_kernels  # noqa: E402
from nm_sparse.torch.models import kernel_storage  # noqa: E402
from nm_sparse.torch.weight.stored_forms import STORED, StoredForm  # noqa: E402

LAYOUTS = {"canonical": 1, "bitmap": 4, "k_major": 12}


def form_of(spec, storage, encoding=None):
    """What a program would say of a weight."""
    encoding = encoding or spec.encoding
    stored = LinearSpec(encoding, spec.shape, spec.dtype, storage=storage)
    return StoredForm(
        spec,
        {
            "encoding": encoding.mlir(),
            "components": [{"name": name} for name in stored.components],
            "packed_layout": LAYOUTS[storage],
        },
    )


class Kernels:
    """Kernels in the place of compiled ones, which read one form.

    reads:  the form by the number of outputs of a layer, or an error.
    """

    def __init__(self, monkeypatch, reads, encodings=()):
        self.reads, self.encodings, self.calls = reads, dict(encodings), []
        monkeypatch.setattr(kernels, "find_kernels", self.find)
        monkeypatch.setattr(shared_kernels, "find_gated", self.find_gated)
        monkeypatch.setattr(shared_kernels, "find_mlp", self.find_mlp)
        monkeypatch.setattr(shared_kernels, "find_shared", self.find_shared)
        monkeypatch.setattr(kernels, "stream_of", lambda x: 0)
        monkeypatch.setattr(STORED, "_forms", {})
        monkeypatch.setattr(kernel_storage, "_is_on_gpu", lambda layer: True)

    def form(self, spec, kind=""):
        assert spec.storage == "canonical"
        found = self.reads.get((kind, spec.shape[0]), self.reads.get(spec.shape[0]))
        if isinstance(found, Exception):
            raise found
        return found and form_of(spec, found, self.encodings.get(spec.shape[0]))

    def find(self, spec, has_bias, device):
        form = self.form(spec)
        if form is not None:
            form.__class__ = type("Called", (StoredForm,), {"__call__": self.call})
        return form

    def call(self, x, parts, bias, stream):
        self.calls.append(parts)
        return x.new_zeros(x.shape[0], 12)

    def find_gated(self, spec, device):
        assert spec.activation == "silu"
        form = self.form(spec, "gated")
        return form and Several([form, form])

    def find_mlp(self, gate, down, device):
        both, last = self.find_gated(gate, device), self.form(down, "mlp")
        return both and last and Several([*both.forms, last])

    def find_shared(self, specs, biases, device):
        forms = [self.form(spec, "shared") for spec in specs]
        return None if None in forms else Several(forms)


class Several:
    def __init__(self, forms):
        self.forms = forms


class Block(nn.Module):
    """Outputs say which layer is which: 16 to 18 of q, k, v, 40 of gate and up."""

    def __init__(self, encoding="2:4"):
        super().__init__()

        def layer(k, n, bias=False):
            return NMLinear.from_dense(nn.Linear(k, n, bias=bias), encoding)

        torch.manual_seed(0)
        self.q_proj, self.k_proj, self.v_proj = (layer(24, n) for n in (16, 17, 18))
        share_input_(self)
        self.mlp = GatedMLP(layer(24, 40), layer(24, 40), layer(40, 24))
        self.out = layer(24, 12, bias=True)
        self.eval()

    def forward(self, x):
        return self.out(self.mlp(x))


NAMES = [
    "q_proj",
    "k_proj",
    "v_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
    "out",
]


def storages(model):
    return {
        name: layer.storage
        for name, layer in model.named_modules()
        if isinstance(layer, NMLinear)
    }


def bytes_of(model):
    return sum(
        part.nbytes
        for layer in model.modules()
        if isinstance(layer, NMLinear)
        for part in layer.components()
    )


ALL = dict.fromkeys((16, 17, 18, 40, 24, 12), "bitmap")


@pytest.mark.parametrize(
    "form, said", [("bitmap", "bitmaps"), ("k_major", "K-major values")]
)
def test_all_layers_are_stored_so(monkeypatch, form, said):
    Kernels(monkeypatch, dict.fromkeys(ALL, form))
    block = Block()
    before = bytes_of(block)
    report = store_for_kernels_(block)
    assert report.changed == NAMES and report.left == {}
    assert set(storages(block).values()) == {form}
    assert not any(layer.weight.requires_grad for layer in block.modules()
                   if isinstance(layer, NMLinear))  # fmt: skip
    assert (report.bytes_before, report.bytes_after) == (before, bytes_of(block))
    text = str(report)
    assert "7 of 7 layers changed; all weights take 0.0 MiB" in text
    assert text.splitlines()[2].split()[:2] == ["q_proj", form]
    again = store_for_kernels_(block)
    assert set(again.left.values()) == {f"its kernels read {said}"}
    assert again.bytes_before == again.bytes_after == report.bytes_after
    Kernels(monkeypatch, dict.fromkeys(ALL, "canonical"))
    block.train().requires_grad_()
    assert store_for_kernels_(block).changed == NAMES
    assert bytes_of(block) == before


def test_layers_that_stay(monkeypatch):
    reads = {
        ("shared", 16): "canonical",
        **ALL,
        24: CompileError("no kernels of 24"),
        12: "canonical",
    }
    Kernels(monkeypatch, reads, {18: Encoding("4:8", dim=1)})
    block = Block("1:4")
    block.mlp.up_proj.train()
    block.half = NMLinear(8, 8, "2:4", dtype=torch.float64)
    block.byte = NMLinear(8, 8, "2:4", dtype=torch.int8)
    block.tied = copy.deepcopy(block.out)
    block.tied.weight = block.out.weight
    report = store_for_kernels_(block, lambda layer, name: name != "byte")
    assert report.changed == ["k_proj"] and storages(block)["k_proj"] == "bitmap"
    trained = "it is trained; call eval() of the model first, or requires_grad_(False)"
    assert report.left == {
        "q_proj": "its kernels read the canonical form",
        "v_proj": "its kernels read another encoding, 4:8, dim = 1",
        "mlp.gate_proj": "it is one operator with mlp.up_proj, which stays",
        "mlp.up_proj": trained,
        "mlp.down_proj": "there are no kernels for it: no kernels of 24",
        "out": "it shares its weight with tied",
        "tied": "it shares its weight with out",
        "half": "layers of torch.float64 have no kernels",
        "byte": "filter_fn leaves it",
    }
    assert "mlp.up_proj    canonical" in str(report) and trained in str(report)
    narrow = store_for_kernels_(block).left["byte"]
    assert narrow == "layers of torch.int8 have no kernels"


def test_layers_that_stay_wherever_they_are(monkeypatch):
    report = store_for_kernels_(Block())
    assert set(report.left.values()) == {"it is on cpu, and kernels run on GPUs"}
    Kernels(monkeypatch, {})
    missing = "there are no kernels for it: the compiler's library is missing"
    assert set(store_for_kernels_(Block()).left.values()) == {missing}


def test_programs_that_read_different_forms(monkeypatch):
    model = nn.Module()
    linear = NMLinear.from_dense(nn.Linear(8, 40, bias=False), "2:4").eval()
    down = NMLinear.from_dense(nn.Linear(40, 24, bias=False), "2:4").eval()
    model.mlp = GatedMLP(linear, copy.deepcopy(linear), down)
    model.first, model.second = nn.Identity(), nn.Identity()
    for module in (model.first, model.second):
        module.q_proj = module.k_proj = module.v_proj = linear
        share_input_(module)
    Kernels(
        monkeypatch,
        {("gated", 40): "bitmap", ("shared", 40): "canonical", 24: "bitmap"},
    )
    report = store_for_kernels_(model)
    assert report.changed == ["mlp.down_proj"]
    assert report.left == {
        "mlp.gate_proj": "its kernels read different forms: bitmap in mlp, canonical "
        "in first, canonical in second",
        "mlp.up_proj": "it is one operator with mlp.gate_proj, which stays",
    }


def test_a_gated_mlp_of_two_forms_becomes_one(monkeypatch):
    Kernels(monkeypatch, {("gated", 40): "bitmap", **ALL})
    block = Block()
    block.mlp.gate_proj.store_("bitmap")
    assert block.mlp.obstacle() is not None
    assert "mlp.up_proj" in store_for_kernels_(block).changed
    assert block.mlp.obstacle() is None


def call(layer, x):
    spec = layer.linear_spec
    return kernels.run_linear(x, layer.operands(), layer.bias, spec)


def test_kernels_read_what_a_layer_holds(monkeypatch):
    found = Kernels(monkeypatch, {12: "bitmap"})
    layer = NMLinear.from_dense(nn.Linear(24, 12), "2:4").eval()
    x = torch.randn(2, 24)
    call(layer, x)
    assert len(STORED._forms) == 1
    store_for_kernels_(layer)
    # The copy that was made for the weight in canonical form is gone with it.
    assert not STORED._forms
    call(layer, x)
    copied, held = found.calls
    assert [part.data_ptr() for part in held] == [
        part.data_ptr() for part in layer.components()
    ]
    assert all(map(same_bits, copied, held)) and not STORED._forms
    # Kernels that read another form are given a copy of that.
    other = Kernels(monkeypatch, {12: "canonical"})
    call(layer, x)
    (parts,) = other.calls
    wanted = list(layer.weight.canonical().components.values())
    assert same_bits(parts[0], wanted[0])
    assert same_bits(parts[1].view(torch.uint8), wanted[1])
    assert len(STORED._forms) == 1


def test_without_kernels_bitmaps_are_unpacked(monkeypatch):
    Kernels(monkeypatch, {})
    layer = NMLinear.from_dense(nn.Linear(24, 12), "2:4").eval()
    x = torch.randn(2, 24)
    y = layer(x)
    torch.testing.assert_close(call(layer.store_("bitmap"), x), y)


def test_shared_kernels_read_what_layers_hold(monkeypatch):
    Kernels(monkeypatch, ALL)
    seen = []

    def run(self, x, weights, others, stream):
        seen.append(weights)
        return [x.new_zeros(len(x), 1)]

    monkeypatch.setattr(Several, "__call__", run, raising=False)
    block, x = Block(), torch.randn(3, 24)
    store_for_kernels_(block)
    gate, up = block.mlp.gate_proj, block.mlp.up_proj
    specs = (
        LinearSpec.parse(gate.linear_spec.text.replace("none", "silu")),
        up.linear_spec,
    )
    shared_kernels.run_gated_mlp(x, gate.operands(), up.operands(), specs)
    layers = [block.q_proj, block.k_proj]
    shared_kernels.run_shared(
        x, [(layer.operands(), None, layer.linear_spec) for layer in layers]
    )
    for weights, used in zip(seen, ((gate, up), layers)):
        for parts, layer in zip(weights, used):
            assert all(
                part.data_ptr() == own.data_ptr()
                for part, own in zip(parts, layer.components())
            )
    assert not STORED._forms


@pytest.fixture
def hopper(hopper, monkeypatch):
    """Compiled kernels for a GPU that need not be there, found anew."""
    monkeypatch.setattr(kernel_storage, "_is_on_gpu", lambda layer: True)
    finders = [kernels.find_kernels]
    names = "find_gated", "find_mlp", "find_shared"
    finders += [getattr(shared_kernels, name) for name in names]
    for find in finders:
        find.cache_clear()
    yield hopper
    for find in finders:
        find.cache_clear()


@needs_library
@pytest.mark.parametrize("text", ["2:4", "8:32, block = [1, 128]", "1:4"])
def test_compiled_kernels(hopper, text):
    torch.manual_seed(0)
    block = nn.Sequential(nn.Module(), nn.Module())
    sizes = ((128, 256), (128, 256), (256, 128))
    layers = [nn.Linear(*size, bias=False) for size in sizes]
    layers = [NMLinear.from_dense(layer, text).half() for layer in layers]
    block[0].mlp = GatedMLP(*layers)
    block[1].out = NMLinear.from_dense(nn.Linear(128, 64), text).half()
    block.eval()
    x = torch.randn(2, 128).half()
    with torch.no_grad():
        y = block[1].out(block[0].mlp(x))
    report = store_for_kernels_(block)
    assert len(report.rows) == 4
    for row in report.rows:
        layer = block.get_submodule(row.name)
        spec = layer.linear_spec
        if ".mlp." in row.name:
            gate = LinearSpec(spec.encoding, (256, 128), spec.dtype, "silu")
            down = LinearSpec(spec.encoding, (128, 256), spec.dtype)
            mlp = shared_kernels.find_mlp(gate, down, torch.device("cpu"))
            form = mlp.forms[2 if row.name.endswith("down_proj") else 0]
        else:
            form = kernels.find_kernels(
                spec.canonical, layer.bias is not None, torch.device("cpu")
            )
        assert row.storage == layer.storage
        if form.has_own_encoding:
            assert form.reads(row.storage)
        else:
            assert row.reason.startswith("its kernels read another encoding")
        assert row.is_changed == (row.storage == "bitmap")
        canonical = list(layer.weight.canonical().components.values())
        stored = form.store(layer.components(), layer.storage)
        assert all(map(same_bits, stored, form.store(canonical)))
    with torch.no_grad():
        assert torch.equal(block[1].out(block[0].mlp(x)), y)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("text", ["2:4", "1:4", "8:32, block = [1, 128]"])
def test_cuda_graphs_see_changed_weights(text, is_stored):
    torch.manual_seed(0)
    linear = nn.Linear(256, 128, dtype=torch.float16, device="cuda")
    layer = NMLinear.from_dense(linear, text).eval()
    if is_stored:
        store_for_kernels_(layer)
    x = torch.randn(16, 256, dtype=torch.float16, device="cuda")
    with torch.no_grad():
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            layer(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = layer(x)
        before = layer(x)
        graph.replay()
        torch.testing.assert_close(y, before)
        state = layer.state_dict()
        layer.load_state_dict({**state, "values": 2 * state["values"]})
        changed = layer(x)
        graph.replay()
        torch.testing.assert_close(y, changed)
        torch.testing.assert_close(y, layer.to_dense()(x), rtol=0.02, atol=0.02)
        assert not torch.equal(y, before)

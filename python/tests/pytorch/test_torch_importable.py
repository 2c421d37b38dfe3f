# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of torch through an importer that does not know packed weights: that of IREE,
whose text gets its encodings behind it, and is compiled and run as any other."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from export_cases import as_arrays, needs_library, needs_tools, tool  # noqa: E402
from iree_cases import (  # noqa: E402
    check_close,
    compile_text,
    needs_emulated_cuda,
    needs_iree,
    run_program,
)
from torch import nn  # noqa: E402

from nm_sparse.torch import (  # noqa: E402
    GatedMLP,
    NMLinear,
    shared_linear,
    to_importable,
)
from nm_sparse.torch.export import ExportError  # noqa: E402

# From torch to linalg, by passes that torch-mlir has; then what is computed behind a
# product becomes one operation.
LOWER = (
    "builtin.module(func.func(torch-decompose-complex-ops,canonicalize),"
    "torch-backend-to-linalg-on-tensors-backend-pipeline,func.func({}canonicalize,cse))"
)
FUSE = "linalg-fuse-elementwise-ops,"
UNPACKED = [
    "--convert-linalg-to-nm-sparse",
    "--nm-sparse-materialize-encodings",
    "--convert-nm-sparse-to-linalg=structured drop-attributes",
    "--linalg-generalize-named-ops",
]
PANELS = "8:32, block = [1, 128]"
SHUFFLED = "8:32, block = [1, 32], order = shuffled"
TOLERANCE = {torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 3e-2}
TOKENS = torch.export.Dim("tokens")
WIDTH, INNER = 256, 512


def sparse(inputs, outputs, encoding, bias=False):
    """With results as large as the inputs, by which errors show."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    with torch.no_grad():
        layer.weight.mul_(3)
    return NMLinear.from_dense(layer, encoding)


class TwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.up = sparse(WIDTH, INNER, "2:4", True)
        self.down = sparse(INNER, WIDTH, PANELS)
        self.register_buffer("scale", torch.linspace(0.5, 1.5, WIDTH))
        self.register_buffer("factor", torch.tensor(2.0))

    def forward(self, x):
        y = self.down(F.silu(self.up(self.norm(x))))
        return x + y * self.scale * self.factor


class Plain(nn.Module):
    """Nothing but what our kernels compute, which the emulated driver runs."""

    def __init__(self):
        super().__init__()
        self.up = sparse(WIDTH, INNER, "2:4", True)
        self.down = sparse(INNER, WIDTH, PANELS)

    def forward(self, input):  # a word of Python
        return self.down(F.silu(self.up(input)))


class Shared(nn.Module):
    """Operators of several weights, in which one weight is used twice."""

    def __init__(self):
        super().__init__()
        self.q, self.k = sparse(WIDTH, 64, PANELS, True), sparse(WIDTH, 96, "2:4")
        layers = [sparse(WIDTH, INNER, SHUFFLED) for _ in range(2)]
        self.mlp = GatedMLP(*layers, sparse(INNER, WIDTH, "4:8, block = [1, 16]"))

    def forward(self, x):
        y = self.mlp(x)
        return shared_linear(y + self.mlp(y), [self.q, self.k])


def draw(model, dtype, *shape):
    torch.manual_seed(5130)
    return model().to(dtype).eval(), torch.randn(*shape, WIDTH, dtype=dtype)


def prepare(model, x, dynamic=None):
    program = torch.export.export(model, (x,), dynamic_shapes=(dynamic or {0: TOKENS},))
    return to_importable(program)


def dense_operands(importable, x):
    """What the program of ATen takes: packed weights as dense ones."""
    state, found = importable._state, []
    for one in importable.arguments:
        if one.kind == "weight":
            parts = [state[name].detach() for name in one.components.values()]
            unpack = torch.ops.nm_sparse.unpack_weight
            found.append(unpack(parts, one.spec.text))
        else:
            found.append(x if one.kind == "input" else state[one.target].detach())
    return found


def import_program(importable, fuse=FUSE, whole=()):
    """The model with encodings, by IREE's importer.

    whole:  operators of torch that are not decomposed before.
    """
    from iree.compiler.extras.fx_importer import FxImporter
    from iree.compiler.passmanager import PassManager

    table = torch.export.default_decompositions()
    for operator in whole:
        table.pop(operator)
    importer = FxImporter()
    importer.import_program(importable.program.run_decompositions(table))
    with importer.module.context:
        passes = PassManager.parse(LOWER.format(fuse))
        passes.run(importer.module.operation)
    return importable.encode(str(importer.module))


def check_on_cpu(model, exported, inputs, folder, tolerance):
    path = folder / "model.mlir"
    path.write_text(tool("nm-opt", "-", *UNPACKED, text=exported.text))
    calls = [exported.operands(x) for x in inputs]
    # Workers of local-task have less stack than weights of f32 take.
    results, _ = run_program(compile_text(path, "local-task"), "local-sync", "", calls)
    check_results(model, inputs, results, tolerance)


def check_results(model, inputs, results, tolerance):
    for x, found in zip(inputs, results):
        with torch.no_grad():
            wanted = torch.utils._pytree.tree_leaves(model(x))
        assert len(found) == len(wanted)
        for one, like in zip(found, wanted):
            check_close(one, like, tolerance)


@pytest.mark.parametrize("model", [TwoLayers, Plain, Shared])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_programs_are_of_aten(model, dtype):
    model, x = draw(model, dtype, 7)
    importable = prepare(model, x)
    kinds = [one.kind for one in importable.arguments]
    assert kinds.count("weight") == (5 if isinstance(model, Shared) else 2)
    assert kinds == sorted(kinds, key=["input", "parameter", "buffer", "weight"].index)
    for program in (importable.program, importable.program.run_decompositions()):
        assert "nm_sparse" not in str(program.graph)
        inputs = [x, x[:3]]
        with torch.no_grad():
            results = [program.module()(*dense_operands(importable, x)) for x in inputs]
        leaves = torch.utils._pytree.tree_leaves
        results = [as_arrays(leaves(one)) for one in results]
        assert {len(one) for one in results} == {importable.results}
        check_results(model, inputs, results, TOLERANCE[dtype])


@pytest.mark.slow
@needs_library
@needs_tools
@needs_iree
@pytest.mark.parametrize("model", [TwoLayers, Shared])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_models_are_right_on_the_cpu(model, dtype, tmp_path):
    model, x = draw(model, dtype, 7)
    exported = import_program(prepare(model, x))
    inputs = [x, x[:1].contiguous()]
    check_on_cpu(model, exported, inputs, tmp_path, TOLERANCE[dtype])


@pytest.mark.slow
@needs_library
@needs_tools
@needs_iree
@pytest.mark.parametrize(
    "lead, names", [((2, 5), "bt"), ((2, 5), " t"), ((2, 5), "b ")]
)
def test_activations_of_three_dimensions(lead, names, tmp_path):
    """Products stay whole until linalg: torch would make matrices of the activations,
    and importers lose track of sizes of which two are dynamic."""
    model, x = draw(TwoLayers, torch.float16, 2, 5)
    sizes = [torch.export.Dim(name) if name != " " else None for name in names]
    dynamic = {at: size for at, size in enumerate(sizes) if size}
    whole = [torch.ops.aten.linear.default]
    exported = import_program(prepare(model, x, dynamic), "", whole)
    inputs = [x]
    if names[0] != " ":
        inputs.append(torch.cat((x, x)))
    check_on_cpu(model, exported, inputs, tmp_path, TOLERANCE[torch.float16])


@pytest.mark.slow
@needs_library
@needs_iree
@needs_emulated_cuda
def test_kernels_are_right(tmp_path):
    """On the emulated driver. Both products are one program, with all between them."""
    model, x = draw(Plain, torch.float16, 21)
    exported = import_program(prepare(model, x))
    text, parameters = tmp_path / "model.mlir", tmp_path / "model.safetensors"
    manifest = exported.to_iree(text, "--object", "emulator", "--tokens", "1,40")
    assert text.read_text().count("= call @nm_sparse_programs.") == 1
    exported.save_parameters(parameters, manifest)
    program, inputs = compile_text(text, "cuda"), [x[:1], x]
    results, launches = run_program(program, "cuda", parameters, [[x] for x in inputs])
    assert launches and not any(one.get("skipped") for one in launches)
    check_results(model, inputs, results, TOLERANCE[torch.float16])


@torch.library.custom_op(
    "nm_test::two_layers",
    mutates_args=(),
    schema="(Tensor x, Tensor[] up, Tensor[] down, str[] specs) -> Tensor",
)
def two_layers(x, up, down, specs):
    y = torch.ops.nm_sparse.linear(x, up, None, specs[0])
    return torch.ops.nm_sparse.linear(F.silu(y), down, None, specs[1])


@two_layers.register_fake
def _two_layers_fake(x, up, down, specs):
    return torch.empty_like(x)


class Own(Plain):
    """An operator of one's own, which calls that of a layer."""

    def forward(self, x):
        parts = [layer.operands() for layer in (self.up, self.down)]
        specs = [self.up.spec, self.down.spec]
        return torch.ops.nm_test.two_layers(x, *parts, specs)


@pytest.mark.slow
@needs_library
@needs_tools
@needs_iree
def test_an_operator_of_ones_own(tmp_path):
    model, x = draw(Own, torch.float16, 7)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: TOKENS},))
    table = {torch.ops.nm_test.two_layers.default: two_layers._init_fn}
    exported = import_program(to_importable(program, table))
    check_on_cpu(model, exported, [x], tmp_path, TOLERANCE[torch.float16])


TEXT = """module {
  func.func private @other(%arg0: tensor<4xf16>)
  func.func @main(%arg0: tensor<?x256xf16>, %arg1: tensor<512xf16> {a.b = "x, ) %y"}, \
%up_weight: tensor<512x256xf16>, %arg3: tensor<256x512xf16>) -> tensor<?x256xf16> \
attributes {torch.assume_strict_symbolic_shapes} {
    %0 = some.op %arg0, %arg1, %up_weight, %arg3 : tensor<?x256xf16>
    return %0 : tensor<?x256xf16>
  }
}
"""


def test_text_gets_names_and_encodings():
    importable = prepare(*draw(Plain, torch.float16, 7))
    exported = importable.encode(TEXT)
    names = [one.name for one in exported.arguments]
    assert names == ["input", "up_bias", "up_weight_", "down_weight"]
    up = "tensor<512x256xf16, #nm_sparse.encoding<2:4, dim = 1>>"
    assert (
        "(%input: tensor<?x256xf16>,\n    %up_bias: tensor<512xf16> {" in exported.text
    )
    assert '{a.b = "x, ) %y"}' in exported.text
    assert f"%up_weight_: {up}" in exported.text
    assert (
        "{torch.assume_strict_symbolic_shapes} {\n"
        "    %arg0 = tensor.cast %input : tensor<?x256xf16> to tensor<?x256xf16>\n"
    ) in exported.text
    cast = f"%up_weight = tensor.cast %up_weight_ : {up} to tensor<512x256xf16>"
    assert cast in exported.text
    assert exported.text.endswith(TEXT[TEXT.index("    %0 = some.op") :])


@pytest.mark.parametrize(
    "old, new, error",
    [
        ("@main", "@run", "has no func.func @main: legal is what an importer has"),
        (", %arg3: tensor<256x512xf16>", "", "has 3 arguments: legal are 4"),
        (
            "tensor<512x256xf16>",
            "!torch.vtensor<[512,256],f16>",
            r"argument 2 of @main, up, is !torch.vtensor<\[512,256\],f16>: legal is "
            "tensor<512x256xf16>; lower the text to linalg",
        ),
        (
            "512xf16>",
            "512xf32>",
            "up.bias, is tensor<512xf32> .*: legal is",
        ),
    ],
)
def test_text_of_other_programs_is_refused(old, new, error):
    importable = prepare(*draw(Plain, torch.float16, 7))
    with pytest.raises(ExportError, match=error):
        importable.encode(TEXT.replace(old, new))


class Changing(Plain):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        self.count.add_(1)
        return super().forward(x)


class Reading(Plain):
    def forward(self, x):
        return super().forward(x) + self.up.operands()[0].sum()


class Computing(Plain):
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(x)


class Narrowed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = NMLinear(WIDTH, 8, "2:4", dtype=torch.float8_e4m3fn)

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize(
    "model, error",
    [
        (Changing, "the program changes count .*: legal is one that changes neither"),
        (
            Reading,
            "up.values, of a packed weight, is used by aten.sum.default: l",
        ),
        (Computing, "of a packed weight is computed: legal is a parameter or a buffer"),
    ],
)
def test_what_has_no_such_program_is_refused(model, error):
    model, x = draw(model, torch.float16, 7)
    with pytest.raises(ExportError, match=error):
        prepare(model, x)


class Sized(Plain):
    def forward(self, x, size):
        return super().forward(x) * size


def test_inputs_that_are_sizes_are_refused():
    model, x = draw(Sized, torch.float16, 7)
    dynamic = ({0: TOKENS}, torch.export.Dim.DYNAMIC)
    program = torch.export.export(model, (x, 9), dynamic_shapes=dynamic)
    with pytest.raises(ExportError, match="the input size is a SymInt: legal is a ten"):
        to_importable(program)


def test_weights_of_other_types_are_refused():
    x = torch.randn(7, WIDTH)
    with pytest.raises(ExportError, match="x is torch.float32 and a packed"):
        prepare(Narrowed().eval(), x)

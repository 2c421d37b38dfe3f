# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of torch through IREE: exported, compiled by nm-compile and iree-compile, and
run by IREE's runtime, on the emulated driver or, without our kernels, on the CPU.

IREE's own kernels do nothing on the emulated driver. So models that need none are
compared with torch there, and of a whole block what is launched.
"""

import re

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from export_cases import needs_library, needs_tools, tool  # noqa: E402
from iree_cases import (  # noqa: E402
    check_close,
    compile_text,
    expected_launches,
    needs_emulated_cuda,
    needs_iree,
    run_program,
)
from torch import nn  # noqa: E402

from nm_sparse.compiler import CompileError  # noqa: E402
from nm_sparse.files.tensor_file import TensorFile  # noqa: E402
from nm_sparse.torch import NMLinear  # noqa: E402
from nm_sparse.torch.export import ExportError, export_mlir  # noqa: E402

ENCODINGS = [
    "2:4",
    "8:16",
    "8:32, block = [1, 128]",
    "[4:8, block = [1, 64]], [2:4]",
]
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}
# Each pattern, and each type.
CASES = [(encoding, torch.float16) for encoding in ENCODINGS] + [
    (ENCODINGS[2], torch.bfloat16),
    (ENCODINGS[2], torch.float32),
]
TOKENS = torch.export.Dim("tokens")
HIDDEN, INNER, HEADS = 256, 512, 4


def sparse(inputs, outputs, encoding, bias=False):
    """With results as large as the inputs, by which errors show."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    with torch.no_grad():
        layer.weight.mul_(3)
    return NMLinear.from_dense(layer, encoding)


class MLP(nn.Module):
    def __init__(self, encoding, bias=False):
        super().__init__()
        self.gate = sparse(HIDDEN, INNER, encoding)
        self.up = sparse(HIDDEN, INNER, encoding, bias)
        self.down = sparse(INNER, HIDDEN, encoding, bias)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def rotate(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class Attention(nn.Module):
    """Attention by groups of two heads that share keys and values, with rotary."""

    def __init__(self, encoding):
        super().__init__()
        self.size = HIDDEN // HEADS
        self.q = sparse(HIDDEN, HIDDEN, encoding)
        self.k = sparse(HIDDEN, HIDDEN // 2, encoding)
        self.v = sparse(HIDDEN, HIDDEN // 2, encoding)
        self.o = sparse(HIDDEN, HIDDEN, encoding)
        steps = torch.arange(0, self.size, 2) / self.size
        self.register_buffer("frequencies", 10000.0**-steps)

    def forward(self, x):
        places = torch.arange(x.shape[0]).float()[:, None] * self.frequencies.float()
        angles = torch.cat((places, places), -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        q, k, v = (
            one.view(x.shape[0], -1, self.size).transpose(0, 1)
            for one in (self.q(x), self.k(x), self.v(x))
        )
        q, k = (one * cos + rotate(one) * sin for one in (q, k))
        k, v = k.repeat_interleave(2, 0), v.repeat_interleave(2, 0)
        y = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)
        return self.o(y[0].transpose(0, 1).reshape(x.shape[0], -1))


class Block(nn.Module):
    """A block of a transformer like Llama."""

    def __init__(self, encoding):
        super().__init__()
        self.before, self.between = (nn.RMSNorm(HIDDEN, eps=1e-5) for _ in range(2))
        self.attention, self.mlp = Attention(encoding), MLP(encoding)

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.between(x))


def export(model, dtype=torch.float16):
    torch.manual_seed(4705)
    model = model().to(dtype).eval()
    x = torch.randn(16, HIDDEN, dtype=dtype)
    return model, export_mlir(model, (x,), ({0: TOKENS},))


def compile_emulated(exported, folder):
    """The manifest, the text, the program and the file of parameters; kernels are for
    the emulator, one for few tokens and one for more."""
    text, parameters = folder / "model.mlir", folder / "model.safetensors"
    manifest = exported.to_iree(text, "--object", "emulator", "--tokens", "1,40")
    exported.save_parameters(parameters, manifest)
    return manifest, text.read_text(), compile_text(text, "cuda"), parameters


def draw_inputs(dtype):
    """For both kernels."""
    return [torch.randn(tokens, HIDDEN, dtype=dtype) for tokens in (1, 21)]


@pytest.mark.slow
@needs_library
@needs_iree
@needs_emulated_cuda
@pytest.mark.parametrize("encoding, dtype", CASES)
def test_layers_are_right(encoding, dtype, tmp_path):
    """Weights are parameters of a file, and functions have classes of tokens."""
    model, exported = export(
        lambda: nn.Sequential(MLP(encoding, True), MLP(encoding)), dtype
    )
    _, _, program, parameters = compile_emulated(exported, tmp_path)
    inputs = draw_inputs(dtype)
    results, launches = run_program(program, "cuda", parameters, [[x] for x in inputs])
    assert launches and not any(one.get("skipped") for one in launches)
    for x, (found,) in zip(inputs, results):
        with torch.no_grad():
            check_close(found, model(x), TOLERANCE[dtype])


class Split(nn.Module):
    """Two products of an input, which is a result, too."""

    def __init__(self):
        super().__init__()
        self.first = sparse(HIDDEN, 96, "2:4", True)
        self.second = sparse(HIDDEN, 77, "8:32, block = [1, 32], order = shuffled")

    def forward(self, x):
        return F.relu(self.first(x)), x, self.second(x)


class Twice(nn.Module):
    """One weight of two products."""

    def __init__(self):
        super().__init__()
        self.layer = sparse(HIDDEN, HIDDEN, "4:8, block = [1, 16]")

    def forward(self, x):
        return x + self.layer(F.gelu(self.layer(x)))


@pytest.mark.slow
@needs_library
@needs_iree
@needs_emulated_cuda
@pytest.mark.parametrize("model", [Split, Twice])
def test_batches_of_sequences(model, tmp_path):
    torch.manual_seed(4706)
    model = model().half().eval()
    x = torch.randn(2, 5, HIDDEN, dtype=torch.float16)
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")}
    exported = export_mlir(model, (x,), (sizes,))
    _, _, program, parameters = compile_emulated(exported, tmp_path)
    inputs = [x, x[:1, :1].contiguous()]
    results, _ = run_program(program, "cuda", parameters, [[x] for x in inputs])
    for x, found in zip(inputs, results):
        with torch.no_grad():
            wanted = torch.utils._pytree.tree_leaves(model(x))
        assert len(found) == len(wanted)
        for one, like in zip(found, wanted):
            check_close(one, like, TOLERANCE[torch.float16])


@pytest.mark.slow
@needs_library
@needs_iree
@needs_emulated_cuda
@pytest.mark.parametrize("encoding", [ENCODINGS[0], ENCODINGS[2]])
def test_a_block_launches_what_its_manifest_says(encoding, tmp_path):
    _, exported = export(lambda: Block(encoding))
    manifest, text, program, parameters = compile_emulated(exported, tmp_path)
    inputs = draw_inputs(torch.float16)
    results, launches = run_program(program, "cuda", parameters, [[x] for x in inputs])
    assert [one.shape for (one,) in results] == [tuple(x.shape) for x in inputs]
    calls = re.findall(r"= call @nm_sparse_programs\.(\w+)", text)
    wanted = [
        launch
        for x in inputs
        for launch in expected_launches(manifest, calls, x.shape[0])
    ]
    found = [
        (one["kernel"], one["grid"], one["block"], one["shared"])
        for one in launches
        if not one.get("skipped")
    ]
    assert found[-len(wanted) :] == wanted
    # Once, when the module is loaded.
    before = [kernel for kernel, *_ in found[: -len(wanted)]]
    assert all(kernel.startswith("make_tensor_maps") for kernel in before)


@pytest.mark.slow
@needs_library
@needs_tools
@needs_iree
@pytest.mark.parametrize("encoding, dtype", CASES)
def test_a_block_without_our_kernels_is_right(encoding, dtype, tmp_path):
    """Weights are unpacked by linalg, and IREE compiles all of it for the CPU."""
    model, exported = export(lambda: Block(encoding), dtype)
    path = tmp_path / "model.mlir"
    path.write_text(
        tool(
            "nm-opt",
            "-",
            "--convert-linalg-to-nm-sparse",
            "--nm-sparse-materialize-encodings",
            "--convert-nm-sparse-to-linalg=structured drop-attributes",
            "--linalg-generalize-named-ops",
            text=exported.text,
        )
    )
    inputs = draw_inputs(dtype)
    calls = [exported.operands(x) for x in inputs]
    results, _ = run_program(compile_text(path, "local-task"), "local-task", "", calls)
    for x, (found,) in zip(inputs, results):
        with torch.no_grad():
            check_close(found, model(x), TOLERANCE[dtype])


@needs_library
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_parameters_are_what_the_manifest_lists(dtype, tmp_path):
    model, exported = export(lambda: Block(ENCODINGS[2]), dtype)
    manifest = exported.to_iree(tmp_path / "model.mlir", "--tokens", "40")
    path = tmp_path / "model.safetensors"
    exported.save_parameters(path, manifest)
    file = TensorFile(path)
    listed = {one["key"]: one["type"] for one in manifest["parameters"]}
    assert set(file.tensors) == set(listed)
    assert {one["argument"] for one in manifest["parameters"]} == {
        one.name for one in exported.arguments if one.kind != "input"
    }
    for key, kind in listed.items():
        sizes = kind[len("tensor<") : -1].split("x")[:-1]
        assert file.tensors[key].shape == tuple(map(int, sizes))
    spelling = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
    for key in ("before_weight", "mlp_down_weight.values"):
        assert file.tensors[key].dtype == spelling[dtype]
    stored = file.read("attention_frequencies")
    frequencies = model.attention.frequencies
    assert stored.tobytes() == frequencies.view(torch.uint8).numpy().tobytes()


@needs_library
def test_manifests_of_other_models_are_refused(tmp_path):
    _, exported = export(lambda: MLP("2:4"))
    manifest = exported.to_iree(tmp_path / "model.mlir", "--tokens", "40")
    path = tmp_path / "model.safetensors"
    with pytest.raises(ExportError, match="lists no parameters: legal is one that"):
        exported.save_parameters(path, {"functions": []})
    _, other = export(lambda: Block("2:4"))
    with pytest.raises(ExportError, match="'down_weight': legal is one of before"):
        other.save_parameters(path, manifest)
    entry = {"key": "before_weight", "argument": "before_weight"}
    entry["type"] = "tensor<9xf16>"
    with pytest.raises(ExportError, match="as tensor<9xf16>: legal is tensor<256xf16>"):
        other.save_parameters(path, {**manifest, "parameters": [entry]})
    assert not path.exists()


@needs_library
def test_what_the_compiler_refuses_is_said(tmp_path):
    _, exported = export(lambda: MLP("2:4"))
    with pytest.raises(CompileError, match="--object: 'elf' is not one of ptx"):
        exported.to_iree(tmp_path / "model.mlir", "--object", "elf")
    assert not (tmp_path / "model.mlir").exists()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A block of Llama-3-8B from PyTorch in IREE: 2:4 with our kernels, and dense.

usage: block.py prepare FOLDER [--sparse] [--iree-compile TOOL] [--hidden N ...]
       block.py measure FOLDER --out RESULT.json [--tokens LIST]

`prepare` exports the block twice, with packed weights and dense, and compiles both for
IREE, and the programs of the first for our own runtime; it needs the package nm_sparse,
PyTorch and IREE's compiler, and no GPU. `measure` draws weights, writes the parameters,
and compares both with PyTorch in f32, in one process: what they compute, how long calls
take, and how long kernels do, ours also in our own host.
"""

import argparse
import ctypes
import functools
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch
from programs import Programs, compile_programs, find_calls
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINEARS = ("q", "k", "v", "o", "gate", "up", "down")
ROUNDS = 15


class Norm(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size, dtype=torch.float16))

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)
        return (wide * scale).to(x.dtype) * self.weight


class Block(nn.Module):
    """Attention over groups of heads and a gated MLP, for one sequence."""

    def __init__(self, size: int, hidden: int, heads: int, groups: int):
        super().__init__()
        self.heads, self.groups, self.width = heads, groups, size // heads
        keys = groups * self.width
        half = {"bias": False, "dtype": torch.float16}
        self.q, self.o = nn.Linear(size, size, **half), nn.Linear(size, size, **half)
        self.k, self.v = nn.Linear(size, keys, **half), nn.Linear(size, keys, **half)
        self.gate = nn.Linear(size, hidden, **half)
        self.up, self.down = (
            nn.Linear(size, hidden, **half),
            nn.Linear(hidden, size, **half),
        )
        self.before, self.after = Norm(size), Norm(size)

    def turn(self, x, cos, sin):
        low, high = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-high, low), dim=-1) * sin

    def forward(self, x, cos, sin):
        tokens = x.shape[0]
        y = self.before(x)
        q = self.q(y).view(tokens, self.heads, self.width).transpose(0, 1)
        k = self.k(y).view(tokens, self.groups, self.width).transpose(0, 1)
        v = self.v(y).view(tokens, self.groups, self.width).transpose(0, 1)
        q, k = self.turn(q, cos, sin), self.turn(k, cos, sin)
        repeats = self.heads // self.groups
        k, v = k.repeat_interleave(repeats, 0), v.repeat_interleave(repeats, 0)
        scores = (q @ k.transpose(1, 2)).float() * self.width**-0.5
        y = torch.softmax(scores, -1).to(x.dtype) @ v
        x = x + self.o(y.transpose(0, 1).reshape(tokens, -1))
        y = self.after(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


def make_inputs(tokens: int, width: int, size: int, device: str):
    x = torch.randn(tokens, size, device=device).half()
    places = torch.arange(tokens, device=device).float()
    rates = 10000 ** (-torch.arange(0, width, 2, device=device).float() / width)
    angles = torch.outer(places, rates).repeat(1, 2)
    return x, angles.cos().half(), angles.sin().half()


def prepare(options: argparse.Namespace) -> None:
    sys.path.insert(0, str(ROOT / "python"))
    import nm_sparse.torch as nmt

    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    sizes = (options.size, options.hidden, options.heads, options.groups)
    block = Block(*sizes).eval()
    inputs = make_inputs(64, block.width, options.size, "cpu")
    dynamic = torch.export.Dim("tokens", min=2, max=8192)
    shapes = {name: {0: dynamic} for name in ("x", "cos", "sin")}

    def compile_model(text: pathlib.Path) -> None:
        subprocess.run(
            [options.iree_compile, str(text), "--iree-hal-target-device=cuda"]
            + ["--iree-cuda-target=sm_80", "-o", str(text.with_suffix(".vmfb"))],
            check=True,
        )

    if not options.sparse:
        dense = nmt.export_mlir(block, inputs, shapes, name="run")
        path = folder / "dense.mlir"
        path.write_text(dense.text)
        arguments = [(a.name, a.kind, a.target) for a in dense.arguments]
        (folder / "dense.json").write_text(json.dumps({"arguments": arguments}))
        compile_model(path)
    nmt.sparsify_(block, nmt.NMSparseConfig("2:4", keep_slower=True))
    sparse = nmt.export_mlir(block, inputs, shapes, name="run")
    path = folder / "sparse.mlir"
    manifest = sparse.to_iree(path, "--object", "cubin")
    manifest["sizes"] = sizes
    manifest["targets"] = {a.name: a.target for a in sparse.arguments}
    manifest["calls"] = find_calls(path.read_text())
    compile_programs(sparse.text, folder, pathlib.Path(options.bin), manifest)
    (folder / "sparse.json").write_text(json.dumps(manifest))
    compile_model(path)
    path.unlink()


def draw_parameters(block: Block, manifest: dict, path: pathlib.Path) -> dict:
    """Prunes the weights of `block`, and writes what the manifest lists; the arrays by
    their keys."""
    import numpy as np
    from safetensors.numpy import save_file

    sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python/tests/support")]
    from bitmap_oracle import pack_bitmap

    from nm_sparse import Encoding, encode
    from nm_sparse.reference import prune

    tensors: dict = {}
    state = dict(block.named_parameters())
    weights: dict = {}
    functions = {one["name"]: one for one in manifest["functions"]}
    for name in LINEARS:
        weight = state[f"{name}.weight"]
        weight.data = torch.randn(weight.shape, device="cuda").half()
        weight.data *= (weight.shape[1] / 2) ** -0.5
        pruned = prune(weight.data.cpu().numpy(), Encoding(2, 4, dim=1))
        weight.data = torch.from_numpy(pruned).cuda()
    for entry in manifest["parameters"]:
        target = manifest["targets"][entry["argument"]]
        if not entry.get("component"):
            tensors[entry["key"]] = state[target].detach().cpu().numpy()
            continue
        name = target.split(".")[0]
        if name not in weights:
            w = state[f"{name}.weight"].detach().cpu().numpy()
            (e,) = (
                Encoding.parse(one["encoding"])
                for one in functions[entry["function"]]["weights"]
                if one["number"] == entry["weight"]
            )
            parts = dict(encode(w, e).components)
            outputs, inputs = w.shape
            values, bits = pack_bitmap(
                e, parts["values"], parts["index"], k=inputs, n=outputs
            )
            weights[name] = {"values": values, "bits": bits.view(np.int32)}
        tensors[entry["key"]] = weights[name][entry["component"]]
    save_file(tensors, str(path))
    return tensors


class Program:
    def __init__(self, path: pathlib.Path, parameters=None):
        import iree.runtime as rt

        self.rt = rt
        self.config = rt.Config("cuda")
        context = rt.SystemContext(config=self.config)
        start = time.perf_counter()
        if parameters:
            index = rt.ParameterIndex()
            index.load(str(parameters))
            provider = index.create_provider(scope="model")
            module = rt.create_io_parameters_module(context.instance, provider)
            context.add_vm_module(module)
        context.add_vm_module(rt.VmModule.mmap(context.instance, str(path)))
        self.load = time.perf_counter() - start
        self.function = context.modules["module"]["run"]

    def upload(self, tensor):
        array = tensor.detach().cpu().numpy()
        return self.rt.asdevicearray(self.config.device, array)


def time_call(call) -> float:
    """Microseconds of the host, which waits for the GPU."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(1e6 * (time.perf_counter() - start))
    return statistics.median(times)


def time_kernels(call, kernels: set, count: int = 5) -> dict:
    """Microseconds of kernels by whose they are, of a call."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(count):
            call()
        torch.cuda.synchronize()
    total = {"ours": 0.0, "maps": 0.0, "others": 0.0}
    for event in profile.events():
        if event.device_type != torch.autograd.DeviceType.CUDA:
            continue
        if event.name.lower().startswith("mem"):
            continue
        kind = "others"
        if event.name.startswith("make_tensor_maps"):
            kind = "maps"
        elif event.name in kernels:
            kind = "ours"
        total[kind] += event.device_time / count
    return total


def compare_hosts(call, own: Programs, tokens: int, kernels: set) -> dict:
    """Microseconds of our kernels in a call of IREE and of our own host, in turns;
    between the programs of our host L2 is filled with other data, or not."""
    launch = own.bind_all(tokens)
    forms = {
        "iree": call,
        "own": functools.partial(launch, False),
        "own_cold": functools.partial(launch, True),
    }
    times: dict = {form: [] for form in forms}
    for _ in range(ROUNDS):
        for form, one in forms.items():
            times[form].append(time_kernels(one, kernels, 2)["ours"])
    return {form: statistics.median(found) for form, found in times.items()}


def measure(options: argparse.Namespace) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    folder = pathlib.Path(options.folder)
    manifest = json.loads((folder / "sparse.json").read_text())
    kernels = {k["name"] for k in manifest["kernels"]}
    block = Block(*manifest["sizes"]).eval().cuda()
    parameters = folder / "sparse.safetensors"
    arrays = draw_parameters(block, manifest, parameters)
    sparse = Program(folder / "sparse.vmfb", parameters)
    dense = None
    if (folder / "dense.vmfb").exists():
        dense = Program(folder / "dense.vmfb")
    own = Programs(ctypes.CDLL(options.runtime), folder / "own", manifest, arrays)
    del arrays
    rows = [{"load_s": sparse.load}]
    exact = Block(*manifest["sizes"]).float().cuda()
    exact.load_state_dict({k: v.float() for k, v in block.state_dict().items()})
    state = dict(block.named_parameters())
    for tokens in options.tokens:
        inputs = make_inputs(tokens, block.width, manifest["sizes"][0], "cuda")
        with torch.no_grad():
            wanted = exact(*(one.float() for one in inputs))
            y = block(*inputs)
            eager = time_call(functools.partial(block, *inputs))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                block(*inputs)

        def compare(found, wanted=wanted) -> float:
            return float((found.float() - wanted).norm() / wanted.norm())

        row = {"tokens": tokens, "errors": {"torch": compare(y)}, "us": {}}
        row["us"].update(torch=eager, torch_graph=time_call(graph.replay))
        given = [sparse.upload(one) for one in inputs]
        call = functools.partial(sparse.function, *given)
        row["errors"]["iree"] = compare(torch.from_numpy(call().to_host()).cuda())
        row["us"]["iree"] = time_call(call)
        row["kernel_us"] = time_kernels(call, kernels)
        row["own"] = compare_hosts(call, own, tokens, kernels)
        if dense:
            order = json.loads((folder / "dense.json").read_text())["arguments"]
            named = iter(inputs)
            operands = [
                dense.upload(next(named) if kind == "input" else state[target])
                for _, kind, target in order
            ]
            call = functools.partial(dense.function, *operands)
            row["errors"]["iree_dense"] = compare(
                torch.from_numpy(call().to_host()).cuda()
            )
            row["us"]["iree_dense"] = time_call(call)
        rows.append(row)
        print(json.dumps(row), flush=True)
    result = {"device": torch.cuda.get_device_name(), "rows": rows}
    pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("prepare")
    one.add_argument("folder")
    one.add_argument("--iree-compile", default="build/venv/bin/iree-compile")
    one.add_argument("--bin", default="build/bin")
    one.add_argument("--sparse", action="store_true", help="without the dense block")
    for name, size in (("size", 4096), ("hidden", 14336), ("heads", 32), ("groups", 8)):
        one.add_argument(f"--{name}", type=int, default=size)
    one = verbs.add_parser("measure")
    one.add_argument("folder")
    one.add_argument("--out", required=True)
    one.add_argument("--runtime", default="build/lib/libnm_sparse_runtime.so")
    one.add_argument(
        "--tokens",
        type=lambda text: [int(t) for t in text.split(",")],
        default=[7, 128, 700, 2048],
    )
    options = parser.parse_args()
    (prepare if options.verb == "prepare" else measure)(options)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same kernels in several hosts: a chain of products as each form launches it.

usage: chains.py prepare FOLDER [--bin BIN] [--iree-compile TOOL]
       chains.py measure FOLDER --out RESULT.json [--runtime LIBRARY] [--tokens LIST]

`prepare` compiles a chain of 20 products for each pattern, and needs no GPU: for our
runtime with the arguments that a manifest lists (fields), with bound ones, and with
maps that kernels make; as a file of C; and as a model for IREE. `measure` needs
PyTorch, gcc, IREE's runtime and a GPU, but no build. It compares what each form
computes with the products in higher precision, and then times all in turns, in one
process: forms of ours as CUDA graphs, and the kernels of IREE by the profiler, beside
the same kernels in our runtime. A call of IREE waits for the GPU, so its time is that
of the host, too.
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

LENGTH = 20  # products
SIZE = 4096
WEIGHTS = 4  # different ones, more than L2 holds
PATTERNS = {
    "two_of_four": "2:4",
    "eight_of_sixteen": "8:16, block = [1, 32]",
    "panels": "8:32, block = [1, 128]",
}
FORMS = ("fields", "bound", "device-maps")
ROUNDS, REPEATS = 15, 10


def write_chain(pattern: str) -> str:
    t = f"tensor<?x{SIZE}xf16>"
    s = f"tensor<?x{SIZE}xf32>"
    w = f"tensor<{SIZE}x{SIZE}xf16, #w>"
    weights = ", ".join(f"%w{i}: {w}" for i in range(WEIGHTS))
    lines = [
        f"#w = #nm_sparse.encoding<{pattern}>",
        "#id = affine_map<(m, n) -> (m, n)>",
        f"func.func @chain(%x: {t}, {weights}) -> {t} {{",
        "  %c0 = arith.constant 0 : index",
        "  %zero = arith.constant 0.0 : f32",
        f"  %m = tensor.dim %x, %c0 : {t}",
        f"  %e = tensor.empty(%m) : {s}",
        f"  %f = linalg.fill ins(%zero : f32) outs(%e : {s}) -> {s}",
        f"  %h = tensor.empty(%m) : {t}",
    ]
    x = "%x"
    for i in range(LENGTH):
        lines += [
            f"  %s{i} = linalg.matmul ins({x}, %w{i % WEIGHTS} : {t}, {w})",
            f"      outs(%f : {s}) -> {s}",
            f"  %y{i} = linalg.generic {{indexing_maps = [#id, #id],",
            '      iterator_types = ["parallel", "parallel"]}',
            f"      ins(%s{i} : {s}) outs(%h : {t}) {{",
            "  ^bb0(%v: f32, %o: f16):",
            "    %c = arith.truncf %v : f32 to f16",
            "    linalg.yield %c : f16",
            f"  }} -> {t}",
        ]
        x = f"%y{i}"
    return "\n".join([*lines, f"  return {x} : {t}", "}", ""])


def prepare(options: argparse.Namespace) -> None:
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)

    def run(*command: object) -> None:
        subprocess.run([str(c) for c in command], check=True, stderr=subprocess.PIPE)

    compiler = pathlib.Path(options.bin) / "nm-compile"
    for name, pattern in PATTERNS.items():
        source = folder / f"{name}.mlir"
        source.write_text(write_chain(pattern))
        for form in FORMS:
            stem = f"{folder}/{name}.{form}"
            run(
                *(compiler, source, "--arguments", form, "--emit", "cubin"),
                *("-o", f"{stem}.cubin", "--manifest", f"{stem}.json"),
            )
        run(
            *(compiler, source, "--emit", "c", "--object", "cubin"),
            *("-o", folder / f"{name}.c"),
        )
        model = folder / f"{name}.iree.mlir"
        run(
            *(compiler, source, "--emit", "iree", "--weights", "arguments"),
            *("--object", "cubin", "-o", model),
            *("--manifest", folder / f"{name}.iree.json"),
        )
        run(
            *(options.iree_compile, model, "--iree-hal-target-device=cuda"),
            *("--iree-cuda-target=sm_80", "-o", folder / f"{name}.vmfb"),
        )
        model.unlink()
        print(f"{name}: prepared", flush=True)


class Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


class Result(ctypes.Structure):
    _fields_ = [
        ("argument", ctypes.c_int32),
        ("kind", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.c_int64 * 8),
        ("strides", ctypes.c_int64 * 8),
    ]


class OurProgram:
    """A manifest and its kernels in our runtime."""

    def __init__(self, library: ctypes.CDLL, stem: str):
        self.lib = library
        manifest = pathlib.Path(f"{stem}.json").read_bytes()
        image = pathlib.Path(f"{stem}.cubin").read_bytes()
        library.nmsProgramCreate.restype = ctypes.c_void_p
        library.nmsProgramWorkspace.restype = ctypes.c_int64
        library.nmsLastError.restype = ctypes.c_char_p
        self.program = ctypes.c_void_p(
            library.nmsProgramCreate(
                *(manifest, ctypes.c_size_t(len(manifest))),
                *(image, ctypes.c_size_t(len(image))),
            )
        )
        if not self.program:
            sys.exit(library.nmsLastError().decode())

    def bind(self, tensors: list):
        """A function of the stream that launches all, and the result."""
        import torch

        arrays = (Array * len(tensors))()
        for array, tensor in zip(arrays, tensors):
            sizes = (ctypes.c_int64 * tensor.dim())(*tensor.shape)
            array.data, array.rank, array.sizes = tensor.data_ptr(), tensor.dim(), sizes
        call = (self.program, 0, arrays, len(tensors))
        size = self.lib.nmsProgramWorkspace(*call)
        result = Result()
        status = self.lib.nmsProgramResult(*call, 0, ctypes.byref(result))
        if size < 0 or status:
            sys.exit(self.lib.nmsLastError().decode())
        memory = torch.full((size,), 0x7E, dtype=torch.uint8, device="cuda")
        where = result.offset + 2 * result.sizes[0] * result.strides[0]
        flat = memory[result.offset : where].view(torch.float16)
        y = flat.as_strided(list(result.sizes[:2]), list(result.strides[:2]))

        def launch(stream: int) -> None:
            if self.lib.nmsProgramLaunch(
                *call, ctypes.c_void_p(memory.data_ptr()), ctypes.c_void_p(stream)
            ):
                sys.exit(self.lib.nmsLastError().decode())

        return launch, y


def bind_c(library: ctypes.CDLL, tensors: list):
    import torch

    tokens = tensors[0].shape[0]
    y = torch.full((tokens, SIZE), float("nan"), dtype=torch.float16, device="cuda")
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (*tensors, y)]

    def launch(stream: int) -> None:
        status = library.chain(
            ctypes.c_void_p(stream), *pointers, ctypes.c_int64(tokens)
        )
        if status:
            sys.exit(f"chain gives {status}")

    return launch, y


def capture(launch):
    import torch

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        launch(stream.cuda_stream)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        launch(stream.cuda_stream)
    return graph


def make_weights(manifest: dict, pattern: str, seed: int):
    """Dense weights and packed components, as the manifest says, on the GPU."""
    import numpy as np
    import torch

    root = pathlib.Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root / "python"), str(root / "python/tests/support")]
    from bitmap_oracle import pack_bitmap

    from nm_sparse import Encoding, encode, innermost_weight
    from nm_sparse.reference import prune

    rng = np.random.default_rng(seed)
    dense, parts = [], []
    function = manifest["functions"][0]
    for weight in function["weights"]:
        e = Encoding.parse(pattern)
        scale = (SIZE * e.n / e.m) ** -0.5
        w = prune((rng.standard_normal((SIZE, SIZE)) * scale).astype(np.float16), e)
        read = Encoding.parse(weight["encoding"])
        found = dict(encode(w, read).components)
        names = [c["name"] for c in weight["components"]]
        if "bits" in names:
            inner, k, n = innermost_weight(read, SIZE, SIZE)
            values, bits = pack_bitmap(
                inner, found.pop("values"), found.pop("index"), k=k, n=n
            )
            found.update(values=values, bits=bits)
        dense.append(torch.from_numpy(w).cuda())
        for name in names:
            part = np.ascontiguousarray(found[name])
            if part.dtype.kind == "u":
                part = part.view(f"i{part.itemsize}")
            parts.append(torch.from_numpy(part).cuda())
    return dense, parts


def compute(x, dense):
    """The chain in higher precision, but for the f16 between products."""
    for i in range(LENGTH):
        x = (x.float() @ dense[i % WEIGHTS].float()).half()
    return x


def time_kernels(call, count: int) -> float:
    """Microseconds of all kernels of a call, by the profiler."""
    import torch

    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CUDA]
    ) as profile:
        for _ in range(count):
            call()
        torch.cuda.synchronize()
    events = [
        e
        for e in profile.events()
        if e.device_type == torch.autograd.DeviceType.CUDA
        and not e.name.startswith(("Mem", "mem"))
    ]
    return sum(e.device_time for e in events) / count


def measure(options: argparse.Namespace) -> None:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    folder = pathlib.Path(options.folder)
    runtime = ctypes.CDLL(options.runtime)
    rows = []
    for name, pattern in PATTERNS.items():
        if options.only and options.only not in name:
            continue
        library = folder / f"{name}.so"
        subprocess.run(
            ["gcc", "-std=c11", "-Wall", "-Werror", "-O1", "-fPIC", "-shared"]
            + ["-I/usr/local/cuda/include", str(folder / f"{name}.c")]
            + ["-o", str(library), *options.link],
            check=True,
        )
        c_code = ctypes.CDLL(str(library))
        start = time.perf_counter()
        torch.zeros(1, device="cuda")
        status = getattr(c_code, f"{name}_prepare")()
        load = time.perf_counter() - start
        assert status == 0, status
        programs = {f: OurProgram(runtime, f"{folder}/{name}.{f}") for f in FORMS}
        manifest = json.loads((folder / f"{name}.fields.json").read_text())
        dense, parts = make_weights(manifest, pattern, options.seed)
        iree = IreeProgram(folder / f"{name}.vmfb", parts) if options.iree else None
        for tokens in options.tokens:
            x = torch.randn(tokens, SIZE, device="cuda").half()
            wanted = compute(x, dense).float()
            calls = {f: p.bind([x, *parts]) for f, p in programs.items()}
            calls["c"] = bind_c(c_code, [x, *parts])
            row = {"pattern": pattern, "tokens": tokens, "errors": {}, "us": {}}
            graphs = {}
            for form, (launch, y) in calls.items():
                graphs[form] = capture(launch)
                graphs[form].replay()
                torch.cuda.synchronize()
                error = (y.float() - wanted).norm() / wanted.norm()
                row["errors"][form] = float(error)
            times = {form: [] for form in graphs}
            for _ in range(ROUNDS):
                for form, graph in graphs.items():
                    begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
                    begin.record()
                    for _ in range(REPEATS):
                        graph.replay()
                    end.record()
                    end.synchronize()
                    times[form].append(1e3 * begin.elapsed_time(end) / REPEATS)
            row["us"] = {f: statistics.median(t) for f, t in times.items()}
            if iree:
                y = iree.call(x)
                error = (torch.from_numpy(y).cuda().float() - wanted).norm()
                row["errors"]["iree"] = float(error / wanted.norm())
                given = iree.upload(x)
                waits = []
                for _ in range(ROUNDS):
                    start = time.perf_counter()
                    iree.launch(given)
                    waits.append(1e6 * (time.perf_counter() - start))
                row["us"]["iree_call"] = statistics.median(waits)
                row["kernel_us"] = {
                    "iree": time_kernels(functools.partial(iree.launch, given), 5),
                    "device-maps": time_kernels(graphs["device-maps"].replay, 5),
                    "fields": time_kernels(graphs["fields"].replay, 5),
                }
            rows.append(row)
            print(json.dumps(row), flush=True)
        loads = {"c": load, "iree": iree.load if iree else None}
        rows.append({"pattern": pattern, "load_s": loads})
    card = torch.cuda.get_device_name()
    text = json.dumps({"device": card, "length": LENGTH, "rows": rows}, indent=1)
    pathlib.Path(options.out).write_text(text + "\n")


class IreeProgram:
    def __init__(self, path: pathlib.Path, parts: list):
        import iree.runtime as rt

        self.rt = rt
        start = time.perf_counter()
        self.config = rt.Config("cuda")
        context = rt.SystemContext(config=self.config)
        context.add_vm_module(rt.VmModule.mmap(context.instance, str(path)))
        self.load = time.perf_counter() - start
        self.function = context.modules["module"]["chain"]
        self.parts = [self.upload(p) for p in parts]

    def upload(self, tensor):
        return self.rt.asdevicearray(self.config.device, tensor.cpu().numpy())

    def launch(self, x):
        return self.function(x, *self.parts)

    def call(self, x):
        return self.launch(self.upload(x)).to_host()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("prepare")
    one.add_argument("folder")
    one.add_argument("--bin", default="build/bin")
    one.add_argument("--iree-compile", default="build/venv/bin/iree-compile")
    one = verbs.add_parser("measure")
    one.add_argument("folder")
    one.add_argument("--out", required=True)
    one.add_argument("--runtime", default="build/lib/libnm_sparse_runtime.so")
    one.add_argument("--only", help="patterns whose names have this")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--iree", action="store_true")
    one.add_argument("--link", nargs="*", default=["-lcuda"])
    one.add_argument(
        "--tokens",
        type=lambda text: [int(t) for t in text.split(",")],
        default=[1, 7, 100, 700, 2000, 5000],
    )
    options = parser.parse_args()
    (prepare if options.verb == "prepare" else measure)(options)


if __name__ == "__main__":
    main()

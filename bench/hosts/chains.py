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

SIZE = 4096
HIDDEN = 14336
HEADS = 1024  # outputs for keys and for values
LENGTH = 20  # products of a chain
PATTERNS = {
    "two_of_four": "2:4",
    "eight_of_sixteen": "8:16, block = [1, 32]",
    "panels": "8:32, block = [1, 128]",
}
# Inputs and outputs of weights: four for a chain, more than L2 holds, and those of a
# block of Llama-3-8B.
CHAIN = [(SIZE, SIZE)] * 4
BLOCK = [
    *[(SIZE, SIZE), (SIZE, HEADS), (SIZE, HEADS), (SIZE, SIZE)],
    *[(SIZE, HIDDEN), (SIZE, HIDDEN), (HIDDEN, SIZE)],
]
FORMS = ("fields", "bound", "device-maps")
ROUNDS, REPEATS = 15, 10


class Text:
    """A function of products whose results are rounded to f16."""

    def __init__(self, pattern: str, weights: list):
        self.weights = weights
        self.lines = [f"#w = #nm_sparse.encoding<{pattern}>"]
        self.lines += ["#id = affine_map<(m, n) -> (m, n)>"]
        arguments = "".join(f", %w{i}: {self.weight(i)}" for i, _ in enumerate(weights))
        self.head = f"(%x: {self.type(SIZE)}{arguments})"
        self.body = [
            "  %c0 = arith.constant 0 : index",
            "  %zero = arith.constant 0.0 : f32",
            "  %one = arith.constant 1.0 : f32",
            f"  %m = tensor.dim %x, %c0 : {self.type(SIZE)}",
        ]
        self.count = 0

    def type(self, size: int, element: str = "f16") -> str:
        return f"tensor<?x{size}x{element}>"

    def weight(self, i: int) -> str:
        inputs, outputs = self.weights[i]
        return f"tensor<{inputs}x{outputs}xf16, #w>"

    def sum(self, x: str, i: int) -> str:
        """A product in f32."""
        inputs, outputs = self.weights[i]
        n, t = self.count, self.type(outputs, "f32")
        self.count += 1
        self.body += [
            f"  %e{n} = tensor.empty(%m) : {t}",
            f"  %f{n} = linalg.fill ins(%zero : f32) outs(%e{n} : {t}) -> {t}",
            f"  %s{n} = linalg.matmul ins({x}, %w{i} : {self.type(inputs)},",
            f"      {self.weight(i)}) outs(%f{n} : {t}) -> {t}",
        ]
        return f"%s{n}"

    def map(self, sums: list, size: int, lines: list) -> str:
        """f16 of `lines`, which compute %r of %a and perhaps %b."""
        n, t, s = self.count, self.type(size), self.type(size, "f32")
        self.count += 1
        names = ["%a: f32", "%b: f32"][: len(sums)]
        self.body += [
            f"  %h{n} = tensor.empty(%m) : {t}",
            f"  %y{n} = linalg.generic {{indexing_maps = ["
            + ", ".join(["#id"] * (len(sums) + 1))
            + '], iterator_types = ["parallel", "parallel"]}',
            f"      ins({', '.join(sums)} : {', '.join([s] * len(sums))})"
            f" outs(%h{n} : {t}) {{",
            f"  ^bb0({', '.join(names)}, %o: f16):",
            *("    " + line for line in lines),
            "    %c = arith.truncf %r : f32 to f16",
            "    linalg.yield %c : f16",
            f"  }} -> {t}",
        ]
        return f"%y{n}"

    def product(self, x: str, i: int) -> str:
        one = "%r = arith.mulf %a, %one : f32"
        return self.map([self.sum(x, i)], self.weights[i][1], [one])

    def finish(self, results: list, sizes: list) -> str:
        types = ", ".join(self.type(size) for size in sizes)
        end = f"  return {', '.join(results)} : {types}"
        head = f"func.func @run{self.head} -> ({types}) {{"
        return "\n".join([*self.lines, head, *self.body, end, "}", ""])


def write_chain(pattern: str) -> str:
    text = Text(pattern, CHAIN)
    y = "%x"
    for i in range(LENGTH):
        y = text.product(y, i % len(CHAIN))
    return text.finish([y], [SIZE])


def write_block(pattern: str) -> str:
    text = Text(pattern, BLOCK)
    q, k, v = (text.product("%x", i) for i in range(3))
    o = text.product(q, 3)
    silu = [
        "%n = arith.negf %a : f32",
        "%x1 = math.exp %n : f32",
        "%d = arith.addf %x1, %one : f32",
        "%g = arith.divf %a, %d : f32",
        "%r = arith.mulf %g, %b : f32",
    ]
    hidden = text.map([text.sum(o, 4), text.sum(o, 5)], HIDDEN, silu)
    y = text.product(hidden, 6)
    return text.finish([y, k, v], [SIZE, HEADS, HEADS])


def compute_chain(x, dense):
    """In higher precision, but for the f16 between products."""
    for i in range(LENGTH):
        x = (x.float() @ dense[i % len(dense)].float()).half()
    return [x]


def compute_block(x, dense):
    import torch

    wide = [w.float() for w in dense]
    q, k, v = ((x.float() @ w).half() for w in wide[:3])
    o = (q.float() @ wide[3]).half().float()
    hidden = (torch.nn.functional.silu(o @ wide[4]) * (o @ wide[5])).half()
    return [(hidden.float() @ wide[6]).half(), k, v]


CASES = {
    **{
        name: (write_chain, compute_chain, pattern, CHAIN)
        for name, pattern in PATTERNS.items()
    },
    "block_two_of_four": (write_block, compute_block, "2:4", BLOCK),
    "block_panels": (write_block, compute_block, PATTERNS["panels"], BLOCK),
}


def prepare(options: argparse.Namespace) -> None:
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)

    def run(*command: object) -> None:
        subprocess.run([str(c) for c in command], check=True, stderr=subprocess.PIPE)

    compiler = pathlib.Path(options.bin) / "nm-compile"
    for name, (write, _, pattern, _) in CASES.items():
        source = folder / f"{name}.mlir"
        source.write_text(write(pattern))
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
        if size < 0:
            sys.exit(self.lib.nmsLastError().decode())
        memory = torch.full((size,), 0x7E, dtype=torch.uint8, device="cuda")
        results = []
        for i in range(self.lib.nmsProgramResults(self.program, 0)):
            result = Result()
            if self.lib.nmsProgramResult(*call, i, ctypes.byref(result)):
                sys.exit(self.lib.nmsLastError().decode())
            end = result.offset + 2 * result.sizes[0] * result.strides[0]
            flat = memory[result.offset : end].view(torch.float16)
            results.append(
                flat.as_strided(list(result.sizes[:2]), list(result.strides[:2]))
            )

        def launch(stream: int) -> None:
            if self.lib.nmsProgramLaunch(
                *call, ctypes.c_void_p(memory.data_ptr()), ctypes.c_void_p(stream)
            ):
                sys.exit(self.lib.nmsLastError().decode())

        return launch, results


def bind_c(library: ctypes.CDLL, tensors: list, sizes: list):
    import torch

    tokens = tensors[0].shape[0]
    results = [
        torch.full((tokens, size), float("nan"), dtype=torch.float16, device="cuda")
        for size in sizes
    ]
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (*tensors, *results)]

    def launch(stream: int) -> None:
        status = library.run(
            ctypes.c_void_p(stream), *pointers, ctypes.c_int64(tokens)
        )
        if status:
            sys.exit(f"run gives {status}")

    return launch, results


def capture(launch):
    import torch

    stream = torch.cuda.Stream()
    # Memory of the result may still be in use by what was there before.
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        launch(stream.cuda_stream)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        launch(stream.cuda_stream)
    return graph


def make_weights(manifest: dict, pattern: str, shapes: list, seed: int):
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
    for weight, (inputs, outputs) in zip(function["weights"], shapes):
        e = Encoding.parse(pattern)
        scale = (inputs * e.n / e.m) ** -0.5
        w = rng.standard_normal((inputs, outputs), np.float32) * scale
        w = prune(w.astype(np.float16), e)
        read = Encoding.parse(weight["encoding"])
        found = dict(encode(w, read).components)
        names = [c["name"] for c in weight["components"]]
        if "bits" in names:
            inner, k, n = innermost_weight(read, inputs, outputs)
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


def compare(results, wanted) -> float:
    """The largest error of a result, by norms."""
    pairs = [(y.float(), z.float()) for y, z in zip(results, wanted)]
    return max(float((y - z).norm() / z.norm()) for y, z in pairs)


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
    for name, (_, compute, pattern, shapes) in CASES.items():
        if options.only and options.only not in name:
            continue
        library = folder / f"{name}.so"
        subprocess.run(
            ["gcc", "-std=c11", "-Wall", "-Werror", "-O1", "-fPIC", "-shared"]
            + ["-I/usr/local/cuda/include", str(folder / f"{name}.c")]
            + ["-o", str(library), f"-L{options.driver}", "-lcuda"],
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
        dense, parts = make_weights(manifest, pattern, shapes, options.seed)
        iree = IreeProgram(folder / f"{name}.vmfb", parts) if options.iree else None
        for tokens in options.tokens:
            x = torch.randn(tokens, SIZE, device="cuda").half()
            wanted = compute(x, dense)
            calls = {f: p.bind([x, *parts]) for f, p in programs.items()}
            calls["c"] = bind_c(c_code, [x, *parts], [y.shape[1] for y in wanted])
            row = {"program": name, "tokens": tokens, "errors": {}, "us": {}}
            graphs = {}
            for form, (launch, results) in calls.items():
                graphs[form] = capture(launch)
                graphs[form].replay()
                torch.cuda.synchronize()
                row["errors"][form] = compare(results, wanted)
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
                row["errors"]["iree"] = compare(iree.call(x), wanted)
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
        rows.append({"program": name, "load_s": loads})
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
        self.function = context.modules["module"]["run"]
        self.parts = [self.upload(p) for p in parts]

    def upload(self, tensor):
        return self.rt.asdevicearray(self.config.device, tensor.cpu().numpy())

    def launch(self, x):
        return self.function(x, *self.parts)

    def call(self, x):
        import torch

        results = self.launch(self.upload(x))
        results = results if isinstance(results, (list, tuple)) else [results]
        return [torch.from_numpy(y.to_host()).cuda() for y in results]


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
    one.add_argument("--driver", default="/usr/lib", help="folder of libcuda.so")
    one.add_argument(
        "--tokens",
        type=lambda text: [int(t) for t in text.split(",")],
        default=[1, 7, 100, 700, 2000, 5000],
    )
    options = parser.parse_args()
    (prepare if options.verb == "prepare" else measure)(options)


if __name__ == "__main__":
    main()

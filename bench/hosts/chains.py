#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same kernels in several hosts: a chain of products as each form launches it.

usage: chains.py prepare FOLDER [--only NAME] [--iree-compile TOOL]
       chains.py measure FOLDER --out RESULT.json [--runtime LIBRARY] [--tokens LIST]

`prepare` compiles a chain of 20 products for each pattern, and needs no GPU: for our
runtime with the arguments that a manifest lists (fields), with bound ones, and with
maps that kernels make; as a file of C, whose functions allocate memory (c) or take it
(c_workspace); and as a model for IREE. `measure` needs PyTorch, gcc, IREE's runtime and
a GPU, but no build. It compares what each form computes with the products in higher
precision, and then times all in turns, in one process: forms of ours as CUDA graphs,
and the kernels of IREE by the profiler, beside the same kernels in our runtime. A call
of IREE waits for the GPU, so its time is that of the host, too.
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

from cases import CASES, LENGTH, SIZE
from forms import IreeProgram, OurProgram, bind_c

FORMS = ("fields", "bound", "device-maps")
ROUNDS, REPEATS = 15, 10


def prepare(options: argparse.Namespace) -> None:
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)

    def run(*command: object) -> None:
        subprocess.run([str(c) for c in command], check=True, stderr=subprocess.PIPE)

    compiler = pathlib.Path(options.bin) / "nm-compile"
    for name, (write, _, pattern, _) in CASES.items():
        if options.only and options.only not in name:
            continue
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
            widths = [y.shape[1] for y in wanted]
            calls["c"] = bind_c(c_code, [x, *parts], widths)
            calls["c_workspace"] = bind_c(c_code, [x, *parts], widths, True)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("prepare")
    one.add_argument("folder")
    one.add_argument("--only", help="programs whose names have this")
    one.add_argument("--bin", default="build/bin")
    one.add_argument("--iree-compile", default="build/venv/bin/iree-compile")
    one = verbs.add_parser("measure")
    one.add_argument("folder")
    one.add_argument("--out", required=True)
    one.add_argument("--runtime", default="build/lib/libnm_sparse_runtime.so")
    one.add_argument("--only", help="programs whose names have this")
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

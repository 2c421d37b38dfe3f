#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of block patterns, and of N:M whose n divides no tile, against cuBLAS.

usage: blocks.py prepare FOLDER [--bin BIN]
       blocks.py measure FOLDER --out RESULT.json [--only TEXT] [--floors]
                         [--budget-ms N] [--steady-ms N]

`prepare` compiles the layers and needs no GPU. `measure` needs PyTorch and a GPU,
but no build: it takes our kernel and cuBLAS in turns, in one process, with CUDA
graphs over several sets of inputs, after a comparison with a float64 product.
The dense product has dense random weights, stored K x N or N x K, whichever is
faster. With `--floors` kernels of warpgroup products are also timed without their
products, which leaves the copies, and without their gathers, which leaves the
products and what the accelerator copies. With `--steady-ms` each of all these is
also run alone for so long, and the clock and the power that it comes to are kept:
the power limit sets the clock of most of them.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

# Instructions that a floor is measured without.
FLOORS = {"copies": "wgmma.mma_async", "products": "cp.async.cg"}
TYPES = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 1e-5}  # largest relative errors
MAPS = {"token": ("mk", "mn"), "feature": ("km", "nm")}


@dataclasses.dataclass(frozen=True)
class BlockLayer:
    type: str
    pattern: str  # n:m
    block: tuple  # bk, bn
    layout: str
    shape: tuple  # tokens, outputs, contraction
    keeps: bool = False  # the layout of x: no transposition goes first

    @property
    def name(self):
        m, n, k = self.shape
        rows, outputs = self.block
        pattern = self.pattern.replace(":", "of")
        name = f"{self.type}_{pattern}_{rows}x{outputs}_{self.layout}_{m}x{n}x{k}"
        return name + "_kept" * self.keeps

    def text(self):
        sizes = dict(zip("mnk", self.shape))

        def tensor(dims, end=""):
            return f"tensor<{'x'.join(str(sizes[d]) for d in dims)}x{self.type}{end}>"

        x, y = MAPS[self.layout]
        maps = ", ".join(
            f"affine_map<(m, n, k) -> ({', '.join(dims)})>" for dims in (x, "kn", y)
        )
        weight = tensor("kn", ", #w")
        return f"""\
#w = #nm_sparse.encoding<{self.pattern}, block = [{self.block[0]}, {self.block[1]}]>
func.func @f(%x: {tensor(x)}, %w: {weight}) -> {tensor(y)} {{
  %zero = arith.constant 0.0 : {self.type}
  %empty = tensor.empty() : {tensor(y)}
  %init = linalg.fill ins(%zero : {self.type}) outs(%empty : {tensor(y)}) -> {tensor(y)}
  %y = linalg.matmul indexing_maps = [{maps}]
      ins(%x, %w : {tensor(x)}, {weight}) outs(%init : {tensor(y)}) -> {tensor(y)}
  return %y : {tensor(y)}
}}
"""


CUBE = (4096, 4096, 4096)
LAYERS = [
    *(
        BlockLayer("f16", pattern, block, layout, CUBE)
        for block, patterns in {
            (16, 128): ("2:4", "8:16", "1:4", "4:16"),
            (8, 128): ("8:16", "4:16"),
            (64, 64): ("1:2", "8:16", "1:4"),
        }.items()
        for pattern in patterns
        for layout in ("token", "feature")
    ),
    *(
        BlockLayer("f16", pattern, (8, 128), "token", CUBE, keeps=True)
        for pattern in ("8:16", "4:16")
    ),
    BlockLayer("f32", "8:16", (4, 4), "feature", CUBE),
    BlockLayer("f32", "8:16", (4, 4), "token", CUBE),
    BlockLayer("f32", "1:2", (64, 64), "feature", CUBE),
    *(
        BlockLayer("f16", pattern, (1, 128), "feature", CUBE)
        for pattern in ("28:32", "24:32", "20:32", "16:32", "11:32", "8:32")
    ),
]


def prepare(arguments):
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    known = []
    for layer in LAYERS:
        source = folder / "layer.mlir"
        source.write_text(layer.text(), "utf-8")
        ptx, manifest = (folder / f"{layer.name}.{end}" for end in ("ptx", "json"))
        done = subprocess.run(
            [str(arguments.bin / "nm-compile"), str(source), "-o", str(ptx)]
            + ["--manifest", str(manifest)]
            + ["--layout=keep"] * layer.keeps,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"blocks.py: {layer.name}: {done.stderr.strip()}", file=sys.stderr)
            continue
        known.append({**dataclasses.asdict(layer), "name": layer.name})
    (folder / "list.json").write_text(json.dumps(known), "utf-8")
    print(f"{len(known)} of {len(LAYERS)} layers in {folder}")
    return 0 if len(known) == len(LAYERS) else 1


class BlockInputs:
    """The arguments of a function, and the dense weight that they stand for."""

    def __init__(self, torch, layer, function, seed):
        import inputs
        import launches

        self.torch, self.layer = torch, layer
        random = torch.Generator("cuda").manual_seed(seed)
        kept, window = map(int, layer.pattern.split(":"))
        rows, outputs = layer.block
        self.tensors = []
        for argument in function["arguments"]:
            sizes, element = launches.parse_type(argument["type"])
            if inputs.get_kind(argument) == "index":
                shape = (sizes[0] // kept, window, sizes[1])
                order = torch.rand(shape, generator=random, device="cuda")
                index = order.argsort(dim=1)[:, :kept].sort(dim=1).values
                self.index = index.reshape(sizes).to(torch.uint8)
                self.tensors.append(self.index)
                continue
            made = torch.randn(sizes, generator=random, device="cuda")
            if inputs.get_kind(argument) == "values":
                made /= math.sqrt(sizes[0])
            made = made.to(inputs.element_type(torch, element))
            self.tensors.append(made)
            if inputs.get_kind(argument) == "values":
                self.values = made
            else:
                self.x = made
        number = torch.arange(self.index.shape[0], device="cuda") // kept
        first = (self.index.long() + window * number[:, None]) * rows
        self.rows = (
            first.repeat_interleave(rows, dim=0)
            + torch.arange(rows, device="cuda").repeat(first.shape[0])[:, None]
        ).repeat_interleave(outputs, dim=1)
        self.values[self.rows >= layer.shape[2]] = 0
        self.values[:, layer.shape[1] :] = 0

    def reference(self):
        _, outputs, steps = self.layer.shape
        depth = max(steps, int(self.rows.max()) + 1)
        dense = self.torch.zeros(
            depth, self.values.shape[1], dtype=self.torch.float64, device="cuda"
        )
        dense.scatter_(0, self.rows, self.values.double())
        dense = dense[:steps, :outputs]
        x = self.x.double()
        y = (x if self.layer.layout == "token" else x.t()) @ dense
        return y.t() if self.layer.layout == "feature" else y


class Dense:
    """The vendor's product of the same x with dense random weights."""

    def __init__(self, torch, given, transposed):
        self.torch, layer = torch, given.layer
        tokens, outputs, steps = layer.shape
        weight = torch.randn(steps, outputs, device="cuda") / math.sqrt(steps)
        weight = weight.to(given.x.dtype)
        self.weight = weight.t().contiguous().t() if transposed else weight
        self.x = given.x if layer.layout == "token" else given.x.t()
        self.y = torch.empty(tokens, outputs, dtype=given.x.dtype, device="cuda")

    def enqueue(self):
        self.torch.mm(self.x, self.weight, out=self.y)


def without(ptx, instruction):
    """PTX less the lines that begin with `instruction`."""
    lines = ptx.splitlines()
    return "\n".join(x for x in lines if not x.lstrip().startswith(instruction))


def load_kernels(driver, ptx, function):
    module = driver.load(ptx.encode() + b"\0")
    names = {launch["kernel"] for launch in function["launches"]}
    return module, {name: driver.kernel(module, name) for name in names}


def run_steadily(torch, graph, calls, milliseconds):
    """Microseconds of a call, clock and power while a graph of `calls` repeats."""
    import clocks

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    replays, middle, until = 0, 0.0, time.time() + milliseconds / 1000
    with clocks.Watch(interval=0.05) as watch:
        while time.time() < until:
            # The first half brings the GPU to the clock that lasts.
            if not middle and time.time() > until - milliseconds / 2000:
                middle = time.time()
                begin.record()
                replays = 0
            graph.replay()
            replays += 1
            if replays % 50 == 0:
                torch.cuda.synchronize()
        end.record()
        torch.cuda.synchronize()
    found = watch.between(middle, until)
    found["us"] = 1000 * begin.elapsed_time(end) / replays / calls
    return found


def measure_layer(torch, driver, known, arguments):
    import cusparselt
    import pairs

    layer = BlockLayer(**{**known, "block": tuple(known["block"])})
    folder = arguments.folder
    manifest = json.loads((folder / f"{layer.name}.json").read_text("utf-8"))
    (function,) = manifest["functions"]
    ptx = (folder / f"{layer.name}.ptx").read_text("utf-8")
    module, kernels = load_kernels(driver, ptx, function)
    modules = [module]
    sets = [
        BlockInputs(torch, layer, function, s) for s in range(pairs.count_sets(layer))
    ]
    programs = [pairs.Program(torch, driver, kernels, function, s) for s in sets]
    want = sets[0].reference()
    error = ((programs[0].result().double() - want).norm() / want.norm()).item()
    found = {
        "schedules": [product["schedule"] for product in manifest.get("products", [])],
        "relative_error": error,
        "passed": error <= TYPES[layer.type],
        "launches": len(function["launches"]),
    }
    works = {"ours": programs}
    if arguments.floors and FLOORS["copies"] in ptx:
        for floor, instruction in FLOORS.items():
            edited = without(ptx, instruction)
            module, kernels = load_kernels(driver, edited, function)
            modules.append(module)
            works[floor] = [
                pairs.Program(torch, driver, kernels, function, s) for s in sets
            ]
    for name, transposed in (("dense_nn", False), ("dense_tn", True)):
        works[name] = [Dense(torch, given, transposed) for given in sets]
    enqueues = {key: [w.enqueue for w in all_] for key, all_ in works.items()}
    graphs = {
        key: cusparselt.capture(torch, e, len(sets)) for key, e in enqueues.items()
    }
    trial = cusparselt.take_turns(torch, graphs, 3, warmup=1)
    rounds = pairs.count_rounds(
        arguments.budget_ms, sum(min(t) for t in trial.values())
    )
    timings = cusparselt.take_turns(torch, graphs, rounds, warmup=rounds // 3)
    medians = {k: statistics.median(t) / len(sets) for k, t in timings.items()}
    dense = min(medians["dense_nn"], medians["dense_tn"])
    if arguments.steady_ms:
        found["steady"] = {
            key: run_steadily(torch, graph, len(sets), arguments.steady_ms)
            for key, graph in graphs.items()
        }
    for module in modules:
        driver.unload(module)
    return {**found, **medians, "speedup": dense / medians["ours"], "rounds": rounds}


def measure(arguments):
    import clocks
    import torch
    from driver import Driver

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.zeros(1, device="cuda")  # makes the context
    driver, done, started = Driver(), [], time.time()
    for known in json.loads((arguments.folder / "list.json").read_text("utf-8")):
        name = known.pop("name")
        if arguments.only not in name:
            continue
        try:
            found = measure_layer(torch, driver, known, arguments)
        except (RuntimeError, ValueError, KeyError) as error:
            found = {"error": f"{type(error).__name__}: {error}".split("\n")[0]}
        done.append({"layer": name, **found})
        text = found.get("error") or (
            f"{found['ours']:8.1f} us, {found['speedup']:.2f} x cuBLAS, error "
            f"{found['relative_error']:.1e}{'' if found['passed'] else ' WRONG'}"
            + "".join(f", {f} {found[f]:.1f} us" for f in FLOORS if f in found)
        )
        print(f"{name:44} {text}", flush=True)
        torch.cuda.empty_cache()
    gpu = clocks.query(["name", "driver_version"])
    arguments.out.write_text(
        json.dumps(
            {
                "gpu": gpu.get("name", "unknown"),
                "driver": gpu.get("driver_version", "unknown"),
                "torch": torch.__version__,
                "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
                "blocks": done,
            },
            indent=1,
        )
        + "\n",
        "utf-8",
    )
    return 0 if done and all(found.get("passed") for found in done) else 1


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["prepare", "measure"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("blocks.json"))
    parser.add_argument("--only", default="")
    parser.add_argument("--floors", action="store_true")
    parser.add_argument("--budget-ms", type=int, default=150)
    parser.add_argument("--steady-ms", type=int, default=0)
    arguments = parser.parse_args(argv)
    return {"prepare": prepare, "measure": measure}[arguments.what](arguments)


if __name__ == "__main__":
    sys.exit(main())

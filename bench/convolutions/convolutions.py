#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures sparse convolutions against cuDNN on a GPU.

usage: convolutions.py make FOLDER [--batch LIST] [--candidates N] [--tool FILE]
                            [--layout nhwc|nchw] [--densities LIST]
       convolutions.py measure FOLDER --out RESULT.json [--deadline SECONDS]

`make` compiles the 23 distinct convolutions of ResNet-50 and some drawn from a seed,
f16, images of which the batch is the last dimension, with panels of 64 outputs at 75
and 90 %: with the schedule of the model, and with the N best ones of each family of
kernels. With --layout, images and results are those of a program in that layout, and
all kernels of a function count, transpositions too; --densities 75b,88b has blocks of
16 channels, 2:4 single elements. `measure`, which needs PyTorch and neither a build nor
LLVM, compares each with a float32 convolution of the same pruned weight, and a part
with float64, then times all in turns with cuDNN, whose images are NHWC and NCHW, in
CUDA graphs, with operands of all calls together larger than L2.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cusparselt
from convolution_layers import (
    ENCODINGS,
    convolution,
    drawn,
    rank,
    resnet,
)
from convolution_operands import Layer
from driver import Driver
from kernel_images import compile_image, load_kernels

from convolutions_text import Convolution, text  # isort: skip

REPLAY_US = 300


def compile_all(folder, given, number, layer, batch, density):
    tool, count, epilogues = given.tool, given.candidates, given.epilogues
    path = folder / f"{batch}-{number:02d}-{density.replace(':', '_')}.json"
    if path.exists():
        return

    def make_text(schedule="", epilogue="cast"):
        encoding = ENCODINGS[density]
        return convolution(layer, batch, encoding, schedule, epilogue, given.layout)

    source = path.with_suffix(".mlir")
    source.write_text(text(make_text()))
    ranked = rank(tool, source, max(1, count))
    # Which schedules blocks of channels have depends on the layout.
    if given.layout != "chwb" and density.endswith("b"):
        ranked = [(ranked[0][0], "")]
    wanted = [(*entry, "cast") for entry in (ranked if count else ranked[:1])]
    wanted += [(*ranked[0], epilogue) for epilogue in epilogues]
    entries = []
    for us, schedule, epilogue in wanted:
        conv = make_text(schedule, epilogue)
        source.write_text(text(conv))
        image = path.with_suffix(f".{len(entries)}.xz")
        manifest = compile_image(tool, source, image)["manifest"]
        entries.append(
            {
                "schedule": schedule,
                "epilogue": epilogue,
                "predicted_us": us,
                "image": image.name,
                "function": manifest["functions"][0],
            }
        )
    source.unlink()
    about = {"layer": dataclasses.asdict(conv), "density": density, "kernels": entries}
    path.write_text(json.dumps(about))


def make(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    layers = list(enumerate(resnet()))
    if arguments.spatial:  # kernels of one pixel are linear layers
        layers = [entry for entry in layers if entry[1][3] > 1]
    more = drawn(arguments.drawn, arguments.seed, arguments.multiple)
    layers += enumerate(more, len(resnet()))
    jobs = [
        (number, layer, batch, density)
        for batch in arguments.batch
        for number, layer in layers
        for density in arguments.densities
    ]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        work = [
            pool.submit(compile_all, arguments.folder, arguments, *job) for job in jobs
        ]
        for done in work:
            done.result()


def measure_layer(torch, driver, folder, about, budget_ms):
    from types import SimpleNamespace

    from pairs import Program

    conv = Convolution(**about["layer"])
    arguments = about["kernels"][0]["function"]["arguments"]
    components = [one["component"] for one in arguments if one.get("component")]
    layer = Layer(torch, conv, about["density"], components, seed=1)
    works, modules, errors = {}, [], {}
    for number, kernel in enumerate(about["kernels"]):
        function = kernel["function"]
        module, kernels = load_kernels(driver, folder / kernel["image"], function)
        modules.append(module)
        others = layer.others(kernel["epilogue"])
        programs = [
            Program(
                torch,
                driver,
                kernels,
                function,
                SimpleNamespace(tensors=[image, *layer.packed, *others]),
            )
            for image in layer.images
        ]
        # A part of a buffer whose rows may be longer.
        (about_result,) = function["results"]
        result = programs[0].result().reshape(-1)
        result = result.as_strided(
            *(list(map(int, about_result[field])) for field in ("sizes", "strides"))
        )
        errors[number] = layer.check(result, kernel["epilogue"], others)
        if errors[number] < 2e-3:
            works[number] = [program.enqueue for program in programs]
    works["nhwc"], works["nchw"] = layer.dense(True), layer.dense(False)
    fused = {k["epilogue"] for k in about["kernels"]} - {"cast"}
    for epilogue in sorted(fused):
        works[f"nhwc_{epilogue}"] = layer.dense(True, epilogue)
    torch.cuda.synchronize()
    trial = {k: cusparselt.capture(torch, w, layer.sets) for k, w in works.items()}
    taken = cusparselt.take_turns(torch, trial, 3, warmup=1)
    times = {}
    copies = {k: layer.sets * max(1, round(REPLAY_US / min(taken[k]))) for k in works}
    graphs = {k: cusparselt.capture(torch, w, copies[k]) for k, w in works.items()}
    one = sum(min(taken[k]) * copies[k] / layer.sets for k in works)
    rounds = max(7, min(60, int(1000 * budget_ms / one)))
    taken = cusparselt.take_turns(torch, graphs, rounds, warmup=3)
    for k in works:
        times[k] = statistics.median(taken[k]) / copies[k]
    for module in modules:
        driver.unload(module)
    return {
        "layer": about["layer"],
        "density": about["density"],
        "sets": layer.sets,
        "launches": len(about["kernels"][0]["function"]["launches"]),
        "nhwc_us": times["nhwc"],
        "nchw_us": times["nchw"],
        **{f"nhwc_{name}_us": times[f"nhwc_{name}"] for name in sorted(fused)},
        "kernels": [
            {
                "schedule": kernel["schedule"],
                "epilogue": kernel["epilogue"],
                "predicted_us": kernel["predicted_us"],
                "relative_error": errors[i],
                "us": times.get(i),
            }
            for i, kernel in enumerate(about["kernels"])
        ],
    }


def summarize(layers):
    """By density and batch: geomeans of the faster cuDNN over the model's kernel."""
    groups = {}
    for entry in layers:
        dense = min(entry["nhwc_us"], entry["nchw_us"])
        plain = [k for k in entry["kernels"] if k["epilogue"] == "cast"]
        times = [k["us"] for k in plain if k["us"]]
        if not times:
            continue
        key = f"{entry['of']}, {entry['density']} %, batch {entry['layer']['batch']}"
        group = groups.setdefault(key, {"chosen": [], "best": []})
        for kernel in entry["kernels"]:
            if kernel["epilogue"] != "cast" and kernel["us"]:
                name = kernel["epilogue"]
                others = group.setdefault(f"cast over {name}", [])
                others.append(plain[0]["us"] / kernel["us"])
                own = entry[f"nhwc_{name}_us"] / kernel["us"]
                group.setdefault(f"cuDNN with {name}", []).append(own)
        group["chosen"].append(dense / (entry["kernels"][0]["us"] or math.inf))
        group["best"].append(dense / min(times))
    return {
        key: {
            "layers": len(group["chosen"]),
            **{
                f"{which}_geomean": math.exp(
                    statistics.fmean(math.log(max(v, 1e-9)) for v in group[which])
                )
                for which in group
            },
            "least": min(group["chosen"]),
        }
        for key, group in groups.items()
    }


def measure(arguments):
    import torch

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    driver, began = Driver(), time.time()
    result = {"gpu": torch.cuda.get_device_name(), "layers": []}
    for path in sorted(arguments.folder.glob("*.json")):
        if time.time() - began > arguments.deadline:
            break
        about = json.loads(path.read_text())
        entry = measure_layer(
            torch, driver, arguments.folder, about, arguments.budget_ms
        )
        number = int(path.stem.split("-")[1])
        entry["of"] = "ResNet-50" if number < len(resnet()) else "drawn"
        result["layers"].append(entry)
        times = [k["us"] and round(k["us"], 1) for k in entry["kernels"]]
        print(
            path.stem,
            f"cuDNN {entry['nhwc_us']:.1f} {entry['nchw_us']:.1f} us, own",
            times,
            [f"{k['relative_error']:.1e}" for k in entry["kernels"]][:1],
            flush=True,
        )
        torch.cuda.empty_cache()
    result["summary"] = summarize(result["layers"])
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result["summary"], indent=1))
    bad = [
        entry
        for entry in result["layers"]
        if any(k["us"] is None for k in entry["kernels"])
    ]
    sys.exit(1 if bad else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("make")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--batch", type=lambda s: map(int, s.split(",")), default=[64])
    command.add_argument("--candidates", type=int, default=0)
    command.add_argument("--layout", choices=("chwb", "nhwc", "nchw"), default="chwb")
    command.add_argument(
        "--densities", type=lambda s: s.split(","), default=["75", "90"]
    )
    command.add_argument(
        "--epilogues",
        nargs="*",
        default=[],
        help="also with bias and ReLU (relu), or these and a residual (residual)",
    )
    command.add_argument(
        "--spatial", action="store_true", help="kernels of 3 x 3 and 7 x 7"
    )
    command.add_argument("--drawn", type=int, default=0)
    command.add_argument("--multiple", type=int, default=1, help="of drawn channels")
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--jobs", type=int, default=2)
    command.add_argument("--tool", default="nm-compile")
    command.set_defaults(run=make)
    command = commands.add_parser("measure")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--out", type=pathlib.Path, required=True)
    command.add_argument("--deadline", type=float, default=500)
    command.add_argument("--budget-ms", type=float, default=60)
    command.set_defaults(run=measure)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()

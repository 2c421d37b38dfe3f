# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls drawn layers that IREE compiled, and compares what they compute.

Usage: run_iree.py pack SEED COUNT MANIFEST OUT.safetensors [-- FAMILY...]
       run_iree.py run SEED COUNT PARAMETERS PROGRAM.vmfb TOKENS... [-- FAMILY...]

`pack` writes the parameters: weights as MANIFEST says that kernels read them, by the
names that nm-compile --emit iree gives them. `run` calls the functions by IREE's own
runtime; in PARAMETERS's place, `-` stands for functions that take weights as arguments,
and MANIFEST follows it.
"""

import json
import pathlib
import sys

import numpy as np
from layers import draw


def read_functions(manifest: str) -> dict:
    """The program of each layer: the only one of the function of that name."""
    functions = json.loads(pathlib.Path(manifest).read_text())["functions"]
    return {f["name"]: f for f in functions}


def pack(layer, function: dict) -> dict:
    (weight,) = function["weights"]
    names = [c["name"] for c in weight["components"]]
    parts = layer.pack(weight["encoding"], names)
    # IREE knows signless integers as signed ones.
    return {
        name: part.view(f"i{part.itemsize}") if part.dtype.kind == "u" else part
        for name, part in ((n, parts[n]) for n in names)
    }


def write_parameters(layers, manifest: str, path: str) -> None:
    from safetensors.numpy import save_file

    functions = read_functions(manifest)
    tensors = {}
    for layer in layers:
        for name, part in pack(layer, functions[f"{layer.name}_0"]).items():
            tensors[f"w_{layer.name}.{name}"] = np.ascontiguousarray(part)
    save_file(tensors, path)


def load(program: str, parameters: str):
    import iree.runtime as rt

    config = rt.Config("cuda")
    context = rt.SystemContext(config=config)
    if parameters != "-":
        index = rt.ParameterIndex()
        index.load(parameters)
        context.add_vm_module(
            rt.create_io_parameters_module(
                context.instance, index.create_provider(scope="model")
            )
        )
    context.add_vm_module(rt.VmModule.mmap(context.instance, program))
    return config, context.modules["module"]


def run(layers, parameters: str, arguments: list) -> None:
    import iree.runtime as rt

    functions = read_functions(arguments.pop(0)) if parameters == "-" else {}
    program, *tokens = arguments
    config, module = load(program, parameters)
    rng = np.random.default_rng()
    calls = wrong = 0
    for layer in layers:
        given = []
        if functions:
            parts = pack(layer, functions[f"{layer.name}_0"])
            given += [rt.asdevicearray(config.device, p) for p in parts.values()]
        if layer.bias is not None:
            given.append(layer.bias)
        for m in map(int, tokens):
            x = layer.draw_tokens(rng, m)
            y = np.asarray(module[layer.name](x, *given).to_host())
            problem = layer.check(y, x)
            calls += 1
            if problem:
                wrong += 1
                print(f"{layer.name} ({layer.encoding}), {m} tokens: {problem}")
    print(f"{calls} calls, {wrong} wrong")


def main() -> None:
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    verb, seed, count, first, *others = sys.argv[1:split]
    layers = draw(int(seed), int(count), sys.argv[split + 1 :])
    if verb == "pack":
        write_parameters(layers, first, others[0])
    else:
        run(layers, first, others)


if __name__ == "__main__":
    main()

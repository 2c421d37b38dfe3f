# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of a model for IREE, with the same kernels in our own runtime."""

import json
import pathlib
import re
import subprocess
import sys

from forms import OurProgram

TYPES = {"f16": "float16", "f32": "float32", "i32": "int32", "i8": "int8"}
# More bytes than any L2 has.
OTHER_DATA = 256 << 20


def find_calls(text: str) -> list:
    """The programs that a model for IREE calls, in order."""
    return re.findall(r"= call @nm_sparse_programs\.(\w+)", text)


def compile_programs(
    text: str, folder: pathlib.Path, tools: pathlib.Path, model: dict
) -> None:
    """Writes own.cubin and own.json: the programs that `text` has, for our runtime,
    whose kernels make their tensor maps as in IREE. They must be those of `model`, the
    manifest of the model for IREE."""
    outline = [tools / "nm-opt", "-", "--nm-sparse-outline-programs=only-programs"]
    done = subprocess.run(outline, input=text, text=True, capture_output=True)
    if done.returncode:
        sys.exit(done.stderr)
    command = [tools / "nm-compile", "-", "--arguments", "device-maps"]
    command += ["--emit", "cubin", "-o", folder / "own.cubin"]
    command += ["--manifest", folder / "own.json"]
    subprocess.run(list(map(str, command)), input=done.stdout, text=True, check=True)
    own = json.loads((folder / "own.json").read_text())
    names = [{k["name"] for k in one["kernels"]} for one in (own, model)]
    if names[0] != names[1]:
        sys.exit(f"kernels differ: {sorted(names[0] ^ names[1])}")


class Programs(OurProgram):
    """The programs of a model, called in its order with activations drawn at random."""

    def __init__(self, library, stem: pathlib.Path, model: dict, arrays: dict):
        """model:   the manifest of the model for IREE, with its `calls`.
        arrays:  its parameters by their keys."""
        import torch

        super().__init__(library, str(stem))
        functions = json.loads(stem.with_suffix(".json").read_bytes())["functions"]
        self.functions = {one["name"]: one for one in functions}
        self.calls = model["calls"]
        self.other = torch.empty(OTHER_DATA, dtype=torch.uint8, device="cuda")
        # One weight does for programs that are called with several.
        self.weights = {}
        for entry in model["parameters"]:
            if entry.get("component"):
                key = (entry["function"], entry["weight"], entry["component"])
                self.weights[key] = torch.from_numpy(arrays[entry["key"]]).cuda()

    def make_operands(self, name: str, tokens: int) -> list:
        import torch

        tensors = []
        for argument in self.functions[name]["arguments"]:
            if "weight" in argument:
                key = (name, argument["weight"], argument["component"])
                tensors.append(self.weights[key])
                continue
            found = re.fullmatch(r"memref<(.*)x(\w+)>", argument["type"])
            sizes = [tokens if s == "?" else int(s) for s in found[1].split("x")]
            kind = getattr(torch, TYPES[found[2]])
            tensors.append(torch.randn(sizes, device="cuda").to(kind))
        return tensors

    def bind_all(self, tokens: int):
        """A function that launches all programs; its argument is whether L2 is filled
        with other data before each."""
        import torch

        bound = []
        for name in self.calls:
            number = self.lib.nmsProgramFunction(self.program, name.encode())
            if number < 0:
                sys.exit(self.lib.nmsLastError().decode())
            tensors = self.make_operands(name, tokens)
            bound.append((*self.prepare(number, tensors), tensors))

        def launch(is_cold: bool) -> None:
            for call, memory, _ in bound:
                if is_cold:
                    self.other.zero_()
                self.launch(call, memory, torch.cuda.current_stream().cuda_stream)

        return launch

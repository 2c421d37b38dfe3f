# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random arguments of a compiled layer on the GPU, as PyTorch tensors, and what
its result should be: the packed layout is that of docs/Encoding.md."""

import math

import launches

KINDS = ("data", "values", "index")


def get_kind(argument):
    """Which of KINDS an argument of the manifest is: a component of a weight, by
    its name, or data. Older manifests have that name as the role."""
    kind = argument.get("component", argument["role"])
    if kind not in KINDS:
        raise ValueError(f"argument {argument['name']}: no inputs for a {kind}")
    return kind


class Inputs:
    """One set of a layer's arguments, and the dense product in float64."""

    def __init__(self, torch, layer, function, seed):
        self.torch, self.layer = torch, layer
        self.random = torch.Generator("cuda").manual_seed(seed)
        self.tensors = []  # as the arguments come
        named = {kind: [] for kind in KINDS}
        for argument in function["arguments"]:
            sizes, element = launches.parse_type(argument["type"], layer.shape[0])
            self.tensors.append(self.make(argument, sizes, element))
            named[get_kind(argument)].append(self.tensors[-1])
        self.x, *self.others = named["data"]
        (self.values,), (self.index,) = named["values"], named["index"]
        self.clear_outside()

    def make(self, argument, sizes, element):
        torch = self.torch
        if get_kind(argument) == "index":
            kept, window = self.pattern()
            order = torch.rand(
                sizes[0] // kept, window, sizes[1], generator=self.random, device="cuda"
            ).argsort(dim=1)
            index = order[:, :kept].sort(dim=1).values
            return index.reshape(sizes).to(torch.uint8)
        made = torch.randn(sizes, generator=self.random, device="cuda")
        if get_kind(argument) == "values":
            made /= math.sqrt(sizes[0])
        return made.to(element_type(torch, element))

    def pattern(self):
        return tuple(map(int, self.layer.pattern.split(":")))

    def rows(self):
        """Contraction step of each kept value."""
        kept, window = self.pattern()
        number = self.torch.arange(self.index.shape[0], device="cuda") // kept
        rows = self.index.long() + window * number[:, None]
        return rows.repeat_interleave(self.layer.length, dim=1)

    def clear_outside(self):
        """The packed layout has zeros past the ends of the weight."""
        _, outputs, steps = self.layer.shape
        self.values[self.rows() >= steps] = 0
        self.values[:, outputs:] = 0

    def reference(self):
        torch, layer = self.torch, self.layer
        _, outputs, steps = layer.shape
        kept, window = self.pattern()
        depth = self.index.shape[0] // kept * window
        dense = torch.zeros(
            depth, self.values.shape[1], dtype=torch.float64, device="cuda"
        )
        dense.scatter_(0, self.rows(), self.values.double())
        dense = dense[:steps, :outputs]
        x = self.x.double()
        y = (x if layer.layout == "token" else x.t()) @ dense
        if layer.epilogue == "gelu":
            y = torch.nn.functional.gelu(y + self.others[0].double())
        y = y.t() if layer.layout == "feature" else y
        if layer.epilogue == "plain":
            y = y + self.others[0].double()
        return y


def element_type(torch, element):
    return {
        "f32": torch.float32,
        "f16": torch.float16,
        "bf16": torch.bfloat16,
        "i8": torch.uint8,
        "i16": torch.int16,
        "i32": torch.int32,
    }[element]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse convolutions as MLIR text: four layouts, any kernel, stride and padding."""

from __future__ import annotations

import dataclasses

# The dimensions of image, weight and result, and where the outputs of the weight are.
LAYOUTS = {
    "chwb": ("chwb", "fcrs", "fpqb"),
    "nhwc_hwcf": ("bhwc", "rscf", "bpqf"),
    "nhwc_fhwc": ("bhwc", "frsc", "bpqf"),
    "nchw_fchw": ("bchw", "fcrs", "bfpq"),
}


@dataclasses.dataclass
class Convolution:
    layout: str = "chwb"
    element: str = "f16"
    encoding: str = "8:32, block = [1, 64]"  # without dim
    batch: int | None = 16  # None: dynamic
    channels: int = 64
    height: int = 14
    width: int = 14
    outputs: int = 64
    kernel: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    low: tuple[int, int] = (1, 1)
    high: tuple[int, int] = (1, 1)
    epilogue: str = "none"  # none, cast, relu, residual
    schedule: str = ""
    chip: str = "sm_90a"

    def text(self):
        """A function of the layer, @conv."""
        return text(self)

    def sizes(self):
        """Extents by letter; those of h and w with the zeros around the image."""
        found = {"b": self.batch or "?", "c": self.channels, "f": self.outputs}
        found["r"], found["s"] = self.kernel
        for axis, letters in enumerate(("hp", "wq")):
            size = (self.height, self.width)[axis] + self.low[axis] + self.high[axis]
            span = self.dilations[axis] * (self.kernel[axis] - 1) + 1
            found[letters[0]] = size
            found[letters[1]] = (size - span) // self.strides[axis] + 1
        return found

    def is_legal(self):
        sizes = self.sizes()
        return sizes["p"] > 0 and sizes["q"] > 0


def tensor(order, sizes, element, encoding=""):
    shape = "x".join(str(sizes[letter]) for letter in order)
    return f"tensor<{shape}x{element}{encoding}>"


def pad(conv, order, sizes, image):
    padded = tensor(order, sizes, conv.element)
    if padded == image:
        return "", "%x"
    pads = {"h": 0, "w": 1}

    def around(zeros):
        return ", ".join(str(zeros[pads[d]]) if d in pads else "0" for d in order)

    arguments = ", ".join(f"%a{i}: index" for i in range(4))
    return (
        f"  %zero_x = arith.constant 0.0 : {conv.element}\n"
        f"  %padded = tensor.pad %x low[{around(conv.low)}] "
        f"high[{around(conv.high)}] {{\n"
        f"  ^bb0({arguments}):\n"
        f"    tensor.yield %zero_x : {conv.element}\n"
        f"  }} : {image} to {padded}\n"
    ), "%padded"


def generic(conv, types):
    """The channel-major form as linalg.generic."""

    def place(output, kernel, axis):
        return f"{output} * {conv.strides[axis]} + {kernel} * {conv.dilations[axis]}"

    loops = "(f, p, q, b, c, r, s)"
    maps = [
        f"(c, {place('p', 'r', 0)}, {place('q', 's', 1)}, b)",
        "(f, c, r, s)",
        "(f, p, q, b)",
    ]
    maps = ", ".join(f"affine_map<{loops} -> {m}>" for m in maps)
    kinds = ", ".join(['"parallel"'] * 4 + ['"reduction"'] * 3)
    widen = (
        ""
        if conv.element == "f32"
        else (
            f"    %xe = arith.extf %xi : {conv.element} to f32\n"
            f"    %we = arith.extf %wi : {conv.element} to f32\n"
        )
    )
    x, w = ("%xi", "%wi") if conv.element == "f32" else ("%xe", "%we")
    schedule = ""
    if conv.schedule:
        schedule = f", nm_sparse.config = #nm_tile.schedule<{conv.schedule}>"
    image, weight, result = types
    return (
        f"  %y = linalg.generic {{indexing_maps = [{maps}],\n"
        f"      iterator_types = [{kinds}]{schedule}}}\n"
        f"      ins(%image, %w : {image}, {weight}) outs(%i : {result}) {{\n"
        f"  ^bb0(%xi: {conv.element}, %wi: {conv.element}, %yi: f32):\n{widen}"
        f"    %m = arith.mulf {x}, {w} : f32\n"
        f"    %s = arith.addf %yi, %m : f32\n"
        f"    linalg.yield %s : f32\n  }} -> {result}\n"
    )


def named(conv, types):
    image, weight, result = types
    given = ", ".join(
        f"{name} = dense<[{pair[0]}, {pair[1]}]> : tensor<2xi64>"
        for name, pair in (("strides", conv.strides), ("dilations", conv.dilations))
    )
    if conv.schedule:
        given += f", nm_sparse.config = #nm_tile.schedule<{conv.schedule}>"
    return (
        f"  %y = linalg.conv_2d_{conv.layout} {{{given}}}\n"
        f"      ins(%image, %w : {image}, {weight}) outs(%i : {result}) -> {result}\n"
    )


def epilogue(conv, order, sizes, empty):
    """Bias, a residual, and ReLU, then a cast to the type of the image."""
    sum_type = tensor(order, sizes, "f32")
    out_element = "f32" if conv.epilogue == "none" else conv.element
    out = tensor(order, sizes, out_element)
    if conv.epilogue == "none" or (conv.epilogue == "cast" and conv.element == "f32"):
        return "", "%y", sum_type, ""
    identity = "affine_map<(a, b, c, d) -> (a, b, c, d)>"
    bias_map = f"affine_map<(a, b, c, d) -> ({'abcd'[order.index('f')]})>"
    bias = f"tensor<{sizes['f']}xf32>"
    inputs, types, maps, body, arguments = ["%y"], [sum_type], [identity], "", ""
    block, last = ["%p: f32"], "%p"
    if conv.epilogue != "cast":
        inputs.append("%bias"), types.append(bias), maps.append(bias_map)
        block.append("%q: f32")
        arguments += f", %bias: {bias}"
        body += f"    %s1 = arith.addf {last}, %q : f32\n"
        last = "%s1"
    if conv.epilogue == "residual":
        inputs.append("%other"), types.append(out), maps.append(identity)
        block.append(f"%r: {out_element}")
        arguments += f", %other: {out}"
        wide = "%r"
        if out_element != "f32":
            body += f"    %rw = arith.extf %r : {out_element} to f32\n"
            wide = "%rw"
        body += f"    %s2 = arith.addf {last}, {wide} : f32\n"
        last = "%s2"
    if conv.epilogue != "cast":
        body += f"    %s3 = arith.maximumf {last}, %zero : f32\n"
        last = "%s3"
    if out_element != "f32":
        body += f"    %s4 = arith.truncf {last} : f32 to {out_element}\n"
        last = "%s4"
    kinds = ", ".join(['"parallel"'] * 4)
    text = (
        f"  %oe = tensor.empty({empty}) : {out}\n"
        f"  %o = linalg.generic {{indexing_maps = [{', '.join([*maps, identity])}],\n"
        f"      iterator_types = [{kinds}]}} ins({', '.join(inputs)} : "
        f"{', '.join(types)}) outs(%oe : {out}) {{\n"
        f"  ^bb0({', '.join(block)}, %old: {out_element}):\n{body}"
        f"    linalg.yield {last} : {out_element}\n  }} -> {out}\n"
    )
    return text, "%o", out, arguments


def text(conv):
    """A function of the layer, @conv."""
    image_order, weight_order, result_order = LAYOUTS[conv.layout]
    sizes = conv.sizes()
    dim = 1 if weight_order.startswith("f") else 0
    image = tensor(
        image_order, sizes | {"h": conv.height, "w": conv.width}, conv.element
    )
    types = (
        tensor(image_order, sizes, conv.element),
        tensor(weight_order, sizes, conv.element, ", #w"),
        tensor(result_order, sizes, "f32"),
    )
    padding, read = pad(conv, image_order, sizes, image)
    dynamic = "" if conv.batch else "%batch"
    size = (
        f"  %at = arith.constant {image_order.index('b')} : index\n"
        f"  %batch = tensor.dim %x, %at : {image}\n"
        if dynamic
        else ""
    )
    product = (generic if conv.layout == "chwb" else named)(conv, types)
    after, result, out, arguments = epilogue(conv, result_order, sizes, dynamic)
    return (
        f"#w = #nm_sparse.encoding<{conv.encoding}, dim = {dim}>\n"
        f"func.func @conv(%x: {image}, %w: {types[1]}{arguments}) -> {out} {{\n"
        f"  %zero = arith.constant 0.0 : f32\n{size}{padding}"
        f"  %e = tensor.empty({dynamic}) : {types[2]}\n"
        f"  %i = linalg.fill ins(%zero : f32) outs(%e : {types[2]}) -> {types[2]}\n"
        f"{product.replace('%image', read)}{after}"
        f"  return {result} : {out}\n}}\n"
    )


def text_with_constant(conv, weight):
    """The same with its weight as a constant: an array in the order of the layout."""
    order = LAYOUTS[conv.layout][1]
    kind = tensor(order, conv.sizes(), conv.element, ", #w")
    data = weight.tobytes().hex().upper()
    head, brace, rest = text(conv).replace(f", %w: {kind}", "").partition(" {\n")
    return f'{head}{brace}  %w = arith.constant dense<"0x{data}"> : {kind}\n{rest}'

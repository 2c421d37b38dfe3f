# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bottleneck blocks of ResNet-50 as MLIR text, one function, in any layout of images:
1 x 1, 3 x 3 and 1 x 1 convolutions with folded batch norms and ReLUs, the residual, and
a shortcut, which is a 1 x 1 convolution where the block changes sizes.

usage: bottleneck_text.py --layout nhwc|nchw|chwb [--encoding E] [--batch N]
                          [--block C,SIZE,NARROW,OUTPUTS,STRIDE]
"""

from __future__ import annotations

import argparse

# The order of images, of weights, and whether the outputs of weights come first.
ORDERS = {
    "chwb": ("chwb", "fcrs"),
    "nhwc": ("bhwc", "rscf"),
    "nchw": ("bchw", "fcrs"),
}
RESULT = str.maketrans("chw", "fpq")


def shapes(block):
    """(outputs, channels, rows, columns) of the weights, in the order of the
    function's arguments."""
    channels, _, narrow, outputs, stride = block
    found = [
        (narrow, channels, 1, 1),
        (narrow, narrow, 3, 3),
        (outputs, narrow, 1, 1),
    ]
    if stride != 1 or channels != outputs:
        found.append((outputs, channels, 1, 1))
    return found


class Writer:
    def __init__(self, layout, batch):
        self.order, self.weight_order = ORDERS[layout]
        self.result_order = self.order.translate(RESULT)
        self.batch, self.body = batch, ""

    def image(self, channels, size, element="f16"):
        sizes = {"b": self.batch, "c": channels, "h": size, "w": size}
        return f"tensor<{'x'.join(str(sizes[d]) for d in self.order)}x{element}>"

    def weight(self, shape):
        sizes = dict(zip("fcrs", shape))
        return f"tensor<{'x'.join(str(sizes[d]) for d in self.weight_order)}xf16, #p>"

    def maps(self, stride):
        """Indexing maps of a convolution."""
        places = {"h": f"p * {stride} + r", "w": f"q * {stride} + s"}
        read = ", ".join(places.get(d, d) for d in self.order)
        loops = f"({', '.join(self.result_order)}, c, r, s)"
        results = (read, ", ".join(self.weight_order), ", ".join(self.result_order))
        return ", ".join(f"affine_map<{loops} -> ({r})>" for r in results)

    def pad(self, name, source, channels, size):
        around = ", ".join("1" if d in "hw" else "0" for d in self.order)
        indices = ", ".join(f"%i{i}: index" for i in range(4))
        to = self.image(channels, size + 2)
        self.body += (
            f"  %{name} = tensor.pad {source} low[{around}] high[{around}] {{\n"
            f"  ^bb0({indices}):\n    tensor.yield %none : f16\n"
            f"  }} : {self.image(channels, size)} to {to}\n"
        )
        return f"%{name}", to

    def convolve(self, name, x, weight, y_type, stride):
        loops = ", ".join(['"parallel"'] * 4 + ['"reduction"'] * 3)
        self.body += (
            f"  %{name}e = tensor.empty() : {y_type}\n"
            f"  %{name}i = linalg.fill ins(%zero : f32) outs(%{name}e : {y_type})"
            f" -> {y_type}\n"
            f"  %{name} = linalg.generic {{indexing_maps = [{self.maps(stride)}],\n"
            f"      iterator_types = [{loops}]}}\n"
            f"      ins({x[0]}, {weight[0]} : {x[1]}, {weight[1]})"
            f" outs(%{name}i : {y_type}) {{\n"
            "  ^bb0(%xi: f16, %wi: f16, %yi: f32):\n"
            "    %xe = arith.extf %xi : f16 to f32\n"
            "    %we = arith.extf %wi : f16 to f32\n"
            "    %m = arith.mulf %xe, %we : f32\n"
            "    %s = arith.addf %yi, %m : f32\n"
            f"    linalg.yield %s : f32\n  }} -> {y_type}\n"
        )

    def finish(self, name, y, y_type, bias, result, other="", relu=True):
        """Bias, residual and ReLU, then a cast."""
        loops = ", ".join(self.result_order)
        every = f"affine_map<({loops}) -> ({loops})>"
        maps = [every, f"affine_map<({loops}) -> (f)>"]
        inputs, types = [y, bias[0]], [y_type, bias[1]]
        block, last = "%a: f32, %c: f32", "%t0"
        body = "    %t0 = arith.addf %a, %c : f32\n"
        if other:
            inputs.append(other), types.append(result), maps.append(every)
            block += ", %r: f16"
            body += "    %rw = arith.extf %r : f16 to f32\n"
            body += "    %t1 = arith.addf %t0, %rw : f32\n"
            last = "%t1"
        if relu:
            body += f"    %t2 = arith.maximumf {last}, %zero : f32\n"
            last = "%t2"
        kinds = ", ".join(['"parallel"'] * 4)
        self.body += (
            f"  %{name}e = tensor.empty() : {result}\n"
            f"  %{name} = linalg.generic {{indexing_maps = "
            f"[{', '.join([*maps, every])}],\n"
            f"      iterator_types = [{kinds}]}}\n"
            f"      ins({', '.join(inputs)} : {', '.join(types)})"
            f" outs(%{name}e : {result}) {{\n"
            f"  ^bb0({block}, %o: f16):\n{body}"
            f"    %t3 = arith.truncf {last} : f32 to f16\n"
            f"    linalg.yield %t3 : f16\n  }} -> {result}\n"
        )


def text(block, encoding, layout="chwb", batch=64):
    """The function @block. `encoding` is without `dim`."""
    channels, size, narrow, outputs, stride = block
    w, half = Writer(layout, batch), size // stride
    x, result = w.image(channels, size), w.image(outputs, half)
    inner, small = w.image(narrow, size), w.image(narrow, half)
    last = w.image(outputs, half, "f32")
    weights = [(f"%w{i}", w.weight(shape)) for i, shape in enumerate(shapes(block))]
    biases = [
        (f"%b{i}", f"tensor<{shape[0]}xf32>") for i, shape in enumerate(shapes(block))
    ]
    w.convolve("c0", ("%x", x), weights[0], w.image(narrow, size, "f32"), 1)
    w.finish("a0", "%c0", w.image(narrow, size, "f32"), biases[0], inner)
    around = w.pad("around", "%a0", narrow, size)
    w.convolve("c1", around, weights[1], w.image(narrow, half, "f32"), stride)
    w.finish("a1", "%c1", w.image(narrow, half, "f32"), biases[1], small)
    shortcut = "%x"
    if len(weights) == 4:
        shortcut = "%a3"
        w.convolve("c3", ("%x", x), weights[3], last, stride)
        w.finish("a3", "%c3", last, biases[3], result, relu=False)
    w.convolve("c2", ("%a1", small), weights[2], last, 1)
    w.finish("a2", "%c2", last, biases[2], result, other=shortcut)
    arguments = "".join(
        f", {a}: {a_type}, {b}: {b_type}"
        for (a, a_type), (b, b_type) in zip(weights, biases)
    )
    dim = 1 if w.weight_order.startswith("f") else 0
    return (
        f"#p = #nm_sparse.encoding<{encoding}, dim = {dim}>\n"
        f"func.func @block(%x: {x}{arguments}) -> {result} {{\n"
        "  %zero = arith.constant 0.0 : f32\n  %none = arith.constant 0.0 : f16\n"
        f"{w.body}  return %a2 : {result}\n}}\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layout", choices=ORDERS, default="nhwc")
    parser.add_argument("--encoding", default="4:16, block = [1, 32]")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--block", default="64,10,32,128,2")
    arguments = parser.parse_args()
    block = tuple(map(int, arguments.block.split(",")))
    print(text(block, arguments.encoding, arguments.layout, arguments.batch))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random models of sparse products and of what may surround them, as MLIR text."""

import random
from dataclasses import dataclass

PRELUDE = """#w = #nm_sparse.encoding<2:4>
#wt = #nm_sparse.encoding<2:4, dim = 1>
#id2 = affine_map<(m, n) -> (m, n)>
#id3 = affine_map<(b, s, n) -> (b, s, n)>
#bias2 = affine_map<(m, n) -> (n)>
#bias3 = affine_map<(b, s, n) -> (n)>
#sum2 = affine_map<(m, n) -> (m)>
#sum3 = affine_map<(b, s, n) -> (b, s)>
"""

CONSTANTS = """%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%zero = arith.constant 0.0 : f32
%half = arith.constant 0.5 : f32"""


@dataclass(frozen=True)
class Value:
    """A tensor of tokens x features, or of batch x sequence x features."""

    name: str
    rank: int
    features: int


class Model:
    """Builds the text of one model from random choices."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = [CONSTANTS]
        self.arguments = []
        self.weights = []
        self.used = set()
        self.number = 0
        self.batched = self.random.random() < 0.5
        dynamic = self.random.random() < 0.7
        self.tokens = "?" if dynamic else "6"
        self.shape = ("?", "?") if dynamic else ("2", "3")
        if dynamic and self.random.random() < 0.3:
            self.shape = ("2", "?")
        rank = 3 if self.batched else 2
        x = Value("%x", rank, self.random.choice((32, 64)))
        self.arguments.append(f"%x: {self.type(x)}")
        self.values = [x]
        self.add_sizes(x)

    def add_sizes(self, x):
        """%batch, %length and %m, as far as they are dynamic."""
        if self.tokens != "?":
            return
        if not self.batched:
            self.lines.append(f"%m = tensor.dim %x, %c0 : {self.type(x)}")
            return
        for name, number in (("%batch", "0"), ("%length", "1")):
            self.lines.append(f"{name} = tensor.dim %x, %c{number} : {self.type(x)}")
        self.lines.append("%m = arith.muli %batch, %length : index")

    def new(self):
        self.number += 1
        return f"%v{self.number}"

    def type(self, value, features=None):
        sizes = self.shape if value.rank == 3 else (self.tokens,)
        last = features if features is not None else value.features
        return f"tensor<{'x'.join((*sizes, str(last)))}xf32>"

    def sizes(self, rank):
        names = ("%batch", "%length") if rank == 3 else ("%m",)
        static = self.shape if rank == 3 else (self.tokens,)
        return ", ".join(n for n, size in zip(names, static) if size == "?")

    def empty(self, rank, features):
        """An uninitialized tensor, and its type."""
        value = Value(self.new(), rank, features)
        self.lines.append(
            f"{value.name} = tensor.empty({self.sizes(rank)}) : {self.type(value)}"
        )
        return value

    def pick(self):
        """A value, rather a late one."""
        last = len(self.values) - 1
        return self.values[last - min(int(self.random.expovariate(0.5)), last)]

    def use(self, *values):
        self.used.update(value.name for value in values)

    def reshape(self, value, rank):
        if value.rank == rank:
            return value
        self.use(value)
        result = Value(self.new(), rank, value.features)
        op = "collapse_shape"
        sizes = ""
        if rank == 3:
            op = "expand_shape"
            names = [
                n if s == "?" else s for n, s in zip(("%batch", "%length"), self.shape)
            ]
            sizes = f" output_shape [{', '.join(names)}, {value.features}]"
        self.lines.append(
            f"{result.name} = tensor.{op} {value.name} [[0, 1], [2]]{sizes} : "
            f"{self.type(value)} into {self.type(result)}"
        )
        return result

    def argument(self, features):
        name = f"%a{len(self.arguments)}"
        self.arguments.append(f"{name}: tensor<{features}xf32>")
        return name

    def broadcast(self, name, rank, features):
        """`name`, a tensor of features, for each token."""
        init = self.empty(rank, features)
        result = Value(self.new(), rank, features)
        dimensions = "0, 1" if rank == 3 else "0"
        self.lines.append(
            f"{result.name} = linalg.broadcast ins({name} : tensor<{features}xf32>) "
            f"outs({init.name} : {self.type(init)}) dimensions = [{dimensions}]"
        )
        return result

    def fill(self, init, kind):
        result = self.new()
        self.lines.append(
            f"{result} = linalg.fill ins(%zero : f32) outs({init} : {kind}) -> {kind}"
        )
        return result

    def add_product(self):
        x = self.reshape(self.pick(), 2)
        self.use(x)
        features = self.random.choice((32, 64))
        weight, kind = self.weight(x.features, features)
        others = [v for v in self.values if v.features == features]
        choice = self.random.random()
        if choice < 0.15 and others:
            init = self.reshape(self.random.choice(others), 2)
            self.use(init)
        elif choice < 0.3:
            init = self.broadcast(self.argument(features), 2, features)
        else:
            empty = self.empty(2, features)
            init = Value(self.fill(empty.name, self.type(empty)), 2, features)
        y = Value(self.new(), 2, features)
        self.lines.append(
            f"{y.name} = linalg.matmul ins({x.name}, {weight} : {self.type(x)}, {kind})"
            f" outs({init.name} : {self.type(init)}) -> {self.type(y)}"
        )
        self.values.append(
            self.reshape(y, 3) if self.batched and self.random.random() < 0.7 else y
        )

    def weight(self, inputs, outputs):
        """The weight of a product, and its type: one for it, or one that is there."""
        same = [w for w in self.weights if w[1:] == (inputs, outputs)]
        name = f"%w{len(self.weights)}"
        if same and self.random.random() < 0.2:
            name = self.random.choice(same)[0]
        else:
            transposed = self.random.random() < 0.4
            shape = f"{outputs}x{inputs}" if transposed else f"{inputs}x{outputs}"
            encoding = "#wt" if transposed else "#w"
            self.arguments.append(f"{name}: tensor<{shape}xf32, {encoding}>")
            if not transposed:
                self.weights.append((name, inputs, outputs))
                return name, f"tensor<{shape}xf32, #w>"
            result, init = self.new(), self.new()
            kind = f"tensor<{inputs}x{outputs}xf32>"
            self.lines += [
                f"{init} = tensor.empty() : {kind}",
                f"{result} = linalg.transpose ins({name} : tensor<{shape}xf32, #wt>) "
                f"outs({init} : {kind}) permutation = [1, 0]",
            ]
            self.weights.append((name, None, None))
            return result, kind
        return name, f"tensor<{inputs}x{outputs}xf32, #w>"

    def generic(self, maps, reads, init, body, reduces=False):
        """A linalg.generic of `reads`, pairs of names and types."""
        rank = int(maps[0][-1])
        iterators = ['"parallel"'] * rank
        if reduces:
            iterators[-1] = '"reduction"'
        result = self.new()
        letters = "abc"[: len(reads)]
        arguments = ", ".join(f"%{letter}: f32" for letter in (*letters, "o"))
        self.lines.append(
            f"{result} = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            f"iterator_types = [{', '.join(iterators)}]}} "
            f"ins({', '.join(n for n, _ in reads)} : {', '.join(t for _, t in reads)})"
            f" outs({init[0]} : {init[1]}) {{\n^bb0({arguments}):\n{body}\n"
            f"linalg.yield %y : f32\n}} -> {init[1]}"
        )
        return result

    def add_elementwise(self):
        x = self.pick()
        kind = self.random.choice(("half", "tanh", "bias", "bias", "both", "sums"))
        rank, shape = x.rank, self.type(x)
        identity = f"#id{rank}"
        init = (self.empty(rank, x.features).name, shape)
        read = (x.name, shape)
        if kind == "half":
            body = (
                "%h = arith.mulf %a, %half : f32\n%y = arith.maximumf %h, %zero : f32"
            )
            name = self.generic([identity] * 2, [read], init, body)
        elif kind == "bias" and self.random.random() < 0.5:
            bias = (self.argument(x.features), f"tensor<{x.features}xf32>")
            body = "%y = arith.addf %a, %b : f32"
            maps = [identity, f"#bias{rank}", identity]
            name = self.generic(maps, [read, bias], init, body)
        elif kind == "sums":
            # A sum over each token is not elementwise.
            row = shape.replace(f"x{x.features}xf32", "xf32")
            empty = self.new()
            self.lines.append(f"{empty} = tensor.empty({self.sizes(rank)}) : {row}")
            zeros = self.fill(empty, row)
            maps = [identity, f"#sum{rank}"]
            body = "%y = arith.addf %a, %o : f32"
            total = self.generic(maps, [read], (zeros, row), body, reduces=True)
            body = "%y = arith.subf %a, %b : f32"
            maps = [identity, f"#sum{rank}", identity]
            name = self.generic(maps, [read, (total, row)], init, body)
        else:
            name = self.new()
            op, operands = "tanh", x.name
            if kind != "tanh":
                others = [v for v in self.values if v.features == x.features]
                other = (
                    self.broadcast(self.argument(x.features), rank, x.features)
                    if kind == "bias"
                    else self.reshape(self.random.choice(others), rank)
                )
                self.use(other)
                op = self.random.choice(("add", "mul"))
                operands = f"{x.name}, {other.name}"
            types = ", ".join([shape] * (operands.count(",") + 1))
            self.lines.append(
                f"{name} = linalg.{op} ins({operands} : {types}) "
                f"outs({init[0]} : {shape}) -> {shape}"
            )
        self.use(x)
        self.values.append(Value(name, rank, x.features))

    def text(self):
        results = [
            value
            for value in self.values[1:]
            if value.name not in self.used or self.random.random() < 0.1
        ]
        types = ", ".join(map(self.type, results))
        names = ", ".join(value.name for value in results)
        body = "\n".join(self.lines)
        return (
            f"{PRELUDE}func.func @f({', '.join(self.arguments)}) -> ({types}) {{\n"
            f"{body}\nreturn {names} : {types}\n}}\n"
        )


def build_model(seed):
    """The text of model number `seed`."""
    model = Model(seed)
    model.add_product()
    for _ in range(model.random.randint(3, 12)):
        if model.random.random() < 0.4:
            model.add_product()
        else:
            model.add_elementwise()
    return model.text()

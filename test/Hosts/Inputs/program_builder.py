# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds a program of MLIR and what it computes, in float64, at once."""

from dataclasses import dataclass, field
from typing import Callable, List, Optional, Sequence, Tuple, Union

import layers  # noqa: F401 - it says where nm_sparse is
import ml_dtypes
import numpy as np

from nm_sparse import Encoding, prune

TYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f32": np.float32,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}
TOKENS = -1  # as a size: however many there are

Numbers = List[np.ndarray]  # of all arguments, in float64


@dataclass(frozen=True)
class Value:
    name: str
    sizes: Tuple[int, ...]
    element: str
    compute: Callable[[Numbers], np.ndarray]

    @property
    def type(self) -> str:
        sizes = "".join("?x" if s == TOKENS else f"{s}x" for s in self.sizes)
        return f"tensor<{sizes}{self.element}>"


@dataclass(frozen=True)
class Weight:
    """An argument that is packed."""

    dense: np.ndarray
    encoding: Encoding


@dataclass(frozen=True)
class Number:
    """An argument of the caller that is no array."""

    element: str
    value: Union[int, float]


@dataclass
class Program:
    name: str
    tokens: int  # TOKENS where a call says them
    rng: np.random.Generator
    arguments: List[Union[Value, Weight, Number]] = field(default_factory=list)
    signature: List[str] = field(default_factory=list)
    lines: List[str] = field(default_factory=list)
    results: List[Value] = field(default_factory=list)

    def add(self, line: str) -> None:
        self.lines.append("  " + line)

    def new(self) -> str:
        return f"%v{len(self.lines)}"

    def take(self, sizes: Sequence[int], element: str, name: str = "") -> Value:
        number = len(self.arguments)
        value = Value(name or f"%a{number}", tuple(sizes), element, lambda a: a[number])
        self.arguments.append(value)
        self.signature.append(f"{value.name}: {value.type}")
        return value

    def take_number(self, element: str) -> Value:
        number = len(self.arguments)
        whole = int(self.rng.integers(-7, 8))
        self.arguments.append(Number(element, whole / 2 if element == "f32" else whole))
        self.signature.append(f"%s{number}: {element}")
        return Value(f"%s{number}", (), element, lambda a: a[number])

    def take_weight(
        self, encoding: Encoding, sizes: Sequence[int], element: str
    ) -> Value:
        number = len(self.arguments)
        if element == "i8":
            dense = self.rng.integers(-9, 10, sizes, np.int8)
        else:
            dense = (self.rng.standard_normal(sizes) / 4).astype(np.float32)
            dense = dense.astype(TYPES[element])
        # The kernel of a convolution is a matrix of its window's inputs.
        matrix = dense if len(sizes) < 4 else dense.reshape(-1, sizes[-1])
        density = {"density": 0.4} if encoding.is_free else {}
        kept = prune(matrix.astype(np.float32), encoding, **density)
        self.arguments.append(Weight(kept.astype(dense.dtype), encoding))
        shape = "x".join(map(str, sizes))
        kind = f"tensor<{shape}x{element}, #nm_sparse.encoding<{encoding}>>"
        self.signature.append(f"%w{number}: {kind}")
        return Value(f"%w{number}|{kind}", tuple(sizes), element, lambda a: a[number])

    def empty(self, sizes: Sequence[int], element: str) -> str:
        value = Value(self.new(), tuple(sizes), element, lambda a: a[0])
        size = "%m" if TOKENS in sizes else ""
        self.add(f"{value.name} = tensor.empty({size}) : {value.type}")
        return value.name

    def zeros(self, sizes: Sequence[int], element: str) -> Value:
        kind = Value("", tuple(sizes), element, lambda a: a[0]).type
        empty, name = self.empty(sizes, element), self.new()
        zero = "%zero_i" if element == "i32" else "%zero"
        self.add(
            f"{name} = linalg.fill ins({zero} : {element}) outs({empty} : {kind})"
            f" -> {kind}"
        )
        return Value(name, tuple(sizes), element, lambda a: np.zeros(()))

    def multiply(
        self, x: Value, outputs: int, encoding: Encoding, init: Optional[Value] = None
    ) -> Value:
        """x W, or x W^T where the weight is of outputs by inputs."""
        *batch, tokens, inputs = x.sizes
        is_turned = encoding.dim == len(batch) + 1
        sizes = [*batch, *((outputs, inputs) if is_turned else (inputs, outputs))]
        weight = self.take_weight(encoding, sizes, x.element)
        w, kind = weight.name.split("|")
        accumulator = "i32" if x.element == "i8" else "f32"
        init = init or self.zeros((*batch, tokens, outputs), accumulator)
        b = "b, " if batch else ""
        maps = ", ".join(
            f"affine_map<({b}m, n, k) -> ({b}{dims})>"
            for dims in ("m, k", "n, k" if is_turned else "k, n", "m, n")
        )
        op = "linalg.batch_matmul" if batch else "linalg.matmul"
        name = self.new()
        self.add(
            f"{name} = {op} indexing_maps = [{maps}] ins({x.name}, {w} : {x.type}, "
            f"{kind}) outs({init.name} : {init.type}) -> {init.type}"
        )

        def compute(a: Numbers) -> np.ndarray:
            w = weight.compute(a)
            return x.compute(a) @ (w.swapaxes(-1, -2) if is_turned else w) + (
                init.compute(a)
            )

        return Value(name, init.sizes, accumulator, compute)

    def map(
        self,
        values: Sequence[Value],
        body: str,
        element: str,
        compute: Callable[..., np.ndarray],
    ) -> Value:
        """`body` of the elements %a, %b, ..., which gives %to. A vector is one for
        each token."""
        first = values[0]
        dims = ", ".join(f"d{i}" for i in range(len(first.sizes)))
        last = f"d{len(first.sizes) - 1}"
        ranks = [len(v.sizes) for v in values] + [len(first.sizes)]
        maps = ", ".join(
            f"affine_map<({dims}) -> ({last if r == 1 else dims})>" for r in ranks
        )
        iterators = ", ".join(['"parallel"'] * len(first.sizes))
        out = Value("", first.sizes, element, first.compute).type
        empty, name = self.empty(first.sizes, element), self.new()
        ins = ", ".join(v.name for v in values)
        types = ", ".join(v.type for v in values)
        inside = ", ".join(f"%{c}: {v.element}" for c, v in zip("abcd", values))
        self.add(
            f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = "
            f"[{iterators}]}} ins({ins} : {types}) outs({empty} : {out}) {{\n"
            f"  ^bb0({inside}, %o: {element}):\n{body}\n    linalg.yield %to : "
            f"{element}\n  }} -> {out}"
        )
        return Value(
            name,
            first.sizes,
            element,
            lambda a: compute(*(v.compute(a) for v in values)),
        )

    def narrow(self, value: Value, element: str) -> Value:
        """Rounds the input of the next layer as numpy does."""
        return self.map(
            [value],
            f"    %to = arith.truncf %a : f32 to {element}",
            element,
            lambda v: v.astype(np.float32).astype(TYPES[element]).astype(np.float64),
        )

    def add_epilogue(self, y: Value) -> Value:
        """Computes the epilogue of a product in f32."""
        kind = self.rng.integers(5)
        features = y.sizes[-1]
        if kind == 0:
            bias = self.take((features,), "f32")
            return self.map(
                [y, bias],
                "    %s = arith.addf %a, %b : f32\n"
                "    %to = arith.maximumf %s, %zero : f32",
                "f32",
                lambda v, b: np.maximum(v + b, 0),
            )
        if kind == 1:
            residual = self.take(y.sizes, "f32")
            return self.map(
                [y, residual],
                "    %to = arith.addf %a, %b : f32",
                "f32",
                lambda v, r: v + r,
            )
        if kind == 2:
            numbers = [self.take_number(e) for e in ("f32", "i32", "i64")]
            scale, low, wide = (n.name for n in numbers)
            mapped = self.map(
                [y],
                f"    %p = arith.mulf %a, {scale} : f32\n"
                f"    %q = arith.sitofp {low} : i32 to f32\n"
                f"    %r = arith.sitofp {wide} : i64 to f32\n"
                "    %s = arith.addf %p, %q : f32\n"
                "    %to = arith.addf %s, %r : f32",
                "f32",
                lambda v: v,
            )

            def compute(a: Numbers) -> np.ndarray:
                s, i, j = (n.compute(a) for n in numbers)
                return y.compute(a) * s + i + j

            return Value(mapped.name, y.sizes, "f32", compute)
        if kind == 3:
            bias = self.take((features,), "f32")
            residual = self.take(y.sizes, "f32")
            return self.map(
                [y, bias, residual],
                "    %s = arith.addf %a, %b : f32\n"
                "    %r = arith.maximumf %s, %zero : f32\n"
                "    %to = arith.addf %r, %c : f32",
                "f32",
                lambda v, b, r: np.maximum(v + b, 0) + r,
            )
        return y

    def transpose(self, value: Value) -> Value:
        sizes = value.sizes[::-1]
        out = Value("", sizes, value.element, value.compute).type
        empty, name = self.empty(sizes, value.element), self.new()
        self.add(
            f"{name} = linalg.transpose ins({value.name} : {value.type}) "
            f"outs({empty} : {out}) permutation = [1, 0]"
        )
        return Value(name, sizes, value.element, lambda a: value.compute(a).T)

    def write(self) -> str:
        x = self.arguments[0]
        assert isinstance(x, Value)
        head = [
            "  %c0 = arith.constant 0 : index",
            "  %zero = arith.constant 0.0 : f32",
            "  %zero_i = arith.constant 0 : i32",
        ]
        if TOKENS in x.sizes:
            dim = x.sizes.index(TOKENS)
            head += [
                f"  %cm = arith.constant {dim} : index",
                f"  %m = tensor.dim {x.name}, %cm : {x.type}",
            ]
        types = ", ".join(r.type for r in self.results)
        names = ", ".join(r.name for r in self.results)
        body = "\n".join([*head, *self.lines])
        return (
            f"func.func @{self.name}({', '.join(self.signature)}) -> ({types}) {{\n"
            f"{body}\n  return {names} : {types}\n}}\n"
        )

    def fill(self, tokens: int, rng: np.random.Generator) -> List[np.ndarray]:
        """Arguments of a call: weights are dense."""
        filled = []
        for argument in self.arguments:
            if isinstance(argument, Weight):
                filled.append(argument.dense)
            elif isinstance(argument, Number):
                filled.append(np.array(argument.value, TYPES[argument.element]))
            else:
                sizes = [tokens if s == TOKENS else s for s in argument.sizes]
                if argument.element in ("i8", "i32"):
                    numbers = rng.integers(-9, 10, sizes)
                else:
                    numbers = rng.standard_normal(sizes).astype(np.float32)
                filled.append(numbers.astype(TYPES[argument.element]))
        return filled

    def compute(self, arguments: Sequence[np.ndarray]) -> List[np.ndarray]:
        wide = [np.asarray(a).astype(np.float64) for a in arguments]
        return [r.compute(wide) for r in self.results]

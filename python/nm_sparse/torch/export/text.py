# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The text of one MLIR function, as it is written: values, sizes, linalg operations."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple, Union

import sympy

from ...encoding import EncodingError

# A number, or an expression of the symbols that torch.export gives dynamic sizes.
Size = Union[int, sympy.Expr]
_HEX = {"f32": ("<f", "<I", 8), "f64": ("<d", "<Q", 16)}
_LARGEST = {"f32": 3.4028234663852886e38, "f64": math.inf}


class ExportError(EncodingError):
    """A part of a model that has no form in MLIR here; the text says which, and what
    is legal."""


@dataclass(frozen=True)
class Value:
    """A tensor of the program.

    name:      with the percent sign.
    dtype:     element type, spelled as in MLIR.
    encoding:  alias of its encoding; empty where it is dense.
    """

    name: str
    shape: Tuple[Size, ...]
    dtype: str
    encoding: str = ""

    @property
    def type(self) -> str:
        return tensor_type(self.shape, self.dtype, self.encoding)


def tensor_type(shape: Sequence[Size], dtype: str, encoding: str = "") -> str:
    sizes = "".join(f"{s if isinstance(s, int) else '?'}x" for s in shape)
    return f"tensor<{sizes}{dtype}{', ' + encoding if encoding else ''}>"


def unique_name(name: str, taken: Set[str]) -> str:
    """The name, or one like it that is legal for a value and not taken; then it is."""
    name = re.sub(r"\W", "_", name)
    name = name if re.match(r"[A-Za-z_]", name) else f"_{name}"
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def is_float(dtype: str) -> bool:
    return dtype.startswith(("f", "bf"))


def literal(value: Union[float, int, bool], dtype: str) -> str:
    """A constant of a type as MLIR spells it. Floats are f32 or f64."""
    if dtype == "i1":
        return "true" if value else "false"
    if not is_float(dtype):
        return str(int(value))
    number = float(value)
    if dtype == "f32" and abs(number) > _LARGEST["f32"] and math.isfinite(number):
        number = math.copysign(math.inf, number)
    if not math.isfinite(number):
        pack, unpack, digits = _HEX[dtype]
        bits = struct.unpack(unpack, struct.pack(pack, number))[0]
        return f"0x{bits:0{digits}X}"
    text = repr(number)
    if "." not in text:
        mantissa, e, exponent = text.partition("e")
        text = f"{mantissa}.0{e}{exponent}"
    return text


class Region:
    """The body of a linalg.generic."""

    def __init__(self, writer: "Writer") -> None:
        self.writer = writer
        self.lines: List[str] = []

    def op(self, operation: str, values: Sequence[str], signature: str) -> str:
        """`%new = OPERATION VALUES : SIGNATURE`."""
        name = self.writer.fresh()
        self.lines.append(f"{name} = {operation} {', '.join(values)} : {signature}")
        return name

    def number(self, value: Union[float, int, bool], dtype: str) -> str:
        return self.writer.constant(value, dtype)

    def index(self, dim: int) -> str:
        """The number of the iteration along `dim`, of type index."""
        name = self.writer.fresh()
        self.lines.append(f"{name} = linalg.index {dim} : index")
        return name

    def cast(self, value: str, source: str, target: str) -> str:
        """`value` in another type, as torch converts it."""
        if source == target:
            return value
        if source == "index" or target == "index":
            return self.op("arith.index_cast", [value], f"{source} to {target}")
        if target == "i1":
            zero = self.number(0, "f32" if is_float(source) else source)
            if not is_float(source):
                return self.op("arith.cmpi ne,", [value, zero], source)
            wide = self.cast(value, source, "f32")
            return self.op("arith.cmpf une,", [wide, zero], "f32")
        if is_float(source) != is_float(target):
            if is_float(source):
                return self.op("arith.fptosi", [value], f"{source} to {target}")
            kind = "arith.uitofp" if source == "i1" else "arith.sitofp"
            return self.op(kind, [value], f"{source} to {target}")
        if is_float(source):
            return self._cast_float(value, source, target)
        old, new = int(source[1:]), int(target[1:])
        kind = "trunci" if new < old else "extui" if old == 1 else "extsi"
        return self.op(f"arith.{kind}", [value], f"{source} to {target}")

    def _cast_float(self, value: str, source: str, target: str) -> str:
        widths = {"f64": 64, "f32": 32}
        old, new = widths.get(source, 16), widths.get(target, 16)
        if old == new:  # f16 and bf16: neither holds the other
            return self._cast_float(
                self._cast_float(value, source, "f32"), "f32", target
            )
        kind = "arith.extf" if new > old else "arith.truncf"
        return self.op(kind, [value], f"{source} to {target}")


Body = Callable[[Region, List[str]], str]
# A tensor and, for each of its dimensions, the loop that it follows.
Operand = Tuple[Value, Sequence[int]]


class Writer:
    """Writes operations in order. Constants and sizes come first: they depend on the
    arguments alone, so that every operation may use them.

    symbols:  the SSA value of each symbol of a dynamic size.
    """

    def __init__(self) -> None:
        self.prologue: List[str] = []
        self.lines: List[str] = []
        self.aliases: Dict[str, str] = {}
        self.symbols: Dict[sympy.Symbol, str] = {}
        self._known: Dict[Tuple[object, str], str] = {}
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"%{self._count}"

    def alias(self, text: str, prefix: str) -> str:
        """A name for an attribute, the same for the same text."""
        if text not in self.aliases:
            count = sum(a.startswith(f"#{prefix}") for a in self.aliases.values())
            self.aliases[text] = f"#{prefix}{count}"
        return self.aliases[text]

    def constant(self, value: Union[float, int, bool], dtype: str) -> str:
        text = literal(value, dtype)
        spelled = text if dtype == "i1" else f"{text} : {dtype}"
        return self._first("arith.constant", spelled, dtype)

    def _first(self, operation: str, operands: str, dtype: str) -> str:
        """An operation of the prologue, once."""
        key = (operation, operands)
        if key not in self._known:
            self._known[key] = self.fresh()
            self.prologue.append(f"{self._known[key]} = {operation} {operands}")
        return self._known[key]

    def dimension(self, value: Value, dim: int) -> str:
        """A size of an argument, of type index."""
        place = self.constant(dim, "index")
        return self._first("tensor.dim", f"{value.name}, {place} : {value.type}", "")

    def size(self, size: Size) -> str:
        """A size, of type index. Raises ExportError for what has no form here."""
        if isinstance(size, int) or size.is_Integer:
            return self.constant(int(size), "index")
        if size in self.symbols:
            return self.symbols[size]
        kind = type(size).__name__
        args = list(size.args)
        operations = {
            "Mul": "arith.muli",
            "Add": "arith.addi",
            "FloorDiv": "arith.floordivsi",
            "CleanDiv": "arith.floordivsi",
            "CeilDiv": "arith.ceildivsi",
            "Mod": "arith.remsi",
            "PythonMod": "arith.remsi",
            "Max": "arith.maxsi",
            "Min": "arith.minsi",
        }
        if kind == "Pow" and args[1].is_Integer and args[1] > 0:
            kind, args = "Mul", [args[0]] * int(args[1])
        if kind not in operations:
            raise ExportError(
                f"size {size} is no sum, product, quotient, remainder, minimum or "
                "maximum of sizes of the inputs: declare it as a dynamic dimension of "
                "an input"
            )
        result = self.size(args[0])
        for one in args[1:]:
            operands = f"{result}, {self.size(one)} : index"
            result = self._first(operations[kind], operands, "index")
        return result

    def sizes(self, shape: Sequence[Size]) -> List[str]:
        """The dynamic ones, of type index."""
        return [self.size(size) for size in shape if not isinstance(size, int)]

    def op(self, operation: str, shape: Sequence[Size], dtype: str) -> Value:
        """`%new = OPERATION` with a tensor as its result."""
        value = Value(self.fresh(), tuple(shape), dtype)
        self.lines.append(f"{value.name} = {operation}")
        return value

    def empty(self, shape: Sequence[Size], dtype: str) -> Value:
        kind = tensor_type(shape, dtype)
        text = f"tensor.empty({', '.join(self.sizes(shape))}) : {kind}"
        return self.op(text, shape, dtype)

    def filled(
        self, shape: Sequence[Size], dtype: str, value: Union[float, int, str]
    ) -> Value:
        """A tensor of one number: a constant, or the name of a value of its type."""
        if not isinstance(value, str):
            if dtype in ("f16", "bf16"):
                cast = Region(self)
                name = cast.cast(self.constant(value, "f32"), "f32", dtype)
                self.lines += cast.lines
            else:
                name = self.constant(value, dtype)
        else:
            name = value
        out = self.empty(shape, dtype)
        text = f"linalg.fill ins({name} : {dtype}) outs({out.name} : {out.type})"
        return self.op(f"{text} -> {out.type}", shape, dtype)

    def map(self, loops: int, dims: Sequence[int]) -> str:
        names = ", ".join(f"d{at}" for at in range(loops))
        results = ", ".join(f"d{at}" for at in dims)
        return self.alias(f"affine_map<({names}) -> ({results})>", "map")

    def generic(
        self,
        operands: Sequence[Operand],
        loops: Sequence[Size],
        dtype: str,
        body: Body,
        dims: Optional[Sequence[int]] = None,
        start: Union[float, int, None] = None,
    ) -> Value:
        """A linalg.generic.

        loops:  the iteration space.
        dims:   loops that the result has, in order; all by default. The others are
                reductions, which begin with `start`.
        body:   makes the element of the result of those of the operands and, behind
                them, the one that is there.
        """
        dims = range(len(loops)) if dims is None else dims
        shape = [loops[dim] for dim in dims]
        reduces = len(dims) < len(loops)
        out = self.filled(shape, dtype, start or 0) if reduces else None
        out = out or self.empty(shape, dtype)
        maps = [self.map(len(loops), d) for _, d in operands]
        maps.append(self.map(len(loops), dims))
        kinds = ["parallel" if at in dims else "reduction" for at in range(len(loops))]
        region = Region(self)
        names = [self.fresh() for _ in range(len(operands) + 1)]
        result = body(region, names)
        types = [value.dtype for value, _ in operands] + [dtype]
        arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types))
        quoted = ", ".join(f'"{kind}"' for kind in kinds)
        inputs = ", ".join(value.name for value, _ in operands)
        input_types = ", ".join(value.type for value, _ in operands)
        ins = f" ins({inputs} : {input_types})" if operands else ""
        head = (
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            f"iterator_types = [{quoted}]}}{ins} outs({out.name} : {out.type}) {{"
        )
        value = self.op(head, shape, dtype)
        self.lines += [f"^bb0({arguments}):", *(f"  {line}" for line in region.lines)]
        self.lines += [f"  linalg.yield {result} : {dtype}", f"}} -> {value.type}"]
        return value

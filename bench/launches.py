# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the launches of a manifest (docs/Manifest.md) ask for, once the sizes of
the arguments are known: grids, buffers and the values of parameters. No GPU is
needed to compute them."""

import ast
import dataclasses
import math
import re

BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1, "i16": 2, "i32": 4}

FUNCTIONS = {
    "ceildiv": lambda a, b: -(-a // b),
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


@dataclasses.dataclass(frozen=True)
class Memref:
    """Rows of memory, without gaps unless `pitches` says how far elements are apart
    in each dimension. `data` is whatever holds it, such as a tensor; `address` is
    where it lies."""

    element: str
    sizes: tuple
    address: int = 0
    data: object = None
    pitches: tuple = None

    @property
    def strides(self):
        if self.pitches is not None:
            return self.pitches
        return tuple(math.prod(self.sizes[d + 1 :]) for d in range(len(self.sizes)))

    def bytes(self):
        return math.prod(self.sizes) * BYTES[self.element]

    def number(self, field, dim):
        return {"size": self.sizes, "stride": self.strides}[field][dim]


def parse_type(text, dynamic=None):
    """(sizes, element) of `memref<4096x?xf16>`; `dynamic` is the size of each
    `?`, and of none where it is left out."""
    match = re.fullmatch(r"memref<((?:(?:\d+|\?)x)*)(\w+)(?:,.*)?>", text)
    if not match or match[2] not in BYTES:
        raise ValueError(f"{text!r} is not a memref of {', '.join(BYTES)}")
    extents = match[1].split("x")[:-1]
    return tuple(dynamic if e == "?" else int(e) for e in extents), match[2]


def evaluate(text, memrefs):
    """The value of an expression over the sizes, offsets and strides of `memrefs`,
    {name: Memref}. All of them begin where their memory does."""

    def value(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
            sides = value(node.left), value(node.right)
            return sum(sides) if isinstance(node.op, ast.Add) else math.prod(sides)
        if isinstance(node, ast.Call) and node.func.id in FUNCTIONS:
            return FUNCTIONS[node.func.id](*map(value, node.args))
        if isinstance(node, ast.Subscript):
            of = node.value
            return memrefs[of.value.id].number(of.attr, value(node.slice))
        if isinstance(node, ast.Attribute) and node.attr == "offset":
            return 0
        raise ValueError(f"{text!r} is no expression of a manifest")

    return value(ast.parse(str(text), mode="eval").body)


def described(memrefs, parameter):
    """The Memref that a tensor map describes: a buffer, or a part of one."""
    memref = memrefs[parameter["source"]]
    if "sizes" not in parameter:
        return memref
    offset = evaluate(parameter["offset"], memrefs)
    sizes, strides = (
        tuple(evaluate(text, memrefs) for text in parameter[name])
        for name in ("sizes", "strides")
    )
    address = memref.address + offset * BYTES[memref.element]
    return Memref(memref.element, sizes, address, memref.data, strides)


def parameters(launch, memrefs, tensor_map):
    """[(type, value)] of a kernel's parameters. `tensor_map` gives the address of
    a map of a Memref: (memref, parameter) -> address."""
    found = []
    for parameter in launch["parameters"]:
        field, source = parameter["field"], parameter["source"]
        if field == "tensor_map":
            value = tensor_map(described(memrefs, parameter), parameter)
        elif field == "value":
            value = evaluate(source, memrefs)
        elif field in ("allocated", "aligned"):
            value = memrefs[source].address
        else:
            value = evaluate(f"{source}.{field}", memrefs)
        found.append((parameter["type"], value))
    return found


@dataclasses.dataclass(frozen=True)
class Shape:
    grid: tuple
    block: tuple
    cluster: tuple
    shared_bytes: int


def shape_of(launch, memrefs):
    """Shape of a launch, or None where its grid is empty."""

    def three(name):
        return tuple(evaluate(text, memrefs) for text in launch.get(name, "111"))

    grid = three("grid")
    if 0 in grid:
        return None
    shared = evaluate(launch["dynamic_shared_memory"], memrefs)
    return Shape(grid, three("block"), three("cluster"), shared)

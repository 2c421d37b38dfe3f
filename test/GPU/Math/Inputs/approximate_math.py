# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates the functions of a module and compares them with what they
approximate: absolute error, and error against what rounding to f16 changes.
Functions of the GPU count as exact; its tanh adds up to 2^-11 of itself.
Functions that compute in f16 are evaluated for all of its numbers.

usage: approximate_math.py FILE.mlir
"""

import math
import re
import struct
import sys

OP = re.compile(
    r"(%\w+) = ([\w.]+) (.*?)(?: fastmath<\w+>)? : (?!memref)(?:\S+ to )?(\S+)"
)
STORE = re.compile(r"\b(?:memref|vector)\.store (%\w+)")


def f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def f16(value):
    try:
        return struct.unpack("e", struct.pack("e", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def exp2(x):
    return 0.0 if x < -126 else 2.0**x


OPS = {
    "arith.addf": lambda x, y: x + y,
    "arith.divf": lambda x, y: x / y,
    "arith.maximumf": max,
    "arith.maxnumf": lambda x, y: y if math.isnan(x) else max(x, y),
    "arith.minimumf": min,
    "arith.minnumf": min,
    "arith.mulf": lambda x, y: x * y,
    "arith.negf": lambda x: -x,
    "arith.truncf": lambda x: x,
    "math.absf": abs,
    "math.exp2": exp2,
    "math.fma": lambda x, y, z: x * y + z,
    "math.tanh": math.tanh,
}


def parse(text):
    """Constants and operations of the kernel of one function, its result, and
    whether it computes in f16. A result that is only rounded to f16 is taken
    before that."""
    constants, ops, rounded, packed = {}, [], {}, False
    for name, op, operands, type in OP.findall(text):
        if op == "arith.constant":
            number = re.search(r"dense<(.*?)>", operands)
            value = number[1] if number else operands.strip()
            if re.match(r"-?\d+\.", value):
                constants[name] = float(value)
        elif op in OPS:
            narrow = re.search(r"(?<!b)f16", type)
            packed |= bool(narrow) and op != "arith.truncf"
            operands = re.findall(r"%\w+", operands)
            ops.append((name, OPS[op], operands, f16 if narrow else f32))
            if op == "arith.truncf":
                rounded[name] = operands[0]
    result = STORE.search(text)[1]
    return constants, ops, result if packed else rounded.get(result, result), packed


def evaluate(kernel, x):
    constants, ops, result, _ = kernel
    values = {**constants, "%arg0": x}
    for name, op, operands, round in ops:
        values[name] = round(op(*(values[operand] for operand in operands)))
    return values[result]


def erf_gate(x):
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


def tanh_gate(x):
    z = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 1 / (1 + math.exp(-z)) if z > -700 else 0.0


# What each function is, the largest absolute error, and the largest one of
# positive arguments in terms of f16's rounding error.
FUNCTIONS = {
    "gelu": (lambda x: x * erf_gate(x), 2.1e-5, 0.5),
    "tanh_gelu": (lambda x: x * tanh_gate(x), 2.1e-5, 0.5),
    "erf": (math.erf, 6e-5, 0.5),
    "packed_gelu": (lambda x: x * erf_gate(x), 5.1e-4, 5.5),
    "packed_tanh_gelu": (lambda x: x * tanh_gate(x), 5.1e-4, 5.5),
    "silu": (lambda x: x / (1 + math.exp(-x)), 3e-6, 0.01),
}


def within(error, limit):
    return f"within {limit:.1e}" if error <= limit else f"NOT {limit:.1e}"


def main():
    with open(sys.argv[1]) as file:
        functions = re.split(r"func\.func @(\w+)", file.read())
    for name, text in zip(functions[1::2], functions[2::2]):
        kernel, largest, ratio = parse(text), 0.0, 0.0
        if kernel[-1]:
            name = f"packed_{name}"
        if name not in FUNCTIONS:
            continue
        wanted, limit, roundings = FUNCTIONS[name]
        grid = [i / 1024 for i in range(-12 * 1024, 12 * 1024)]
        grid += [2.0**i for i in range(-14, 15)] + [-(2.0**i) for i in range(-14, 6)]
        if kernel[-1]:
            grid = struct.unpack("65536e", struct.pack("65536H", *range(65536)))
        for x in filter(math.isfinite, grid):
            want = wanted(x)
            error = abs(evaluate(kernel, x) - want)
            if x < 0 or not kernel[-1]:
                largest = max(largest, error if abs(x) < 16 or x < 0 else 0.0)
            if x > 0:
                power = math.floor(math.log2(max(want, 2.0**-14)))
                ratio = max(ratio, error / 2.0 ** (power - 11))
        side = "negative arguments: " if kernel[-1] else ""
        print(
            f"{name}: {side}absolute error {largest:.2e} {within(largest, limit)}, "
            f"{ratio:.2f} {'within' if ratio <= roundings else 'NOT'} {roundings} "
            "of f16's rounding from 0 on"
        )


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates the f32 functions of a module and compares them with what they
approximate: absolute error, and error against what rounding to f16 changes.
Functions of the GPU count as exact; its tanh adds up to 2^-11 of itself.

usage: approximate_math.py FILE.mlir
"""

import math
import re
import struct
import sys

OP = re.compile(r"(%\w+) = ([\w.]+) (.*?)(?: fastmath<\w+>)? : (?!memref)(\S+)")


def f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def exp2(x):
    return 0.0 if x < -126 else 2.0**x


OPS = {
    "arith.addf": lambda x, y: x + y,
    "arith.divf": lambda x, y: x / y,
    "arith.maximumf": max,
    "arith.minimumf": min,
    "arith.mulf": lambda x, y: x * y,
    "arith.negf": lambda x: -x,
    "math.absf": abs,
    "math.exp2": exp2,
    "math.fma": lambda x, y, z: x * y + z,
    "math.tanh": math.tanh,
}


def parse(text):
    """Constants and operations of the kernel of one function, and its result."""
    constants, ops, result = {}, [], None
    for name, op, operands, _ in OP.findall(text):
        if op == "arith.constant":
            number = re.search(r"dense<(.*?)>", operands)
            value = number[1] if number else operands.strip()
            if re.match(r"-?\d+\.", value):
                constants[name] = float(value)
        elif op in OPS:
            ops.append((name, OPS[op], re.findall(r"%\w+", operands)))
        elif op == "arith.truncf":
            result = operands.strip()
    return constants, ops, result


def evaluate(kernel, x):
    constants, ops, result = kernel
    values = {**constants, "%arg0": x}
    for name, op, operands in ops:
        values[name] = f32(op(*(values[operand] for operand in operands)))
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
    "silu": (lambda x: x / (1 + math.exp(-x)), 3e-6, 0.01),
}


def within(error, limit):
    return f"within {limit:.1e}" if error <= limit else f"NOT {limit:.1e}"


def main():
    with open(sys.argv[1]) as file:
        functions = re.split(r"func\.func @(\w+)", file.read())
    for name, text in zip(functions[1::2], functions[2::2]):
        if name not in FUNCTIONS:
            continue
        wanted, limit, roundings = FUNCTIONS[name]
        kernel, largest, ratio = parse(text), 0.0, 0.0
        grid = [i / 1024 for i in range(-12 * 1024, 12 * 1024)]
        grid += [2.0**i for i in range(-14, 15)] + [-(2.0**i) for i in range(-14, 6)]
        for x in grid:
            want = wanted(x)
            error = abs(evaluate(kernel, x) - want)
            largest = max(largest, error if abs(x) < 16 else 0.0)
            if x > 0:
                power = math.floor(math.log2(max(want, 2.0**-14)))
                ratio = max(ratio, error / 2.0 ** (power - 11))
        print(
            f"{name}: absolute error {largest:.2e} {within(largest, limit)}, "
            f"{ratio:.2f} {'within' if ratio <= roundings else 'NOT'} {roundings} "
            "of f16's rounding from 0 on"
        )


if __name__ == "__main__":
    main()

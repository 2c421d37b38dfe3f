# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands of one sparse product of tensor cores, drawn from a seed, in the words
that threads hold and shared memory has, as the PTX ISA lays them out; and the
product. Values are integers, so small that every order of summation is exact."""

from __future__ import annotations

import math
from typing import NamedTuple

PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
PIECE, LINE, GROUP = 16, 128, 8  # bytes, bytes, rows


class Element(NamedTuple):
    bits: int
    float_bits: tuple[int, int] | None  # of the exponent and of the mantissa
    range: tuple[int, int]
    sum: str

    def encode(self, value):
        return encode(value, self.bits, self.float_bits)

    @property
    def rows(self):
        """Of the contraction that a product covers, half of which is kept."""
        return 512 // self.bits


ELEMENTS = {
    "f16": Element(16, (5, 10), (-8, 8), "f32"),
    "bf16": Element(16, (8, 7), (-8, 8), "f32"),
    "e4m3": Element(8, (4, 3), (-8, 8), "f32"),
    "e5m2": Element(8, (5, 2), (-8, 8), "f32"),
    "s8": Element(8, None, (-128, 127), "s32"),
}


def encode(value, bits, float_bits):
    """The bits of an integer in a type that has it exactly."""
    if not float_bits:
        return value & ((1 << bits) - 1)
    if value == 0:
        return 0
    exponent_bits, mantissa_bits = float_bits
    mantissa, exponent = math.frexp(abs(value))
    mantissa = (2 * mantissa - 1) * (1 << mantissa_bits)
    if mantissa != int(mantissa):
        raise ValueError(f"{value} has more than {mantissa_bits} bits")
    exponent += (1 << (exponent_bits - 1)) - 2
    return (value < 0) << (bits - 1) | exponent << mantissa_bits | int(mantissa)


def encode_sum(element, value):
    return encode(value, 32, (8, 23) if element.sum == "f32" else None)


def pack(element, values):
    """Elements one after the other, as words."""
    count = 32 // element.bits
    return [
        sum(element.encode(v) << i * element.bits for i, v in enumerate(word))
        for word in zip(*[iter(values)] * count)
    ]


class Operands:
    """A, of which each row keeps two of four; B; and C, which is added."""

    def __init__(self, rng, element, rows, columns):
        self.rng, self.element = rng, element
        self.rows, self.columns = rows, columns
        depth = element.rows
        self.values = [self.draw(depth // 2) for _ in range(rows)]
        self.pairs = [rng.choices(PAIRS, k=depth // 4) for _ in range(rows)]
        self.b = [self.draw(depth) for _ in range(columns)]  # a column each
        self.c = [[rng.randint(-100, 100) for _ in range(columns)] for _ in range(rows)]

    def draw(self, count):
        return [self.rng.randint(*self.element.range) for _ in range(count)]

    def multiply(self):
        """A x B + C, row by row."""
        result = []
        for values, pairs, sums in zip(self.values, self.pairs, self.c):
            kept = [4 * i + place for i, pair in enumerate(pairs) for place in pair]
            result.append(
                [
                    start + sum(v * column[k] for v, k in zip(values, kept))
                    for start, column in zip(sums, self.b)
                ]
            )
        return result

    def accumulators(self, matrix):
        """Of each lane of each warp, the words of 16 rows."""
        words = []
        for first in range(0, self.rows, 16):
            for lane in range(32):
                for i in range(self.columns // 2):
                    row = first + lane // 4 + 8 * (i // 2 % 2)
                    column = i // 4 * 8 + lane % 4 * 2 + i % 2
                    words.append(encode_sum(self.element, matrix[row][column]))
        return words

    def metadata(self, selector):
        """A word of each lane. Those of lanes that the selector leaves out are
        anything."""
        words = []
        for first in range(0, self.rows, 16):
            warp = [self.rng.getrandbits(32) for _ in range(32)]
            for row in range(16):
                for chunk, (low, high) in enumerate(self.pairs[first + row]):
                    if self.element.bits == 8:
                        lane = row % 8 * 4 + row // 8 + chunk // 8 * 2
                        shift = chunk % 8 * 4
                    else:
                        lane = row % 8 * 4 + selector * 2 + chunk // 4
                        shift = row // 8 * 16 + chunk % 4 * 4
                    word = warp[lane] & ~(15 << shift)
                    warp[lane] = word | (low | high << 2) << shift
            words += warp
        return words

    def fragments(self, rows, number):
        """Of each lane, `number` registers of a matrix of 8 rows or of 16, whose
        rows are given: A, or the columns of B."""
        halves, count = len(rows) // 8, 32 // self.element.bits
        words = []
        for lane in range(32):
            for i in range(number):
                at = (lane % 4 + 4 * (i // halves)) * count
                row = rows[lane // 4 + 8 * (i % halves)]
                words += pack(self.element, row[at : at + count])
        return words

    def core_matrices(self, part, parts):
        """A in shared memory: pieces of 16 bytes of each row of `parts` tiles,
        without a swizzle, and this as the one of number `part`."""
        count = PIECE * 8 // self.element.bits
        words = []
        for start in range(0, self.element.rows // 2, count):
            for tile in range(parts):
                for values in self.values:
                    mine = values[start : start + count]
                    words += pack(
                        self.element, mine if tile == part else self.draw(count)
                    )
        return words

    def swizzled(self, part, transposed):
        """B in shared memory, in lines of 128 bytes, swizzled: columns as lines,
        with the rows of two products, or one, side by side, or the rows of two
        products as lines, in blocks of columns. This is the one of number
        `part`."""
        count = LINE * 8 // self.element.bits
        depth = self.element.rows
        if transposed:
            blocks = range(0, -(-self.columns // count) * count, count)
            lines = [
                [
                    self.b[c][row - part * depth]
                    if c < self.columns and row // depth == part
                    else self.draw(1)[0]
                    for c in range(block, block + count)
                ]
                for block in blocks
                for row in range(2 * depth)
            ]
        else:
            lines = [
                [
                    value
                    for product in range(count // depth)
                    for value in (column if product == part else self.draw(depth))
                ]
                for column in self.b
            ]
        words, per_piece = [], PIECE // 4
        for number, line in enumerate(lines):
            packed = pack(self.element, line)
            for piece in range(LINE // PIECE):
                at = (piece ^ number % GROUP) * per_piece
                words += packed[at : at + per_piece]
        return words

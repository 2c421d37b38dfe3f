# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""float8.py FORMAT WIDE.npy ROUNDED.npy: checks conversions of an 8-bit float."""

import sys

import numpy as np

MANTISSA, BIAS, HAS_INFINITY = {"e4m3": (3, 7, False), "e5m2": (2, 15, True)}[
    sys.argv[1]
]


def value(byte: int) -> float:
    """What the bits stand for, by the definition of the format."""
    sign = -1.0 if byte & 0x80 else 1.0
    exponent = (byte & 0x7F) >> MANTISSA
    fraction = byte & ((1 << MANTISSA) - 1)
    if exponent == 0x7F >> MANTISSA:
        if HAS_INFINITY:
            return sign * np.inf if fraction == 0 else np.nan
        if fraction == (1 << MANTISSA) - 1:
            return np.nan
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - BIAS - MANTISSA)
    return sign * (1 + fraction / 2**MANTISSA) * 2.0 ** (exponent - BIAS)


TABLE = np.array([value(byte) for byte in range(256)])
FINITE = TABLE[:128][np.isfinite(TABLE[:128])]
# One more, as if the exponent had no end: what is nearer to it is too large.
BEYOND = 2 * FINITE[-1] - FINITE[-2]


def round_one(x: float) -> int:
    """The byte of the nearest number, of two the one with an even mantissa."""
    sign = 0x80 if np.signbit(x) else 0
    if np.isnan(x):
        return sign | (0x7E if HAS_INFINITY else 0x7F)
    magnitudes = np.append(FINITE, BEYOND)
    distance = np.abs(magnitudes - min(abs(x), 4 * BEYOND))
    nearest = np.flatnonzero(distance == distance.min())
    return sign | int(next(n for n in nearest if len(nearest) == 1 or n % 2 == 0))


def main() -> None:
    wide = np.load(sys.argv[2]).astype(np.float64)
    same = (wide == TABLE) | (np.isnan(wide) & np.isnan(TABLE))
    same &= (np.signbit(wide) == np.signbit(TABLE)) | np.isnan(TABLE)
    rounded = np.load(sys.argv[3]).view(np.uint8)
    numbers = np.arange(len(rounded), dtype=np.uint64)
    low = np.array([0, 32767, 32768, 32769], np.uint64)[numbers % 4]
    bits = ((numbers // 4) << np.uint64(16)) | low
    x = bits.astype(np.uint32).view(np.float32).astype(np.float64)
    right = sum(round_one(v) == int(byte) for v, byte in zip(x, rounded, strict=True))
    print(f"{same.sum()} of 256 widened, {right} of {len(rounded)} rounded")


main()

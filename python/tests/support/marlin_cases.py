# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights in the layout marlin-24, written element by element, for tests."""

import numpy as np


def integers(outputs, inputs, bits):
    """A 2:4 weight of whole numbers, the same in each run."""
    n, k = np.ix_(np.arange(outputs), np.arange(inputs))
    half = 1 << (bits - 1)
    numbers = (n * 7 + k * 3 + n * k) % (2 * half - 1) - half + 1
    first = (n + k // 4) % 4
    second = (first + 1 + (n // 3 + k // 4) % 3) % 4
    return np.where((k % 4 == first) | (k % 4 == second), numbers, 0)


def scales(outputs, groups):
    """Powers of two, [outputs, groups], so that products are exact."""
    n, g = np.ix_(np.arange(outputs), np.arange(groups))
    return np.exp2((n + 3 * g) % 5 - 2).astype(np.float16)


def _kept(window):
    """The two places of a window that are stored: nonzero ones, and where there are
    fewer, those that CUTLASS's conversion takes."""
    live = tuple(bool(x) for x in window)
    fixed = {
        (False, False, False, False): (2, 3),
        (False, False, False, True): (2, 3),
        (False, False, True, False): (2, 3),
        (False, True, False, False): (1, 2),
        (True, False, False, False): (0, 2),
    }
    return fixed.get(live) or tuple(i for i, x in enumerate(live) if x)[:2]


def encode_marlin(weight, scale, bits):
    """(weight_packed, scale_packed, meta) of integers [N, K] and scales [N, groups]."""
    outputs, inputs = weight.shape
    half = inputs // 2
    values = np.zeros((half, outputs), np.int64)
    nibbles = np.zeros((outputs, inputs // 4), np.int64)
    for n in range(outputs):
        for w in range(inputs // 4):
            window = weight[n, 4 * w : 4 * w + 4]
            i, j = _kept(window)
            values[2 * w, n], values[2 * w + 1, n] = window[i], window[j]
            nibbles[n, w] = i | j << 2
    values += 1 << (bits - 1)
    each = 32 // bits
    order = {8: [0, 2, 4, 6, 1, 3, 5, 7], 4: [0, 2, 1, 3]}[each]
    packed = np.zeros((half // 16, outputs * 16 // each), np.uint32)
    for row in range(half // 16):
        for tile in range(outputs // 64):
            stored = []
            for lane in range(32):
                for step in range(4):
                    for block in (0, 1):
                        for line in (0, 1, 8, 9):
                            k = row * 16 + 2 * (lane % 4) + line
                            column = 16 * (lane // 8) + 8 * (lane // 4 % 2)
                            n = tile * 64 + column + 4 * block + step
                            stored.append(int(values[k, n]))
            for word in range(1024 // each):
                codes = [stored[word * each + at] for at in order]
                number = sum(code << (bits * at) for at, code in enumerate(codes))
                packed[row, tile * 1024 // each + word] = number
    columns = inputs // 16
    flat = np.zeros(outputs * columns, np.uint16)
    for n in range(outputs):
        for c in range(columns):
            word = sum(int(nibbles[n, 4 * c + at]) << (4 * at) for at in range(4))
            group, low = n // 64 * 64, n % 64
            line = group + low // 8 * 4 + n % 2 * 2 + n % 8 // 4 + n % 4 // 2 * 32
            column = c
            if line % 2 == 0 and c % 2 == 1:
                line, column = line + 1, c - 1
            elif line % 2 == 1 and c % 2 == 0:
                line, column = line - 1, c + 1
            flat[(column // 2 * outputs + line) * 2 + column % 2] = word
    meta = flat.view(np.int16).reshape(inputs // 32, 2 * outputs)
    groups = scale.shape[1]
    stored = np.ascontiguousarray(scale.T)
    if groups > 1 and half > 128:
        moved = np.zeros_like(stored)
        for n in range(outputs):
            source = n // 8 * 8 + [0, 4, 1, 5, 2, 6, 3, 7][n % 8]
            moved[:, n] = stored[:, source]
        stored = moved
    return packed.view(np.int32), stored, meta

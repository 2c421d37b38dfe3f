# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random encodings and weights, for hypothesis."""

import hypothesis.strategies as st
import numpy as np

from nm_sparse import Encoding, Level

# Element type -> (unsigned type of its bits, numpy type of its arrays).
TYPES = {
    "f64": (np.uint64, np.float64),
    "f32": (np.uint32, np.float32),
    "f16": (np.uint16, np.float16),
    "bf16": (np.uint16, np.uint16),
    "f8E4M3FN": (np.uint8, np.uint8),
    "f8E5M2": (np.uint8, np.uint8),
    "i8": (np.uint8, np.int8),
}


def bits_of(array):
    return array.view(f"uint{array.dtype.itemsize * 8}")


@st.composite
def levels(draw):
    """(outer, inner); inner is None for half of the encodings."""
    m = draw(st.integers(1, 10))
    n = draw(st.integers(1, m))
    blocks = [(1, 1), (1, 4), (1, 3), (2, 2), (3, 1), (4, 4), (4, 6)]
    bk, bn = draw(st.sampled_from(blocks))
    inner = None
    if draw(st.booleans()):
        ik = draw(st.sampled_from([d for d in range(1, bk + 1) if bk % d == 0]))
        jn = draw(st.sampled_from([d for d in range(1, bn + 1) if bn % d == 0]))
        inner_m = n * bk // ik
        inner = Level(draw(st.integers(1, inner_m)), inner_m, (ik, jn))
    return Level(n, m, (bk, bn)), inner


# V:N:M as it is published: 2:4 in 4 of m rows that V outputs share.
V_N_M = [
    (Level(4, m, (1, v)), Level(2, 4)) for m in (5, 8, 10, 16, 20) for v in (32, 64)
]


def shaped(draw, rows, columns, encoding_levels):
    """(make, encoding): `make` crops [batch, rows, columns] to a weight."""
    outer, inner = encoding_levels
    batch = draw(st.sampled_from([None, 1, 3]))
    rank = 2 if batch is None else 3
    dim = draw(st.sampled_from([rank - 2, rank - 1]))

    def make(array):
        dense = array[:, :rows, :columns]
        if batch is None:
            dense = dense[0]
        if dim == rank - 1:
            dense = dense.swapaxes(-1, -2)
        return np.ascontiguousarray(dense)

    encoding = Encoding(outer.n, outer.m, outer.block, dim, inner=inner)
    return batch or 1, make, encoding


@st.composite
def sparse_weights(draw, types=tuple(TYPES)):
    """(weight, encoding, dtype) in any legal shape, dim and type.

    Elements are random bit patterns, so NaN with payloads, infinities and
    denormals are frequent; kept blocks may hold either zero.
    """
    outer, inner = draw(st.one_of(levels(), levels(), st.sampled_from(V_N_M)))
    m, (bk, bn) = outer.m, outer.block
    wide = bn > 8
    k = draw(st.integers(0, 40))
    outputs = draw(st.integers(0, 80 if wide else 11))
    dtype = draw(st.sampled_from(types))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch, make, encoding = shaped(draw, k, outputs, (outer, inner))

    unsigned, numpy_type = TYPES[dtype]
    windows, panels = -(-k // (m * bk)), -(-outputs // bn)
    blocks = np.zeros((batch, windows, m, bk, panels, bn), unsigned)
    for b, w, p in np.ndindex(batch, windows, panels):
        kept = rng.permutation(m)[: rng.integers(0, outer.n + 1)]
        for position in kept:
            blocks[b, w, position, :, p] = random_bits(rng, (bk, bn), dtype)
        if inner is not None:
            drop_strips(rng, blocks[b, w, :, :, p], kept, inner)
    dense = blocks.reshape(batch, windows * m * bk, panels * bn)
    return make(dense).view(numpy_type), encoding, dtype


def random_bits(rng, shape, dtype):
    unsigned, _ = TYPES[dtype]
    info = np.iinfo(unsigned)
    bits = rng.integers(0, info.max, shape, unsigned, endpoint=True)
    bits[rng.random(shape) < 0.2] = 0
    if dtype != "i8":
        bits[rng.random(shape) < 0.2] = 1 << (info.bits - 1)  # -0
    return bits


def drop_strips(rng, window, kept, inner):
    """Leaves at most n strips of the kept blocks in each inner panel."""
    m, bk, bn = window.shape
    ik, jn = inner.block
    strips = [at * (bk // ik) + i for at in kept for i in range(bk // ik)]
    rows = window.reshape(m * bk, bn)
    for q in range(bn // jn):
        left = rng.permutation(strips)[: rng.integers(0, inner.n + 1)]
        for strip in range(m * bk // ik):
            if strip not in left:
                rows[strip * ik : (strip + 1) * ik, q * jn : (q + 1) * jn] = 0


@st.composite
def dense_weights(draw, types=tuple(TYPES)):
    """(weight, encoding, dtype) without a pattern, with many equal magnitudes."""
    outer, inner = draw(st.one_of(levels(), levels(), st.sampled_from(V_N_M)))
    k = draw(st.integers(1, 40))
    outputs = draw(st.integers(1, 80 if outer.block[1] > 8 else 11))
    dtype = draw(st.sampled_from(types))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch, make, encoding = shaped(draw, k, outputs, (outer, inner))
    bits = random_bits(rng, (batch, k, outputs), dtype)
    if draw(st.booleans()):  # few magnitudes, so that most scores are equal
        bits = rng.choice(random_bits(rng, 5, dtype), bits.shape)
    return make(bits).view(TYPES[dtype][1]), encoding, dtype


@st.composite
def free_weights(draw, types=tuple(TYPES)):
    """(weight, encoding, dtype); some weights are empty."""
    batch = draw(st.sampled_from([None, 1, 3]))
    shape = (draw(st.integers(0, 14)), draw(st.integers(0, 14)))
    shape = shape if batch is None else (batch, *shape)
    dim = len(shape) - 2 + draw(st.integers(0, 1))
    block = (draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    dtype = draw(st.sampled_from(types))
    unsigned, numpy_type = TYPES[dtype]
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    bits = rng.integers(0, np.iinfo(unsigned).max, shape, unsigned, endpoint=True)
    bits[rng.random(shape) > draw(st.floats(0, 1))] = 0
    return bits.view(numpy_type), Encoding.free(block, dim), dtype

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random weights that keep to an encoding, for hypothesis."""

import hypothesis.strategies as st
import numpy as np

from nm_sparse import Encoding

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
def sparse_weights(draw, types=tuple(TYPES)):
    """(weight, encoding, dtype) in any legal shape, dim and type.

    Elements are random bit patterns, so NaN with payloads, infinities and
    denormals are frequent; kept blocks may hold either zero.
    """
    m = draw(st.integers(1, 9))
    n = draw(st.integers(1, m))
    bk, bn = draw(st.sampled_from([(1, 1), (1, 4), (1, 3), (2, 2), (3, 1), (4, 4)]))
    batch = draw(st.sampled_from([None, 1, 3]))
    k, outputs = draw(st.integers(0, 40)), draw(st.integers(0, 11))
    dtype = draw(st.sampled_from(types))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    unsigned, numpy_type = TYPES[dtype]
    windows, panels = -(-k // (m * bk)), -(-outputs // bn)
    blocks = np.zeros((batch or 1, windows, m, bk, panels, bn), unsigned)
    for b, w, p in np.ndindex(batch or 1, windows, panels):
        count = rng.integers(0, n + 1)
        for position in rng.permutation(m)[:count]:
            info = np.iinfo(unsigned)
            block = rng.integers(0, info.max, (bk, bn), unsigned, endpoint=True)
            block[rng.random((bk, bn)) < 0.2] = 0
            if dtype != "i8":
                block[rng.random((bk, bn)) < 0.2] = 1 << (info.bits - 1)  # -0
            blocks[b, w, position, :, p, :] = block
    dense = blocks.reshape(batch or 1, windows * m * bk, panels * bn)
    dense = dense[:, :k, :outputs]
    if batch is None:
        dense = dense[0]
    dim = draw(st.sampled_from([dense.ndim - 2, dense.ndim - 1]))
    if dim == dense.ndim - 1:
        dense = dense.swapaxes(-1, -2)
    weight = np.ascontiguousarray(dense).view(numpy_type)
    return weight, Encoding(n, m, (bk, bn), dim), dtype

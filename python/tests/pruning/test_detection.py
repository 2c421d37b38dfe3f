# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pattern of a dense weight is found again."""

import numpy as np
import pytest

from nm_sparse import Encoding, encode, prune
from nm_sparse.pruning import detection
from nm_sparse.pruning.detection import count_live, detect

PATTERNS = [
    "2:4",
    "1:2",
    "8:32, block = [1, 128]",
    "16:32, block = [1, 8]",
    "2:4, block = [4, 4]",
    "2:4, block = [16, 64]",
    "[4:10, block = [1, 64]], [2:4]",
    "[4:8, block = [1, 32]], [2:4]",
]


def random(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("text", PATTERNS)
def test_patterns_are_found(text, dim, monkeypatch):
    encoding = Encoding(text, dim=dim)
    weight = prune(random((300, 640) if dim else (640, 300)), encoding)
    assert detect(weight, "f16", dim) == encoding
    monkeypatch.setattr(detection, "PART", 1)  # part by part
    assert detect(weight, "f16", dim) == encoding


def test_what_is_found_is_true():
    rng = np.random.default_rng(3)
    found = 0
    for seed in range(30):
        shape = tuple(rng.integers(1, 90, 2))
        weight = random(shape, seed)
        e = Encoding(int(rng.integers(1, 4)), 4, (1, int(rng.integers(1, 5))), 1)
        weight = prune(weight, e)
        encoding = detect(weight, "f16")
        if encoding is not None:
            encode(weight, encoding)
            found += 1
    assert found > 10


def test_the_last_part_counts(monkeypatch):
    monkeypatch.setattr(detection, "PART", 1)
    e = Encoding("2:4", block=(1, 64), dim=1)
    weight = prune(random((300, 64)), e)
    assert detect(weight, "f16") == e
    # The last panel, which is partial, is no longer one of 64.
    weight[256:] = prune(random((44, 64), 1), Encoding("2:4", block=(1, 4), dim=1))
    found = detect(weight, "f16")
    assert found == Encoding("2:4", block=(1, 4), dim=1)
    weight[299] = 1
    assert detect(weight, "f16") is None


def test_weights_without_a_pattern():
    weight = random((128, 256))
    assert detect(weight, "f16") is None
    assert detect(np.zeros_like(weight), "f16") is None
    assert detect(weight[:0], "f16") is None and detect(weight[:, :0], "f16") is None
    half = np.where(np.random.default_rng(1).random(weight.shape) < 0.5, weight, 0)
    assert detect(half.astype(np.float16), "f16") is None


def test_live_elements():
    bits = np.array([[0, 0x8000, 0x3F80, 0x7FC0]], np.uint16)
    assert count_live(bits, "bf16") == 2
    assert count_live(np.array([[0, -128, 3]], np.int8), "i8") == 2

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layout marlin-24 is decoded, and what is damaged is named."""

import hashlib

import numpy as np
import pytest
from checkpoint_cases import save
from marlin_cases import encode_marlin, integers, scales

from nm_sparse import Checkpoint, CheckpointError, EncodingError
from nm_sparse.files.marlin import PARTS, decode_marlin

# Outputs, inputs, bits, groups, and the digest of what compressed-tensors 0.9.4 writes
# of the same weight.
CASES = [
    (64, 32, 4, 1, "dc65a6302313256f"),
    (128, 512, 4, 4, "bbbeb4fbd5695454"),
    (64, 256, 8, 2, "86b6ad018f46f24e"),
    (64, 64, 8, 1, "67ed1535b043ca32"),
]


@pytest.mark.parametrize("outputs, inputs, bits, groups, digest", CASES)
def test_weights_are_decoded(outputs, inputs, bits, groups, digest):
    numbers, scale = integers(outputs, inputs, bits), scales(outputs, groups)
    parts = encode_marlin(numbers, scale, bits)
    data = b"".join(part.tobytes() for part in parts)
    assert hashlib.sha256(data).hexdigest()[:16] == digest
    dense = numbers * scale.astype(np.float32).repeat(inputs // groups, axis=1)
    assert np.array_equal(decode_marlin(*parts), dense)
    assert np.array_equal(decode_marlin(*parts, 0, 64), dense[:64])
    assert np.array_equal(decode_marlin(*parts, outputs - 64, outputs), dense[-64:])


def stored(path, **changes):
    outputs, inputs, bits, groups, _ = CASES[1]
    numbers, scale = integers(outputs, inputs, bits), scales(outputs, groups)
    parts = dict(zip(PARTS, encode_marlin(numbers, scale, bits)))
    parts.update(changes)
    kinds = {"int32": "I32", "int16": "I16", "float16": "F16", "float32": "F32"}
    tensors = {
        f"fc__{name}": (kinds[part.dtype.name], part)
        for name, part in parts.items()
        if part is not None
    }
    dense = numbers * scale.astype(np.float32).repeat(inputs // groups, axis=1)
    return save(path, **tensors), dense


def test_a_checkpoint_has_them_as_f16(tmp_path):
    path, dense = stored(tmp_path / "m.safetensors")
    checkpoint = Checkpoint(path)
    (weight,) = checkpoint.weights.values()
    assert weight.name == "fc.weight" and weight.stored == "marlin-24"
    assert (weight.outputs, weight.inputs, weight.dtype) == (128, 512, "f16")
    assert checkpoint.dense("fc.weight").dtype == np.float16
    assert np.array_equal(checkpoint.dense("fc.weight"), dense)
    assert str(checkpoint.check("fc.weight")) == "2:4"


@pytest.mark.parametrize("change, message", [
    ({"meta": None}, "'fc.weight_packed' has no meta beside it: legal is all of"),
    ({"meta": np.zeros((16, 128), np.int16)}, r"'fc.meta' has shape \[16, 128\]: leg"),
    ({"meta": np.zeros((16, 256), np.int32)}, "'fc.meta' is I32: legal is I16"),
    ({"scale_packed": np.ones((3, 128), np.float16)},
     r"'fc.scale_packed' has shape \[3, 128\]: legal is \[1, 128\] or \[4, 128\]"),
    ({"scale_packed": np.ones((4, 100), np.float16)},
     "'fc.weight_packed' has shape .* a multiple of 64"),
    ({"weight_packed": np.zeros((16, 250), np.int32)},
     r"'fc.weight_packed' has shape \[16, 250\]: legal is"),
])  # fmt: skip
def test_parts_that_do_not_fit_are_named(tmp_path, change, message):
    path, _ = stored(tmp_path / "m.safetensors", **change)
    with pytest.raises(CheckpointError, match=message):
        Checkpoint(path)


def test_damaged_positions_are_named(tmp_path):
    outputs, inputs, bits, groups, _ = CASES[0]
    parts = encode_marlin(
        integers(outputs, inputs, bits), scales(outputs, groups), bits
    )
    parts[2][0, 5] = 0
    with pytest.raises(EncodingError, match="meta has positions that do not increase"):
        decode_marlin(*parts)

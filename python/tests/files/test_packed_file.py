# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of packed weights: what is written is read, and damage is named."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import bits_of, free_weights, sparse_weights

from nm_sparse import (
    CheckpointError,
    Encoding,
    EncodingError,
    Level,
    decode,
    encode,
    prune,
    read_packed,
    write_packed,
)
from nm_sparse.files.tensor_file import FILE_TYPES, TensorFile, write_tensors

TYPES = tuple(FILE_TYPES)


def same(a, b):
    assert (a.encoding, tuple(a.shape), a.dtype) == (
        b.encoding,
        tuple(b.shape),
        b.dtype,
    )
    assert set(a.components) == set(b.components)
    for name, array in a.components.items():
        assert np.array_equal(bits_of(array), bits_of(b.components[name])), name


@settings(max_examples=150, deadline=None)
@given(case=sparse_weights(types=TYPES))
def test_canonical_weights(tmp_path_factory, case):
    weight, encoding, dtype = case
    path = tmp_path_factory.getbasetemp() / "canonical.safetensors"
    packed = encode(weight, encoding, dtype)
    write_packed(path, {"a.w": packed})
    same(read_packed(path)["a.w"], packed)
    text = TensorFile(path).metadata["a.w.nm_sparse"]
    assert json.loads(text) == json.loads(packed.metadata())


@settings(max_examples=150, deadline=None)
@given(case=sparse_weights(types=TYPES))
def test_bitmaps(tmp_path_factory, case):
    weight, encoding, dtype = case
    path = tmp_path_factory.getbasetemp() / "bitmap.safetensors"
    packed = encode(weight, encoding, dtype)
    if encoding.inner is not None and encoding.block[1] % 32:
        with pytest.raises(EncodingError, match="two levels need a multiple of 32"):
            write_packed(path, {"w": packed}, "bitmap")
        return
    write_packed(path, {"w": packed}, "bitmap")
    version, names = (4, set()) if encoding.inner is None else (6, {"w.index"})
    assert json.loads(TensorFile(path).metadata["w.nm_sparse"])["version"] == version
    assert set(TensorFile(path).tensors) == {"w.values", "w.bits"} | names
    same(read_packed(path)["w"], packed)


@settings(max_examples=150, deadline=None)
@given(case=sparse_weights(types=TYPES))
def test_k_major_values(tmp_path_factory, case):
    weight, encoding, dtype = case
    path = tmp_path_factory.getbasetemp() / "k_major.safetensors"
    packed = encode(weight, encoding, dtype)
    if encoding.inner is not None:
        with pytest.raises(EncodingError, match="encoding is of two levels: legal"):
            write_packed(path, {"w": packed}, "k_major")
        return
    write_packed(path, {"w": packed}, "k_major")
    assert json.loads(TensorFile(path).metadata["w.nm_sparse"])["version"] == 12
    tensors = TensorFile(path).tensors
    assert set(tensors) == {"w.values", "w.index"}
    *batch, rows, outputs = packed.values.shape
    size = (*batch, outputs, -(-rows // 16) * 16)
    assert tuple(tensors["w.values"].shape) == size
    same(read_packed(path)["w"], packed)


@pytest.mark.parametrize("v, m", [(64, 5), (64, 8), (128, 20)])
def test_bitmaps_of_two_levels(tmp_path, v, m):
    encoding = Encoding(4, m, (1, v), dim=1, inner=Level(2, 4))
    weight = np.random.default_rng(m).standard_normal((150, 203)).astype(np.float16)
    packed = encode(prune(weight, encoding), encoding)
    write_packed(tmp_path / "w", {"w": packed}, "bitmap")
    same(read_packed(tmp_path / "w")["w"], packed)
    # 32 kept rows, which fill 8 windows, are a tile.
    windows, panels = -(-203 // m), -(-150 // v)
    shapes = {n: t.shape for n, t in TensorFile(tmp_path / "w").tensors.items()}
    tiles = -(-windows // 8)
    assert tuple(shapes["w.values"]) == (panels * v // 32, tiles, 512)
    assert tuple(shapes["w.index"]) == (windows * 4, panels)
    assert tuple(shapes["w.bits"]) == (panels * v // 32, tiles, 32)


@settings(max_examples=50, deadline=None)
@given(case=free_weights(types=TYPES))
def test_free_weights(tmp_path_factory, case):
    weight, encoding, dtype = case
    path = tmp_path_factory.getbasetemp() / "free.safetensors"
    packed = encode(weight, encoding, dtype)
    write_packed(path, {"w": packed})
    same(read_packed(path)["w"], packed)


def two_four(outputs=4):
    return encode(np.eye(outputs, 8, dtype=np.float32), Encoding(2, 4, dim=1))


def test_several_weights(tmp_path):
    path = tmp_path / "several.safetensors"
    weights = {"a": two_four(), "b": two_four(6)}
    write_packed(path, weights, "bitmap")
    back = read_packed(path)
    assert list(back) == ["a", "b"]
    for name, packed in weights.items():
        assert np.array_equal(decode(back[name]), decode(packed))


def test_what_cannot_be_written(tmp_path):
    legal = "legal is 'canonical', 'bitmap', 'k_major'"
    with pytest.raises(EncodingError, match=f"storage is 'x': {legal}"):
        write_packed(tmp_path / "w", {}, "x")
    double = encode(np.eye(4), Encoding(2, 4))
    with pytest.raises(EncodingError, match="weight 'w' is f64: legal is"):
        write_packed(tmp_path / "w", {"w": double})
    for e in (Encoding.free(), Encoding(2, 4, order="shuffled")):
        packed = encode(np.eye(4, dtype=np.float32), e)
        with pytest.raises(EncodingError, match="legal for K-major values is one n:m"):
            write_packed(tmp_path / "w", {"w": packed}, "k_major")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("change, error, message", [
    ({"metadata": "5"}, EncodingError, "weight 'w': "),
    ({"metadata": "{"}, EncodingError, "weight 'w': metadata is not JSON"),
    ({"version": 5}, EncodingError, "version 5"),
    ({"dtype": "f64"}, EncodingError, "dtype is 'f64': legal is"),
    ({"dtype": "f16"}, EncodingError, "w.values is F32: legal is F16"),
    ({"shape": [4, 80]}, EncodingError, "values has shape"),
    ({"shape": ["4", 8]}, EncodingError, "legal is a list of sizes"),
    ({"shape": 4}, EncodingError, "metadata is not legal"),
    ({"n": "2"}, EncodingError, "n is '2': legal is an integer"),
    ({"tensor": "w.bits"}, CheckpointError, "there is no tensor 'w.bits'"),
    ({"bit": 1}, EncodingError, "keeps 3 rows: legal is 2"),
])  # fmt: skip
def test_damage_is_named(tmp_path, change, error, message):
    path = tmp_path / "damaged.safetensors"
    write_packed(path, {"w": two_four()}, "bitmap")
    file = TensorFile(path)
    metadata = {**json.loads(file.metadata["w.nm_sparse"]), **change}
    text = change.get("metadata", json.dumps(metadata))
    tensors = {name: (t.dtype, file.read(name)) for name, t in file.tensors.items()}
    tensors["w.bits"][1][0, 0, 0] ^= change.get("bit", 0) << 29
    tensors.pop(change.get("tensor"), None)
    write_tensors(path, tensors, {"w.nm_sparse": text})
    with pytest.raises(error, match=message) as raised:
        read_packed(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("change, error, message", [
    ({"shape": [4, 80]}, EncodingError, "values has shape"),
    ({"dtype": "f16"}, EncodingError, "w.values is F32: legal is F16"),
    ({"version": 7}, EncodingError, "version 7 of 2:4, which has version 1"),
    ({"tensor": "w.index"}, CheckpointError, "there is no tensor 'w.index'"),
    ({"index": 3}, EncodingError, "legal is strictly increasing and below 4"),
    ({"padding": 1}, EncodingError, "behind the 4 rows that are kept"),
])  # fmt: skip
def test_damage_to_k_major_values_is_named(tmp_path, change, error, message):
    path = tmp_path / "damaged.safetensors"
    write_packed(path, {"w": two_four()}, "k_major")
    file = TensorFile(path)
    metadata = {**json.loads(file.metadata["w.nm_sparse"]), **change}
    tensors = {name: (t.dtype, file.read(name)) for name, t in file.tensors.items()}
    tensors["w.index"][1][0, 0] |= change.get("index", 0)
    tensors["w.values"][1][0, 4] = change.get("padding", 0)
    tensors.pop(change.get("tensor"), None)
    write_tensors(path, tensors, {"w.nm_sparse": json.dumps(metadata)})
    with pytest.raises(error, match=message) as raised:
        read_packed(path)
    assert str(path) in str(raised.value)

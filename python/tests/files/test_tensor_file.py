# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Safetensors files: what is written reads back, and damage is named."""

import json
import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nm_sparse import CheckpointError
from nm_sparse.files.tensor_file import DTYPES, TensorFile, write_tensors

ENTRY = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}


def file_of(header, data=b"", length=None):
    """The bytes of a file with this header: an object, or text."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(text) if length is None else length
    return length.to_bytes(8, "little") + text + data


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(1)
    shapes = [(3, 4), (), (0, 5), (7,), (2, 3, 4)]
    made = {}
    for number, (dtype, (bits, kind, _)) in enumerate(DTYPES.items()):
        if kind is not None:
            shape = shapes[number % len(shapes)]
            data = rng.bytes(int(np.prod(shape)) * bits // 8)
            if dtype == "BOOL":
                data = bytes(byte & 1 for byte in data)
            made[f"t{number}.{dtype}"] = dtype, np.frombuffer(data, kind).reshape(shape)
    return made


def test_what_is_written_reads_back(tmp_path, arrays):
    path = tmp_path / "all.safetensors"
    write_tensors(path, arrays, {"who": "wir, 我们"})
    file = TensorFile(path)
    assert file.metadata == {"who": "wir, 我们"}
    assert set(file.tensors) == set(arrays)
    for name, (dtype, array) in arrays.items():
        back = file.read(name)
        assert file.tensors[name].dtype == dtype and back.dtype == array.dtype
        assert back.shape == array.shape and back.tobytes() == array.tobytes()
        assert file.tensors[name].start % array.itemsize == 0


def test_the_library_reads_it_too(tmp_path, arrays):
    library = pytest.importorskip("safetensors")
    path = tmp_path / "all.safetensors"
    write_tensors(path, arrays, {"a": "b"})
    found = dict(library.deserialize(path.read_bytes()))
    for name, (dtype, array) in arrays.items():
        assert found[name]["dtype"] == dtype
        assert tuple(found[name]["shape"]) == array.shape
        assert bytes(found[name]["data"]) == array.tobytes()


def test_what_the_library_writes_is_read(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    arrays = {
        "b": np.arange(6, dtype=np.float16).reshape(2, 3),
        "a": np.arange(4, dtype=np.int64),
        "none": np.zeros((0, 3), np.float32),
    }
    path = tmp_path / "theirs.safetensors"
    library.save_file(arrays, path, {"format": "pt"})
    file = TensorFile(path)
    assert file.metadata == {"format": "pt"}
    for name, array in arrays.items():
        assert np.array_equal(file.read(name), array)


def test_nothing_is_left_of_a_file_that_fails(tmp_path, monkeypatch):
    path = tmp_path / "out.safetensors"
    path.write_bytes(b"before")
    with pytest.raises(CheckpointError, match="'x' is an array of float64, which is"):
        write_tensors(path, {"x": ("F32", np.zeros(2))}, {})
    with pytest.raises(TypeError):
        write_tensors(path, {"x": ("F64", np.zeros(2))}, {"a": object()})
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_tensors(path, {"x": ("F64", np.zeros(2))}, {})
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def with_entry(**changes):
    return {"w": {**ENTRY, **changes}}


@pytest.mark.parametrize("data, message", [
    (b"", "the header has 0 bytes and the file 0"),
    (b"1234567", "and the file 7"),
    (file_of({}, length=3), "the header has 3 bytes and the file 10"),
    (file_of({}, length=1 << 62), "safetensors file, or a part of one"),
    (file_of(b"{"), "the header is not JSON"),
    (file_of(b"\xff\xfe{}"), "the header is not JSON"),
    (file_of(b"[" * 200000), "the header is not JSON"),
    (file_of(b'{"w": NaN}'), "NaN is not JSON"),
    (file_of(b'{"\\ud800": 1}'), "the header is not JSON"),
    (file_of([]), "the header is not a JSON object"),
    (file_of(b'{"w": 1, "w": 2}'), "in the header, 'w' is there twice"),
    (file_of({"w": 5}), "'w' is int: legal is an object"),
    (file_of({"w": {"dtype": "U8", "shape": []}}), "'w' has no data_offsets"),
    (file_of(with_entry(dtype="F7"), b"12"), "dtype 'F7': legal is BOOL, F4"),
    (file_of(with_entry(dtype=3), b"12"), "dtype 3: legal is"),
    (file_of(with_entry(shape=[-2]), b"12"), r"shape \[-2\]: legal is a list of sizes"),
    (file_of(with_entry(shape=[2.0]), b"12"), r"shape \[2.0\]"),
    (file_of(with_entry(shape=[True]), b"12"), r"shape \[True\]"),
    (file_of(with_entry(shape=2), b"12"), "shape 2"),
    (file_of(with_entry(shape=[1 << 62, 1 << 62]), b"12"), "'w' has 2 bytes: legal is"),
    (file_of(with_entry(shape=[1 << 62] * 5000), b"12"), r"has 2 bytes: .*\.\.\.$"),
    (file_of(with_entry(shape=["1" * 999]), b"12"), r"11\.\.\.: legal is a list"),
    (file_of(with_entry(shape=[0] + [1 << 62] * 500), b"12"), "bytes: legal is 0 for"),
    (file_of(with_entry(dtype="F16"), b"12"), r"2 bytes: legal is 4 for F16 of shape"),
    (file_of(with_entry(dtype="F4", shape=[3]), b"12"), "legal is 1.5 for F4"),
    (file_of(with_entry(data_offsets=[2, 0]), b"12"), r"data_offsets \[2, 0\]"),
    (file_of(with_entry(data_offsets=[0]), b"12"), r"data_offsets \[0\]: legal is"),
    (file_of(with_entry(data_offsets=[-2, 0]), b"12"), r"data_offsets \[-2, 0\]"),
    (file_of(with_entry(), b"1"), "the bytes 0 to 2: legal is up to 1, where the file"),
    (file_of(with_entry(), b"123"), "1 bytes follow 'w': legal is none"),
    (file_of(with_entry(data_offsets=[1, 3]), b"123"),
     "a start at 0, where the header ends"),
    (file_of({**with_entry(), "x": {**ENTRY, "data_offsets": [1, 3]}}, b"123"),
     "'x' has the bytes 1 to 3: legal is a start at 2, where 'w' ends"),
    (file_of({"__metadata__": {"a": 1}}), "'a' of __metadata__ is 1: legal is text"),
    (file_of({"__metadata__": "a"}), "__metadata__ is not an object"),
])  # fmt: skip
def test_damage_is_named(tmp_path, data, message):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=message) as error:
        TensorFile(path)
    assert str(path) in str(error.value)


def test_only_files_are_read(tmp_path):
    with pytest.raises(CheckpointError, match="legal is a file"):
        TensorFile(tmp_path)
    with pytest.raises(FileNotFoundError):
        TensorFile(tmp_path / "none")


@pytest.mark.parametrize("shape, data", [
    ([1] * 200, b"1"), ([0, 1 << 62], b""), ([0, 1 << 62, 1 << 62], b""),
])  # fmt: skip
def test_shapes_that_numpy_may_not_have(tmp_path, shape, data):
    path = tmp_path / "odd.safetensors"
    entry = {"dtype": "U8", "shape": shape, "data_offsets": [0, len(data)]}
    path.write_bytes(file_of({"w": entry}, data))
    try:
        assert list(TensorFile(path).read("w").shape) == shape
    except CheckpointError as error:
        assert "legal is one that numpy has" in str(error)


def test_types_that_numpy_has_not(tmp_path):
    path = tmp_path / "f4.safetensors"
    path.write_bytes(file_of(with_entry(dtype="F4", shape=[4]), b"12"))
    with pytest.raises(CheckpointError, match="dtype F4: legal is one of whole bytes"):
        TensorFile(path).read("w")
    with pytest.raises(CheckpointError, match="there is no tensor 'v'"):
        TensorFile(path).read("v")


@settings(max_examples=300, deadline=None)
@given(
    cut=st.integers(0, 400),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4),
)
def test_damaged_bytes_never_crash(tmp_path_factory, cut, changes):
    """A file that is cut, or has other bytes, is read or refused; never more."""
    entries = {
        "a.weight": {"dtype": "F16", "shape": [2, 4], "data_offsets": [0, 16]},
        "b": {"dtype": "I64", "shape": [2, 1], "data_offsets": [16, 32]},
    }
    data = bytearray(file_of({"__metadata__": {"k": "v"}, **entries}, bytes(32)))
    for at, byte in changes:
        data[at % len(data)] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    path.write_bytes(data[: len(data) - cut % len(data)] if changes else data[:cut])
    try:
        file = TensorFile(path)
    except CheckpointError as error:
        assert str(path) in str(error)
        return
    for name in file.tensors:
        if DTYPES[file.tensors[name].dtype][1] is not None:
            file.read(name)

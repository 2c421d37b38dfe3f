# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nm-compile reads checkpoints, and packs their weights, as the package does.

Skipped without NM_BUILD_DIR, a build that holds bin/nm-compile.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from checkpoint_cases import save
from hypothesis import given, settings
from strategies import TYPES
from test_checkpoint import BY_HAND, compress, kept_weights
from test_tensor_file import ENTRY, file_of

from nm_sparse import Checkpoint, CheckpointError, write_packed
from nm_sparse.files.tensor_file import FILE_TYPES, TensorFile
from nm_sparse.packing import two_four

TOOL = Path(os.environ.get("NM_BUILD_DIR", ""), "bin", "nm-compile")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "NM_BUILD_DIR" not in os.environ or not TOOL.exists(),
        reason="no build of nm-compile",
    ),
]


def run(checkpoint, *arguments):
    command = [TOOL, "--checkpoint", checkpoint, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def check_same(theirs, ours):
    """Files of the same tensors, byte for byte, and the same metadata, but for the
    functions, which only a compiler has."""
    assert {n: (t.dtype, t.shape) for n, t in theirs.tensors.items()} == {
        n: (t.dtype, t.shape) for n, t in ours.tensors.items()
    }
    for name in ours.tensors:
        assert theirs.read(name).tobytes() == ours.read(name).tobytes(), name
    functions = {name for name in theirs.metadata if name.endswith(".function")}
    assert len(functions) * 2 == len(theirs.metadata)
    rest = {k: v for k, v in theirs.metadata.items() if k not in functions}
    assert rest == ours.metadata


@settings(max_examples=20, deadline=None)
@given(case=kept_weights())
def test_packed_weights_are_the_same(tmp_path_factory, case):
    dense, keep, dtype = case
    folder = tmp_path_factory.getbasetemp()
    compressed, bitmask = compress(dense, keep)
    path = save(
        folder / "c.safetensors",
        a__weight=(FILE_TYPES[dtype], dense),
        b__shape=np.array(dense.shape).reshape(2, 1),
        b__compressed=(FILE_TYPES[dtype], compressed),
        b__bitmask=bitmask,
    )
    checkpoint = Checkpoint(path)
    weights = {name: checkpoint.pack(name) for name in checkpoint.weights}
    # Elements of 8 bits are only compiled as bitmaps.
    narrow = TYPES[dtype][0] == np.uint8
    for storage in ("bitmap",) if narrow else ("canonical", "bitmap"):
        theirs, ours = folder / "theirs.safetensors", folder / "ours.safetensors"
        result = run(path, "--packed", theirs, "--storage", storage)
        assert result.returncode == 0, result.stderr
        write_packed(ours, weights, storage)
        check_same(TensorFile(theirs), TensorFile(ours))


def test_patterns_are_the_same(tmp_path):
    rng = np.random.default_rng(3)
    half = rng.standard_normal((32, 256)).astype(np.float16)
    half[:, 1::2] = 0
    nearly = half.copy()
    nearly[17, 9] = nearly[30, 1] = np.nan
    arrays = dict(
        m__0__half__weight=half,
        m__0__nearly__weight=nearly,
        m__10__dense__weight=rng.standard_normal((5, 7)).astype(np.float32),
        m__9__bf16__weight=("BF16", half.view(np.uint16)),
        m__9__bf16__weight_scale=np.ones((32, 1), np.float32),
        norm__weight=np.ones(7, np.float32),
        **BY_HAND,
    )
    checkpoint = Checkpoint(save(tmp_path / "m.safetensors", **arrays))
    result = run(checkpoint.path, "--list")
    assert result.returncode == 0, result.stderr
    _, *rows, summary = result.stdout.splitlines()
    assert [row.split()[0] for row in rows] == list(checkpoint.weights)
    for row, (name, weight) in zip(rows, checkpoint.weights.items()):
        pattern = str(checkpoint.check(name))
        if weight.scale is not None:
            pattern += f"; scale '{weight.scale}'"
        sizes = f" {weight.outputs} x {weight.inputs} "
        assert sizes in row and row.endswith(f" {pattern}")
        assert f" {weight.dtype} " in row and f" {weight.stored} " in row
    assert summary == "3 of 5 weights are 2:4"


MATRIX = {"dtype": "F32", "shape": [1, 4], "data_offsets": [0, 16]}


@pytest.mark.parametrize("data", [
    b"", b"123", file_of({}, length=9), file_of(b"{"), file_of(b"[]"),
    file_of(b"[" * 100000), file_of(b'{"w": {"a": 1, "a": 2}}'), file_of({"w": 5}),
    file_of({"w": {**ENTRY, "dtype": "X"}}, b"12"),
    file_of({"w": {**ENTRY, "shape": [3]}}, b"12"),
    file_of({"w": {**ENTRY, "shape": [1 << 40, 1 << 40]}}, b"12"),
    file_of({"w": {**ENTRY, "data_offsets": [1, 3]}}, b"123"),
    file_of({"w": ENTRY}, b"1"), file_of({"w": ENTRY}, b"123"),
    file_of({"w": ENTRY, "v": ENTRY}, b"12"),
    file_of({"fc.shape": MATRIX, "fc.compressed": {**MATRIX, "data_offsets": [16, 32]}},
            bytes(32)),
])  # fmt: skip
def test_both_refuse_the_same_files(tmp_path, data):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(CheckpointError):
        Checkpoint(path)
    result = run(path, "--list")
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr.startswith(f"nm-compile: {path}: ")


@pytest.mark.parametrize("change", [
    {"fc__bitmask": np.array([[0b01101001], [0b11100011]], np.uint8)},
    {"fc__shape": np.array([2, 12])},
    {"fc__compressed": np.ones((2, 2), np.float32)},
    {"fc__bitmask": None},
    {"fc__weight": np.ones((2, 8), np.float32)},
    {"fc__row_offsets": np.zeros((3, 1), np.int64)},
])  # fmt: skip
def test_both_refuse_the_same_bitmasks(tmp_path, change):
    arrays = {k: v for k, v in {**BY_HAND, **change}.items() if v is not None}
    path = save(tmp_path / "m.safetensors", **arrays)
    with pytest.raises(CheckpointError) as error:
        Checkpoint(path).dense("fc.weight")
    result = run(path, "--list")
    assert result.returncode == 1
    tensor = str(error.value).split("'")[1]
    assert result.stderr.startswith(f"nm-compile: {path}: tensor '{tensor}'")


@pytest.mark.parametrize("shard", ["../m.safetensors", "/m.safetensors", "m.bin"])
def test_both_stay_in_the_folder(tmp_path, shard):
    save(tmp_path / "m.safetensors", w=np.ones((2, 2), np.float32))
    (tmp_path / "model").mkdir()
    index = tmp_path / "model/model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": shard}}))
    with pytest.raises(CheckpointError):
        Checkpoint(index.parent)
    result = run(index.parent, "--list")
    assert result.returncode == 1
    assert "legal is the name of a safetensors file in the same" in result.stderr


def test_functions_of_equal_names_differ(tmp_path):
    """Symbols have fewer characters than names."""
    path = save(
        tmp_path / "m.safetensors",
        **{"a.b.weight": np.zeros((8, 8), np.float16),
           "a_b": np.zeros((8, 8), np.float16),
           "0": np.zeros((8, 8), np.float16)},
    )  # fmt: skip
    out = tmp_path / "packed.safetensors"
    assert run(path, "--packed", out).returncode == 0
    metadata = TensorFile(out).metadata
    functions = [metadata[f"{n}.function"] for n in ("a.b.weight", "a_b", "0")]
    assert functions == ["a_b", "a_b_2", "_0"]
    assert two_four.ENCODING.n == json.loads(metadata["0.nm_sparse"])["n"]

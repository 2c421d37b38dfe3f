# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints: 2:4 weights are found, decoded and packed, and damage is named."""

import json

import hypothesis.strategies as st
import numpy as np
import pytest
from checkpoint_cases import model, save
from hypothesis import given, settings
from strategies import TYPES, bits_of

from nm_sparse import Checkpoint, CheckpointError, decode, encode, prune
from nm_sparse.files.tensor_file import FILE_TYPES
from nm_sparse.packing import two_four

WEIGHT_TYPES = [name for name in TYPES if name in FILE_TYPES]


# The layout as compressed-tensors documents it, by hand: 2 x 8, f32. Kept of output 0
# are the inputs 0, 3, 5, 6, so its bits are 1001 0110, the first input lowest.
BY_HAND = dict(
    fc__shape=np.array([[2], [8]]),
    fc__compressed=np.array([[1, 2, 3, 4], [5, 0, 6, 7]], np.float32),
    fc__bitmask=np.array([[0b01101001], [0b11000011]], np.uint8),
)
DENSE = np.array([[1, 0, 0, 2, 0, 3, 4, 0], [5, 0, 0, 0, 0, 0, 6, 7]], np.float32)


def compress(dense, keep):
    """(compressed, bitmask) of the kept elements, bit by bit."""
    outputs, inputs = dense.shape
    bitmask = np.zeros((outputs, -(-inputs // 8)), np.uint8)
    for output, i in np.argwhere(keep):
        bitmask[output, i // 8] |= 1 << (i % 8)
    return dense[keep].reshape(outputs, inputs // 2), bitmask


def test_the_layout_by_hand(tmp_path):
    checkpoint = Checkpoint(save(tmp_path / "m.safetensors", **BY_HAND))
    (weight,) = checkpoint.weights.values()
    assert weight.name == "fc.weight" and weight.stored == "sparse-24-bitmask"
    assert (weight.outputs, weight.inputs, weight.dtype) == (2, 8, "f32")
    assert np.array_equal(checkpoint.dense("fc.weight"), DENSE)
    assert str(checkpoint.check("fc.weight")) == "2:4"
    packed = checkpoint.pack("fc.weight")
    assert packed.index.T.tolist() == [[0, 3, 1, 2], [0, 1, 2, 3]]
    assert packed.values.T.tolist() == [[1, 2, 3, 4], [5, 0, 6, 7]]
    assert np.array_equal(decode(packed), DENSE)


@st.composite
def kept_weights(draw):
    """(dense, keep, dtype): random bits where two of four are kept, else +0."""
    outputs, windows = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    dtype = draw(st.sampled_from(WEIGHT_TYPES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    order = rng.random((outputs, windows, 4)).argsort(axis=2)
    keep = (order < 2).reshape(outputs, windows * 4)
    unsigned, kind = TYPES[dtype]
    bits = rng.integers(0, np.iinfo(unsigned).max, keep.shape, unsigned, endpoint=True)
    bits[rng.random(keep.shape) < 0.2] = 0
    return np.where(keep, bits, 0).astype(unsigned).view(kind), keep, dtype


@settings(max_examples=100, deadline=None)
@given(case=kept_weights())
def test_both_ways_of_storing_are_the_same_weight(tmp_path_factory, case):
    dense, keep, dtype = case
    compressed, bitmask = compress(dense, keep)
    path = save(
        tmp_path_factory.getbasetemp() / "both.safetensors",
        a__weight=(FILE_TYPES[dtype], dense),
        b__shape=np.array(dense.shape),
        b__compressed=(FILE_TYPES[dtype], compressed),
        b__bitmask=bitmask,
    )
    checkpoint = Checkpoint(path)
    expected = encode(dense, two_four.ENCODING, dtype)
    for name in ("a.weight", "b.weight"):
        assert checkpoint.weights[name].dtype == dtype
        assert np.array_equal(bits_of(checkpoint.dense(name)), bits_of(dense))
        packed = checkpoint.pack(name)
        assert packed.shape == dense.shape and packed.dtype == dtype
        for part, array in expected.components.items():
            assert np.array_equal(bits_of(packed.components[part]), bits_of(array))


def test_weights_of_many_chunks(monkeypatch):
    monkeypatch.setattr(two_four, "CHUNK", 3)
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((10, 30)).astype(np.float16)
    pruned = prune(dense, two_four.ENCODING)
    packed = two_four.pack(pruned, "f16")
    expected = encode(pruned, two_four.ENCODING)
    assert np.array_equal(packed.values, expected.values)
    assert np.array_equal(packed.index, expected.index)
    pruned[7, 28:] = 1
    assert two_four.check(pruned, "f16").is_24  # a partial window
    pruned[7, 4:8] = pruned[9, 0:4] = 1
    pattern = two_four.check(pruned, "f16")
    assert pattern == two_four.Pattern(80, 2, (7, 1))


@pytest.mark.parametrize("change, text", [
    ({}, "2:4"),
    ({(3, 9): 1.0, (3, 10): -0.0}, "2:4"),
    ({(3, 9): 1.0, (3, 10): 2.0, (31, 0): 1, (31, 2): np.nan},
     "nearly 2:4, but for 2 of 512 windows; the first is window 2 of output 3"),
    ({...: 1.0}, "dense"),
])  # fmt: skip
def test_patterns(tmp_path, change, text):
    weight = np.zeros((32, 64), np.float32)
    weight[:, 3::4] = 1
    for place, value in change.items():
        weight[place] = value
    weight[31, 1::4] = weight[:, 3::4].max()
    checkpoint = Checkpoint(save(tmp_path / "m.safetensors", w=weight))
    assert str(checkpoint.check("w")) == text
    if text == "2:4":
        assert np.array_equal(decode(checkpoint.pack("w")), weight)
        return
    with pytest.raises(CheckpointError, match="'w' is not 2:4: .* of 512 windows .*; "
                       "the first is window . of output .; prune"):  # fmt: skip
        checkpoint.pack("w")


def test_what_is_a_weight(tmp_path):
    path = save(
        tmp_path / "m.safetensors",
        layers__10__weight=DENSE,
        layers__9__weight=("F8_E4M3", DENSE.astype(np.uint8)),
        layers__9__weight_scale=np.ones((2, 1), np.float32),
        layers__9__weight_zero_point=np.zeros((2, 1), np.int8),
        norm__weight=np.ones(8, np.float32),
        double=np.ones((2, 2)),
        nothing__weight=np.ones((2, 0), np.float32),
        index=np.ones((2, 2), np.int64),
        some__bitmask=np.ones((2, 2), np.uint8),
    )
    checkpoint = Checkpoint(path)
    assert list(checkpoint.weights) == ["layers.9.weight", "layers.10.weight"]
    assert checkpoint.weights["layers.9.weight"].scale == "layers.9.weight_scale"
    assert checkpoint.weights["layers.9.weight"].dtype == "f8E4M3FN"
    assert checkpoint.weights["layers.10.weight"].scale is None
    assert checkpoint.config == checkpoint.compression == {}
    assert checkpoint.tensor("norm.weight").shape == (8,)
    with pytest.raises(CheckpointError, match="there is no weight 'norm.weight'"):
        checkpoint.dense("norm.weight")
    with pytest.raises(CheckpointError, match="there is no tensor 'none'"):
        checkpoint.tensor("none")


@pytest.mark.parametrize("change, message", [
    (dict(fc__shape=np.array([2, 12])), "'fc.compressed' has shape [2, 4]: legal is "
     "[2, 6]"),
    (dict(fc__shape=np.array([2, 6])), "'fc.shape' is [2, 6]: legal is [outputs, in"),
    (dict(fc__shape=np.array([-2, 8])), "'fc.shape' is [-2, 8]"),
    (dict(fc__shape=np.array([1 << 62, 0]), fc__bitmask=np.ones((2, 0), np.uint8)),
     "'fc.shape' is [4611686018427387904, 0]: legal is [outputs, inputs] from 1 up"),
    (dict(fc__shape=np.array([1 << 62, 1 << 62])), "'fc.compressed' has shape"),
    (dict(fc__shape=np.array([2, 8, 1])), "'fc.shape' has shape [3]: legal is two"),
    (dict(fc__shape=np.array([2.0, 8.0])), "'fc.shape' is 2 of float64: legal is two"),
    (dict(fc__shape=None), "'fc.compressed' has no shape beside it"),
    (dict(fc__bitmask=None), "'fc.shape' has no bitmask beside it: legal is all of"),
    (dict(fc__compressed=None), "'fc.shape' has no compressed beside it"),
    (dict(fc__compressed=np.ones((2, 4))), "'fc.compressed' is F64 of shape [2, 4]"),
    (dict(fc__compressed=np.ones(8, np.float32)), "F32 of shape [8]: legal is a mat"),
    (dict(fc__bitmask=np.ones((2, 2), np.uint8)), "'fc.bitmask' has shape [2, 2]: "
     "legal is [2, 1] for 2 x 8"),
    (dict(fc__bitmask=np.ones((2, 1), np.int8)), "'fc.bitmask' is I8: legal is U8"),
    (dict(fc__bitmask=np.array([[0b01101001], [0b11100011]], np.uint8)),
     "'fc.bitmask' has 3 bits in window 1 of output 1: legal is 2 of 4"),
    (dict(fc__shape=np.array([2, 4]), fc__compressed=np.ones((2, 2), np.float32)),
     "'fc.bitmask' has bits past input 4 in output 0: legal is 0"),
    (dict(fc__weight=DENSE), "'fc.weight' is there dense and compressed"),
    (dict(fc__row_offsets=np.zeros((3, 1), np.int64)), "is stored as sparse-bitmask"),
])  # fmt: skip
def test_damaged_bitmasks_are_named(tmp_path, change, message):
    arrays = {k: v for k, v in {**BY_HAND, **change}.items() if v is not None}
    path = save(tmp_path / "m.safetensors", **arrays)
    if "past input" in message:
        arrays["fc__bitmask"] = np.array([[0b1100011], [0b11]], np.uint8)
        save(path, **arrays)
    with pytest.raises(CheckpointError) as error:
        Checkpoint(path).dense("fc.weight")
    assert message in str(error.value) and str(path) in str(error.value)


def test_shards(tmp_path):
    parts = dict(BY_HAND)
    bitmask = parts.pop("fc__bitmask")
    sparsity = {"format": "sparse-24-bitmask", "sparsity_structure": "2:4"}
    config = {"quantization_config": {"sparsity_config": sparsity}}
    model(
        tmp_path,
        {"a-1.safetensors": parts, "a-2.safetensors": dict(fc__bitmask=bitmask)},
        config,
    )
    for path in (tmp_path, tmp_path / "model.safetensors.index.json"):
        checkpoint = Checkpoint(path)
        assert len(checkpoint.files) == 2
        assert np.array_equal(checkpoint.dense("fc.weight"), DENSE)
        assert checkpoint.compression == {"sparsity_config": sparsity}
    (tmp_path / "config.json").write_text(json.dumps({"sparsity_config": sparsity}))
    assert Checkpoint(tmp_path).compression == {"sparsity_config": sparsity}


def test_links_are_followed(tmp_path):
    """As in the caches of hubs, whose folders hold links to files elsewhere."""
    (tmp_path / "blobs").mkdir()
    save(tmp_path / "blobs/123", w=DENSE)
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot/model.safetensors").symlink_to("../blobs/123")
    assert np.array_equal(Checkpoint(tmp_path / "snapshot").dense("w"), DENSE)


@pytest.mark.parametrize("shard", [
    "../secret.safetensors", "/etc/secret.safetensors", "sub/x.safetensors",
    "..\\x.safetensors", "x.bin", "x\0.safetensors", 5, "none.safetensors",
])  # fmt: skip
def test_an_index_stays_in_its_folder(tmp_path, shard):
    save(tmp_path / "secret.safetensors", w=DENSE)
    (tmp_path / "model").mkdir()
    index = tmp_path / "model/model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": shard}}))
    with pytest.raises(CheckpointError, match="tensor 'w' is in") as error:
        Checkpoint(tmp_path / "model")
    assert str(index) in str(error.value)


@pytest.mark.parametrize("text, message", [
    ("{}", "has no weight_map"),
    ('{"weight_map": {}}', "has no weight_map"),
    ('{"weight_map": {"w": "m", "w": "n"}}', "in the index, 'w' is there twice"),
    ("[", "the index is not JSON"),
    ('{"weight_map": {"v": "m.safetensors"}}', "'v' is not in m.safetensors"),
    ('{"weight_map": {"w": "m.safetensors", "x": "n.safetensors"}}',
     "'w' is in .*m.safetensors, too"),
])  # fmt: skip
def test_a_wrong_index_is_named(tmp_path, text, message):
    save(tmp_path / "m.safetensors", w=DENSE)
    save(tmp_path / "n.safetensors", w=DENSE, x=DENSE)
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(CheckpointError, match=message):
        Checkpoint(tmp_path)


def test_folders(tmp_path):
    with pytest.raises(CheckpointError, match="has 0 safetensors files and no model"):
        Checkpoint(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04")
    with pytest.raises(CheckpointError, match="pytorch_model.bin: this is a pickle"):
        Checkpoint(tmp_path)
    save(tmp_path / "other.safetensors", w=DENSE)
    assert list(Checkpoint(tmp_path).weights) == ["w"]
    save(tmp_path / "more.safetensors", v=DENSE)
    with pytest.raises(CheckpointError, match="has 2 safetensors files"):
        Checkpoint(tmp_path)
    save(tmp_path / "model.safetensors", u=DENSE)
    assert list(Checkpoint(tmp_path).weights) == ["u"]


@pytest.mark.parametrize("name", ["a.pt", "a.bin", "a.pth", "a.ckpt", "a.pkl"])
def test_pickles_are_refused_unread(tmp_path, name):
    with pytest.raises(CheckpointError, match="runs the code in it: legal is safe"):
        Checkpoint(tmp_path / name)  # it is not even there


def test_other_json_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="legal is a folder, .safetensors or"):
        Checkpoint(tmp_path / "config.json")
    save(tmp_path / "model.safetensors", u=DENSE)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="config.json: it is not JSON"):
        Checkpoint(tmp_path)


def test_the_layout_of_compressed_tensors_itself(tmp_path):
    """Against the library, where it is installed and still has the layout."""
    torch = pytest.importorskip("torch")
    name = "compressed_tensors.compressors.sparse_compressors.sparse_24_bitmask"
    theirs = pytest.importorskip(name)
    rng = np.random.default_rng(4)
    dense = rng.standard_normal((6, 20)).astype(np.float16)
    dense = prune(dense, two_four.ENCODING)
    tensor = theirs.Sparse24BitMaskTensor.from_dense(torch.from_numpy(dense))
    parts = tensor.dict(name_prefix="fc", device="cpu")
    arrays = {key.replace(".", "__"): value.numpy() for key, value in parts.items()}
    checkpoint = Checkpoint(save(tmp_path / "m.safetensors", **arrays))
    assert np.array_equal(bits_of(checkpoint.dense("fc.weight")), bits_of(dense))

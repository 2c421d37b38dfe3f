# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`pack` makes what the reference makes, and files and arrays give it back."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import bits_of, dense_weights, free_weights, sparse_weights

from nm_sparse import (
    CheckpointError,
    Encoding,
    EncodingError,
    PackedTensor,
    decode,
    encode,
    pack,
    prune,
    read_packed,
    search_order,
    write_packed,
)
from nm_sparse.files.tensor_file import FILE_TYPES, TensorFile, write_tensors

TYPES = tuple(FILE_TYPES)
PARTS = st.sampled_from(["1", "2", "5"])


def same(a, b):
    assert (a.encoding, tuple(a.shape), a.dtype) == (
        b.encoding,
        tuple(b.shape),
        b.dtype,
    )
    assert list(a.components) == list(b.components)
    for name, array in a.components.items():
        assert array.dtype == b.components[name].dtype, name
        assert np.array_equal(bits_of(array), bits_of(b.components[name])), name


class Parts:
    """As many threads, as long as it is open."""

    def __init__(self, threads):
        self.patch, self.threads = pytest.MonkeyPatch(), threads

    def __enter__(self):
        self.patch.setenv("NM_SPARSE_THREADS", self.threads)

    def __exit__(self, *unused):
        self.patch.undo()


@settings(max_examples=150, deadline=None)
@given(st.one_of(sparse_weights(), free_weights()), PARTS)
def test_components_are_those_of_the_reference(case, sizes):
    weight, encoding, dtype = case
    with Parts(sizes):
        packed = pack(weight, encoding, dtype)
    same(packed.packed, encode(weight, encoding, dtype))
    # A -0 may be lost, as the reference loses it.
    back = bits_of(packed.to_dense())
    assert np.array_equal(back, bits_of(decode(encode(weight, encoding, dtype))))


@settings(max_examples=100, deadline=None)
@given(dense_weights(), PARTS)
def test_weights_without_the_pattern_are_refused_alike(case, sizes):
    weight, encoding, dtype = case
    try:
        expected = encode(weight, encoding, dtype)
    except EncodingError as error:
        with Parts(sizes), pytest.raises(EncodingError) as raised:
            pack(weight, encoding, dtype)
        assert str(raised.value) == str(error)
    else:
        same(pack(weight, encoding, dtype).packed, expected)


@settings(max_examples=50, deadline=None)
@given(dense_weights(types=("f32", "f16")))
def test_shuffled_weights(case):
    weight, e, dtype = case
    e = Encoding(e.n, e.m, e.block, e.dim, "shuffled", e.inner)
    perm = search_order(weight, e)
    pruned = prune(weight, e, perm=perm)
    packed = pack(pruned, e, perm=perm)
    same(packed.packed, encode(pruned, e, perm=perm))
    assert np.array_equal(packed.to_dense(), decode(packed.packed), equal_nan=True)
    try:
        expected = encode(pruned, e)
    except EncodingError as error:  # panels that no encoder finds
        with pytest.raises(EncodingError) as raised:
            pack(pruned, e)
        assert str(raised.value) == str(error)
    else:
        same(pack(pruned, e).packed, expected)


def test_what_it_says_of_itself():
    weight = np.random.default_rng(1).standard_normal((64, 256)).astype(np.float16)
    e = Encoding("8:32", block=(1, 32), dim=1)
    packed = pack(prune(weight, e), e)
    assert packed.encoding == e and packed.shape == (64, 256) and packed.dtype == "f16"
    assert packed.nbytes == 64 * 64 * 2 + 64 * 2
    assert packed.density == 0.25
    assert repr(packed) == (
        "PackedTensor('8:32, block = [1, 32], dim = 1', shape=(64, 256), dtype='f16', "
        "nbytes=8320)"
    )
    signs = pack(np.array([[-0.0, 5.0, 0.0, 0.0]], np.float32), Encoding(2, 4, dim=1))
    assert signs.density == 0.25
    assert pack(np.zeros((0, 4), np.float32), Encoding(2, 4, dim=1)).density == 0


@settings(max_examples=50, deadline=None)
@given(
    case=st.one_of(sparse_weights(types=TYPES), free_weights(types=TYPES)),
    name=st.sampled_from(["weight", "model.layers.0.w"]),
)
def test_files(tmp_path_factory, case, name):
    weight, encoding, dtype = case
    path = tmp_path_factory.getbasetemp() / "packed_tensor.safetensors"
    packed = pack(weight, encoding, dtype)
    packed.save(path, name)
    same(PackedTensor.load(path).packed, packed.packed)
    same(PackedTensor.load(path, name).packed, packed.packed)
    same(read_packed(path)[name], packed.packed)
    assert np.array_equal(bits_of(PackedTensor.load(path).to_dense()),
                          bits_of(packed.to_dense()))  # fmt: skip


@pytest.mark.parametrize("storage, other", [("bitmap", "bits"), ("k_major", "index")])
def test_other_forms_are_read_as_well(tmp_path, storage, other):
    weight = np.random.default_rng(2).standard_normal((40, 96)).astype(np.float32)
    packed = pack(prune(weight, Encoding(2, 4, dim=1)), Encoding(2, 4, dim=1))
    packed.save(tmp_path / "w", storage=storage)
    names = {"weight.values", f"weight.{other}"}
    assert set(TensorFile(tmp_path / "w").tensors) == names
    same(PackedTensor.load(tmp_path / "w").packed, packed.packed)


def test_safetensors_reads_the_file(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    packed = pack(np.eye(8, dtype=np.float16), Encoding(2, 4, dim=1))
    packed.save(tmp_path / "w")
    tensors = safetensors.load_file(tmp_path / "w")
    for name, array in packed.components.items():
        assert np.array_equal(tensors[f"weight.{name}"], array)


def test_one_of_several_weights(tmp_path):
    path, e = tmp_path / "several.safetensors", Encoding(2, 4, dim=1)
    weights = {
        n: encode(np.eye(s, 8, dtype=np.float32), e) for n, s in [("a", 4), ("b.c", 8)]
    }
    write_packed(path, weights)
    same(PackedTensor.load(path, "b.c").packed, weights["b.c"])
    with pytest.raises(EncodingError, match="has 2 packed weights: legal is one, or"):
        PackedTensor.load(path)
    with pytest.raises(EncodingError, match="packed weight 'c': legal is 'a', 'b.c'"):
        PackedTensor.load(path, "c")
    # What is wrong of one does not hinder the others.
    file = TensorFile(path)
    tensors = {n: (t.dtype, file.read(n)) for n, t in file.tensors.items()}
    del tensors["a.index"]
    write_tensors(path, tensors, file.metadata)
    same(PackedTensor.load(path, "b.c").packed, weights["b.c"])
    with pytest.raises(CheckpointError, match="there is no tensor 'a.index'"):
        PackedTensor.load(path, "a")


def test_a_single_weight_may_have_no_name(tmp_path):
    packed = encode(np.eye(4, 8, dtype=np.float32), Encoding(2, 4, dim=1))
    tensors = {"values": ("F32", packed.values), "index": ("U8", packed.index)}
    write_tensors(tmp_path / "w", tensors, {"nm_sparse": packed.metadata()})
    same(PackedTensor.load(tmp_path / "w").packed, packed)
    write_tensors(tmp_path / "w", tensors, {})
    with pytest.raises(EncodingError, match="has 0 packed weights: .* of none"):
        PackedTensor.load(tmp_path / "w")
    with pytest.raises(FileNotFoundError):
        PackedTensor.load(tmp_path / "other")


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(EncodingError, match="weight 'weight' is f64: legal is"):
        pack(np.eye(4), Encoding(2, 4)).save(tmp_path / "w")
    free = pack(np.eye(4, dtype=np.float16), Encoding.free())
    with pytest.raises(EncodingError):
        free.save(tmp_path / "w", storage="bitmap")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e5m2"])
def test_torch_tensors(tmp_path, name):
    torch = pytest.importorskip("torch")
    e = Encoding("2:4", block=(1, 4), dim=1)
    pruned = prune(torch.randn(30, 50).to(getattr(torch, name)), e)
    packed = pack(pruned, e)
    dense = packed.to_dense()
    assert dense.dtype == pruned.dtype and torch.equal(dense.float(), pruned.float())
    packed.save(tmp_path / "w")
    loaded = PackedTensor.load(tmp_path / "w")
    assert isinstance(loaded.to_dense(), np.ndarray)
    like = loaded.to_dense(like=pruned[:0])
    assert like.dtype == pruned.dtype and torch.equal(like.float(), pruned.float())
    with pytest.raises(EncodingError, match="like is an array of"):
        loaded.to_dense(like=torch.zeros(1, dtype=torch.float16))


def test_what_cannot_be_packed():
    with pytest.raises(EncodingError, match="weight is not 2:4: window 0 of panel 0"):
        pack(np.ones((4, 4)), Encoding(2, 4))
    with pytest.raises(EncodingError, match="weight is a list"):
        pack([[1.0]], Encoding(2, 4))
    with pytest.raises(EncodingError, match="perm is given, but order is 'identity'"):
        pack(np.zeros((4, 4)), Encoding(2, 4), perm=np.arange(4))
    with pytest.raises(EncodingError, match="weight has rank 4"):
        pack(np.zeros((4, 4, 1, 1)), Encoding(2, 4))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`pack` of weights on a GPU; the GPU is the emulator, and cupy a stand-in. Skipped
where there is no library of the compiler."""

import emulated_arrays as gpu
import numpy as np
import pytest
from strategies import bits_of

from nm_sparse import (
    Encoding,
    EncodingError,
    LinearSpec,
    PackedTensor,
    compile,
    pack,
    prune,
)
from nm_sparse.bindings import library as native
from nm_sparse.compiler import CompileError
from nm_sparse.packing import canonical
from nm_sparse.tensors import device_packing

pytestmark = pytest.mark.skipif(
    not native.available(), reason="no library of the compiler"
)


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """A GPU; counts what is packed there, and on the host."""
    counts = {"device": 0, "host": 0}

    def compile_(*arguments, **fields):
        counts["device"] += 1
        return gpu.emulated(compile(*arguments, **fields))

    on_host = canonical.encode

    def encode(*arguments):
        counts["host"] += 1
        return on_host(*arguments)

    gpu.install(monkeypatch)
    monkeypatch.setattr(device_packing, "compile", compile_)
    monkeypatch.setattr(device_packing, "emulates", lambda: False)
    monkeypatch.setattr(device_packing, "device_chip", lambda ordinal: "sm_90a")
    monkeypatch.setattr(canonical, "encode", encode)
    device_packing.pack_program.cache_clear()
    yield counts
    device_packing.pack_program.cache_clear()


def draw(shape, dtype=np.float16, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def check(found, host):
    """The same weight, on the GPU and on the host."""
    assert all(isinstance(part, gpu.ndarray) for part in found.components.values())
    assert (found.encoding, found.shape) == (host.encoding, host.shape)
    assert (found.dtype, found.nbytes) == (host.dtype, host.nbytes)
    for name, part in host.components.items():
        there = found.components[name]
        assert there.dtype == part.dtype and there.shape == part.shape
        assert np.array_equal(bits_of(there.get()), bits_of(part))
        assert np.array_equal(bits_of(found.packed.components[name]), bits_of(part))


def test_weights_are_packed_where_they_are(device, tmp_path):
    e = Encoding("8:32", block=(1, 16), dim=1)
    weight = prune(draw((40, 90)), e)
    found = pack(gpu.asarray(weight), e)
    assert device == {"device": 1, "host": 0}
    check(found, pack(weight, e))
    back = found.to_dense()
    assert isinstance(back, gpu.ndarray) and np.array_equal(back.get(), weight)
    assert np.array_equal(found.to_dense(like=weight), weight)
    assert found.density == pack(weight, e).density
    found.save(tmp_path / "weight.safetensors")
    loaded = PackedTensor.load(tmp_path / "weight.safetensors")
    assert np.array_equal(loaded.to_dense(), weight)
    # Compiled once.
    other = prune(draw((40, 90), seed=2), e)
    check(pack(gpu.asarray(other), e), pack(other, e))
    assert device["device"] == 1


def test_arrays_with_gaps_and_from_any_address():
    e = Encoding("2:4", dim=1)
    dense = prune(draw((33, 48)), e)
    columns = gpu.asarray(np.ascontiguousarray(dense.T)).T
    check(pack(columns, e), pack(dense, e))
    rows = gpu.asarray(np.concatenate([np.zeros((1, 7), np.float16), dense[:, :7]]))
    assert rows[1:34].data.ptr % 16
    e = Encoding("2:4", dim=0)
    weight = prune(dense[:, :7], e)
    rows = gpu.asarray(np.concatenate([np.zeros((1, 7), np.float16), weight]))
    check(pack(rows[1:34], e), pack(weight, e))


def test_bits_of_types_that_cupy_lacks():
    e = Encoding("3:7", block=(2, 4), dim=2)
    for dtype, bits in (("bf16", np.uint16), ("f8E4M3FN", np.uint8)):
        weight = np.random.default_rng(4).integers(0, 200, (2, 13, 29)).astype(bits)
        weight = prune(weight, e, dtype)
        check(pack(gpu.asarray(weight), e, dtype), pack(weight, e, dtype))
        with pytest.raises(EncodingError, match="pass dtype"):
            pack(gpu.asarray(weight), e)


def test_weights_without_the_pattern():
    e = Encoding("2:4", block=(1, 2), dim=1)
    weight = prune(draw((24, 40)), e)
    weight[6, 12:20] = 1
    with pytest.raises(EncodingError) as host:
        pack(weight, e)
    with pytest.raises(EncodingError) as raised:
        pack(gpu.asarray(weight), e)
    assert str(raised.value) == str(host.value)
    with pytest.raises(EncodingError, match="weight has rank 1: legal is 2"):
        pack(gpu.asarray(weight[0]), e)


@pytest.mark.parametrize(
    "text, dtype",
    [
        ("[4:8, block = [1, 16]], [2:4], dim = 1", np.float16),
        ("2:4, dim = 1, order = shuffled", np.float16),
        ("free, dim = 1", np.float16),
        ("20:80, dim = 1", np.float16),
        ("2:4, dim = 1", np.float64),
    ],
)
def test_what_no_kernel_packs_goes_by_the_host(device, text, dtype):
    e = Encoding(text)
    weight = prune(draw((32, 80), dtype), e, **({"density": 0.3} if e.is_free else {}))
    found = pack(gpu.asarray(weight), e)
    assert device == {"device": 0, "host": 1} and found.placed is None
    assert np.array_equal(found.to_dense().get(), weight)


def test_gpus_that_the_compiler_does_not_know(device, monkeypatch):
    def refuse(*_, **__):
        raise CompileError("'sm_70' is not a known chip", 2)

    monkeypatch.setattr(device_packing, "compile", refuse)
    e = Encoding("2:4", dim=1)
    weight = prune(draw((32, 80)), e)
    assert pack(gpu.asarray(weight), e).placed is None and device["host"] == 1
    monkeypatch.setattr(device_packing, "device_chip", lambda ordinal: None)
    assert pack(gpu.asarray(weight), e).placed is None


def test_kernels_read_what_was_packed_on_the_gpu(monkeypatch):
    """Without a copy of the canonical form on the host."""
    e = Encoding("8:32", block=(1, 64), dim=1)
    program = gpu.emulated(compile(LinearSpec(e.mlir(), 128, 96), chip="sm_90a"))
    weight, x = prune(draw((128, 96)), e), draw((5, 96), seed=3)
    found, out = pack(gpu.asarray(weight), e), gpu.empty((5, 128), np.float16)
    with monkeypatch.context() as patch:
        patch.delattr(gpu.ndarray, "get")
        prepared = program.prepare(found, like=out)
        assert prepared.arrays == tuple(found.components.values())
        y = program(gpu.asarray(x), found, out)
    expected = x.astype(np.float64) @ weight.astype(np.float64).T
    np.testing.assert_allclose(y.get(), expected, rtol=1e-2, atol=3e-2)
    other = pack(gpu.asarray(prune(draw((64, 96)), e)), e)
    assert other.placed is not None
    with pytest.raises(EncodingError, match=r"is \[64, 96\] of f16: the program takes"):
        program(gpu.asarray(x), other, out)


def test_other_storage_is_made_on_the_host():
    e = Encoding("8:16", dim=1)
    # For one token: the emulated driver has no tensor maps, which others need.
    program = gpu.emulated(
        compile(LinearSpec(e.mlir(), 64, 512), tokens=(1,), chip="sm_90a")
    )
    assert program.functions["linear"].weights[0]["packed_layout"] != e.version
    weight, x = prune(draw((64, 512)), e), draw((5, 512), seed=3)
    out = gpu.empty((5, 64), np.float16)
    y = program(gpu.asarray(x), pack(gpu.asarray(weight), e), out)
    expected = x.astype(np.float64) @ weight.astype(np.float64).T
    np.testing.assert_allclose(y.get(), expected, rtol=1e-2, atol=3e-2)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`pack` of weights on a GPU, of torch and cupy, against the host. Skipped without a
GPU."""

import numpy as np
import pytest
from test_device_packing import draw_case, with_pattern

torch = pytest.importorskip("torch")

import nm_sparse as nm  # noqa: E402
from nm_sparse.bindings import library  # noqa: E402
from nm_sparse.torch import PackedWeight  # noqa: E402

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or not library.available(),
    reason="needs a GPU and the compiler's library",
)
BITS = {"bf16": torch.bfloat16, "f8E4M3FN": torch.float8_e4m3fn}
BITS["f8E5M2"] = torch.float8_e5m2


def to_gpu(weight, dtype):
    """A weight of numpy as a tensor of its own type."""
    if dtype not in BITS:
        return torch.from_numpy(weight).cuda()
    signed = torch.from_numpy(weight.view(f"i{weight.itemsize}"))
    return signed.cuda().view(BITS[dtype])


def check(found, host):
    assert found.placed is not None and host.placed is None
    assert (found.encoding, found.shape) == (host.encoding, host.shape)
    assert (found.dtype, found.nbytes) == (host.dtype, host.nbytes)
    for name, part in host.components.items():
        same = found.packed.components[name]
        assert same.dtype == part.dtype and same.shape == part.shape
        assert same.tobytes() == np.ascontiguousarray(part).tobytes(), name


@pytest.mark.parametrize("seed", range(60))
def test_drawn_weights(seed):
    dense, encoding, dtype = draw_case(seed)
    weight = with_pattern(dense, encoding, dtype, seed)
    found = nm.pack(to_gpu(weight, dtype), encoding)
    assert all(part.is_cuda for part in found.components.values())
    check(found, nm.pack(weight, encoding, dtype))


@pytest.mark.parametrize("seed", range(100, 120))
def test_drawn_weights_without_the_pattern(seed):
    weight, encoding, dtype = draw_case(seed)
    try:
        host = nm.pack(weight, encoding, dtype)
    except nm.EncodingError as error:
        said = str(error)
        if weight.ndim == 3 and weight.shape[0] == 1:
            said = said.replace(" of batch 0", "")
        with pytest.raises(nm.EncodingError) as raised:
            nm.pack(to_gpu(weight, dtype), encoding)
        assert str(raised.value) == said
    else:
        check(nm.pack(to_gpu(weight, dtype), encoding), host)


@pytest.mark.parametrize("encoding", ["2:4", "8:16", "8:32, block = [1, 128]"])
@pytest.mark.parametrize("dim", [0, 1])
def test_large_weights(encoding, dim):
    e = nm.Encoding(f"{encoding}, dim = {dim}")
    weight = nm.prune(torch.randn(4096, 3000).half(), e)
    check(nm.pack(weight.cuda(), e), nm.pack(weight, e))
    weight[2048:2052] = 1
    weight[:, 1500:1532] = 1
    with pytest.raises(nm.EncodingError) as host:
        nm.pack(weight, e)
    with pytest.raises(nm.EncodingError) as raised:
        nm.pack(weight.cuda(), e)
    assert str(raised.value) == str(host.value)


def test_tensors_with_gaps_and_from_any_address():
    e = nm.Encoding("2:4", dim=1)
    weight = nm.prune(torch.randn(96, 160), e)
    host = nm.pack(weight, e)
    check(nm.pack(weight.t().contiguous().cuda().t(), e), host)
    check(nm.pack(torch.cat([weight, weight], 1).cuda()[:, :160], e), host)
    offset = torch.cat([weight.new_zeros(1), weight.flatten()]).cuda()[1:]
    check(nm.pack(offset.view(96, 160), e), host)
    check(nm.pack(torch.nn.Parameter(weight.cuda()), e), host)


def test_back_and_saved(tmp_path):
    e = nm.Encoding("8:32", block=(1, 64), dim=1)
    weight = nm.prune(torch.randn(256, 512, dtype=torch.bfloat16), e).cuda()
    packed = nm.pack(weight, e)
    dense = packed.to_dense()
    assert dense.is_cuda and torch.equal(dense, weight)
    packed.save(tmp_path / "weight.safetensors")
    loaded = nm.PackedTensor.load(tmp_path / "weight.safetensors")
    assert torch.equal(loaded.to_dense(like=weight), weight)
    there = PackedWeight.from_packed(packed)
    assert there.device.type == "cuda" and torch.equal(there.to_dense(), weight)


def test_streams():
    e = nm.Encoding("2:4", dim=1)
    pruned = [nm.prune(torch.randn(2048, 2048).half(), e) for _ in range(3)]
    hosts = [nm.pack(weight, e) for weight in pruned]
    for host, weight in zip(hosts, pruned):
        with torch.cuda.stream(torch.cuda.Stream()):
            check(nm.pack(weight.cuda(), e), host)


def test_no_check_while_a_graph_is_captured():
    e = nm.Encoding("2:4", dim=1)
    weight = nm.prune(torch.randn(64, 64).half(), e).cuda()
    nm.pack(weight, e)
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(nm.RuntimeFailure, match="the stream is captured"):
        with torch.cuda.graph(graph):
            nm.pack(weight, e)
    check(nm.pack(weight, e), nm.pack(weight.cpu(), e))


@pytest.mark.parametrize("encoding", ["2:4", "8:16", "8:32, block = [1, 64]"])
def test_programs_take_what_was_packed_there(encoding):
    e = nm.Encoding(f"{encoding}, dim = 1")
    program = nm.compile(nm.LinearSpec(e.mlir(), 192, 256))
    weight = nm.prune(torch.randn(192, 256).half(), e).cuda()
    x = torch.randn(33, 256, dtype=torch.float16, device="cuda")
    out = torch.full((33, 192), float("nan"), dtype=torch.float16, device="cuda")
    packed = nm.pack(weight, e)
    for _ in range(2):  # the second call is direct
        y = program(x, packed, out.fill_(float("nan")))
        wanted = x.double() @ weight.double().t()
        error = (y.double() - wanted).abs().max() / wanted.abs().max()
        assert float(error) <= 2e-3


@pytest.mark.parametrize("seed", range(200, 212))
def test_arrays_of_cupy(seed):
    cupy = pytest.importorskip("cupy")
    dense, encoding, dtype = draw_case(seed)
    weight = with_pattern(dense, encoding, dtype, seed)
    with cupy.cuda.Stream(non_blocking=True):
        found = nm.pack(cupy.asarray(weight), encoding, dtype)
        check(found, nm.pack(weight, encoding, dtype))
        assert isinstance(found.components["values"], cupy.ndarray)
        fortran = cupy.asarray(np.asfortranarray(weight))
        check(nm.pack(fortran, encoding, dtype), nm.pack(weight, encoding, dtype))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of numpy, torch and cupy are taken, and given back as what they were."""

import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from strategies import TYPES, bits_of, random_bits

import nm_sparse
from nm_sparse import EncodingError
from nm_sparse.interop.arrays import to_host, to_numbers

pytestmark = pytest.mark.slow

FOLDER = Path(nm_sparse.__file__).parents[1]
TORCH_NAMES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "i8": "int8",
}


def random_array(dtype, shape=(5, 7)):
    rng = np.random.default_rng(len(dtype))
    return random_bits(rng, shape, dtype).view(TYPES[dtype][1])


@pytest.mark.parametrize("dtype", TYPES)
def test_numpy_arrays_are_taken_as_they_are(dtype):
    array = random_array(dtype)
    host = to_host(array, dtype)
    assert host.array is array and host.dtype == dtype
    assert host.restore(array) is array
    if array.dtype.kind != "u":
        assert to_host(array).dtype == dtype


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "every other", "empty"])
def test_torch_tensors_keep_their_bits(dtype, layout):
    torch = pytest.importorskip("torch")
    array = random_array(dtype)
    signed = torch.from_numpy(bits_of(array).view(f"int{8 * array.itemsize}").copy())
    tensor = signed.view(getattr(torch, TORCH_NAMES[dtype]))
    cut = {
        "contiguous": lambda a: a,
        "transposed": lambda a: a.T,
        "every other": lambda a: a[::2, 1::2],
        "empty": lambda a: a[:0],
    }[layout]
    host = to_host(cut(tensor))
    assert host.dtype == dtype and host.array.dtype == array.dtype
    assert np.array_equal(bits_of(host.array), bits_of(cut(array)))
    back = host.restore(host.array)
    assert back.dtype == tensor.dtype and back.shape == cut(tensor).shape
    same = back.contiguous().view(signed.dtype) == cut(signed)
    assert bool(same.all())
    mask = host.restore(np.ones((2, 3), bool))
    assert mask.dtype == torch.bool and bool(mask.all()) and mask.shape == (2, 3)


def test_parameters_of_torch_are_detached():
    torch = pytest.importorskip("torch")
    parameter = torch.nn.Parameter(torch.ones(2, 4))
    host = to_host(parameter)
    back = host.restore(host.array)
    assert type(back) is torch.Tensor and not back.requires_grad
    assert to_numbers(parameter, "score").dtype == np.float32
    half = to_numbers(torch.tensor([1.5, -2], dtype=torch.bfloat16), "score")
    assert half.tolist() == [1.5, -2]


def test_tensors_that_have_no_elements_of_their_own():
    torch = pytest.importorskip("torch")
    with pytest.raises(EncodingError, match="weight is a tensor on meta"):
        to_host(torch.empty(4, 4, device="meta"))
    with pytest.raises(EncodingError, match="of layout torch.sparse_coo: legal is"):
        to_host(torch.eye(4).to_sparse())
    with pytest.raises(EncodingError, match="weight is an array of bf16: dtype is"):
        to_host(torch.ones(4, dtype=torch.bfloat16), "f16")
    with pytest.raises(EncodingError, match="weight is an array of int64"):
        to_host(torch.ones(4, dtype=torch.int64))


def test_tensors_on_a_gpu_come_back_there():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    tensor = torch.randn(6, 8, device="cuda").to(torch.bfloat16)
    host = to_host(tensor)
    back = host.restore(host.array)
    assert back.device == tensor.device and torch.equal(back, tensor)


class Device:
    """An array whose memory the host cannot read, as cupy's."""

    def __init__(self, array):
        self.held = np.array(array)
        self.__cuda_array_interface__ = {"version": 3}


@pytest.fixture
def cupy(monkeypatch):
    module = types.ModuleType("cupy")
    module.ndarray = type("ndarray", (Device,), {})
    module.asnumpy = lambda array: array.held
    module.asarray = lambda array: module.ndarray(getattr(array, "held", array))
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def test_cupy_arrays_come_back_as_such(cupy):
    array = random_array("f16")
    host = to_host(cupy.ndarray(array))
    assert host.dtype == "f16" and np.array_equal(bits_of(host.array), bits_of(array))
    back = host.restore(host.array)
    assert isinstance(back, cupy.ndarray) and back.held.dtype == np.float16


def test_other_arrays_on_a_gpu(cupy, monkeypatch):
    host = to_host(Device(np.eye(3)))
    assert host.dtype == "f64" and isinstance(host.restore(host.array), np.ndarray)
    monkeypatch.delitem(sys.modules, "cupy")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(EncodingError, match="weight is a Device on a GPU, which"):
        to_host(Device(np.eye(3)))


class Exporter:
    """An array that speaks DLPack and is of no library that is known."""

    def __init__(self, array, device=1):
        self.held, self.device = array, device

    def __dlpack__(self, **options):
        return self.held.__dlpack__(**options)

    def __dlpack_device__(self):
        return (self.device, 0)


def test_arrays_that_speak_dlpack():
    array = random_array("f32")
    host = to_host(Exporter(array))
    assert host.dtype == "f32" and np.array_equal(bits_of(host.array), bits_of(array))
    assert isinstance(host.restore(host.array), np.ndarray)
    with pytest.raises(EncodingError, match="is a Exporter on device 2 of DLPack"):
        to_host(Exporter(array, 2))


def test_numpy_types_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16)
    host = to_host(array)
    assert host.dtype == "bf16" and host.array.dtype == np.uint16
    assert host.restore(host.array).dtype == array.dtype
    assert to_numbers(array, "score").tolist() == np.arange(12).reshape(3, 4).tolist()


def test_what_is_no_array():
    with pytest.raises(EncodingError, match="weight is a list: legal is an array of"):
        to_host([[1.0]])
    with pytest.raises(EncodingError, match="weight is an array of uint16: pass dtype"):
        to_host(np.zeros((2, 2), np.uint16))
    with pytest.raises(EncodingError, match="score is an array of complex128: legal"):
        to_numbers(np.zeros(3, complex), "score")
    with pytest.raises(EncodingError, match="score is a str"):
        to_numbers("x", "score")


def test_torch_is_not_imported():
    code = (
        "import sys, numpy, nm_sparse; from nm_sparse.interop.arrays import to_host; "
        "to_host(numpy.zeros((2, 2))); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=FOLDER)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/pairs.py without a GPU: launches from a manifest, what the driver is
given, statistics of times that were taken in turns."""

import ctypes
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "scripts")]
import compared_layers  # noqa: E402
import driver  # noqa: E402
import kernel_pairs  # noqa: E402
import launches  # noqa: E402
import layers  # noqa: E402
import pairs  # noqa: E402

MEMREFS = {
    "arg0": launches.Memref("f16", (4096, 77), 0x1000),
    "arg1": launches.Memref("f16", (2048, 512), 0x2000),
    "buffer0": launches.Memref("i32", (3, 4, 5), 0x3000),
}
LAUNCH = {
    "kernel": "f_kernel",
    "grid": ["max(ceildiv(arg0.size[1], 16), 1)", "2", "1"],
    "block": ["384", "1", "1"],
    "dynamic_shared_memory": "198816",
    "parameters": [
        {"type": "ptr", "source": "arg0", "field": "aligned"},
        {"type": "i64", "source": "arg0", "field": "offset"},
        {"type": "i64", "source": "arg0", "field": "size[1]"},
        {"type": "i64", "source": "buffer0", "field": "stride[0]"},
        {"type": "i64", "source": "mul(arg0.stride[0], 2)", "field": "value"},
        {"type": "ptr", "source": "arg1", "field": "tensor_map", "box": [64, 32]},
    ],
}


@pytest.mark.parametrize(
    "text, value",
    [
        ("7", 7),
        ("-7", -7),
        ("ceildiv(arg0.size[1], 16)", 5),
        ("floordiv(arg0.size[1], 16)", 4),
        ("mod(arg0.size[1], 16)", 13),
        ("(arg0.size[0] + (arg0.stride[0] * 2))", 4250),
        ("sub(max(1, 2), min(3, 4, 5))", -1),
        ("buffer0.stride[0]", 20),
        ("add(arg1.offset, buffer0.stride[2])", 1),
    ],
)
def test_expressions(text, value):
    assert launches.evaluate(text, MEMREFS) == value


@pytest.mark.parametrize("text", ["arg0.size[0] - 1", "'f'", "arg0.rank", "exit(1)"])
def test_what_is_no_expression(text):
    with pytest.raises(ValueError, match="no expression of a manifest"):
        launches.evaluate(text, MEMREFS)


def test_types():
    assert launches.parse_type("memref<4096x?xf16>", 77) == ((4096, 77), "f16")
    assert launches.parse_type("memref<?xi32, 1>") == ((None,), "i32")
    for wrong in ("memref<*xf32>", "memref<4xf64>", "f32"):
        with pytest.raises(ValueError, match="is not a memref"):
            launches.parse_type(wrong)


def test_shapes_and_parameters():
    shape = launches.shape_of(LAUNCH, MEMREFS)
    assert shape == launches.Shape((5, 2, 1), (384, 1, 1), (1, 1, 1), 198816)
    assert launches.shape_of({**LAUNCH, "grid": ["0", "1", "1"]}, MEMREFS) is None
    maps = []

    def tensor_map(memref, parameter):
        maps.append((memref, parameter["box"]))
        return 0x9000

    found = launches.parameters(LAUNCH, MEMREFS, tensor_map)
    assert [value for _, value in found] == [0x1000, 0, 77, 20, 154, 0x9000]
    assert maps == [(MEMREFS["arg1"], [64, 32])]


def test_a_map_may_be_of_a_part_of_a_buffer():
    parameter = {**MAP_OF_PART, "source": "arg1"}
    memrefs = {"arg1": launches.Memref("f16", (128, 64), 0x1000)}
    part = launches.described(memrefs, parameter)
    assert part == launches.Memref("f16", (95, 60), 0x1080, None, (64, 1))
    assert part.strides == (64, 1)


MAP_OF_PART = {
    "field": "tensor_map",
    "offset": "64",
    "sizes": ["95", "sub(arg1.size[1], 4)"],
    "strides": ["arg1.size[1]", "1"],
}


class Library:
    """Takes the place of libcuda: keeps what each call was given."""

    def __init__(self, waits, status=0):
        self.waits, self.status, self.calls = waits, status, {}

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.setdefault(name, []).append(arguments)
            if name == "cuModuleGetGlobal_v2":
                return 0 if self.waits else 500
            if name == "cuGetErrorName":
                arguments[1]._obj.value = b"CUDA_ERROR_LAUNCH_FAILED"
                return 0
            if name == "cuLaunchKernelEx":
                config = arguments[0]._obj
                self.grid, self.shared = tuple(config.grid), config.shared_bytes
                of = [config.attributes[i] for i in range(config.count)]
                self.attributes = [(a.id, tuple(a.value[:3])) for a in of]
                values = arguments[2]
                self.values = [
                    ctypes.c_int64.from_address(values[i]).value for i in range(2)
                ]
            return self.status

        return call


def make_driver(waits=True, status=0):
    made = object.__new__(driver.Driver)
    made.library = Library(waits, status)
    return made


def test_a_launch():
    cuda = make_driver()
    kernel = cuda.kernel(ctypes.c_void_p(1), "f_kernel")
    shape = launches.Shape((6, 2, 1), (384, 1, 1), (2, 1, 1), 198816)
    kernel.allow(shape)
    ((_, attribute, value),) = cuda.library.calls["cuFuncSetAttribute"]
    assert (attribute, value) == (driver.MAX_DYNAMIC_SHARED, 198816)
    kernel.launch(shape, [("ptr", 0x1000), ("i64", -3)], 0)
    assert cuda.library.grid == (6, 2, 1) and cuda.library.shared == 198816
    assert cuda.library.values == [0x1000, -3]
    cluster, early = cuda.library.attributes
    assert cluster == (driver.CLUSTER, (2, 1, 1))
    assert early[0] == driver.PROGRAMMATIC_SERIALIZATION and early[1][0] == 1


def test_a_launch_that_waits_for_the_one_before():
    cuda = make_driver(waits=False)
    shape = launches.Shape((1, 1, 1), (32, 1, 1), (1, 1, 1), 0)
    kernel = cuda.kernel(ctypes.c_void_p(1), "f")
    kernel.allow(shape)
    kernel.launch(shape, [("i64", 1), ("i64", 2)], 0)
    assert cuda.library.attributes == []
    assert "cuFuncSetAttribute" not in cuda.library.calls


def test_a_failed_call_has_a_name():
    cuda = make_driver(status=719)
    with pytest.raises(RuntimeError, match="cuModuleUnload: CUDA_ERROR_LAUNCH_FAILED"):
        cuda.unload(ctypes.c_void_p(1))


def test_tensor_maps_count_from_the_inside():
    cuda = make_driver()
    memref = launches.Memref("bf16", (2, 100, 64), 0x4000)
    parameter = {"box": [1, 32, 64], "swizzle": "swizzle_128b", "l2_promotion": "none"}
    assert len(cuda.tensor_map(memref, parameter)) == 128
    ((at, kind, rank, base, sizes, strides, box, *rest),) = cuda.library.calls[
        "cuTensorMapEncodeTiled"
    ]
    assert at.value % 64 == 0 and base.value == 0x4000
    assert (kind, rank) == (9, 3)
    assert list(sizes) == [64, 100, 2] and list(strides) == [128, 12800]
    assert list(box) == [64, 32, 1]
    assert rest[1:] == [0, 3, 0, 0]


def test_how_much_is_measured():
    large = layers.Layer("f16", "50", 128, "feature", (4096, 8192, 8192))
    small = layers.Layer("f16", "50", 128, "feature", (256, 1024, 1024))
    assert pairs.count_sets(large) == 1 and pairs.count_sets(small) == 54
    assert pairs.count_copies(1, 600) == 1
    assert pairs.count_copies(4, 5) == 60
    assert pairs.count_rounds(50, 600) == 83
    assert pairs.count_rounds(50, 1e6) == 9


def test_ratios_are_those_of_rounds():
    # Both sides take twice as long in every second round.
    before = [100.0, 200.0] * 50
    after = [us * (1.01 if i % 3 else 1.02) for i, us in enumerate(before)]
    found = pairs.compare_times({"before": before, "after": after})
    assert abs(found["ratio"] - 1.01) < 1e-9 and found["rounds"] == 100
    assert found["ratio_error"] < 0.006
    assert found["before_us"] == 150.0


def test_chips():
    assert pairs.runs_on("sm_90a", (9, 0)) and pairs.runs_on("sm_120a", (12, 0))
    assert pairs.runs_on("sm_86", (8, 6)) and not pairs.runs_on("sm_80", (9, 0))


@pytest.fixture
def folder(tmp_path):
    side = {"ptx": "ret;", "functions": [{"name": "f"}]}
    writer = kernel_pairs.Writer(tmp_path / "kernels", None)
    layer = layers.Layer("f16", "50", 128, "feature", (4096, 4096, 4096))
    item = compared_layers.of_layer("bench", layer, label="mma.sync")
    writer.add(item, False, [side, side])
    # Nothing in bench/ can make the inputs of this one.
    writer.add(compared_layers.Item("emulator", "f", "ret"), False, [side, side])
    writer.add(item, False, [side, {"error": "no"}])
    writer.finish({"before": "old", "after": "new"}, 7)
    return tmp_path / "kernels"


def test_what_is_carried_to_a_gpu(folder):
    header = pairs.read(folder)
    (pair,) = header["pairs"]
    assert layers.parse(pair["layer"]).shape == (4096, 4096, 4096)
    assert (pair["label"], pair["chip"], pair["equal"]) == ("mma.sync", "sm_90a", False)
    assert pair["after"] == {"image": "0000.after.xz", "functions": [{"name": "f"}]}
    assert header["equal_kernels"] == 7 and header["commits"]["before"] == "old"
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("ratio, status", [(1.009, 0), (1.02, 1), (None, 1)])
def test_a_report(folder, tmp_path, monkeypatch, ratio, status):
    found = {"layer": "a", "passed": True, "same_result": True}
    if ratio:
        found.update(ratio=ratio, ratio_error=0.001, before_us=2.0, after_us=2.0)
    monkeypatch.setattr(pairs, "measure_all", lambda *_: [found])
    monkeypatch.setattr(pairs.clocks, "query", lambda _: {"name": "GPU"})
    monkeypatch.setattr(pairs.clocks.Watch.__init__, "__defaults__", (1, dict))
    out = tmp_path / "result.json"
    assert pairs.main([str(folder), "--out", str(out)]) == status
    report = json.loads(out.read_text())
    assert report["gpu"] == "GPU" and report["pairs"] == [found]
    assert report["summary"]["measured"] == (1 if ratio else 0)
    assert report["commits"] == {"before": "old", "after": "new"}


def test_elements_of_tensor_maps_have_their_size():
    # Bytes of CUtensorMapDataType, from UINT8 to BFLOAT16.
    sizes = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2)
    for element, number in driver.MAP_TYPES.items():
        assert sizes[number] == launches.BYTES[element]

"""Launches by CUDA alone: launch_manifest.py LIBCUDA IMAGE MANIFEST

The function computes y = x W in f16, with sizes that the manifest knows, and W of 2:4.
W keeps rows 2 and 3 of each window of 4 rows, with ones, so that nothing depends on
the order in which it is packed.
"""

import ctypes
import json
import re
import struct
import sys

cuda = ctypes.CDLL(sys.argv[1])
BYTES = {"f16": 2, "f32": 4, "i32": 4, "i8": 1}
MAP_TYPES = {"f16": 6, "f32": 7, "i32": 3, "i8": 0}
SWIZZLES = {"none": 0, "swizzle_32b": 1, "swizzle_64b": 2, "swizzle_128b": 3}


def call(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    if result:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(result, ctypes.byref(text))
        sys.exit(f"{name}: {text.value.decode()}")


def parse(memref):
    """Returns sizes and the type of elements."""
    *sizes, element = re.match(r"memref<([^,>]*)", memref).group(1).split("x")
    return [int(size) for size in sizes], element


def count(sizes):
    product = 1
    for size in sizes:
        product *= size
    return product


class Array:
    def __init__(self, memref, data=None):
        self.sizes, self.element = parse(memref)
        self.bytes = count(self.sizes) * BYTES[self.element]
        self.address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(self.bytes))
        if data is not None:
            assert len(data) == self.bytes
            call("cuMemcpyHtoD_v2", self.address, data, ctypes.c_size_t(self.bytes))

    def read(self):
        data = ctypes.create_string_buffer(self.bytes)
        call("cuMemcpyDtoH_v2", data, self.address, ctypes.c_size_t(self.bytes))
        return struct.unpack(f"<{self.bytes // 4}f", data.raw)


def encode(array, parameter):
    """Returns a CUtensorMap; manifests count dimensions from the outermost."""
    sizes = [int(size) for size in parameter.get("sizes", array.sizes)]
    strides = [count(sizes[dim + 1 :]) for dim in range(len(sizes))]
    strides = [int(stride) for stride in parameter.get("strides", strides)]
    size = BYTES[array.element]
    rank = len(sizes)
    assert "im2col" not in parameter, "this launcher makes tiled maps alone"
    storage = ctypes.create_string_buffer(192)
    tensor_map = storage, (ctypes.addressof(storage) + 63) // 64 * 64
    call(
        "cuTensorMapEncodeTiled",
        ctypes.c_void_p(tensor_map[1]),
        MAP_TYPES[array.element],
        rank,
        ctypes.c_void_p(array.address.value + size * int(parameter.get("offset", 0))),
        (ctypes.c_uint64 * rank)(*reversed(sizes)),
        (ctypes.c_uint64 * rank)(*(size * s for s in reversed(strides[:-1]))),
        (ctypes.c_uint32 * rank)(*reversed(parameter["box"])),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        0,
        SWIZZLES[parameter["swizzle"]],
        2,
        0,
    )
    return tensor_map


def launch(module, arrays, entry):
    function = ctypes.c_void_p()
    name = entry["kernel"].encode()
    call("cuModuleGetFunction", ctypes.byref(function), module, name)
    shared = int(entry["dynamic_shared_memory"])
    call("cuFuncSetAttribute", function, 8, shared)
    kept, pointers = [], []
    for parameter in entry["parameters"]:
        array = arrays[parameter["source"]]
        if parameter["type"] == "tensor_map":
            kept.append(encode(array, parameter))
            pointers.append(kept[-1][1])
        else:
            assert parameter["type"] == "ptr", parameter
            pointers.append(ctypes.addressof(array.address))
    params = (ctypes.c_void_p * len(pointers))(*pointers)
    shape = [int(size) for size in entry["grid"] + entry["block"]]
    call("cuLaunchKernel", function, *shape, shared, None, params, None)


def main():
    with open(sys.argv[2], "rb") as file:
        image = file.read()
    with open(sys.argv[3]) as file:
        (function,) = json.load(file)["functions"]
    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), image + b"\0")
    arrays = {}
    for argument in function["arguments"]:
        sizes, element = parse(argument["type"])
        if argument["role"] == "data":
            tokens, features = sizes
            numbers = [
                (m % 5) << (k % 4) for m in range(tokens) for k in range(features)
            ]
            data = struct.pack(f"<{len(numbers)}e", *numbers)
        elif argument["role"] == "values":
            data = struct.pack("<e", 1.0) * count(sizes)
        else:  # One bit for each row of a window, row 0 the highest.
            assert argument["role"] == "bits"
            data = b"\x33" * (count(sizes) * BYTES[element])
        arrays[argument["name"]] = Array(argument["type"], data)
    for buffer in function["buffers"]:
        arrays[buffer["name"]] = Array(buffer["type"])
    for entry in function["launches"]:
        launch(module, arrays, entry)

    result = arrays[function["results"][0]["buffer"]]
    outputs = result.sizes[1]
    for place, found in enumerate(result.read()):
        token = place // outputs
        expected = features // 4 * (token % 5) * (4 + 8)
        if found != expected:
            sys.exit(f"y[{token}, {place % outputs}] is {found}, expected {expected}")
    print("correct:", *result.sizes)


main()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The few calls of the CUDA driver that start a compiled kernel, through ctypes,
in the context of whoever uses the GPU already (PyTorch, say)."""

import ctypes

WAITS = "_waits"  # A kernel that has this symbol beside it may start early.

MAX_DYNAMIC_SHARED = 8
NON_PORTABLE_CLUSTER = 14
CLUSTER, PROGRAMMATIC_SERIALIZATION = 4, 6

# CUtensorMapDataType, -Swizzle and -L2promotion.
MAP_TYPES = {"i8": 0, "i32": 3, "f16": 6, "f32": 7, "bf16": 9}
SWIZZLES = {"none": 0, "swizzle_32b": 1, "swizzle_64b": 2, "swizzle_128b": 3}
PROMOTIONS = {"none": 0, "l2promo_64b": 1, "l2promo_128b": 2, "l2promo_256b": 3}

SCALARS = {
    "ptr": ctypes.c_uint64,
    "i64": ctypes.c_int64,
    "i32": ctypes.c_int32,
    "i8": ctypes.c_int8,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


class Attribute(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint),
        ("padding", ctypes.c_uint),
        ("value", ctypes.c_uint * 16),
    ]


class Config(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    ]


class Driver:
    def __init__(self, library="libcuda.so.1"):
        self.library = ctypes.CDLL(library)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(text))
            known = text.value.decode() if text.value else status
            raise RuntimeError(f"{name}: {known}")

    def load(self, image):
        """A module of PTX text or a cubin, as bytes."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image + b"\0")
        return module

    def unload(self, module):
        self.call("cuModuleUnload", module)

    def kernel(self, module, name):
        return Kernel(self, module, name)

    def clear(self, address, element_bytes, count, bits, stream):
        """Writes `bits` to `count` elements."""
        name = {1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async"}
        word = {1: ctypes.c_ubyte, 2: ctypes.c_ushort, 4: ctypes.c_uint}
        self.call(
            name[element_bytes],
            ctypes.c_uint64(address),
            word[element_bytes](bits),
            ctypes.c_size_t(count),
            ctypes.c_void_p(stream),
        )

    def tensor_map(self, memref, parameter):
        """The 128 bytes of a map of a Memref (launches.py)."""
        rank = len(memref.sizes)
        element = memref.bytes() // max(1, _product(memref.sizes))
        # Innermost first, as CUDA counts.
        sizes = (ctypes.c_uint64 * rank)(*memref.sizes[::-1])
        strides = [stride * element for stride in memref.strides[::-1][1:]]
        steps = (ctypes.c_uint64 * max(1, rank - 1))(*strides)
        box = (ctypes.c_uint32 * rank)(*parameter["box"][::-1])
        ones = (ctypes.c_uint32 * rank)(*[1] * rank)
        memory = ctypes.create_string_buffer(128 + 64)
        start = -ctypes.addressof(memory) % 64
        pixels = parameter.get("im2col")
        if pixels:
            box = _im2col_arguments(pixels, parameter["box"])
        self.call(
            "cuTensorMapEncodeIm2col" if pixels else "cuTensorMapEncodeTiled",
            ctypes.c_void_p(ctypes.addressof(memory) + start),
            MAP_TYPES[memref.element],
            rank,
            ctypes.c_void_p(memref.address),
            sizes,
            steps,
            *(box if pixels else (box, ones)),
            0,  # no interleave
            SWIZZLES[parameter["swizzle"]],
            PROMOTIONS[parameter["l2_promotion"]],
            0,  # zeros outside
        )
        return memory.raw[start : start + 128]


def _im2col_arguments(pixels, box):
    """Corners, channels and pixels of a copy, and strides, innermost first."""
    lower, upper = (
        (ctypes.c_int * 2)(*pixels[name][::-1]) for name in ("lower", "upper")
    )
    steps = (ctypes.c_uint32 * 4)(1, *pixels["strides"][::-1], 1)
    return lower, upper, box[1], box[0], steps


def _product(sizes):
    result = 1
    for size in sizes:
        result *= size
    return result


class Kernel:
    """A function of a module, and how it may be launched."""

    def __init__(self, driver, module, name):
        self.driver, self.name = driver, name
        self.function = ctypes.c_void_p()
        driver.call(
            "cuModuleGetFunction",
            ctypes.byref(self.function),
            module,
            name.encode(),
        )
        address = ctypes.c_uint64()
        self.waits = not driver.library.cuModuleGetGlobal_v2(
            ctypes.byref(address), None, module, (name + WAITS).encode()
        )

    def allow(self, shape):
        """Raises the limits that launches of this shape go beyond."""
        if shape.shared_bytes > 48 << 10:
            self.set(MAX_DYNAMIC_SHARED, shape.shared_bytes)
        if _product(shape.cluster) > 8:
            self.set(NON_PORTABLE_CLUSTER, 1)

    def set(self, attribute, value):
        self.driver.call("cuFuncSetAttribute", self.function, attribute, value)

    def launch(self, shape, parameters, stream):
        """`parameters` is what launches.parameters makes."""
        values = [SCALARS[type_](value) for type_, value in parameters]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        attributes = (Attribute * 2)()
        count = 0
        if _product(shape.cluster) > 1:
            attributes[count].id = CLUSTER
            attributes[count].value[:3] = shape.cluster
            count += 1
        if self.waits:
            attributes[count].id = PROGRAMMATIC_SERIALIZATION
            attributes[count].value[0] = 1
            count += 1
        config = Config(
            (ctypes.c_uint * 3)(*shape.grid),
            (ctypes.c_uint * 3)(*shape.block),
            shape.shared_bytes,
            stream,
            attributes,
            count,
        )
        self.driver.call(
            "cuLaunchKernelEx", ctypes.byref(config), self.function, pointers, None
        )

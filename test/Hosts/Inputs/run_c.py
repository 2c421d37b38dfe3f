# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls the C functions of drawn layers, and compares what they compute.

Usage: run_c.py SEED COUNT HEADER LIBRARY CUDA TOKENS... [-- FAMILY...]

HEADER and LIBRARY are what nm-compile --emit c wrote and a C compiler made of it, and
CUDA is the driver, libcuda.so. Outputs are poisoned first.
"""

import ctypes
import pathlib
import re
import sys

import numpy as np
from layers import draw


class Driver:
    """The driver calls that a program needs beside the functions."""

    def __init__(self, path: str):
        self.lib = ctypes.CDLL(path)
        self.pointers = []
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)

    def call(self, name: str, *arguments) -> None:
        result = getattr(self.lib, name)(*arguments)
        if result:
            sys.exit(f"{name} gives {result}")

    def upload(self, array: np.ndarray) -> ctypes.c_void_p:
        array = np.ascontiguousarray(array)
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), max(array.nbytes, 1))
        self.call(
            "cuMemcpyHtoD_v2",
            pointer,
            array.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(array.nbytes),
        )
        return ctypes.c_void_p(pointer.value)

    def download(self, pointer: ctypes.c_void_p, array: np.ndarray) -> np.ndarray:
        self.call("cuStreamSynchronize", self.stream)
        self.call(
            "cuMemcpyDtoH_v2",
            array.ctypes.data_as(ctypes.c_void_p),
            pointer,
            ctypes.c_size_t(array.nbytes),
        )
        return array


def main() -> None:
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    seed, count, header, library, cuda, *tokens = sys.argv[1:split]
    text = pathlib.Path(header).read_text()
    driver = Driver(cuda)
    functions = ctypes.CDLL(library)
    rng = np.random.default_rng(int(seed))
    wrong = calls = 0
    for layer in draw(int(seed), int(count), sys.argv[split + 1 :]):
        signature = re.search(rf"int {layer.name}\(([^)]*)\);", text)
        comment = text[: signature.start()]
        encoding = re.findall(r"\* (#nm_sparse.encoding<.*>) of", comment)[-1]
        names = [p.split()[-1].lstrip("*") for p in signature[1].split(",")]
        prefix = f"w_{layer.name}_"
        parts = [n[len(prefix) :] for n in names if n.startswith(prefix)]
        packed = layer.pack(encoding, parts)
        known = {prefix + name: driver.upload(part) for name, part in packed.items()}
        if layer.bias is not None:
            known[f"b_{layer.name}"] = driver.upload(layer.bias)
        for m in map(int, tokens):
            x = layer.draw_tokens(rng, m)
            kind = np.int32 if layer.result == "i32" else np.float32
            poison = np.full((m, layer.outputs), 77777, kind)
            known["stream"] = driver.stream
            known["x"], known["result0"] = driver.upload(x), driver.upload(poison)
            known["tokens"] = known["x_size0"] = ctypes.c_int64(m)
            status = getattr(functions, layer.name)(*(known[n] for n in names))
            problem = f"it gives {status}" if status else None
            y = driver.download(known["result0"], poison)
            problem = problem or layer.check(y, x)
            calls += 1
            if problem:
                wrong += 1
                print(f"{layer.name} ({layer.encoding}), {m} tokens: {problem}")
            if m == max(map(int, tokens)) and parts:
                # Misaligned pointers are refused.
                known["x"] = ctypes.c_void_p(known["x"].value + 2)
                if not getattr(functions, layer.name)(*(known[n] for n in names)):
                    wrong += 1
                    print(f"{layer.name} takes x at 2 bytes behind a boundary of 16")
    print(f"{calls} calls, {wrong} wrong")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sparse layer in JAX, as an FFI call of the functions that nm-compile writes.

    nm-compile linear.mlir --emit c -o linear.c
    python linear.py

builds the call with gcc and g++, runs it inside of jax.jit, and compares it with the
dense product. Needs a GPU, JAX for CUDA and the package nm_sparse.
"""

import ctypes
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

import nm_sparse

HERE = pathlib.Path(__file__).resolve().parent
INPUTS, OUTPUTS = 1024, 2048


def build(folder: pathlib.Path, *flags: str) -> ctypes.CDLL:
    """The library of the call, of the C file that lies in `folder`."""
    cuda = ["-I/usr/local/cuda/include", "-fPIC", "-O1", *flags]
    c, library = str(folder / "linear.o"), str(folder / "liblinear.so")
    subprocess.run(["gcc", "-c", str(folder / "linear.c"), "-o", c, *cuda], check=True)
    subprocess.run(
        ["g++", "-std=c++17", "-shared", str(HERE / "linear_ffi.cpp"), c, *cuda]
        + ["-I", str(folder), "-I", jax.ffi.include_dir(), "-lcuda", "-o", library],
        check=True,
    )
    return ctypes.CDLL(library)


def main() -> None:
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    library = build(folder, *sys.argv[2:])
    target = jax.ffi.pycapsule(library.Linear)
    jax.ffi.register_ffi_target("nm_sparse_linear", target, platform="CUDA")

    @jax.jit
    def layer(x, values, bits):
        y = jax.ShapeDtypeStruct((x.shape[0], OUTPUTS), jnp.float32)
        call = jax.ffi.ffi_call("nm_sparse_linear", y)
        return jax.nn.relu(call(x, values, bits))

    rng = np.random.default_rng()
    encoding = nm_sparse.Encoding(2, 4)
    dense = rng.standard_normal((INPUTS, OUTPUTS)).astype(np.float16)
    weight = nm_sparse.prune(dense, encoding)
    parts = nm_sparse.encode(weight, encoding).components
    values, bits = nm_sparse.pack_bitmap(
        encoding, parts["values"], parts["index"], k=INPUTS, n=OUTPUTS
    )
    for tokens in (1, 7, 100, 700, 2000):
        x = rng.standard_normal((tokens, INPUTS)).astype(np.float16)
        y = np.asarray(layer(x, values, bits), np.float64)
        wanted = np.maximum(x.astype(np.float64) @ weight.astype(np.float64), 0)
        error = np.linalg.norm(y - wanted) / np.linalg.norm(wanted)
        print(f"{tokens} tokens: error {error:.1e}")
        assert error < 1e-5


if __name__ == "__main__":
    main()

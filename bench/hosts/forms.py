# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program in our runtime, as functions of C, and in IREE, called with tensors."""

import ctypes
import pathlib
import sys
import time


class Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


class Result(ctypes.Structure):
    _fields_ = [
        ("argument", ctypes.c_int32),
        ("kind", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.c_int64 * 8),
        ("strides", ctypes.c_int64 * 8),
    ]


class OurProgram:
    """A manifest and its kernels in our runtime."""

    def __init__(self, library: ctypes.CDLL, stem: str):
        self.lib = library
        manifest = pathlib.Path(f"{stem}.json").read_bytes()
        image = pathlib.Path(f"{stem}.cubin").read_bytes()
        library.nmsProgramCreate.restype = ctypes.c_void_p
        library.nmsProgramWorkspace.restype = ctypes.c_int64
        library.nmsLastError.restype = ctypes.c_char_p
        self.program = ctypes.c_void_p(
            library.nmsProgramCreate(
                *(manifest, ctypes.c_size_t(len(manifest))),
                *(image, ctypes.c_size_t(len(image))),
            )
        )
        if not self.program:
            sys.exit(library.nmsLastError().decode())

    def prepare(self, number: int, tensors: list):
        """The operands of a call of the function of that number, and its workspace."""
        import torch

        arrays = (Array * len(tensors))()
        for array, tensor in zip(arrays, tensors):
            sizes = (ctypes.c_int64 * tensor.dim())(*tensor.shape)
            array.data, array.rank, array.sizes = tensor.data_ptr(), tensor.dim(), sizes
        call = (self.program, number, arrays, len(tensors))
        size = self.lib.nmsProgramWorkspace(*call)
        if size < 0:
            sys.exit(self.lib.nmsLastError().decode())
        return call, torch.full((size,), 0x7E, dtype=torch.uint8, device="cuda")

    def launch(self, call: tuple, memory, stream: int) -> None:
        where = ctypes.c_void_p(memory.data_ptr())
        if self.lib.nmsProgramLaunch(*call, where, ctypes.c_void_p(stream)):
            sys.exit(self.lib.nmsLastError().decode())

    def bind(self, tensors: list):
        """A function of the stream that launches all, and the result."""
        import torch

        call, memory = self.prepare(0, tensors)
        results = []
        for i in range(self.lib.nmsProgramResults(self.program, 0)):
            result = Result()
            if self.lib.nmsProgramResult(*call, i, ctypes.byref(result)):
                sys.exit(self.lib.nmsLastError().decode())
            end = result.offset + 2 * result.sizes[0] * result.strides[0]
            flat = memory[result.offset : end].view(torch.float16)
            results.append(
                flat.as_strided(list(result.sizes[:2]), list(result.strides[:2]))
            )

        return lambda stream: self.launch(call, memory, stream), results


def bind_c(library: ctypes.CDLL, tensors: list, sizes: list, is_own: bool = False):
    """A function of the stream that launches all, and the results.

    is_own:  whether memory between the kernels is ours, or the stream's pool's.
    """
    import torch

    tokens = tensors[0].shape[0]
    results = [
        torch.full((tokens, size), float("nan"), dtype=torch.float16, device="cuda")
        for size in sizes
    ]
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (*tensors, *results)]
    arguments = [*pointers, ctypes.c_int64(tokens)]
    function = library.run_with_workspace if is_own else library.run
    memory = None
    if is_own:
        library.run_workspace.restype = ctypes.c_size_t
        size = library.run_workspace(ctypes.c_int64(tokens))
        memory = torch.full((size,), 0x7E, dtype=torch.uint8, device="cuda")
        arguments.append(ctypes.c_void_p(memory.data_ptr()))

    def launch(stream: int, memory=memory) -> None:
        status = function(ctypes.c_void_p(stream), *arguments)
        if status:
            sys.exit(f"{function.__name__} gives {status}")

    return launch, results


class IreeProgram:
    def __init__(self, path: pathlib.Path, parts: list):
        import iree.runtime as rt

        self.rt = rt
        start = time.perf_counter()
        self.config = rt.Config("cuda")
        context = rt.SystemContext(config=self.config)
        context.add_vm_module(rt.VmModule.mmap(context.instance, str(path)))
        self.load = time.perf_counter() - start
        self.function = context.modules["module"]["run"]
        self.parts = [self.upload(p) for p in parts]

    def upload(self, tensor):
        return self.rt.asdevicearray(self.config.device, tensor.cpu().numpy())

    def launch(self, x):
        return self.function(x, *self.parts)

    def call(self, x):
        import torch

        results = self.launch(self.upload(x))
        results = results if isinstance(results, (list, tuple)) else [results]
        return [torch.from_numpy(y.to_host()).cuda() for y in results]

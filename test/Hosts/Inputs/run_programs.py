# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles drawn programs and compares what they compute with numpy.

Usage: run_programs.py FORM SEED COUNT TOKENS... [-- KIND...]

FORM is `bound` or `device-maps`: kernels that our own runtime launches by a manifest,
in the emulator. Or it is CUDA:INCLUDE, the folders of a libcuda.so that runs emulated
kernels and of cuda.h: then the functions of C that nm-compile writes are called, and
the work is done in a temporary folder.
"""

import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Dict, Iterator, List, Sequence

import numpy as np
from program_builder import TYPES, Program, Weight
from programs import check, draw
from run_c import Driver

import nm_sparse
from nm_sparse import compiler
from nm_sparse.bindings.library import (
    Array,
    Result,
    element_of_kind,
    last_error,
    library,
    use_emulator,
)
from nm_sparse.interop.operands import numpy_type
from nm_sparse.runtime.program import Program as Compiled
from nm_sparse.runtime.program import compile

NUMBERS = {"f32": ctypes.c_float, "i32": ctypes.c_int32, "i64": ctypes.c_int64}


def pass_to(program: Program, filled: Sequence[np.ndarray]) -> List[object]:
    """Arguments as Function takes them."""
    passed: List[object] = []
    for argument, array in zip(program.arguments, filled):
        if isinstance(argument, Weight):
            passed.append(nm_sparse.pack(array, argument.encoding))
        else:
            passed.append(array)
    return passed


def flatten(program: Program, function, passed: Sequence) -> List[np.ndarray]:
    """Arguments of the kernels: weights as their components."""
    flat: List[np.ndarray] = []
    weights = 0
    for argument, value in zip(program.arguments, passed):
        if not isinstance(argument, Weight):
            flat.append(value)
            continue
        flat += function.prepare(value, weights).arrays
        weights += 1
    return flat


def run(*command: object) -> None:
    words = list(map(str, command))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}\n{done.stderr}")


class CFunction:
    """The function of C of one program, compiled and loaded."""

    def __init__(self, program: Program, options: Sequence[str], place: str, form: str):
        cuda, include = form.split(":")
        self.program = program
        self.driver = Driver(f"{cuda}/libcuda.so")
        base = pathlib.Path(place) / program.name
        text, source, library = (base.with_suffix(s) for s in (".mlir", ".c", ".so"))
        text.write_text(program.write())
        emit = ["--emit", "c", "--object", "emulator", "-o", source]
        run("nm-compile", text, *options, *emit)
        flags = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
        flags += ["-Wno-unused-parameter", "-fPIC", "-shared"]
        link = [f"-L{cuda}", "-lcuda", f"-Wl,-rpath,{cuda}"]
        run("clang-22", *flags, f"-I{include}", source, "-o", library, *link)
        header = base.with_suffix(".h").read_text()
        self.lines = re.findall(r"^ \* (\S+): (.*)$", header, re.MULTILINE)
        self.functions = ctypes.CDLL(str(library))
        match = re.search(rf"size_t {program.name}_workspace\((.*)\);", header)
        self.sizes = re.findall(r"(\w+)(?:,|$)", match[1])

    def get(self, ending: str = ""):
        return getattr(self.functions, self.program.name + ending)

    def __call__(
        self, flat: Sequence[object], wanted: Sequence[np.ndarray]
    ) -> List[np.ndarray]:
        """The results, which have the shapes of `wanted`."""
        found = self.launch(flat, wanted, False)
        for number, other in enumerate(self.launch(flat, wanted, True)):
            if found[number].tobytes() != other.tobytes():
                raise RuntimeError(f"with a workspace result {number} is another one")
        return found

    def make_workspace(self, known: Dict[str, object]) -> ctypes.c_void_p:
        """With contents that are no sums and no counters."""
        measure = self.get("_workspace")
        measure.restype = ctypes.c_size_t
        size = measure(*(known[name] for name in self.sizes if name != "void"))
        if size > 1 << 32:
            raise RuntimeError(f"the workspace has {size} bytes")
        if size == 0:
            return ctypes.c_void_p()
        return self.driver.upload(np.full(size, 0x7E, np.uint8))

    def launch(
        self, flat: Sequence[object], wanted: Sequence[np.ndarray], own: bool
    ) -> List[np.ndarray]:
        """The results; `own` is whether memory is the caller's."""
        given = iter(flat)
        passed: List[object] = [self.driver.stream]
        sizes: Dict[str, Sequence[int]] = {}
        found: Dict[int, tuple] = {}  # where each result is, and memory for it
        in_place: List[tuple] = []
        known: Dict[str, object] = {}  # numbers by their names
        for name, what in self.lines:
            if size := re.match(r"size (\d+) of (\S+)", what):
                passed.append(ctypes.c_int64(sizes[size[2]][int(size[1])]))
                known[name] = passed[-1]
            elif what in NUMBERS:
                passed.append(NUMBERS[what](next(given).item()))
                known[name] = passed[-1]
            elif result := re.fullmatch(r"result(\d+)", name):
                number = int(result[1])
                element = TYPES[self.program.results[number].element]
                poison = np.full(wanted[number].shape, 99, element)
                passed.append(self.driver.upload(poison))
                found[number] = passed[-1], poison
            elif not what.endswith("packed:"):
                array = np.asarray(next(given))
                sizes[name] = array.shape
                passed.append(self.driver.upload(array))
                if what.endswith("written"):
                    in_place.append((passed[-1], array.copy()))
        if own:
            passed.append(self.make_workspace(known))
        status = self.get("_with_workspace" if own else "")(*passed)
        if status:
            raise RuntimeError(f"it gives {status}")
        rest = iter(in_place)
        return [
            self.driver.download(*(found[i] if i in found else next(rest)))
            for i in range(len(wanted))
        ]


class Runtime:
    """The program, launched by our own runtime on emulated kernels."""

    def __init__(self, made: Compiled, program: Program):
        self.program = program
        use_emulator(made.chip)
        self.lib = library()
        command = [*made.arguments, "--emit=emulator"]
        image = compiler.run(command, made.source, ("kernels",)).files["kernels"]
        text = made.manifest_text.encode()
        self.handle = self.lib.nmsProgramCreate(text, len(text), image, len(image))
        self.number = self.lib.nmsProgramFunction(self.handle, program.name.encode())
        self.require(self.handle and self.number >= 0)

    @staticmethod
    def require(holds: object) -> None:
        if not holds:
            raise RuntimeError(last_error())

    def upload(self, data: bytes) -> int:
        address = self.lib.mgpuMemAlloc(max(len(data), 1), None, False)
        self.require(address)
        if data:
            self.lib.mgpuMemcpy(address, data, len(data), None)
        return address

    def fill(self, native: Array, value: np.ndarray) -> None:
        if value.ndim == 0:
            native.rank = -1
            bits = value.tobytes().ljust(8, b"\0")
            native.data = int.from_bytes(bits, "little")
            return
        native.data, native.rank = self.upload(value.tobytes()), value.ndim
        native.sizes = (ctypes.c_int64 * value.ndim)(*value.shape)
        native.strides = None

    def __call__(
        self, flat: Sequence[np.ndarray], wanted: Sequence[np.ndarray]
    ) -> List[np.ndarray]:
        natives = (Array * len(flat))()
        for native, value in zip(natives, flat):
            self.fill(native, np.ascontiguousarray(value) if value.ndim else value)
        call = self.handle, self.number, natives, len(flat)
        size = self.lib.nmsProgramWorkspace(*call)
        self.require(size >= 0)
        where = self.upload(b"")
        if size:
            where = self.lib.mgpuMemAlloc(size, None, False)
        self.require(self.lib.nmsProgramLaunch(*call, where, None) == 0)
        found = []
        for i in range(len(wanted)):
            result = Result()
            self.require(self.lib.nmsProgramResult(*call, i, ctypes.byref(result)) == 0)
            base = where
            if result.argument >= 0:
                base = natives[result.argument].data
            y = self.download(result, base + result.offset)
            # numpy itself has no bf16.
            found.append(y.view(TYPES[self.program.results[i].element]))
        return found

    def download(self, result: Result, address: int) -> np.ndarray:
        """By rows: there may be others between them, which nothing wrote."""
        shape = tuple(result.sizes[: result.rank])
        strides = result.strides[: result.rank]
        y = np.zeros(shape, numpy_type(element_of_kind(result.kind)))
        row = max(strides[-1] * (shape[-1] - 1) + 1, 0)
        for place in np.ndindex(*shape[:-1]):
            at = sum(i * step for i, step in zip(place, strides))
            data = np.zeros(row, y.dtype)
            if row:
                address_of_row = address + at * y.itemsize
                self.lib.mgpuMemcpy(data.ctypes.data, address_of_row, data.nbytes, None)
            y[place] = data[:: strides[-1]]
        return y


def find_problems(
    program: Program, form: str, tokens: Sequence[int], place: str, seed: int
) -> Iterator[str]:
    """Empty for each call, and what is wrong with it."""
    rng = np.random.default_rng(seed)
    counts = sorted({max(t, 1) for t in tokens})
    options = ["--layout=feature-major"] if rng.random() < 0.2 else []
    options += ["--launches=separate"] if rng.random() < 0.2 else []
    is_c = ":" in form
    made = compile(
        program.write(),
        chip="sm_90a",
        tokens=counts,
        options=[*options, f"--arguments={'bound' if is_c else form}"],
        use_cache=False,
    )
    if is_c:
        options.append(f"--tokens={','.join(map(str, counts))}")
        call = CFunction(program, options, place, form)
    else:
        call = Runtime(made, program)
    for count in tokens if program.tokens < 0 else [program.tokens]:
        filled = program.fill(count, rng)
        wanted = program.compute(filled)
        passed = pass_to(program, filled)
        found = call(flatten(program, made[program.name], passed), wanted)
        yield ""
        for number, (a, b) in enumerate(zip(found, wanted)):
            if problem := check(a, b, program.results[number].element):
                yield f"{count} tokens, result {number}: {problem}"


def main() -> None:
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    form, seed, count, *tokens = sys.argv[1:split]
    calls = wrong = 0
    with tempfile.TemporaryDirectory() as place:
        drawn = draw(int(seed), int(count), sys.argv[split + 1 :])
        for number, program in enumerate(drawn):
            try:
                for problem in find_problems(
                    program, form, list(map(int, tokens)), place, number
                ):
                    calls += not problem
                    wrong += bool(problem)
                    if problem:
                        print(f"{program.name}: {problem}")
            except (Exception, SystemExit) as error:
                wrong += 1
                print(f"{program.name}: {type(error).__name__}: {error}")
    print(f"{calls} calls, {wrong} wrong")


if __name__ == "__main__":
    main()

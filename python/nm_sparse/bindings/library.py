# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler and the runtime: libnm_sparse.so, through ctypes.

The wheel of the package holds the library. Elsewhere the environment variable
NM_SPARSE_LIBRARY names it, or the folder of a build that has it. Its interface is
C, in `nm_sparse-c/Compiler.h`, `nm_sparse-c/Tuner.h`, `nm_sparse/Runtime/*.h` and
`nm_sparse/Packing/Packing.h`.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import threading
from ctypes import (
    POINTER,
    c_bool,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_uint64,
    c_void_p,
)
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Optional, Tuple

ABI_VERSION = 1
MAX_RANK = 8
CHECK_FAILED = 2  # NMS_CHECK_FAILED of Runtime/Program.h
# Element types by NmsKind, spelled as in MLIR.
KINDS = ("f32", "f16", "bf16", "i8", "i32", "f64", "f8E4M3FN", "f8E5M2")
_NAME = "libnm_sparse.so"
_emulates = False


class LibraryNotFoundError(RuntimeError):
    """The compiler's library is not there, or is not this package's."""


class RuntimeFailure(RuntimeError):
    """What the runtime says of a call that failed: a driver's error, most often."""


class Array(ctypes.Structure):
    """NmsArray of Runtime/Program.h."""

    _fields_ = [
        ("data", c_void_p),
        ("rank", c_int32),
        ("sizes", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
    ]


class Result(ctypes.Structure):
    """NmsResult of Runtime/Program.h."""

    _fields_ = [
        ("argument", c_int32),
        ("kind", c_int32),
        ("offset", c_int64),
        ("rank", c_int32),
        ("sizes", c_int64 * MAX_RANK),
        ("strides", c_int64 * MAX_RANK),
    ]


class HostArray(ctypes.Structure):
    """NmSparseHostArray of nm_sparse-c/Compiler.h."""

    _fields_ = [
        ("data", c_void_p),
        ("kind", c_int32),
        ("elementBytes", c_int32),
        ("rank", c_int32),
        ("sizes", POINTER(c_int64)),
    ]


class DeviceInfo(ctypes.Structure):
    """NmsDeviceInfo of Runtime/Driver.h."""

    _fields_ = [
        ("name", ctypes.c_char * 256),
        *[
            (name, c_int32)
            for name in (
                "ordinal ccMajor ccMinor multiprocessors sharedPerBlock "
                "sharedPerBlockOptin sharedPerMultiprocessor "
                "registersPerMultiprocessor l2Bytes clockKHz memoryClockKHz "
                "memoryBusBits driverVersion"
            ).split()
        ],
        ("memoryBytes", ctypes.c_uint64),
    ]


class TuneOptions(ctypes.Structure):
    """NmSparseTuneOptions of nm_sparse-c/Tuner.h."""

    _fields_ = [
        ("database", c_char_p),
        ("lock", c_char_p),
        ("candidates", c_int64),
        ("neighbours", c_int64),
        ("sampleMs", c_int64),
        ("seed", c_uint64),
        ("minutes", c_double),
        ("emulates", c_int32),
    ]


# NmSparseTuned of nm_sparse-c/Tuner.h.
TUNED = ctypes.CFUNCTYPE(c_int32, c_char_p, c_void_p)
# NmsProgress of Packing/Packing.h.
PROGRESS = ctypes.CFUNCTYPE(None, c_void_p, c_int64, c_int64)

_TEXT = (c_void_p, [c_void_p, POINTER(c_size_t)])
# Result and arguments of each function that the package calls.
_FUNCTIONS: dict[str, Tuple[Any, list]] = {
    "nmSparseAbiVersion": (c_int32, []),
    "nmSparseVersion": (c_char_p, []),
    "nmSparseCompile": (
        c_void_p,
        [POINTER(c_char_p), c_int32, c_char_p, c_size_t],
    ),
    "nmSparseOutputStatus": (c_int32, [c_void_p]),
    "nmSparseOutputText": _TEXT,
    "nmSparseOutputErrors": _TEXT,
    "nmSparseOutputFile": (c_void_p, [c_void_p, c_char_p, POINTER(c_size_t)]),
    "nmSparseOutputDestroy": (None, [c_void_p]),
    "nmSparseOracleCreate": (c_void_p, [c_char_p, c_size_t, c_char_p]),
    "nmSparseOracleArguments": (c_int32, [c_void_p]),
    "nmSparseOracleCall": (c_int32, [c_void_p, POINTER(HostArray), c_int32]),
    "nmSparseOracleResults": (c_int32, [c_void_p]),
    "nmSparseOracleResult": (HostArray, [c_void_p, c_int32]),
    "nmSparseOracleDestroy": (None, [c_void_p]),
    "nmSparseUseEmulator": (c_int32, [c_char_p]),
    "nmSparseTunerCreate": (
        c_void_p,
        [c_char_p, c_char_p, POINTER(c_int64), c_int32],
    ),
    "nmSparseTunerAdd": (
        c_int32,
        [c_void_p, c_char_p, c_size_t, c_char_p, c_int32],
    ),
    "nmSparseTunerList": (c_char_p, [c_void_p]),
    "nmSparseTunerRun": (
        c_int32,
        [c_void_p, POINTER(TuneOptions), TUNED, c_void_p],
    ),
    "nmSparseTunerDestroy": (None, [c_void_p]),
    "nmsProgramCreate": (c_void_p, [c_char_p, c_size_t, c_char_p, c_size_t]),
    "nmsProgramDestroy": (None, [c_void_p]),
    "nmsProgramFunction": (c_int32, [c_void_p, c_char_p]),
    "nmsProgramArguments": (c_int32, [c_void_p, c_int32]),
    "nmsProgramResults": (c_int32, [c_void_p, c_int32]),
    "nmsProgramWorkspace": (
        c_int64,
        [c_void_p, c_int32, POINTER(Array), c_int32],
    ),
    "nmsProgramResult": (
        c_int32,
        [c_void_p, c_int32, POINTER(Array), c_int32, c_int32, POINTER(Result)],
    ),
    # An allocator and its context: only the launcher calls it.
    "nmsProgramCall": (
        c_int32,
        [c_void_p, c_int32, POINTER(Array), c_int32, c_void_p, c_void_p, c_void_p],
    ),
    "nmsProgramLaunch": (
        c_int32,
        [c_void_p, c_int32, POINTER(Array), c_int32, c_void_p, c_void_p],
    ),
    "nmsProgramCheck": (
        c_int32,
        [c_void_p, c_int32, POINTER(Array), c_int32, c_void_p, c_void_p],
    ),
    "nmsLastError": (c_char_p, []),
    "nmsSetErrorHandler": (None, [c_void_p, c_void_p]),
    "nmsDeviceAvailable": (c_int32, []),
    "nmsDeviceInfo": (c_int32, [POINTER(DeviceInfo)]),
    "nmsSetDevice": (c_int32, [c_int32]),
    "mgpuMemAlloc": (c_void_p, [ctypes.c_uint64, c_void_p, c_bool]),
    "mgpuMemFree": (None, [c_void_p, c_void_p]),
    "mgpuMemcpy": (None, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "mgpuStreamSynchronize": (None, [c_void_p]),
    "nmsPack": (c_int32, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "nmsUnpack": (c_int32, [c_void_p, POINTER(c_void_p), c_void_p]),
    "nmsPackShuffled": (
        c_int32,
        [c_void_p, c_int32, c_void_p, POINTER(c_void_p), c_void_p],
    ),
    "nmsPackBitmap": (c_int32, [c_void_p] * 5),
    "nmsUnpackBitmap": (c_int32, [c_void_p] * 5),
    "nmsCountFree": (c_int64, [c_void_p] * 2),
    "nmsPackFree": (c_int32, [c_void_p] * 5),
    "nmsUnpackFree": (c_int32, [c_void_p, c_int64] + [c_void_p] * 4),
    "nmsCountFreeBitmap": (c_int64, [c_void_p] * 2),
    "nmsPackFreeBitmap": (c_int32, [c_void_p] * 4),
    "nmsUnpackFreeBitmap": (c_int32, [c_void_p, c_int64] + [c_void_p] * 3),
    "nmsCountRagged": (c_int64, [c_void_p, c_int64, c_void_p]),
    "nmsPackRagged": (c_int32, [c_void_p, c_int64] + [c_void_p] * 4),
    "nmsPrune": (c_int32, [c_void_p] * 3),
    "nmsPruneMask": (c_int32, [c_void_p] * 3),
    "nmsPruneFree": (c_int32, [c_void_p, c_double, c_void_p, c_void_p]),
    "nmsPruneFreeMask": (c_int32, [c_void_p, c_double, c_void_p, c_void_p]),
    "nmsFindOrder": (c_int32, [c_void_p] * 3),
    "nmsSearchOrder": (
        c_int32,
        [c_void_p, c_double, c_uint64, c_void_p, c_void_p, PROGRESS, c_void_p],
    ),
    "nmsInnermostSpec": (c_int32, [c_void_p, c_void_p]),
}


def element_of_kind(kind: int) -> str:
    """MLIR's name for a NmsKind."""
    if not 0 <= kind < len(KINDS):
        raise RuntimeFailure(
            f"a result has elements of kind {kind}: legal are those of "
            f"{', '.join(KINDS)}"
        )
    return KINDS[kind]


@lru_cache(maxsize=None)
def _find(given: Optional[str]) -> Path:
    """The library, where the environment says `given`. Asked on every call, and so
    kept; that there is none is not."""
    if given:
        where = Path(given)
        for candidate in (where, where / _NAME, where / "lib" / _NAME):
            if candidate.is_file():
                return candidate
        raise LibraryNotFoundError(
            f"NM_SPARSE_LIBRARY is {given!r}: legal is {_NAME}, or a folder with it"
        )
    own = Path(__file__).parents[1] / "lib" / _NAME
    if own.is_file():
        return own
    raise LibraryNotFoundError(
        f"{_NAME} is not in the package: install the wheel of nm-sparse, or set "
        "NM_SPARSE_LIBRARY to the library of a build"
    )


_refused = threading.local()


@ctypes.CFUNCTYPE(None, c_char_p, c_void_p)
def _keep_message(message: bytes, data: int) -> None:
    """Where a function has no status: `checked` raises what it says."""
    _refused.message = message.decode(errors="replace")


def checked(function: Callable[..., Any], *operands: Any) -> Any:
    """What a function of the library without a status returns, such as `mgpuMemcpy`.

    Raises RuntimeFailure when it fails.
    """
    _refused.message = None
    result = function(*operands)
    if _refused.message is not None:
        raise RuntimeFailure(_refused.message)
    return result


@lru_cache(maxsize=None)
def _load(path: Path) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise LibraryNotFoundError(f"{path} cannot be loaded: {error}") from None
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:
            raise LibraryNotFoundError(f"{path} has no {name}: it is of another build")
        function.restype, function.argtypes = result, arguments
    found = library.nmSparseAbiVersion()
    if found != ABI_VERSION:
        raise LibraryNotFoundError(
            f"{path} has ABI version {found}, this package knows {ABI_VERSION}: "
            "install both anew"
        )
    library.nmsSetErrorHandler(ctypes.cast(_keep_message, c_void_p), None)
    return library


def library() -> ctypes.CDLL:
    """The library, with the types of its functions set.

    Raises LibraryNotFoundError where it is not there or is of another version.
    """
    return _load(path())


def path() -> Path:
    """Where the library is. Raises LibraryNotFoundError where it is not there."""
    return _find(os.environ.get("NM_SPARSE_LIBRARY"))


def available() -> bool:
    """Whether `library()` succeeds."""
    try:
        library()
    except LibraryNotFoundError:
        return False
    return True


def version() -> str:
    """One line: version and commit of the library, and LLVM's version."""
    return library().nmSparseVersion().decode()


def last_error() -> str:
    """What the runtime said last on this thread."""
    return library().nmsLastError().decode(errors="replace")


@lru_cache(maxsize=None)
def launcher() -> Optional[ModuleType]:
    """The C module that launches, or None: ctypes does the same, ten times slower
    (docs/decisions/069-launching-from-python.md)."""
    file = path().parent / "_launch.abi3.so"
    if not file.is_file():
        return None
    name = "nm_sparse._launch"
    loader = importlib.machinery.ExtensionFileLoader(name, str(file))
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
    if spec is None:
        return None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def use_emulator(chip: str) -> None:
    """From now on kernels run in the emulator, of `chip`.

    Raises RuntimeFailure, also where the process has used a GPU.
    """
    if library().nmSparseUseEmulator(chip.encode()):
        raise RuntimeFailure(last_error())
    note_emulator()


def note_emulator() -> None:
    """Kernels run in the emulator from now on: the library has seen to it."""
    global _emulates
    _emulates = True


def emulates() -> bool:
    """Whether kernels run in the emulator."""
    return _emulates


def device_info(ordinal: int = 0) -> Optional[DeviceInfo]:
    """What the driver says of GPU `ordinal`, or None where there is none, as in a
    process that uses the emulator."""
    return None if _emulates else _device_info(ordinal)


@lru_cache(maxsize=None)
def _device_info(ordinal: int) -> Optional[DeviceInfo]:
    lib = library()
    info = DeviceInfo()
    before = lib.nmsSetDevice(ordinal)
    try:
        return None if lib.nmsDeviceInfo(ctypes.byref(info)) else info
    finally:
        lib.nmsSetDevice(before)


def device_chip(ordinal: int = 0) -> Optional[str]:
    """The chip of GPU `ordinal` as compilers name it (sm_90a), or None."""
    info = device_info(ordinal)
    if info is None:
        return None
    # Kernels for these use instructions of the architecture alone.
    suffix = "a" if info.ccMajor >= 9 else ""
    return f"sm_{info.ccMajor}{info.ccMinor}{suffix}"


def device_gpu(ordinal: int = 0) -> Optional[str]:
    """The GPU whose measured rates choose kernels: h100, h200, or None."""
    info = device_info(ordinal)
    name = info.name.decode(errors="replace").lower() if info else ""
    return next((gpu for gpu in ("h200", "h100") if gpu in name), None)

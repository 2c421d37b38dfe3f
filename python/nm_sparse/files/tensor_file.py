# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of named tensors (safetensors): read with every bound checked, and written.

A file is a length of 8 bytes, a JSON header that says where each tensor lies, and
the tensors. Nothing in it can run. The reader is our own, because elements come as
this package has them, bf16 and f8 as unsigned integers, and because an error names
the tensor, what was found and what is legal.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    BinaryIO,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np

PathLike = Union[str, "os.PathLike[str]"]

LARGEST_HEADER = 100_000_000  # bytes; the format's own limit

# Type as files spell it -> (bits, numpy type of its arrays if it has one, type as
# MLIR spells it if a weight may have it).
DTYPES: Dict[str, Tuple[int, Optional[type], Optional[str]]] = {
    "BOOL": (8, np.bool_, None),
    "F4": (4, None, None),
    "F6_E2M3": (6, None, None),
    "F6_E3M2": (6, None, None),
    "U8": (8, np.uint8, None),
    "I8": (8, np.int8, "i8"),
    "F8_E5M2": (8, np.uint8, "f8E5M2"),
    "F8_E4M3": (8, np.uint8, "f8E4M3FN"),
    "F8_E8M0": (8, np.uint8, None),
    "F8_E4M3FNUZ": (8, np.uint8, None),
    "F8_E5M2FNUZ": (8, np.uint8, None),
    "I16": (16, np.int16, None),
    "U16": (16, np.uint16, None),
    "F16": (16, np.float16, "f16"),
    "BF16": (16, np.uint16, "bf16"),
    "I32": (32, np.int32, None),
    "U32": (32, np.uint32, None),
    "F32": (32, np.float32, "f32"),
    "C64": (64, np.complex64, None),
    "F64": (64, np.float64, None),
    "I64": (64, np.int64, None),
    "U64": (64, np.uint64, None),
}

# The other way round.
FILE_TYPES = {mlir: name for name, (_, _, mlir) in DTYPES.items() if mlir}


class CheckpointError(ValueError):
    """A file or a tensor in it is not what it should be."""


@dataclass(frozen=True)
class TensorInfo:
    """What a file says of one of its tensors.

    dtype:       as the file spells it.
    start, end:  its bytes, counted from the start of the file.
    """

    name: str
    dtype: str
    shape: Tuple[int, ...]
    start: int
    end: int

    @property
    def size(self) -> int:
        """In bytes."""
        return self.end - self.start

    @property
    def element_type(self) -> Optional[str]:
        """As MLIR spells it; None where no weight may have it."""
        return DTYPES[self.dtype][2]


class _Duplicate(ValueError):
    pass


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    result: Dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise _Duplicate(f"{key!r} is there twice")
        key.encode()  # half a pair of surrogates is no text
        result[key] = value
    return result


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def parse_json(text: bytes, path: PathLike, what: str) -> Dict[str, Any]:
    """A JSON object whose names are unique. `what` says which part of the file it is.

    Raises CheckpointError.
    """
    try:
        value = json.loads(
            text.decode(), object_pairs_hook=_unique, parse_constant=_refuse
        )
    except _Duplicate as error:
        raise CheckpointError(f"{path}: in {what}, {error}") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: {what} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: {what} is not a JSON object")
    return value


def _show(value: Any) -> str:
    """What a file says, at most as much as a line holds."""
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "..."


def _count(shape: List[int]) -> int:
    """The number of elements, or more than any file has."""
    count = 0 if 0 in shape else 1
    for size in shape:
        count = min(count * size, 1 << 63)
    return count


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _parse_tensor(name: str, entry: Any, data: int, path: PathLike) -> TensorInfo:
    """`data` is where the first tensor lies."""

    def fail(found: str, legal: str) -> None:
        raise CheckpointError(f"{path}: tensor {name!r} {found}: legal is {legal}")

    if not isinstance(entry, dict):
        fail(f"is {type(entry).__name__}", "an object")
    for key in ("dtype", "shape", "data_offsets"):
        if key not in entry:
            fail(f"has no {key}", "dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        fail(f"has dtype {_show(dtype)}", ", ".join(DTYPES))
    if not isinstance(shape, list) or not all(map(_is_size, shape)):
        fail(f"has shape {_show(shape)}", "a list of sizes")
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(map(_is_size, offsets))
        or offsets[0] > offsets[1]
    ):
        fail(f"has data_offsets {_show(offsets)}", "[begin, end] with begin <= end")
    bits = _count(shape) * DTYPES[dtype][0]
    if bits != (offsets[1] - offsets[0]) * 8:
        fail(
            f"has {offsets[1] - offsets[0]} bytes",
            f"{bits / 8:.15g} for {dtype} of shape {_show(shape)}",
        )
    return TensorInfo(name, dtype, tuple(shape), offsets[0] + data, offsets[1] + data)


class TensorFile:
    """A file of named tensors. Opening reads the header alone.

    path:      of the file.
    tensors:   what it holds, by name, in the order of their bytes.
    metadata:  text that is stored beside them.
    """

    def __init__(self, path: PathLike) -> None:
        """Raises CheckpointError when the file is not whole or its header is not
        legal, and OSError when it cannot be read."""
        self.path = Path(path)
        if self.path.exists() and not self.path.is_file():
            raise CheckpointError(f"{path}: legal is a file")
        size = self.path.stat().st_size
        with open(self.path, "rb") as file:
            head = file.read(8)
            length = int.from_bytes(head, "little")
            if len(head) < 8 or length > min(size - 8, LARGEST_HEADER):
                raise CheckpointError(
                    f"{path}: the header has {length} bytes and the file {size}: legal "
                    f"is a header of at most {LARGEST_HEADER} that is in the file; "
                    "this is no safetensors file, or a part of one"
                )
            header = parse_json(file.read(length), path, "the header")
        self.metadata = self._metadata(header.pop("__metadata__", {}))
        tensors = [_parse_tensor(n, e, 8 + length, path) for n, e in header.items()]
        tensors.sort(key=lambda tensor: (tensor.start, tensor.end))
        self._check_places(tensors, 8 + length, size)
        self.tensors = {tensor.name: tensor for tensor in tensors}

    def _metadata(self, entry: Any) -> Dict[str, str]:
        if not isinstance(entry, dict):
            raise CheckpointError(f"{self.path}: __metadata__ is not an object")
        for key, value in entry.items():
            if not isinstance(value, str):
                raise CheckpointError(
                    f"{self.path}: {key!r} of __metadata__ is {_show(value)}: "
                    "legal is text"
                )
        return entry

    def _check_places(self, tensors: List[TensorInfo], at: int, size: int) -> None:
        """Each byte from `at` on belongs to exactly one tensor."""
        first, before = at, "the header"
        for tensor in tensors:
            where = f"{self.path}: tensor {tensor.name!r} has the bytes " + (
                f"{tensor.start - first} to {tensor.end - first}"
            )
            if tensor.end > size:
                raise CheckpointError(
                    f"{where}: legal is up to {size - first}, where the file ends; it "
                    "may be a part of one"
                )
            if tensor.start != at:
                raise CheckpointError(
                    f"{where}: legal is a start at {at - first}, where {before} ends"
                )
            at, before = tensor.end, repr(tensor.name)
        if at != size:
            raise CheckpointError(
                f"{self.path}: {size - at} bytes follow {before}: legal is none"
            )

    def read(self, name: str, first: int = 0, stop: Optional[int] = None) -> np.ndarray:
        """A tensor; bf16 and f8 as unsigned views.

        first, stop:  which rows, of the first dimension; all by default.

        Raises CheckpointError when there is none of this name, it has not these rows,
        or numpy has no place for its type."""
        tensor = self.tensors.get(name)
        if tensor is None:
            raise CheckpointError(f"{self.path}: there is no tensor {name!r}")
        numpy_type = DTYPES[tensor.dtype][1]
        if numpy_type is None:
            raise CheckpointError(
                f"{self.path}: tensor {name!r} has dtype {tensor.dtype}: legal is one "
                "of whole bytes"
            )
        shape, start = tensor.shape, tensor.start
        if first or stop is not None:
            shape, start = self._rows(tensor, first, stop)
        little = np.dtype(numpy_type).newbyteorder("<")
        count = _count(list(shape))
        array = np.fromfile(self.path, little, count, offset=start)
        if array.size != count:
            raise CheckpointError(f"{self.path}: the file was cut while it was read")
        try:
            return array.reshape(shape).astype(numpy_type, copy=False)
        except ValueError:  # too many dimensions, or without elements too large
            raise CheckpointError(
                f"{self.path}: tensor {name!r} has shape {_show(list(tensor.shape))}: "
                "legal is one that numpy has"
            ) from None

    def _rows(
        self, tensor: TensorInfo, first: int, stop: Optional[int]
    ) -> Tuple[Tuple[int, ...], int]:
        """The shape of some rows, and where they begin."""
        rows = tensor.shape[0] if tensor.shape else 0
        stop = rows if stop is None else stop
        if not 0 <= first <= stop <= rows:
            raise CheckpointError(
                f"{self.path}: tensor {tensor.name!r} is asked for the rows {first} to "
                f"{stop}: legal are 0 to {rows}"
            )
        step = tensor.size // max(rows, 1)
        return (stop - first, *tensor.shape[1:]), tensor.start + first * step


def make_header(
    entries: Mapping[str, Tuple[str, Sequence[int], int]], metadata: Mapping[str, str]
) -> bytes:
    """What a file begins with, of {name: (type, shape, bytes)} in their order there."""
    header: Dict[str, Any] = {}
    at = 0
    for name, (dtype, shape, size) in entries.items():
        header[name] = {"data_offsets": [at, at + size], "dtype": dtype}
        header[name]["shape"] = list(shape)
        at += size
    if metadata:
        header["__metadata__"] = dict(metadata)
    text = json.dumps(
        header, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def file_order(tensors: Mapping[str, Tuple[str, Any]]) -> List[str]:
    """The names of tensors as they lie in a file, {name: (type, anything)}: wide
    elements first, which aligns all of them, then by name."""
    return sorted(tensors, key=lambda name: (-DTYPES[tensors[name][0]][0], name))


@contextmanager
def replaced_file(path: PathLike) -> Iterator[BinaryIO]:
    """A new file, which is at `path` when the block ends, whole, and not at all when it
    raises."""
    # A link stays one: what it names is replaced.
    target = Path(path).resolve()
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def write_tensors(
    path: PathLike,
    tensors: Mapping[str, Tuple[str, np.ndarray]],
    metadata: Mapping[str, str],
) -> None:
    """Writes a file, whole or not at all, of {name: (type as files spell it, array)}.
    Tensors of wide elements come first, which aligns all of them, then by name.

    Raises CheckpointError when an array has not the type that is said.
    """
    for name, (dtype, array) in tensors.items():
        check_type(path, name, dtype, array)
    order = file_order(tensors)
    entries = {
        name: (tensors[name][0], tensors[name][1].shape, tensors[name][1].nbytes)
        for name in order
    }
    with replaced_file(path) as file:
        file.write(make_header(entries, metadata))
        for name in order:
            file.write(little_endian(tensors[name][1]))


def check_type(path: PathLike, name: str, dtype: str, array: np.ndarray) -> None:
    """Raises CheckpointError unless `array` has the type that a file names `dtype`."""
    if dtype not in DTYPES or array.dtype != DTYPES[dtype][1]:
        raise CheckpointError(
            f"{path}: tensor {name!r} is an array of {array.dtype}, which is not "
            f"{dtype}"
        )


def little_endian(array: np.ndarray) -> bytes:
    """The bytes of an array as they stand in a file."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()

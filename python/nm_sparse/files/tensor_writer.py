# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of named tensors that are written one tensor at a time.

A file begins with what it holds, and packed weights have a size that only packing
tells. So the tensors are put down in a file without a name first, which vanishes with
the process, and are copied when all are there.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Dict, Mapping, Optional, Tuple, Type

import numpy as np

from .tensor_file import (
    CheckpointError,
    PathLike,
    TensorInfo,
    check_type,
    file_order,
    little_endian,
    make_header,
    replaced_file,
)

BUFFER = 1 << 24  # bytes that are copied at once


class TensorWriter:
    """Writes a safetensors file: whole when `finish` returns, and not at all before.

    path:  of the file. Its folder holds the tensors until then.

    Raises OSError when the folder cannot be written to.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        folder = self.path.resolve().parent
        self._spool: BinaryIO = tempfile.TemporaryFile(dir=folder)  # type: ignore
        self._end = 0
        # By name: type, (shape, where it begins, bytes).
        self._tensors: Dict[str, Tuple[str, Any]] = {}

    def __enter__(self) -> "TensorWriter":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._spool.close()

    def add(self, name: str, dtype: str, array: np.ndarray) -> None:
        """Adds a tensor of the type that files spell `dtype`; bf16 and f8 as unsigned.

        Raises CheckpointError when the name is taken or the array has another type.
        """
        check_type(self.path, name, dtype, array)
        self._enter(name, dtype, array.shape, array.nbytes)
        self._spool.write(little_endian(array))

    def copy(self, tensor: TensorInfo, path: PathLike) -> None:
        """Adds a tensor of another file as it is, of whatever type.

        Raises CheckpointError when the name is taken or the file was cut.
        """
        self._enter(tensor.name, tensor.dtype, tensor.shape, tensor.size)
        with open(path, "rb") as file:
            file.seek(tensor.start)
            _copy(file, self._spool, tensor.size, path)

    def _enter(self, name: str, dtype: str, shape: Tuple[int, ...], size: int) -> None:
        if name in self._tensors:
            raise CheckpointError(f"{self.path}: tensor {name!r} is there twice")
        self._tensors[name] = (dtype, (shape, self._end, size))
        self._end += size

    def finish(self, metadata: Mapping[str, str]) -> None:
        """Makes the file, with text beside the tensors."""
        order = file_order(self._tensors)
        places = {name: self._tensors[name] for name in order}
        entries = {n: (t, shape, size) for n, (t, (shape, _, size)) in places.items()}
        with replaced_file(self.path) as file:
            file.write(make_header(entries, metadata))
            for _, (_, start, size) in places.values():
                self._spool.seek(start)
                _copy(self._spool, file, size, self.path)


def _copy(source: BinaryIO, target: BinaryIO, size: int, path: PathLike) -> None:
    while size:
        part = source.read(min(size, BUFFER))
        if not part:
            raise CheckpointError(f"{path}: the file was cut while it was read")
        target.write(part)
        size -= len(part)

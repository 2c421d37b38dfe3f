# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Safetensors files whose tensors are known before their contents, and are written in
any order, also in parts. The file has its name when it is whole, and not before."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type

import numpy as np

from ..tensor_file import (
    CheckpointError,
    PathLike,
    TensorInfo,
    check_type,
    file_order,
    make_header,
)
from ..tensor_writer import BUFFER

# Type as files spell it, shape, bytes.
Entry = Tuple[str, Tuple[int, ...], int]


class ShardWriter:
    """Writes a file of these entries, by name.

    Raises CheckpointError when an array is not what its entry says, and at the end when
    a tensor was not written.
    """

    def __init__(
        self, path: Path, entries: Mapping[str, Entry], metadata: Mapping[str, str]
    ) -> None:
        self.path, self.entries = path, dict(entries)
        self._part = path.with_name(path.name + ".part")
        order = file_order(self.entries)
        ordered = {name: self.entries[name] for name in order}
        header = make_header(ordered, metadata)
        self._starts: Dict[str, int] = {}
        at = len(header)
        for name in order:
            self._starts[name] = at
            at += self.entries[name][2]
        self._left = {name: entry[2] for name, entry in self.entries.items()}
        self._file: Any = open(self._part, "wb")
        self._file.write(header)
        self._file.truncate(at)

    def __enter__(self) -> "ShardWriter":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if not self._file.closed:
            self._file.close()
            os.unlink(self._part)

    def add(self, name: str, array: np.ndarray, start: int = 0) -> None:
        """Writes a tensor, or a part of it that begins `start` bytes in it."""
        kind, _, size = self.entries[name]
        check_type(self.path, name, kind, array)
        if start + array.nbytes > size:
            raise CheckpointError(
                f"{self.path}: tensor {name!r} is {start + array.nbytes} bytes: legal "
                f"is {size}"
            )
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        self._file.seek(self._starts[name] + start)
        # Without a copy, which would be as large as the weight.
        self._file.write(np.ascontiguousarray(little).reshape(-1).view(np.uint8))
        self._left[name] -= array.nbytes

    def copy(self, name: str, tensor: TensorInfo, path: PathLike) -> None:
        """Writes a tensor of another file as it is."""
        self._file.seek(self._starts[name])
        with open(path, "rb") as file:
            file.seek(tensor.start)
            left = tensor.size
            while left:
                part = file.read(min(left, BUFFER))
                if not part:
                    raise CheckpointError(f"{path}: the file was cut while it was read")
                self._file.write(part)
                left -= len(part)
        self._left[name] -= tensor.size

    def finish(self) -> None:
        """Gives the file its name."""
        missing = [name for name, left in self._left.items() if left]
        if missing:
            raise CheckpointError(f"{self.path}: tensor {missing[0]!r} is not whole")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._part, self.path)


def split_shards(
    groups: Sequence[Tuple[Any, Mapping[str, Entry]]], largest: int
) -> List[List[Any]]:
    """Puts things, each with its entries, in files of at most `largest` bytes, in their
    order; what is larger is alone in one."""
    shards: List[List[Any]] = []
    size = 0
    for thing, entries in groups:
        own = sum(entry[2] for entry in entries.values())
        if not shards or size + own > largest:
            shards.append([])
            size = 0
        shards[-1].append(thing)
        size += own
    return shards

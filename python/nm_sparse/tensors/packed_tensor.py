# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`pack` and `PackedTensor`: a packed weight that is handled as one array.

The packed layout is that of docs/Encoding.md, and so is the file.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Mapping, Optional, Tuple

import numpy as np

from ..encoding import Encoding, EncodingError, Packed
from ..files.packed_file import packed_prefixes, read_packed, write_packed
from ..files.tensor_file import PathLike, TensorFile
from ..interop.arrays import to_host
from ..packing import canonical
from ..reference import _bits
from ..runtime.placed import on_host
from . import device_packing


class PackedTensor:
    """A weight in packed form, in the memory of the host or, where `pack` packed it
    there, of a GPU.

    >>> weight = np.array([[0.0, 3.0, 0.0, 4.0], [1.0, 0.0, 0.0, 2.0]], np.float32)
    >>> packed = pack(weight, Encoding("2:4", dim=1))
    >>> packed
    PackedTensor('2:4, dim = 1', shape=(2, 4), dtype='f32', nbytes=20)
    >>> packed.components["index"].T
    array([[1, 3],
           [0, 3]], dtype=uint8)
    >>> packed.to_dense()
    array([[0., 3., 0., 4.],
           [1., 0., 0., 2.]], dtype=float32)
    """

    def __init__(self, packed: Packed) -> None:
        self._stored = packed
        self._back: Optional[Callable[[np.ndarray], Any]] = None

    @functools.cached_property
    def packed(self) -> Packed:
        """The same weight in numpy arrays; copied from the GPU on first use."""
        return on_host(self._stored)

    @property
    def placed(self) -> Optional[Packed]:
        """The same weight in arrays on a GPU, where it was packed there."""
        parts = self._stored.components.values()
        is_there = not any(isinstance(part, np.ndarray) for part in parts)
        return self._stored if is_there else None

    @property
    def components(self) -> Mapping[str, Any]:
        """The plain tensors that hold the weight, by name: numpy arrays, or arrays of
        torch or cupy on the GPU where it was packed."""
        return self._stored.components

    @property
    def encoding(self) -> Encoding:
        return self._stored.encoding

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of the dense weight."""
        return tuple(self._stored.shape)

    @property
    def dtype(self) -> str:
        """Element type, spelled as in MLIR; numpy holds bf16 and f8 as unsigned."""
        return self._stored.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all components."""
        return sum(int(part.nbytes) for part in self.components.values())

    @property
    def density(self) -> float:
        """The share of the dense weight's elements that are not zero, 0 to 1."""
        bits, sign = _bits(self.packed.values, self.dtype, "values")
        live = np.count_nonzero(bits & ~bits.dtype.type(sign))
        return live / max(math.prod(self.shape), 1)

    def to_dense(self, like: Any = None) -> Any:
        """The dense weight, of `shape`.

        like:  an array, whose kind and device the result is to have; by default those
               of what was packed, and numpy for what was read from a file.

        Raises EncodingError when components are not legal, or `like` has not the
        element type of the weight.
        """
        dense = canonical.decode(self.packed)
        if like is not None:
            return to_host(like, self.dtype, "like").restore(dense)
        return dense if self._back is None else self._back(dense)

    def save(
        self, path: PathLike, name: str = "weight", storage: str = "canonical"
    ) -> None:
        """Writes a safetensors file that holds this weight alone, whole or not at all.

        name:     of the weight: its tensors are `name.values` and so on.
        storage:  "canonical", or "bitmap" or "k_major" for a form that kernels read.

        Raises EncodingError when the weight has no such form or is f64.
        """
        write_packed(path, {name: self.packed}, storage)

    @staticmethod
    def load(path: PathLike, name: Optional[str] = None) -> "PackedTensor":
        """Reads a weight from a safetensors file, of either storage.

        name:  which one; may be left out where there is only one.

        Raises EncodingError when there is no such weight or it is not legal,
        CheckpointError when the file is damaged, and OSError when it cannot be read.
        """
        names = list(packed_prefixes(TensorFile(path)))
        shown = ", ".join(map(repr, names)) or "none"
        if name is None and len(names) != 1:
            raise EncodingError(
                f"{path}: has {len(names)} packed weights: legal is one, or the name "
                f"of one of {shown}"
            )
        if name is not None and name not in names:
            raise EncodingError(
                f"{path}: there is no packed weight {name!r}: legal is {shown}"
            )
        found = names[0] if name is None else name
        return PackedTensor(read_packed(path, found)[found])

    def __repr__(self) -> str:
        return (
            f"PackedTensor({str(self.encoding)!r}, shape={self.shape}, "
            f"dtype={self.dtype!r}, nbytes={self.nbytes})"
        )


def pack(
    weight: Any,
    encoding: Encoding,
    dtype: Optional[str] = None,
    perm: Optional[np.ndarray] = None,
) -> PackedTensor:
    """Packs a weight that keeps to `encoding` into canonical form.

    A weight of torch or cupy on a GPU is packed there, by a kernel that is compiled
    once for each encoding, shape and type, and stays there: this waits for the GPU. The
    host packs what no kernel does: two levels, free and shuffled weights, windows of
    more than 64 blocks, and f64.

    weight:  [batch,] N, K elements with dim = rank - 1, [batch,] K, N with dim =
             rank - 2; any K, N; of numpy, torch, cupy or DLPack.
    dtype:   element type, needed for numpy arrays of unsigned integers only, which
             hold the bits of bf16 or f8.
    perm:    [batch,] N, the order of the outputs of a shuffled weight; by default one
             in which outputs of the same support are neighbours.

    Raises EncodingError naming window and panel when the weight has not the pattern
    (`prune` it first), or when shape, dim, type or perm do not fit.
    """
    placed = device_packing.encode(weight, encoding, dtype) if perm is None else None
    if placed is None:
        host = to_host(weight, dtype)
        packed = canonical.encode(host.array, encoding, host.dtype, perm)
        placed = packed, host.restore
    result = PackedTensor(placed[0])
    result._back = placed[1]
    return result

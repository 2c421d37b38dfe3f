# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encodings, the components that hold a weight, and the metadata beside them.

docs/Encoding.md is the specification.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Dict, Mapping, Optional, Tuple, Union, overload

import numpy as np

from . import encoding_text

FORMAT = "nm_sparse"
# One level, two levels and a free one; then the same for shuffled weights.
VERSIONS = (1, 2, 3, 7, 8, 9)
ORDERS = ("identity", "shuffled")


class EncodingError(ValueError):
    """An encoding, a weight or components that the format does not allow."""


@dataclass(frozen=True)
class Level:
    """`n:m, block = [bk, bn]`: at most n of every m blocks are kept.

    Raises EncodingError when a field is out of its range.
    """

    n: int
    m: int
    block: Tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "block", tuple(self.block))
        if len(self.block) != 2:
            raise EncodingError(f"block is {list(self.block)}: legal is [bk, bn]")
        numbers = (self.n, self.m, *self.block)
        for name, value in zip(("n", "m", "bk", "bn"), numbers):
            if not isinstance(value, int):
                raise EncodingError(f"{name} is {value!r}: legal is an integer")
        if not self.is_free and not 1 <= self.n <= self.m <= 1 << 31:
            raise EncodingError(
                f"n:m is {self.n}:{self.m}: legal is 1 <= n <= m <= 2^31"
            )
        if min(self.block) < 1:
            raise EncodingError(f"block is {list(self.block)}: legal is at least 1")

    @property
    def is_free(self) -> bool:
        return False


@dataclass(frozen=True, init=False)
class Encoding(Level):
    """`#nm_sparse.encoding<n:m, block = [bk, bn], dim = dim, order = order>`.

    n, m, block:  the outer level, which the dense weight obeys; 0:0 stands for
                  `free`, whose panels keep any number of blocks each.
    dim:          contraction dimension of the weight, one of its last two: 1 for
                  the weights of PyTorch, outputs x inputs.
    order:        "identity", or "shuffled": the outputs in some other order have
                  the pattern, and that order is stored.
    inner:        a second level, which what the outer one keeps obeys.

    In place of n and m there may be a text: "8:32", "free", "4:10 2:4" for two levels,
    or that of the MLIR attribute, with or without `#nm_sparse.encoding<` around it.

    >>> Encoding("8:32", block=(1, 128), dim=1) == Encoding(8, 32, (1, 128), 1)
    True
    >>> encoding = Encoding("4:10 2:4", block=(1, 64), dim=1)
    >>> encoding.inner
    Level(n=2, m=4, block=(1, 1))
    >>> print(encoding)
    [4:10, block = [1, 64]], [2:4], dim = 1
    >>> Encoding(encoding.mlir()) == Encoding(str(encoding)) == encoding
    True

    Raises EncodingError when a field is out of its range, a text is not of these forms,
    or something is said in the text and beside it.
    """

    dim: int = 0
    order: str = "identity"
    inner: Optional[Level] = None

    @overload
    def __init__(
        self,
        n: int,
        m: int,
        block: Optional[Tuple[int, int]] = None,
        dim: Optional[int] = None,
        order: Optional[str] = None,
        inner: Optional[Level] = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        n: str,
        *,
        block: Optional[Tuple[int, int]] = None,
        dim: Optional[int] = None,
        order: Optional[str] = None,
        inner: Optional[Level] = None,
    ) -> None: ...

    def __init__(
        self,
        n: Union[int, str],
        m: Optional[int] = None,
        block: Optional[Tuple[int, int]] = None,
        dim: Optional[int] = None,
        order: Optional[str] = None,
        inner: Optional[Level] = None,
    ) -> None:
        fields: Dict[str, Any] = dict(block=block, dim=dim, order=order, inner=inner)
        if isinstance(n, str) and m is None:
            for name, value in _read_text(n).items():
                if fields.get(name) is not None:
                    raise EncodingError(
                        f"{name} is {fields[name]!r}, and {n!r} says it, too: legal is "
                        "one of them"
                    )
                fields[name] = value
        elif isinstance(n, str) and not isinstance(m, int):
            raise EncodingError(
                f"m is {m!r} beside the text {n!r}: legal is none; name what else is "
                "given, as in block=(1, 128)"
            )
        else:
            fields.update(n=n, m=m)
        defaults = {"block": (1, 1), "dim": 0, "order": "identity"}
        for name, value in fields.items():
            value = defaults.get(name) if value is None else value
            object.__setattr__(self, name, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim not in (0, 1, 2):
            raise EncodingError(
                f"dim is {self.dim!r}: legal is one of the last two dimensions "
                "(0 or 1 of a matrix, 1 or 2 of a batch of matrices)"
            )
        if self.order not in ORDERS:
            raise EncodingError(
                f"order is {self.order!r}: legal is 'identity' or 'shuffled'"
            )
        if self.inner is None:
            return
        if self.is_free:
            raise EncodingError("a free level has no windows for an inner one")
        (bk, bn), (ik, jn) = self.block, self.inner.block
        if bk % ik or bn % jn:
            raise EncodingError(
                f"inner block is {[ik, jn]}: legal is a divisor of {[bk, bn]}"
            )
        if self.inner.m * ik != self.n * bk:
            raise EncodingError(
                f"an inner window has {self.inner.m * ik} rows: legal are the "
                f"{self.n * bk} that the outer level keeps of a window"
            )

    @staticmethod
    def free(
        block: Tuple[int, int] = (1, 1), dim: int = 0, order: str = "identity"
    ) -> "Encoding":
        """`#nm_sparse.encoding<free, block = [bk, bn], dim = dim, order = order>`."""
        return Encoding(0, 0, block, dim, order)

    @staticmethod
    def parse(text: str) -> "Encoding":
        """The encoding that `text` says, in any form that the constructor takes.

        >>> Encoding.parse("#nm_sparse.encoding<free, block = [1, 32], dim = 1>")
        Encoding(n=0, m=0, block=(1, 32), dim=1, order='identity', inner=None)

        Raises EncodingError.
        """
        return Encoding(text)

    def mlir(self) -> str:
        """The text of the attribute in MLIR, as MLIR prints it.

        >>> Encoding(8, 32, (1, 128)).mlir()
        '#nm_sparse.encoding<8:32, block = [1, 128]>'
        """
        return f"{encoding_text.PREFIX}<{self}>"

    def __str__(self) -> str:
        """What stands between the brackets of the attribute."""
        levels = [(level.n, level.m, level.block) for level in self.levels]
        return encoding_text.body(levels, self.dim, self.order)

    @property
    def is_free(self) -> bool:
        return self.n == self.m == 0

    @property
    def version(self) -> int:
        """The version of the packed layout that such a weight has."""
        in_order = 3 if self.is_free else len(self.levels)
        return in_order + (6 if self.is_shuffled else 0)

    @property
    def is_shuffled(self) -> bool:
        return self.order == "shuffled"

    @property
    def packed(self) -> "Encoding":
        """That of the weight whose outputs are in packed order."""
        return replace(self, order="identity")

    @property
    def levels(self) -> Tuple[Level, ...]:
        """The outer level and, if there is one, the inner one."""
        if self.is_free:
            return (self,)
        outer = Level(self.n, self.m, self.block)
        return (outer,) if self.inner is None else (outer, self.inner)


@dataclass(frozen=True)
class Packed:
    """A weight in packed form; see `packed_shapes` for names and shapes.

    components:  the tensors, by name.
    shape:       shape of the dense weight, as declared (before any transpose).
    dtype:       element type, spelled as in MLIR.
    """

    components: Mapping[str, np.ndarray]
    encoding: Encoding
    shape: Tuple[int, ...]
    dtype: str

    @property
    def values(self) -> np.ndarray:
        return self.components["values"]

    @property
    def index(self) -> np.ndarray:
        return self.components["index"]

    @property
    def inner_index(self) -> np.ndarray:
        return self.components["inner_index"]

    @property
    def offsets(self) -> np.ndarray:
        return self.components["offsets"]

    @property
    def perm(self) -> np.ndarray:
        return self.components["perm"]

    def metadata(self) -> str:
        """The JSON text that is stored beside the tensors."""
        e = self.encoding
        keys: Dict[str, Any] = {
            "format": FORMAT,
            "version": e.version,
            "n": e.n,
            "m": e.m,
            "block": list(e.block),
            "dim": e.dim,
            "order": e.order,
            "shape": list(self.shape),
            "dtype": self.dtype,
        }
        if e.inner is not None:
            inner = e.inner
            keys["inner"] = {"n": inner.n, "m": inner.m, "block": list(inner.block)}
        return json.dumps(keys)

    @staticmethod
    def from_tensors(components: Mapping[str, np.ndarray], metadata: str) -> "Packed":
        """Puts stored tensors together again; `decode` checks them.

        Raises EncodingError when the metadata is not JSON of this format and of
        a known version, or lacks a key.
        """
        try:
            d: Dict[str, Any] = json.loads(metadata)
        except json.JSONDecodeError as error:
            raise EncodingError(f"metadata is not JSON: {error}") from None
        if not isinstance(d, dict):
            raise EncodingError("metadata is not a JSON object")
        _check_keys(d, ("format", "version"), "metadata")
        if d["format"] != FORMAT or d["version"] not in VERSIONS:
            raise EncodingError(
                f"metadata says {d['format']!r} version {d['version']!r}: "
                f"this reader knows {FORMAT!r} versions 1, 2, 3, 7, 8 and 9"
            )
        keys = ("n", "m", "block", "dim", "order", "shape", "dtype")
        nested = d["version"] in (2, 8)
        _check_keys(d, keys + (("inner",) if nested else ()), "metadata")
        inner = None
        if d["m"] is None:  # `n` would be read as a text
            raise EncodingError("m is None: legal is an integer")
        if nested:
            i = d["inner"]
            _check_keys(i, ("n", "m", "block"), "inner")
            inner = Level(i["n"], i["m"], tuple(i["block"]))
        encoding = Encoding(
            d["n"], d["m"], tuple(d["block"]), d["dim"], d["order"], inner
        )
        if encoding.version != d["version"]:
            raise EncodingError(
                f"metadata says version {d['version']} of "
                f"{'shuffled ' if encoding.is_shuffled else ''}{encoding.n}:"
                f"{encoding.m}, which has version {encoding.version}"
            )
        return Packed(dict(components), encoding, tuple(d["shape"]), d["dtype"])


def _read_text(text: str) -> Dict[str, Any]:
    """The fields of an encoding that `text` says, by name."""
    try:
        said = encoding_text.parse(text)
    except ValueError as error:
        raise EncodingError(str(error)) from None
    outer = said.levels[0]
    fields: Dict[str, Any] = {"n": outer.n, "m": outer.m}
    optional = {"block": outer.block, "dim": said.dim, "order": said.order}
    fields.update((name, v) for name, v in optional.items() if v is not None)
    if len(said.levels) > 1:
        inner = said.levels[1]
        fields["inner"] = Level(inner.n, inner.m, inner.block or (1, 1))
    return fields


def _check_keys(d: Any, keys: Tuple[str, ...], what: str) -> None:
    missing = [key for key in keys if key not in d]
    if missing:
        raise EncodingError(f"{what} lacks {', '.join(missing)}")


def index_dtype(m: int) -> np.dtype:
    """Type of positions: the narrowest of 8, 16, 32 bits that holds m - 1."""
    bits = 8 if m <= 1 << 8 else 16 if m <= 1 << 16 else 32
    return np.dtype(f"uint{bits}")


def packed_shapes(
    encoding: Encoding, shape: Tuple[int, ...]
) -> Dict[str, Tuple[int, ...]]:
    """Shape of each component of a dense weight of `shape`, by name.

    values:       [batch,] W * n * bk, P * bn   (elements; n, bk of the last level)
    index:        [batch,] W * n,      P        (one position per kept block)
    inner_index:  the same of the inner level
    perm:         [batch,] N                    (of a shuffled weight)

    A free encoding has no shapes of its own: they depend on the weight. Raises
    EncodingError for one, and when the rank is not 2 or 3 or `dim` does not fit it.
    """
    _, k, outputs = extents(encoding, shape)
    (bk, bn), inner = encoding.block, encoding.levels[-1]
    if encoding.is_free:
        raise EncodingError("how much a free weight keeps depends on its elements")
    windows, panels = -(-k // (encoding.m * bk)), -(-outputs // bn)
    lead = (shape[0],) if len(shape) == 3 else ()
    columns = panels * bn
    shapes = {"values": lead + (windows * inner.n * inner.block[0], columns)}
    for name, level in zip(("index", "inner_index"), encoding.levels):
        shapes[name] = lead + (windows * level.n, columns // level.block[1])
    if encoding.is_shuffled:
        shapes["perm"] = lead + (outputs,)
    return shapes


def extents(e: Encoding, shape: Tuple[int, ...]) -> Tuple[int, int, int]:
    """(batch, contraction K, outputs N) of a weight."""
    rank = len(shape)
    if rank not in (2, 3):
        raise EncodingError(f"weight has rank {rank}: legal is 2, or 3 with a batch")
    if e.dim not in (rank - 2, rank - 1):
        raise EncodingError(
            f"dim is {e.dim}: a weight of rank {rank} contracts "
            f"dimension {rank - 2} or {rank - 1}"
        )
    return shape[0] if rank == 3 else 1, shape[e.dim], shape[2 * rank - 3 - e.dim]

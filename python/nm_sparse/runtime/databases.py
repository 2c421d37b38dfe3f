# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The databases of measured schedules that a compilation reads (docs/Tuning.md)."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import List, Optional, Sequence, Union

PathLike = Union[str, "os.PathLike[str]"]
VARIABLE = "NM_SPARSE_TUNED"
# In the package, as the wheel has them, and in a checkout beside it.
_PACKAGE = Path(__file__).resolve().parents[1]
_FOLDERS = (_PACKAGE / "tuned", _PACKAGE.parents[1] / "share" / "nm_sparse" / "tuned")


def choose(
    tuned: Union[None, PathLike, Sequence[PathLike]],
    options: Sequence[str],
    gpu: Optional[str],
) -> List[str]:
    """Those that a compilation reads besides those of its `options`.

    tuned:  as `compile` has it.
    gpu:    h100, h200, or None.
    """
    if isinstance(tuned, (str, os.PathLike)):
        tuned = [tuned]
    if tuned is not None:
        return [os.fspath(database) for database in tuned]
    if any(option.lstrip("-").startswith("tuned") for option in options):
        return []
    named = os.environ.get(VARIABLE)
    if named is not None:
        return [database for database in named.split(os.pathsep) if database]
    own = shipped(gpu) if gpu else None
    return [own] if own else []


@lru_cache(maxsize=None)
def shipped(gpu: str) -> Optional[str]:
    """The path of the package's own database for a GPU; None where it has none."""
    paths = (folder / f"{gpu}.jsonl" for folder in _FOLDERS)
    return next((str(path) for path in paths if path.is_file()), None)


def digest(database: str) -> str:
    """Of what a database holds; "" where it cannot be read, which the compiler says.

    A file is read again only where its time or size has changed: every layer asks.
    """
    try:
        status = os.stat(database)
        return _digest(database, status.st_mtime_ns, status.st_size)
    except OSError:
        return ""


@lru_cache(maxsize=256)
def _digest(database: str, mtime: int, size: int) -> str:
    with open(database, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()

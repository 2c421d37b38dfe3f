# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs on disk, so that a second process need not compile them.

They are in $NM_SPARSE_CACHE, or in nm_sparse under $XDG_CACHE_HOME or ~/.cache;
NM_SPARSE_CACHE=off keeps none. An entry is one file that appears whole under its
name, so that processes that write the same one do no harm to each other; one that
cannot be read is made anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Dict, Optional, Sequence

from ..bindings import library

# Changes when entries of before cannot be read any more.
_FORMAT = "1"


def folder() -> Optional[Path]:
    """Where entries are, or None where none are kept."""
    given = os.environ.get("NM_SPARSE_CACHE")
    if given is not None and given.lower() in ("off", "0", ""):
        return None
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    return home / "nm_sparse"


def key(compiler: str, program: str, arguments: Sequence[str]) -> str:
    """The name of what `compiler`, see `compiler_key`, makes of `program` with
    `arguments`."""
    digest = hashlib.sha256()
    for part in (_FORMAT, compiler, program, *arguments):
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def compiler_key() -> str:
    """What tells the library from others: two builds of one commit may differ.

    Raises LibraryNotFoundError.
    """
    status = library.path().stat()
    return f"{library.version()}, {status.st_size} bytes of {status.st_mtime_ns}"


def read(name: str) -> Optional[Dict[str, str]]:
    """The entry called `name`, or None."""
    where = folder()
    if where is None:
        return None
    try:
        entry = json.loads((where / f"{name}.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    texts = isinstance(entry, dict) and all(
        isinstance(value, str) for value in entry.values()
    )
    return entry if texts else None


def write(name: str, entry: Dict[str, str]) -> None:
    """Keeps `entry`. A cache that cannot be written is no error."""
    where = folder()
    if where is None:
        return
    temporary = None
    try:
        where.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=where, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(entry, stream)
        os.replace(temporary, where / f"{name}.json")
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)

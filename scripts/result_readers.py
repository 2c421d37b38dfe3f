# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pages, tests and tables read each file of bench/results."""

import re
from pathlib import Path

FOLDERS = (
    "docs",
    "test",
    "python/tests",
    "bench",
    "scripts",
    "share",
    "lib",
    "include",
)
ENDINGS = {".md", ".py", ".test", ".mlir", ".json", ".cpp", ".h", ".td"}
# They name every file, or hold the files.
NOT_READERS = ("docs/Results.md", "bench/results", "share/nm_sparse/samples")


def _named(root):
    """{path in the repository: words of it}, of all that may name a file."""
    paths = [root / "README.md"]
    for folder in FOLDERS:
        paths += sorted((root / folder).rglob("*"))
    found = {}
    for path in paths:
        name = path.relative_to(root).as_posix()
        is_text = path.is_file() and path.suffix in ENDINGS
        if is_text and not name.startswith(NOT_READERS):
            words = re.findall(r"[\w-]+(?:\.json)?", path.read_text("utf-8"))
            found[name] = set(words)
    return found


def _names(path):
    """Of a file: tables name those of a GPU without their ending."""
    return {path.name, path.stem} if re.match(r"h\d00-", path.stem) else {path.name}


def readers(root):
    """{name of a result file: [paths of what names it]}."""
    named = _named(root)
    return {
        path.name: [name for name, words in named.items() if words & _names(path)]
        for path in sorted((root / "bench/results").glob("*.json"))
    }


def page(root):
    """A table of the files and of their readers."""
    lines = ["| file | read by |", "|---|---|"]
    for name, found in readers(root).items():
        decisions = [
            Path(one).name[:3] for one in found if one.startswith("docs/decisions/")
        ]
        others = [
            f"[{Path(one).name}](../../{one})"
            for one in found
            if not one.startswith("docs/decisions/")
        ]
        what = [*others, *([f"decisions {', '.join(decisions)}"] if decisions else [])]
        lines.append(f"| `{name}` | {', '.join(what)} |")
    return "\n".join(lines)

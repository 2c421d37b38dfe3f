#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that parts of schedules and storages are known by their interfaces alone.

usage: check_axes.py [FOLDER]

A product or a transfer is an attribute that a folder of lib/Products or lib/Transfers
defines, a storage one of a folder of lib/Dialect/NMSparse/Storages: no other file of
lib and include names its class, but for the C API, which makes storages. Looks at
FOLDER (default: this repository). Status 1 when something is found.
"""

import re
import sys
from pathlib import Path

ENDINGS = (".cpp", ".h", ".td")
# The folders of each axis, and the class of its attributes.
AXES = (
    ("lib/Products", "NMTile_Attr"),
    ("lib/Transfers", "NMTile_Attr"),
    ("lib/Dialect/NMSparse/Storages", "NMSparse_Attr"),
)
# A front door for hosts in C, which make attributes.
FRONT_DOOR = ("lib/CAPI/",)


def classes_of(text, base):
    """The classes of the attributes that `text` defines by `base`, such as CopyAttr."""
    for match in re.finditer(rf'{base}<"(\w+)"', text):
        yield match[1] + "Attr"


def find_owners(root):
    """Each class with what may name it: prefixes of paths."""
    owners = {}
    for axis, base in AXES:
        for path in sorted((root / axis).glob("*/*.td")):
            folder = path.parent.relative_to(root).as_posix() + "/"
            for name in classes_of(path.read_text(encoding="utf-8"), base):
                owners[name] = (folder, *FRONT_DOOR)
    return owners


def find_strangers(root, owners):
    pattern = re.compile(rf"\b({'|'.join(owners)})\b")
    for top in ("lib", "include"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in ENDINGS:
                continue
            name = path.relative_to(root).as_posix()
            lines = path.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines, 1):
                for found in pattern.findall(line):
                    if not name.startswith(owners[found]):
                        yield f"{name}:{number}: names {found}; ask its interface"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    offences = list(find_strangers(root, find_owners(root)))
    print("\n".join(offences), end="\n" if offences else "")
    sys.exit(1 if offences else 0)


if __name__ == "__main__":
    main()

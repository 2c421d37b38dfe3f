#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that parts of schedules and storages are known by their interfaces alone.

usage: check_axes.py [FOLDER]

A product or a transfer is an attribute that a folder of lib/Products or lib/Transfers
defines: no other file of lib and include names its class. A storage is one that
implements WeightStorageInterface: beside its own folder, the C API and the files of
STORAGE_CHOICES, which choose or make one form, none names its class. Looks at FOLDER
(default: this repository). Status 1 when something is found.
"""

import re
import sys
from pathlib import Path

STORAGES = "include/nm_sparse/Dialect/NMSparse/IR/NMSparseAttrs.td"
ENDINGS = (".cpp", ".h", ".td")
# Folders that know all storages: their own, and the front door.
STORAGE_FOLDERS = (
    "include/nm_sparse/Dialect/NMSparse/IR",
    "lib/Dialect/NMSparse/IR",
    "include/nm_sparse-c",
    "lib/CAPI",
)
STORAGE_CHOICES = (
    "lib/Dialect/NMSparse/Utils/Packing.cpp",
    "lib/Dialect/NMTile/Transforms/Storage/SelectStorage.cpp",
    "lib/Dialect/NMTile/Transforms/Storage/SpecializeConstants.cpp",
    "lib/Execution/Inputs/PackedInputs.cpp",
)


def classes_of(text, base, interface=""):
    """The classes of the attributes that `text` defines by `base`, such as CopyAttr;
    with `interface`, of those that implement it."""
    for match in re.finditer(rf'{base}<"(\w+)"[^{{]*', text):
        if interface in match[0]:
            yield match[1] + "Attr"


def find_owners(root):
    """Each class with what may name it: prefixes of paths."""
    owners = {}
    for axis in ("Products", "Transfers"):
        for path in sorted((root / "lib" / axis).glob("*/*.td")):
            folder = path.parent.relative_to(root).as_posix()
            for name in classes_of(path.read_text(encoding="utf-8"), "NMTile_Attr"):
                owners[name] = (folder + "/",)
    text = (root / STORAGES).read_text(encoding="utf-8")
    for name in classes_of(text, "NMSparse_Attr", "WeightStorageInterface"):
        # The pattern itself is the canonical form.
        if name != "EncodingAttr":
            folders = tuple(folder + "/" for folder in STORAGE_FOLDERS)
            owners[name] = folders + STORAGE_CHOICES
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

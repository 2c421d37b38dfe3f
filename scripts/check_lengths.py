#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names each file that is longer than a reader can keep in mind.

usage: check_lengths.py [FOLDER]

Looks at the C++ and TableGen files below lib, include and tools of FOLDER (default:
this repository), and at the Python files below bench, python and scripts. Status 1
when one has more than 400 lines. The length of functions of C++ is checked by
clang-tidy: see readability-function-size in .clang-tidy.
"""

import pathlib
import sys

CPP = (".cpp", ".h", ".td")
PYTHON = (".py",)
ENDINGS = {
    "lib": CPP,
    "include": CPP,
    "tools": CPP,
    "bench": PYTHON,
    "python": PYTHON,
    "scripts": PYTHON,
}
LIMIT = 400


def find_long_files(root):
    """(path below root, number of lines) of each file above the limit."""
    for folder, endings in ENDINGS.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in endings and path.is_file():
                lines = len(path.read_bytes().splitlines())
                if lines > LIMIT:
                    yield path.relative_to(root).as_posix(), lines


def main(arguments):
    if len(arguments) > 1:
        sys.exit("usage: check_lengths.py [FOLDER]")
    root = pathlib.Path(__file__).resolve().parent.parent
    if arguments:
        root = pathlib.Path(arguments[0])
    status = 0
    for path, lines in find_long_files(root):
        print(f"{path}: {lines} lines, legal are {LIMIT}: give one of its ideas a file")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

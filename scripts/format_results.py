#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes JSON files with one record to a line, so that reports can be compared and a
tree of them stays small. No value changes.

usage: format_results.py [--check] FILE...
  --check  change nothing; exit with 1 and name the files that would change
"""

import argparse
import json
import pathlib
import sys

WIDTH = 2000  # characters up to which a value is one line


def lines(value, indent=""):
    """The lines of a value, the first without its indentation."""
    short = json.dumps(value)
    nested = isinstance(value, (dict, list)) and value
    is_record = nested and not any(
        isinstance(part, (dict, list)) and part
        for part in (value.values() if isinstance(value, dict) else value)
    )
    if not nested or is_record or len(short) <= WIDTH:
        return [short]
    inner = indent + " "
    items = value.items() if isinstance(value, dict) else ((None, v) for v in value)
    parts = []
    for key, part in items:
        name = "" if key is None else f"{json.dumps(key)}: "
        first, *rest = lines(part, inner)
        parts.append("\n".join([f"{inner}{name}{first}", *rest]))
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return [begin, ",\n".join(parts), f"{indent}{end}"]


def formatted(text):
    return "\n".join(lines(json.loads(text))) + "\n"


def main():
    command = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    command.add_argument("--check", action="store_true")
    command.add_argument("files", nargs="+", type=pathlib.Path)
    given = command.parse_args()
    changed = []
    for path in given.files:
        text = path.read_text(encoding="utf-8")
        new = formatted(text)
        if new != text:
            changed.append(path)
            if not given.check:
                path.write_text(new, encoding="utf-8")
    for path in changed if given.check else ():
        print(f"{path}: not one record to a line: run scripts/format_results.py")
    return 1 if given.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())

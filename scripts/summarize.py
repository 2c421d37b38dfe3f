# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds up test results and prints "N passed, N failed[, N skipped]".

Usage: summarize.py FOLDER [BROKEN...]

Reads lit's and pytest's *.xml (JUnit) and gtest's *.json in FOLDER. Each BROKEN
is a step that left no result file; it counts as one failure. Exits with 1 when
something failed or nothing ran.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def junit(path):
    """(passed, failed, skipped) of a JUnit file."""
    counts = [0, 0, 0]
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag for child in case}
        counts[
            1 if kinds & {"failure", "error"} else 2 if "skipped" in kinds else 0
        ] += 1
    return counts


def gtest(path):
    """(passed, failed, skipped) of a gtest JSON file."""
    counts = [0, 0, 0]
    for suite in json.loads(path.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            run = case["status"] == "RUN" and case["result"] != "SKIPPED"
            counts[1 if "failures" in case else 0 if run else 2] += 1
    return counts


def main(folder, broken):
    totals = [0, 0, 0]
    for path in sorted(Path(folder).glob("*")):
        try:
            counts = junit(path) if path.suffix == ".xml" else gtest(path)
        except (ElementTree.ParseError, ValueError, KeyError) as error:
            print(f"error: {path.name} cannot be read: {error}", file=sys.stderr)
            counts = [0, 1, 0]
        totals = [a + b for a, b in zip(totals, counts)]
    for step in broken:
        print(f"error: {step}: no results", file=sys.stderr)
    passed, failed, skipped = totals
    failed += len(broken)
    # Both streams may be one terminal: the summary has to come last.
    sys.stderr.flush()
    print(
        f"{passed} passed, {failed} failed" + (f", {skipped} skipped" * (skipped > 0))
    )
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

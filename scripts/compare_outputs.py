#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what two devices computed from the same inputs.

usage: compare_outputs.py REPORT_A REPORT_B [--json FILE]

The reports are those of two `nm-run --batch --json` runs of the same list, each
line with `--output`. f32 results agree when their difference is at most 1e-6 of
their norm, f16 and bf16 results when no element is more than 2 units in the
last place away. Status 1 when some do not.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

import numpy as np

RELATIVE_BAR = 1e-6
ULP_BAR = 2


def ordered(array: np.ndarray) -> np.ndarray:
    """16-bit floats as integers in the order of their values."""
    bits = array.view(np.uint16).astype(np.int32)
    return np.where(bits & 0x8000, 0x8000 - bits, bits)


def compare(kind: str, a: np.ndarray, b: np.ndarray) -> dict:
    if a.shape != b.shape:
        return {"agrees": False, "reason": f"shapes {a.shape} and {b.shape}"}
    if kind == "f32":
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        norm = float(np.linalg.norm(wide_b))
        error = float(np.linalg.norm(wide_a - wide_b)) / (norm or 1.0)
        same = float(np.mean(a.view(np.uint32) == b.view(np.uint32)))
        return {
            "agrees": error <= RELATIVE_BAR,
            "relative_difference": error,
            "bit_equal": same,
        }
    ulps = np.abs(ordered(a) - ordered(b))
    return {
        "agrees": bool(ulps.max(initial=0) <= ULP_BAR),
        "largest_ulps": int(ulps.max(initial=0)),
        "bit_equal": float(np.mean(ulps == 0)),
    }


def outputs(run: dict):
    """Kind and values of each result of one run."""
    for result in run.get("outputs", []):
        yield result["kind"], np.load(result["file"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", type=pathlib.Path, nargs=2)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    first, second = (json.loads(path.read_text()) for path in options.reports)
    rows, failed = [], 0
    for a, b in zip(first["runs"], second["runs"]):
        name = pathlib.Path(a.get("file", a["arguments"].split()[0])).stem
        missing = [run["error"] for run in (a, b) if "error" in run]
        results = [
            compare(kind, x, y) for (kind, x), (_, y) in zip(outputs(a), outputs(b))
        ]
        agrees = not missing and bool(results) and all(r["agrees"] for r in results)
        failed += not agrees
        rows.append(
            {"kernel": name, "agrees": agrees, "results": results, "errors": missing}
        )
        if not agrees:
            print(f"{name}: {missing or results}")
    print(f"{len(rows) - failed} of {len(rows)} kernels agree")
    if options.json:
        report = {
            "devices": [run["runs"][0].get("device") for run in (first, second)],
            "commit": first.get("commit"),
            "gpu": next(
                (r["gpu"] for r in first["runs"] + second["runs"] if "gpu" in r), None
            ),
            "bars": {"f32_relative": RELATIVE_BAR, "f16_bf16_ulps": ULP_BAR},
            "agreeing": len(rows) - failed,
            "kernels": rows,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What products of one token take, and what packs their weights, for
docs/Performance.md: the files of bench/results whose rows are kernels, not runs."""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import report

DRAWN = report.RESULTS / "h200-decode-drawn-2.json"
CHAIN = report.RESULTS / "h200-chain-2.json"
PACK = report.RESULTS / "h200-pack.json"


def read(path, rows):
    """(file, its `rows`), or None where it is not recorded."""
    if not path.exists():
        return None
    data = json.loads(path.read_text("utf-8"))
    return data, data[rows]


def kind(entry):
    """The pattern and the vector length of a row."""
    return entry["pattern"], entry["block"][1]


def about(*found):
    return " ".join(
        f"`{path.name}`: {data['gpu']}; commit `{data['commit']}`."
        for path, data in found
    )


def decode_page(drawn=DRAWN, chain=CHAIN):
    """Speed over cuBLAS of layers drawn at random, and of the products of a block."""
    layers, blocks = read(drawn, "layers"), read(chain, "blocks")
    if not layers or not blocks:
        return report.NONE
    speeds = collections.defaultdict(list)
    for entry in layers[1]:
        speeds[kind(entry)].append(entry["cublas_us"] / entry["us"])
    of_block = {kind(entry): entry for entry in blocks[1]}
    rows = []
    for key in sorted({*speeds, *of_block}):
        found, block = speeds.get(key), of_block.get(key)
        cells = ["", ""]
        if found:
            low, high = min(found), max(found)
            cells[0] = (
                f"{report.geomean(found):.2f}x ({low:.2f}-{high:.2f}, {len(found)})"
            )
        if block:
            us, dense = block["us"], block["cublas_us"]
            cells[1] = f"{us:.1f} us, {dense / us:.2f}x"
        rows.append([*key, *cells])
    header = ["pattern", "L", "drawn layers", "seven products of a block"]
    text = about((drawn, layers[0]), (chain, blocks[0]))
    return report.table(header, rows) + "\n\n" + text


def packing_page(path=PACK):
    """How fast kernels pack."""
    found = read(path, "kernels")
    if not found:
        return report.NONE
    data, kernels = found
    rows = []
    for entry in kernels:
        read_mb, written_mb = (
            entry[f"{what}_bytes"] / 1e6 for what in ("read", "written")
        )
        rows.append(
            [entry["type"], *kind(entry), entry["storage"], entry["dim"]]
            + [f"{read_mb:.0f}", f"{written_mb:.0f}", f"{entry['us']:.1f}"]
            + [f"{entry['tb_s']:.2f}", f"{100 * entry['share_of_copy']:.0f} %"]
        )
    header = ["type", "pattern", "L", "storage", "dim"]
    header += ["read, MB", "written, MB", "us", "TB/s", "of a copy"]
    return report.table(header, rows) + "\n\n" + about((path, data))


PAGES = {"decode": decode_page, "packing": packing_page}

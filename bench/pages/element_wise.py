# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What products of element-wise weights take, for docs/Performance.md: layers drawn
at random, and a few layers at any number of tokens beside what their bytes take."""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import report
from one_token import about, read

LAYERS = report.RESULTS / "h200-elements.json"

# Bytes a second of device memory: what the ceilings of lib/Chip/Chip.cpp have.
MEMORY = 4.6e12

CLASSES = {
    "1": (1, 1),
    "2 to 16": (2, 16),
    "17 to 64": (17, 64),
    "65 to 256": (65, 256),
    "257 to 1023": (257, 1023),
    "1024 and more": (1024, None),
}


def speed(layer):
    return layer["cublas_us"] / layer["us"]


def class_of(tokens):
    return next(
        name for name, (_, last) in CLASSES.items() if last is None or tokens <= last
    )


def floor_us(layer):
    """What the bytes of a 16-bit product take at the rate of memory: values and bits
    of the weight, activations and results."""
    kept, window = map(int, layer["pattern"].split(":"))
    k, n, tokens = layer["k"], layer["n"], layer["tokens"]
    weight = k * n * (2 * kept / window + 1 / 8)
    return (weight + 2 * tokens * (k + n)) / MEMORY * 1e6


def drawn_page(path=LAYERS):
    """Speed over cuBLAS by pattern, layout of activations and number of tokens."""
    found = read(path, "layers")
    if not found:
        return report.NONE
    data, layers = found
    cells = collections.defaultdict(lambda: collections.defaultdict(list))
    for layer in layers:
        if layer["set"] == "drawn":
            key = layer["pattern"], f"{layer['layout']}-major"
            cells[key][class_of(layer["tokens"])].append(speed(layer))
    rows = [
        [
            *key,
            *(
                f"{report.geomean(v):.2f}x ({min(v):.2f}-{max(v):.2f}, {len(v)})"
                if (v := row.get(name))
                else ""
                for name in CLASSES
            ),
        ]
        for key, row in sorted(cells.items())
    ]
    header = ["pattern", "activations", *(f"{name} tokens" for name in CLASSES)]
    header[2] = "1 token"
    return report.table(header, rows) + "\n\n" + about((path, data))


def bytes_page(path=LAYERS):
    """Times of a few layers, and the share of the memory's rate that they reach."""
    found = read(path, "layers")
    if not found:
        return report.NONE
    data, layers = found
    columns = (1, 4, 16, 64, 256, 1024)
    cells = collections.defaultdict(dict)
    for layer in layers:
        if layer["set"] == "swept" and layer["tokens"] in columns:
            key = f"{layer['k']} x {layer['n']}", layer["pattern"]
            share = 100 * floor_us(layer) / layer["us"]
            cells[key][layer["tokens"]] = (
                f"{layer['us']:.1f} us, {share:.0f} %, {speed(layer):.2f}x"
            )
    rows = [
        [*key, *(row.get(tokens, "") for tokens in columns)]
        for key, row in sorted(cells.items())
    ]
    header = ["contraction x outputs", "pattern", "1 token"]
    header += [f"{tokens} tokens" for tokens in columns[1:]]
    return report.table(header, rows) + "\n\n" + about((path, data))


def times_data(_, path=LAYERS):
    """{layer: {series: [[tokens, us]]}}: of each pattern, of cuBLAS, and of bytes."""
    found = read(path, "layers")
    data = collections.defaultdict(lambda: collections.defaultdict(list))
    for layer in found[1] if found else []:
        if layer["set"] != "swept" or layer["pattern"] == "16:32":
            continue
        series = data[f"{layer['k']} x {layer['n']}"]
        tokens = layer["tokens"]
        series[layer["pattern"]].append([tokens, layer["us"]])
        if layer["pattern"] == "8:16":
            series["dense, cuBLAS"].append([tokens, layer["cublas_us"]])
            series["bytes of 8:16"].append([tokens, round(floor_us(layer), 2)])
    return {
        shape: {name: sorted(points) for name, points in series.items()}
        for shape, series in data.items()
    }


PAGES = {"elements": drawn_page, "bytes": bytes_page}

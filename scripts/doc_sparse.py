# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of 2:4 and V:N:M on sparse tensor cores, for docs/Performance.md.

Each list of the two files holds rows of several runs, of which the one with the
highest number in `run` is the newest; rows without one are of the first. Tables show
that run alone.
"""

import collections
import functools
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent / "bench"
sys.path[:0] = [str(BENCH), str(BENCH / "pages")]
import report  # noqa: E402
from element_wise import CLASSES, class_of, speed  # noqa: E402
from one_token import read  # noqa: E402

RIVALS = report.RESULTS / "h200-sparse-rivals.json"
LEVELS = report.RESULTS / "h200-vnm.json"
# Those before are of schedules by hand and of kernels of random layers.
FIRST_LEVELS_RUN = 5


def newest(rows):
    """The rows of the last run, and its number."""
    last = max(row.get("run", 0) for row in rows)
    return [row for row in rows if row.get("run", 0) == last], last


def about(path, data, run):
    which = f", run {run}" if run else ""
    return f"`{path.name}`{which}: {data['gpu']}."


def shape(row):
    return f"{row['tokens']} x {row['k']} x {row['n']}"


def speeds(layers, rival):
    """Over a rival, of the layers that have its time."""
    return [x[f"{rival}_us"] / x["us"] for x in layers if f"{rival}_us" in x]


def compare(layer, rival):
    """Time of a rival, and the speed over it."""
    found = speeds([layer], rival)
    return [f"{layer[f'{rival}_us']:.1f}", f"{found[0]:.2f}x"] if found else ["", ""]


def summary(speeds):
    """Geometric mean, least, most and number of some speeds."""
    if not speeds:
        return ""
    mean, low, high = report.geomean(speeds), min(speeds), max(speeds)
    return f"{mean:.2f}x ({low:.2f}-{high:.2f}, {len(speeds)})"


def pairs_page(path=RIVALS):
    """2:4: speed over cuBLAS and cuSPARSELt by number of tokens."""
    found = read(path, "layers")
    if not found:
        return report.NONE
    layers, run = newest(found[1])
    header = ["tokens"]
    kinds = []
    for drawn, name in ((False, "usual shapes"), (True, "drawn")):
        for rival in ("cuBLAS", "cuSPARSELt"):
            header.append(f"{name}, over {rival}")
            kinds.append((drawn, rival.lower()))
    rows = []
    for name in [*CLASSES, "all"]:
        some = [x for x in layers if name in (class_of(x["tokens"]), "all")]
        cells = [
            summary(speeds([x for x in some if x["drawn"] == drawn], rival))
            for drawn, rival in kinds
        ]
        if any(cells):
            rows.append([name, *cells])
    return report.table(header, rows) + "\n\n" + about(path, found[0], run)


def pairs_drawn_page(path=RIVALS):
    """Each of the layers that were drawn at random."""
    found = read(path, "layers")
    if not found:
        return report.NONE
    layers, _ = newest(found[1])
    drawn = [layer for layer in layers if layer["drawn"]]
    header = ["tokens x contraction x outputs", "type", "product", "us"]
    header += ["cuBLAS, us", "speed", "cuSPARSELt, us", "speed"]
    rows = [
        [
            shape(x),
            x["type"],
            f"`{x['product']}`",
            f"{x['us']:.1f}",
            *compare(x, "cublas"),
            *compare(x, "cusparselt"),
        ]
        for x in sorted(drawn, key=lambda x: (x["tokens"], x["k"], x["n"]))
    ]
    return report.table(header, rows)


def bytes_page(path=RIVALS):
    """2:4 of 8-bit elements: speed over dense products by number of tokens."""
    found = read(path, "bytes")
    if not found:
        return report.NONE
    layers, run = newest(found[1])
    cells = collections.defaultdict(lambda: collections.defaultdict(list))
    for layer in layers:
        row = cells[layer["type"]][class_of(layer["tokens"])]
        row += speeds([layer], "dense")
    names = [name for name in CLASSES if any(row[name] for row in cells.values())]
    header = ["type", *(f"{name} token{'s' * (name != '1')}" for name in names)]
    rows = [
        [type_, *(summary(row[name]) for name in names)]
        for type_, row in sorted(cells.items())
    ]
    return report.table(header, rows) + "\n\n" + about(path, found[0], run)


def level_layers(kernels, first=0):
    """Of each layer of many tokens the fastest kernel of the newest run that has it
    beside cuBLAS, and the numbers of these runs. A run whose times overlapped is
    none."""
    fastest = {}
    for kernel in sorted(kernels, key=lambda k: (k["run"], -k["us"])):
        layer = tuple(kernel[name] for name in ("tokens", "k", "n", "v", "m"))
        is_whole = "cublas_us" in kernel and "without" not in kernel
        is_wanted = kernel["tokens"] >= 2048 and kernel["run"] >= first
        if is_whole and is_wanted and "overlapped" not in kernel:
            fastest[layer] = kernel
    runs = sorted({kernel["run"] for kernel in fastest.values()})
    return list(fastest.values()), ", ".join(map(str, runs))


def levels_page(path=LEVELS, first=0):
    """V:N:M: speed over cuBLAS by panel and pattern."""
    found = read(path, "kernels")
    if not found:
        return report.NONE
    layers, run = level_layers(found[1], first)
    cells = collections.defaultdict(lambda: collections.defaultdict(list))
    for layer in layers:
        cells[layer["v"]][layer["m"]].append(speed(layer))
    columns = sorted({layer["m"] for layer in layers})
    header = ["V", *(f"2:{m}, {100 - 200 / m:.4g} % sparse" for m in columns)]
    rows = [
        [v, *(summary(row[m]) for m in columns)] for v, row in sorted(cells.items())
    ]
    return report.table(header, rows) + "\n\n" + about(path, found[0], run)


def levels_layers_page(path=LEVELS, first=0):
    """Time and speed of each layer, by panel and pattern."""
    found = read(path, "kernels")
    if not found:
        return report.NONE
    layers, _ = level_layers(found[1], first)
    columns = sorted({(layer["v"], layer["m"]) for layer in layers})
    cells = collections.defaultdict(dict)
    for layer in layers:
        key = layer["tokens"], layer["k"], layer["n"]
        cells[key][layer["v"], layer["m"]] = layer
    header = ["tokens x contraction x outputs", *(f"{v}:2:{m}" for v, m in columns)]
    rows = [
        [
            " x ".join(map(str, key)),
            *(
                f"{row[c]['us']:.0f} us, {speed(row[c]):.2f}x" if c in row else ""
                for c in columns
            ),
        ]
        for key, row in sorted(cells.items())
    ]
    return report.table(header, rows)


PAGES = {
    "2:4": pairs_page,
    "2:4 drawn": pairs_drawn_page,
    "2:4 bytes": bytes_page,
    "V:N:M": functools.partial(levels_page, first=FIRST_LEVELS_RUN),
    "V:N:M layers": functools.partial(levels_layers_page, first=FIRST_LEVELS_RUN),
}

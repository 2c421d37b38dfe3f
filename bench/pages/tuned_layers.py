# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What measured schedules gain, for docs/Performance.md: layers that were drawn, with
the model's schedule and the one that was found by measuring, and the layers of models
in the database that comes with the compiler."""

import collections
import json
import math
import pathlib

import report

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRAWN = report.RESULTS / "h200-tuned-clusters.json"
DATABASE = ROOT / "share/nm_sparse/tuned/h200.jsonl"
RATES = json.loads((ROOT / "share/nm_sparse/gpus/h200.json").read_text("utf-8"))[
    "rates"
]
# Numbers of tokens that are told apart, with the first of the next group.
GROUPS = {"33 to 127": 128, "128 to 255": 256, "256 to 511": 512, "512 to 1023": 1024}


def pattern_of(encoding):
    """(name, kept share, bytes of positions for each element of the dense weight)."""
    text = encoding.removeprefix("#nm_sparse.encoding<").removesuffix(">")
    text = text.removesuffix(", dim = 1")
    kind, _, block = text.partition(", block = [1, ")
    kept, of = map(int, kind.split(":"))
    if not block:
        # A bit for each element, or two for each of those that are kept.
        return kind, kept / of, 1 / 8
    length = int(block.removesuffix("]"))
    # A byte for each kept row of a panel.
    return f"{kind}, L = {length}", kept / of, kept / of / length


def limit_us(encoding, inputs, outputs, tokens):
    """The time below which no kernel of 16-bit elements gets: all bytes once, or all
    products of what is kept, whichever takes longer. (Sparse tensor cores do twice as
    many as dense ones, half of which are not kept.)"""
    _, kept, positions = pattern_of(encoding)
    weight = inputs * outputs * (2 * kept + positions)
    moved = weight + 2 * tokens * (inputs + outputs)
    flops = 2 * tokens * inputs * outputs * kept
    return 1e6 * max(moved / RATES["dram"], flops / RATES["wgmma"])


def speeds(values):
    """Of several speeds the geometric mean, and the least and the most of them."""
    return f"{report.geomean(values):.2f}x ({min(values):.2f}-{max(values):.2f})"


def percent(values):
    return f"{100 * report.geomean(values):.0f} %"


def drawn_page(path=DRAWN):
    """The table of drawn layers."""
    data = json.loads(path.read_text("utf-8"))
    groups = collections.defaultdict(list)
    for one in data["layers"]:
        name = next(name for name, end in GROUPS.items() if one["tokens"] < end)
        groups[pattern_of(one["encoding"])[0], list(GROUPS).index(name)].append(one)
    rows = []
    for (pattern, at), layers in sorted(groups.items()):
        shares = [
            limit_us(one["encoding"], one["inputs"], one["outputs"], one["tokens"])
            / one["tuned_us"]
            for one in layers
        ]
        rows.append(
            [
                pattern,
                list(GROUPS)[at],
                len(layers),
                speeds([one["dense_us"] / one["model_us"] for one in layers]),
                speeds([one["dense_us"] / one["tuned_us"] for one in layers]),
                speeds([one["model_us"] / one["tuned_us"] for one in layers]),
                percent(shares),
            ]
        )
    heading = ["pattern", "tokens", "layers", "model's choice", "measured choice"]
    heading += ["of the model's", "share of the limit"]
    return (
        report.table(heading, rows)
        + f"\n\n`{path.name}`: {data['gpu']}, {len(data['layers'])} layers."
    )


def entries_of(path=DATABASE):
    lines = path.read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def points():
    """{"drawn": {which choice: [[tokens, speed]]}, "models": {layer: the same}}: speeds
    over dense of the 2:4 layers that were drawn, and of the five layers of the
    database that read most bytes."""
    drawn = collections.defaultdict(list)
    for one in json.loads(DRAWN.read_text("utf-8"))["layers"]:
        if pattern_of(one["encoding"])[0] == "2:4":
            for name in ("model", "tuned"):
                speed = one["dense_us"] / one[f"{name}_us"]
                drawn[name].append([one["tokens"], speed])
    layers = collections.defaultdict(list)
    for one in entries_of():
        size = one["inputs"], one["outputs"]
        layers[size].append([one["tokens"], one["dense_us"] / one["us"]])
    largest = sorted(layers, key=lambda size: -size[0] * size[1])[:5]
    models = {f"{size[0]} x {size[1]}": sorted(layers[size]) for size in largest}
    return {"drawn": {name: sorted(own) for name, own in drawn.items()}} | {
        "models": models
    }


def models_page(path=DATABASE):
    """The table of the layers in the database."""
    entries = entries_of(path)
    layers = collections.defaultdict(dict)
    for one in entries:
        pattern, *_ = pattern_of(one["encoding"])
        layers[pattern, one["inputs"], one["outputs"]][one["tokens"]] = one
    columns = sorted({one["tokens"] for one in entries})
    rows = []
    for (pattern, inputs, outputs), found in sorted(layers.items()):
        row = [pattern, f"{inputs} x {outputs}"]
        for tokens in columns:
            one = found.get(tokens)
            if not one:
                row.append("")
                continue
            share = limit_us(one["encoding"], inputs, outputs, tokens) / one["us"]
            row.append(f"{one['dense_us'] / one['us']:.2f}x, {100 * share:.0f} %")
        rows.append(row)
    mean = math.exp(
        math.fsum(math.log(one["dense_us"] / one["us"]) for one in entries)
        / len(entries)
    )
    heading = ["pattern", "inputs x outputs", *(f"{tokens}" for tokens in columns)]
    return (
        report.table(heading, rows)
        + f"\n\n`share/nm_sparse/tuned/{path.name}`: {len(entries)} entries, "
        f"{mean:.2f}x in the geometric mean."
    )


PAGES = {"tuned drawn": drawn_page, "tuned models": models_page}

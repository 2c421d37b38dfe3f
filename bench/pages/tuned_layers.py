# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What measured schedules gain, for docs/Performance.md: layers that were drawn, with
the model's schedule and the one that was found by measuring, and the layers of models
in the database that comes with the compiler."""

import collections
import json
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


# Layers of the figure.
SHOWN = 5


def points():
    """{layer: {which choice: [[tokens, speed]]}}: speeds over dense of the model's and
    of the measured choice, of the five layers of the database that were measured for
    most numbers of tokens."""
    layers = collections.defaultdict(dict)
    for one in entries_of():
        if "model_us" in one and one["dense_us"]:
            layers[one["inputs"], one["outputs"]][one["tokens"]] = one
    chosen = sorted(layers, key=lambda size: (-len(layers[size]), -size[0] * size[1]))
    return {
        f"{size[0]} x {size[1]}": {
            name: [
                [tokens, one["dense_us"] / one[f"{name}us"]]
                for tokens, one in sorted(layers[size].items())
            ]
            for name in ("model_", "")
        }
        for size in chosen[:SHOWN]
    }


# Numbers of tokens of the database that are told apart, as above.
CLASSES = {
    "1 to 8": 9, "9 to 32": 33, "33 to 127": 128, "128 to 255": 256, "256 to 511": 512,
    "512 to 1023": 1024, "1024 to 4096": 4097,
}  # fmt: skip


def models_page(path=DATABASE):
    """The table of the layers in the database."""
    entries = entries_of(path)
    groups = collections.defaultdict(list)
    for one in entries:
        at = next(at for at, end in enumerate(CLASSES.values()) if one["tokens"] < end)
        groups[pattern_of(one["encoding"])[0], at].append(one)
    rows = []
    for (pattern, at), own in sorted(groups.items()):
        both = [one for one in own if "model_us" in one]
        shares = [
            limit_us(one["encoding"], one["inputs"], one["outputs"], one["tokens"])
            / one["us"]
            for one in own
        ]
        of_model = [one["model_us"] / one["us"] for one in both]
        rows.append(
            [
                pattern,
                list(CLASSES)[at],
                len(own),
                speeds([one["dense_us"] / one["us"] for one in own]),
                speeds(of_model) if both else "",
                percent(shares),
            ]
        )
    sizes = {(one["inputs"], one["outputs"]) for one in entries}
    mean = report.geomean([one["dense_us"] / one["us"] for one in entries])
    heading = ["pattern", "tokens", "problems", "measured choice", "of the model's"]
    heading += ["share of the limit"]
    return (
        report.table(heading, rows)
        + f"\n\n`share/nm_sparse/tuned/{path.name}`: {len(entries)} problems of "
        f"{len(sizes)} layers, {mean:.2f}x in the geometric mean. Layers, inputs x "
        f"outputs: {', '.join(f'{k} x {n}' for k, n in sorted(sizes))}."
    )


PAGES = {"tuned drawn": drawn_page, "tuned models": models_page}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What whole models gain through PyTorch, for docs/Models.md."""

import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import report
from figure_style import BLUE, GREEN, GREY, ORANGE, PURPLE, start

RESULTS = report.RESULTS
BLOCKS = RESULTS / "h200-llama-blocks.json"
PARTS = RESULTS / "h200-llama-parts.json"
LOADED = RESULTS / "h200-loaded-blocks.json"
OVERHEAD = RESULTS / "h200-call-overhead-c.json"
QUALITY = RESULTS / "minilm-quality.json"
FINETUNED = RESULTS / "h100-minilm-finetuned.json"
SPEED = RESULTS / "h100-minilm-speed.json"
NAMED = (512, 2048, 3000)


def read(path):
    return json.loads(path.read_text("utf-8"))


BARE = ", without copies"


def ratio(row, kind=""):
    """Dense over sparse, as they are, compiled by torch or without dense copies."""
    dense = row.get("dense" if kind == BARE else f"dense{kind}")
    sparse = row.get(f"sparse{kind}")
    return None if dense is None or sparse is None else dense / sparse


def cell(value):
    return "" if value is None else f"{value:.2f}x"


def blocks():
    """A row for each pattern: gains of prefill and decoding."""
    data = read(BLOCKS)
    head = ["pattern", "512", "2048", "compiled", "3000", "drawn", "least"]
    head += ["1 sequence", "compiled", "8", "32"]
    rows, compiled = [], ", torch.compile"
    for one, kind in [(one, kind) for one in data["patterns"] for kind in ("", BARE)]:
        prefill = {r["tokens"]: r for r in one["rows"] if r["kind"] == "prefill"}
        decode = {r["batch"]: r for r in one["rows"] if r["kind"] == "decode"}
        if ratio(decode[1], kind) is None:
            continue
        gains = {n: ratio(row, kind) for n, row in prefill.items()}
        drawn = [gain for n, gain in gains.items() if n not in NAMED]
        others = {} if kind else {"prefill": prefill[2048], "decode": decode[1]}
        rows.append(
            [
                f"`{one['pattern']}`{kind}",
                cell(gains[512]),
                cell(gains[2048]),
                cell(ratio(others.get("prefill", {}), compiled)),
                cell(gains[3000]),
                cell(statistics.geometric_mean(drawn)),
                cell(min(gains.values())),
                cell(ratio(decode[1], kind)),
                cell(ratio(others.get("decode", {}), compiled)),
                cell(ratio(decode[8], kind)),
                cell(ratio(decode[32], kind)),
            ]
        )
    numbers = sorted(n for n in prefill if n not in NAMED)
    note = f"{data['gpu']}, {data['options']['layers']} blocks; drawn: "
    return f"{note}{', '.join(map(str, numbers))} tokens.\n\n" + report.table(
        head, rows
    )


def memory():
    """Bytes of the tensors, and the peak of a prefill of 2048 tokens."""
    rows = []
    for one, kind in [
        (one, kind) for one in read(BLOCKS)["patterns"] for kind in ("", BARE)
    ]:
        dense, sparse = one["bytes"]["dense"], one["bytes"].get(f"sparse{kind}")
        if sparse is None:
            continue
        cells = [f"`{one['pattern']}`{kind}"]
        for kind in ("tensors", "peak"):
            cells.append(f"{dense[kind] / 2**20:.0f}")
            if sparse[kind] is None:
                cells += ["", ""]
                continue
            cells.append(f"{sparse[kind] / 2**20:.0f}")
            cells.append(f"{100 * sparse[kind] / dense[kind]:.0f} %")
        rows.append(cells)
    head = ["pattern", "dense, MiB", "sparse", "", "peak, dense", "sparse", ""]
    return report.table(head, rows)


def parts():
    """Each linear part of a block alone."""
    data = read(PARTS)
    names = [name for name in data["rows"][0] if name not in ("pattern", "tokens")]
    rows = [
        [row["tokens"]]
        + [f"{row[n]['dense_us']:.0f} / {row[n]['sparse_us']:.0f}" for n in names]
        for row in data["rows"]
    ]
    return report.table(["tokens", *names], rows)


def overhead():
    """What a call costs the host."""
    data = read(OVERHEAD)
    names = ["program", "NMLinear, no_grad", "NMLinear", "dense, no_grad", "dense"]
    rows = []
    for one in data["rows"]:
        cells = [f"`{one['pattern']}`", one.get("elements", "f16"), one["tokens"]]
        cells += [f"{one[name]:.1f}" if name in one else "" for name in names]
        rows.append(cells)
    floor = f"The driver alone takes {data['driver_us']:.1f} us for a launch.\n\n"
    return floor + report.table(["pattern", "type", "tokens", *names], rows)


def loaded():
    """Blocks of models that are loaded by name, against dense ones of both types."""
    data = read(LOADED)
    rows = []
    for model in data["models"]:
        for row in model["rows"]:
            us = row["us"]
            what = "tokens" if row["kind"] == "prefill" else "sequences"
            cells = [model["model"], f"{row['kind']}, {row['count']} {what}"]
            names = ("bf16", "fp8", "sparse bf16", "sparse fp8")
            cells += [f"{us[name]:.0f}" for name in names]
            cells.append(cell(us["bf16"] / us["sparse bf16"]))
            cells += [cell(us[name] / us["sparse fp8"]) for name in ("bf16", "fp8")]
            rows.append(cells)
    head = ["model", "", "bf16", "fp8", "2:4 bf16", "2:4 fp8"]
    head += ["2:4 bf16 / bf16", "2:4 fp8 / bf16", "2:4 fp8 / fp8"]
    note = f"{data['gpu']}, microseconds of a block, as speed over dense ones.\n\n"
    return note + report.table(head, rows)


def minilm():
    """Quality and speed of all-MiniLM-L6-v2, pattern by pattern."""
    speed = {row["pattern"]: row for row in read(SPEED)["rows"]}
    rows = []
    for row in read(FINETUNED)["rows"]:
        own, tuned = speed[row["pattern"]], row["finetuned"]
        gains = [t["dense_us"] / t["sparse_us"] for t in own["times"]]
        rows.append(
            [
                f"`{row['pattern']}`",
                f"{100 * row['zeros']:.0f} %",
                f"{row['cosine']:.3f}",
                f"{tuned['cosine']:.3f}",
                f"{100 * tuned['same_nearest']:.0f} %",
                f"{own['difference_sparse']:.1e} ({own['difference_f16']:.1e})",
                *(f"{gain:.2f}x" for gain in gains),
            ]
        )
    sizes = [f"{t['sentences']} x {t['tokens']}" for t in own["times"]]
    head = ["pattern", "zeros", "cosine", "trained", "same nearest", "difference"]
    steps = [row["finetuned"]["steps"] for row in read(FINETUNED)["rows"]]
    minutes = max(row["finetuned"]["minutes"] for row in read(FINETUNED)["rows"])
    note = f"Trained for {minutes:.2f} minutes, {min(steps)} to {max(steps)} steps.\n\n"
    return note + report.table([*head, *sizes], rows)


def quality_points(_):
    """{method or "trained": [[times as fast, cosine, pattern]]} of MiniLM, for 32
    sentences of 64 tokens; what is not trained is without a speed of its own."""
    speed = {}
    for row in read(SPEED)["rows"]:
        times = next(t for t in row["times"] if t["sentences"] == 32)
        speed[row["pattern"]] = times["dense_us"] / times["sparse_us"]
    points = {}
    for row in read(QUALITY)["summary"]:
        if row["pattern"] in speed:
            own = [speed[row["pattern"]], row["cosine"], row["pattern"]]
            points.setdefault(row["method"], []).append(own)
    for row in read(FINETUNED)["rows"]:
        own = [speed[row["pattern"]], row["finetuned"]["cosine"], row["pattern"]]
        points.setdefault("trained", []).append(own)
    return points


def draw_quality(data):
    plt, figure, (axis,) = start(width=6.2, height=4.2)
    shades = [GREY, BLUE, GREEN, ORANGE, PURPLE]
    for (method, points), color in zip(data.items(), shades):
        xs, ys, _ = zip(*points)
        axis.plot(xs, ys, "o", color=color, markersize=5, label=method)
    for x, y, pattern in data["trained"]:
        axis.annotate(pattern, (x, y), (0, 6), textcoords="offset points", fontsize=6.5)
    axis.axvline(1, color=GREY, linewidth=0.8)
    axis.set(ylim=(None, 1.02), xlim=(0.7, 1.15))
    axis.set_xlabel("time of the encoder, dense / sparse; 32 sentences of 64 tokens")
    axis.set_ylabel("mean cosine with the dense embeddings")
    axis.legend(loc="lower right", fontsize=7.5)
    return plt, figure


GENERATORS = {
    "blocks": blocks,
    "memory": memory,
    "parts": parts,
    "loaded": loaded,
    "overhead": overhead,
    "minilm": minilm,
}

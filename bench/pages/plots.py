# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Figures of the newest measurements, for docs/Performance.md.

A figure is a function from data to a file. The data's digest stands in the file,
so that whether it is up to date can be told without drawing it, and without
matplotlib.
"""

import dataclasses
import hashlib
import json
import pathlib
import re
import statistics
import sys
from collections import defaultdict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import element_wise
import energy_page
import models_page
import random_layers
import report
import tuned_layers
from figure_style import BLUE, COLORS, GREEN, GREY, ORANGE, PURPLE, start
from layers import SPARSITIES


def digest(data):
    text = json.dumps(data, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_current(path, data):
    if not path.exists():
        return False
    found = re.search(r"data ([0-9a-f]{16})", path.read_text("utf-8"))
    return bool(found) and found[1] == digest(data)


def name_of(result):
    type_, length, layout = result.kind
    return f"{type_}, L = {length}, {layout}"


def plain(results):
    """Without epilogues, one of each layer: what is compared with the bare dense
    product. Before there was "product", others stood for it."""
    found = {}
    for result in results:
        if result.layer.epilogue not in ("product", "linear", "plain"):
            continue
        layer = dataclasses.replace(result.layer, epilogue="product")
        if layer not in found or result.layer == layer:
            found[layer] = result
    return list(found.values())


def speedup_data(results):
    """{type: {series: [[sparsity, speedup]]}} of the largest cube of each kind."""
    cubes = defaultdict(list)
    for result in plain(results):
        if len(set(result.layer.shape)) == 1:
            cubes[result.kind].append(result)
    data = defaultdict(dict)
    for (type_, length, layout), found in cubes.items():
        size = max(r.layer.shape[0] for r in found)
        points = [r for r in found if r.layer.shape[0] == size]
        data[type_][f"L = {length}, {layout}, {size}³"] = sorted(
            [float(r.layer.sparsity), r.speedup] for r in points
        )
    return dict(data)


def share_data(results):
    """{series: {sparsity: [share of the ideal of each shape]}}"""
    data = defaultdict(lambda: defaultdict(list))
    for result in plain(results):
        if result.layer.shape[0] >= 256:
            share = result.speedup / result.ideal
            data[name_of(result)][result.layer.sparsity].append(share)
    return {s: {k: sorted(v) for k, v in d.items()} for s, d in data.items()}


def roofline_data(results, ceilings):
    """Each product as [flops of kept weights per byte, TFLOP/s]."""
    points = defaultdict(list)
    for result in plain(results):
        m, n, k = result.layer.shape
        kept = 1 - float(result.layer.sparsity) / 100
        size = 4 if result.layer.type == "f32" else 2
        index = k * n * kept / result.layer.length
        moved = size * (m * k + kept * k * n + m * n) + index
        flops = 2 * m * n * k * kept
        points[result.layer.type].append([flops / moved, flops / result.us * 1e-6])
    return {"points": {t: sorted(p) for t, p in points.items()}, "ceilings": ceilings}


def drawn_data(_):
    """{sparsity: [[tokens, speed]]} of the layers that bench/draw.py drew."""
    data = defaultdict(list)
    for layer, speed in random_layers.chosen():
        data[layer.sparsity].append([layer.shape[0], speed])
    return {sparsity: sorted(points) for sparsity, points in data.items()}


def tokens_data(_):
    """{pattern: {shape: [[tokens, speed]]}} of functions for any number of tokens,
    token-major."""
    data = defaultdict(dict)
    for layer, times in random_layers.functions():
        if layer.layout == "token":
            kind = f"{layer.sparsity} % sparse, L = {layer.length}"
            _, outputs, features = layer.shape
            data[kind][f"{outputs} x {features}"] = [
                [tokens, dense / us] for tokens, us, dense in times
            ]
    return dict(data)


def draw_speedup(data):
    most = max(map(len, data.values()))
    plt, figure, axes = start(len(data), 3.4 * len(data), 3.2 + 0.16 * most)
    for axis, (type_, series) in zip(axes, sorted(data.items())):
        ideal = [100 / (100 - float(s)) for s in SPARSITIES]
        places = {float(s): i for i, s in enumerate(SPARSITIES)}
        axis.plot(range(len(ideal)), ideal, "--", color=GREY, label="ideal, m/n")
        colors = [BLUE, ORANGE, GREEN, PURPLE, "#E69F00", "#56B4E9"]
        for (name, points), color, marker in zip(
            sorted(series.items()), colors * 3, "oDs^vP" * 3
        ):
            at = [places[sparsity] for sparsity, _ in points]
            values = [value for _, value in points]
            axis.plot(at, values, color=color, marker=marker, markersize=5, label=name)
        axis.axhline(1, color=GREY, linewidth=0.8)
        axis.set_yscale("log", base=2)
        axis.set_yticks([0.5, 1, 2, 4, 8], ["0.5x", "1x", "2x", "4x", "8x"])
        axis.set_xticks(range(len(ideal)), [f"{s} %" for s in SPARSITIES])
        axis.set_title(type_, loc="left")
        axis.set_xlabel("sparsity")
        lowest = min(value for d in data.values() for p in d.values() for _, value in p)
        axis.set_ylim(min(0.8, 0.9 * lowest), 9)
        axis.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.19))
    axes[0].set_ylabel("speed over dense cuBLAS")
    return plt, figure


def draw_share(data):
    plt, figure, (axis,) = start(height=max(1.6, 0.42 * len(data) + 1.2))
    shades = ["#9ecae1", "#4292c6", "#08519c", "#08244d"]
    for line, (_, cells) in enumerate(sorted(data.items(), reverse=True)):
        for offset, (sparsity, color) in enumerate(zip(SPARSITIES, shades)):
            shares = [100 * share for share in cells.get(sparsity, [])]
            place = line + 0.24 - 0.16 * offset
            axis.plot(
                shares,
                [place] * len(shares),
                "o",
                color=color,
                markersize=5,
                markeredgewidth=0,
                alpha=0.35 if len(shares) > 8 else 0.9,
            )
            if len(shares) > 2:
                median = statistics.median(shares)
                axis.plot(median, place, "|", color="black", markersize=7)
    axis.set_yticks(range(len(data)), sorted(data, reverse=True))
    axis.set_ylim(-0.5, len(data) - 0.5)
    axis.grid(axis="y", visible=False)
    axis.set_xlim(0, 105)
    axis.axvline(100, color=GREY, linestyle="--")
    axis.set_xlabel("share of the ideal speed over cuBLAS, %; a dot is a shape")
    for sparsity, color in zip(SPARSITIES, shades):
        axis.plot([], [], "o", color=color, label=f"{sparsity} % sparse")
    axis.plot([], [], "|", color="black", markersize=9, label="median")
    figure.legend(ncols=5, loc="outside upper center")
    return plt, figure


def draw_roofline(data):
    plt, figure, (axis,) = start(height=4.2)
    ceilings = data["ceilings"]
    memory = ceilings["dram_tbps"]
    low, high = 4, 20000
    every = [x for points in data["points"].values() for x, _ in points]
    low = min([low, *every])
    roofs = {  # name, and on which side of its line that stands
        "ffma_tflops": ("FFMA, f32", "bottom"),
        "mma_tflops": ("mma.sync, f16", "top"),
        "wgmma_tflops": ("wgmma, f16", "bottom"),
    }
    for key, (name, side) in roofs.items():
        peak = ceilings[key]
        ridge = peak / memory
        axis.plot([max(low, ridge), high], [peak, peak], color=GREY, linewidth=1)
        axis.annotate(
            f"{name}: {peak:.0f} TFLOP/s",
            (high, peak * (1.05 if side == "bottom" else 0.95)),
            ha="right",
            va=side,
            color=GREY,
            fontsize=8,
        )
    top = max(ceilings[key] for key in roofs) / memory
    axis.plot([low, top], [low * memory, top * memory], color=GREY, linewidth=1)
    axis.annotate(
        f"device memory: {memory:.1f} TB/s",
        (low * 1.6, low * memory),
        color=GREY,
        fontsize=8,
    )
    for type_, points in sorted(data["points"].items()):
        axis.plot(
            [x for x, _ in points],
            [y for _, y in points],
            {"f16": "o", "bf16": "^", "f32": "s"}[type_],
            color=COLORS[type_],
            markersize=4,
            markeredgewidth=0,
            alpha=0.5,
            label=type_,
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(low, high)
    axis.set_ylim(8, 1300)
    axis.set_xlabel("operations on kept weights per byte of operands and result")
    axis.set_ylabel("TFLOP/s on kept weights")
    axis.legend(loc="lower right")
    return plt, figure


def label_speeds(axis, lowest, highest):
    """A logarithmic axis of speeds over cuBLAS against numbers of tokens."""
    axis.axhline(1, color=GREY, linewidth=0.8)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=2)
    ticks = [t for t in (0.25, 0.5, 1, 2, 4, 8, 16) if lowest < t < highest]
    axis.set_yticks(ticks, [f"{t:g}x" for t in ticks])
    places = [1, 8, 64, 512, 4096]
    axis.set_xticks(places, [str(place) for place in places])
    axis.set_ylim(lowest, highest)
    axis.set_xlabel("tokens")


def draw_drawn(data):
    plt, figure, (axis,) = start(height=3.8)
    shades = ["#9ecae1", "#4292c6", "#08519c", "#08244d"]
    for sparsity, color in zip(SPARSITIES, shades):
        points = data.get(sparsity, [])
        if points:
            label = f"{sparsity} % sparse"
            axis.plot(*zip(*points), "o", color=color, markersize=4, label=label)
    speeds = [speed for points in data.values() for _, speed in points]
    label_speeds(axis, 0.9 * min(speeds), 1.1 * max(speeds))
    axis.set_ylabel("speed over dense cuBLAS; a dot is a layer")
    axis.legend(loc="upper left")
    return plt, figure


def draw_tokens(data):
    plt, figure, axes = start(len(data), 3.4 * len(data), 3.4)
    speeds = [s for lines in data.values() for line in lines.values() for _, s in line]
    for axis, (kind, lines) in zip(axes, sorted(data.items())):
        for (shape, points), color in zip(
            sorted(lines.items()), (BLUE, ORANGE, GREEN, PURPLE)
        ):
            axis.plot(*zip(*points), color=color, linewidth=1, label=shape)
        label_speeds(axis, 0.9 * min(speeds), 1.1 * max(speeds))
        axis.set_title(kind, loc="left")
    axes[0].set_ylabel("speed over dense cuBLAS")
    axes[0].legend(title="outputs x contraction", fontsize=7.5)
    return plt, figure


def draw_times(data):
    plt, figure, axes = start(len(data), 3.0 * len(data), 3.4)
    looks = {
        "dense, cuBLAS": (GREY, "s-"),
        "8:16": (BLUE, "o-"),
        "4:16": (ORANGE, "D-"),
        "bytes of 8:16": (BLUE, ":"),
    }
    for axis, (shape, series) in zip(axes, sorted(data.items())):
        for name, (color, line) in looks.items():
            if name in series:
                axis.plot(
                    *zip(*series[name]), line, color=color, markersize=3, label=name
                )
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        places = [1, 8, 64, 512, 4096]
        axis.set_xticks(places, [str(place) for place in places])
        axis.set_xlabel("tokens")
        axis.set_title(shape, loc="left")
    axes[0].set_ylabel("us")
    axes[0].legend(fontsize=7.5)
    return plt, figure


def energy_data(_):
    """{tokens: [[times as fast, as little energy]]} of drawn layers over cuBLAS."""
    return energy_page.points()


def draw_energy(data):
    plt, figure, (axis,) = start(width=5.4, height=4.2)
    shades = [BLUE, GREEN, ORANGE, PURPLE]
    for (tokens, points), color in zip(data.items(), shades):
        axis.plot(*zip(*points), "o", color=color, markersize=4, label=tokens)
    ends = [value for points in data.values() for point in points for value in point]
    low, high = 0.9 * min(ends), 1.1 * max(ends)
    axis.plot([low, high], [low, high], "--", color=GREY, linewidth=0.8)
    axis.axhline(1, color=GREY, linewidth=0.8)
    axis.axvline(1, color=GREY, linewidth=0.8)
    ticks = [t for t in (0.25, 0.5, 1, 2, 4, 8) if low < t < high]
    axis.set(xscale="log", yscale="log")
    for at in (axis.xaxis, axis.yaxis):
        at.set_major_locator(plt.FixedLocator(ticks))
        at.set_major_formatter(plt.FixedFormatter([f"{t:g}x" for t in ticks]))
        at.set_minor_locator(plt.NullLocator())
    axis.set(xlim=(low, high), ylim=(low, high))
    axis.set_xlabel("time, dense cuBLAS / sparse; a dot is a layer")
    axis.set_ylabel("energy, dense cuBLAS / sparse")
    axis.legend(title="tokens", loc="upper left")
    return plt, figure


def tuned_data(_):
    return tuned_layers.points()


def draw_tuned(data):
    plt, figure, axes = start(len(data), 11, 2.8)
    speeds = [
        speed for both in data.values() for own in both.values() for _, speed in own
    ]
    for axis, (name, both) in zip(axes, data.items()):
        axis.plot(*zip(*both["model_"]), "o-", color=GREY, markersize=3,
                  label="the model's choice")  # fmt: skip
        axis.plot(*zip(*both[""]), "o-", color=BLUE, markersize=3,
                  label="measured choice")  # fmt: skip
        label_speeds(axis, 0.9 * min(speeds), 1.1 * max(speeds))
        ticks = [tick for tick in (0.5, 0.7, 1, 1.4, 2) if tick > 0.9 * min(speeds)]
        axis.set_yticks(ticks, [f"{tick:g}x" for tick in ticks])
        axis.set_title(name, loc="left", fontsize=9)
    axes[0].set_ylabel("speed over dense cuBLAS")
    axes[0].legend(fontsize=7)
    return plt, figure


FIGURES = {
    "tuned": (tuned_data, draw_tuned, "Speed over dense cuBLAS of measured choices"),
    "minilm": (
        models_page.quality_points,
        models_page.draw_quality,
        "What all-MiniLM-L6-v2 keeps against its speed",
    ),
    "energy": (energy_data, draw_energy, "Energy against time of drawn layers"),
    "drawn": (drawn_data, draw_drawn, "Speed over dense cuBLAS of drawn layers"),
    "tokens": (tokens_data, draw_tokens, "Speed over dense cuBLAS by tokens"),
    "times": (element_wise.times_data, draw_times, "Time by tokens, element-wise"),
    "speedup": (speedup_data, draw_speedup, "Speed over dense cuBLAS by sparsity"),
    "share": (share_data, draw_share, "Share of the ideal speed, shape by shape"),
    "roofline": (roofline_data, draw_roofline, "Products under the measured ceilings"),
}


def make(name, folder, results=report.RESULTS, write=True):
    """The figure's line of Markdown; writes the file unless it is up to date."""
    collect, draw, title = FIGURES[name]
    newest = report.latest(report.load(results))
    if not newest:
        return report.NONE
    extra = []
    if collect is roofline_data:
        extra.append(report.rivals(results).get("ceilings", {}))
        if not extra[0]:
            return report.NONE
    data = collect(newest, *extra)
    path = folder / f"{name}.svg"
    if write and not is_current(path, data):
        plt, figure = draw(data)
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(
            path, metadata={"Date": None, "Description": f"data {digest(data)}"}
        )
        plt.close(figure)
    # The digest makes the page stale when the figure is.
    return f"![{title}](images/{name}.svg) <!-- {digest(data)} -->"

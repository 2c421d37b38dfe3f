"""Writes clocks.json, a sweep over clocks that nobody recorded: of known parameters of
DSO's equations, with 2 % of noise. With the name of a variant, one that lacks
something. With `best`, the clocks of the least energy without the noise, of the
layers as --recommend describes them."""

import json
import random
import sys

CORES = list(range(600, 1980, 90)) + [1980]
MEMORIES = [2619, 3201]
USUAL = (1980, 3201)
ENCODING = "#nm_sparse.encoding<8:32, block = [1, 128]>"
# Tokens of examples/linear.mlir, and what the cost model says of it, in microseconds:
# fixed, core, memory.
LAYERS = {
    1: (1.45, 2.8, 4.6),
    512: (1.45, 17.7, 6.4),
    2048: (1.45, 55.4, 20.1),
    4096: (1.45, 108.3, 60.0),
}
OFF = (1.2, 0.9, 1.1)  # The truth over the cost model, of each part.


def volts(core):
    return 0.7 + max(0, core - 1200) * 0.4 / 780


def parts(tokens, core, memory):
    fixed, by_core, by_memory = (a * b for a, b in zip(LAYERS[tokens], OFF))
    return fixed, by_core * USUAL[0] / core, by_memory * USUAL[1] / memory


def microseconds(tokens, core, memory):
    fixed, by_core, by_memory = parts(tokens, core, memory)
    return fixed + max(by_core, by_memory)


def watts(tokens, core, memory):
    whole = microseconds(tokens, *USUAL)
    _, by_core, by_memory = parts(tokens, *USUAL)
    gamma = 0.01 + 0.03 * by_memory / whole
    c = 0.04 + 0.1 * by_core / whole
    return 60 + 40 * volts(core) + gamma * memory + c * volts(core) ** 2 * core


def best(tokens, loss):
    """The pair of the least energy."""
    pairs = [(core, memory) for core in CORES for memory in MEMORIES]
    least = min(microseconds(tokens, *pair) for pair in pairs)
    within = [p for p in pairs if microseconds(tokens, *p) <= (1 + loss) * least]
    return min(within, key=lambda p: watts(tokens, *p) * microseconds(tokens, *p))


def noise():
    """Normal, of 2 %; only random() gives the same numbers in all Pythons."""
    return 1 + 0.02 * (sum(random.random() for _ in range(12)) - 6)


def point(tokens, core, memory):
    return {
        "core_mhz": core,
        "memory_mhz": memory,
        "volts": round(volts(core), 4),
        "us": round(microseconds(tokens, core, memory) * noise(), 4),
        "watts": round(watts(tokens, core, memory) * noise(), 3),
    }


def layer(tokens):
    points = [
        {"asked_core_mhz": c, "asked_memory_mhz": m, **point(tokens, c, m)}
        for m in MEMORIES
        for c in CORES
    ]
    names = ("fixed_us", "core_us", "memory_us")
    return {
        "layer": f"linear_{tokens}",
        "type": "f16",
        "tokens": tokens,
        "outputs": 4096,
        "inputs": 4096,
        "encoding": ENCODING,
        # Only that of one token says which.
        "schedule": "#nm_tile.schedule<given>" if tokens == 1 else "",
        "parts": dict(zip(names, LAYERS[tokens])),
        "unlocked": point(tokens, *USUAL),
        "points": points,
    }


def change(sweep, variant):
    layers = sweep["layers"]
    if variant == "h100":
        sweep["gpu"] = "NVIDIA H100 80GB HBM3"
    elif variant == "unknown":
        sweep["gpu"] = "a GPU"
    elif variant == "alone":
        sweep["layers"] = [layers[2]]
    for entry in layers:
        points = entry["points"]
        if variant == "volts":
            for one in [*points, entry["unlocked"]]:
                one["volts"] = None
        elif variant == "memory":
            entry["points"] = [p for p in points if p["memory_mhz"] == USUAL[1]]
        elif variant == "parts":
            del entry["parts"]
        elif variant == "few":
            entry["points"] = points[:3]
            del entry["unlocked"]
        elif variant == "locked":
            del entry["unlocked"]


def main():
    if sys.argv[1:2] == ["best"]:
        for tokens in LAYERS:
            for loss in (0, 5, 50):
                core, memory = best(tokens, loss / 100)
                print(f"{tokens} tokens, {loss} %: {core} {memory}")
        return
    random.seed(1)
    sweep = {
        "gpu": "NVIDIA H200",
        "synthetic": True,
        "note": "made by clocks.py, not recorded",
        "layers": [layer(tokens) for tokens in LAYERS],
    }
    change(sweep, sys.argv[1] if len(sys.argv) > 1 else "")
    text = json.dumps(sweep, indent=1)
    # A point in a line.
    head, *rest = text.split("{\n     ")
    print(text if not rest else "{ ".join([head, *map(joined, rest)]))


def joined(part):
    inside, brace, after = part.partition("}")
    return " ".join(inside.split()) + brace + after


if __name__ == "__main__":
    main()

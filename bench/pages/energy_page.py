# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What products take in joules and how well that is predicted, for docs/Energy.md,
of the layers that `draw.py --energy` drew."""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "energy"))
import report
from energy_choice import judge
from energy_llm import DENSE, LAYERS, PATTERNS
from layers import SPARSITIES, parse
from random_layers import GROUPS, group_of

FIT = report.RESULTS / "h100-energy-fit.json"
JUDGE = report.RESULTS / "h100-energy-judge.json"
MODEL = report.RESULTS / "h100-energy-model.json"
CHOICE = report.RESULTS / "h200-energy-choice.json"
LLM = report.RESULTS / "h100-energy-llm.json"
COUNTERS = report.RESULTS / "h100-energy-counters.json"
REGRESSORS = report.RESULTS / "h100-energy-regressors.json"

# What the costs are of, with the unit that they are printed in.
COSTS = {
    "idle": ("any time", 1, "W"),
    "active": ("SMs with a CTA, all of them", 1, "W"),
    "tensorFlop": ("a flop of tensor cores", 1e12, "pJ"),
    "sparseTensorFlop": ("a flop of sparse tensor cores", 1e12, "pJ"),
    "ffmaFlop": ("a flop of an f32 FFMA", 1e12, "pJ"),
    "laneFlop": ("a flop of lanes that decode a weight", 1e12, "pJ"),
    "l2Byte": ("a byte from or to L2", 1e12, "pJ"),
    "dramByte": ("a byte from or to memory", 1e12, "pJ"),
    "limit": ("the GPU, at most", 1, "W"),
}

# What rows of the regressors' tables know, of all products and of sparse ones.
KNOWN = {
    "all": [
        "none",
        "static",
        "static, predicted time",
        "static, measured time",
        "dynamic",
        "both",
    ],
    "sparse": [
        "code",
        "static",
        "static, code",
        "static, measured time",
        "static, code, measured time",
        "dynamic",
        "both",
    ],
}


def read(path):
    return json.loads(path.read_text("utf-8"))


def costs():
    found = read(MODEL)["costs"]
    rows = [
        [what, f"{found[name] * scale:.3g} {unit}"]
        for name, (what, scale, unit) in COSTS.items()
    ]
    return report.table(["of", "takes"], rows)


def errors():
    """The judged products, by family."""
    found = read(MODEL)["errors"]
    measured = found["judge, measured time"]
    predicted = found["judge, predicted time"]
    rows = [
        [
            name,
            of["products"],
            *(
                f"{100 * part[name]['median']:.1f} % "
                f"({100 * part[name]['within_quarter']:.0f} %)"
                for part in (measured, predicted)
            ),
        ]
        for name, of in measured.items()
    ]
    return report.table(
        ["family", "products", "error with measured time", "with predicted time"], rows
    )


def error(row):
    return (
        f"{100 * row['median']:.1f} % / {100 * row['p95']:.0f} % "
        f"({100 * row['within_quarter']:.0f} %)"
    )


def compared(rows, which):
    """One table of compare_energy_models.py: of all products, or sparse ones."""
    found = {}
    for row in rows:
        if row["products_of"] == which:
            kinds = found.setdefault((row["features"], row["model"]), {})
            kinds[row["validation"], row["target"]] = row
    lines = []
    for known in KNOWN[which]:
        for (features, model), kinds in found.items():
            if features == known:
                unseen = kinds["family left out", "energy"]
                families = unseen["families"]
                worst = max(families, key=lambda name: families[name]["median"])
                lines.append(
                    [
                        known,
                        model,
                        error(unseen),
                        f"{worst}, {100 * families[worst]['median']:.0f} %",
                        error(kinds["family left out", "power"]),
                        error(kinds["other layers", "energy"]),
                    ]
                )
    head = ["known", "model", "energy, family left out", "worst family"]
    head += ["power, family left out", "energy, other layers"]
    return report.table(head, lines)


def regressors():
    """The energy model beside what knows no physics."""
    found = read(REGRESSORS)
    counters = (
        "Counters were not measured: rows of what is dynamic, and of both, await a "
        "profile."
        if found["counters"] is None
        else f"Counters: `{found['counters']}`."
    )
    return (
        f"{found['products']} products, half of them dense:\n\n"
        f"{compared(found['rows'], 'all')}\n\n"
        f"The sparse ones by themselves:\n\n"
        f"{compared(found['rows'], 'sparse')}\n\n{counters}"
    )


def products():
    """[(layer, the dense product's joules, ours, both their seconds and watts)]."""
    found = []
    for path in (FIT, JUDGE):
        for entry in read(path)["layers"]:
            energy = entry["energy"]
            if "cublas" in energy:
                found.append((parse(entry["layer"]), energy["cublas"], energy["ours"]))
    return found


def ratios(found, key):
    return [dense[key] / ours[key] for dense, ours in found]


def headline():
    """Dense against each sparsity, by the number of tokens."""
    groups = collections.defaultdict(list)
    for layer, dense, ours in products():
        groups[layer.sparsity, group_of(layer.shape[0])].append((dense, ours))
    rows = []
    for sparsity in SPARSITIES:
        for tokens in GROUPS:
            found = groups.get((sparsity, tokens))
            if not found:
                continue
            watts = [[p[i]["watts"] for p in found] for i in (0, 1)]
            rows.append(
                [
                    f"{sparsity} %",
                    tokens,
                    len(found),
                    f"{report.geomean(ratios(found, 'us')):.2f}x",
                    f"{report.geomean(ratios(found, 'mj')):.2f}x",
                    *(f"{sum(w) / len(w):.0f} W" for w in watts),
                ]
            )
    head = [
        "sparse",
        "tokens",
        "layers",
        "time, dense / sparse",
        "energy, dense / sparse",
    ]
    return report.table([*head, "dense power", "sparse power"], rows)


def block_sums(found, tokens):
    """{pattern: (mJ, us) of a block's products}, where all of them were measured.
    What gate takes counts for up, too."""
    kinds = {}
    for product in found:
        if product["tokens"] == tokens:
            kinds.setdefault(product["pattern"], {})[product["layer"]] = product
    if set(kinds) != {DENSE, *PATTERNS} or any(
        len(k) < len(LAYERS) for k in kinds.values()
    ):
        return None
    return {
        pattern: tuple(
            sum((1 + (name == "gate")) * p[key] for name, p in of.items())
            for key in ("mj", "us")
        )
        for pattern, of in kinds.items()
    }


def llm():
    """The linear layers of a block of Llama-3-8B, dense and by pattern."""
    result = read(LLM)
    counts = sorted({p["tokens"] for p in result["products"]})
    sums = {t: block_sums(result["products"], t) for t in counts}
    columns = {t: found for t, found in sums.items() if found}
    rows = [["dense", ""] + [f"{found[DENSE][0]:.0f} mJ" for found in columns.values()]]
    for pattern, zeros in PATTERNS.items():
        row = [f"`{pattern}`", f"{zeros} %"]
        for found in columns.values():
            (mj, us), (dense_mj, dense_us) = found[pattern], found[DENSE]
            row.append(f"{mj:.0f} mJ, {dense_mj / mj:.2f}x ({dense_us / us:.2f}x)")
        rows.append(row)
    head = ["weights", "zeros"]
    head += [f"{t} token{'s' if t > 1 else ''}" for t in columns]
    return f"{result['gpu']}:\n\n{report.table(head, rows)}"


def choice(folder):
    """What each objective chooses, by the model of the build in `folder`."""
    return judge(CHOICE, pathlib.Path(folder))[1]


def points():
    """{group of tokens: [[times as fast, as little energy]]}."""
    found = collections.defaultdict(list)
    for layer, dense, ours in products():
        speed, energy = dense["us"] / ours["us"], dense["mj"] / ours["mj"]
        found[group_of(layer.shape[0])].append([round(speed, 4), round(energy, 4)])
    return {name: sorted(found[name]) for name in GROUPS if name in found}

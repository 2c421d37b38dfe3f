# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one form of a weight for all numbers of tokens costs, for docs/Performance.md:
the predictions that bench/storage_classes.py has written."""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import report

CLASSES = report.RESULTS / "storage-classes.json"


def name(form, pattern):
    """A form as the table says it."""
    by = "" if form["by"] == pattern else f" as `{form['by']}`"
    return form["storage"] + by


def losses(row, number):
    """Time in the common form over that in the best, for each number of tokens."""
    common = row["forms"][0]["us"]
    best = [min(times) for times in zip(*(form["us"] for form in row["forms"]))]
    return [common[i] / best[i] for i in range(number)]


def cells(rows, number):
    """Of the layers of one pattern and type: the common form, those that are best for
    one token, their bytes, and means of what the common form costs."""
    pattern, common = rows[0]["pattern"], rows[0]["forms"][0]
    gains = [
        min(row["forms"], key=lambda form: form["us"][0])
        for row in rows
        if losses(row, 1)[0] > 1.005
    ]
    found = collections.Counter(name(form, pattern) for form in gains)
    few = found.most_common(1)[0][0] if found else "the same"
    size = [
        form["bytes"] / row["forms"][0]["bytes"]
        for row in rows
        for form in row["forms"]
        if name(form, pattern) == few
    ]
    means = [report.geomean(one) for one in zip(*(losses(row, number) for row in rows))]
    return [
        name(common, pattern),
        few,
        f"{100 * report.geomean(size):.0f} %" if size and found else "",
        *(f"{mean:.2f}" for mean in means),
    ]


def classes_page(path=CLASSES, gpu="h200"):
    """Each pattern and type of the support table, and further ones."""
    if not path.exists():
        return report.NONE
    data = json.loads(path.read_text("utf-8"))
    groups = collections.defaultdict(list)
    for row in data["rows"]:
        if row["gpu"] == gpu:
            groups[row["pattern"], row["type"]].append(row)
    # Types of which all is the same are one row.
    merged = collections.defaultdict(list)
    for (pattern, type_), rows in groups.items():
        own = cells(rows, len(data["tokens"]))
        merged[pattern, tuple(own)].append(type_)
    header = ["pattern", "types", "stored as", "best for one token", "bytes"]
    header += [str(count) for count in data["tokens"]]
    body = [
        [f"`{pattern}`", ", ".join(types), *own]
        for (pattern, own), types in merged.items()
    ]
    alone = ", ".join(f"`{pattern}`" for pattern in data["one_form"])
    drawn = len({(row["inputs"], row["outputs"]) for row in data["rows"]})
    about = (
        f"`{path.name}`: predictions for an {gpu.upper()}, means of {drawn} layers "
        f"(seed {data['seed']}). These have one form alone: {alone}."
    )
    return report.table(header, body) + "\n\n" + about


PAGES = {"forms": classes_page}

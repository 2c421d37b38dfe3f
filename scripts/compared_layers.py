# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers that scripts/compare_ptx.py compiles with two builds, from the lists
of a source tree: its benchmarks, its emulator's kernels, its budgets, a grid of
layouts, epilogues and chips, and layers drawn from a seed."""

import contextlib
import dataclasses
import importlib
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = (
    "bench",
    "test/Integration/Emulator/Inputs",
    "test/Pipelines/Inputs",
    "test/Target/Inputs",
)
CHIPS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
# (sparsity, shape): a large product, and one whose sizes divide by nothing.
GRID = (("75", (2048, 4096, 4096)), ("50", (77, 1000, 1333)))
GRID_LENGTHS = {"f32": 32, "f16": 128, "bf16": 64}


@dataclasses.dataclass(frozen=True)
class Item:
    """One compilation. `group` says which list it is from; `arguments` are those
    of nm-compile beside files and chip. `layer` is the name of a layer that
    bench/ can run, and `label` says which of its schedules this is."""

    group: str
    name: str
    source: str
    chip: str = "sm_90a"
    arguments: tuple = ()
    layer: str = ""
    label: str = ""


def with_schedule(source, schedule):
    """A layer of bench/ whose product has this schedule, by the name of its age."""
    name = "schedule" if schedule.startswith("#nm_sparse.") else "config"
    given, number = re.subn(
        r"(linalg\.matmul indexing_maps = \[.*\])\n",
        lambda match: f"{match[1]} {{nm_sparse.{name} = {schedule}}}\n",
        source,
    )
    if number != 1:
        raise ValueError(f"{number} products, expected one:\n{source}")
    return given


def of_layer(group, layer, schedule=None, label=""):
    source = with_schedule(layer.text(), schedule) if schedule else layer.text()
    name = f"{layer.name} {label}" if label else layer.name
    tokens = ("--tokens", str(layer.shape[0]))
    return Item(group, name, source, arguments=tokens, layer=layer.name, label=label)


def bench(shapes, suites=None):
    """What the suites compile: a layer for each schedule that they force, and for
    the model's."""
    cases = [case for suite in suites or shapes.SUITES for case in shapes.SUITES[suite]]
    forced = {(c.layer, c.schedule): c.label for c in cases}
    return [
        of_layer("bench", layer, schedule, label if schedule else "")
        for (layer, schedule), label in forced.items()
    ]


def grid(layers):
    return [
        dataclasses.replace(item, chip=chip)
        for chip in CHIPS
        for type_, length in GRID_LENGTHS.items()
        for layout in layers.LAYOUTS
        for epilogue in layers.EPILOGUES
        for sparsity, shape in GRID
        for item in [
            of_layer(
                "grid",
                layers.Layer(type_, sparsity, length, layout, shape, epilogue),
            )
        ]
    ]


def of_case(group, cases, name, case, arguments=()):
    return Item(group, name, cases.text(case), case.chip, arguments)


def of_chips(cases, chips):
    """The kernels that ptxas is shown for each chip."""
    known = [
        (f"{name}, {chip}", dataclasses.replace(case, chip=chip))
        for chip in chips.CHIPS
        for name, case in {
            **chips.LAYERS,
            **(chips.PRODUCERS if chip in chips.NEW_CHIPS else {}),
        }.items()
    ] + list(chips.WARPGROUPS.items())
    return [of_case("chips", cases, name, case) for name, case in known]


def drawn(cases, sweep, count, seed):
    rng = random.Random(seed)
    chosen = [sweep.draw(rng) for _ in range(count)]
    return [
        of_case("random", cases, f"{number}: {case}", case)
        for number, case in enumerate(chosen)
    ]


@contextlib.contextmanager
def tree_of(commit):
    """The folder with the lists of a commit; of this working tree without one."""
    if not commit:
        yield ROOT
        return
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["git", "-C", str(ROOT), "archive", commit, *FOLDERS],
            capture_output=True,
            check=True,
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        yield pathlib.Path(folder)


def collect(tree, suites=None, drawn_count=150, seed=1):
    """All items of a tree, or those of some suites of its bench/ alone."""
    sys.path[:0] = [str(tree / folder) for folder in FOLDERS]
    names = "layers shapes kernels budgets cases chips sweep"
    layers, shapes, kernels, budgets, cases, chips, sweep = map(
        importlib.import_module, names.split()
    )
    if suites:
        return bench(shapes, suites)
    # As their tests compile them: token-major kernels, not a transposition.
    keep = ("--layout", "keep")
    return [
        *bench(shapes),
        *(of_case("emulator", cases, *named) for named in kernels.kernels()),
        *(of_case("budgets", cases, *n, keep) for n in budgets.KERNELS.items()),
        *of_chips(cases, chips),
        *grid(layers),
        *drawn(cases, sweep, drawn_count, seed),
    ]


def sample(items, count, seed):
    """`count` of the items: as many of each group as there are, up to an equal
    share."""
    rng = random.Random(seed)
    groups = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    for members in groups.values():
        rng.shuffle(members)
    chosen = []
    while len(chosen) < count and any(groups.values()):
        for members in groups.values():
            if members and len(chosen) < count:
                chosen.append(members.pop())
    return chosen

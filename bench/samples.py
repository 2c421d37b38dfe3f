# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that a table of costs is fitted to: a file of lines of JSON, the first of
which says where they were measured, and each other one what a kernel took."""

import dataclasses
import json
import pathlib
import re
import sys

import drawn
from drawn import before_of
from layers import parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "immediate"))
import immediate_layers  # noqa: E402


@dataclasses.dataclass(frozen=True)
class ConstantLayer:
    """A layer whose weight is a constant, with any elements zero, of f32."""

    outputs: int
    rows: int
    tokens: int
    percent: int

    NAME = re.compile(r"constant(\d+)_(\d+)x(\d+)x(\d+)$")
    type = "f32"

    @property
    def name(self):
        return f"constant{self.percent}_{self.tokens}x{self.outputs}x{self.rows}"

    @property
    def shape(self):
        return self.tokens, self.outputs, self.rows

    @property
    def flags(self):
        """Further ones of nm-compile."""
        return ["--specialize-constants", "--density", str(self.percent)]

    def text(self, schedule):
        inside = schedule.removeprefix("#nm_tile.schedule<").removesuffix(">")
        layer = (self.outputs, self.rows, self.tokens, self.percent / 100)
        return immediate_layers.program(layer, inside)


def parse_layer(name):
    """The layer that has this name, a Layer or a ConstantLayer; or None."""
    match = ConstantLayer.NAME.match(name)
    if not match:
        return parse(name)
    percent, tokens, outputs, rows = map(int, match.groups())
    return ConstantLayer(outputs, rows, tokens, percent)


@dataclasses.dataclass(frozen=True)
class Sample:
    """One kernel.

    layer:         a Layer or a ConstantLayer.
    us, dense_us:  microseconds of all kernels of a call, and of cuBLAS beside them;
                   0 where that was not measured in the same way.
    before:        "transposition" or "row copy": what a kernel before the product does.
    overlaps:      the launch overlaps with the end of the kernel before it.
    """

    layer: object
    schedule: str
    us: float
    dense_us: float = 0.0
    before: str = ""
    overlaps: bool = False

    def line(self):
        fields = {"layer": self.layer.name, "schedule": self.schedule}
        fields["us"] = self.us
        if self.dense_us:
            fields["dense_us"] = self.dense_us
        if self.before:
            fields["before"] = self.before
        if self.overlaps:
            fields["overlaps"] = 1
        return json.dumps(fields, separators=(",", ":"))


def read(path):
    """The object in the first line, and the samples; or those of a report of
    bench/draw.py, as `drawn.py` condenses it."""
    if path.suffix == ".json":
        report = json.loads(path.read_text("utf-8"))
        return report, list(of_report({"runs": drawn.runs(report)}))
    with open(path, encoding="utf-8") as file:
        head, *rest = map(json.loads, file)
    return head, [
        Sample(
            parse_layer(one["layer"]),
            one["schedule"],
            one["us"],
            one.get("dense_us", 0.0),
            one.get("before", ""),
            bool(one.get("overlaps")),
        )
        for one in rest
    ]


def rounded(us):
    return float(f"{us:.4g}")


def of_report(report):
    """Those of a report of nm-run --batch that ran; runs that fail are left out."""
    for run in report["runs"]:
        layer = parse(pathlib.Path(run.get("file", "")).stem)
        if not layer or not run.get("schedules") or not run.get("passed", True):
            continue
        if "time" in run and "cublas_us" in run:
            yield Sample(
                layer,
                run["schedules"][0],
                rounded(run["time"]["median_us"]),
                rounded(run["cublas_us"]),
                run.get("before", before_of(run)) or "",
                bool(run.get("overlapping_launches")),
            )


def write(report, path):
    """Writes what a report has; the number of samples."""
    found = list(of_report(report))
    head = {"commit": report["commit"]}
    head["gpu"] = next((run["gpu"] for run in report["runs"] if "gpu" in run), "")
    lines = [json.dumps(head), *(sample.line() for sample in found)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return len(found)

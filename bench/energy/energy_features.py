# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known of measured products, in groups that regressors of
compare_energy_models.py are given: without running them, or by the profiler."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import pathlib
import subprocess
import sys
from typing import Dict, List, Optional, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from energy_samples import Sample, ask, compile_entry, read_jobs, run_jobs, samples_of
from layers import SPARSITIES, parse

# SMs of an H100 or H200; CTAs, threads and bytes of shared memory that one holds; bytes
# of the latter that each CTA takes beside its own.
SMS, SM_CTAS, SM_THREADS, SM_BYTES, CTA_BYTES = 132, 32, 2048, 233472, 1024
ELEMENT_BYTES = {"f16": 2, "bf16": 2, "f32": 4}
# As profile_energy.py calls the two products of a layer.
OURS, DENSE = "ours", "cublas"


@dataclasses.dataclass
class Product:
    """A measured product, and numbers of it, none negative, by group.

    Groups are `events` and `size` of all products, `code` of our own, `predicted` and
    `measured` time, and `counters` of those that were profiled.
    """

    sample: Sample
    groups: Dict[str, Dict[str, float]]

    @property
    def is_dense(self) -> bool:
        return self.sample.family == "dense"

    @property
    def family(self) -> str:
        """The kind of product of the schedule, however it fetches operands; `dense`
        for the vendor's."""
        return self.sample.family.split(",")[0]


def describe_size(sample: Sample) -> Dict[str, float]:
    """The layer, flops that are not of zeros, and flops for each byte of memory."""
    layer = parse(sample.layer)
    tokens, outputs, contraction = layer.shape
    kept, window = map(int, SPARSITIES[layer.sparsity].split(":"))
    share = 1.0 if sample.family == "dense" else kept / window
    flops = 2.0 * tokens * outputs * contraction * share
    return {
        "tokens": tokens,
        "outputs": outputs,
        "contraction": contraction,
        "elementBytes": ELEMENT_BYTES[layer.type],
        "keptShare": share,
        "flops": flops,
        "flopsPerByte": flops / sample.events["dramBytes"],
    }


def describe_code(kernels: Sequence[dict], given: dict) -> Dict[str, float]:
    """Instructions of PTX, in loops and outside, and how many CTAs run at a time.

    `kernels` is what `nm-translate --ptx-to-features` prints, with the product's
    kernel last; `given` is the schedule as nm-compile describes it. CTAs of an SM are
    bounded by threads and shared memory: registers are not known of PTX.
    """
    names = kernels[-1]["total"]
    found: Dict[str, float] = {
        f"{where}{n}": 0 for n in names for where in ("", "loop_")
    }
    for kernel in kernels:
        for depth, counts in enumerate(kernel["by_depth"]):
            for name, count in counts.items():
                found[f"loop_{name}" if depth else name] += count
    threads, shared = kernels[-1]["max_threads"], given["shared_bytes"]
    held = min(SM_CTAS, SM_THREADS // threads, SM_BYTES // (shared + CTA_BYTES))
    if not held:
        raise ValueError(f"CTAs of {threads} threads and {shared} bytes fit on no SM")
    found.update(
        ctas=given["ctas"],
        threads=threads,
        sharedBytes=shared,
        occupancy=held * threads / SM_THREADS,
        waves=math.ceil(given["ctas"] / (held * SMS)),
    )
    return found


def read_kernels(entry: dict, tool: str, gpu: str):
    """What the PTX of a measured layer holds; a reason why it is not known."""
    done = compile_entry(entry, tool, gpu, ["-o", "-"])
    if not done.returncode:
        done = subprocess.run(
            [str(pathlib.Path(tool).with_name("nm-translate")), "--ptx-to-features"],
            input=done.stdout,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    # Copies of rows run only where rows are not aligned, so that there may be more.
    kernels = {kernel["name"]: kernel for kernel in json.loads(done.stdout)}
    missing = [name for name in entry["kernels"] if name not in kernels]
    if missing:
        return f"'{missing[0]}' was measured, and there are {sorted(kernels)}"
    return [kernels[name] for name in entry["kernels"]]


def read_counters(path: pathlib.Path) -> Dict[str, Dict[str, Dict[str, float]]]:
    """{layer: {OURS and DENSE: {metric: number}}} of a file that `profile_energy.py
    condense` wrote; metrics that some product lacks are left out.

    Raises SystemExit where the file is no such file, or a product has no metrics.
    """
    try:
        report = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(
            f"{path}: {error}; legal is a file of `profile_energy.py condense`"
        ) from None
    if not isinstance(report, dict) or not report.get("profiled"):
        raise SystemExit(
            f"{path} has no profiled layers: `profile_energy.py condense` makes such"
        )
    entries = {entry["layer"]: entry for entry in report["profiled"]}
    columns = []
    for name, entry in entries.items():
        for kind in (OURS, DENSE):
            if not entry.get(kind):
                raise SystemExit(f"{path}: {name} has no counters of '{kind}'")
            columns.append(set(entry[kind]))
    shared = sorted(functools.reduce(set.intersection, columns))
    if not shared:
        raise SystemExit(f"{path}: no metric is there of all products")
    return {
        name: {kind: {m: entry[kind][m] for m in shared} for kind in (OURS, DENSE)}
        for name, entry in entries.items()
    }


def make_product(sample: Sample, code: dict, counters: Optional[dict]) -> Product:
    """Times are in ns, so that the log of one more than a time is that of the time."""
    groups = {
        "events": sample.events,
        "size": describe_size(sample),
        "predicted": {"predictedNs": 1e3 * sample.predicted_us},
        "measured": {"measuredNs": 1e3 * sample.us},
    }
    if sample.family != "dense":
        groups["code"] = code
    if counters:
        kind = DENSE if sample.family == "dense" else OURS
        groups["counters"] = counters[sample.layer][kind]
    return Product(sample, groups)


def read_products(
    paths: Sequence[pathlib.Path],
    folder: pathlib.Path,
    counters: Optional[dict] = None,
    profiled: bool = False,
) -> List[Product]:
    """The products of result files of `draw.py --energy`, with the tools of `folder`.

    `counters` is of read_counters; `profiled` leaves out layers that it does not have.
    Raises SystemExit where a file has no energies, and where counters lack a layer.
    """
    jobs = read_jobs(paths, folder)
    if counters is not None:
        missing = [job for job in jobs if job[0]["layer"] not in counters]
        if missing and not profiled:
            raise SystemExit(
                f"{missing[0][0]['layer']} and {len(missing) - 1} more layers have no "
                "counters; profile them, or use --profiled to leave them out"
            )
        jobs = [job for job in jobs if job[0]["layer"] in counters]
    described, kernels = run_jobs(ask, jobs), run_jobs(read_kernels, jobs)
    found = []
    for (entry, _, _), product, ptx in zip(jobs, described, kernels):
        code = describe_code(ptx, product["given"])
        for sample in samples_of(entry, product):
            found.append(make_product(sample, code, counters))
    return found

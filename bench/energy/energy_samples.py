# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measured energies of products, sparse and dense, beside what the energy model
counts of them, for fit_energy.py."""

import concurrent.futures
import ctypes
import dataclasses
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from layers import parse

# Part of the names of kernels that transpose before a product.
TRANSPOSED = "_transpose"


@dataclasses.dataclass
class Sample:
    """One product, measured in a loop of a second or more."""

    layer: str
    family: str  # dense: the vendor's.
    tokens: int
    mj: float
    us: float
    few_us: float  # In a few runs, at the highest clocks.
    watts: float
    limit: float
    predicted_us: float
    events: dict
    table: dict  # The costs of this GPU, as nm-compile has them.

    @property
    def is_at_limit(self):
        """The GPU held itself to its limit, or nearly."""
        return self.watts > 0.97 * self.limit


def gpu_of(report):
    """As nm-compile calls it."""
    name = report["gpu"].lower()
    found = re.search(r"h100|h200|a100|b200", name)
    if not found:
        raise SystemExit(f"unknown GPU '{report['gpu']}'")
    return found[0]


def compile_entry(entry, tool, gpu, options):
    """What nm-compile does of a measured layer, with its schedule and layout."""
    layer = parse(entry["layer"])
    transposes = any(TRANSPOSED in kernel for kernel in entry["kernels"])
    return subprocess.run(
        [tool, "-", *options, "--gpu", gpu]
        + ["--layout", "feature-major" if transposes else "keep"]
        + ["--tokens", str(entry["tokens"])],
        input=layer.text(entry["schedule"]),
        capture_output=True,
        text=True,
        check=False,
    )


def ask(entry, tool, gpu):
    """The product's description by nm-compile; a reason why there is none."""
    done = compile_entry(entry, tool, gpu, ["--candidates", "1"])
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    (product,) = json.loads(done.stdout)
    if "energy" not in product["given"]:
        return f"the model knows no energies of {gpu}"
    return product


def samples_of(entry, product):
    energy = entry["energy"]
    given = product["given"]
    for kind, model, us in (
        ("ours", given["energy"], given["predicted_us"]),
        ("cublas", product["dense_energy"], product["dense_us"]),
    ):
        if kind in energy:
            yield Sample(
                entry["layer"],
                given["family"] if kind == "ours" else "dense",
                entry["tokens"],
                energy[kind]["mj"],
                energy[kind]["us"],
                entry["us" if kind == "ours" else "cublas_us"],
                energy[kind]["watts"],
                energy["limit_watts"],
                us,
                model["events"],
                product["energy_costs"],
            )


def run_jobs(work, jobs):
    """What `work` makes of each entry, tool and GPU; a reason why not is text."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda job: work(*job), jobs))
    failed = [
        f"{job[0]['layer']}: {made}"
        for job, made in zip(jobs, done)
        if isinstance(made, str)
    ]
    if failed:
        raise SystemExit("\n".join(failed))
    return done


def read_report(path, key, maker):
    """A result file, which has `key` if `maker` made it."""
    try:
        report = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: {error}; legal is a result file") from None
    if key not in report:
        raise SystemExit(f"{path} has no {key}: `{maker}` makes such")
    return report


def read_choice_report(path):
    return read_report(path, "choices", "energy_choice.py condense")


def read_jobs(paths, folder):
    """[(a layer of result files of `draw.py --energy`, nm-compile, its GPU)]."""
    tool = str(folder / "nm-compile")
    jobs = []
    for path in paths:
        report = read_report(path, "layers", "draw.py --energy")
        jobs += [(entry, tool, gpu_of(report)) for entry in report["layers"]]
    return jobs


def read(paths, folder):
    """The samples of result files of `draw.py --energy`, by nm-compile of `folder`."""
    jobs = read_jobs(paths, folder)
    products = run_jobs(ask, jobs)
    return [s for job, p in zip(jobs, products) for s in samples_of(job[0], p)]


def ask_choice(entry, tool, gpu):
    """The sample of a schedule of a result file of `energy_choice.py`."""
    product = ask(entry, tool, gpu)
    if isinstance(product, str):
        return product
    given = product["given"]
    mj, us = statistics.fmean(entry["mj"]), statistics.fmean(entry["us"])
    return Sample(
        entry["layer"],
        given["family"],
        entry["tokens"],
        mj,
        us,
        statistics.fmean(entry["few_us"]),
        1e3 * mj / us,
        product["energy_costs"]["limit"],
        given["predicted_us"],
        given["energy"]["events"],
        product["energy_costs"],
    )


def read_choices(paths, folder):
    """The samples of result files of `energy_choice.py`, but of schedules whose
    results are wrong."""
    tool = str(folder / "nm-compile")
    jobs = []
    for path in paths:
        report = read_choice_report(path)
        for layer in report["choices"]:
            for schedule, measured in layer["schedules"].items():
                entry = {**measured, "schedule": schedule, "layer": layer["layer"]}
                if measured["passed"]:
                    entry["tokens"] = layer["tokens"]
                    jobs.append((entry, tool, gpu_of(report)))
    return run_jobs(ask_choice, jobs)


class Formula:
    """The energy model's formula, in libnm_sparse_cost_model.so of a build."""

    def __init__(self, build):
        self.library = ctypes.CDLL(str(build / "lib/libnm_sparse_cost_model.so"))
        self.library.nmsCombineEnergy.restype = ctypes.c_double
        self.events = self.read_names("nmsEnergyEventName")
        self.costs = self.read_names("nmsEnergyCostName")

    def read_names(self, function):
        get = getattr(self.library, function)
        get.restype = ctypes.c_char_p
        return [
            name.decode() for name in iter(map(get, itertools.count()).__next__, None)
        ]

    @staticmethod
    def array(numbers):
        return (ctypes.c_double * len(numbers))(*numbers)

    def joules(self, events, us, costs, few_runs=False):
        """`us` is of a few runs, as the model predicts it, or of a loop."""
        return self.library.nmsCombineEnergy(
            self.array([events[name] for name in self.events]),
            ctypes.c_double(us * 1e-6),
            self.array([costs[name] for name in self.costs]),
            int(not few_runs),
        )

    def solve(self, rows, wanted):
        """Coefficients, none negative, for which rows times them are closest."""
        columns = len(rows[0])
        solution = (ctypes.c_double * columns)()
        self.library.nmsSolveNonNegative(
            len(rows),
            columns,
            self.array([number for row in rows for number in row]),
            self.array(wanted),
            solution,
        )
        return list(solution)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What nvidia-smi says of the GPU, now and while something is measured."""

import os
import statistics
import subprocess
import threading
import time

FIELDS = {
    "sm_mhz": "clocks.sm",
    "memory_mhz": "clocks.mem",
    "power_w": "power.draw",
    "celsius": "temperature.gpu",
}


def gpu():
    """Number or UUID of the GPU that CUDA programs take: the first visible one.
    nvidia-smi does not read CUDA_VISIBLE_DEVICES, and counts by PCI bus."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"


def query(fields):
    """The values of nvidia-smi's `fields` for the GPU, as text; {} without one."""
    command = ["nvidia-smi", f"--id={gpu()}", "--format=csv,noheader,nounits"]
    command.append("--query-gpu=" + ",".join(fields))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    values = [value.strip() for value in done.stdout.split(",")]
    if done.returncode or len(values) != len(fields):
        return {}
    return dict(zip(fields, values))


def sample():
    """One reading as {name: number}."""
    values = query(list(FIELDS.values()))
    reading = {}
    for name, field in FIELDS.items():
        try:
            reading[name] = float(values[field])
        except (KeyError, ValueError):
            pass  # "[N/A]", or no nvidia-smi
    return reading


class Watch:
    """Reads the clocks in the background, while the `with` block runs."""

    def __init__(self, interval=0.2, read=sample):
        self.interval, self.read = interval, read
        self.readings = []  # (unix time, reading)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.loop, daemon=True)

    def loop(self):
        while not self.stopped.is_set():
            reading = self.read()
            if reading:
                self.readings.append((time.time(), reading))
            self.stopped.wait(self.interval)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def between(self, begin, end):
        """Median of what was read from `begin` to `end`, else the nearest
        reading; {} when nothing was read."""
        inside = [r for at, r in self.readings if begin <= at <= end]
        if not inside and self.readings:
            middle = (begin + end) / 2
            inside = [min(self.readings, key=lambda item: abs(item[0] - middle))[1]]
        return {
            name: statistics.median(r[name] for r in inside if name in r)
            for name in FIELDS
            if any(name in r for r in inside)
        }

    def range(self):
        """{name: [smallest, median, largest]} of everything read."""
        summary = {}
        for name in FIELDS:
            values = [r[name] for _, r in self.readings if name in r]
            if values:
                summary[name] = [min(values), statistics.median(values), max(values)]
        return summary

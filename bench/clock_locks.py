# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sets the clocks of a GPU, and always gives them back. Nothing else in the project
sets a clock, and this only for collect_clocks.py --set-clocks (docs/Clocks.md)."""

import atexit
import re
import signal
import subprocess
import sys

import clocks


class ClockError(Exception):
    """What nvidia-smi refuses, in a sentence."""


class NvidiaSmi:
    """The GPU that clocks.py reads, through nvidia-smi."""

    def __init__(self):
        self.resets = []  # What gives back what was locked.

    def run(self, *arguments):
        """What nvidia-smi prints; where it fails, an error that says so."""
        command = ["nvidia-smi", f"--id={clocks.gpu()}", *arguments]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
                start_new_session=True,  # Ctrl-C is for us alone.
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClockError(f"cannot run nvidia-smi: {error}") from error
        if done.returncode:
            said = " ".join((done.stdout + done.stderr).split())
            raise ClockError(f"`{' '.join(command)}` failed: {said}")
        return done.stdout

    def name(self):
        return self.run("--query-gpu=name", "--format=csv,noheader").strip()

    def supported(self):
        """{clock of the memory: clocks of the cores}, in MHz."""
        text = self.run(
            "--query-supported-clocks=memory,graphics",
            "--format=csv,noheader,nounits",
        )
        pairs = re.findall(r"^\s*(\d+)\s*,\s*(\d+)\s*$", text, re.M)
        if not pairs:
            raise ClockError(f"nvidia-smi lists no supported clocks: {text.strip()}")
        found = {}
        for memory, core in pairs:
            found.setdefault(int(memory), set()).add(int(core))
        return {memory: sorted(cores) for memory, cores in found.items()}

    def volts(self):
        """That of the cores; None where the GPU does not tell it."""
        try:
            text = self.run("-q", "-d", "VOLTAGE")
        except ClockError:
            return None
        found = re.search(r"Graphics\s*:\s*([\d.]+) mV", text)
        return float(found[1]) / 1000 if found and float(found[1]) > 0 else None

    def lock(self, core, memory):
        """The memory is left alone for None."""
        for name, clock in (("memory", memory), ("gpu", core)):
            reset = f"--reset-{name}-clocks"
            if clock is not None:
                if reset not in self.resets:
                    self.resets.append(reset)
                self.run(f"--lock-{name}-clocks={clock},{clock}")

    def unlock(self):
        """All that was locked, the second clock also where the first fails."""
        failures = []
        for reset in list(self.resets):
            try:
                self.run(reset)
                self.resets.remove(reset)
            except ClockError as error:
                failures.append(str(error))
        if failures:
            raise ClockError("; ".join(failures))


class Locks:
    """Gives the clocks back at the end of the `with` block, however it ends: with an
    error, Ctrl-C, SIGTERM or SIGHUP. Only SIGKILL leaves them as they are."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, backend):
        self.backend = backend
        self.touched = self.leaving = False
        self.before = {}

    def __enter__(self):
        # For a signal that comes while the block is left.
        atexit.register(self.release)
        for number in self.SIGNALS:
            self.before[number] = signal.signal(number, self.interrupt)
        return self

    def interrupt(self, number, _):
        if not self.leaving:
            raise SystemExit(128 + number)

    def set(self, core, memory):
        self.touched = True  # Also where it fails half-way.
        self.backend.lock(core, memory)

    def release(self):
        self.leaving = True
        if not self.touched:
            return
        try:
            self.backend.unlock()
        except ClockError as error:
            print(
                "collect_clocks.py: THE CLOCKS ARE STILL LOCKED: run `nvidia-smi "
                "--reset-gpu-clocks` and `nvidia-smi --reset-memory-clocks`: "
                f"{error}",
                file=sys.stderr,
            )
            raise
        self.touched = False

    def __exit__(self, *_):
        try:
            self.release()
        finally:
            for number, handler in self.before.items():
                signal.signal(number, handler)
            atexit.unregister(self.release)

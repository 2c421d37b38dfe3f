# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/collect_clocks.py: what is recorded, and that clocks are always given back."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))
import clock_locks  # noqa: E402
import collect_clocks  # noqa: E402

pytestmark = pytest.mark.slow
BIN = Path(os.environ.get("NM_BUILD_DIR", ROOT / "build"), "bin")

# Keeps the clocks in a file, and a list of what it was asked for.
SMI = """#!{python}
import pathlib, sys
log = pathlib.Path({folder!r}, "log")
flags = [a for a in sys.argv[1:] if not a.startswith("--id")]
with open(log, "a") as file:
    file.write(" ".join(flags) + "\\n")
if pathlib.Path({folder!r}, "refuse").exists() and "lock" in flags[0]:
    sys.exit("The current user does not have permission to change clocks")
if flags[0] == "--query-gpu=name":
    print("NVIDIA H200")
elif flags[0].startswith("--query-supported"):
    for memory in (3201, 1593, 405):
        for core in range(1980, 330, -15):
            print(f"{{memory}}, {{core}}")
elif flags[0] == "-q":
    print("    Voltage\\n        Graphics : {volts}")
"""

# nm-compile and nm-run: at the clocks of the last line that locked some.
TOOL = """#!{python}
import json, pathlib, re, sys, time
if "--candidates" in sys.argv:
    tokens = int(sys.argv[sys.argv.index("--tokens") + 1])
    parts = dict(fixed_us=1, core_us=10, memory_us=5)
    print(json.dumps([dict(
        type="f16", batch=1, tokens=tokens, outputs=64, inputs=128, encoding="2:4",
        candidates=[dict(schedule="first", clock_parts=parts)])] * {products}))
    sys.exit()
assert sys.argv[sys.argv.index("--schedule") + 1] == "first"
core, memory = 1980, 3201
for line in pathlib.Path({folder!r}, "log").read_text().splitlines():
    if line.startswith("--reset"):
        core, memory = 1980, 3201
    found = re.match("--lock-(gpu|memory)-clocks=([0-9]+),", line)
    if found:
        core, memory = ((int(found[2]), memory) if found[1] == "gpu"
                        else (core, int(found[2])))
us = 2 + max(10 * 1980 / core, 5 * 3201 / memory)
watts = 80 + 0.03 * memory + 0.15 * core
ours = dict(sm_mhz=core, memory_mhz=memory, us=us, watts=watts)
with open(sys.argv[sys.argv.index("--json") + 1], "w") as file:
    json.dump(dict(commit="abc", energy=dict(ours=ours)), file)
"""


def write_tools(folder, products=1, volts="N/A"):
    fields = dict(python=sys.executable, folder=str(folder))
    for name, text in [
        ("nvidia-smi", SMI.format(volts=volts, **fields)),
        ("nm-compile", TOOL.format(products=products, **fields)),
        ("nm-run", TOOL.format(products=products, **fields)),
    ]:
        path = folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def gpu(tmp_path, monkeypatch):
    """A folder with stand-ins for all that is called, nvidia-smi, too."""
    write_tools(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def command(folder, *more):
    tools = ["--gpu", "h200", "--bin", str(folder), "--cores", "4"]
    return [*tools, "--out", str(folder / "sweep.json"), *more, "layer.mlir"]


def log(folder):
    return (folder / "log").read_text().splitlines()


def is_given_back(folder):
    """The last thing that was asked for each clock is to reset it."""
    for name in ("gpu", "memory"):
        asked = [
            line for line in log(folder) if re.match(f"--(lock|reset)-{name}", line)
        ]
        if asked and not asked[-1].startswith("--reset"):
            return False
    return True


def test_records_a_sweep(gpu, capsys):
    arguments = command(gpu, "--set-clocks", "--tokens", "1,2048")
    assert collect_clocks.main(arguments) == 0
    sweep = json.loads((gpu / "sweep.json").read_text())
    assert sweep["gpu"] == "NVIDIA H200" and sweep["complete"]
    assert [layer["layer"] for layer in sweep["layers"]] == ["layer_1", "layer_2048"]
    for layer in sweep["layers"]:
        assert layer["unlocked"]["core_mhz"] == 1980
        # The memory's lowest clock is for rest, and the cores begin at 40 %.
        asked = [(p["asked_core_mhz"], p["asked_memory_mhz"]) for p in layer["points"]]
        assert len(set(asked)) == 8 and {m for _, m in asked} == {1593, 3201}
        assert min(asked)[0] == 795 and max(asked)[0] == 1980
        for point in layer["points"]:
            assert point["core_mhz"] == point["asked_core_mhz"]
            assert point["memory_mhz"] == point["asked_memory_mhz"]
            assert point["volts"] is None and point["watts"] > 0
    assert is_given_back(gpu)
    assert "[18/18] 1980 and 3201 MHz: layer_2048 12.0 us" in capsys.readouterr().out


@pytest.mark.skipif(not (BIN / "nm-compile").exists(), reason="no build")
def test_what_is_recorded_is_read(gpu):
    assert collect_clocks.main(command(gpu, "--set-clocks")) == 0
    flags = ["--recommend", "--clocks", gpu / "sweep.json", "--tokens", "2048"]
    done = subprocess.run(
        [BIN / "nm-compile", ROOT / "examples/linear.mlir", *flags],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "not in the sweep" in done.stdout
    assert "the voltage could not be read" in done.stdout


def test_volts_are_recorded_where_the_gpu_tells_them(gpu):
    write_tools(gpu, volts="712.500 mV")
    assert collect_clocks.main(command(gpu, "--set-clocks")) == 0
    [layer] = json.loads((gpu / "sweep.json").read_text())["layers"]
    assert {point["volts"] for point in layer["points"]} == {0.7125}


@pytest.mark.parametrize("flags", [[], ["--dry-run"]])
def test_nothing_is_set_unless_asked_for(gpu, capsys, flags):
    if flags:
        assert collect_clocks.main(command(gpu, *flags)) == 0
        plan = capsys.readouterr().out
        assert "NVIDIA H200, 8 pairs of clocks and none; layers: 1" in plan
        assert "lock 795 MHz of the cores, 1593 MHz of the memory" in plan
        assert not any("lock-" in line for line in log(gpu))
    else:
        with pytest.raises(SystemExit):
            collect_clocks.main(command(gpu))
        assert "say --set-clocks if you may" in capsys.readouterr().err
        assert not (gpu / "log").exists()
    assert not (gpu / "sweep.json").exists()


def test_says_who_may_set_clocks(gpu, capsys):
    (gpu / "refuse").touch()
    assert collect_clocks.main(command(gpu, "--set-clocks")) == 1
    error = capsys.readouterr().err
    assert "does not have permission" in error and "takes root" in error
    assert not (gpu / "sweep.json").exists()


def test_says_what_it_does_not_measure(gpu, capsys):
    write_tools(gpu, products=2)
    assert collect_clocks.main(command(gpu, "--set-clocks")) == 1
    assert "layer.mlir has 2 sparse products" in capsys.readouterr().err
    assert is_given_back(gpu)
    arguments = command(gpu, "--set-clocks")
    arguments[1] = "h100"
    assert collect_clocks.main(arguments) == 1
    assert "the GPU is 'NVIDIA H200', and --gpu says h100" in capsys.readouterr().err


def test_clocks_are_given_back_after_an_error(gpu, capsys):
    path = gpu / "nm-run"
    path.write_text(path.read_text().replace("us = 2", "assert core > 900\nus = 2"))
    assert collect_clocks.main(command(gpu, "--set-clocks")) == 1
    assert "AssertionError" in capsys.readouterr().err
    assert is_given_back(gpu)
    sweep = json.loads((gpu / "sweep.json").read_text())
    assert not sweep["complete"] and len(sweep["layers"]) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_clocks_are_given_back_after_a_signal(gpu, number):
    path = gpu / "nm-run"
    # The second point never ends.
    wait = "core < 1980 and time.sleep(99)\n"
    path.write_text(path.read_text().replace("us = 2", wait + "us = 2"))
    script = ROOT / "bench/collect_clocks.py"
    process = subprocess.Popen(
        [sys.executable, script, *command(gpu, "--set-clocks")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if (gpu / "log").exists() and "--lock-gpu-clocks=795,795" in log(gpu):
                break
            time.sleep(0.05)
        assert not is_given_back(gpu)
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    finally:
        process.kill()
    assert is_given_back(gpu)


def test_a_failure_to_give_back_is_loud_and_both_are_tried(capsys):
    class Stuck(clock_locks.NvidiaSmi):
        calls = []

        def run(self, *arguments):
            self.calls.append(arguments[0])
            if arguments[0].startswith("--reset"):
                raise clock_locks.ClockError("no answer")
            return ""

    with pytest.raises(clock_locks.ClockError, match="no answer"):
        with clock_locks.Locks(Stuck()) as locks:
            locks.set(900, 1593)
    assert Stuck.calls[-2:] == ["--reset-memory-clocks", "--reset-gpu-clocks"]
    assert "THE CLOCKS ARE STILL LOCKED" in capsys.readouterr().err


def test_nothing_else_sets_clocks():
    setters = re.compile(
        r"lock-(gpu|memory)-clocks|nvmlDeviceSet\w*|applications-clocks|"
        r"nvidia-smi\W.*\s-(lgc|lmc|ac|pl)\b"
    )
    legal = {"bench/clock_locks.py", "python/tests/bench/test_collect_clocks.py"}
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = set()
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".sh", ".cpp", ".h", ".cu", ".c"} and path.is_file():
            if setters.search(path.read_text("utf-8")):
                found.add(name)
    assert found <= legal

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Result files, tools and logs of a made-up GPU, for tests of bench/ about energy."""

import json
import pathlib
import stat
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench" / "energy"))
import fit_energy  # noqa: E402
import profile_energy  # noqa: E402

EVENTS = [*fit_energy.PER_EVENT.values(), "busySMs", "launches"]
COSTS = {
    **{"idle": 100.0, "active": 150.0, "tensorFlop": 1e-12, "sparseTensorFlop": 2e-12},
    **{"ffmaFlop": 9e-12, "laneFlop": 2e-11, "l2Byte": 2e-11, "dramByte": 6e-11},
    **{"launch": fit_energy.LAUNCH, "limit": 700.0, "growth": 0.0},
}

# Result files, tools and logs of a made-up GPU. Energies follow from the tokens.
COMPILE = """\
#!{python}
import json, re, sys
text = sys.stdin.read()
tokens = int(sys.argv[sys.argv.index("--tokens") + 1])
if "-o" in sys.argv:
    print(".kernel " + ("f_other" if tokens == 13 else "f_kernel"))
    sys.exit()
events = dict.fromkeys({events}, 1e6 * tokens)
events.update(busySMs=1, launches=1)
energy = {{"events": events}}
given = {{"family": ["mma", "simt"][tokens % 2], "energy": energy, "ctas": tokens,
         "predicted_us": 10.0 + tokens, "shared_bytes": 100000}}
print(json.dumps([dict(given=given, dense_energy=energy, dense_us=9.0 + tokens,
                       energy_costs={costs})]))
"""
TRANSLATE = """\
#!{python}
import json, sys
name = sys.stdin.read().split()[-1]
counts = dict(instructions=7, barriers=1)
kernel = dict(name=name, max_threads=256, by_depth=[counts, counts, counts],
              total=dict(instructions=21, barriers=3))
print(json.dumps([dict(kernel, name="f_align"), kernel]))
"""


def make_folder(tmp_path):
    """Tools, and the result files fit.json and judge.json."""
    (tmp_path / "bin").mkdir()
    for name, text in (("nm-compile", COMPILE), ("nm-translate", TRANSLATE)):
        path = tmp_path / "bin" / name
        names = {"python": sys.executable, "events": EVENTS, "costs": COSTS}
        path.write_text(text.format(**names))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    for name, tokens in (("fit", range(20, 36)), ("judge", range(40, 44))):
        write_results(tmp_path / f"{name}.json", tokens)
    return tmp_path


def name_layer(tokens):
    return f"f16_s50_L64_feature_{tokens}x1024x2048_product"


def write_results(path, tokens):
    layers = []
    for t in tokens:
        energies = {
            kind: {"mj": 1e-3 * w * (t + us), "us": float(t + us), "watts": w}
            for kind, us, w in (("ours", 10, 200 + t), ("cublas", 9, 300 + t))
        }
        energies["limit_watts"] = 700
        layer = {"layer": name_layer(t), "tokens": t, "schedule": "#s"}
        layer.update(kernels=["f_kernel"], us=t + 10, cublas_us=t + 9, energy=energies)
        layers.append(layer)
    path.write_text(json.dumps({"gpu": "NVIDIA H100", "layers": layers}))


def write_counters(folder, tokens):
    """As profile_energy.py makes them, of logs of ncu."""
    names = profile_energy.METRICS
    head = ",".join(f'"{n}"' for n in ("ID", "Process ID", "Kernel Name", *names))
    blank = ",".join('""' for _ in range(3 + len(names)))

    def log(kernels):
        rows = [
            ",".join(f'"{v}"' for v in (i, process, kernel, *[f"{t:,}"] * len(names)))
            for i, (process, kernel, t) in enumerate(kernels)
        ]
        return "\n".join(["==PROF== Connected", head, blank, *rows]) + "\n"

    fill = (9, "void FillFunctor<float>", 1)
    ours = [(100, "f_kernel(float*)", 1000 * t) for t in tokens]
    dense = [k for t in tokens for k in (fill, (9, "gemm", 2000 * t), fill)]
    layers = [{"layer": name_layer(t), "kernels": ["f_kernel"]} for t in tokens]
    runs = [{"file": f"{name_layer(t)}.mlir"} for t in tokens]
    for name, text in (
        ("ours-0.csv", log(ours)),
        ("ours-0.json", json.dumps({"runs": runs})),
        ("dense.csv", log(dense)),
        ("layers.json", json.dumps(layers)),
    ):
        (folder / name).write_text(text)
    options = type("Options", (), {"folder": folder, "out": folder / "counters.json"})
    options.ours, options.dense = folder, folder / "dense.csv"
    profile_energy.condense(options)
    return options.out

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What patterns and number formats keep of a language model that is trained here.

usage: quality_language.py --tokens FILE.npz ... --out OUT.json --state FOLDER
                           [--train-seconds 240] [--tune-seconds 20] [--cases TEXT ...]
                           [--stop-after SECONDS] [--compile] [--tiny]

Trains a decoder of about 100 M parameters on text of collect_text.py, or takes that of
FOLDER. Of each case, a pattern and a format, all linear layers of the blocks are pruned
and rounded once, by least squares on calibration data; then all parameters are trained
further, straight through the rounding. The losses are those of documents held out.

All cases have as many steps as the dense model takes in --tune-seconds, since formats
whose emulation is slow would learn less in the same time. Compare what they have then
with the dense model after the same steps, the first row.

--cases has names as "8:16 / W8A8 e4m3"; by default all, those first that say most.
--stop-after ends before a case that would end later, counted from the start. Results
are written after each case, one-shot ones before they are trained, and a second call
goes on with what is missing.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import platform
import sys
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
import transformers
from number_formats import DENSE, FORMATS, bits_per_weight
from rounded_models import FittedModel, fitted, rounded, shapes_of
from short_training import Trained, train
from small_language import (
    BLOCKS,
    LAYERS,
    bits_per_byte,
    compared,
    difference,
    load_text,
    losses,
    make_model,
    training_loss,
)
from torch import Tensor, nn

VECTORS = "16:32, block = [1, 128]"
SPARSER_VECTORS = "8:32, block = [1, 128]"
BYTES = ("W8A8 e4m3", "W8A16 e4m3", "W8A8 int8")
# Formats that share the fit of a pattern are neighbours.
CASES: Tuple[Tuple[str, str], ...] = (
    (DENSE, "16 bits"),
    ("8:16", "16 bits"),
    ("8:16", "W8A8 e4m3"),
    ("8:16", "W8A16 e4m3"),
    (DENSE, "W4A16 int4"),
    (DENSE, "W3A16 int3"),
    ("8:16", "W4A16 int4"),
    ("2:4", "16 bits"),
    ("2:4", "W8A8 e4m3"),
    ("2:4", "W8A16 e4m3"),
    ("2:4", "W4A16 int4"),
    (VECTORS, "16 bits"),
    (VECTORS, "W8A8 e4m3"),
    (VECTORS, "W8A16 e4m3"),
    (DENSE, "W8A8 e4m3"),
    (DENSE, "W8A16 e4m3"),
    (DENSE, "W8A8 int8"),
    ("8:16", "W8A8 int8"),
    ("2:4", "W8A8 int8"),
    ("16:32", "16 bits"),
    ("16:32", "W8A8 e4m3"),
    ("16:32", "W8A16 e4m3"),
    (SPARSER_VECTORS, "16 bits"),
    (SPARSER_VECTORS, "W8A8 e4m3"),
    (SPARSER_VECTORS, "W8A16 e4m3"),
    (VECTORS, "W8A8 int8"),
    ("16:32", "W8A8 int8"),
    (SPARSER_VECTORS, "W8A8 int8"),
)
NAMES = [" / ".join(case) for case in CASES]
TINY = {
    "hidden": 128,
    "inner": 256,
    "layers": 2,
    "length": 64,
    "batch": 8,
    "tune_batch": 8,
    "train_seconds": 5.0,
    "tune_seconds": 1.0,
    "calibration": 16,
    "held_tokens": 2048,
}


class Study:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.begun = options, time.monotonic()
        self.text = load_text(options.tokens, options.device)
        text, length = self.text, options.length
        self.held = text.sequences(text.held, length, options.held_tokens)
        self.seen = text.sequences(text.train, length, options.held_tokens)
        self.results: Dict[str, Any] = {**description(options, text), "rows": []}
        self.rows: List[Dict[str, Any]] = self.results["rows"]
        self.fits: Dict[Tuple[str, Optional[str]], FittedModel] = {}
        self.slowest = 0.0  # seconds of a case
        if options.out.exists():
            self.resume()
        self.dense = self.trained()
        self.wanted = losses(self.dense, self.held, options.eval_batch)

    def resume(self) -> None:
        before = json.loads(self.options.out.read_text())
        for key, value in self.results.items():
            if key not in ("rows", "machine") and before.get(key) != value:
                sys.exit(
                    f"{self.options.out} has another {key}, {before.get(key)}: take "
                    f"another file, or {value}"
                )
        self.results.update(before)
        self.rows = self.results["rows"]

    def save(self) -> None:
        path = self.options.out
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps(self.results, indent=1) + "\n")
        partial.replace(path)

    def spent(self) -> float:
        return time.monotonic() - self.begun

    def new_model(self) -> nn.Module:
        o, size = self.options, self.text.vocabulary
        model = make_model(size, o.hidden, o.inner, o.layers, o.length, o.seed)
        return model.to(o.device)

    def trained(self) -> nn.Module:
        """The dense model, with weights that bf16 has exactly."""
        path = self.options.state / "dense.pt"
        model = self.new_model()
        if path.exists() and "dense" in self.results:
            kept = torch.load(path, map_location="cpu", weights_only=True)
            model.load_state_dict(kept)
            return model
        if self.rows:
            sys.exit(f"{path} is missing: the rows of {self.options.out} are of it")
        report = self.train_dense(model)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.bfloat16())
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), path)
        held = losses(model, self.held, self.options.eval_batch)
        seen = losses(model, self.seen, self.options.eval_batch)
        inner = sum(part.numel() for part in model.get_submodule(BLOCKS).parameters())
        loss, tokens = float(held.mean()), self.options.batch * self.options.length
        self.results["dense"] = {
            "parameters": sum(part.numel() for part in model.parameters()),
            "parameters_of_blocks": inner,
            "steps": report.steps,
            "tokens": report.steps * tokens,
            "seconds": report.seconds,
            "loss": round(loss, 4),
            "bits_per_byte": round(bits_per_byte(self.text, self.held, loss), 4),
            "loss_on_training_text": round(float(seen.mean()), 4),
            "losses": report.losses,
        }
        self.save()
        print(f"dense: {self.results['dense']}", flush=True)
        return model

    def train_dense(self, model: nn.Module) -> Trained:
        o = self.options
        running = model
        if o.compile:
            running = self.new_model()
            running.load_state_dict(model.state_dict())
            for block in running.get_submodule(BLOCKS):
                block.compile()
        loss_of = self.loss_of(running, o.batch, o.seed)
        if o.compile:
            loss_of(0).backward()  # compiled ahead of the time that is measured
            running.zero_grad(set_to_none=True)
        report = train(
            running,
            loss_of,
            o.rate,
            seconds=o.train_seconds,
            decay=0.1,
            show="training",
        )
        if running is not model:
            model.load_state_dict(running.state_dict())
        return report

    def loss_of(self, model: nn.Module, batch: int, seed: int) -> Any:
        """The loss of a model on text that is drawn in each step."""
        generator = torch.Generator().manual_seed(seed)
        model.train()

        def loss(step: int) -> Tensor:
            drawn = self.text.drawn(batch, self.options.length, generator)
            return training_loss(model, drawn)

        return loss

    def fit(self, pattern: str, elements: Optional[str]) -> Tuple[FittedModel, float]:
        """The fit of a pattern and elements, and the seconds that it took."""
        key, begun = (pattern, elements), time.monotonic()
        if key not in self.fits:
            o = self.options
            generator = torch.Generator().manual_seed(o.seed + 1)
            drawn = self.text.drawn(o.calibration, o.length, generator)[:, :-1]
            batches = [{"input_ids": part} for part in drawn.split(16)]
            given = self.dense, LAYERS, pattern, elements, batches, BLOCKS
            self.fits = {key: fitted(*given, damping=o.damping, target=o.target)}
        return self.fits[key], time.monotonic() - begun

    def measure(self, model: nn.Module, name: str) -> Dict[str, Any]:
        found = compared(model, self.dense, self.held, self.options.eval_batch)
        loss = float(found["losses"].mean())
        row = {
            "loss": loss,
            "bits_per_byte": bits_per_byte(self.text, self.held, loss),
            **difference(found["losses"], self.wanted),
            "kl": found["kl"],
            "same_top": found["same_top"],
        }
        return {f"{name}_{key}": round(value, 5) for key, value in row.items()}

    def case(self, pattern: str, name: str) -> None:
        o, form = self.options, FORMATS[name]
        fit, seconds = self.fit(pattern, form.weights)
        bits = bits_per_weight(pattern, form.weights, shapes_of(fit))
        row: Dict[str, Any] = {
            "pattern": pattern,
            "format": name,
            "weights": form.weights or "bf16",
            "x": form.activations or "bf16",
            "bits_per_weight": round(bits["all"], 4),
            "bits_of_index": round(bits["index"], 4),
            "bits_of_scales": round(bits["scales"], 4),
            "zeros": round(fit.zeros, 4),
            "layer_error": round(fit.layer_error, 4),
            "fit_seconds": round(seconds, 1),
        }
        model = rounded(self.dense, fit, form, torch.bfloat16)
        row.update(self.measure(model, "oneshot"))
        self.rows[:] = [r for r in self.rows if key_of(r) != (pattern, name)] + [row]
        self.save()
        if o.tune_seconds > 0:
            self.tune(model, row)
        self.save()
        print(
            f"{self.spent():5.0f} s  {pattern:24} {name:11} {bits['all']:6.3f} bits  "
            f"one-shot {row['oneshot_loss']:.4f} ({row['oneshot_above']:+.4f})  "
            + (f"trained {row['tuned_loss']:.4f}" if "tuned_loss" in row else ""),
            flush=True,
        )

    def tune(self, model: nn.Module, row: Dict[str, Any]) -> None:
        """Trains the layers of a case further; its steps are those of the dense one."""
        o, steps = self.options, self.results.get("tune_steps")
        steps = o.tune_steps or steps
        report = train(
            model,
            self.loss_of(model, o.tune_batch, o.seed + 2),
            o.tune_rate,
            steps=steps,
            seconds=None if steps else o.tune_seconds,
            warmup=0.1,
            least=0.02,
        )
        self.results["tune_steps"] = steps or report.steps
        row.update(self.measure(model, "tuned"))
        row["tune_steps"], row["tune_seconds"] = report.steps, report.seconds

    def run(self) -> None:
        done = {key_of(r) for r in self.rows if is_done(r, self.options)}
        left = [CASES[NAMES.index(name)] for name in self.options.cases]
        if CASES[0] not in done and CASES[0] not in left:
            left = [CASES[0], *left]  # which counts the steps of all others
        for case in [case for case in left if case not in done]:
            limit = self.options.stop_after
            if limit and self.spent() + self.slowest > limit:
                print(f"{self.spent():.0f} s: no time for {' / '.join(case)}")
                return
            begun = time.monotonic()
            self.case(*case)
            self.slowest = max(self.slowest, time.monotonic() - begun)


def key_of(row: Dict[str, Any]) -> Tuple[str, str]:
    return row["pattern"], row["format"]


def is_done(row: Dict[str, Any], options: argparse.Namespace) -> bool:
    return "tuned_loss" in row or options.tune_seconds <= 0


def description(options: argparse.Namespace, text: Any) -> Dict[str, Any]:
    """What results depend on."""
    own = vars(options)
    names = (
        "hidden", "inner", "layers", "length", "batch", "rate", "train_seconds",
        "tune_batch", "tune_rate", "tune_seconds", "calibration", "damping", "target",
        "held_tokens", "seed",
    )  # fmt: skip
    is_cuda = options.device == "cuda"
    return {
        "model": "LlamaForCausalLM, trained by bench/models/quality_language.py",
        "text": {
            "training_tokens": len(text.train),
            "training_bytes": int(text.token_bytes[text.train.long()].double().sum()),
            "held_tokens": len(text.held),
            "vocabulary": text.vocabulary,
        },
        "settings": {name: own[name] for name in names},
        "machine": torch.cuda.get_device_name() if is_cuda else platform.machine(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
    }


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    path = pathlib.Path
    parser.add_argument("--tokens", type=path, nargs="+", required=True)
    parser.add_argument("--out", type=path, required=True)
    parser.add_argument("--state", type=path, required=True)
    parser.add_argument("--cases", nargs="+", default=NAMES)
    parser.add_argument("--stop-after", type=float, help="seconds")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument(
        "--tiny", action="store_true", help="checks the script on a CPU"
    )
    parser.add_argument("--device", default=None, choices=("cuda", "cpu"))
    numbers = {
        "hidden": 768, "inner": 2048, "layers": 12, "length": 512, "batch": 64,
        "eval-batch": 16, "tune-batch": 32, "tune-steps": 0, "calibration": 128,
        "held-tokens": 1 << 18, "seed": 0,
    }  # fmt: skip
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    rates = {
        "rate": 1e-3, "tune-rate": 2e-4, "train-seconds": 240.0, "tune-seconds": 20.0,
        "damping": 0.03, "target": 0.5,
    }  # fmt: skip
    for name, number in rates.items():
        parser.add_argument(f"--{name}", type=float, default=number)
    if "--tiny" in arguments:
        parser.set_defaults(**TINY)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.cases if name not in NAMES]
    if unknown:
        parser.error(f"--cases has {unknown[0]!r}: legal are {', '.join(NAMES)}")
    options.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    return options


if __name__ == "__main__":
    Study(parse(sys.argv[1:])).run()

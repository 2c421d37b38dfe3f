# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers of convolutions.py, and the schedules that the model ranks for them."""

import json
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "Pipelines" / "Inputs"), str(ROOT / "python")]
from cases import fields_of  # noqa: E402
from convolutions_text import Convolution  # noqa: E402

# (n, m, rows and outputs of a block), by density; names of blocks of 16 channels end
# in "b", and "2:4" is that of single elements.
PATTERNS = {
    "75": (8, 32, 1, 64),
    "90": (4, 40, 1, 64),
    "75b": (2, 8, 16, 64),
    "88b": (1, 8, 16, 64),
    "2:4": (2, 4, 1, 1),
}
ENCODINGS = {d: f"{p[0]}:{p[1]}, block = {list(p[2:])}" for d, p in PATTERNS.items()}
LAYOUTS = {"chwb": "chwb", "nhwc": "nhwc_hwcf", "nchw": "nchw_fchw"}


def resnet():
    """(channels, height, outputs, kernel, stride)"""
    layers = [(3, 224, 64, 7, 2), (64, 56, 64, 1, 1), (64, 56, 64, 3, 1)]
    layers += [(64, 56, 256, 1, 1), (256, 56, 64, 1, 1)]
    for wide, height, narrow, out in (
        (256, 56, 128, 512),
        (512, 28, 256, 1024),
        (1024, 14, 512, 2048),
    ):
        half = height // 2
        layers += [(wide, height, narrow, 1, 1), (narrow, height, narrow, 3, 2)]
        layers += [(narrow, half, out, 1, 1), (wide, height, out, 1, 2)]
        layers += [(out, half, narrow, 1, 1), (narrow, half, narrow, 3, 1)]
    return layers


def drawn(count, seed, multiple=1):
    """Layers whose channels and outputs are multiples of so many."""
    rng = random.Random(seed)
    for _ in range(count):
        yield (
            rng.randrange(32, 1024) // multiple * multiple or multiple,
            rng.randrange(7, 60),
            rng.randrange(32, 1024) // multiple * multiple or multiple,
            rng.choice((1, 3, 3, 5)),
            rng.choice((1, 1, 2)),
        )


def convolution(layer, batch, encoding, schedule="", epilogue="cast", layout="chwb"):
    channels, size, outputs, kernel, stride = layer
    zeros = (kernel // 2,) * 2
    return Convolution(
        layout=LAYOUTS[layout],
        encoding=encoding,
        batch=batch,
        channels=channels,
        height=size,
        width=size,
        outputs=outputs,
        kernel=(kernel, kernel),
        strides=(stride, stride),
        low=zeros,
        high=zeros,
        epilogue=epilogue,
        schedule=schedule,
    )


def rank(tool, source, count):
    """Texts of schedules and what the model predicts, best first."""
    command = [tool, str(source), "-o", "-", "--candidates", str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    (product,) = json.loads(done.stdout)
    found = [(c["predicted_us"], c["schedule"]) for c in product["candidates"]]
    return [(us, fields_of(s)) for us, s in sorted(found)]

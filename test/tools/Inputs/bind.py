# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a sparse weight and a bias to a safetensors file.

usage: bind.py FILE
"""

import json
import sys

import numpy

random = numpy.random.default_rng(0)
weight = random.standard_normal((100, 40)).astype(numpy.float32)
weight[random.random(weight.shape) < 0.9] = 0
bias = random.standard_normal(40).astype(numpy.float32)
header = {}
data = b""
for name, tensor in (("weight", weight), ("bias", bias)):
    begin = len(data)
    data += tensor.tobytes()
    header[name] = {
        "dtype": "F32",
        "shape": tensor.shape,
        "data_offsets": [begin, len(data)],
    }
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(sys.argv[1], "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text + data)

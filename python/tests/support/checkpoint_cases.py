# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of checkpoints, for tests."""

import json

from nm_sparse.files.tensor_file import write_tensors


def save(path, **arrays):
    """Writes arrays by name, which has `__` for a dot. A pair names the type too."""
    tensors = {}
    for name, value in arrays.items():
        dtype, array = value if isinstance(value, tuple) else (None, value)
        dtype = dtype or {
            "float32": "F32", "float16": "F16", "int64": "I64", "uint8": "U8",
            "int8": "I8", "float64": "F64",
        }[array.dtype.name]  # fmt: skip
        tensors[name.replace("__", ".")] = dtype, array
    write_tensors(path, tensors, {"format": "pt"})
    return path


def model(folder, shards, config=None):
    """A folder with an index, of {file: arrays}."""
    index = {}
    for name, arrays in shards.items():
        save(folder / name, **arrays)
        index.update({key.replace("__", "."): name for key in arrays})
    text = json.dumps({"metadata": {"total_size": 1}, "weight_map": index})
    (folder / "model.safetensors.index.json").write_text(text)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return index

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in folders, to be converted in tests of files alone."""

import json

import numpy as np
from checkpoint_cases import save

from nm_sparse import Checkpoint
from nm_sparse.files.convert import Options, convert_model, structure_by_names
from nm_sparse.files.scales import from_f32
from nm_sparse.files.sparse_config import weight_encoding

CONFIG = {"model_type": "none", "dtype": "float16", "quantization_config": {"old": 1}}


def weights(seed=0, inputs=64):
    """Tensors of a model of two blocks, in f16."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.standard_normal(shape).astype(np.float16)

    found = {"embed_tokens.weight": draw(100, inputs), "norm.weight": draw(inputs)}
    for block in range(2):
        found[f"layers.{block}.up.weight"] = draw(300, inputs)
        found[f"layers.{block}.up.bias"] = draw(300)
        found[f"layers.{block}.q.weight"] = draw(70, inputs)
    found["lm_head.weight"] = draw(100, inputs)
    return found


def folder_of(folder, tensors, config=CONFIG, **others):
    """A folder of two files of these tensors, with other files beside them."""
    folder.mkdir()
    names, places = list(tensors), {}
    for number, part in enumerate((names[::2], names[1::2])):
        file = f"part{number}.safetensors"
        save(folder / file, **{name: tensors[name] for name in part})
        places.update(dict.fromkeys(part, file))
    index = {"weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps(config))
    for name, text in {"tokenizer_json": "{}", **others}.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def convert(source, target, encoding="2:4", layers=None, **more):
    """`convert_model` by names."""
    keys = ("dtype", "prune", "weights", "scales", "activations")
    options = Options(
        None if encoding is None else weight_encoding(encoding),
        {n: e and weight_encoding(e) for n, e in (layers or {}).items()},
        **{key: more.pop(key) for key in keys if key in more},
    )
    checkpoint = Checkpoint(source)
    structure = more.pop("structure", None) or structure_by_names(checkpoint)
    return convert_model(checkpoint, target, options, structure, progress=False, **more)


def as_bf16(array):
    return "BF16", from_f32(array.astype(np.float32), "bf16")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models for IREE: the text that iree-compile takes, and the file of its parameters.

docs/IREE.md says what becomes of a model. The manifest lists its parameters, and how
each weight is stored.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple, Union

import numpy as np
import torch
from torch import Tensor

from ...compiler import run
from ...encoding import Packed
from ...files.tensor_file import FILE_TYPES, PathLike
from ...files.tensor_writer import TensorWriter
from ...packing.storage import store
from ..weight.levels import bits_of
from .context import TYPES
from .graph import Argument
from .text import ExportError

_TEXT, _MANIFEST = "model", "manifest"


def write_iree(
    path: PathLike, text: str, arguments: Sequence[Argument], options: Sequence[str]
) -> Dict[str, Any]:
    """Writes a model for IREE, and returns its manifest. All arguments but inputs are
    parameters."""
    flags = ["-", "--emit", "iree", "-o", _TEXT, "--manifest", _MANIFEST]
    for one in arguments:
        if one.kind not in ("input", "weight"):
            flags += ["--parameter", one.name]
    output = run([*flags, *options], text, (_TEXT, _MANIFEST))
    Path(path).write_bytes(output.files[_TEXT])
    return json.loads(output.files[_MANIFEST])


def write_parameters(
    path: PathLike,
    manifest: Mapping[str, Any],
    arguments: Sequence[Argument],
    read: Callable[[Argument], Union[Tensor, Packed]],
) -> None:
    """Writes the parameters that `manifest` lists, one tensor at a time.

    read:  the tensor or the packed weight that is an argument.

    Raises ExportError when the manifest is not of this model for IREE.
    """
    known = {one.name: one for one in arguments if one.kind != "input"}
    with TensorWriter(path) as file:
        for name, entries in _by_argument(manifest).items():
            if name not in known:
                raise ExportError(
                    f"the manifest has a parameter of {name!r}: legal is one of "
                    f"{', '.join(known)}; take the manifest of this model"
                )
            for key, dtype, array in _tensors(known[name], entries, manifest, read):
                file.add(key, dtype, array)
        file.finish({})


def _by_argument(manifest: Mapping[str, Any]) -> Dict[str, List[Dict[str, Any]]]:
    if "parameters" not in manifest:
        raise ExportError(
            "the manifest lists no parameters: legal is one that --emit iree made"
        )
    found: Dict[str, List[Dict[str, Any]]] = {}
    for entry in manifest["parameters"]:
        found.setdefault(entry["argument"], []).append(entry)
    return found


def _tensors(
    argument: Argument,
    entries: Sequence[Mapping[str, Any]],
    manifest: Mapping[str, Any],
    read: Callable[[Argument], Union[Tensor, Packed]],
) -> List[Tuple[str, str, np.ndarray]]:
    """Keys, types as files spell them, and arrays of the parameters that an argument
    has become."""
    first = entries[0]
    if argument.kind != "weight":
        if first["type"] != argument.type:
            raise ExportError(
                f"the manifest has {argument.name} as {first['type']}: legal is "
                f"{argument.type}; take the manifest of this model"
            )
        tensor = read(argument)
        assert isinstance(tensor, Tensor)
        return [(first["key"], *_as_array(tensor.detach().cpu().contiguous()))]
    packed = read(argument)
    assert isinstance(packed, Packed)
    weight = _find_weight(manifest, first)
    arrays = dict(zip((c["name"] for c in weight["components"]), store(packed, weight)))
    found = []
    for entry in entries:
        array = arrays[entry["component"]]
        is_value = entry["component"] == "values"
        dtype = FILE_TYPES.get(packed.dtype) if is_value else None
        found.append((entry["key"], dtype or _file_type(array), array))
    return found


def _find_weight(
    manifest: Mapping[str, Any], entry: Mapping[str, Any]
) -> Mapping[str, Any]:
    """How the weight is stored that `entry` is a component of."""
    (function,) = (f for f in manifest["functions"] if f["name"] == entry["function"])
    (weight,) = (w for w in function["weights"] if w["number"] == entry["weight"])
    return weight


def _as_array(tensor: Tensor) -> Tuple[str, np.ndarray]:
    """A tensor's type as files spell it, and its array: bf16 as an unsigned view."""
    if tensor.dtype == torch.bfloat16:
        return FILE_TYPES[TYPES[tensor.dtype]], bits_of(tensor).numpy().view(np.uint16)
    array = tensor.numpy()
    return _file_type(array), array


def _file_type(array: np.ndarray) -> str:
    if array.dtype.kind == "b":
        return "BOOL"
    return f"{array.dtype.kind.upper()}{8 * array.dtype.itemsize}"

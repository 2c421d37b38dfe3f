# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed weights in safetensors files, as docs/Encoding.md says (sections 5 and 6).

A file holds a weight in canonical form, or as bitmaps, as kernels read it.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Tuple

import numpy as np

from .bitmap import bitmap_shape, pack_bitmap, unpack_bitmap
from .encoding import Encoding, EncodingError, Packed, extents
from .tensor_file import (
    DTYPES,
    FILE_TYPES,
    CheckpointError,
    PathLike,
    TensorFile,
    write_tensors,
)

BITMAP_VERSION = 4
_Tensor = Tuple[str, np.ndarray]
_POSITIONS = {1: "U8", 2: "U16", 4: "U32"}  # by their bytes


def _bitmaps(packed: Packed) -> Dict[str, np.ndarray]:
    _, k, n = extents(packed.encoding, packed.shape)
    values, bits = pack_bitmap(packed.encoding, packed.values, packed.index, k, n)
    return {"values": values, "bits": bits}


def _metadata(packed: Packed, version: int) -> str:
    keys = {**json.loads(packed.metadata()), "version": version}
    return json.dumps(keys, sort_keys=True, separators=(",", ":"))


def _sources(name: str, packed: Packed, storage: str) -> Dict[str, _Tensor]:
    components = dict(packed.components)
    if storage == "bitmap":
        components = _bitmaps(packed)
    return {
        f"{name}.{part}": (
            FILE_TYPES[packed.dtype]
            if part == "values"
            else _POSITIONS[array.dtype.itemsize],
            array,
        )
        for part, array in components.items()
    }


def write_packed(
    path: PathLike, weights: Mapping[str, Packed], storage: str = "canonical"
) -> None:
    """Writes packed weights, by name, to a safetensors file: whole, or not at all.

    storage:  "canonical", or "bitmap" for the form that kernels read, which only
              weights of one n:m level have.

    Raises EncodingError when a weight has no such form or its type no place in a file.
    """
    if storage not in ("canonical", "bitmap"):
        raise EncodingError(f"storage is {storage!r}: legal is 'canonical' or 'bitmap'")
    tensors: Dict[str, _Tensor] = {}
    metadata: Dict[str, str] = {}
    for name, packed in weights.items():
        if packed.dtype not in FILE_TYPES:
            raise EncodingError(
                f"weight {name!r} is {packed.dtype}: legal is {', '.join(FILE_TYPES)}"
            )
        version = BITMAP_VERSION if storage == "bitmap" else packed.encoding.version
        tensors.update(_sources(name, packed, storage))
        metadata[f"{name}.nm_sparse"] = _metadata(packed, version)
    write_tensors(path, tensors, metadata)


def read_packed(path: PathLike) -> Dict[str, Packed]:
    """The packed weights of a safetensors file, in canonical form, by name.

    Raises CheckpointError when the file is damaged or a component is missing, and
    EncodingError when the components or bits of a weight are not legal; `decode`
    checks the positions of canonical ones.
    """
    file, weights = TensorFile(path), {}
    for key, text in file.metadata.items():
        name, dot, ending = key.rpartition(".")
        if ending != "nm_sparse":
            continue
        try:
            weights[name] = _read(file, name + dot, text)
        except CheckpointError:
            raise
        except EncodingError as error:
            raise EncodingError(f"{path}: weight {name!r}: {error}") from None
    return weights


def _component(file: TensorFile, name: str, legal: Tuple[str, ...]) -> np.ndarray:
    array = file.read(name)
    if (found := file.tensors[name].dtype) not in legal:
        raise EncodingError(f"{name} is {found}: legal is {' or '.join(legal)}")
    return array


def _read(file: TensorFile, prefix: str, text: str) -> Packed:
    try:
        keys: Dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EncodingError(f"metadata is not JSON: {error}") from None
    is_bitmap = isinstance(keys, dict) and keys.get("version") == BITMAP_VERSION
    try:
        packed = Packed.from_tensors(
            {}, json.dumps({**keys, "version": 1}) if is_bitmap else text
        )
    except (TypeError, KeyError) as error:
        raise EncodingError(f"metadata is not legal: {error!r}") from None
    e, shape = packed.encoding, packed.shape
    if packed.dtype not in FILE_TYPES:
        raise EncodingError(
            f"dtype is {packed.dtype!r}: legal is {', '.join(FILE_TYPES)}"
        )
    if not all(type(size) is int and size >= 0 for size in shape):
        raise EncodingError(f"shape is {list(shape)}: legal is a list of sizes")
    legal = (FILE_TYPES[packed.dtype],)
    values = _component(file, f"{prefix}values", legal)
    if is_bitmap:
        _, k, n = extents(e, shape)
        bitmap_shape(e, k, n, DTYPES[legal[0]][0] // 8)
        bits = _component(file, f"{prefix}bits", ("U32",))
        values, index = unpack_bitmap(e, values, bits, k, n)
        return Packed({"values": values, "index": index}, e, shape, packed.dtype)
    components = {"values": values}
    for part in _positions(e):
        legal = ("U32",) if part == "offsets" else tuple(_POSITIONS.values())
        components[part] = _component(file, f"{prefix}{part}", legal)
    return Packed(components, e, shape, packed.dtype)


def _positions(e: Encoding) -> Tuple[str, ...]:
    """The components beside `values`, in the order of docs/Encoding.md."""
    if e.is_free:
        return ("index", "offsets")
    return ("index", "inner_index") if e.inner is not None else ("index",)

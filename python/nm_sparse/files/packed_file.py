# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed weights in safetensors files, as docs/Encoding.md says (sections 5 and 6).

A file holds a weight in canonical form, or as bitmaps or with K-major values, as
kernels read it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Callable, Container, Dict, List, Mapping, Optional, Tuple

import numpy as np

from ..encoding import Encoding, EncodingError, Packed, extents
from ..packing.bitmap import (
    OUTPUTS,
    bitmap_shape,
    innermost_weight,
    pack_bitmap,
    unpack_bitmap,
)
from ..packing.k_major import pack_k_major, unpack_k_major
from .tensor_file import (
    DTYPES,
    FILE_TYPES,
    CheckpointError,
    PathLike,
    TensorFile,
    TensorInfo,
    write_tensors,
)

# The versions of other forms, by the version of the canonical one.
VERSIONS = {"bitmap": {1: 4, 2: 6}, "k_major": {1: 12}}
STORAGES = ("canonical", *VERSIONS)
COMPONENTS = ("values", "index", "offsets", "inner_index", "perm", "bits")
# Beside elements of 8 bits: scales of the outputs, and of what they are multiplied by.
SCALE, INPUT_SCALE = "scale", "input_scale"
EXTRA = "_extra_state"  # of a packed layer in a `state_dict`: its encoding and shape
_Tensor = Tuple[str, np.ndarray]
_POSITIONS = {1: "U8", 2: "U16", 4: "U32"}  # by their bytes


def _innermost(e: Encoding, shape: Tuple[int, ...]) -> Tuple[Encoding, int, int]:
    """The weight that has the bitmaps of one with `shape`."""
    if e.is_shuffled:
        raise EncodingError("is shuffled: bitmaps are of weights with order identity")
    _, k, n = extents(e, shape)
    if e.inner is not None and e.block[1] % OUTPUTS:
        raise EncodingError(
            f"has panels of {e.block[1]} outputs: two levels need a multiple of "
            f"{OUTPUTS} for bitmaps"
        )
    return innermost_weight(e, k, n)


def _bitmaps(packed: Packed) -> Dict[str, np.ndarray]:
    e, k, n = _innermost(packed.encoding, packed.shape)
    components = dict(packed.components)
    # The index of an outer level is part of both forms.
    index = components.pop("index" if packed.encoding.inner is None else "inner_index")
    values, bits = pack_bitmap(e, components.pop("values"), index, k, n)
    return {"values": values, **components, "bits": bits}


def _k_major(packed: Packed) -> Dict[str, np.ndarray]:
    _, *sizes = extents(packed.encoding, packed.shape)
    own = packed.values, packed.index, *sizes
    values, index = pack_k_major(packed.encoding, *own)
    return {"values": values, "index": index}


def _metadata(packed: Packed, version: int) -> str:
    keys = {**json.loads(packed.metadata()), "version": version}
    return json.dumps(keys, sort_keys=True, separators=(",", ":"))


def stored_tensors(
    name: str, packed: Packed, storage: str = "canonical"
) -> Tuple[Dict[str, _Tensor], Dict[str, str]]:
    """The tensors of a packed weight in a file, {name: (type, array)}, and the metadata
    beside them. Raises EncodingError as `write_packed` does."""
    if packed.dtype not in FILE_TYPES:
        raise EncodingError(
            f"weight {name!r} is {packed.dtype}: legal is {', '.join(FILE_TYPES)}"
        )
    version, components = packed.encoding.version, dict(packed.components)
    if storage != "canonical":
        lay_out = {"bitmap": _bitmaps, "k_major": _k_major}[storage]
        version, components = VERSIONS[storage].get(version, 0), lay_out(packed)
    tensors = {
        f"{name}.{part}": (
            FILE_TYPES[packed.dtype]
            if part == "values"
            else _POSITIONS[array.dtype.itemsize],
            array,
        )
        for part, array in components.items()
    }
    return tensors, {f"{name}.nm_sparse": _metadata(packed, version)}


def write_packed(
    path: PathLike, weights: Mapping[str, Packed], storage: str = "canonical"
) -> None:
    """Writes packed weights, by name, to a safetensors file: whole, or not at all.

    storage:  "canonical"; or for a form that kernels read "bitmap", which only weights
              of n:m levels have, or "k_major", which those of one level have.

    Raises EncodingError when a weight has no such form or its type no place in a file.
    """
    if storage not in STORAGES:
        legal = ", ".join(map(repr, STORAGES))
        raise EncodingError(f"storage is {storage!r}: legal is {legal}")
    tensors: Dict[str, _Tensor] = {}
    metadata: Dict[str, str] = {}
    for name, packed in weights.items():
        own, text = stored_tensors(name, packed, storage)
        tensors.update(own)
        metadata.update(text)
    write_tensors(path, tensors, metadata)


def read_packed(path: PathLike, name: Optional[str] = None) -> Dict[str, Packed]:
    """The packed weights of a safetensors file, in canonical form, by name.

    name:  of one of them, which alone is read; the result is empty where it is not
           there.

    Metadata `NAME.nm_sparse` describes a weight, or, in a `state_dict` with packed
    layers, the tensor `LAYER._extra_state` that of `LAYER.weight`.

    Raises CheckpointError when the file is damaged or a component is missing, and
    EncodingError when the components or bits of a weight are not legal; `decode`
    checks the positions of canonical ones.
    """
    file = TensorFile(path)
    places = packed_places(file)
    return {
        found: read_place(place, lambda _: file)
        for found, place in places.items()
        if name in (None, found)
    }


@dataclass(frozen=True)
class PackedPlace:
    """Where a file says that there is a packed weight.

    name:    of the weight.
    prefix:  with which the names of its components begin.
    text:    its description, as metadata has it.
    file:    that says so.
    """

    name: str
    prefix: str
    text: str
    file: TensorFile

    @property
    def described(self) -> Packed:
        """The weight without its components. Raises EncodingError, naming file and
        weight, where the description is not legal."""
        try:
            packed, _ = read_description(self.text)
        except EncodingError as error:
            raise EncodingError(
                f"{self.file.path}: weight {self.name!r}: {error}"
            ) from None
        return packed


def packed_places(
    file: TensorFile, tensors: Optional[Mapping[str, TensorInfo]] = None
) -> Dict[str, PackedPlace]:
    """The packed weights that a file describes, by name.

    tensors:  all of a checkpoint, by name, where it has several files.

    Raises CheckpointError where the state of a packed layer is damaged."""
    found: Dict[str, PackedPlace] = {}
    tensors = file.tensors if tensors is None else tensors
    for name in file.tensors:
        prefix, dot, ending = name.rpartition(".")
        values = tensors.get(f"{prefix}{dot}values")
        if ending != EXTRA or file.tensors[name].dtype != "U8" or values is None:
            continue
        text = _described(file, name, values.element_type)
        if text is not None:
            found[f"{prefix}{dot}weight"] = PackedPlace(
                f"{prefix}{dot}weight", f"{prefix}{dot}", text, file
            )
    taken = {place.prefix for place in found.values()}
    for name, prefix in packed_prefixes(file).items():
        if prefix not in taken:
            text = file.metadata[f"{prefix}nm_sparse"]
            found[name] = PackedPlace(name, prefix, text, file)
    return found


def _described(file: TensorFile, name: str, dtype: Optional[str]) -> Optional[str]:
    """What `_extra_state` of a packed layer says, as metadata; None where it is that of
    another module."""
    try:
        state = json.loads(file.read(name).tobytes().decode())
        encoding, shape = state["encoding"], tuple(state["shape"])
    except (ValueError, KeyError, TypeError):
        return None
    try:
        return Packed({}, Encoding(encoding), shape, dtype or "").metadata()
    except (EncodingError, TypeError) as error:
        raise CheckpointError(
            f"{file.path}: tensor {name!r} describes no packed weight: {error}"
        ) from None


def extra_state(encoding: Encoding, shape: Tuple[int, ...]) -> np.ndarray:
    """`_extra_state` of a packed layer in a `state_dict`: bytes of JSON."""
    text = json.dumps({"encoding": encoding.mlir(), "shape": list(shape)})
    return np.frombuffer(text.encode(), np.uint8)


def packed_prefixes(file: TensorFile) -> Dict[str, str]:
    """What the names of the components of each packed weight in a file begin with that
    metadata describes, by the name of the weight; a single one may have none."""
    keys = (key.rpartition(".") for key in file.metadata)
    return {name: name + dot for name, dot, ending in keys if ending == "nm_sparse"}


def packed_parts(file: TensorFile) -> Dict[str, List[str]]:
    """The names of the tensors that hold each packed weight in a file, by its name."""
    return {
        name: place_parts(place, file.tensors)
        for name, place in packed_places(file).items()
    }


def place_parts(place: PackedPlace, names: Container[str]) -> List[str]:
    """Those of its tensors that are among `names`, `_extra_state` too."""
    parts = (*COMPONENTS, SCALE, INPUT_SCALE, EXTRA)
    own = [place.prefix + part for part in parts]
    return [name for name in own if name in names]


def read_description(text: str) -> Tuple[Packed, str]:
    """What metadata says: the weight without its components, and their form. Raises
    EncodingError."""
    try:
        keys: Dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EncodingError(f"metadata is not JSON: {error}") from None
    stored = keys.get("version") if isinstance(keys, dict) else None
    storage = "canonical"
    for form, versions in VERSIONS.items():
        for canonical, version in versions.items():
            if stored == version:
                text, storage = json.dumps({**keys, "version": canonical}), form
    try:
        return Packed.from_tensors({}, text), storage
    except (TypeError, KeyError) as error:
        raise EncodingError(f"metadata is not legal: {error!r}") from None


def read_place(place: PackedPlace, find: Callable[[str], TensorFile]) -> Packed:
    """A packed weight in canonical form. `find` returns the file that has a tensor.

    Raises as `read_packed` does."""
    try:
        return _read(place.prefix, place.text, find)
    except CheckpointError:
        raise
    except EncodingError as error:
        path = place.file.path
        raise EncodingError(f"{path}: weight {place.name!r}: {error}") from None


def _component(
    find: Callable[[str], TensorFile], name: str, legal: Tuple[str, ...]
) -> np.ndarray:
    file = find(name)
    array = file.read(name)
    if (found := file.tensors[name].dtype) not in legal:
        raise EncodingError(f"{name} is {found}: legal is {' or '.join(legal)}")
    # Torch has the bits of positions in signed integers.
    if found.startswith("I") and array.dtype.kind == "i" and legal[0][0] == "U":
        array = array.view(f"uint{8 * array.itemsize}")
    return array


def _read(prefix: str, text: str, find: Callable[[str], TensorFile]) -> Packed:
    packed, storage = read_description(text)
    e, shape = packed.encoding, packed.shape
    if packed.dtype not in FILE_TYPES:
        raise EncodingError(
            f"dtype is {packed.dtype!r}: legal is {', '.join(FILE_TYPES)}"
        )
    if not all(type(size) is int and size >= 0 for size in shape):
        raise EncodingError(f"shape is {list(shape)}: legal is a list of sizes")
    legal = (FILE_TYPES[packed.dtype],)
    values = _component(find, f"{prefix}values", legal)
    components = {"values": values}
    if storage == "bitmap":
        one, k, n = _innermost(e, shape)
        bitmap_shape(one, k, n, DTYPES[legal[0]][0] // 8)
        bits = _component(find, f"{prefix}bits", ("U32", "I32"))
        values, index = unpack_bitmap(one, values, bits, k, n)
        components = {"values": values, _positions(e)[-1]: index}
    for part in _positions(e):
        if part in components:
            continue
        wide = part in ("offsets", "perm")
        legal = ("U32", "I32") if wide else (*_POSITIONS.values(), "I16", "I32")
        components[part] = _component(find, f"{prefix}{part}", legal)
    if storage == "k_major":
        _, *sizes = extents(e, shape)
        both = unpack_k_major(e, values, components["index"], *sizes)
        components = dict(zip(("values", "index"), both))
    return Packed(components, e, shape, packed.dtype)


def _positions(e: Encoding) -> Tuple[str, ...]:
    """The components beside `values`, in the order of docs/Encoding.md."""
    names = ["index"]
    if e.is_free:
        names.append("offsets")
    if e.inner is not None:
        names.append("inner_index")
    if e.is_shuffled:
        names.append("perm")
    return tuple(names)

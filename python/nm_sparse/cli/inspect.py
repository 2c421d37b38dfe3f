# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`inspect`: what a checkpoint holds, and which patterns its weights have."""

from __future__ import annotations

import argparse
from typing import Any, Dict, List, Optional, Sequence

from ..encoding import Encoding
from ..files.checkpoint import Checkpoint
from ..files.packed_file import read_description
from ..files.tensor_file import TensorFile
from ..packing.two_four import ENCODING
from ..pruning.detection import count_live, detect
from ..tensors.packed_tensor import PackedTensor
from .common import OK, add_json, print_json, print_table, progress, shown_shape


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "inspect",
        help="list the tensors of a checkpoint and their patterns",
        description="Lists weights with their encodings, packed ones as their files "
        "say, dense ones as their zeros lie; and all other tensors.",
    )
    parser.add_argument(
        "input", help="a .safetensors file, an index of several, or a model's folder"
    )
    parser.add_argument(
        "--dim", type=int, choices=(0, 1), default=1,
        help="which dimension of dense weights is summed over (1: outputs x inputs)",
    )  # fmt: skip
    parser.add_argument(
        "--quick", action="store_true", help="read no elements: no patterns, no density"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    checkpoint = Checkpoint(args.input)
    rows = list_rows(checkpoint, args.dim, args.quick)
    if args.json:
        print_json({"input": str(args.input), "tensors": rows})
        return OK
    print_table(
        ["tensor", "shape", "type", "stored", "encoding", "density", "bytes"],
        [
            [
                row["name"],
                shown_shape(row["shape"]),
                row["dtype"],
                row["stored"],
                row["encoding"],
                "" if row["density"] is None else f"{row['density']:.4f}",
                row["bytes"],
            ]
            for row in rows
        ],
    )
    total = sum(row["bytes"] for row in rows)
    print(f"{len(rows)} tensors, {total} bytes")
    return OK


def list_rows(checkpoint: Checkpoint, dim: int, is_quick: bool) -> List[Dict[str, Any]]:
    """A dictionary for each weight and each other tensor."""
    taken, jobs = set(), []
    for name in checkpoint.packed:
        taken.update(checkpoint.parts(name))
        jobs.append((packed_row, (checkpoint, name, is_quick)))
    for name, weight in checkpoint.weights.items():
        if weight.stored != "dense":
            taken.update(checkpoint.parts(name))
            jobs.append((parts_row, (checkpoint, name, is_quick)))
    jobs += [
        (tensor_row, (checkpoint, file, name, dim, is_quick))
        for file in checkpoint.files.values()
        for name in file.tensors
        if name not in taken
    ]
    return [make(*arguments) for make, arguments in progress(jobs, "tensors")]


def _row(
    name: str,
    shape: Sequence[int],
    dtype: str,
    stored: str,
    size: int,
    encoding: Optional[Encoding] = None,
    density: Optional[float] = None,
) -> Dict[str, Any]:
    return {
        "name": name,
        "shape": list(shape),
        "dtype": dtype,
        "stored": stored,
        "encoding": None if encoding is None else str(encoding),
        "density": density,
        "bytes": size,
    }


def _size(checkpoint: Checkpoint, name: str) -> int:
    """Of the tensors of a weight, in bytes."""
    parts = checkpoint.parts(name)
    return sum(checkpoint.file_of(part).tensors[part].size for part in parts)


def packed_row(checkpoint: Checkpoint, name: str, is_quick: bool) -> Dict[str, Any]:
    """Of a weight that is packed."""
    place, density = checkpoint.packed[name], None
    packed = place.described
    if not is_quick:
        density = PackedTensor(checkpoint.read_packed(name)).density
    storage = read_description(place.text)[1]
    stored = "packed" if storage == "canonical" else storage
    size = _size(checkpoint, name)
    return _row(
        name, packed.shape, packed.dtype, stored, size, packed.encoding, density
    )


def parts_row(checkpoint: Checkpoint, name: str, is_quick: bool) -> Dict[str, Any]:
    """Of a weight in a layout of compressed-tensors."""
    weight = checkpoint.weights[name]
    shape, density = (weight.outputs, weight.inputs), None
    if not is_quick:
        live = count_live(checkpoint.dense(name), weight.dtype)
        density = live / (weight.outputs * weight.inputs)
    size = _size(checkpoint, name)
    return _row(name, shape, weight.dtype, weight.stored, size, ENCODING, density)


def tensor_row(
    checkpoint: Checkpoint, file: TensorFile, name: str, dim: int, is_quick: bool
) -> Dict[str, Any]:
    """Of a tensor that is no part of a packed weight."""
    tensor = file.tensors[name]
    dtype = tensor.element_type or tensor.dtype
    if is_quick or name not in checkpoint.weights:
        return _row(name, tensor.shape, dtype, "dense", tensor.size)
    weight = file.read(name)
    density = count_live(weight, dtype) / weight.size
    encoding = detect(weight, dtype, dim)
    return _row(name, tensor.shape, dtype, "dense", tensor.size, encoding, density)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prune`: the weights of a checkpoint, made to fit a pattern, one at a time."""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np

from ..encoding import Encoding
from ..files.checkpoint import Checkpoint
from ..files.packed_file import packed_parts, stored_tensors
from ..files.tensor_file import FILE_TYPES, TensorFile
from ..files.tensor_writer import TensorWriter
from ..packing import canonical
from ..pruning import prune as pruning
from ..pruning.detection import count_live
from ..reference import _numbers
from .common import (
    OK,
    USAGE,
    CommandError,
    add_encoding,
    add_json,
    print_json,
    print_table,
    progress,
    read_encoding,
    shown_shape,
)

ROWS = 256  # of a weight that are in float64 at once


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "prune",
        help="make the weights of a checkpoint fit a pattern",
        description="Prunes matrices by magnitude, and copies all else. The output is "
        "written whole or not at all.",
    )
    parser.add_argument(
        "input", help="a .safetensors file, an index of several, or a model's folder"
    )
    parser.add_argument("-o", "--output", required=True, metavar="OUT.safetensors")
    add_encoding(parser)
    parser.add_argument(
        "--density", type=float, help="of 'free': the share of blocks that are kept"
    )
    parser.add_argument(
        "--include", action="append", metavar="PATTERN",
        help="only weights of such a name, as '*.mlp.*'; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN",
        help="no weights of such a name, as '*embed*'; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--pack", action="store_true", help="store the packed form (docs/Encoding.md)"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def dense_weights(checkpoint: Checkpoint) -> Dict[str, Path]:
    """The file of each matrix that is stored dense, by name."""
    found = {}
    for path, file in checkpoint.files.items():
        parts = {part for own in packed_parts(file).values() for part in own}
        for name in file.tensors:
            weight = checkpoint.weights.get(name)
            if name not in parts and weight is not None and weight.stored == "dense":
                found[name] = path
    return found


def choose(names: List[str], include: List[str], exclude: List[str]) -> List[str]:
    """Those that one of `include` names and none of `exclude`."""
    return [
        name
        for name in names
        if any(fnmatchcase(name, pattern) for pattern in include)
        and not any(fnmatchcase(name, pattern) for pattern in exclude)
    ]


def run(args: argparse.Namespace) -> int:
    e = read_encoding(args)
    if e.is_free != (args.density is not None):
        raise CommandError(
            "--density belongs to --encoding free, and to no other: legal is a share "
            "from 0 to 1",
            USAGE,
        )
    checkpoint = Checkpoint(args.input)
    output = Path(args.output)
    if any(output.exists() and output.samefile(path) for path in checkpoint.files):
        raise CommandError(
            f"-o names the input, {output}, which would be lost: choose another file",
            USAGE,
        )
    dense = dense_weights(checkpoint)
    chosen = choose(list(dense), args.include or ["*"], args.exclude)
    if not chosen:
        raise CommandError(
            f"{args.input}: none of its {len(dense)} dense matrices is chosen: legal "
            "are patterns of their names, which `inspect` lists"
        )
    with TensorWriter(output) as writer:
        weights = write(checkpoint, set(chosen), e, args.density, args.pack, writer)
    report = {
        "input": str(args.input),
        "output": str(output),
        "encoding": str(e),
        "packed": args.pack,
        "weights": weights,
        "copied": sum(len(f.tensors) for f in checkpoint.files.values()) - len(chosen),
        "bytes_before": sum(path.stat().st_size for path in checkpoint.files),
        "bytes": output.stat().st_size,
    }
    if args.json:
        print_json(report)
    else:
        print_report(report)
    return OK


def write(
    checkpoint: Checkpoint,
    chosen: Any,
    e: Encoding,
    density: Any,
    is_packed: bool,
    writer: TensorWriter,
) -> List[Dict[str, Any]]:
    """Puts all tensors in the file, and returns what became of the chosen ones."""
    metadata: Dict[str, str] = {}
    todo: List[Tuple[TensorFile, str]] = []
    for file in checkpoint.files.values():
        metadata.update(file.metadata)
        todo += [(file, name) for name in file.tensors]
    report = []
    for file, name in progress(todo, "tensors"):
        tensor = file.tensors[name]
        if name not in chosen:
            writer.copy(tensor, file.path)
            continue
        dtype = str(tensor.element_type)
        before = file.read(name)
        try:
            after = pruning.prune(before, e, dtype, density)
            tensors = {name: (FILE_TYPES[dtype], after)}
            if is_packed:
                packed = canonical.encode(after, e, dtype)
                tensors, text = stored_tensors(name, packed)
                metadata.update(text)
        except ValueError as error:
            raise CommandError(f"{file.path}: weight {name!r}: {error}") from None
        for part, (kind, array) in tensors.items():
            writer.add(part, kind, array)
        size = sum(array.nbytes for _, array in tensors.values())
        report.append({
            "name": name,
            "shape": list(before.shape),
            "dtype": dtype,
            "density": count_live(after, dtype) / before.size,
            "kept": kept_share(before, after, dtype),
            "bytes_before": before.nbytes,
            "bytes": size,
        })  # fmt: skip
    writer.finish(metadata)
    return report


def kept_share(before: np.ndarray, after: np.ndarray, dtype: str) -> float:
    """The share of the sum of squares of `before` that `after` has."""
    sums = []
    with np.errstate(over="ignore", invalid="ignore"):
        for weight in (after, before):
            parts = (weight[at : at + ROWS] for at in range(0, len(weight), ROWS))
            numbers = (_numbers(np.ascontiguousarray(part), dtype) for part in parts)
            sums.append(float(sum(np.vdot(part, part) for part in numbers)))
        return sums[0] / sums[1] if sums[1] else 1.0


def print_report(report: Dict[str, Any]) -> None:
    print_table(
        ["weight", "shape", "type", "density", "kept", "bytes"],
        [
            [w["name"], shown_shape(w["shape"]), w["dtype"], w["density"], w["kept"],
             w["bytes"]]
            for w in report["weights"]
        ],
    )  # fmt: skip
    print(
        f"{len(report['weights'])} weights have {report['encoding']}, "
        f"{report['copied']} tensors are copied; {report['output']} has "
        f"{report['bytes']} bytes instead of {report['bytes_before']}"
    )

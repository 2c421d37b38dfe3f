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
from ..files.convert.folder import write_json
from ..files.convert.names import why_dense
from ..files.model_folder import INDEX, check_target, copy_others, new_folder
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
        description="Prunes matrices by magnitude, and copies all else. Embeddings and "
        "tied heads are copied, too, unless --include names them. The output is "
        "written whole or not at all.",
    )
    parser.add_argument(
        "input", help="a .safetensors file, an index of several, or a model's folder"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT",
        help="a .safetensors file, or, of a folder or an index, a new folder",
    )  # fmt: skip
    parser.add_argument(
        "--force", action="store_true", help="replace the file, or the checkpoint, OUT"
    )
    add_encoding(parser)
    parser.add_argument(
        "--density", type=float, help="of 'free': the share of blocks that are kept"
    )
    parser.add_argument(
        "--include", action="append", metavar="PATTERN",
        help="only weights of such a name, as '*.mlp.*'; may be given again (all but "
        "embeddings and tied heads)",
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
    is_folder = output.suffix != ".safetensors" and _is_model(checkpoint)
    _check_output(checkpoint, output, is_folder, args.force)
    dense = dense_weights(checkpoint)
    reasons = {name: why_dense(name, checkpoint.config) for name in dense}
    left = {n: r for n, r in reasons.items() if r and not args.include}
    names = [name for name in dense if name not in left]
    chosen = set(choose(names, args.include or ["*"], args.exclude))
    if not chosen:
        raise CommandError(
            f"{args.input}: none of its {len(dense)} dense matrices is chosen: legal "
            "are patterns of their names, which `inspect` lists"
        )
    job = Job(checkpoint, chosen, e, args.density, args.pack)
    if is_folder:
        job.write_folder(output)
        written = list(output.glob("*.safetensors"))
    else:
        job.write_file(output, list(checkpoint.files.values()))
        written = [output]
    report = {
        "input": str(args.input),
        "output": str(output),
        "encoding": str(e),
        "packed": args.pack,
        "weights": job.report,
        "left": left,
        "copied": sum(len(f.tensors) for f in checkpoint.files.values()) - len(chosen),
        "bytes_before": sum(path.stat().st_size for path in checkpoint.files),
        "bytes": sum(path.stat().st_size for path in written),
    }
    if args.json:
        print_json(report)
    else:
        print_report(report)
    return OK


def _is_model(checkpoint: Checkpoint) -> bool:
    return checkpoint.path.is_dir() or checkpoint.path.suffix == ".json"


def _check_output(
    checkpoint: Checkpoint, output: Path, is_folder: bool, force: bool
) -> None:
    """Raises CommandError or CheckpointError where the output must not be written."""
    if any(output.exists() and output.samefile(path) for path in checkpoint.files):
        raise CommandError(
            f"-o names the input, {output}, which would be lost: choose another file",
            USAGE,
        )
    if is_folder:
        check_target(output, checkpoint.path, force)
    elif output.exists() and not force:
        raise CommandError(
            f"-o names {output}, which is there: choose another, or replace it by "
            "--force",
            USAGE,
        )


class Job:
    """What is pruned, and how.

    report:  a dictionary for each weight that is.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        chosen: Any,
        e: Encoding,
        density: Any,
        is_packed: bool,
    ) -> None:
        self.checkpoint, self.chosen, self.e = checkpoint, chosen, e
        self.density, self.is_packed = density, is_packed
        self.report: List[Dict[str, Any]] = []

    def write_folder(self, target: Path) -> None:
        """Writes files as those of the checkpoint, an index, and what lies beside."""
        places = {}
        with new_folder(target) as folder:
            for path, file in self.checkpoint.files.items():
                self.write_file(folder / path.name, [file])
                tensors = TensorFile(folder / path.name).tensors
                places.update(dict.fromkeys(tensors, path.name))
            copy_others(self.checkpoint.path, folder, {}, and_config=True)
            if len(self.checkpoint.files) > 1:
                size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
                index = {"metadata": {"total_size": size}, "weight_map": places}
                write_json(folder / INDEX, index)

    def write_file(self, path: Path, files: List[TensorFile]) -> None:
        """Puts all tensors of some files in one."""
        metadata: Dict[str, str] = {}
        todo: List[Tuple[TensorFile, str]] = []
        for file in files:
            metadata.update(file.metadata)
            todo += [(file, name) for name in file.tensors]
        with TensorWriter(path) as writer:
            for file, name in progress(todo, "tensors"):
                if name in self.chosen:
                    metadata.update(self._prune(file, name, writer))
                else:
                    writer.copy(file.tensors[name], file.path)
            writer.finish(metadata)

    def _prune(
        self, file: TensorFile, name: str, writer: TensorWriter
    ) -> Dict[str, str]:
        """Writes a weight, and returns the metadata beside it."""
        dtype = str(file.tensors[name].element_type)
        before = file.read(name)
        metadata: Dict[str, str] = {}
        try:
            after = pruning.prune(before, self.e, dtype, self.density)
            tensors = {name: (FILE_TYPES[dtype], after)}
            if self.is_packed:
                packed = canonical.encode(after, self.e, dtype)
                tensors, metadata = stored_tensors(name, packed)
        except ValueError as error:
            raise CommandError(f"{file.path}: weight {name!r}: {error}") from None
        for part, (kind, array) in tensors.items():
            writer.add(part, kind, array)
        self.report.append({
            "name": name,
            "shape": list(before.shape),
            "dtype": dtype,
            "density": count_live(after, dtype) / before.size,
            "kept": kept_share(before, after, dtype),
            "bytes_before": before.nbytes,
            "bytes": sum(array.nbytes for _, array in tensors.values()),
        })  # fmt: skip
        return metadata


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
    for name, reason in report["left"].items():
        print(f"{name} stays as it is: {reason}; --include names it")
    print(
        f"{len(report['weights'])} weights have {report['encoding']}, "
        f"{report['copied']} tensors are copied; {report['output']} has "
        f"{report['bytes']} bytes instead of {report['bytes_before']}"
    )

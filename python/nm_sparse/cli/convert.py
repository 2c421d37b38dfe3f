# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert`: a checkpoint of transformers whose layers are packed, made of another."""

from __future__ import annotations

import argparse
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

from .. import __version__
from ..encoding import Encoding, EncodingError
from ..files.checkpoint import Checkpoint
from ..files.convert import (
    ConvertReport,
    Options,
    Structure,
    convert_model,
    structure_by_names,
)
from ..files.convert.folder import SUFFIX
from ..files.convert.options import SAME, SCALES
from ..files.scales import FLOATS
from ..files.sparse_config import METHOD, NARROW, weight_encoding
from .common import (
    OK,
    USAGE,
    CommandError,
    add_encoding,
    add_json,
    print_json,
    print_table,
    read_encoding,
    shown_shape,
)

_UNITS = {"": 1, "MB": 10**6, "GB": 10**9}
DENSE = "dense"
BY_NAMES = (
    "names alone say which weights are those of linear layers: no model was asked"
)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "convert",
        help="make a checkpoint with packed layers, which from_pretrained loads",
        description="Prunes and packs the linear layers of a model, layer by layer, "
        "and writes a folder that transformers loads by its name. A run that was "
        "stopped goes on when it is repeated.",
    )
    parser.add_argument(
        "input", help="a model's folder, an index of files, or a .safetensors file"
    )
    parser.add_argument("-o", "--output", required=True, metavar="DIR")
    add_encoding(parser, is_needed=False)
    parser.add_argument(
        "--layers", action="append", default=[], type=_layer, metavar="PATTERN=E",
        help="another encoding for layers of such a name, as '*.down_proj=8:16', or "
        "'dense'; may be given again, the first that matches decides",
    )  # fmt: skip
    parser.add_argument(
        "--dtype", choices=FLOATS, help="of all floating tensors (as they are)"
    )
    parser.add_argument(
        "--prune", choices=("magnitude", "none"), default="magnitude",
        help="none: pack only weights that have their pattern already",
    )  # fmt: skip
    parser.add_argument(
        "--weights", choices=tuple(NARROW),
        help="round packed values to elements of 8 bits with scales",
    )  # fmt: skip
    parser.add_argument(
        "--scales", choices=SCALES,
        help="of such values: one for each output, or the same for all (output)",
    )  # fmt: skip
    parser.add_argument(
        "--activations", choices=(SAME, *NARROW),
        help="same: multiply the inputs of such layers as they are; else round them, "
        "too (as --weights)",
    )  # fmt: skip
    parser.add_argument(
        "--shard-size", type=_size, default=_size("5GB"), metavar="SIZE",
        help="of a file of tensors, such as 500MB (5GB)",
    )  # fmt: skip
    parser.add_argument(
        "--by-name", action="store_true",
        help="do not ask transformers which weights are those of linear layers",
    )  # fmt: skip
    parser.add_argument(
        "--force", action="store_true", help="replace the checkpoint that DIR is"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def _layer(text: str) -> Tuple[str, Optional[Encoding]]:
    """(pattern, encoding) of PATTERN=E, for argparse."""
    pattern, _, encoding = text.partition("=")
    if not pattern or not encoding:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no layer: legal is PATTERN=ENCODING, such as 'lm_head=dense'"
        )
    if encoding.strip() == DENSE:
        return pattern, None
    try:
        return pattern, weight_encoding(encoding.strip())
    except EncodingError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def _size(text: str) -> int:
    """Bytes, for argparse."""
    found = re.fullmatch(r"(\d+)(MB|GB|)", text)
    if found is None or not int(found[1]):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no size: legal is a number with MB or GB, such as 5GB"
        )
    return int(found[1]) * _UNITS[found[2]]


def run(args: argparse.Namespace) -> int:
    options = read_options(args)
    checkpoint, target = Checkpoint(args.input), Path(args.output)
    structure = find_structure(checkpoint, args.by_name)
    source = checkpoint.path if checkpoint.path.is_dir() else checkpoint.path.parent
    provenance = {
        "source": str(checkpoint.config.get("_name_or_path") or source.resolve().name),
        "method": find_method(checkpoint, options),
        "made by": f"nm_sparse {__version__}",
    }
    try:
        report = convert_model(
            checkpoint, target, options, structure, largest=args.shard_size,
            force=args.force, provenance=provenance,
        )  # fmt: skip
    except KeyboardInterrupt:
        raise CommandError(
            f"interrupted; the same command goes on with {target.name}{SUFFIX}"
        ) from None
    if args.json:
        print_json(
            {"input": str(args.input), "output": str(target), **report.to_dict()}
        )
    else:
        print_report(report, target)
    return OK


def read_options(args: argparse.Namespace) -> Options:
    """What the options of the command say. Raises CommandError where they do not."""
    layers: Dict[str, Optional[Encoding]] = dict(args.layers)
    if args.encoding is None:
        given = [o for o in ("block", "dim", "order") if getattr(args, o) is not None]
        if given:
            raise CommandError(f"--{given[0]} is given without --encoding", USAGE)
        if not any(layers.values()):
            raise CommandError(
                "no encoding is given: legal is --encoding, or --layers with one", USAGE
            )
        return make_options(args, None, layers)
    e = read_encoding(args)
    if e.is_free or e.dim != 1:
        raise CommandError(
            f"--encoding is {e}: legal for layers of transformers are n:m levels with "
            "dim = 1",
            USAGE,
        )
    return make_options(args, e, layers)


def make_options(
    args: argparse.Namespace,
    encoding: Optional[Encoding],
    layers: Dict[str, Optional[Encoding]],
) -> Options:
    """Raises CommandError where options of 8 bits do not fit."""
    if args.weights is None:
        given = [o for o in ("scales", "activations") if getattr(args, o) is not None]
        if given:
            raise CommandError(
                f"--{given[0]} is given without --weights: legal is --weights e4m3 or "
                "int8 with it",
                USAGE,
            )
    own = args.dtype, args.prune, args.weights, args.scales or SCALES[0]
    try:
        return Options(encoding, layers, *own, args.activations)
    except EncodingError as error:
        raise CommandError(f"--{error}", USAGE) from None


def find_method(checkpoint: Checkpoint, options: Options) -> str:
    """How weights come to their pattern; of what is packed already as it is said."""
    said = checkpoint.compression
    texts = said.get("provenance") if said.get("quant_method") == METHOD else None
    before = texts.get("method") if isinstance(texts, dict) else None
    if before is None or before == options.method:
        return options.method
    return f"{before}; of what was dense: {options.method}"


def find_structure(checkpoint: Checkpoint, by_name: bool) -> Structure:
    """Which weights are those of linear layers. Raises CommandError where the model
    should be asked and cannot be."""
    if by_name or "model_type" not in checkpoint.config:
        return structure_by_names(checkpoint)
    lacking = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if lacking:
        raise CommandError(
            "convert asks transformers which weights are those of linear layers, and "
            f"{lacking[0]} is not installed: install it, or let names decide by "
            "--by-name"
        )
    from ..torch.pretrained.structure import model_structure

    return model_structure(checkpoint) or structure_by_names(checkpoint)


def print_report(report: ConvertReport, target: Path) -> None:
    print(report)
    if not report.is_known:
        print(BY_NAMES)
    rounding = ["rounding"] if report.weights is not None else []
    print_table(
        ["weight", "outputs x inputs", "type", "pattern", "kept", "error", *rounding,
         "bytes"],
        [
            [one.name, shown_shape(one.shape), one.elements or one.dtype,
             one.encoding or f"dense: {one.reason}", one.kept, one.error,
             *(getattr(one, name) for name in rounding), one.bytes_after]
            for one in report.outcomes
        ],
    )  # fmt: skip
    resumed = f", {report.resumed} of them from before" if report.resumed else ""
    print(f"{target} has {len(report.files)} files of tensors{resumed}")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the commands share: encodings as options, progress, tables and reports."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Iterable, List, Optional, Sequence, Tuple

from tqdm import tqdm

from ..encoding import ORDERS, Encoding, EncodingError, encoding_text

OK, FAILURE, USAGE, NO_GPU = 0, 1, 2, 3
DTYPES = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8")


class CommandError(Exception):
    """A sentence for whoever called, and the exit code."""

    def __init__(self, message: str, code: int = FAILURE) -> None:
        super().__init__(message)
        self.code = code


def require_gpu(count: int) -> None:
    """Raises CommandError where there are no GPUs to measure on."""
    if count == 0:
        raise CommandError(
            "there is no GPU to measure on: legal is a machine with one; `advise` "
            "predicts times without",
            NO_GPU,
        )


def _pair(text: str) -> Tuple[int, int]:
    try:
        bk, bn = (int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no block: legal is BK,BN, such as 1,128"
        ) from None
    return bk, bn


def add_encoding(parser: argparse.ArgumentParser, is_needed: bool = True) -> None:
    """The options that say an encoding."""
    group = parser.add_argument_group("the pattern")
    group.add_argument(
        "--encoding", required=is_needed, metavar="E",
        help="such as 8:32, free, '4:10 2:4' or '8:32, block = [1, 128]'",
    )  # fmt: skip
    group.add_argument(
        "--block", type=_pair, metavar="BK,BN",
        help="inputs and outputs that are kept together (1,1)",
    )  # fmt: skip
    group.add_argument(
        "--dim", type=int, choices=(0, 1),
        help="which dimension of a weight is summed over (1: outputs x inputs)",
    )  # fmt: skip
    group.add_argument("--order", choices=ORDERS, help="of the outputs (identity)")


def read_encoding(args: argparse.Namespace) -> Encoding:
    """The encoding that the options say. Raises CommandError where they do not."""
    try:
        dim = args.dim
        if dim is None and encoding_text.parse(args.encoding).dim is None:
            dim = 1
        return Encoding(args.encoding, block=args.block, dim=dim, order=args.order)
    except (EncodingError, ValueError) as error:
        raise CommandError(str(error), USAGE) from None


def read_shape(text: str) -> Tuple[int, int]:
    """(inputs, outputs) of `K=4096,N=14336`, for argparse."""
    fields = dict(part.partition("=")[::2] for part in text.split(","))
    try:
        sizes = int(fields.pop("K")), int(fields.pop("N"))
    except (KeyError, ValueError):
        sizes = (0, 0)
    if fields or min(sizes) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no shape: legal is K=INPUTS,N=OUTPUTS, such as K=4096,N=14336"
        )
    return sizes


def read_counts(text: str) -> List[int]:
    """Whole numbers from 1 up with commas between them, for argparse."""
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no list of numbers: legal is such as 1,16,2048"
        )
    return counts


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="print JSON in place of text"
    )


def print_json(report: Any) -> None:
    print(json.dumps(report, indent=1))


def progress(
    items: Iterable[Any], unit: str, total: Optional[int] = None
) -> Iterable[Any]:
    """`items`, with a bar on standard error where that is a terminal; `total` is their
    number where they do not tell."""
    return tqdm(
        items,
        total=total,
        unit=f" {unit}",
        file=sys.stderr,
        disable=None,
        leave=False,
    )


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns as wide as what is in them; those of numbers end alike."""
    cells = [list(header)] + [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    is_right = [
        bool(rows) and all(isinstance(row[at], (int, float)) for row in rows)
        for at in range(len(header))
    ]
    for line in cells:
        padded = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, is_right)
        )
        print("  ".join(padded).rstrip())


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


def shown_shape(shape: Optional[Sequence[int]]) -> str:
    return " x ".join(map(str, shape or ()))

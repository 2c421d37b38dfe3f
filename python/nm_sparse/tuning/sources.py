# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What there is to tune in layers, models, checkpoints and programs."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional, Sequence, Union

from ..encoding import Encoding
from ..files.checkpoint import Checkpoint
from ..layers.specs import LinearSpec
from .tunable import Finder, Tunable

LEGAL = (
    "LinearSpecs, a module of torch, a checkpoint (a .safetensors file, an index of "
    "several, or a model's folder), a .mlir file, or MLIR text"
)


def find_tunable(
    source: Any,
    tokens: Sequence[int],
    gpu: str,
    encoding: Union[Encoding, str, None] = None,
    progress: bool = False,
    objective: str = "time",
) -> Tunable:
    """The products that `tune` measures.

    source:    one or several `LinearSpec`; a module of torch; a `Checkpoint` or its
               path: a .safetensors file, an index of several, or a model's folder; the
               path of a .mlir file, or MLIR text. Packed layers are
               tuned in their encodings, and so are dense ones whose zeros have a
               pattern. MLPs that are one operator (`nm_sparse.torch.fuse_`) are tuned
               as their program has them.
    tokens:    numbers of tokens to tune for; none: those that programs for any number
               of tokens have kernels for. A function of MLIR for one number has that.
    gpu:       h100 or h200.
    encoding:  the pattern that dense layers of a model or checkpoint are to get, whose
               zeros are not looked at then.
    progress:  whether a bar on standard error shows how many weights were looked at,
               where that is a terminal.
    objective: time, energy or edp, which layouts and storages are chosen by.

    Returns products, of which those that are alike in shape, encoding and types are
    one, and why others are skipped: weights without a pattern, dense ones of 8 bits,
    convolutions whose kernels read images in place. Raises ValueError for another
    source, CheckpointError, OSError, and CompileError for a program that cannot be
    compiled.
    """
    if isinstance(source, Tunable):
        return source
    finder = Finder(gpu, objective, tokens)
    pattern = _pattern(encoding)
    text = _program_text(source)
    torch = sys.modules.get("torch")  # there, if anything is one of its modules
    if text is not None:
        finder.add_program("", text, is_of_model=False)
    elif torch is not None and isinstance(source, torch.nn.Module):
        from .modules import add_model

        add_model(finder, source, pattern, progress)
    elif isinstance(source, Checkpoint):
        _add_checkpoint(finder, source, pattern, progress)
    elif isinstance(source, (str, os.PathLike)):
        if not Path(source).exists():
            raise ValueError(f"layers is {str(source)!r}, which is no file: legal are "
                             f"{LEGAL}")  # fmt: skip
        _add_checkpoint(finder, Checkpoint(source), pattern, progress)
    else:
        _add_specs(finder, source)
    return finder.find()


def _pattern(encoding: Union[Encoding, str, None]) -> Optional[Encoding]:
    """That of weights [outputs, inputs]. Raises EncodingError."""
    if encoding is None:
        return None
    found = Encoding.parse(encoding) if isinstance(encoding, str) else encoding
    if found.is_free:
        raise ValueError("encoding is free: legal are n:m levels, such as 2:4")
    return replace(found, dim=1)


def _program_text(source: Any) -> Optional[str]:
    """MLIR, or None for what is none."""
    if isinstance(source, str) and ("\n" in source or "func.func" in source):
        return source
    if isinstance(source, (str, os.PathLike)) and Path(source).suffix == ".mlir":
        return Path(source).read_text(encoding="utf-8")
    return None


def _add_checkpoint(
    finder: Finder, checkpoint: Checkpoint, pattern: Optional[Encoding], progress: bool
) -> None:
    from .checkpoints import add_checkpoint

    add_checkpoint(finder, checkpoint, pattern, progress)


def _add_specs(finder: Finder, source: Any) -> None:
    listed = [source] if isinstance(source, LinearSpec) else source
    try:
        specs = list(listed)
    except TypeError:
        specs = [source]
    for spec in specs:
        if not isinstance(spec, LinearSpec):
            raise ValueError(f"layers has a {type(spec).__name__}: legal are {LEGAL}")
        name = f"K={spec.inputs},N={spec.outputs}"
        finder.add_linear(name, spec, is_of_model=False)

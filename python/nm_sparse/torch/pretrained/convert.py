# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert_pretrained`: checkpoints of transformers with packed layers, from Python."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Mapping, Optional, Union

from ...encoding import Encoding, EncodingError
from ...files.checkpoint import Checkpoint
from ...files.convert import (
    ConvertReport,
    Options,
    Structure,
    convert_model,
    structure_by_names,
)
from ...files.convert.model import SHARD
from ...files.scales import FLOATS
from ...files.tensor_file import PathLike
from ..weight.spec import dtype_name, linear_encoding

Pattern = Union[Encoding, str, None]


def convert_pretrained(
    source: PathLike,
    target: PathLike,
    encoding: Pattern = None,
    layers: Optional[Mapping[str, Pattern]] = None,
    *,
    dtype: object = None,
    prune: str = "magnitude",
    weights: Optional[str] = None,
    scales: str = "output",
    activations: Optional[str] = None,
    shard_bytes: int = SHARD,
    force: bool = False,
    progress: bool = True,
    provenance: Optional[Mapping[str, str]] = None,
) -> ConvertReport:
    """Makes of a checkpoint one whose linear layers are packed, without loading it.

    source:       the folder of a model, dense or in a layout of docs/Checkpoints.md.
    target:       a new or empty folder; with `force` that of a checkpoint, which is
                  replaced at the end. `from_pretrained` loads it.
    encoding:     of all linear layers that `layers` does not name, such as "2:4"; None
                  leaves them dense.
    layers:       exceptions, by patterns of names of layers (`fnmatch`); the first that
                  matches decides, None leaves dense.
    dtype:        torch.float16, bfloat16 or float32 for all floating tensors; None: as
                  it is.
    prune:        "magnitude", or "none" where weights have their pattern already, and
                  others are to stay dense.
    weights:      "e4m3" or "int8": what is kept is rounded to elements of 8 bits with
                  scales, as by `PackedWeight.quantize`; None: it is not.
    scales:       of such weights: "output", one for each, or "tensor", the same for
                  all.
    activations:  "same": inputs of these layers are multiplied as they are; or as
                  `weights`, which None means, too: they are rounded to such elements,
                  each token with a scale of its own.
    shard_bytes:  of a file of tensors.
    provenance:   free text by key, for config.json and the model card.

    Embeddings, tied heads, norms and whatever is no linear layer stay as they are. A
    run that was stopped goes on when it is repeated. Memory holds one packed layer at a
    time. Raises CheckpointError or EncodingError before anything is written where this
    is not possible, and OSError.
    """
    kind = None if dtype is None else dtype_name(dtype)  # type: ignore[arg-type]
    if kind is not None and kind not in FLOATS:
        raise EncodingError(
            f"dtype is {dtype}: legal is torch.float16, bfloat16 or float32, or None"
        )
    if prune not in ("magnitude", "none"):
        raise EncodingError(f"prune is {prune!r}: legal is 'magnitude' or 'none'")
    options = Options(
        None if encoding is None else linear_encoding(encoding),
        {
            name: None if e is None else linear_encoding(e)
            for name, e in (layers or {}).items()
        },
        kind,
        prune,
        weights,
        scales,
        activations,
    )
    checkpoint = Checkpoint(source)
    return convert_model(
        checkpoint,
        Path(target),
        options,
        find_structure(checkpoint) or structure_by_names(checkpoint),
        largest=shard_bytes,
        force=force,
        progress=progress,
        provenance=provenance,
    )


def find_structure(checkpoint: Checkpoint) -> Optional[Structure]:
    """That of the checkpoint's model, where transformers is there and knows it."""
    if "model_type" not in checkpoint.config or find_spec("transformers") is None:
        return None
    from .structure import model_structure

    return model_structure(checkpoint)

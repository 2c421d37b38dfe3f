# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The weights of a checkpoint that can be tuned, as layers of torch would have them."""

from __future__ import annotations

from typing import Optional

from ..encoding import Encoding, EncodingError
from ..files.checkpoint import Checkpoint, Weight
from ..files.contents import bar
from ..files.convert import structure_by_names
from ..files.convert.actions import layer_name
from ..files.convert.plan import model_dtype
from ..files.sparse_config import METHOD, NARROW, SparseConfig
from ..layers.specs import LinearSpec
from ..packing.two_four import ENCODING
from ..pruning.detection import detect
from .tunable import FLOATS, LEGAL_TYPES, Finder

NO_PATTERN = (
    "its weight has no pattern: prune it, or say with `encoding`, or --encoding, which "
    "it gets"
)


def add_checkpoint(
    finder: Finder, checkpoint: Checkpoint, encoding: Optional[Encoding], progress: bool
) -> None:
    """Weights that are packed, and dense ones that are pruned.

    encoding:  that dense weights get; None: the pattern that each one's zeros have.
    """
    for name in checkpoint.packed:
        _add_packed(finder, checkpoint, name)
    # Those of embeddings are multiplied by nothing.
    others = structure_by_names(checkpoint).others
    for name, weight in bar(list(checkpoint.weights.items()), "weights", progress):
        if name in others:
            finder.skip(name, others[name])
        else:
            _add_weight(finder, checkpoint, weight, encoding)


def _add_packed(finder: Finder, checkpoint: Checkpoint, name: str) -> None:
    packed = checkpoint.packed[name].described
    dtype, result = packed.dtype, None
    if dtype in NARROW.values():
        # Kernels read the products of elements and scales, unless inputs are rounded.
        said = checkpoint.compression
        rounds = said.get("quant_method") != METHOD
        if not rounds:
            own = SparseConfig.parse(said).activations_of(layer_name(name))
            rounds = own is not None
        own_type = model_dtype(checkpoint.config)
        if rounds:
            result = own_type or "bf16"
        elif own_type is None:
            finder.skip(
                name,
                "its elements have 8 bits, its inputs are not rounded to them, and the "
                "config of the model names no type that kernels multiply in: legal is "
                f"torch_dtype of {', '.join(FLOATS)}",
            )
            return
        else:
            dtype = own_type
    if len(packed.shape) != 2:
        finder.skip(name, f"its shape is {list(packed.shape)}: legal is a matrix")
        return
    outputs, inputs = packed.shape
    shape = outputs, inputs
    _add(finder, checkpoint, name, packed.encoding, shape, dtype, result)


def _add_weight(
    finder: Finder, checkpoint: Checkpoint, weight: Weight, encoding: Optional[Encoding]
) -> None:
    if weight.scale is not None:
        finder.skip(weight.name, "it has a scale: legal are weights without")
        return
    if weight.stored != "dense":
        encoding = ENCODING
    elif weight.dtype not in FLOATS:
        encoding = encoding or ENCODING  # `_add` says that the type is not legal
    elif encoding is None:
        encoding = detect(checkpoint.dense(weight.name), weight.dtype)
    if encoding is None:
        finder.skip(weight.name, NO_PATTERN)
        return
    shape = weight.outputs, weight.inputs
    _add(finder, checkpoint, weight.name, encoding, shape, weight.dtype)


def _add(
    finder: Finder,
    checkpoint: Checkpoint,
    name: str,
    encoding: Encoding,
    shape: tuple,
    dtype: str,
    result: Optional[str] = None,
) -> None:
    """result:  of elements of 8 bits that scales multiply, the type of the product."""
    if encoding.is_free:
        finder.skip(name, "its encoding is free: legal for layers is n:m")
        return
    if result is None and dtype not in FLOATS:
        finder.skip(name, f"its type is {dtype}: legal is {LEGAL_TYPES}")
        return
    layer = layer_name(name)
    has_bias = checkpoint.has(f"{layer}.bias")
    try:
        own = encoding.mlir(), *shape, dtype, has_bias
        spec = LinearSpec(*own, result=result)
    except EncodingError as error:
        finder.skip(name, str(error))
        return
    finder.add_linear(layer, spec)

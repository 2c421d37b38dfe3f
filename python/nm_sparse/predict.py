# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of a layer, sparse and dense: what a database of measured schedules has of it,
else what the compiler's cost model predicts."""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import compiler
from .encoding import Encoding
from .layers.specs import LinearSpec
from .runtime.program import DEFAULT_CHIP, advise

# The type of a packed weight, as the compiler prints it.
_PACKED = re.compile(r"packed<(?:#nm_sparse\.(\w+)<)?(#nm_sparse\.encoding<[^>]*>)")


class PredictedTime(NamedTuple):
    """Of one call with so many tokens.

    dense_us, sparse_us:  microseconds.
    """

    tokens: int
    dense_us: float
    sparse_us: float
    is_measured = False
    is_estimated = False


class MeasuredTime(PredictedTime):
    """Both times were measured, in turns: a tuning database has them."""

    is_measured = True


class EstimatedTime(PredictedTime):
    """The rates of the GPU are from a data sheet: nobody has measured it."""

    is_estimated = True


class FormTimes(NamedTuple):
    """Of a layer whose weight is stored in one form for all numbers of tokens.

    storage:   "canonical", "bitmap" or "k_major".
    encoding:  by which it is stored: the layer's, or one that contains it.
    bytes:     of the packed weight.
    times:     microseconds, by the number of tokens.
    """

    storage: str
    encoding: Encoding
    bytes: int
    times: Dict[int, float]


def compile_advice(
    shape: Tuple[int, int],
    dtype: str,
    encoding: Encoding,
    tokens: Sequence[int],
    chip: Optional[str] = None,
    gpu: Optional[str] = None,
) -> List[PredictedTime]:
    """What a layer of a weight [outputs, inputs] takes.

    dtype:   element type, spelled as in MLIR: f16, bf16, f32, ...
    tokens:  numbers of tokens.
    chip, gpu:  that times are predicted for; none: an H200.

    Raises CompileError for what cannot be compiled, and LibraryNotFoundError.
    """
    found = advise(*shape, dtype, tokens, [str(encoding)], chip, gpu)
    dense: Dict[int, float] = {}
    sparse: Dict[int, PredictedTime] = {}
    kind = EstimatedTime if found["estimated"] else PredictedTime
    for row in found["patterns"]:
        for time in row["times"]:
            count = time["tokens"]
            if "error" in time:
                raise compiler.CompileError(time["error"])
            if row["pattern"] == "dense":
                dense[count] = time["predicted_us"]
                continue
            if "measured_dense_us" in time:
                one: PredictedTime = MeasuredTime(
                    count, time["measured_dense_us"], time["measured_us"]
                )
            else:
                one = kind(count, float("nan"), time["predicted_us"])
            # A pattern may be there in several storages: the best one counts.
            sparse[count] = min(sparse.get(count, one), one, key=lambda t: t.sparse_us)
    times = [sparse[count] for count in tokens]
    return [
        one if one.is_measured else one._replace(dense_us=dense[one.tokens])
        for one in times
    ]


def compile_forms(
    shape: Tuple[int, int],
    dtype: str,
    encoding: Encoding,
    tokens: Sequence[int],
    chip: Optional[str] = None,
    gpu: Optional[str] = None,
) -> List[FormTimes]:
    """What such a layer takes in the forms that the compiler stores its weight in:
    first that for any number of tokens, and then that for one token. Where these are
    the same it is one, and no times are asked for.

    Arguments and errors are those of `compile_advice`; dtype is f16, bf16 or f32.
    """
    layer = LinearSpec(encoding.mlir(), *shape, dtype)
    target = [f"--chip={chip or DEFAULT_CHIP}", *([f"--gpu={gpu}"] if gpu else [])]
    forms = [_find_form(layer, [*target, *more]) for more in ([], ["--tokens=1"])]
    if forms[0] == forms[1]:
        return [FormTimes(*forms[0], 0, {})]
    return [
        _predict(shape, dtype, encoding, tokens, chip, gpu, *form) for form in forms
    ]


def _find_form(layer: LinearSpec, options: Sequence[str]) -> Tuple[str, Encoding]:
    """Storage and encoding of the weight in a program."""
    arguments = ["-", "-o", "ir", "--emit=front", *options]
    text = compiler.run(arguments, layer.mlir(), ("ir",)).files["ir"].decode()
    found = _PACKED.search(text)
    if found is None:
        raise compiler.CompileError("the program has no packed weight")
    return found[1] or "canonical", Encoding.parse(found[2])


def _predict(
    shape: Tuple[int, int],
    dtype: str,
    encoding: Encoding,
    tokens: Sequence[int],
    chip: Optional[str],
    gpu: Optional[str],
    storage: str,
    stored: Encoding,
) -> FormTimes:
    """Times in the form `storage` by the encoding `stored`."""
    # "auto" and "always" may take different encodings that contain its own.
    for embed in ("never",) if stored == encoding else ("auto", "always"):
        options = f"--storage={storage}", f"--embed={embed}"
        asked = dtype, tokens, [str(encoding)], chip, gpu, options
        for row in advise(*shape, *asked)["patterns"]:
            by = row.get("embedded", row.get("encoding"))
            if row["pattern"] == "dense" or by is None or Encoding.parse(by) != stored:
                continue
            times = {one["tokens"]: one["predicted_us"] for one in row["times"]}
            return FormTimes(storage, stored, row["bytes"], times)
    raise compiler.CompileError(f"no times are predicted for {storage} by {stored}")

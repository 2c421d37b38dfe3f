# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for the number of tokens that compiled graphs have.

A layer's usual program has kernels for some numbers of tokens, of which the nearest
serves any other: its tiles fit that less well (docs/decisions/095-tokens-of-graphs.md).
Graphs of torch ask for programs of their own, by `tokens` in the spec of an operator:
for the number of a graph that is compiled for one shape, and in graphs of any shape for
that of each call, rounded up, so that few programs are compiled, when they are called
first. Eager calls ask for their number within `specialize_tokens`. All of them read the
same weight.

A layer that decodes may have a program of its own for few tokens, up to `decode_to`,
whose kernels read another form of the weight; graphs ask for their numbers of it alike.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import (
    Any,
    Callable,
    Dict,
    List,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    TypeVar,
    cast,
)

import torch
from torch import Tensor
from torch.fx.experimental import symbolic_shapes
from torch.torch_version import TorchVersion

from .plain import is_specialized
from .shared_spec import with_tokens
from .spec import EACH, LinearSpec
from .stored_forms import StoredForm

# Versions before cannot be asked, while they trace, whether a size is always the same.
_CAN_ASK = TorchVersion(torch.__version__) >= (2, 9)


# Powers of two below the largest of few tokens that have kernels of their own: with 1
# and the largest, as many numbers as a program is compiled for by default.
_MOST_POWERS = 6


def for_rows(spec: str, x: Tensor) -> str:
    """The text of a layer's spec as an operator is told it, for x [..., K]: in a graph
    that is compiled for one number of tokens, and where calls are specialized, with
    this number, and in other graphs with `EACH`."""
    if not torch.compiler.is_dynamo_compiling():
        if is_specialized() and not torch.compiler.is_compiling():
            return with_tokens(spec, math.prod(x.shape[:-1]))
        return spec
    rows = known_rows(x)
    return with_tokens(spec, EACH if rows is None else rows)


def known_rows(x: Tensor) -> Optional[int]:
    """How many rows x [..., K] has; None in a graph for any number, or where the graph
    cannot be asked."""
    if torch.compiler.is_dynamo_compiling():
        if not _CAN_ASK:
            return None
        for size in x.shape[:-1]:
            if not symbolic_shapes.has_static_value(size):
                return None
    return math.prod(x.shape[:-1])


def round_tokens(tokens: int) -> int:
    """The number that kernels for `EACH` are compiled for: 1, or the next of eight
    numbers between a power of two and its double; all are multiples of 8, as tiles."""
    if tokens <= 1:
        return 1
    step = max(8, 1 << (tokens - 1).bit_length() >> 4)
    return -(-tokens // step) * step


def settled(spec: LinearSpec, x: Tensor) -> LinearSpec:
    """The same for x [..., K]: with a number in the place of `EACH`, and without
    `decode_to` where x has more rows."""
    if spec.tokens != EACH and spec.decode_to is None:
        return spec
    rows = x.numel() // max(1, x.shape[-1])
    if spec.decode_to is not None and rows > spec.decode_to:
        spec = _for_many(spec)
    return spec if spec.tokens != EACH else _with_number(spec, round_tokens(rows))


@functools.lru_cache(maxsize=4096)
def _for_many(spec: LinearSpec) -> LinearSpec:
    return replace(spec, decode_to=None)


@functools.lru_cache(maxsize=4096)
def _with_number(spec: LinearSpec, tokens: int) -> LinearSpec:
    return replace(spec, tokens=tokens)


class HasForms(Protocol):
    """A program of layers."""

    @property
    def forms(self) -> Sequence[StoredForm]:
        """In which its kernels read the weights."""


def numbers_of(spec: LinearSpec) -> Tuple[int, ...]:
    """Of tokens that a program is compiled for; none for any. For few tokens they are
    powers of two, of which the compiler takes those that want kernels of their own, and
    the largest."""
    if spec.tokens:
        return (spec.tokens,)
    if spec.decode_to is None:
        return ()
    few = [1 << i for i in range(spec.decode_to.bit_length())][-_MOST_POWERS:]
    return tuple(sorted({1, *few, spec.decode_to}))


def options_of(storage: Optional[str]) -> List[str]:
    """Of a program whose kernels must read weights in this form; None: in any."""
    return [] if storage is None else [f"--storage={storage}"]


Find = TypeVar("Find", bound=Callable[..., Optional[HasForms]])


def finds_kernels(find: Find) -> Find:
    """Caches what a function finds, and has it find kernels for `tokens` of specs only
    where these read weights in the forms that kernels for any number read.

    find:  takes specs, or tuples of them, and others; and `storage`, the form that
           kernels must read, by its name.
    """

    cache: Dict[Any, Any] = {}

    @functools.wraps(find)
    def found(*args: Any) -> Any:
        if args in cache:
            return cache[args]
        usual_args = tuple(_for_any_tokens(one) for one in args)
        if usual_args == args:
            made = find(*args)
        elif _is_capturing():  # when no program can be loaded
            return found(*usual_args)
        else:
            made = alike(found(*usual_args), args)
        cache[args] = made
        return made

    def alike(usual: Any, args: Any) -> Any:
        storages = set() if usual is None else {form.storage for form in usual.forms}
        if len(storages) != 1:
            return usual
        exact = find(*args, storage=storages.pop())
        return exact if exact is not None and _keys(exact) == _keys(usual) else usual

    found.cache_clear = cache.clear  # type: ignore[attr-defined]
    return cast(Find, found)


def _is_capturing() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def _for_any_tokens(one: Any) -> Any:
    if isinstance(one, LinearSpec):
        return one.for_any_tokens
    if isinstance(one, tuple):
        return tuple(_for_any_tokens(each) for each in one)
    return one


def _keys(made: HasForms) -> List[str]:
    return [form.key for form in made.forms]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for the number of tokens that a compiled graph has.

A layer's program has kernels for some numbers of tokens, of which the nearest serves
any other: its tiles fit that less well (docs/decisions/095-kernels-for-one-number.md).
Graphs that torch compiles for one shape ask for a program of their own, by `tokens` in
the spec of the operator. It reads the same weight as the usual one.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, List, Optional, Protocol, Sequence, TypeVar, cast

import torch
from torch import Tensor
from torch.fx.experimental import symbolic_shapes
from torch.torch_version import TorchVersion

from ..weight.shared_spec import with_tokens
from ..weight.spec import LinearSpec
from ..weight.stored_forms import StoredForm

# Versions before cannot be asked, while they trace, whether a size is always the same.
_CAN_ASK = TorchVersion(torch.__version__) >= (2, 9)


def for_rows(spec: str, x: Tensor) -> str:
    """The text of a layer's spec as an operator is told it, for x [..., K]: with the
    number of tokens in a graph that is compiled for this number alone."""
    if not _CAN_ASK or not torch.compiler.is_dynamo_compiling():
        return spec
    for size in x.shape[:-1]:
        if not symbolic_shapes.has_static_value(size):
            return spec
    tokens = math.prod(x.shape[:-1])
    return with_tokens(spec, tokens) if tokens > 0 else spec


class HasForms(Protocol):
    """A program of layers."""

    @property
    def forms(self) -> Sequence[StoredForm]:
        """In which its kernels read the weights."""


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

    @functools.wraps(find)
    def found(*args: Any) -> Any:
        usual_args = tuple(_for_any_tokens(one) for one in args)
        if usual_args == args:
            return find(*args)
        usual = cached(*usual_args)
        storages = set() if usual is None else {form.storage for form in usual.forms}
        if len(storages) != 1:
            return usual
        exact = find(*args, storage=storages.pop())
        is_alike = exact is not None and _keys(exact) == _keys(usual)
        return exact if is_alike else usual

    cached = functools.lru_cache(maxsize=None)(found)
    return cast(Find, cached)


def _for_any_tokens(one: Any) -> Any:
    if isinstance(one, LinearSpec):
        return one.for_any_tokens
    if isinstance(one, tuple):
        return tuple(_for_any_tokens(each) for each in one)
    return one


def _keys(made: HasForms) -> List[str]:
    return [form.key for form in made.forms]

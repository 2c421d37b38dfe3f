# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a call is only to be computed, or is recorded, traced or transformed."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Iterator

import torch
from torch import Tensor

# Types of plain tensors: no subclass takes over what is computed with them.
_PLAIN = (Tensor, torch.nn.Parameter)

# Each call asks all of these: finding them in their modules takes as long again.
_is_compiling = torch.compiler.is_compiling
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_transform = torch._C._functorch.peek_interpreter_stack
_trace = torch._C._get_tracing_state
_forward_ad = torch.autograd.forward_ad
_is_autocast = torch.is_autocast_enabled
_is_capturing = torch.cuda.is_current_stream_capturing

_specializes: ContextVar[bool] = ContextVar("nm_sparse_specializes", default=False)
is_specialized = _specializes.get


@contextmanager
def specialize_tokens() -> Iterator[None]:
    """Has calls of packed layers use kernels for exactly their number of tokens, as
    graphs of `torch.compile` do; else eager calls share a few kernels, whose tiles fit
    other numbers less well.

    It is for CUDA graphs, which are captured for one number of tokens each. Warm up
    within it, too: a program for a new number is compiled, in tenths of a second, and
    loaded by the first call, which cannot be done while a graph is captured. Captured
    calls without one use the kernels that eager calls share. Results of one number are
    the same to the bit in all calls that use the same kernels, so not inside and
    outside of this.

        with nm_sparse.torch.specialize_tokens():
            model(ids)
            with torch.cuda.graph(graph):
                y = model(ids)

    It holds for the thread, or the task of asyncio, that enters it.
    """
    token = _specializes.set(True)
    try:
        yield
    finally:
        _specializes.reset(token)


def is_plain_type(x: Any) -> bool:
    """Whether it is a tensor, and of no subclass but that of parameters."""
    return type(x) in _PLAIN


def is_untraced(x: Tensor) -> bool:
    """Whether an operator on x would be computed at once, on a GPU: nothing traces or
    transforms it."""
    return (
        not _is_compiling()
        and type(x) in _PLAIN
        and x.is_cuda
        and _dispatch_modes() == 0
        and _function_modes() == 0
        and _transform() is None
        and _trace() is None
        and _forward_ad._current_level < 0
    )


def is_plain_call(x: Tensor) -> bool:
    """Whether that is so, and by kernels of this package for any number of tokens: no
    graph is captured, and nothing casts it."""
    return (
        is_untraced(x)
        and not _is_autocast()  # on GPUs, whose name it would have to read
        and not _is_capturing()
        and not is_specialized()
    )

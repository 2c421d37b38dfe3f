# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a call is only to be computed, or is recorded, traced or transformed."""

from __future__ import annotations

import torch
from torch import Tensor

# Types of plain tensors: no subclass takes over what is computed with them.
_PLAIN = (Tensor, torch.nn.Parameter)


def is_untraced(x: Tensor) -> bool:
    """Whether an operator on x would be computed at once, on a GPU: nothing traces or
    transforms it."""
    return (
        not torch.compiler.is_compiling()
        and type(x) in _PLAIN
        and x.is_cuda
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._len_torch_function_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
        and torch._C._get_tracing_state() is None
        and torch.autograd.forward_ad._current_level < 0
    )


def is_plain_call(x: Tensor) -> bool:
    """Whether that is so, and by kernels of this package: no graph is captured, and
    nothing casts it."""
    return (
        is_untraced(x)
        and not torch.is_autocast_enabled("cuda")
        and not torch.cuda.is_current_stream_capturing()
    )

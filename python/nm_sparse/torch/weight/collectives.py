# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives by which a packed weight is sent to other devices: component by
component, as bytes."""

from __future__ import annotations

from typing import Any, Callable, List, Sequence, Tuple

import torch
import torch.distributed as dist
from torch import Tensor

from ...encoding import EncodingError
from .weight import PackedWeight
from .weight_ops import implements


class _Done(dist.Work):
    """What a collective returns that has been waited for."""

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


_DONE = _Done()  # kept: torch asks the object itself


def _bytes(part: Tensor) -> Tensor:
    return part.contiguous().view(torch.uint8)


def _receive(
    weights: Sequence[PackedWeight], send: Callable[[str, List[Tensor]], Any]
) -> Tuple[Sequence[PackedWeight], Any]:
    """Calls `send` for each component, with what receives it, and waits for it."""
    for name in weights[0].components:
        received = [getattr(one, name) for one in weights]
        if not all(part.is_contiguous() for part in received):
            raise EncodingError(f"{name} is not contiguous: call clone() first")
        # The operators of torch would return no work where nothing is left to wait
        # for, which has no form in Python.
        work = send(name, [part.view(torch.uint8) for part in received])
        if work is not None:
            work.wait()
    return weights, _DONE.boxed()


if dist.is_available():

    @implements(torch.ops.c10d.broadcast_.default)
    def _broadcast(func: Any, args: Any, kwargs: Any) -> Any:
        weights, group, root = args[0], dist.ProcessGroup.unbox(args[1]), args[2]
        options = dist.BroadcastOptions()
        options.rootRank, options.rootTensor = root, args[3]

        def send(name: str, received: List[Tensor]) -> Any:
            return group.broadcast(received, options)

        return _receive(weights, send)

    @implements(torch.ops.c10d.scatter_.default)
    def _scatter(func: Any, args: Any, kwargs: Any) -> Any:
        weights, given, group = args[0], args[1], dist.ProcessGroup.unbox(args[2])
        options = dist.ScatterOptions()
        options.rootRank = args[3]

        def send(name: str, received: List[Tensor]) -> Any:
            parts = [[_bytes(getattr(one, name)) for one in each] for each in given]
            return group.scatter(received, parts, options)

        return _receive(weights, send)

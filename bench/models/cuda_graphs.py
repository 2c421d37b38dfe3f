# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of torch as CUDA graphs, and their times."""

from __future__ import annotations

import time
from typing import Any, Callable

import torch


def capture(
    run: Callable[[], torch.Tensor], pool: Any = None
) -> Callable[[], torch.Tensor]:
    """`run` as a CUDA graph, or as it is on the CPU.

    pool:  memory that graphs share which are not replayed at the same time, and whose
           results are not read later."""
    if not torch.cuda.is_available():
        return run
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        result = run()

    def replay(inputs: Any = run) -> torch.Tensor:
        graph.replay()  # which reads memory of `inputs`, so that must live as long
        return result

    return replay


def microseconds(run: Callable[[], Any], seconds: float) -> float:
    """Of one run, over at least `seconds`."""
    if not torch.cuda.is_available():
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1e6
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    end.synchronize()
    count = max(3, int(seconds * 1e3 / max(begin.elapsed_time(end), 1e-3)))
    begin.record()
    for _ in range(count):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / count

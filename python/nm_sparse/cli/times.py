# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of layers on a GPU, sparse ones and those of torch.

Layers are captured in CUDA graphs, so that launching takes no part. Each call of a
graph reads another copy of the weight, as many as do not fit in the L2 cache together:
in a model, a weight is not there when its layer begins.
"""

from __future__ import annotations

import ctypes
import statistics
from typing import Any, Callable, List, Sequence

COLD_BYTES = 1 << 28  # of all copies of a weight, more than any L2 cache has
MOST_COPIES = 64
CALLS, REPEATS, WARM = 20, 15, 3  # in a graph at least, of a graph, before measuring
DEVICE = "cuda"
TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}
Layer = Callable[[Any, Any], Any]  # of x, and of y, which it writes


def count_gpus() -> int:
    """GPUs that the driver has; 0 where there is no driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value


def draw(torch: Any, shape: Sequence[int], inputs: int, dtype: str, seed: int) -> Any:
    """Random numbers whose products over `inputs` of them are about 1."""
    generator = torch.Generator(DEVICE).manual_seed(seed)
    numbers = torch.randn(*shape, device=DEVICE, generator=generator)
    return (numbers / inputs**0.5).to(getattr(torch, TYPES[dtype]))


def copies(size: int) -> int:
    """How many weights of `size` bytes are not in a cache when their turn comes."""
    return min(-(-COLD_BYTES // max(size, 1)), MOST_COPIES)


def dense_layers(torch: Any, weight: Any) -> List[Layer]:
    """The layer of torch, of several copies of its weight."""
    size = weight.numel() * weight.element_size()
    weights = [weight.clone().T for _ in range(copies(size))]
    return [lambda x, y, w=w: torch.mm(x, w, out=y) for w in weights]


def sparse_layers(
    program: Any, packed: Any, like: Any, others: Sequence[Any] = ()
) -> List[Layer]:
    """The function of a program, of several copies of its packed weight.

    like:    an array on the GPU.
    others:  what the function takes between the weight and y.
    """
    weights = [program.prepare(packed, like=like) for _ in range(copies(packed.nbytes))]
    return [lambda x, y, w=w: program(x, w, *others, y) for w in weights]


class Graph:
    """Calls of layers in turn, captured."""

    def __init__(self, torch: Any, layers: Sequence[Layer], x: Any, y: Any) -> None:
        self._torch, self._layers = torch, layers
        self._calls = max(CALLS, len(layers))
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            layers[0](x, y)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            for call in range(self._calls):
                layers[call % len(layers)](x, y)

    def seconds(self) -> float:
        """The time of one call, over one replay."""
        start, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self._graph.replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / self._calls


def seconds_per_call(torch: Any, layers: Sequence[Layer], x: Any, y: Any) -> float:
    """The median over replays of a graph of calls, each of the next layer."""
    graph = Graph(torch, layers, x, y)
    times = [graph.seconds() for _ in range(WARM + REPEATS)]
    return statistics.median(times[WARM:])

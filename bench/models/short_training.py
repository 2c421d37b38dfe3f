# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training loop for a number of steps or seconds, for studies of quality."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence

import torch
from torch import Tensor, nn

REPORTED = 10  # losses that a report has
# Steps between looks at the clock, each of which waits for the GPU.
PATIENCE = 4


@dataclass
class Trained:
    """What a training has done.

    steps, seconds:  of it.
    losses:          about ten of them, by the number of their step.
    """

    steps: int = 0
    seconds: float = 0.0
    losses: Dict[int, float] = field(default_factory=dict)


def rate(done: float, warmup: float, least: float) -> float:
    """The factor of the learning rate when the share `done` of a training is over: a
    linear warmup, then half a cosine down to `least`."""
    if done < warmup:
        return max(done / warmup, 0.01)
    rest = min((done - warmup) / max(1 - warmup, 1e-9), 1.0)
    return least + (1 - least) * (1 + math.cos(math.pi * rest)) / 2


def groups_of(parameters: Sequence[nn.Parameter], decay: float) -> List[dict]:
    """Matrices decay, vectors such as scales of norms do not."""
    matrices = [p for p in parameters if p.ndim >= 2]
    vectors = [p for p in parameters if p.ndim < 2]
    return [
        {"params": matrices, "weight_decay": decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


def train(
    model: nn.Module,
    loss_of: Callable[[int], Tensor],
    lr: float,
    *,
    steps: Optional[int] = None,
    seconds: Optional[float] = None,
    warmup: float = 0.05,
    least: float = 0.05,
    decay: float = 0.0,
    clip: float = 1.0,
    show: str = "",
) -> Trained:
    """Trains all parameters that require gradients with AdamW.

    loss_of:  the loss of a step, by its number, with its graph.
    steps, seconds:  how long, by one of the two. The learning rate follows it.
    decay:    of matrices.
    clip:     the norm that gradients are cut to.
    show:     what lines of progress begin with; none where it is empty.

    Raises FloatingPointError when the loss is not finite.
    """
    if (steps is None) == (seconds is None):
        raise ValueError("legal is one of steps and seconds")
    parameters = [p for p in model.parameters() if p.requires_grad]
    is_cuda = parameters[0].device.type == "cuda"
    optimizer = torch.optim.AdamW(
        groups_of(parameters, decay), lr, betas=(0.9, 0.95), fused=is_cuda
    )
    report, begun = Trained(), time.monotonic()
    done, pending = 0.0, []
    while done < 1:
        for group in optimizer.param_groups:
            group["lr"] = lr * rate(done, warmup, least)
        loss = loss_of(report.steps)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        if 100 * done >= 10 * (len(report.losses) + len(pending)):
            pending.append((report.steps, loss.detach()))
        report.steps += 1
        if report.steps % PATIENCE == 0 or report.steps == steps:
            _take(pending, report, show)
            if not math.isfinite(float(loss.detach())):
                raise FloatingPointError(
                    f"the loss of step {report.steps} is not finite: take a lower rate"
                )
        report.seconds = time.monotonic() - begun
        done = report.steps / steps if steps else report.seconds / (seconds or 1.0)
    _take([(report.steps - 1, loss.detach())], report, show)
    optimizer.zero_grad(set_to_none=True)
    report.seconds = round(time.monotonic() - begun, 2)
    return report


def _take(pending: List[tuple], report: Trained, show: str) -> None:
    """Brings losses to the host, which waits for them."""
    for step, loss in pending:
        report.losses[step] = round(float(loss), 4)
        if show:
            print(f"{show} step {step}: {report.losses[step]:.4f}", flush=True)
    pending.clear()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`distill` trains a pruned model to do what its dense self did; zeros stay zero."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm.auto import tqdm

from ...encoding import EncodingError
from .calibration import Batch, call, run_batch, to_device
from .held import hold_masks

Loss = Callable[[Tensor, Tensor], Tensor]
Output = Callable[[Any, Batch], Tensor]
SAVE_SECONDS = 60


def cosine_loss(found: Tensor, wanted: Tensor) -> Tensor:
    """1 less the mean cosine along the last dimension."""
    return 1 - F.cosine_similarity(found.float(), wanted.float(), dim=-1).mean()


def mse_loss(found: Tensor, wanted: Tensor) -> Tensor:
    """The sum of squares of the differences, relative to that of what is wanted."""
    found, wanted = found.float(), wanted.float()
    return (found - wanted).square().sum() / wanted.square().sum().clamp(min=1e-30)


LOSSES: Dict[str, Loss] = {"cosine": cosine_loss, "mse": mse_loss}


def first_output(result: Any, batch: Batch) -> Tensor:
    """The tensor that a model returns, or the first one of its tuple or mapping."""
    if isinstance(result, Tensor):
        return result
    values = result.values() if isinstance(result, Mapping) else result
    return next(value for value in values if isinstance(value, Tensor))


@dataclass
class DistillReport:
    """What `distill` has done.

    steps:    in all, with those before it was resumed.
    seconds:  of training, in all.
    losses:   (step, loss), about a hundred of them.
    ended:    "steps", or "minutes" where time ran out first.
    """

    steps: int = 0
    seconds: float = 0.0
    losses: List[Tuple[int, float]] = field(default_factory=list)
    ended: str = "steps"


def distill(
    model: nn.Module,
    teacher: nn.Module,
    batches: Union[Sequence[Batch], Callable[[int], Batch]],
    steps: int,
    lr: float = 1e-4,
    *,
    loss: Union[str, Loss] = "mse",
    output: Output = first_output,
    warmup: float = 0.1,
    weight_decay: float = 0.0,
    clip: float = 1.0,
    seed: int = 0,
    max_minutes: Optional[float] = None,
    checkpoint: Union[str, Path, None] = None,
    progress: bool = True,
) -> DistillReport:
    """Trains a pruned model to give the outputs of a dense one; zeros stay zero.

    batches:      a sequence, which is gone through in an order drawn anew each time, or
                  a function of the number of the step.
    steps:        of the optimizer in all, AdamW with a linear warmup for the share
                  `warmup` of them and then a cosine down to a hundredth of `lr`.
    loss:         "mse", "cosine" or a function of what both give.
    output:       output(result, batch): the tensor to compare.
    clip:         the norm that gradients are cut to.
    max_minutes:  of training in this call. The rate then follows the time that is left,
                  so that it is low when time runs out.
    checkpoint:   a file that the state is kept in, once a minute and at the end. Where
                  it exists, training goes on from it.

    The model is trained as it runs in evaluation, since dropout would add noise to what
    both give, and is left so. Parameters are trained that require gradients. Raises
    EncodingError when something does not fit, and FloatingPointError when the loss is
    not finite.
    """
    if steps < 1 or not lr > 0:
        raise EncodingError(f"steps is {steps}, lr {lr}: legal are positive numbers")
    if isinstance(loss, str) and loss not in LOSSES:
        raise EncodingError(f"loss is {loss!r}: legal is 'mse', 'cosine' or a function")
    model.eval()
    teacher.eval()
    trained = [p for p in model.parameters() if p.requires_grad]
    if not trained:
        raise EncodingError("no parameter of the model requires gradients")
    run = _Training(
        model,
        torch.optim.AdamW(trained, lr, weight_decay=weight_decay),
        DistillReport(),
        None if checkpoint is None else Path(checkpoint),
    )
    measure = LOSSES[loss] if isinstance(loss, str) else loss
    choose = batches if callable(batches) else _shuffled(batches, seed)
    with hold_masks(model):
        run.resume()
        report = run.report
        with tqdm(
            total=steps, initial=report.steps, desc="distilling", disable=not progress
        ) as bar:
            for batch in run.batches(choose, steps, max_minutes):
                run.set_rate(lr * _rate(run.done, warmup))
                wanted = output(call(teacher, batch), batch)
                value = measure(output(run_batch(model, batch), batch), wanted)
                run.step(value, trained, clip)
                if 100 * run.done >= len(report.losses):
                    report.losses.append((report.steps, float(value.detach())))
                    bar.set_postfix_str(f"loss {report.losses[-1][1]:.4f}")
                bar.update()
    run.save()
    return report


@dataclass
class _Training:
    """The state of a training, and the file that it is kept in."""

    model: nn.Module
    optimizer: Optimizer
    report: DistillReport
    path: Optional[Path]
    done: float = 0.0  # share of what is to be done in all
    saved: float = 0.0

    def batches(
        self, choose: Callable[[int], Batch], steps: int, minutes: Optional[float]
    ) -> Iterator[Batch]:
        """The batch of each step that there is time for."""
        budget = math.inf if minutes is None else 60 * minutes
        begun = self.saved = time.monotonic()
        before, self.report.ended = self.report.seconds, "steps"
        device = self.optimizer.param_groups[0]["params"][0].device
        while self.report.steps < steps:
            spent = time.monotonic() - begun
            self.report.seconds = before + spent
            if spent >= budget:
                self.report.ended = "minutes"
                return
            self.done = max(self.report.steps / steps, spent / budget)
            if time.monotonic() - self.saved > SAVE_SECONDS:
                self.save()
            yield to_device(choose(self.report.steps), device)
        self.report.seconds = before + time.monotonic() - begun

    def set_rate(self, lr: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = lr

    def step(self, value: Tensor, trained: Sequence[Tensor], clip: float) -> None:
        if not bool(torch.isfinite(value)):
            raise FloatingPointError(
                f"the loss of step {self.report.steps} is {float(value.detach())}: "
                "take a lower lr, or a wider type"
            )
        self.optimizer.zero_grad(set_to_none=True)
        value.backward()
        nn.utils.clip_grad_norm_(trained, clip)
        self.optimizer.step()
        self.report.steps += 1

    def save(self) -> None:
        if self.path is None:
            return
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "report": vars(self.report),
        }
        partial = self.path.with_name(self.path.name + ".partial")
        torch.save(state, partial)
        partial.replace(self.path)
        self.saved = time.monotonic()

    def resume(self) -> None:
        if self.path is None or not self.path.exists():
            return
        state = torch.load(self.path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.report = DistillReport(**state["report"])


def _rate(done: float, warmup: float) -> float:
    """The factor of the learning rate when the share `done` of training is over."""
    if done < warmup:
        return max(done / warmup, 0.01)
    rest = (done - warmup) / max(1 - warmup, 1e-9)
    return 0.01 + 0.99 * (1 + math.cos(math.pi * min(rest, 1.0))) / 2


def _shuffled(batches: Sequence[Batch], seed: int) -> Callable[[int], Batch]:
    """The batch of a step: all of them in one order, then in another, and so on."""
    if not len(batches):
        raise EncodingError("batches are none: legal is at least one")

    def choose(step: int) -> Batch:
        turn, place = divmod(step, len(batches))
        draw = torch.Generator().manual_seed(seed + turn)
        return batches[int(torch.randperm(len(batches), generator=draw)[place])]

    return choose

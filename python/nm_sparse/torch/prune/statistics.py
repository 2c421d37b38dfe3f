# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What calibration says of the inputs of a layer: their Gram matrix, sums and norms."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from ...encoding import EncodingError


class Statistics:
    """Sums over the tokens that a layer has seen, [tokens, K] inputs X.

    gram:    X^T X, [K, K].
    sums:    of each input, [K].
    tokens:  how many there were.

    With `has_target`, `add` takes a second input D of the same tokens, that of the
    dense model:

    cross:        X^T D, [K, K].
    target_gram:  D^T D, [K, K].
    target_sums:  of D, [K].

    All are in `dtype`, float64 or float32, on `device`.
    """

    def __init__(
        self,
        inputs: int,
        dtype: torch.dtype = torch.float64,
        device: Optional[torch.device] = None,
        has_target: bool = False,
    ) -> None:
        if dtype not in (torch.float32, torch.float64):
            raise EncodingError(f"dtype is {dtype}: legal is float32 or float64")

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.tokens = 0
        self.gram, self.sums = zeros(inputs, inputs), zeros(inputs)
        self.cross = zeros(inputs, inputs) if has_target else None
        self.target_gram = zeros(inputs, inputs) if has_target else None
        self.target_sums = zeros(inputs) if has_target else None

    @property
    def norms(self) -> Tensor:
        """The root of the sum of squares of each input, [K]."""
        return self.gram.diagonal().clamp(min=0).sqrt()

    def add(
        self,
        x: Tensor,
        target: Optional[Tensor] = None,
        token_mask: Optional[Tensor] = None,
    ) -> None:
        """Counts the tokens of x [..., K], and of the target, which has its shape.

        token_mask:  [...], where a token is none (padding) it is zero.

        Raises EncodingError when shapes do not fit, or an input is NaN or infinite.
        """
        if (target is None) != (self.cross is None):
            raise EncodingError("target: legal is one where has_target was said")
        rows = self._rows(x, token_mask)
        if not bool(torch.isfinite(rows).all()):
            raise EncodingError(
                "an input of the layer is NaN or infinite: legal are finite inputs; "
                "look at the calibration data, or run the model in a wider type"
            )
        self.tokens += len(rows)
        self.gram.addmm_(rows.t(), rows)
        self.sums += rows.sum(0)
        if target is None or self.cross is None:
            return
        wanted = self._rows(target, token_mask)
        if wanted.shape != rows.shape:
            raise EncodingError(
                f"target has {list(wanted.shape)} tokens x inputs: legal is "
                f"{list(rows.shape)}, as the input"
            )
        self.cross.addmm_(rows.t(), wanted)
        self.target_gram.addmm_(wanted.t(), wanted)
        self.target_sums += wanted.sum(0)

    def _rows(self, x: Tensor, token_mask: Optional[Tensor]) -> Tensor:
        inputs = len(self.sums)
        if x.shape[-1:] != (inputs,):
            raise EncodingError(
                f"the input has shape {list(x.shape)}: legal is [..., {inputs}]"
            )
        x = x.detach()
        if token_mask is not None and token_mask.shape == x.shape[:-1]:
            x = x[token_mask.to(x.device) != 0]
        return x.reshape(-1, inputs).to(self.gram)

    def centered(self) -> Statistics:
        """The same of inputs less their means, for layers whose bias makes up for
        these."""
        other = Statistics(
            len(self.sums), self.gram.dtype, self.gram.device, self.cross is not None
        )
        other.tokens, count = self.tokens, max(self.tokens, 1)
        other.gram = self.gram - torch.outer(self.sums, self.sums) / count
        if self.cross is not None:
            sums = self.target_sums
            other.cross = self.cross - torch.outer(self.sums, sums) / count
            other.target_gram = self.target_gram - torch.outer(sums, sums) / count
        return other

    def output_error(self, weight: Tensor, fitted: Tensor) -> Tensor:
        """The sum of squares of what `fitted` [N, K] changes of the outputs of `weight`
        over all tokens and outputs, float64 scalar. With a target, these are outputs
        for it."""
        old, new = weight.detach().to(self.gram), fitted.detach().to(self.gram)
        if self.cross is None:
            change = old - new
            return ((change @ self.gram) * change).sum().double().clamp(min=0)
        total = ((new @ self.gram) * new).sum().double()
        total -= 2 * ((new @ self.cross) * old).sum().double()
        total += ((old @ self.target_gram) * old).sum().double()
        return total.clamp(min=0)

    def output_energy(self, weight: Tensor) -> Tensor:
        """The sum of squares of the outputs of `weight` [N, K], float64 scalar."""
        old = weight.detach().to(self.gram)
        gram = self.gram if self.target_gram is None else self.target_gram
        return ((old @ gram) * old).sum().double()

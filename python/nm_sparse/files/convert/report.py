# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `convert_model` did with each matrix of a checkpoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Optional, Tuple


@dataclass(frozen=True)
class Outcome:
    """Of one matrix.

    dtype:       of the numbers that it stands for.
    encoding:    of the packed weight; None where it is dense.
    reason:      why it is dense.
    kept:        the share of the sum of its magnitudes that is left; None where nothing
                 was looked at.
    error:       the norm of what is lost, relative to that of the weight.
    was_packed:  whether it was packed before.
    bytes_before, bytes_after:  of its tensors.
    elements:    "e4m3" or "int8" where a packed weight has scales.
    rounding:    how far such elements are from what is kept, relative to its norm.
    """

    name: str
    shape: Tuple[int, ...]
    dtype: str
    encoding: Optional[str]
    reason: str
    kept: Optional[float]
    error: Optional[float]
    was_packed: bool
    bytes_before: int
    bytes_after: int
    elements: Optional[str] = None
    rounding: Optional[float] = None

    @property
    def is_packed(self) -> bool:
        return self.encoding is not None


@dataclass(frozen=True)
class ConvertReport:
    """What `convert_model` did.

    outcomes:  one for each matrix, in the order of the checkpoint.
    files:     of tensors, that were written.
    resumed:   of these, those that an earlier run had written.
    is_known:  whether the model itself said which weights layers have; else names did.
    bytes_before, bytes_after:  of all tensors.
    method:    how weights came to their pattern.
    weights:   "e4m3" or "int8": packed values are such elements, with scales.
    scales:    of these: "output" or "tensor".
    activations: the type that inputs of packed layers are rounded to; None for none.
    """

    outcomes: Tuple[Outcome, ...]
    files: Tuple[str, ...]
    resumed: int
    is_known: bool
    bytes_before: int
    bytes_after: int
    method: str = ""
    weights: Optional[str] = None
    scales: Optional[str] = None
    activations: Optional[str] = None

    @property
    def packed(self) -> List[Outcome]:
        return [one for one in self.outcomes if one.is_packed]

    @property
    def share(self) -> float:
        """Of all bytes before, those of the weights that are packed now."""
        own = sum(one.bytes_before for one in self.packed)
        return own / self.bytes_before if self.bytes_before else 0.0

    @property
    def kept(self) -> Optional[float]:
        """The mean of the packed weights that were looked at, each by its elements."""
        return self._mean("kept")

    @property
    def rounding(self) -> Optional[float]:
        """The same of the errors of rounding; None where nothing was rounded."""
        return self._mean("rounding")

    def _mean(self, name: str) -> Optional[float]:
        known = [one for one in self.packed if getattr(one, name) is not None]
        count = sum(one.shape[0] * one.shape[1] for one in known)
        if not count:
            return None
        sums = (getattr(one, name) * one.shape[0] * one.shape[1] for one in known)
        return sum(sums) / count

    @property
    def quantization(self) -> str:
        """What became of packed values and of inputs, as a sentence; "" for nothing."""
        if self.weights is None:
            return ""
        scales = "output" if self.scales == "output" else "weight"
        text = (
            f"packed values are {self.weights} with a scale for each {scales}, off by "
            f"{100 * (self.rounding or 0):.2f} %; "
        )
        if self.activations is None:
            return text + "inputs are multiplied as they are"
        return text + f"inputs are rounded to {self.activations}"

    def to_dict(self) -> Dict[str, Any]:
        """Plain data, for JSON."""
        fields = asdict(self)
        fields["outcomes"] = [asdict(one) for one in self.outcomes]
        means = {"kept": self.kept, "rounding": self.rounding}
        return {**fields, "share": self.share, **means}

    def __str__(self) -> str:
        text = (
            f"{100 * self.share:.1f} % of the bytes, {len(self.packed)} of "
            f"{len(self.outcomes)} matrices, are packed; the checkpoint has "
            f"{self.bytes_after / 2**20:.1f} MiB instead of "
            f"{self.bytes_before / 2**20:.1f} MiB"
        )
        if self.kept is not None:
            text += f"; {100 * self.kept:.1f} % of the packed magnitudes are kept"
        return f"{text}; {self.quantization}" if self.quantization else text

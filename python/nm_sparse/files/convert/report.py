# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `convert_model` did with each matrix of a checkpoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Optional, Tuple


@dataclass(frozen=True)
class Outcome:
    """Of one matrix.

    encoding:    of the packed weight; None where it is dense.
    reason:      why it is dense.
    kept:        the share of the sum of its magnitudes that is left; None where nothing
                 was looked at.
    error:       the norm of what is lost, relative to that of the weight.
    was_packed:  whether it was packed before.
    bytes_before, bytes_after:  of its tensors.
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
    """

    outcomes: Tuple[Outcome, ...]
    files: Tuple[str, ...]
    resumed: int
    is_known: bool
    bytes_before: int
    bytes_after: int

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
        known = [one for one in self.packed if one.kept is not None]
        count = sum(one.shape[0] * one.shape[1] for one in known)
        if not count:
            return None
        return sum(one.kept * one.shape[0] * one.shape[1] for one in known) / count

    def to_dict(self) -> Dict[str, Any]:
        """Plain data, for JSON."""
        fields = asdict(self)
        fields["outcomes"] = [asdict(one) for one in self.outcomes]
        return {**fields, "share": self.share, "kept": self.kept}

    def __str__(self) -> str:
        text = (
            f"{100 * self.share:.1f} % of the bytes, {len(self.packed)} of "
            f"{len(self.outcomes)} matrices, are packed; the checkpoint has "
            f"{self.bytes_after / 2**20:.1f} MiB instead of "
            f"{self.bytes_before / 2**20:.1f} MiB"
        )
        if self.kept is not None:
            text += f"; {100 * self.kept:.1f} % of the packed magnitudes are kept"
        return text

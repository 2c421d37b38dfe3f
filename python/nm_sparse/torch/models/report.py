# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `sparsify_` did with each linear layer of a model, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from torch import nn

from ..prune.model_size import ModelSize, measure


def table(lines: Sequence[Sequence[str]]) -> List[str]:
    """Lines of cells as text; the first one is underlined."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        for line in lines
    ]
    text.insert(1, "  ".join("-" * width for width in widths))
    return text


@dataclass(frozen=True)
class Prediction:
    """Times of one layer, in microseconds, for a number of tokens: predicted, unless
    `is_measured`."""

    tokens: int
    dense_us: float
    sparse_us: float
    # A dense layer with the same elements takes this, where those of the sparse one and
    # of its inputs have 8 bits; `dense_us` is that of the layer as it was.
    dense_elements_us: Optional[float] = None
    # A tuning database has both times.
    is_measured: bool = False
    # Nobody has measured the GPU: its rates are from a data sheet.
    is_estimated: bool = False

    @property
    def speedup(self) -> float:
        """How many times as fast as the dense layer the sparse one is."""
        return self.dense_us / self.sparse_us if self.sparse_us else float("inf")

    @property
    def copy_us(self) -> float:
        """The time of a dense copy of the weight (`NMLinear.dense_from`)."""
        own = self.dense_elements_us
        return self.dense_us if own is None else own

    def __str__(self) -> str:
        own = self.dense_elements_us
        middle = "" if own is None else f"{own:.1f} -> "
        known = " (measured)" if self.is_measured else ""
        known += " (estimated)" if self.is_estimated else ""
        return f"{self.dense_us:.1f} -> {middle}{self.sparse_us:.1f}{known}"


@dataclass(frozen=True)
class FewTokens:
    """Predicted times of few tokens in two forms of a weight, in microseconds.

    common_us:  in the form for all numbers of tokens.
    own_us:     in the form that is best for one token.
    """

    tokens: int
    common_us: float
    own_us: float

    @property
    def gain(self) -> float:
        """How many times as fast the second is."""
        return self.common_us / self.own_us if self.own_us else float("inf")

    def __str__(self) -> str:
        return f"{self.common_us:.1f} -> {self.own_us:.1f}"


def beside_wide(
    predictions: Sequence[Prediction], wide: Iterable[Tuple[int, float, float]]
) -> Tuple[Prediction, ...]:
    """Predictions of elements of 8 bits beside those of the layer as it was.

    wide:  (tokens, dense time, sparse time) of that.
    """
    dense = {tokens: time for tokens, time, _ in wide}
    return tuple(
        Prediction(one.tokens, dense[one.tokens], one.sparse_us, one.dense_us)
        for one in predictions
    )


@dataclass(frozen=True)
class Row:
    """One linear layer.

    name:            its name in the model; of a layer that has several, the first.
    shape:           (outputs, inputs).
    encoding:        text of its pattern; None where no config is for the layer.
    is_converted:    whether it is an NMLinear now.
    reason:          why not; "" for one that is.
    kept_magnitude:  the share of the sum of |w| that is kept, 0 to 1; None where
                     nothing was pruned.
    dense_bytes:     bytes of the weight before.
    packed_bytes:    bytes of the packed weight; None where there is none.
    predictions:     for each number of tokens of the config; empty without a predictor.
    dense_from:      from how many tokens on the layer multiplies by a dense copy of its
                     weight on a GPU; None: never.
    copy_bytes:      of that copy, which the first call of so many tokens makes.
    rounding:        how far elements of 8 bits with scales are from what is kept,
                     relative to its norm; None where it was not rounded.
    decode_to:       up to how many tokens the layer multiplies by a second form of its
                     weight on a GPU; None: it has one form.
    form_bytes:      of that form, which the first call of so few tokens makes.
    few_tokens:      predicted times of few tokens in the form for all numbers of tokens
                     and in their own: what the second form gains, or what is given up
                     without it; empty where both are one, or nothing is predicted.
    """

    name: str
    shape: Tuple[int, int]
    encoding: Optional[str]
    is_converted: bool
    reason: str
    kept_magnitude: Optional[float]
    dense_bytes: int
    packed_bytes: Optional[int]
    predictions: Tuple[Prediction, ...] = ()
    dense_from: Optional[int] = None
    copy_bytes: int = 0
    rounding: Optional[float] = None
    decode_to: Optional[int] = None
    form_bytes: int = 0
    few_tokens: Tuple[FewTokens, ...] = ()


@dataclass(frozen=True)
class Report:
    """All linear layers of a model, in the order of the model.

    rows:             one for each layer.
    unused_patterns:  patterns of the config that decided about no layer.
    note:             what is to be said of the predictions; "" if nothing.
    size:             how much of the model is sparse, and which large parameters of any
                      kind are not.
    """

    rows: Tuple[Row, ...]
    unused_patterns: Tuple[str, ...] = ()
    note: str = ""
    size: ModelSize = field(default_factory=ModelSize)

    @property
    def converted(self) -> List[str]:
        """Names of the layers that are sparse now."""
        return [row.name for row in self.rows if row.is_converted]

    @property
    def left_dense(self) -> Dict[str, str]:
        """Why each other layer is not, by its name."""
        return {row.name: row.reason for row in self.rows if not row.is_converted}

    def to_dict(self) -> Dict[str, Any]:
        """Plain data, for JSON."""
        rows = []
        for row in self.rows:
            plain = asdict(row)
            plain["shape"] = list(row.shape)
            plain["predictions"] = [asdict(one) for one in row.predictions]
            plain["few_tokens"] = [asdict(one) for one in row.few_tokens]
            rows.append(plain)
        return {
            "rows": rows,
            "unused_patterns": list(self.unused_patterns),
            "note": self.note,
            "size": self.size.to_dict(),
        }

    def __str__(self) -> str:
        counts = sorted({one.tokens for row in self.rows for one in row.predictions})
        head = ["layer", "outputs x inputs", "encoding", "kept", "KiB"]
        head += [f"us, {count} tokens" for count in counts] + ["result"]
        lines = [head] + [self._cells(row, counts) for row in self.rows]
        found = [self.size.headline, ""]
        found += [*table(lines), ""] if self.rows else []
        listed = {f"{row.name}.weight" for row in self.rows}
        found += self.size.lines(listed)
        return "\n".join(found + self._summary())

    @staticmethod
    def _cells(row: Row, counts: List[int]) -> List[str]:
        size = f"{row.dense_bytes / 1024:.0f}"
        if row.packed_bytes is not None:
            size += f" -> {row.packed_bytes / 1024:.0f}"
        kept = "" if row.kept_magnitude is None else f"{100 * row.kept_magnitude:.1f} %"
        known = {one.tokens: one for one in row.predictions}
        times = [str(known[count]) if count in known else "" for count in counts]
        shape = f"{row.shape[0]} x {row.shape[1]}"
        result = "sparse" if row.is_converted else f"dense: {row.reason}"
        if row.rounding is not None:
            result += f", rounding error {100 * row.rounding:.1f} %"
        if row.dense_from is not None:
            result += f", dense copy from {row.dense_from} tokens on"
        if row.decode_to is not None:
            result += f", second form to {row.decode_to} tokens"
        return [row.name, shape, row.encoding or "", kept, size, *times, result]

    def _summary(self) -> List[str]:
        done = [row for row in self.rows if row.is_converted]
        before = sum(row.dense_bytes for row in self.rows)
        after = sum(
            row.packed_bytes
            if row.is_converted and row.packed_bytes is not None
            else row.dense_bytes
            for row in self.rows
        )
        lines = [
            *describe_forms(done),
            f"{len(done)} of {len(self.rows)} layers are sparse; their weights "
            f"take {after / 2**20:.1f} MiB instead of {before / 2**20:.1f} MiB",
        ]
        copied = [row for row in self.rows if row.dense_from is not None]
        if copied:
            copies = sum(row.copy_bytes for row in copied) / 2**20
            lines.append(
                f"{len(copied)} of these multiply many tokens by dense copies, which "
                f"take {copies:.1f} MiB more on a GPU from the first such call on; "
                "dense_copies=False in the config makes none, and is slower"
            )
        each = [one for row in self.rows for one in row.predictions]
        if any(one.dense_elements_us is not None for one in each):
            lines.append(
                "of three times the first is that of the layer as it was, and the "
                "second that of a dense layer with the same elements of 8 bits"
            )
        if self.unused_patterns:
            lines.append(f"no layer for: {', '.join(self.unused_patterns)}")
        return lines + ([self.note] if self.note else [])


# Smaller gains than this are within what the model is wrong by, and are not told.
_LEAST_TOLD = 1.2


def describe_forms(rows: Sequence[Row]) -> List[str]:
    """What second forms of sparse layers gain and take, and what layers without one
    give up, in a line each."""
    lines = []
    held = [row for row in rows if row.decode_to is not None]
    if held:
        size = sum(row.form_bytes for row in held) / 2**20
        common, own = _one_token(held)
        lines.append(
            f"{len(held)} layers hold a second form of their weight for few tokens: "
            f"one token is predicted to take {own:.1f} us there instead of "
            f"{common:.1f}, for {size:.1f} MiB more on a GPU from the first such call"
            " on"
        )
    rest = [row for row in rows if row.decode_to is None and row.few_tokens]
    given_up = [row for row in rest if row.few_tokens[0].gain >= _LEAST_TOLD]
    if given_up:
        common, own = _one_token(given_up)
        lines.append(
            f"{len(given_up)} layers have one form of their weight for all numbers of "
            f"tokens: one token is predicted to take {common:.1f} us there, and "
            f"{own:.1f} in forms of its own, which decode_forms=True in the config "
            "holds, too"
        )
    return lines


def _one_token(rows: Sequence[Row]) -> Tuple[float, float]:
    """Microseconds of layers together, in the common forms and in their own."""
    known = [row.few_tokens[0] for row in rows if row.few_tokens]
    return sum(one.common_us for one in known), sum(one.own_us for one in known)


def make_report(
    model: nn.Module, rows: Sequence[Row], unused: Sequence[str] = (), note: str = ""
) -> Report:
    """The report of a model whose layers have been replaced as the rows say."""
    sparse: Dict[str, int] = {r.name: r.dense_bytes for r in rows if r.is_converted}
    size = measure(model, sparse, {row.name: row.reason for row in rows})
    return Report(tuple(rows), tuple(unused), note, size)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model card of a converted checkpoint: pattern, bytes, fidelity, loading."""

from __future__ import annotations

from collections import Counter
from typing import List, Optional, Sequence

from ..sparse_config import SparseConfig, encoding_text
from .report import ConvertReport, Outcome

CARD, SOURCE_CARD = "README.md", "README.source.md"
_HEAD = """---
library_name: transformers
tags:
- nm_sparse
- sparse
---

# Packed N:M-sparse weights

"""
_LOAD = """
## Load it

```python
import nm_sparse.torch  # registers the format with transformers
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("PATH OR NAME OF THIS FOLDER")
```

Another class of transformers does as well. Without the import, transformers does not
know the format, warns, and gives the packed layers random weights.
"""


def model_card(report: ConvertReport, sparse: SparseConfig) -> str:
    """The text of the card, in Markdown."""
    lines = [f"{report}.", ""]
    encodings = Counter(one.encoding for one in report.packed)
    for encoding, count in encodings.most_common():
        layers = "layer" if count == 1 else "layers"
        lines.append(f"* `{encoding}` in {count} {layers}")
    default = encoding_text(sparse.encoding)
    if default is not None and len(encodings) > 1:
        lines.append(f"* `{default}` is the pattern of layers that are not named")
    if report.weights is not None:
        lines += _quantized(report)
    lines += ["", "## Where it comes from", ""]
    texts = {"method": report.method, **sparse.provenance}
    lines += [f"* {key}: {text}" for key, text in texts.items()]
    text = _HEAD + "\n".join(lines) + "\n" + _LOAD
    text += "\n## What is kept of each layer\n\n"
    text += (
        "*kept* is the share of the sum of magnitudes, *error* the norm of what was "
    )
    text += "pruned relative to that of the weight"
    columns = ["kept", "error"]
    if report.weights is not None:
        columns.append("rounding")
        text += ", *rounding* how far elements of 8 bits are from what is kept, "
        text += "relative to its norm"
    text += ".\n\n" + _table(report.packed, columns) + "\n"
    dense = [one for one in report.outcomes if not one.is_packed]
    if dense:
        text += "\n## What stays dense\n\n" + _table(dense, ("reason",)) + "\n"
    return text


def _quantized(report: ConvertReport) -> List[str]:
    """What became of values and inputs."""
    scales = "for each output"
    if report.scales == "tensor":
        scales = "for each weight, the same for all of its outputs"
    values = f"* packed values are `{report.weights}`, with a scale {scales}"
    inputs = "* inputs of packed layers are multiplied as they are"
    if report.activations is not None:
        inputs = (
            f"* inputs of packed layers are rounded to `{report.activations}`, each "
            "token with a scale of its own"
        )
    return [f"{values}: those next to what is kept, without calibration", inputs]


def _table(rows: Sequence[Outcome], columns: Sequence[str]) -> str:
    lines = [
        "| weight | outputs x inputs | pattern | bytes | " + " | ".join(columns) + " |",
        "|---" * (4 + len(columns)) + "|",
    ]
    for one in rows:
        cells: List[Optional[str]] = [
            f"`{one.name}`",
            " x ".join(map(str, one.shape)),
            f"`{one.encoding}`" if one.encoding else "dense",
            str(one.bytes_after),
        ]
        for column in columns:
            value = getattr(one, column)
            cells.append(f"{value:.4f}" if isinstance(value, float) else value or "")
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)

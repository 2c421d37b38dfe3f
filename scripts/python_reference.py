#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference of the Python package, of its signatures and docstrings.

The sources are parsed, not imported: so the part on torch is written and compared on
machines without torch, too. Usage: python_reference.py PACKAGE prints the part of one
package; update_docs.py puts it into docs/Python.md.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Dict, List

import python_signatures as signatures

ROOT = Path(__file__).resolve().parent.parent
# The public names of each package, in the order of the page. Every name of its
# `__all__` belongs to one group.
GROUPS: Dict[str, Dict[str, str]] = {
    "nm_sparse": {
        "Prune and pack": "Encoding Level prune pattern_mask pack PackedTensor "
        "EncodingError",
        "Compile and call": "compile Program Function PreparedWeight LinearSpec "
        "emulate CompileError OperandError RuntimeFailure LibraryNotFoundError",
        "Compare patterns": "advise kept_importance kept_magnitude output_error",
        "Measure schedules": "tune Tuned find_tunable Tunable TunableProduct",
        "Files": "Checkpoint Weight Pattern read_packed write_packed CheckpointError",
        "Packed forms": "Packed packed_shapes index_dtype encode decode search_order "
        "pack_bitmap unpack_bitmap bitmap_shape BitmapShape innermost_weight "
        "pack_k_major unpack_k_major k_major_shape pack_free_bitmap "
        "unpack_free_bitmap pack_ragged FORMAT VERSIONS",
    },
    "nm_sparse.torch": {
        "Sparse models": "sparsify_ NMSparseConfig Report Row Prediction FewTokens "
        "to_dense_",
        "Patterns of layers": "advise choose sparsify_within_",
        "Layers": "NMLinear PackedWeight packed_linear prune_weight LinearSpec",
        "Elements of 8 bits": "quantize_tokens calibrate_inputs_",
        "Convolutions": "NMConv2d Geometry fold_batch_norm_",
        "Layers that are one operator": "fuse_ FuseReport Fusion GatedMLP HalvedMLP "
        "share_input_ shared_linear activate_inside_",
        "Weights as kernels read them": "store_for_kernels_ StoreReport StoredLayer",
        "Kernels for one number of tokens": "specialize_tokens",
        "Dense copies for many tokens": "use_dense_ DenseReport DenseLayer",
        "Second forms for few tokens": "use_decode_forms_ DecodeReport DecodeLayer",
        "Export": "export_mlir Exported ExportError to_importable Importable",
        "Checkpoints": "load_into load_compressed LoadReport convert_checkpoint "
        "Conversion",
        "Loaded by name": "convert_pretrained ConvertReport Outcome mark_pretrained",
    },
    "nm_sparse.torch.prune": {
        "Models and layers": "prune_ PruneConfig Calibration PruneReport LayerReport "
        "prune_linear_ pack_ ModelSize DenseParameter",
        "Training with fixed masks": "hold_masks HeldMasks distill DistillReport",
        "Parts": "Score ScoreFunction element_scores magnitude wanda surgeon "
        "pattern_mask output_order Statistics fit Fit",
    },
}
# `name:  text`, or several names with one text.
_ITEM = re.compile(r"(\w+(?:, \w+)*):(?:(\s+)(\S.*))?$")
# Code stays as it is; of other text this means something in Markdown.
_MARKUP = re.compile(r"`[^`]*`|[*<]")


def escaped(text: str) -> str:
    """Prose as Markdown: what has a meaning there is escaped, pages are links."""

    def replace(match: re.Match) -> str:
        return match[0] if match[0][0] == "`" else "\\" + match[0]

    text = _MARKUP.sub(replace, text)
    return re.sub(r"\bdocs/(\w+\.md)", r"[\1](\1)", text)


def items(lines: List[str]) -> List[List[str]]:
    """The [names, text...] that a paragraph lists, or nothing where it is prose."""
    found: List[List[str]] = []
    for line in lines:
        match = _ITEM.match(line)
        if match:
            found.append([match[1], *([match[3]] if match[3] else [])])
        elif line.startswith("  ") and found:
            found[-1].append(line.strip())
        else:
            return []
    # One line with a colon in it is a sentence.
    first = _ITEM.match(lines[0])
    is_list = len(found) > 1 or (first is not None and first[2] != " ")
    return found if is_list else []


def markdown(docstring: str) -> str:
    """A docstring: prose, lists of arguments, and examples."""
    blocks = []
    for paragraph in docstring.split("\n\n"):
        lines = paragraph.splitlines()
        if lines[0].startswith(">>>"):
            shown = paragraph.replace("  # doctest: +SKIP", "")
            blocks.append(f"```python\n{shown}\n```")
        elif lines[0].startswith("    "):
            shown = "\n".join(line[4:] for line in lines)
            blocks.append(f"```\n{shown}\n```")
        elif listed := items(lines):
            blocks.append("\n".join(_item(*one) for one in listed))
        else:
            blocks.append(escaped(paragraph))
    return "\n\n".join(blocks)


def _item(names: str, *text: str) -> str:
    named = ", ".join(f"`{name}`" for name in names.split(", "))
    return f"* {named}: {escaped(' '.join(text))}"


def entry(package: str, name: str) -> str:
    """A heading, the signature, what it does, and the members of a class."""
    node = signatures.find(signatures.file_of(ROOT / "python", package), name)
    if isinstance(node, ast.Assign):
        return f"#### {name}\n\n```python\n{ast.unparse(node)}\n```"
    is_class = isinstance(node, ast.ClassDef)
    text = signatures.constructor(node) if is_class else signatures.signature(node)
    docstring = ast.get_docstring(node)
    if not docstring:
        raise SystemExit(f"python_reference.py: {package}.{name} has no docstring")
    parts = [f"#### {name}", f"```python\n{text}\n```", markdown(docstring)]
    for line, said in signatures.members(node) if is_class else ():
        parts.append(f"**`{line}`**" + (f"\n\n{markdown(said)}" if said else ""))
    return "\n\n".join(parts)


def page(package: str) -> str:
    """The reference of a package, by groups."""
    groups = {title: names.split() for title, names in GROUPS[package].items()}
    listed = sorted(name for names in groups.values() for name in names)
    public = sorted(
        signatures.public_names(signatures.file_of(ROOT / "python", package))
    )
    if listed != public:
        odd = ", ".join(sorted(set(listed) ^ set(public))) or "a name twice"
        raise SystemExit(
            f"python_reference.py: {odd}: GROUPS and __all__ of {package} differ"
        )
    parts = []
    for title, names in groups.items():
        parts.append(f"### {title}")
        parts += [entry(package, name) for name in names]
    return "\n\n".join(parts)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in GROUPS:
        sys.exit(f"usage: python_reference.py {' | '.join(GROUPS)}")
    print(page(sys.argv[1]))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert_model`: a folder that transformers loads by its name.

All is decided before the first file is written. Files lie in a folder beside the target
until the last one is whole; a run that was stopped goes on with those that are there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ...encoding import Encoding, EncodingError
from ..checkpoint import Checkpoint
from ..contents import bar
from ..packed_file import EXTRA, extra_state
from ..sparse_config import encoding_text
from ..tensor_file import CheckpointError
from .actions import Action, Structure
from .folder import WorkFolder, finish_folder
from .options import Options
from .packing import Fidelity, obeys, pack_rows
from .plan import Planner
from .report import ConvertReport, Outcome
from .rounding import Rounding, RoundingError
from .rows import WeightRows, cast_rows, packed_components, scale_component
from .shard_writer import ShardWriter, split_shards

SHARD = 5_000_000_000  # bytes of a file of tensors


def convert_model(
    checkpoint: Checkpoint,
    target: Path,
    options: Options,
    structure: Structure,
    *,
    largest: int = SHARD,
    force: bool = False,
    progress: bool = True,
    provenance: Optional[Mapping[str, str]] = None,
) -> ConvertReport:
    """Writes the folder of a model whose linear layers are packed.

    checkpoint:  of a dense model, or one in a layout of docs/Checkpoints.md.
    target:      a folder that is not there or empty, or, with `force`, that of a
                 checkpoint, which it replaces at the end.
    options:     which layers get which pattern.
    structure:   which weights layers have that can be packed.
    largest:     bytes of a file of tensors; what is larger is alone in one.
    provenance:  free text by key, for `quantization_config` and the model card.

    Memory holds one packed layer and a part of its dense weight; a shuffled pattern
    needs all of that. Raises CheckpointError before anything is written where what is
    asked for is not possible, or the result could not be loaded; and OSError.
    """
    planner = Planner(checkpoint, options, structure)
    actions = planner.plan()
    if options.prune == "none":
        actions = _check_patterns(checkpoint, planner, actions, progress)
    if not any(action.encoding for action in actions):
        dense = sorted(actions, key=lambda one: one.name not in structure.linear)
        reasons = [f"{one.name}: {one.reason}" for one in dense if one.reason]
        raise CheckpointError(
            f"{checkpoint.path}: none of its matrices can be packed: legal is at least "
            f"one; {reasons[0] if reasons else 'there are none'}"
        )
    shards = split_shards([(one, one.entries) for one in actions], largest)
    work = WorkFolder(target, checkpoint, force)
    work.begin(_fingerprint(checkpoint, options, shards))
    todo = [one for shard in shards for one in shard]
    shown = iter(bar(todo, "tensors", progress))
    outcomes: List[Outcome] = []
    for number, shard in enumerate(shards):
        path = work.shard(number, len(shards))
        rows = work.done(path)
        if rows is not None:
            for _ in shard:
                next(shown)
            outcomes += [Outcome(**row) for row in rows]
            continue
        entries = {n: e for one in shard for n, e in one.entries.items()}
        own = []
        with ShardWriter(path, entries, {"format": "pt"}) as writer:
            for _ in shard:
                own += _write(checkpoint, next(shown), options, writer)
            writer.finish()
        work.add(path, own)
        outcomes += own
    for _ in shown:  # which ends the bar
        pass
    report = ConvertReport(
        tuple(outcomes),
        tuple(work.shard(at, len(shards)).name for at in range(len(shards))),
        work.resumed,
        structure.is_known,
        _bytes_before(checkpoint),
        sum(one.size for one in actions),
        options.method,
        options.weights,
        None if options.weights is None else options.scales,
        options.rounded_inputs,
    )
    texts = dict(provenance or {})
    finish_folder(work, checkpoint, options, actions, report, structure, texts)
    return report


def _check_patterns(
    checkpoint: Checkpoint,
    planner: Planner,
    actions: Sequence[Action],
    progress: bool,
) -> List[Action]:
    """Leaves dense what has not its pattern."""
    checked = []
    for action in bar(actions, "weights checked", progress):
        if action.kind == "pack" and action.encoding is not None:
            rows = WeightRows(checkpoint, action.name, action.is_exact)
            dtype = action.elements if action.is_exact else action.dtype
            reason = obeys(rows, action.encoding, str(dtype))
            if reason:
                weight = checkpoint.weights[action.name]
                action = planner.dense(action.item, weight, reason)
        checked.append(action)
    return checked


def _write(
    checkpoint: Checkpoint, action: Action, options: Options, writer: ShardWriter
) -> List[Outcome]:
    """Writes what an action makes; its outcome, if it is of a matrix."""
    fidelity = rounding = None
    item, e = action.item, action.encoding
    if action.kind == "copy":
        writer.copy(item.name, item.file.tensors[item.parts[0]], item.file.path)
    elif action.kind == "pack" and e is not None:
        components, fidelity = _pack(checkpoint, action, e, options)
        _write_packed(writer, action, components)
        rounding = fidelity.rounding
    elif action.kind == "keep":
        components, rounding = _keep(checkpoint, action, options)
        _write_packed(writer, action, components)
    else:
        (name,) = action.entries
        for start, array in cast_rows(checkpoint, action):
            writer.add(name, array, start)
    if item.kind == "other":
        return []
    names = item.parts
    before = sum(checkpoint.file_of(name).tensors[name].size for name in names)
    is_rounded = rounding is not None and action.elements is not None
    return [
        Outcome(
            action.name, action.shape, action.dtype, encoding_text(e), action.reason,
            None if fidelity is None else fidelity.kept,
            None if fidelity is None else fidelity.error,
            action.kind == "keep", before, action.size,
            None if action.elements is None else options.weights,
            rounding.relative if is_rounded else None,
        )
    ]  # fmt: skip


def _pack(
    checkpoint: Checkpoint, action: Action, e: Encoding, options: Options
) -> Tuple[Dict[str, Any], Fidelity]:
    """The components of a dense weight, and what is kept of it."""
    rows = WeightRows(checkpoint, action.name, action.is_exact)
    if action.is_exact:
        found, fidelity = pack_rows(rows, e, str(action.elements), is_pruned=False)
        return {**found, **scale_component(checkpoint, action)}, fidelity
    rounding = None if action.elements is None else _rounding(action, options)
    return pack_rows(rows, e, action.dtype, options.prune == "magnitude", rounding)


def _keep(
    checkpoint: Checkpoint, action: Action, options: Options
) -> Tuple[Dict[str, Any], RoundingError]:
    """The components of a weight that is packed already, and how far they are off."""
    found = packed_components(checkpoint, action)
    if action.elements is None or action.is_exact:
        return found, RoundingError()
    try:
        return _rounding(action, options).apply(found, action.shape[0])
    except EncodingError as error:
        raise CheckpointError(
            f"{checkpoint.path}: weight {action.name!r}: {error}"
        ) from None


def _rounding(action: Action, options: Options) -> Rounding:
    return Rounding(str(action.elements), action.dtype, options.scales)


def _write_packed(
    writer: ShardWriter, action: Action, components: Mapping[str, Any]
) -> None:
    assert action.encoding is not None
    prefix = action.prefix
    for part, array in components.items():
        writer.add(prefix + part, array)
    writer.add(prefix + EXTRA, extra_state(action.encoding, action.shape))


def _fingerprint(
    checkpoint: Checkpoint, options: Options, shards: Sequence[Sequence[Action]]
) -> Any:
    """What a run must have in common with one whose files it goes on with."""
    sources = [
        [path.name, path.stat().st_size, path.stat().st_mtime_ns]
        for path in checkpoint.files
    ]
    plan = [
        [[one.name, one.kind, one.dtype, encoding_text(one.encoding)] for one in shard]
        for shard in shards
    ]
    asked = [options.prune, options.weights, options.scales, options.rounded_inputs]
    return {"sources": sources, "options": asked, "plan": plan}


def _bytes_before(checkpoint: Checkpoint) -> int:
    files = checkpoint.files.values()
    return sum(tensor.size for file in files for tensor in file.tensors.values())

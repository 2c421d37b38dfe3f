# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a schedule that an older compiler reads is written for this one.

scripts/compare_ptx.py compiles the same layers with two builds, and
bench/results holds files of several ages. Where the text form of
`#nm_tile.schedule` changed between them, `respell_module` makes the newer form
of the older one. An attribute that has the new form already comes back as it is,
so that lists of either age can be used.

Schedules were attributes of the dialect nm_sparse, `#nm_sparse.schedule`, before
they became those of nm_tile, and `nm_sparse.schedule` on an operation is
`nm_sparse.config`. The oldest form was flat: a kind (`simt`, `mma`, `wgmma`), then
`name = value` separated by commas, where a value is a word, a number or a list of
numbers. Its tile counted the windows of a K step, the present one counts kept rows.
"""

import re

START = "#nm_tile.schedule<"
OLD_DIALECT = re.compile(
    r"#nm_sparse\.(schedule|transfers|sequential|async_groups|ring|flat|persistent|"
    r"(?:panel_)?dot|simt|(?:wg)?mma(?:_expand|_sp)?|immediate)\b"
)
ENCODING = re.compile(r"#nm_sparse\.encoding<(\d+):\d+(?:, block = \[(\d+), \d+\])?")


def fields(schedule):
    """The kind, and {name: text of the value}, of a schedule in the flat form."""
    kind, _, rest = schedule[len(START) : -1].partition(",")
    named = re.findall(r"(\w+) = (\[[^\]]*\]|\w+)", rest)
    return kind.strip(), dict(named)


def is_flat(schedule):
    kind, named = fields(schedule)
    return kind in ("simt", "mma", "wgmma") and "operands" in named


def respell(schedule, window_rows):
    """The present form of `schedule`, whose windows keep `window_rows` rows."""
    if not is_flat(schedule):
        return schedule
    kind, named = fields(schedule)
    tokens, outputs, windows = (int(v) for v in re.findall(r"\d+", named["tile"]))
    x = {"packed": "gather", "unpacked": "copy"}[named["operands"]]
    values = "bulk" if named.get("tma") == "true" else "copy"
    pipeline = f"async_groups<stages = {named['stages']}>"
    if named.get("producers", "0") != "0":
        pipeline = f"ring<stages = {named['stages']}, producers = {named['producers']}>"
    grid = "persistent" if named.get("persistent") == "true" else "flat"
    if named.get("stream_k") == "true":
        grid += "<stream_k = true>"
    elif named["split_k"] != "1":
        grid += f"<split_k = {named['split_k']}>"
    return (
        f"{START}tile = [{tokens}, {outputs}, {windows * window_rows}], "
        f"product = {kind}<warps = {named['warps']}>, "
        f"transfers = {{x = {x}, values = {values}, index = {named['index']}}}, "
        f"pipeline = {pipeline}, grid = {grid}>"
    )


def end_of(text, start):
    """Where the attribute that begins at `start` ends: behind the `>` that
    closes its first `<`."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] == "<":
            depth += 1
        elif text[at] == ">" and text[at - 1] != "-":
            depth -= 1
            if depth == 0:
                return at + 1
    raise ValueError(f"no '>' closes {text[start : start + 60]!r}")


def window_rows(text):
    """Kept rows of a window of the first encoding in `text`."""
    found = ENCODING.search(text)
    return int(found[1]) * int(found[2] or 1) if found else 1


def rename_dialect(text):
    """Schedules of nm_sparse as those of nm_tile."""
    text = OLD_DIALECT.sub(r"#nm_tile.\1", text)
    return re.sub(r"\bnm_sparse\.schedule\b", "nm_sparse.config", text)


def respell_module(text, respell=respell):
    """MLIR text with each of its schedules in the present form, for the windows
    of its first encoding."""
    text = rename_dialect(text)
    parts, at, rows = [], 0, window_rows(text)
    while (start := text.find(START, at)) >= 0:
        end = end_of(text, start)
        parts += [text[at:start], respell(text[start:end], rows)]
        at = end
    return "".join(parts) + text[at:]

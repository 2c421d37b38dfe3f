# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a schedule that an older compiler reads is written for this one.

scripts/compare_ptx.py compiles the same layers with two builds. Where the text
form of `#nm_sparse.schedule` changed between them, the layers are listed in the
older form (`--layers-of COMMIT`), and the newer build gets what `respell` makes
of each schedule.

The commit that changes the text form fills in `respell`, and nothing else here:
it takes one attribute, from `#nm_sparse.schedule<` to its closing `>`, in the old
form, and returns it in the new one. An attribute that has the new form already
must come back as it is, so that lists of either age can be used. The old form is
flat: a family (`simt`, `mma`, `wgmma`), then `name = value` separated by commas,
where a value is a word, a number or a list of numbers; `fields` reads it.
"""

import re

START = "#nm_sparse.schedule<"


def fields(schedule):
    """The family, and {name: text of the value}, of a schedule in the flat form."""
    family, _, rest = schedule[len(START) : -1].partition(",")
    named = re.findall(r"(\w+) = (\[[^\]]*\]|\w+)", rest)
    return family.strip(), dict(named)


def respell(schedule):
    """The same schedule as the newer build reads it: both read the same today."""
    return schedule


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


def respell_module(text, respell=respell):
    """MLIR text with each of its schedules in the newer form."""
    parts, at = [], 0
    while (start := text.find(START, at)) >= 0:
        end = end_of(text, start)
        parts += [text[at:start], respell(text[start:end])]
        at = end
    return "".join(parts) + text[at:]

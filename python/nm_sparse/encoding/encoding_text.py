# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encodings as text: what the MLIR attribute says, and shorter forms of it.

    TEXT   = "#nm_sparse.encoding<" BODY ">" | BODY
    BODY   = LEVELS ("," "block" "=" BLOCK | "," "dim" "=" d | "," "order" "=" o)*
    LEVELS = KEPT | KEPT KEPT | "[" LEVEL "]" ("," "[" LEVEL "]")*
    LEVEL  = KEPT ("," "block" "=" BLOCK)?
    KEPT   = n ":" m | "free"
    BLOCK  = "[" bk "," bn "]"

Levels in brackets have blocks of their own. The form without brackets, "4:10 2:4", is
not one of MLIR's: its block is that of the outer level. This file knows the grammar
alone; what the numbers may be, `Encoding` checks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional, Sequence, Set, Tuple

PREFIX = "#nm_sparse.encoding"
_TOKEN = re.compile(r"\s*(?:[A-Za-z_]\w*|-?[0-9]+|[\[\]<>,:=])")
_FORMS = (
    "'8:32', 'free', '4:10 2:4', '8:32, block = [1, 128]' or the text of the attribute "
    f"{PREFIX}"
)


@dataclass
class LevelText:
    """n and m, 0 for `free`, and the block where one is said."""

    n: int
    m: int
    block: Optional[Tuple[int, int]] = None


@dataclass
class EncodingText:
    """What a text says, level by level; None where it does not say it."""

    levels: List[LevelText]
    dim: Optional[int] = None
    order: Optional[str] = None


class _Reader:
    """The tokens of a text, one after the other; without the prefix, if it has it."""

    def __init__(self, text: str) -> None:
        self.text, at = text, 0
        self.tokens: List[str] = []
        stripped = text.strip()
        self.has_prefix = stripped.startswith(PREFIX)
        if self.has_prefix:
            stripped = stripped[len(PREFIX) :]
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if match is None:
                self.fail(f"has {stripped[at:].strip()[0]!r}")
            self.tokens.append(match.group().strip())
            at = match.end()

    def fail(self, found: str) -> None:
        raise ValueError(f"encoding {self.text!r} {found}: legal is {_FORMS}")

    def peek(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def shown(self) -> str:
        """The next token, as an error names it."""
        return repr(self.peek()) if self.tokens else "its end"

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.tokens.pop(0)
        return True

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self.fail(f"has {self.shown()} where {token!r} belongs")

    def integer(self) -> int:
        if not re.fullmatch(r"-?[0-9]+", self.peek()):
            self.fail(f"has {self.shown()} where a number belongs")
        return int(self.tokens.pop(0))


def _kept(reader: _Reader) -> LevelText:
    if reader.accept("free"):
        return LevelText(0, 0)
    n = reader.integer()
    reader.expect(":")
    level = LevelText(n, reader.integer())
    if level.n < 1:
        reader.fail(f"has n = {level.n}, which is below 1; 'free' keeps any number")
    return level


def _block(reader: _Reader) -> Tuple[int, int]:
    reader.expect("[")
    rows = reader.integer()
    reader.expect(",")
    block = (rows, reader.integer())
    reader.expect("]")
    return block


def _bracketed(reader: _Reader) -> LevelText:
    """The rest of a level behind its `[`."""
    level = _kept(reader)
    if reader.accept(","):
        reader.expect("block")
        reader.expect("=")
        level.block = _block(reader)
    reader.expect("]")
    return level


def _levels(reader: _Reader) -> Tuple[List[LevelText], bool]:
    """The levels, and whether they stand in brackets."""
    if not reader.accept("["):
        levels = [_kept(reader)]
        while reader.tokens and reader.peek() not in ",>":
            levels.append(_kept(reader))
        return levels, False
    levels = [_bracketed(reader)]
    while reader.tokens[:2] == [",", "["]:
        del reader.tokens[:2]
        levels.append(_bracketed(reader))
    return levels, True


def parse(text: str) -> EncodingText:
    """What `text` says. Raises ValueError with one sentence when it says nothing of
    the grammar above."""
    reader = _Reader(text)
    if reader.has_prefix:
        reader.expect("<")
    levels, in_brackets = _levels(reader)
    if len(levels) > 2:
        reader.fail(f"has {len(levels)} levels, of which there may be two")
    if len(levels) == 2 and 0 in (levels[0].m, levels[1].m):
        reader.fail("has two levels, of which one is free; both must be n:m")
    result = EncodingText(levels)
    said: Set[str] = set()
    keys = ("dim", "order") if in_brackets else ("block", "dim", "order")
    while reader.accept(","):
        key = reader.peek()
        if key not in keys or key in said:
            legal = f"where one of {', '.join(keys)} belongs"
            reader.fail(f"has {reader.shown()} {'twice' if key in said else legal}")
        reader.tokens.pop(0)
        reader.expect("=")
        said.add(key)
        if key == "block":
            levels[0].block = _block(reader)
        elif key == "dim":
            result.dim = reader.integer()
        else:
            result.order = reader.tokens.pop(0) if reader.tokens else ""
    if reader.has_prefix:
        reader.expect(">")
    if reader.tokens:
        reader.fail(f"has {reader.peek()!r} behind its end")
    return result


def body(
    levels: Sequence[Tuple[int, int, Tuple[int, int]]], dim: int, order: str
) -> str:
    """What MLIR prints between `<` and `>` of levels (n, m, block), m = 0 for `free`;
    what is a default is left out."""
    texts = []
    for n, m, (bk, bn) in levels:
        block = "" if (bk, bn) == (1, 1) else f", block = [{bk}, {bn}]"
        texts.append((f"{n}:{m}" if m else "free") + block)
    if len(texts) > 1:
        texts = [f"[{text}]" for text in texts]
    if dim:
        texts.append(f"dim = {dim}")
    if order != "identity":
        texts.append(f"order = {order}")
    return ", ".join(texts)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/Glossary.md has every operation, attribute and type of the dialects, and
names none that does not exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/Glossary.md"
OPERATION = re.compile(r"\bdef NM(Sparse|Tile)_\w+\s*:\s*NM\w+Op<\s*\"(\w+)\"")
NAMED = re.compile(
    r"\bdef NM(Sparse|Tile)_\w+\s*:\s*NM(?:Sparse|Tile)_(?:Attr|Type)"
    r"<\s*\"\w+\",\s*\"(\w+)\""
)
# Discardable attributes, which no definition names.
DISCARDABLE = {"nm_sparse.embed"}


def definitions():
    """What the dialects define: operations with the prefix of their dialect, and
    attributes and types by their mnemonics alone."""
    operations, mnemonics = set(), set()
    folders = (ROOT / "include/nm_sparse", ROOT / "lib")
    for path in (path for folder in folders for path in folder.rglob("*.td")):
        text = path.read_text("utf-8")
        for dialect, name in OPERATION.findall(text):
            operations.add(f"nm_{dialect.lower()}.{name}")
        mnemonics.update(name for _, name in NAMED.findall(text))
    return operations, mnemonics


def words(text):
    """The text in code quotes of the first cells of all rows."""
    rows = re.findall(r"^\| ([^|]*) \|", text, re.M)
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row)}


def missing(text):
    operations, mnemonics = definitions()
    return sorted((operations | mnemonics) - words(text))


def test_definitions_are_found():
    operations, mnemonics = definitions()
    assert {"nm_sparse.matmul", "nm_tile.matmul", "nm_tile.k_loop"} <= operations
    assert {"encoding", "ring", "flat", "wgmma_sp", "ring_position"} <= mnemonics


def test_every_definition_has_an_entry():
    assert missing(PAGE.read_text("utf-8")) == []


def test_every_operation_exists():
    operations, mnemonics = definitions()
    prefixed = set(re.findall(r"`(nm_(?:sparse|tile)\.\w+)`", PAGE.read_text("utf-8")))
    assert prefixed <= operations | DISCARDABLE


def test_rows_are_in_order_and_occur_once():
    seen = set()
    for section in PAGE.read_text("utf-8").split("\n## ")[1:]:
        rows = re.findall(r"^\| ([^|]+?) \|", section, re.M)[1:]
        rows = [row for row in rows if row != "---"]
        keys = [re.sub(r"[`_-]", "", row).replace(":", " ").lower() for row in rows]
        assert keys == sorted(keys), section.splitlines()[0]
        assert not seen & set(keys)
        seen |= set(keys)


def test_every_row_says_where():
    rows = re.findall(r"^\|.*\|$", PAGE.read_text("utf-8"), re.M)
    rows = [row for row in rows if not row.startswith(("| word |", "|---|"))]
    assert len(rows) > 80
    for row in rows:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        assert len(cells) == 4 and cells[2].endswith("."), row
        assert re.fullmatch(r"\[[^]]+\]\([^)]+\)", cells[3]), row


def test_a_missing_entry_is_found():
    text = PAGE.read_text("utf-8").replace("`nm_tile.k_loop`", "the loop")
    assert missing(text) == ["nm_tile.k_loop"]

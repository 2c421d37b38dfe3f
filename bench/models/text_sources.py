# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""English prose of the files that packages ship: documentation, manual pages, strings
that document Python, comments of C headers.

`paragraphs_of` reads one file. It returns paragraphs in plain text, each without line
breaks, and leaves out what is no prose: code, tables, data.
"""

from __future__ import annotations

import gzip
import html
import lzma
import pathlib
import re
import zlib
from typing import Callable, Dict, List, Optional

# Files above this are data more often than text.
LARGEST = 4 << 20  # bytes
LEAST_LETTERS = 40
BLANK_LINES = re.compile(r"\n[ \t]*\n")
TRIPLE = re.compile(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'', re.DOTALL)
BLOCK_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
LINE_COMMENTS = re.compile(r"(?:^[ \t]*//[^\n]*\n){2,}", re.MULTILINE)
POD = re.compile(r"^=(?:head\d|pod|item|over|begin)\b.*?(?:^=cut\b|\Z)", re.M | re.S)
TAGS = re.compile(r"<(script|style|pre)\b.*?</\1>|<[^>]*>", re.DOTALL | re.I)
BREAKING_TAGS = re.compile(r"</?(?:p|div|li|h\d|tr|dd|dt|table|ul|ol)\b[^>]*>", re.I)
# Folders of manual pages in other languages, such as man/de/man1.
OTHER_LANGUAGE = re.compile(r"/man/(?!man)[^/]+/|/locales?/|/(?:de|fr|ja|es|pl|it)/")
MAN_PAGE = re.compile(r"\.[1-8][a-z]*$")
# Files whose names have no telling suffix.
TEXT_NAMES = re.compile(
    r"^(?:readme|news|changes|changelog|copyright|faq|todo|authors|install|history|"
    r"notes|howto|overview|tutorial|guide|manual)",
    re.I,
)

FONT_MACROS = {"B", "I", "R", "BR", "BI", "IR", "RB", "RI", "IB", "SM", "SB"}
BREAKING_MACROS = {"PP", "P", "LP", "TP", "IP", "HP", "sp", "br", "Pp", "It", "TQ"}
HEADINGS = {"SH", "SS", "Sh", "Ss"}
ROFF_NAMES = {
    "aq": "'", "dq": '"', "cq": "'", "oq": "'", "lq": '"', "rq": '"', "em": "-",
    "en": "-", "hy": "-", "bu": "*", "co": "(c)", "rs": "\\", "ti": "~", "ha": "^",
    "mi": "-", "ga": "`", "lt": "<", "gt": ">",
}  # fmt: skip


def decoded(path: pathlib.Path) -> Optional[str]:
    """The text of a file, unpacked; None where it is too large, binary, or cannot be
    read."""
    try:
        if path.stat().st_size > LARGEST:
            return None
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        elif path.suffix == ".xz":
            data = lzma.decompress(data)
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return None
    if len(data) > 4 * LARGEST or b"\0" in data[:4096]:
        return None
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _python(text: str) -> str:
    return "\n\n".join(a or b for a, b in TRIPLE.findall(text))


def _c_family(text: str) -> str:
    blocks = [
        re.sub(r"^[ \t]*\*+", "", b, flags=re.M) for b in BLOCK_COMMENT.findall(text)
    ]
    lines = [
        re.sub(r"^[ \t]*/+[!<]?", "", run, flags=re.M)
        for run in LINE_COMMENTS.findall(text)
    ]
    return "\n\n".join(blocks + lines)


def _perl(text: str) -> str:
    """The plain old documentation of a Perl file."""
    found = "\n\n".join(match.group(0) for match in POD.finditer(text))
    found = re.sub(r"^=\w+[ \t]*", "\n", found, flags=re.M)
    for _ in range(2):  # codes nest
        found = re.sub(r"[A-Z]<+\s?([^<>]*?)\s?>+", r"\1", found)
    return found


def _html(text: str) -> str:
    text = BREAKING_TAGS.sub("\n\n", text)
    return html.unescape(TAGS.sub(" ", text))


def _unescaped(line: str) -> str:
    line = re.sub(r"\\f(?:\[[^]]*\]|\(..|.)", "", line)
    line = re.sub(r"\\s[-+]?\d", "", line)
    line = re.sub(r"\\\((..)", lambda m: ROFF_NAMES.get(m.group(1), " "), line)
    line = re.sub(r"\\\[([^]]*)\]", lambda m: ROFF_NAMES.get(m.group(1), " "), line)
    line = re.sub(r"\\\*(?:\(..|\[[^]]*\]|.)", " ", line)
    line = line.replace("\\-", "-").replace("\\e", "\\").replace("\\ ", " ")
    return re.sub(r"\\[&|^/,:%c~'`]", "", line)


def _roff(text: str) -> str:
    """A manual page without its macros."""
    lines: List[str] = []
    for line in text.split("\n"):
        if line[:1] not in (".", "'"):
            lines.append(_unescaped(line))
            continue
        words = line[1:].split(None, 1)
        macro, rest = (words + ["", ""])[:2]
        if macro.startswith('\\"'):
            continue
        rest = _unescaped(rest).replace('"', "").strip()
        if macro in FONT_MACROS:
            lines.append(rest)
        elif macro in HEADINGS or macro in BREAKING_MACROS:
            lines.append("")
            if macro == "It" and rest:
                lines.append(rest)
    return "\n".join(lines)


def _info(text: str) -> str:
    """An Info file without its menus and indices."""
    parts = text.split("\x1f")
    return "\n\n".join(part for part in parts if "* Menu:" not in part[:4000])


def _rst(text: str) -> str:
    text = re.sub(r"^[=~^#*\-`\"'.+]{3,}\s*$", "", text, flags=re.M)
    text = re.sub(r":[\w:]+:`~?([^`<]*)(?:<[^`]*)?`", r"\1", text)
    return re.sub(r"^\s*\.\. .*$", "", text, flags=re.M)


def _plain(text: str) -> str:
    return text


BY_SUFFIX: Dict[str, Callable[[str], str]] = {
    ".py": _python, ".pyi": _python,
    ".h": _c_family, ".hpp": _c_family, ".hh": _c_family, ".td": _c_family,
    ".cuh": _c_family, ".def": _c_family, ".inl": _c_family,
    ".pod": _perl, ".pm": _perl, ".pl": _perl,
    ".html": _html, ".htm": _html, ".xhtml": _html,
    ".info": _info, ".rst": _rst, ".md": _rst, ".txt": _plain,
}  # fmt: skip


def reader_of(path: pathlib.Path) -> Optional[Callable[[str], str]]:
    """What takes the prose out of a file; None where it is not one to read."""
    if OTHER_LANGUAGE.search(str(path)):
        return None
    name = path.name
    for packed in (".gz", ".xz"):
        name = name[: -len(packed)] if name.endswith(packed) else name
    suffix = pathlib.PurePath(name).suffix.lower()
    if suffix in BY_SUFFIX:
        return BY_SUFFIX[suffix]
    if "/man/" in str(path) and MAN_PAGE.search(name):
        return _roff
    if re.search(r"\.info-\d+$", name):
        return _info
    return _plain if TEXT_NAMES.match(name) else None


def is_prose(paragraph: str) -> bool:
    """Letters and blanks make up most of it, and words have the length of words."""
    letters = sum(map(str.isalpha, paragraph))
    if (
        letters < LEAST_LETTERS
        or not paragraph.isascii()
        and (len(paragraph.encode("ascii", "ignore")) < 0.97 * len(paragraph))
    ):
        return False
    blanks = paragraph.count(" ")
    return letters + blanks >= 0.8 * len(paragraph) and letters <= 9 * (blanks + 1)


def paragraphs_of(path: pathlib.Path) -> List[str]:
    """The paragraphs of prose of a file, in its order; none where it has none."""
    reader = reader_of(path)
    text = decoded(path) if reader else None
    if reader is None or text is None:
        return []
    found = (" ".join(part.split()) for part in BLANK_LINES.split(reader(text)))
    return [paragraph for paragraph in found if is_prose(paragraph)]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the documentation points at exists: links, make targets, scripts."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "python/**/*.md", "integrations/**/*.md")
    for page in ROOT.glob(pattern)
    if not any(part.startswith(".") for part in page.relative_to(ROOT).parts)
)


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchors(page):
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ +(.*)$", without_code(page.read_text("utf-8")), re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page):
    text = without_code(page.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}, which does not exist"
        if anchor and linked.suffix == ".md":
            assert anchor in anchors(linked), f"{page.name}: no heading for {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_make_targets(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for name in re.findall(r"(?:`|^)make ([a-z]+)", page.read_text("utf-8"), re.M):
        assert name in targets, f"{page.name} names `make {name}`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files(page):
    """A path in code quotes that starts with a folder of ours must exist."""
    text = without_code(page.read_text("utf-8"))
    folders = "docs|examples|scripts|python|cmake|tools|bench|integrations|unittests"
    for path in re.findall(rf"`((?:{folders})/[\w./-]+)`", text):
        assert (ROOT / path).exists(), f"{page.name} names {path}"

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the documentation points at exists: links, make targets, scripts."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import python_reference  # noqa: E402

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_sources(page):
    """A C++ or TableGen file in code quotes exists, whichever folder it is in."""
    text = without_code(page.read_text("utf-8"))
    known = {
        path.name
        for folder in ("cmake", "lib", "include", "test", "unittests", "tools")
        for path in (ROOT / folder).rglob("*.*")
    }
    for name in re.findall(r"`(?:[\w-]+/)*(\w+\.(?:cpp|h|td))`", text):
        assert name in known | {"cuda.h"}, f"{page.name} names {name}"


# Attributes whose descriptions have a row for each field.
FIELDS = [
    *(ROOT / "lib/Products").glob("*/*.td"),
    ROOT / "include/nm_sparse/Dialect/NMTile/IR/Schedule.td",
]


def attributes():
    """(name, body) of the attributes of schedules."""
    for path in FIELDS:
        for body in path.read_text("utf-8").split("\ndef ")[1:]:
            if found := re.match(r"NMTile_(\w+Attr) ", body):
                yield found[1], body


def test_attributes_are_found():
    assert {"ScheduleAttr", "SimtAttr", "WgmmaSpAttr"} <= {n for n, _ in attributes()}


@pytest.mark.parametrize("name, body", [*attributes()], ids=lambda v: v.split()[0])
def test_fields_of_a_schedule(name, body):
    """Each attribute documents its fields, in order, with their defaults, and is
    on the page."""
    found = re.search(r"parameters = \(ins(.*?)\);", body, re.S)
    parameters = found[1] if found else ""
    fields = re.findall(r"(\S[^$]*):\$(\w+)", parameters)
    rows = re.findall(r"^ +\| `(\w+)` \|(.*)\|$", body, re.M)
    names = [re.sub("([A-Z])", r"_\1", field).lower() for _, field in fields]
    assert [row for row, _ in rows] == names
    for (kind, _), (_, row) in zip(fields, rows):
        given = re.search(r'DefaultValuedParameter<".*", "(.*)">', kind)
        if given:
            assert row.split(" | ")[-1].strip().strip("`") == given[1]
    page = (ROOT / "docs/Schedule.md").read_text("utf-8")
    assert f"<!-- generated: attribute {name} -->" in page


@pytest.mark.parametrize("package", python_reference.GROUPS)
def test_reference_of_the_package(package):
    """docs/Python.md says what signatures and docstrings say."""
    page = (ROOT / "docs/Python.md").read_text("utf-8")
    name = f"python {package}"
    found = page.partition(f"<!-- generated: {name} -->\n")[2]
    found = found.partition(f"\n<!-- end: {name} -->")[0]
    assert found == python_reference.page(package), "run `make docs`"


DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
SECTIONS = ["Question", "What was tried", "Figures", "Result file", "Decision"]


def sections_of(page):
    """{heading: text} of the second-level sections of a page, in order."""
    parts = re.split(r"^## (.*)$", page.read_text("utf-8"), flags=re.M)
    return dict(zip(parts[1::2], (text.strip() for text in parts[2::2])))


def outcome(page):
    """The first words of a decision, as the index has them."""
    text = sections_of(page)["Decision"]
    return re.match(r"Adopted|Left out|$", text)[0].lower()


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_decision(page):
    """A decision has its sections, in order, none empty, and fits on a screen."""
    text = page.read_text("utf-8")
    sections = sections_of(page)
    assert list(sections) == SECTIONS
    assert all(sections.values()), "a section is empty"
    assert outcome(page), "a decision begins with Adopted or Left out"
    assert re.match(rf"# {page.name[:3]}: \S", text)
    assert 10 <= len(text.splitlines()) <= 40


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_result_files_of_a_decision(page):
    """It names files that exist, or says that there are none."""
    named = sections_of(page)["Result file"]
    files = re.findall(r"`(bench/results/[^`]+)`", named)
    assert files or named.startswith("None"), "name a result file, or say None"
    for file in files:
        assert (ROOT / file).is_file(), f"{page.name} names {file}"


def test_index_of_decisions():
    """docs/decisions/README.md has one line for each file, in order."""
    index = (ROOT / "docs/decisions/README.md").read_text("utf-8")
    rows = re.findall(r"^\| \[(\d+)\]\((.*?)\) \| (.*) \| (.*) \|$", index, re.M)
    titles = [re.match(r"# \d+: (.*)", p.read_text("utf-8"))[1] for p in DECISIONS]
    assert rows == [
        (page.name[:3], page.name, title, outcome(page))
        for page, title in zip(DECISIONS, titles)
    ]
    numbers = [int(page.name[:3]) for page in DECISIONS]
    assert numbers == list(range(1, len(numbers) + 1))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference of docs/Python.md has what importing the package gives."""

import ast
import importlib
import inspect
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import python_reference  # noqa: E402
import python_signatures  # noqa: E402


def definition(package, name):
    path = python_signatures.file_of(ROOT / "python", package)
    return python_signatures.find(path, name)


def imported(package):
    if package != "nm_sparse":
        pytest.importorskip("torch")
    return importlib.import_module(package)


@pytest.mark.parametrize("package", python_reference.GROUPS)
def test_names_are_those_of_the_package(package):
    groups = python_reference.GROUPS[package].values()
    listed = [name for names in groups for name in names.split()]
    assert sorted(listed) == sorted(imported(package).__all__)


@pytest.mark.parametrize("package", python_reference.GROUPS)
def test_parsed_definitions_are_those_that_are_imported(package):
    """Parameters, docstrings and members, by `inspect`."""
    module, seen = imported(package), 0
    for name in module.__all__:
        found, node = getattr(module, name), definition(package, name)
        if isinstance(node, ast.Assign):
            continue
        assert inspect.getdoc(found) == ast.get_docstring(node)
        if isinstance(node, ast.ClassDef):
            shown = dict(python_signatures.members(node))
            for line, text in shown.items():
                own = line.rpartition(":")[0] if "(" not in line else line
                own = own.split("(")[0].split("[")[0].removeprefix(f"{name}.")
                if own != "self":
                    member = inspect.getattr_static(found, own)
                    member = getattr(member, "func", member)
                    assert (inspect.getdoc(member) or "") == text, line
            continue
        expected = inspect.signature(found).parameters
        names = [
            one.split(":")[0].split("=")[0].strip("* ")
            for one in python_signatures.parameters(node, False)
        ]
        assert [n for n in names if n] == list(expected), name
        seen += 1
    assert seen > 3


def test_signatures():
    source = """
def short(a, *rest: int, b: "List[int]" = (), **more: str) -> "Program":
    ...

def long(first_argument: Dict[str, int], second_argument: Optional[Sequence[int]] = None, *, third: str = "x") -> None:
    ...
"""  # noqa: E501
    short, long = ast.parse(source).body
    assert (
        python_signatures.signature(short)
        == "short(a, *rest: int, b: List[int] = (), **more: str) -> Program"
    )
    assert python_signatures.signature(long).splitlines() == [
        "long(",
        "    first_argument: Dict[str, int],",
        "    second_argument: Optional[Sequence[int]] = None,",
        "    *,",
        "    third: str = 'x',",
        ") -> None",
    ]


def test_members_of_a_class():
    source = """
@dataclass(frozen=True)
class Box(Base):
    size: int
    _secret: int = 0
    parts: list = field(default_factory=list)

    def __call__(self, x: int) -> int:
        '''Calls.'''
    @property
    def area(self) -> "Area": ...
    @staticmethod
    def make(x: int) -> "Box":
        '''Makes.'''
    def bare(self): ...
    def _hidden(self):
        '''Hides.'''
"""
    node = ast.parse(source).body[0]
    assert python_signatures.constructor(node) == (
        "class Box(size: int, parts: list = ...)"
    )
    assert list(python_signatures.members(node)) == [
        ("self(x: int)", "Calls."),
        ("area: Area", ""),
        ("Box.make(x: int) -> Box", "Makes."),
    ]


def test_docstrings_become_markdown():
    text = """Of docs/Encoding.md: 2 * 3 < `a * b`.

one:       the first,
           and more.
two, three: others.

Returns: a sentence with a colon.

>>> f(1)  # doctest: +SKIP
2

    $ a command"""
    assert python_reference.markdown(text).split("\n\n") == [
        r"Of [Encoding.md](Encoding.md): 2 \* 3 \< `a * b`.",
        "* `one`: the first, and more.\n* `two`, `three`: others.",
        "Returns: a sentence with a colon.",
        "```python\n>>> f(1)\n2\n```",
        "```\n$ a command\n```",
    ]


def test_names_without_a_group_are_refused(monkeypatch):
    groups = dict(python_reference.GROUPS["nm_sparse"])
    groups["Files"] = groups["Files"].replace("read_packed ", "")
    monkeypatch.setitem(python_reference.GROUPS, "nm_sparse", groups)
    with pytest.raises(SystemExit, match="read_packed: GROUPS and __all__"):
        python_reference.page("nm_sparse")


def test_unknown_names_are_refused():
    with pytest.raises(SystemExit, match="has no nothing_of_this_name"):
        definition("nm_sparse", "nothing_of_this_name")

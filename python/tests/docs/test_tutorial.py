# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/Tutorial.md, run from its first line to its last: what its blocks print is what
the page says."""

import doctest
import re
from pathlib import Path

import pytest

from nm_sparse.bindings.library import available

PAGE = Path(__file__).resolve().parents[3] / "docs" / "Tutorial.md"
FROM_HERE_ON_TORCH = "## PyTorch"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not available(), reason="the library is not built"),
]


def code(text):
    """The text with all lines empty but those of blocks, so that lines keep their
    numbers."""
    lines, inside = [], False
    for line in text.splitlines():
        is_fence = line.startswith("```")
        lines.append(line if inside and not is_fence else "")
        if is_fence:
            inside = not inside and line == "```python"
    return "\n".join(lines) + "\n"


def run(text, names, first_line=0):
    """Runs the blocks of a part of the page; adds what they define to `names`."""
    test = doctest.DocTestParser().get_doctest(
        code(text), names, PAGE.name, str(PAGE), first_line
    )
    messages = []
    runner = doctest.DocTestRunner(verbose=False)
    result = runner.run(test, out=messages.append, clear_globs=False)
    assert result.attempted > 0
    assert result.failed == 0, "".join(messages)
    names.update(test.globs)


def parts():
    """The text before and after the heading of the part on torch, and its line."""
    before, heading, after = PAGE.read_text("utf-8").partition(FROM_HERE_ON_TORCH)
    assert heading
    return before, after, before.count("\n")


@pytest.fixture(scope="module")
def numpy_part():
    """What running the part without torch defines."""
    names = {}
    run(parts()[0], names)
    return names


def test_all_blocks_are_run():
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    python = [block for language, block in blocks if language == "python"]
    assert len(python) > 10
    assert all(block.startswith(">>> ") for block in python)
    assert not any(">>> " in block for language, block in blocks if language == "")


def test_without_torch(numpy_part):
    assert {"packed", "program", "y"} <= numpy_part.keys()
    assert "torch" not in numpy_part


def test_with_torch(numpy_part, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    _, text, line = parts()
    run(text, dict(numpy_part), line)
    assert (tmp_path / "model.safetensors").is_file()


def test_a_wrong_output_is_found():
    with pytest.raises(AssertionError, match="line 2(?s:.*)Expected"):
        run("```python\n>>> 1 + 1\n3\n```\n", {})

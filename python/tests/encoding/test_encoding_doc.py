# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples and the metadata of docs/Encoding.md are true."""

import doctest
import json
import re
from pathlib import Path

import numpy as np
import pytest

from nm_sparse import Packed

DOC = Path(__file__).resolve().parents[3] / "docs" / "Encoding.md"


@pytest.fixture(scope="module")
def text():
    return DOC.read_text(encoding="utf-8")


def test_python_blocks(text):
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert blocks
    test = doctest.DocTestParser().get_doctest(
        "".join(blocks), {}, DOC.name, str(DOC), 0
    )
    assert test.examples
    runner = doctest.DocTestRunner(verbose=False)
    assert runner.run(test).failed == 0


def test_metadata_blocks(text):
    blocks = re.findall(r"^```json\n(.*?)^```", text, re.M | re.S)
    assert [json.loads(block)["version"] for block in blocks] == [1, 3, 2]
    for block in blocks:
        packed = Packed.from_tensors({"values": np.zeros((4, 4), np.float32)}, block)
        assert json.loads(packed.metadata()) == json.loads(block)

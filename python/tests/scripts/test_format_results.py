# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/format_results.py changes no value, and does nothing the second time."""

import json
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import format_results  # noqa: E402

SCRIPT = ROOT / "scripts" / "format_results.py"
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=40)
LEAVES |= st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    LEAVES,
    lambda part: (
        st.lists(part, max_size=30)
        | st.dictionaries(st.text(max_size=9), part, max_size=9)
    ),
    max_leaves=200,
)


@given(VALUES)
def test_values_stay(value):
    text = format_results.formatted(json.dumps(value))
    assert json.loads(text) == value
    assert format_results.formatted(text) == text


def test_records_are_lines():
    runs = [{"name": f"run {i}", "us": [i] * 99} for i in range(20)]
    text = format_results.formatted(json.dumps({"gpu": "H200", "runs": runs}, indent=1))
    assert text.count("\n") == len(runs) + 5
    assert text.splitlines()[3].startswith('  {"name": "run 0", ')


def test_check_names_the_file(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"runs": [1, 2]}, indent=1))
    command = [sys.executable, str(SCRIPT), "--check", str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 1 and str(path) in found.stdout
    assert path.read_text() == json.dumps({"runs": [1, 2]}, indent=1)
    subprocess.run([sys.executable, str(SCRIPT), str(path)], check=True)
    assert subprocess.run(command, check=False).returncode == 0

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one form of a weight costs: how predictions are compared, and the table."""

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "pages")]
import storage_classes  # noqa: E402
import storage_page  # noqa: E402

SUPPORT = """| encoding | f32 | f16 | bf16 | f8E4M3FN | i8 |
|---|---|---|---|---|---|
| element-wise `2:4` | yes | yes | yes | no | no |
| ragged `free, block = [1, 32]` | yes | no | no | no | no |

| layout | f32 |
|---|---|
"""
OWN, WIDE = "#nm_sparse.encoding<1:4, dim = 1>", "#nm_sparse.encoding<2:4, dim = 1>"


def row(storage, pattern, us, **more):
    times = [
        {"tokens": count, "predicted_us": one}
        for count, one in zip(storage_classes.TOKENS, us)
    ]
    kind = {"storage": storage} if storage else {}
    return {"pattern": pattern, "bytes": 10, "times": times, **kind, **more}


@pytest.fixture
def tool(monkeypatch):
    """Stands for nm-compile: weights of 1:4 are stored as bitmaps of 2:4."""

    def run(tool, *arguments, text=""):
        if "--print-support" in arguments:
            return SUPPORT
        if "--emit" in arguments:
            assert OWN in text and "tensor<64x32xf16" in text
            return f"%w: x of = #nm_sparse.packed<#nm_sparse.bitmap<{WIDE}>, [64, 32]>"
        common = row("bitmap", "1:4", [4.0] * 7, encoding=OWN, embedded=WIDE)
        own = row("bitmap", "1:4", [2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0], encoding=OWN)
        if "canonical" in arguments:
            raise ValueError("no canonical form")
        dense = row("", "dense", [9.0] * 7)
        found = [dense, own] if "bitmap" in arguments else [dense, common, own]
        return json.dumps({"patterns": found})

    monkeypatch.setattr(storage_classes, "run", run)
    return pathlib.Path("nm-compile")


def test_patterns_are_those_of_the_support(tool):
    assert storage_classes.read_patterns(tool) == [
        ("2:4", ["f32", "f16", "bf16"]),
        ("free, block = [1, 32]", ["f32"]),
    ]
    assert storage_classes.has_one_form("free, block = [1, 32]")
    assert storage_classes.has_one_form("2:4, order = shuffled")
    assert not storage_classes.has_one_form("2:4")


def test_a_layer_is_compared_and_shown(tool, tmp_path):
    layer = {"pattern": "1:4", "type": "f16", "inputs": 32, "outputs": 64}
    found = storage_classes.compare(tool, "h200", layer)
    assert "reason" not in found
    assert list(storage_classes.losses(found).values()) == [2, 1, 1, 1, 1, 1, 1]
    plain = storage_classes.plain(found)
    assert [form["by"] for form in plain["forms"]] == ["2:4", "1:4"]
    assert plain["forms"][0]["is_common"] and plain["dense_us"] == [9.0] * 7
    path = tmp_path / "classes.json"
    data = {"tokens": storage_classes.TOKENS, "seed": 1, "one_form": ["free"]}
    same = {**plain, "type": "bf16"}
    other = {**plain, "gpu": "h100"}
    path.write_text(json.dumps({**data, "rows": [plain, same, other]}))
    lines = storage_page.classes_page(path).splitlines()
    cells = "| 2.00 | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 |"
    start = "| `1:4` | f16, bf16 | bitmap as `2:4` | bitmap | 100 % "
    assert lines[2] == start + cells and lines[3] == ""
    assert "seed 1" in lines[4] and "`free`" in lines[4]


@pytest.mark.parametrize("seed", range(3))
def test_layers_are_drawn(seed):
    drawn = storage_classes.draw(seed, 20)
    assert drawn == storage_classes.draw(seed, 20)
    assert all(
        1024 <= size <= 14336 and size % 128 == 0 for one in drawn for size in one
    )

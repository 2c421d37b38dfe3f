# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/compare_ptx.py on stand-ins for two builds, and its lists of layers."""

import collections
import json
import lzma
import stat
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import compare_ptx  # noqa: E402
import compared_layers  # noqa: E402
import schedule_spelling  # noqa: E402

pytestmark = pytest.mark.slow

# Its PTX is the source, but for what `wrong` says of it.
TOOL = """\
#!{python}
import json, sys
option = lambda name: sys.argv[sys.argv.index(name) + 1]
source = sys.stdin.read()
if "refuse" in source or "{wrong}" == "fail" and "bad" in source:
    sys.exit("no schedule fits")
shared = "8" if "{wrong}" == "launch" and "bad" in source else "4"
if "{wrong}" == "ptx":
    source = source.replace("bad", "worse")
if "{wrong}" == "names":
    source = source.replace("%r1", "%r7")
open(option("-o"), "w").write(source)
launch = dict(kernel="f", grid=["1"], dynamic_shared_memory=shared,
              parameters=[dict(source="{wrong}", type="ptr")])
open(option("--manifest"), "w").write(json.dumps(
    dict(compiler=dict(commit="{commit}"), functions=[dict(launches=[launch])])))
"""

ITEMS = [
    compared_layers.Item("one", "good", "add %r1, %r2\n"),
    compared_layers.Item("one", "bad", "bad %r1, %r1\nret\n"),
    compared_layers.Item("two", "refused", "refuse\n", "sm_80"),
]


@pytest.fixture
def compare(tmp_path, monkeypatch):
    monkeypatch.setattr(compared_layers, "collect", lambda *_: list(ITEMS))
    monkeypatch.setattr(compare_ptx.shutil, "which", lambda _: None)

    def run(wrong, *options):
        for commit, text in (("old", ""), ("new", wrong)):
            path = tmp_path / commit / "bin" / "nm-compile"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                TOOL.format(python=sys.executable, wrong=text, commit=commit)
            )
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        out = tmp_path / "report.json"
        folders = [str(tmp_path / "old"), str(tmp_path / "new" / "bin")]
        status = compare_ptx.main([*folders, "--json", str(out), *options])
        return status, json.loads(out.read_text())

    return run


def test_equal_builds(compare):
    status, report = compare("")
    assert status == 0
    assert (report["equal"], report["refused_by_both"]) == (2, 1)
    assert report["commits"] == {"before": "old", "after": "new"}
    assert report["differing"] == []


def test_other_ptx_is_shown(compare, capsys, tmp_path):
    status, report = compare("ptx", "--dump", str(tmp_path / "pairs"))
    (found,) = report["differing"]
    assert status == 1 and report["different"] == 1
    assert (found["lines_removed"], found["lines_added"]) == (1, 1)
    assert not found["only_names"] and "launches" not in found
    assert "one: bad (sm_90a): PTX -1 +1 lines" in capsys.readouterr().out
    after = tmp_path / "pairs" / "one-bad-sm_90a.after.ptx"
    assert after.read_text() == "worse %r1, %r1\nret\n"
    assert len(list((tmp_path / "pairs").iterdir())) == 3


def test_kernels_of_layers_are_kept(compare, tmp_path, monkeypatch):
    layer = "f16_s50_L128_feature_1x2x3_product"
    bad = compared_layers.Item("bench", layer, "bad\n", layer=layer)
    good = compared_layers.Item("bench", layer, "good\n", layer=layer)
    monkeypatch.setattr(compared_layers, "collect", lambda *_: [*ITEMS, bad, good])
    folder = tmp_path / "kernels"
    for options, count in (((), 1), (("--equal-too",), 2)):
        compare("ptx", "--kernels", str(folder), *options)
        text = lzma.decompress((folder / "list.json.xz").read_bytes())
        pairs = json.loads(text)["pairs"]
        assert len(pairs) == count and not all(pair["equal"] for pair in pairs)
        images = [(folder / p["after"]["image"]).read_bytes() for p in pairs]
        assert b"worse\n" in map(lzma.decompress, images)


def test_other_names_are_told_apart(compare):
    status, report = compare("names")
    assert status == 1 and report["different"] == 2
    assert all(found["only_names"] for found in report["differing"])


def test_other_launches_are_shown(compare):
    status, report = compare("launch")
    (found,) = report["differing"]
    assert status == 1 and "lines_added" not in found
    sizes = [side[0]["dynamic_shared_memory"] for side in found["launches"]]
    assert sizes == ["4", "8"]


def test_one_side_alone_fails(compare, capsys):
    status, report = compare("fail")
    (found,) = report["differing"]
    assert status == 1 and report["failed_on_one_side"] == 1
    assert (found["failed"], found["error"]) == ("after", "no schedule fits")
    assert "fails with AFTER alone: no schedule fits" in capsys.readouterr().out


def test_some_of_the_layers(compare):
    assert compare("", "--only", "two:")[1]["by_group"] == {"two": 1}
    assert compare("", "--sample", "2")[1]["by_group"] == {"one": 1, "two": 1}
    with pytest.raises(SystemExit, match="no layer has 'three'"):
        compare("", "--only", "three")


def test_names_of_registers_and_labels():
    before = ".reg .b32 \t%r<9>;\n$L__BB0_7:\nadd %r8, %r2, %tid.x;\nbra $L__BB0_7;"
    after = before.replace("%r8", "%r1").replace("<9>", "<3>").replace("_7", "_2")
    assert compare_ptx.without_names(before) == compare_ptx.without_names(after)
    other = before.replace("%r8, %r2", "%r8, %r8")
    assert compare_ptx.without_names(before) != compare_ptx.without_names(other)


def test_lists_of_layers():
    few = compared_layers.collect(ROOT, ["cubes"])
    assert {item.group for item in few} == {"bench"} and len(few) < 60
    items = compared_layers.collect(ROOT)
    assert len(items) >= 200 and len(set(items)) == len(items)
    chips = collections.Counter(item.chip for item in items)
    assert set(chips) == set(compared_layers.CHIPS)
    forced = [i for i in items if "mma.sync" in i.name and i.group == "bench"]
    assert forced and all("nm_sparse.config = #" in i.source for i in forced)
    # Each list has its share.
    few = compared_layers.sample(items, 60, seed=3)
    assert set(collections.Counter(i.group for i in few).values()) == {10}
    assert few == compared_layers.sample(items, 60, seed=3)


def test_schedules_are_respelled():
    old = (
        "#nm_tile.schedule<mma, tile = [64, 32, 2], warps = [2, 2], stages = 3, "
        "split_k = 1, operands = packed, index = resident, producers = 4, tma = true>"
    )
    kind, fields = schedule_spelling.fields(old)
    assert kind == "mma"
    assert fields["tile"] == "[64, 32, 2]" and fields["tma"] == "true"
    new = schedule_spelling.respell(old, window_rows=16)
    assert new == (
        "#nm_tile.schedule<tile = [64, 32, 32], product = mma<warps = [2, 2]>, "
        "transfers = {x = gather, values = bulk, index = resident}, "
        "pipeline = ring<stages = 3, producers = 4>, grid = flat>"
    )
    assert schedule_spelling.respell(new, window_rows=16) == new


def test_modules_are_respelled():
    one = "#nm_tile.schedule<simt, tile = [1]>"
    two = "#nm_tile.schedule<mma<tile = [1]>, affine_map<(i) -> (i)>>"
    encoding = "#nm_sparse.encoding<8:32, block = [2, 128]>"
    text = f"{encoding} a {{s = {one}}} b {{s = {two}}} c"
    seen = []
    made = schedule_spelling.respell_module(
        text, lambda s, rows: seen.append((s, rows)) or "NEW"
    )
    assert seen == [(one, 16), (two, 16)]
    assert made == f"{encoding} a {{s = NEW}} b {{s = NEW}} c"
    assert schedule_spelling.respell_module(text) == text


def test_schedules_of_the_older_dialect_are_renamed():
    body = "<tile = [64, 32, 32], product = wgmma_sp<warps = 4>, grid = flat>"
    old = f"{{nm_sparse.schedule = #nm_sparse.schedule{body}}} #nm_sparse.bitmap<#e>"
    assert schedule_spelling.respell_module(old) == (
        f"{{nm_sparse.config = #nm_tile.schedule{body}}} #nm_sparse.bitmap<#e>"
    )
    assert schedule_spelling.rename_dialect("#nm_sparse.mma_expand<warps = 2>") == (
        "#nm_tile.mma_expand<warps = 2>"
    )


@pytest.mark.parametrize(
    "grid", ["flat", "flat<split_k = 3>", "persistent", "persistent<stream_k = true>"]
)
def test_grids_are_respelled(grid):
    parts = 3 if "split_k" in grid else 1
    flags = ", persistent = true" if grid.startswith("persistent") else ""
    flags += ", stream_k = true" if "stream_k" in grid else ""
    old = (
        "#nm_tile.schedule<simt, tile = [8, 8, 1], warps = [1, 1], stages = 2, "
        f"split_k = {parts}, operands = unpacked, index = staged, producers = 1{flags}>"
    )
    assert schedule_spelling.respell(old, 4).endswith(
        "transfers = {x = copy, values = copy, index = staged}, "
        f"pipeline = ring<stages = 2, producers = 1>, grid = {grid}>"
    )

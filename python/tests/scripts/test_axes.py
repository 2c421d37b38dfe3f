# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/check_axes.py finds files that name a part, and lets its own folder pass."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "check_axes.py"
TREE = {
    "lib/Products/One/One.td": 'def X : NMTile_Attr<"One", "one",\n    [A]> {',
    "lib/Products/One/One.cpp": "OneAttr",
    "lib/Transfers/Two/Two.td": 'def Y : NMTile_Attr<"Two", "two", [B]> {\n}\n'
    'def Z : NMTile_Attr<"Three", "three", [B]> {',
    "lib/Transfers/Two/Two.cpp": "TwoAttr ThreeAttr",
    "lib/Dialect/NMSparse/Storages/Bits/Bits.td": "def B : "
    'NMSparse_Attr<"Bits", "bits",\n'
    "    [DeclareAttrInterfaceMethods<NMSparse_WeightStorageInterface>]> {\n}\n",
    "lib/Dialect/NMSparse/Storages/Bits/Bits.cpp": "BitsAttr",
    "include/nm_sparse/Dialect/NMSparse/IR/NMSparseAttrs.td": "def E : "
    'NMSparse_Attr<"Encoding", "encoding",\n'
    "    [DeclareAttrInterfaceMethods<NMSparse_WeightStorageInterface>]> {\n}\n"
    'def O : NMSparse_Attr<"Other", "other"> {',
    "lib/CAPI/Dialect.cpp": "BitsAttr",
}


@pytest.fixture
def check(tmp_path):
    def run(files):
        for name, text in {**TREE, **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run(
            [sys.executable, SCRIPT, tmp_path], capture_output=True, text=True
        )
        assert not done.stderr
        return done.returncode, done.stdout.splitlines()

    return run


def test_parts_may_name_themselves(check):
    everywhere = "EncodingAttr OtherAttr MyOneAttr OneAttrs\n"
    assert check({"lib/Analysis/Cost.cpp": everywhere}) == (0, [])


@pytest.mark.parametrize("name", ["OneAttr", "TwoAttr", "ThreeAttr", "BitsAttr"])
def test_others_ask_the_interface(check, name):
    place = "lib/Analysis/Cost.cpp"
    found = [f"{place}:2: names {name}; ask its interface"]
    assert check({place: f"\nisa<{name}>(part)\n"}) == (1, found)


def test_parts_do_not_name_each_other(check):
    place = "lib/Transfers/Two/More.cpp"
    found = [f"{place}:1: names OneAttr; ask its interface"]
    assert check({place: "OneAttr"}) == (1, found)


def test_this_repository():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs on disk."""

import concurrent.futures
import json

import pytest

from nm_sparse import compiler
from nm_sparse.bindings import library as native
from nm_sparse.layers.specs import LinearSpec
from nm_sparse.runtime import cache
from nm_sparse.runtime.program import compile

SPEC = LinearSpec("#nm_sparse.encoding<2:4, dim = 1>", 16, 32)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NM_SPARSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_where_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv("NM_SPARSE_CACHE", "off")
    assert cache.folder() is None and cache.read("a") is None
    cache.write("a", {"b": "c"})
    monkeypatch.delenv("NM_SPARSE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "nm_sparse"


def test_keys_tell_all_parts_apart():
    keys = {
        cache.key("v1", "ab", ["c"]),
        cache.key("v2", "ab", ["c"]),
        cache.key("v1", "a", ["bc"]),
        cache.key("v1", "ab", ["c", ""]),
        cache.key("v1", "ab", []),
    }
    assert len(keys) == 5


def test_entries_are_whole_or_not_there(folder):
    assert cache.read("one") is None
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: cache.write("one", {"text": "x" * 10000}), range(40)))
        read = list(pool.map(lambda i: cache.read("one"), range(40)))
    assert all(entry == {"text": "x" * 10000} for entry in read)
    assert [path.name for path in folder.iterdir()] == ["one.json"]


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a": 1}', "\udcff"])
def test_damaged_entries_are_made_anew(folder, content):
    folder.mkdir()
    (folder / "one.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    assert cache.read("one") is None
    cache.write("one", {"a": "b"})
    assert cache.read("one") == {"a": "b"}


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NM_SPARSE_CACHE", str(tmp_path / "file"))
    cache.write("one", {"a": "b"})
    assert cache.read("one") is None


@pytest.mark.skipif(not native.available(), reason="no library of the compiler")
def test_programs_are_compiled_once(folder, monkeypatch):
    first = compile(SPEC)
    (entry,) = folder.iterdir()
    assert set(json.loads(entry.read_text())) == {"kernels", "manifest", "warnings"}

    def fail(*arguments):
        raise AssertionError("compiled again")

    monkeypatch.setattr(compiler, "run", fail)
    second = compile(SPEC)
    assert second.ptx == first.ptx and second.manifest == first.manifest
    with pytest.raises(AssertionError, match="compiled again"):
        compile(SPEC, use_cache=False)
    with pytest.raises(AssertionError, match="compiled again"):
        compile(SPEC, chip="sm_80")

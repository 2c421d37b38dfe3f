# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encodings are read from text as MLIR prints it, and from shorter forms."""

import copy
import dataclasses
import pickle
import re
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given
from strategies import V_N_M, levels

from nm_sparse import Encoding, EncodingError, Level

ROOT = Path(__file__).resolve().parents[3]


@st.composite
def encodings(draw):
    dim = draw(st.integers(0, 2))
    order = draw(st.sampled_from(["identity", "shuffled"]))
    if draw(st.integers(0, 4)) == 0:
        block = (draw(st.integers(1, 300)), draw(st.integers(1, 300)))
        return Encoding.free(block, dim, order)
    outer, inner = draw(st.one_of(levels(), st.sampled_from(V_N_M)))
    return Encoding(outer.n, outer.m, outer.block, dim, order, inner)


@given(encodings())
def test_text_and_attribute_are_read_back(encoding):
    assert Encoding.parse(encoding.mlir()) == encoding
    assert Encoding.parse(str(encoding)) == encoding
    assert Encoding(f"  {encoding.mlir()}\n") == encoding


@given(encodings(), st.randoms())
def test_spaces_and_the_order_of_keys_do_not_matter(encoding, random):
    keys = [f"dim = {encoding.dim}", f"order = {encoding.order}"]
    if encoding.inner is None:
        kept = "free" if encoding.is_free else f"{encoding.n}:{encoding.m}"
        keys.append(f"block = {list(encoding.block)}")
    else:
        kept = str(dataclasses.replace(encoding, dim=0, order="identity"))
    random.shuffle(keys)
    text = ", ".join([kept, *keys])
    spaced = re.sub(r"(?=[\[\]<>,:=])", lambda _: " " * random.randrange(3), text)
    assert Encoding(spaced) == encoding


@given(encodings())
def test_short_texts_beside_fields(encoding):
    kept = " ".join(f"{level.n}:{level.m}" for level in encoding.levels)
    if encoding.is_free:
        kept = "free"
    elif encoding.inner is not None:
        # A short text has no room for the inner block, so that is not said by it.
        kept = f"{encoding.n}:{encoding.m}"
    inner = encoding.inner
    fields = dict(block=encoding.block, dim=encoding.dim, order=encoding.order)
    assert Encoding(kept, inner=inner, **fields) == encoding
    if inner is not None and inner.block == (1, 1):
        assert Encoding(f"{kept} {inner.n}:{inner.m}", **fields) == encoding


@given(encodings())
def test_fields_are_as_they_were(encoding):
    e = encoding
    assert Encoding(e.n, e.m, e.block, e.dim, e.order, e.inner) == e
    for other in (copy.copy(e), pickle.loads(pickle.dumps(e)), dataclasses.replace(e)):
        assert other == e and hash(other) == hash(e)
    assert eval(repr(e)) == e
    assert dataclasses.replace(e, dim=2 - e.dim).dim == 2 - e.dim


def test_defaults():
    assert Encoding("2:4") == Encoding(2, 4) == Encoding(2, 4, (1, 1), 0, "identity")
    assert Encoding("free") == Encoding.free()
    assert Encoding("4:10 2:4", block=[1, 64]).inner == Level(2, 4)
    assert str(Encoding(2, 4)) == "2:4"
    assert Encoding("[2:4]") == Encoding(2, 4)


def test_attributes_of_the_documentation():
    texts = set()
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*")]:
        if page.is_file():
            found = re.findall(r"#nm_sparse\.encoding<[^>]*\d[^>]*>", page.read_text())
            texts.update(found)
    assert len(texts) > 5
    for text in texts:
        encoding = Encoding.parse(text)
        assert Encoding.parse(encoding.mlir()) == encoding


@pytest.mark.parametrize("text, message", [
    ("", "encoding '' has its end where a number belongs: legal is '8:32'"),
    ("8", "has its end where ':' belongs"),
    ("x:4", "has 'x' where a number belongs"),
    ("2:4;", "has ';'"),
    ("2:4 >", "has '>' behind its end"),
    ("2:4,", "has its end where one of block, dim, order belongs"),
    ("2:4, blocks = [1, 1]", "has 'blocks' where one of block, dim, order belongs"),
    ("2:4, dim = 0, dim = 1", "has 'dim' twice"),
    ("2:4, block = 4", r"has '4' where '\[' belongs"),
    ("2:4, block = [1, 2", r"has its end where '\]' belongs"),
    ("2:4, order = ", "order is ''"),
    ("2:4, order = sorted", "order is 'sorted': legal is 'identity' or 'shuffled'"),
    ("2:4, dim = 3", "dim is 3"),
    ("2:4, block = [0, 1]", r"block is \[0, 1\]: legal is at least 1"),
    ("5:4", "n:m is 5:4: legal is 1 <= n <= m"),
    ("0:4", "has n = 0, which is below 1; 'free' keeps any number"),
    ("-1:4", "has n = -1"),
    ("2:-4", "n:m is 2:-4"),
    ("2:4 2:4 2:4", "has 3 levels, of which there may be two"),
    ("[4:8], [2:4], [1:2]", "has 3 levels"),
    ("[4:8 2:4]", r"has '2' where '\]' belongs"),
    ("[4:8, dim = 1], [2:4]", "has 'dim' where 'block' belongs"),
    ("[4:8], [2:4], block = [1, 64]", "has 'block' where one of dim, order belongs"),
    ("[4:8], dim = 1, [2:4]", r"has '\[' where one of dim, order belongs"),
    ("[4:8], [free]", "has two levels, of which one is free"),
    ("free 2:4", "has two levels, of which one is free"),
    ("8:20 2:4", "an inner window has 4 rows: legal are the 8"),
    ("[4:8, block = [1, 64]], [2:4, block = [1, 3]]", r"inner block is \[1, 3\]"),
    ("#nm_sparse.encoding 2:4", "has '2' where '<' belongs"),
    ("#nm_sparse.encoding<2:4", "has its end where '>' belongs"),
    ("#nm_sparse.encoding<2:4> 5", "has '5' behind its end"),
    ("#nm_sparse.bitmap<2:4>", "has '#'"),
])  # fmt: skip
def test_wrong_texts_are_refused(text, message):
    with pytest.raises(EncodingError, match=message):
        Encoding(text)


@given(st.text(alphabet="0123456789:,[]=<> blockdimfre#", max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        encoding = Encoding(text)
    except EncodingError:
        return
    assert Encoding(encoding.mlir()) == encoding


def test_what_is_said_twice_is_refused():
    with pytest.raises(EncodingError, match="dim is 0, and '2:4, dim = 1' says it"):
        Encoding("2:4, dim = 1", dim=0)
    with pytest.raises(EncodingError, match="inner is Level"):
        Encoding("4:8 2:4", inner=Level(2, 4))
    with pytest.raises(EncodingError, match=r"m is \(1, 2\) beside the text '2:4'"):
        Encoding("2:4", (1, 2))
    with pytest.raises(EncodingError, match="m is None: legal is an integer"):
        Encoding(2)
    with pytest.raises(EncodingError, match="n is '2': legal is an integer"):
        Encoding("2", 4)

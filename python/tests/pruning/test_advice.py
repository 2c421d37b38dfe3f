# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What patterns keep of a weight: by hand, and as `nm-compile --advise` has it."""

import doctest
import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from checkpoint_cases import save
from hypothesis import given, settings
from hypothesis import strategies as st

from nm_sparse import (
    Encoding,
    EncodingError,
    Level,
    kept_importance,
    kept_magnitude,
    output_error,
    prune,
)

ROOT = Path(__file__).resolve().parents[3]
TOOL = Path(os.environ.get("NM_BUILD_DIR", ""), "bin", "nm-compile")
needs_tool = pytest.mark.skipif(
    "NM_BUILD_DIR" not in os.environ or not TOOL.exists(),
    reason="no build of nm-compile",
)

# As nm-compile spells them, and as the package does.
PATTERNS = {
    "2:4": Encoding(2, 4, dim=1),
    "8:16": Encoding(8, 16, dim=1),
    "16:32": Encoding(16, 32, dim=1),
    "3:4": Encoding(3, 4, dim=1),
    "8:32, block = [1, 8]": Encoding(8, 32, (1, 8), dim=1),
    "16:32, block = [1, 128]": Encoding(16, 32, (1, 128), dim=1),
    "4:8, block = [16, 1]": Encoding(4, 8, (16, 1), dim=1),
    "2:4, block = [3, 5]": Encoding(2, 4, (3, 5), dim=1),
    "4:8, block = [16, 128]": Encoding(4, 8, (16, 128), dim=1),
    "[4:10, block = [1, 64]], [2:4]": Encoding(
        4, 10, (1, 64), dim=1, inner=Level(2, 4)
    ),
    "[2:5, block = [2, 6]], [1:2, block = [2, 3]]": Encoding(
        2, 5, (2, 6), dim=1, inner=Level(1, 2, (2, 3))
    ),
}


def test_magnitude_by_hand():
    weight = np.array([[1.0, -3.0], [4.0, 0.0]], np.float16)
    assert kept_magnitude(weight, np.array([[0, -3], [4, 0]], np.float16)) == (
        7 / 8,
        25 / 26,
    )
    assert kept_magnitude(weight * 0, weight * 0) == (1, 1)


def test_orders_other_than_identity_are_refused():
    encoding = Encoding(1, 2, (1, 2), 1, "shuffled")
    for call in (kept_importance, output_error):
        with pytest.raises(EncodingError, match="n:m encodings in identity order"):
            call(np.ones((2, 2)), encoding)


def test_by_hand():
    """Of two inputs that are always alike one is enough."""
    weight = np.array([[1.0, 2.0], [3.0, 1.0]])
    encoding = Encoding(1, 2, dim=1)
    assert kept_importance(weight, encoding) == pytest.approx(13 / 15)
    assert output_error(weight, encoding) == pytest.approx(np.sqrt(2 / 15))
    assert output_error(weight, encoding, np.ones((2, 2))) < 1e-5
    # The second input counts ten times, so it is kept.
    gram = np.diag([1.0, 100.0])
    assert kept_importance(weight, encoding, gram) == pytest.approx(500 / 510)
    assert output_error(weight, encoding, gram) == pytest.approx(np.sqrt(10 / 510))
    only = output_error(weight, encoding, gram, outputs=[1])
    assert only == pytest.approx(np.sqrt(9 / 109))


def test_dim_and_types():
    weight = np.random.default_rng(1).standard_normal((12, 10)).astype(np.float32)
    for name in ("2:4", "2:4, block = [3, 5]"):
        e = PATTERNS[name]
        turned = Encoding(e.n, e.m, e.block, 0)
        for measure in (kept_importance, output_error):
            assert measure(weight, e) == measure(weight.T.copy(), turned)
            bits = (weight.view(np.uint32) >> 16).astype(np.uint16)
            rounded = (bits.astype(np.uint32) << 16).view(np.float32)
            assert measure(bits, e, dtype="bf16") == measure(rounded, e)


def test_the_page():
    page = ROOT / "docs/Advise.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    test = doctest.DocTestParser().get_doctest("".join(blocks), {}, "page", None, 0)
    assert test.examples and doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_what_is_left_of_nothing():
    weight = np.zeros((4, 8))
    assert kept_importance(weight, PATTERNS["2:4"], np.eye(8)) == 1
    assert output_error(weight, PATTERNS["2:4"], np.eye(8)) == 0


def test_what_is_refused():
    weight = np.ones((4, 8))
    with pytest.raises(EncodingError, match="n:m encodings"):
        kept_importance(weight, Encoding.free(dim=1))
    with pytest.raises(EncodingError, match="positive semidefinite"):
        output_error(weight, PATTERNS["2:4"], np.eye(8) - 0.9 * np.ones((8, 8)))
    weight[0, 0] = np.nan
    with pytest.raises(EncodingError, match="finite"):
        output_error(weight, PATTERNS["2:4"])


def test_the_fit_is_the_best():
    rng = np.random.default_rng(3)
    weight, x = rng.standard_normal((6, 32)), rng.standard_normal((40, 32))
    x += x[:, :1]
    e = PATTERNS["8:16"]
    kept = prune(weight * np.sqrt((x**2).sum(0)), e) != 0
    y, changed = x @ weight.T, 0.0
    for row, keep in zip(weight, kept):
        fitted, *_ = np.linalg.lstsq(x[:, keep], x @ row, rcond=None)
        changed += ((x @ row - x[:, keep] @ fitted) ** 2).sum()
    expected = np.sqrt(changed / (y**2).sum())
    assert output_error(weight, e, x.T @ x) == pytest.approx(expected, rel=1e-6)


def advise(path, *arguments):
    command = [TOOL, "--advise", "--checkpoint", path, "--weight", "w", "--json", "-"]
    command += ["--tokens", "16"]
    for pattern in PATTERNS:
        command += ["--pattern", pattern]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@st.composite
def layers(draw):
    """(weight, Gram matrix): any sizes, with inputs that depend on each other, some
    that are zero, and fewer tokens than inputs."""
    n, k = draw(st.integers(1, 300)), draw(st.integers(1, 120))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tokens = draw(st.integers(1, 2 * k))
    x = rng.standard_normal((tokens, k)) * rng.exponential(1, k)
    x += rng.standard_normal((tokens, 1))
    dead = rng.random(k) < draw(st.sampled_from([0.0, 0.2]))
    if dead.all():
        dead[0] = False
    x[:, dead] = 0
    type_ = draw(st.sampled_from([np.float16, np.float32]))
    weight = rng.standard_normal((n, k)).astype(type_)
    weight[rng.random((n, k)) < draw(st.sampled_from([0.0, 0.3]))] = 0
    return weight, x.T @ x


@pytest.mark.slow
@needs_tool
@settings(max_examples=25, deadline=None)
@given(layer=layers())
def test_the_tool_agrees(tmp_path_factory, layer):
    weight, gram = layer
    folder = tmp_path_factory.getbasetemp()
    path = save(folder / "layer.safetensors", w=weight)
    grams = save(folder / "gram.safetensors", g=gram, other=np.ones(3, np.float32))
    plain = advise(path)
    assert "fitted_outputs" not in plain
    fitted = advise(path, "--gram", f"{grams}:g", "--fit-rows", "20")
    drawn = fitted["fitted_outputs"]
    assert len(drawn) == min(20, len(weight)) and sorted(set(drawn)) == drawn
    for report, g, outputs in ((plain, None, None), (fitted, gram, drawn)):
        found = {row["pattern"]: row for row in report["patterns"]}
        assert found.keys() == {"dense", *PATTERNS}
        for name, e in PATTERNS.items():
            importance = kept_importance(weight, e, g)
            error = output_error(weight, e, g, outputs=outputs)
            assert found[name]["importance"] == pytest.approx(importance, abs=1e-6)
            assert found[name]["output_error"] == pytest.approx(error, abs=1e-6)
        check_marks(report)


def check_marks(report):
    """The fastest is marked, and all that nothing else beats."""
    rows = [row for row in report["patterns"] if "error" not in row["times"][0]]
    points = [(r["times"][0]["predicted_us"], r["output_error"]) for r in rows]
    for row, point in zip(rows, points):
        beaten = any(p[0] <= point[0] and p[1] <= point[1] and p != point
                     for p in points)  # fmt: skip
        assert row["times"][0]["best"] == (not beaten)
    (fastest,) = [r for r in rows if r["times"][0]["fastest"]]
    assert fastest["times"][0]["predicted_us"] == min(points)[0]


@needs_tool
def test_weights_that_are_not_finite(tmp_path):
    weight = np.ones((300, 8), np.float16)
    weight[290, 5] = np.inf
    path = save(tmp_path / "layer.safetensors", w=weight)
    command = [TOOL, "--advise", "--checkpoint", path, "--weight", "w"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "'w': output 290 has INF at input 5: legal are finite" in done.stderr


@needs_tool
def test_gram_matrices_in_narrow_types(tmp_path):
    """Sums in f32 make a matrix of few tokens indefinite: a ridge is found."""
    rng = np.random.default_rng(5)
    weight = rng.standard_normal((40, 256)).astype(np.float16)
    x = rng.standard_normal((32, 256))
    noise = np.triu(rng.standard_normal((256, 256)), 1) * 1e-3
    gram = x.T @ x + noise + noise.T
    path = save(tmp_path / "layer.safetensors", w=weight)
    grams = save(tmp_path / "gram.safetensors", g=gram.astype(np.float32))
    report = advise(path, "--gram", str(grams))
    for row in report["patterns"][1:]:
        assert 1e-6 < row["ridge"] <= 0.1 and 0 <= row["output_error"] < 1


@needs_tool
def test_programs_get_the_time_that_was_predicted(tmp_path, monkeypatch):
    """bench/advise_bar.py writes programs of which the compiler's choice is what
    --advise predicts."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import advise_bar

    arguments = ["--seed", "4", "--count", "2", "--out", str(tmp_path)]
    advise_bar.main([*arguments, "--bin", str(TOOL.parent)])
    predicted = json.loads((tmp_path / "predicted.json").read_text())
    lines = (tmp_path / "list.txt").read_text().splitlines()
    assert len(lines) == len([e for e in predicted if "file" in e]) > 20
    dense = {e["layer"]: e["predicted_us"] for e in predicted if "file" not in e}
    runs = []
    for entry in [e for e in predicted if "file" in e][::5]:
        command = [TOOL, tmp_path / entry["file"], "--candidates", "1"]
        command += ["--tokens", str(entry["tokens"]), "--storage", entry["storage"]]
        command += ["--embed", entry["embed"]]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        (product,) = json.loads(done.stdout)
        found = min(c["predicted_us"] for c in product["candidates"])
        assert found == pytest.approx(entry["predicted_us"])
        assert product["dense_us"] == pytest.approx(dense[entry["layer"]])
        run = {"file": entry["file"], "time": {"median_us": found}}
        runs.append({**run, "cublas_us": product["dense_us"]})
    verdicts = advise_bar.judge(predicted, {"runs": runs})
    assert [ratio for _, _, ratio in verdicts.values()] == [1, 1]

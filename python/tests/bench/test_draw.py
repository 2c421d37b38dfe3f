# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/draw.py: layers of a seed, and schedules of theirs that compile."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))
import draw  # noqa: E402
import layers  # noqa: E402
import random_layers  # noqa: E402

BIN = Path(os.environ.get("NM_BUILD_DIR", ROOT / "build"), "bin")
needs_compiler = pytest.mark.skipif(
    not (BIN / "nm-compile").exists(), reason="no build of the compiler"
)


def test_a_seed_names_its_layers():
    first = draw.draw(1, 50)
    assert first == draw.draw(1, 50) and first[:20] == draw.draw(1, 20)
    assert len(set(first)) == 50 and not set(first) & set(draw.draw(2, 50))
    # A change of what is drawn makes figures of old seeds another set's.
    assert first[0].name == "f32_s87.5_L32_token_57x7744x1024_plain"


def test_layers_are_of_every_kind_and_within_their_bounds():
    drawn = draw.draw(3, 400)
    for kind, names in [
        ("type", draw.TYPES),
        ("sparsity", draw.SPARSITIES),
        ("layout", draw.LAYOUTS),
        ("epilogue", draw.EPILOGUES),
        ("window", draw.WINDOWS),
    ]:
        assert {getattr(layer, kind) for layer in drawn} == set(names)
    assert {(layer.type, layer.length) for layer in drawn} == {
        (type_, length) for type_, lengths in draw.LENGTHS.items() for length in lengths
    }
    for layer in drawn:
        m, n, k = layer.shape
        assert 1 <= m <= draw.MOST_TOKENS and draw.is_small(layer)
        assert draw.LEAST_SIZE <= min(n, k) and max(n, k) <= draw.MOST_SIZE
        assert layers.parse(layer.name) == layer
    # As many of 1 to 90 tokens as of 91 to 8192, and rows of x with any alignment.
    assert 150 < sum(layer.shape[0] <= 90 for layer in drawn) < 250
    assert any(layer.shape[0] % 2 for layer in drawn if layer.layout == "feature")
    assert any(n % 2 and k % 8 == 0 for _, n, k in (layer.shape for layer in drawn))


def test_patterns_of_other_windows():
    layer = layers.Layer("f16", "87.5", 64, "token", (3, 768, 768), window=16)
    assert layer.name == "f16_s87.5of16_L64_token_3x768x768_product"
    assert "encoding<2:16, block = [1, 64]>" in layer.text()
    assert layers.parse(layer.name) == layer
    old = layers.parse("f16_s87.5_L64_token_3x768x768_product")
    assert old.pattern == "4:32"


def test_schedules_are_the_choice_other_families_and_the_next_best():
    ranked = [
        {"schedule": f"{family} {us}", "family": family, "predicted_us": us}
        for us, family in [(10, "a"), (11, "a"), (12, "a"), (13, "b"), (14, "b")]
        + [(15, "a"), (39, "c"), (41, "d")]
    ]
    for seed in range(20):
        chosen = draw.choose(ranked, 5, draw.Draw(seed))
        assert chosen[0] == "a 10" and len(set(chosen)) == 5
        # 41 us are more than four times the best.
        assert set(chosen[1:3]) == {"b 13", "c 39"}
        assert set(chosen[3:]) < {"a 11", "a 12", "b 14", "a 15"}
    assert draw.choose(ranked[:2], 5, draw.Draw(0)) == ["a 10", "a 11"]


@pytest.mark.slow
@needs_compiler
def test_every_schedule_of_a_drawn_layer_compiles(tmp_path):
    command = ["--seed", "3", "--count", "12", "--candidates", "3"]
    draw.main([*command, "--bin", str(BIN), "--out", str(tmp_path)])
    lines = (tmp_path / "list.txt").read_text().splitlines()
    assert len(lines) > 24
    for line in lines:
        words = shlex.split(line)
        layer = layers.parse(Path(words[0]).stem)
        assert (tmp_path / words[0]).read_text() == layer.text()
        schedule = words[words.index("--schedule") + 1]
        size = words[words.index("--size") + 1]
        embed = ["--embed", "always"] if "--embed" in words else []
        done = subprocess.run(
            [BIN / "nm-compile", "-", "-o", "-", "--emit", "nvvm", "--tokens", size]
            + embed,
            input=layer.text(schedule),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (line, done.stderr)
    checked = [line for line in lines if "--check" in line]
    assert len(checked) == 12  # The first of each layer.


def test_functions_for_any_number_are_recorded(tmp_path):
    report, out = tmp_path / "report.json", tmp_path / "any.json"
    file = "f16_s50_L128_token_anyx512x256_product.mlir"
    runs = [
        {
            "arguments": f"{file} --size 70",
            "cublas_us": 9.0,
            "time": {"median_us": 6.0},
        },
        {"arguments": f"{file} --size 3", "cublas_us": 4.0, "time": {"median_us": 8.0}},
        {"arguments": f"{file} --size 5", "cublas_us": 4.0, "passed": False},
        {"arguments": f"{file} --size 9", "error": "not begun in time"},
    ]
    runs[0]["gpu"] = "a GPU"
    report.write_text(json.dumps({"commit": "abc", "runs": runs}), "utf-8")
    random_layers.main([str(report), "--record", str(out), "--note", "a note"])
    [(layer, times)] = random_layers.functions(out)
    assert layer.shape[1:] == (512, 256) and times == [[3, 8.0, 4.0], [70, 6.0, 9.0]]
    page = random_layers.tokens_page(out)
    assert "| 50 % | 128 | token-major | 0.50x (0.50-0.50, 1) |  | 1.50x" in page
    report.write_text("{}", "utf-8")
    with pytest.raises(SystemExit, match="has no runs of nm-run --batch"):
        random_layers.main([str(report), "--record", str(out)])


def test_domains_have_panels_and_tokens_of_their_own():
    for domain, of in draw.DOMAINS.items():
        drawn = draw.draw(5, 200, domain)
        assert {(layer.type, layer.length) for layer in drawn} == {
            (type_, length) for type_, found in of.lengths.items() for length in found
        }
        assert {layer.outer for layer in drawn} == set(of.outer)
        tokens = [layer.shape[0] for layer in drawn]
        assert min(tokens) >= 1 and of.most_tokens / 2 < max(tokens) <= of.most_tokens
        assert all(layers.parse(layer.name) == layer for layer in drawn)

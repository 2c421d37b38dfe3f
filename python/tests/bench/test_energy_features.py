# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/energy/energy_features.py on stand-ins for the tools and the profiler."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench" / "energy"))
import energy_features as features  # noqa: E402
from energy_stand_ins import make_folder, write_counters, write_results  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path)


def test_features(folder):
    products = features.read_products([folder / "fit.json"], folder / "bin")
    dense = next(p for p in products if p.is_dense)
    ours = next(p for p in products if not p.is_dense)
    assert "code" not in dense.groups and "counters" not in ours.groups
    size = ours.groups["size"]
    assert size["flops"] == 20 * 1024 * 2048 and size["elementBytes"] == 2
    assert dense.groups["size"]["flops"] == 2 * size["flops"]
    code = ours.groups["code"]
    # The copy of rows did not run. Two CTAs of 256 threads and 100000 bytes fit.
    assert code["instructions"] == 7 and code["loop_instructions"] == 14
    assert code["occupancy"] == 512 / 2048 and code["waves"] == 1
    with pytest.raises(ValueError, match="300000 bytes fit on no SM"):
        kernel = {"total": {}, "by_depth": [], "max_threads": 32}
        features.describe_code([kernel], {"shared_bytes": 300000, "ctas": 1})


def test_a_compiler_of_other_kernels(folder):
    write_results(folder / "fit.json", [12, 13])
    with pytest.raises(SystemExit, match="_13x.*'f_kernel' was measured, and there"):
        features.read_products([folder / "fit.json"], folder / "bin")


def test_counters(folder):
    counters = features.read_counters(write_counters(folder, range(20, 36)))
    products = features.read_products([folder / "fit.json"], folder / "bin", counters)
    ours, dense = products[:2]
    assert ours.groups["counters"]["smsp__inst_executed.sum"] == 20000
    assert dense.groups["counters"]["smsp__inst_executed.sum"] == 40000
    assert len(ours.groups["counters"]) == 14


@pytest.mark.parametrize(
    "text, said",
    [
        (None, "No such file.*profile_energy.py condense"),
        ("{", "legal is a file of"),
        ("[]", "no profiled layers"),
        ('{"layers": []}', "no profiled layers"),
        ('{"profiled": [{"layer": "a", "ours": {"m": 1}}]}', "a has no counters of 'c"),
        ('{"profiled": [{"layer": "a", "ours": {}, "cublas": {}}]}', "of 'ours'"),
        (
            '{"profiled": [{"layer": "a", "ours": {"m": 1}, "cublas": {"n": 1}}]}',
            "no metric is there of all",
        ),
    ],
)
def test_files_that_hold_no_counters(tmp_path, text, said):
    path = tmp_path / "counters.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SystemExit, match=f"(?s)counters.json.*{said}"):
        features.read_counters(path)

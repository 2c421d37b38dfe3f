# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What reports say of a whole model: the share that is sparse, and what stays dense."""

import pytest

torch = pytest.importorskip("torch")

from prune_models import quiet  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse.torch import NMSparseConfig, sparsify_  # noqa: E402
from nm_sparse.torch.prune import PruneConfig  # noqa: E402

CONFIG = NMSparseConfig("2:4", keep_slower=True)
TEXTS = {"vocab_size": 1000, "bos_token_id": 1, "eos_token_id": 2}


class Experts(nn.Module):
    """Stacked weights, as mixtures have them."""

    def __init__(self):
        super().__init__()
        self.up = nn.Parameter(torch.randn(4, 512, 256))
        self.down = nn.Parameter(torch.randn(4, 256, 512))


def total_bytes(model):
    return sum(p.numel() * p.element_size() for p in model.parameters())


def test_parameters_of_every_kind_are_listed():
    model = nn.ModuleDict(
        {
            "table": nn.Embedding(2000, 256),
            "experts": nn.ModuleList(Experts() for _ in range(2)),
            "conv": nn.Conv1d(256, 512, 3),
            "attention": nn.MultiheadAttention(512, 8),
            "recurrent": nn.LSTM(300, 300),
            "dense": nn.Linear(600, 600),
            "sparse": nn.Linear(600, 600),
            "small": nn.Linear(16, 16),
        }
    )
    total = total_bytes(model)
    report = sparsify_(model, {"dense": None, "*": CONFIG})
    size = report.size
    assert size.total == total and size.sparse == 4 * (600 * 600 + 16 * 16)
    assert {one.name: one.shape for one in size.dense} == {
        "table.weight": (2000, 256),
        "experts.0.up": (4, 512, 256),
        "experts.0.down": (4, 256, 512),
        "experts.1.up": (4, 512, 256),
        "experts.1.down": (4, 256, 512),
        "conv.weight": (512, 256, 3),
        "attention.in_proj_weight": (1536, 512),
        "attention.out_proj.weight": (512, 512),
        "recurrent.weight_ih_l0": (1200, 300),
        "recurrent.weight_hh_l0": (1200, 300),
        "dense.weight": (600, 600),
    }
    reasons = {one.name: one.reason for one in size.dense}
    assert all(reasons.values())
    assert reasons["table.weight"] == "a table, whose rows are looked up"
    assert reasons["dense.weight"] == "the config leaves 'dense' dense"
    assert reasons["experts.0.up"] == "Experts.up is not the weight of an nn.Linear"
    assert "read outside of its forward" in reasons["attention.out_proj.weight"]
    lines = str(report).splitlines()
    share = 100 * size.sparse / total
    assert lines[0] == (
        f"{share:.1f} % of the model's bytes are sparse: 1.4 of {total / 2**20:.1f} MiB"
    )
    listed = lines[lines.index("dense parameters of more than 1 MB:") :]
    twice = f"  2 x Experts.up, 4 x 512 x 256, {100 * 4 * 2**20 / total:.1f} % of the"
    assert any(line.startswith(twice) for line in listed)
    # Linear layers are in the table already.
    assert not any("dense.weight" in line for line in listed)
    assert lines[-1].startswith("2 of 4 layers are sparse; their weights take")


def test_shares_of_further_calls_add_up():
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    first = sparsify_(model, {"0": CONFIG}).size
    assert first.share == pytest.approx(64 * 64 / (2 * 64 * 65))
    second = sparsify_(model, {"1": CONFIG}).size
    assert second.sparse == 2 * first.sparse and second.total == first.total
    third = sparsify_(model, "2:4").size
    assert third == second


def test_other_types_count_as_they_were():
    model = nn.Sequential(nn.Linear(64, 64, bias=False))
    config = NMSparseConfig("2:4", dtype=torch.bfloat16, keep_slower=True)
    size = sparsify_(model, config).size
    assert size.total == size.sparse == 4 * 64 * 64 and size.share == 1


def test_shared_parameters_count_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(5000, 64), nn.Linear(64, 5000)
            self.head.weight = self.table.weight

    report = sparsify_(Tied(), CONFIG)
    assert report.size.total == 4 * (5000 * 64 + 5000) and report.size.share == 0
    assert [one.name for one in report.size.dense] == ["table.weight"]
    assert "shares its weight with table.weight" in report.left_dense["head"]


def test_models_without_linear_layers_have_a_report():
    report = sparsify_(nn.LSTM(256, 256), CONFIG)
    lines = str(report).splitlines()
    assert lines[0] == "0.0 % of the model's bytes are sparse: 0.0 of 2.0 MiB"
    assert "weight_ih_l0, 1024 x 256, 49.8 % of the bytes" in lines[3]
    assert lines[-2].startswith("0 of 0 ")
    assert sparsify_(nn.Sequential(), CONFIG).size.share == 0


def test_pruning_reports_the_same():
    model = nn.Sequential(nn.Embedding(2000, 256), nn.Linear(256, 300), nn.ReLU())
    model.append(nn.Linear(300, 900))
    config = PruneConfig("2:4", score="magnitude", fit=False)
    report = quiet(model, {"1": config})
    assert report.size.total == total_bytes(model)
    assert report.size.sparse == 4 * 256 * 300
    assert [one.name for one in report.size.dense] == ["0.weight", "3.weight"]
    lines = str(report).splitlines()
    assert lines[0].endswith("% of the model's bytes are sparse: 0.3 of 3.3 MiB")
    assert lines[-1].startswith("  0.weight, 2000 x 256")
    assert "3  dense: no pattern of the config matches its name" in lines


@pytest.mark.parametrize("name", ["Mixtral", "GPT2"])
def test_models_of_transformers(name):
    transformers = pytest.importorskip("transformers")
    if name == "Mixtral":
        config = transformers.MixtralConfig(
            **TEXTS,
            hidden_size=256,
            intermediate_size=512,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            num_local_experts=4,
        )
        model, kinds = transformers.MixtralForCausalLM(config), ["gate_up_proj"]
        share = 0.16
    else:
        config = transformers.GPT2Config(**TEXTS, n_embd=256, n_layer=2, n_head=4)
        model, kinds = transformers.GPT2LMHeadModel(config), ["wte.weight"]
        share = 0.75
    total = total_bytes(model)
    report = sparsify_(model, CONFIG)
    assert report.size.total == total
    assert report.size.share == pytest.approx(share, abs=0.05)
    listed = str(report)
    assert all(f"{kind}, " in listed for kind in kinds)
    dense = sum(one.nbytes for one in report.size.dense)
    assert report.size.sparse + dense > 0.7 * total

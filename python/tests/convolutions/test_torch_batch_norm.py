# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batch norms that are folded into the convolutions before them."""

import pytest

torch = pytest.importorskip("torch")

from conv_models import ANY, Model, batch, dense_of, times, trained  # noqa: E402
from torch import nn  # noqa: E402

from nm_sparse import EncodingError  # noqa: E402
from nm_sparse.torch import (  # noqa: E402
    NMConv2d,
    NMSparseConfig,
    fold_batch_norm_,
    fuse_,
    sparsify_,
)


@pytest.mark.parametrize("has_example", [False, True])
def test_batch_norms_are_folded(has_example):
    model = trained(Model())
    with torch.no_grad():
        wanted = model(batch())
    found = fold_batch_norm_(model, batch() if has_example else None)
    assert found == {
        f"blocks.{i}.conv{j}": f"blocks.{i}.bn{j}" for i in (0, 1) for j in (1, 2)
    }
    with torch.no_grad():
        torch.testing.assert_close(model(batch()), wanted)
    assert not any(isinstance(m, nn.BatchNorm2d) for m in model.modules())
    report = sparsify_(model, ANY, predictor=times)
    assert "blocks.0.conv1" in report.converted
    dense, keys = dense_of(model), list(model.state_dict())
    fused = fuse_(model)
    assert [(row.kind, row.layers) for row in fused.rows if not row.reason] == [
        ("activation", ("conv1",))
    ] * 2
    assert list(model.state_dict()) == keys
    with torch.no_grad():
        torch.testing.assert_close(model(batch()), dense(batch()))
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(batch()), dense(batch()))


def test_what_is_not_folded():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.read, self.twice, self.hooked = (nn.Conv2d(4, 4, 1) for _ in range(3))
            self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(4))
            self.norms.append(nn.BatchNorm2d(4, track_running_stats=False))

        def forward(self, x, flag=True):
            y = self.read(x)
            x = y + self.norms[0](y)
            x = self.norms[2](self.twice(self.norms[1](self.twice(x))))
            return self.norms[3](self.hooked(x)), self.norms[4](x)

    for example in (None, torch.randn(2, 4, 3, 3)):
        model = trained(Odd())
        model.hooked.register_forward_hook(lambda *_: None)
        assert fold_batch_norm_(model, example) == {}

    class Returned(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)

        def forward(self, x):
            y = self.conv(x)
            return {"y": [y], "z": self.norm(y)}

    for example in (None, torch.randn(2, 4, 3, 3)):
        assert fold_batch_norm_(trained(Returned()), example) == {}
    with pytest.raises(EncodingError, match="norm is in training: .* model.eval"):
        fold_batch_norm_(Returned())

    class Branching(Returned):
        def forward(self, x):
            y = self.norm(self.conv(x))
            return y if float(y.sum()) > 0 else -y

    model = trained(Branching())
    with pytest.raises(EncodingError, match="torch.fx cannot trace the model"):
        fold_batch_norm_(model)
    assert fold_batch_norm_(model, torch.randn(2, 4, 3, 3)) == {"conv": "norm"}


@pytest.mark.parametrize("has_example", [False, True])
@pytest.mark.parametrize("encoding", ["2:4", "2:4, block = [1, 4], order = shuffled"])
def test_they_are_folded_into_packed_convolutions(has_example, encoding):
    model = trained(Model())
    config = NMSparseConfig(encoding, keep_slower=True)
    sparsify_(model, {"blocks.1.conv2": None, "*": config}, predictor=times)
    model.blocks[0].conv1.weight.requires_grad_(False)
    if encoding == "2:4":
        model.blocks[0].conv2.store_("bitmap")
    with torch.no_grad():
        wanted = model(batch())
    found = fold_batch_norm_(model, batch() if has_example else None)
    assert len(found) == 4
    first, second = model.blocks[0].conv1, model.blocks[0].conv2
    assert type(first) is NMConv2d and not first.weight.requires_grad
    assert second.storage == ("bitmap" if encoding == "2:4" else "canonical")
    with torch.no_grad():
        torch.testing.assert_close(model(batch()), wanted)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much of a model is sparse, and which large parameters are not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Collection, Dict, Iterator, List, Mapping, Optional, Tuple

from torch import Tensor, nn

from ..layers.linear_state import PackedState

LARGE = 1_000_000  # bytes; smaller parameters are not listed


@dataclass(frozen=True)
class DenseParameter:
    """A parameter of more than 1 MB that is dense.

    name:    in the model.
    shape:   of any rank.
    nbytes:  of its elements.
    kind:    the class of the module that has it, and what it is there.
    reason:  why it is dense.
    """

    name: str
    shape: Tuple[int, ...]
    nbytes: int
    kind: str
    reason: str


@dataclass(frozen=True)
class ModelSize:
    """The bytes of a model's parameters, those that are shared counted once.

    total:   if all of them were dense.
    sparse:  of these, what belongs to weights that are sparse.
    dense:   each parameter of more than 1 MB that is not.
    """

    total: int = 0
    sparse: int = 0
    dense: Tuple[DenseParameter, ...] = ()

    @property
    def share(self) -> float:
        """The share of the bytes that is sparse, 0 to 1."""
        return self.sparse / self.total if self.total else 0.0

    @property
    def headline(self) -> str:
        """The first line of a report."""
        return (
            f"{100 * self.share:.1f} % of the model's bytes are sparse: "
            f"{self.sparse / 2**20:.1f} of {self.total / 2**20:.1f} MiB"
        )

    def lines(self, listed: Collection[str] = ()) -> List[str]:
        """The parameters that are dense, those of one kind, shape and reason together.

        listed:  names of those that have been said already.
        """
        groups: Dict[Tuple[Any, ...], List[DenseParameter]] = {}
        for one in self.dense:
            if one.name not in listed:
                key = (one.kind, one.shape, one.reason)
                groups.setdefault(key, []).append(one)
        found = ["dense parameters of more than 1 MB:"] if groups else []
        for (kind, shape, reason), each in groups.items():
            name = each[0].name if len(each) == 1 else f"{len(each)} x {kind}"
            share = 100 * sum(one.nbytes for one in each) / self.total
            size = " x ".join(map(str, shape))
            found.append(f"  {name}, {size}, {share:.1f} % of the bytes: {reason}")
        return found

    def to_dict(self) -> Dict[str, Any]:
        """Plain data, for JSON."""
        rows = [{**asdict(one), "shape": list(one.shape)} for one in self.dense]
        return {"total": self.total, "sparse": self.sparse, "dense": rows}


def measure(
    model: nn.Module,
    sparse: Mapping[str, int],
    reasons: Optional[Mapping[str, str]] = None,
) -> ModelSize:
    """How much of a model is sparse: its packed layers, and what else is said to be.

    sparse:   dense bytes of weights that have just become sparse, by the name of their
              layer; packed layers that are not there count in the type that they have.
    reasons:  why other linear layers are dense, by name.
    """
    total = done = 0
    dense = []
    for layer, module, name, tensor in _parameters(model):
        nbytes = tensor.numel() * tensor.element_size()
        if isinstance(module, PackedState) and name in ("weight", "values"):
            size = module.out_features * module.in_features * tensor.element_size()
            nbytes = sparse.get(layer, size)
            done += nbytes
        elif layer in sparse and name == "weight":
            nbytes = sparse[layer]
            done += nbytes
        elif nbytes > LARGE:
            where = f"{layer}.{name}" if layer else name
            kind = f"{type(module).__name__}.{name}"
            reason = (reasons or {}).get(layer, "") if name == "weight" else ""
            reason = reason or _reason(module, name)
            shape = tuple(tensor.shape)
            dense.append(DenseParameter(where, shape, nbytes, kind, reason))
        total += nbytes
    return ModelSize(total, done, tuple(dense))


def _parameters(model: nn.Module) -> Iterator[Tuple[str, nn.Module, str, Tensor]]:
    """Each parameter once: the name of its module, that, its own name there, itself."""
    seen = set()
    for layer, module in model.named_modules():
        for name, tensor in module._parameters.items():
            if tensor is None or id(tensor) in seen or nn.parameter.is_lazy(tensor):
                continue
            seen.add(id(tensor))
            yield layer, module, name, tensor


def _reason(module: nn.Module, name: str) -> str:
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
        return "a table, whose rows are looked up"
    return f"{type(module).__name__}.{name} is not the weight of an nn.Linear"

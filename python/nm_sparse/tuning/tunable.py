# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which products there are to tune: the problems that compilations look up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ..compiler import CompileError
from ..layers.layer_text import SCALED
from ..layers.specs import LinearSpec
from .engine import Engine

# Types of activations and weights of layers without scales.
FLOATS = ("f16", "bf16", "f32")
# Those of weights in checkpoints, for people.
LEGAL_TYPES = (
    f"{', '.join(FLOATS)}; of packed weights with scales also {', '.join(SCALED)}"
)
# Fields of a product that are no part of its problem.
_OTHERS = ("names", "version")


@dataclass(frozen=True)
class TunableProduct:
    """A product of so many tokens: a problem of databases.

    problem:  its fields (docs/Tuning.md).
    names:    the layers of a model, or the functions of a program, that have it.
    """

    problem: Mapping[str, Any]
    names: Tuple[str, ...] = ()

    @property
    def inputs(self) -> int:
        return int(self.problem["inputs"])

    @property
    def outputs(self) -> int:
        return int(self.problem["outputs"])

    @property
    def tokens(self) -> int:
        return int(self.problem["tokens"])

    @property
    def dtype(self) -> str:
        """Element type of activations and weight."""
        return str(self.problem["type"])

    @property
    def encoding(self) -> str:
        """Text of the encoding of the weight."""
        return str(self.problem["encoding"])

    @property
    def storage(self) -> str:
        """The form in which kernels read the weight, as databases spell it."""
        return str(self.problem["storage"])


@dataclass(frozen=True)
class Tunable:
    """What `find_tunable` has found.

    products:  each problem once, however many layers of a model have it.
    skipped:   why others are not tuned, by their names.
    """

    products: Tuple[TunableProduct, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    _engine: Any = field(default=None, init=False, repr=False, compare=False)

    def __str__(self) -> str:
        reasons: Dict[str, List[str]] = {}
        for name, reason in self.skipped.items():
            reasons.setdefault(reason, []).append(name)
        return "\n".join(
            f"not tuned: {names[0]}"
            + (f" and {len(names) - 1} others" if len(names) > 1 else "")
            + f": {reason}"
            for reason, names in reasons.items()
        )


class Finder:
    """Collects layers and programs, of which those that are alike become one.

    Arguments are those of `Engine`.
    """

    def __init__(self, gpu: str, objective: str, tokens: Sequence[int]) -> None:
        self.skipped: Dict[str, str] = {}
        self._engine = Engine(gpu, objective, tokens)
        self._linear: Dict[Tuple[LinearSpec, bool], List[str]] = {}
        self._programs: Dict[Tuple[str, bool], List[str]] = {}

    def skip(self, name: str, reason: str) -> None:
        self.skipped[name] = reason

    def add_linear(self, name: str, spec: LinearSpec, is_of_model: bool = True) -> None:
        """A layer; bias, activation, scales and the layout that x is given in are no
        part of its problem: what its kernels read is what the compiler chooses.

        is_of_model:  whether kernels for some number of tokens must read the weight as
                      those for any number do, as layers of torch have it.
        """
        plain = replace(spec, bias=False, activation="none", x_scale="token")
        plain = replace(plain, feature_major=False)
        self._linear.setdefault((plain, is_of_model), []).append(name)

    def add_program(self, name: str, text: str, is_of_model: bool = True) -> None:
        """The products of a program."""
        self._programs.setdefault((text, is_of_model), []).append(name)

    def find(self) -> Tunable:
        """Asks the compiler for the problems of all of them. Raises CompileError for a
        program of MLIR that cannot be compiled."""
        # Programs are labelled by their places here, which stand for their names.
        called: List[Tuple[List[str], bool]] = []
        for (spec, is_of_model), names in self._linear.items():
            try:
                self._engine.add(spec.mlir(), str(len(called)), is_of_model)
            except CompileError as error:
                for name in names:
                    self.skip(name, f"there are no kernels for it: {error}")
            called.append((names, True))
        for (text, is_of_model), names in self._programs.items():
            self._engine.add(text, str(len(called)), is_of_model)
            called.append((names, False))

        def names_of(labelled: str) -> List[str]:
            label, _, rest = labelled.partition(" @")
            names, is_layer = called[int(label)]
            function, comma, sizes = rest.partition(", ")
            shown = "" if is_layer else f"@{function}"
            return [f"{name} {shown}".strip() + comma + sizes for name in names]

        listed = self._engine.list()
        for one in listed["skipped"]:
            for name in names_of(one["name"]):
                self.skip(name, one["reason"])
        products = tuple(
            TunableProduct(
                {key: value for key, value in one.items() if key not in _OTHERS},
                tuple(name for each in one["names"] for name in names_of(each)),
            )
            for one in listed["products"]
        )
        found = Tunable(products, self.skipped)
        object.__setattr__(found, "_engine", self._engine)
        return found

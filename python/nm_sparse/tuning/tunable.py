# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which products there are to tune: the problems that compilations look up."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from .. import compiler
from ..compiler import CompileError
from ..layers.specs import LinearSpec
from .product import Spec, specs_of, why_not

CANONICAL = "canonical"


@dataclass(frozen=True)
class TunableLayer:
    """A product, and the numbers of tokens that it is tuned for.

    spec:     the program that is measured: a `LinearSpec`, or one of a product as some
              program has it.
    tokens:   each is a problem of its own.
    names:    the layers of a model, or the functions of a program, that have it.
    storage:  the form in which their kernels read the weight, as databases spell it;
              None: that which suits each number of tokens.
    """

    spec: Spec
    tokens: Tuple[int, ...]
    names: Tuple[str, ...] = ()
    storage: Optional[str] = None

    @property
    def options(self) -> List[str]:
        """Of nm-compile, with which it is compiled."""
        return storage_options(self.storage)


@dataclass(frozen=True)
class Tunable:
    """What `find_tunable` has found.

    layers:   each once, however many layers of a model are alike.
    skipped:  why others are not tuned, by their names.
    """

    layers: Tuple[TunableLayer, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def problems(self) -> int:
        """How many there are to measure."""
        return sum(len(layer.tokens) for layer in self.layers)

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


def storage_options(storage: Optional[str]) -> List[str]:
    """Options of nm-compile for kernels that read weights in a form of databases."""
    if storage is None:
        return []
    return [f"--storage={CANONICAL if storage == CANONICAL else 'bitmap'}"]


def list_products(
    text: str,
    gpu: str,
    tokens: Sequence[int] = (),
    options: Sequence[str] = (),
    candidates: int = 1,
) -> List[Dict[str, Any]]:
    """What `nm-compile --candidates` says of a program, without any database. Raises
    CompileError."""
    arguments = ["-", "-o", "-", f"--gpu={gpu}", f"--candidates={candidates}"]
    arguments += [f"--tokens={','.join(map(str, tokens))}"] if tokens else []
    found = compiler.run([*arguments, "--tuned=", *options], text).text
    products: List[Dict[str, Any]] = json.loads(found)
    return products


def _one_storage(products: Sequence[Mapping[str, Any]]) -> Optional[str]:
    """The form in which all of a program's kernels read weights; None for several."""
    found = {one["tuning"]["storage"] for one in products}
    return found.pop() if len(found) == 1 else None


class Finder:
    """Collects layers, of which those that are alike become one.

    tokens:  to tune for; none: those that a program for any number has kernels for.
    gpu:     h100 or h200.
    """

    def __init__(self, tokens: Sequence[int], gpu: str) -> None:
        self.tokens, self.gpu = tuple(tokens), gpu
        self.skipped: Dict[str, str] = {}
        self._linear: Dict[Tuple[LinearSpec, bool], Tuple[LinearSpec, List[str]]] = {}
        self._programs: Dict[Tuple[str, bool], List[str]] = {}
        self._found: Dict[Any, Tuple[Spec, Set[int], List[str]]] = {}

    def skip(self, name: str, reason: str) -> None:
        self.skipped[name] = reason

    def add_linear(self, name: str, spec: LinearSpec, is_of_model: bool = True) -> None:
        """A layer; bias and activation are no part of its problem.

        is_of_model:  whether kernels for some number of tokens must read the weight as
                      those for any number do, as layers of torch have it.
        """
        key = _plain(spec), is_of_model
        self._linear.setdefault(key, (spec, []))[1].append(name)

    def add_program(self, name: str, text: str, is_of_model: bool = True) -> None:
        """The products of a program."""
        self._programs.setdefault((text, is_of_model), []).append(name)

    def find(self) -> Tunable:
        """Asks the compiler for the problems of all of them. Raises CompileError for a
        program of MLIR that cannot be compiled."""
        for (_, is_of_model), (spec, names) in self._linear.items():
            try:
                self._ask_linear(spec, names, is_of_model)
            except CompileError as error:
                for name in names:
                    self.skip(name, f"there are no kernels for it: {error}")
        for (text, is_of_model), names in self._programs.items():
            self._ask_program(text, names, is_of_model)
        layers = [
            TunableLayer(spec, tuple(sorted(tokens)), tuple(names), storage)
            for (_, storage), (spec, tokens, names) in self._found.items()
        ]
        return Tunable(tuple(layers), self.skipped)

    def _add(
        self, spec: Spec, storage: Optional[str], tokens: Sequence[int], names: Any
    ) -> None:
        key = _plain(spec), storage
        _, numbers, listed = self._found.setdefault(key, (spec, set(), []))
        numbers.update(tokens)
        listed += [name for name in names if name and name not in listed]

    def _ask_linear(
        self, spec: LinearSpec, names: Sequence[str], is_of_model: bool
    ) -> None:
        storage, tokens = None, self.tokens
        if is_of_model or not tokens:
            usual = list_products(spec.mlir(), self.gpu)
            storage = _one_storage(usual) if is_of_model else None
            tokens = tokens or tuple(one["tokens"] for one in usual)
        self._add(spec, storage, tokens, names)

    def _ask_program(self, text: str, names: Sequence[str], is_of_model: bool) -> None:
        products = list_products(text, self.gpu, () if is_of_model else self.tokens)
        if self.tokens:
            options = storage_options(_one_storage(products))
            # A program for several numbers has one function for those that have one
            # choice of the model: measured, they may differ.
            products = [
                product
                for count in self.tokens
                for product in list_products(text, self.gpu, [count], options)
            ]
        known: Dict[str, Optional[Spec]] = {}
        for product in products:
            problem, tokens = product["tuning"], product["tokens"]
            # A function that selects one by the number of tokens has several.
            function = product["function"].removesuffix(f"_tokens_{tokens}")
            called = [f"{name} @{function}".strip() for name in names]
            key = json.dumps(problem, sort_keys=True)
            reason = why_not(problem)
            if key not in known:
                known[key] = None if reason else self._match(problem)
            spec = known[key]
            if spec is not None:
                self._add(spec, problem["storage"], [tokens], called)
                continue
            reason = reason or "no program of one product has its problem"
            for name in called:
                self.skip(f"{name}, {problem['inputs']} inputs, {problem['outputs']} "
                          f"outputs, {tokens} tokens", reason)  # fmt: skip

    def _match(self, problem: Mapping[str, Any]) -> Optional[Spec]:
        """A program whose only product has this problem."""
        options = storage_options(problem["storage"])
        for spec in _specs(problem):
            try:
                own = list_products(spec.mlir(), self.gpu, [problem["tokens"]], options)
            except CompileError:
                continue
            if [one["tuning"] for one in own] == [problem]:
                return spec
        return None


def _specs(problem: Mapping[str, Any]) -> Iterator[Spec]:
    return specs_of(dict(problem))


def _plain(spec: Any) -> Any:
    """The same without what its problem does not depend on."""
    if isinstance(spec, LinearSpec):
        return replace(spec, bias=False, activation="none")
    return spec

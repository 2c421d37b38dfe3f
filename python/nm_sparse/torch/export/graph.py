# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walks a graph of torch.export, and writes a function of MLIR."""

from __future__ import annotations

import copy
import operator
import re
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from ..weight.spec import LinearSpec
from ..weight.weight import PackedWeight
from . import elementwise, reductions, views
from .context import LOWERINGS, TYPES, Context, is_size
from .products import lower_packed, packed_operands
from .text import ExportError, Value, unique_name

_TABLES = (elementwise, reductions, views)  # which fill LOWERINGS when imported
KINDS = {
    InputKind.USER_INPUT: "input",
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}


# The name that torch.export gives to a component of a packed weight.
_PART = re.compile(r"parametrizations\.weight\.original\d+$")


@dataclass(frozen=True)
class Argument:
    """An argument of the exported function.

    name:        in the text, without the percent sign.
    kind:        "input", "parameter", "buffer", "constant", or "weight" for a packed
                 weight, which is one argument in the text and one for each of its
                 components in a compiled program.
    target:      name of the tensor in the model's state_dict; of a weight that of its
                 values, without ".values"; of an input its name.
    type:        in MLIR.
    components:  of a weight, name of the tensor by name of the component; of one in
                 another form than the canonical one, of those that the layer has.
    spec:        of a weight, its encoding, shape, type and storage.
    """

    name: str
    kind: str
    target: str
    type: str
    components: Dict[str, str] = field(default_factory=dict)
    spec: Optional[LinearSpec] = None


def _refuse_elements(program: ExportedProgram) -> None:
    """Raises ExportError where a weight has elements of 8 bits with scales."""
    for node in program.graph.nodes:
        namespace = getattr(node.target, "namespace", "")
        specs = [one for one in node.args if isinstance(one, str)]
        if namespace == "nm_sparse" and any('"elements"' in one for one in specs):
            raise ExportError(
                f"{node.name} ({node.target}) multiplies by elements of 8 bits with "
                "scales: legal are weights without; put NMLinear.from_packed("
                "layer.weight.dequantize(), layer.bias) in the place of such layers, "
                "or call to_dense_ of the model"
            )


def freeze_weights(program: ExportedProgram) -> ExportedProgram:
    """The program, whose packed weights ask for no gradients: parts of them that are
    integers could not be parameters otherwise. Nothing else is copied."""
    _refuse_elements(program)
    frozen = copy.copy(program)
    frozen._state_dict = {
        name: nn.Parameter(tensor.detach(), requires_grad=False)
        if isinstance(tensor, PackedWeight)
        else tensor
        for name, tensor in program.state_dict.items()
    }
    return frozen


def describe_weight(targets: Sequence[str], spec: LinearSpec) -> Argument:
    """A packed weight as an argument, whose name and type in the text come later.

    targets:  names of its components in the exported program, in their order.
    """
    names = {
        kind: _PART.sub(kind, target) for kind, target in zip(spec.components, targets)
    }
    target = names["values"]
    target = target[: -len(".values")] if target.endswith(".values") else target
    name = f"{target}_weight" if target else "weight"
    return Argument(name, "weight", target, "", names, spec)


class Walk:
    """One graph, from placeholders to output."""

    def __init__(self, program: ExportedProgram, name: str) -> None:
        self.program, self.name = program, name
        self.context = Context()
        self.arguments: List[Argument] = []
        self.values: List[Value] = []  # of the arguments
        self.results: List[Value] = []
        # Components of weights: the name in the exported program, by that in the model.
        self.sources: Dict[str, str] = {}
        self._names: Set[str] = set()
        self._specs = {
            spec.arg.name: spec
            for spec in program.graph_signature.input_specs
            if hasattr(spec.arg, "name")
        }

    def run(self) -> str:
        """The module."""
        nodes = list(self.program.graph.nodes)
        self._add_arguments([node for node in nodes if node.op == "placeholder"])
        for node in nodes:
            self.context.node = node
            if node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                self._output(node)
            elif node.op != "placeholder":
                raise self.context.error(f"is a {node.op}", "a call of an operator")
        return self._text()

    def _add_arguments(self, placeholders: List[Node]) -> None:
        packed = self._find_packed()
        parts = {node for components in packed for node in components}
        plain = [node for node in placeholders if node not in parts]
        for node in sorted(plain, key=lambda node: not self._is_input(node)):
            self.context.node = node
            # Every input is an argument; of the others those that are used.
            if (node.users or self._is_input(node)) and not is_size(node):
                self._add_plain(node)
        for components, spec in packed.items():
            self._add_weight(components, spec)
        self._add_symbols()

    def _is_input(self, node: Node) -> bool:
        spec = self._specs.get(node.name)
        return spec is not None and spec.kind == InputKind.USER_INPUT

    def _find_packed(self) -> Dict[Tuple[Node, ...], LinearSpec]:
        found: Dict[Tuple[Node, ...], LinearSpec] = {}
        for node in self.program.graph.nodes:
            self.context.node = node
            for components, spec in packed_operands(node):
                self._check_components(components)
                known = found.setdefault(components, spec)
                if (known.encoding, known.shape) != (spec.encoding, spec.shape):
                    raise self.context.error("reads a weight by two encodings", "one")
        return found

    def _check_components(self, components: Tuple[Any, ...]) -> None:
        for part in components:
            if not isinstance(part, Node) or part.op != "placeholder":
                raise self.context.error(
                    f"has the component {part}, which is computed",
                    "a parameter or buffer; export without torch.autocast",
                )
            others = [user for user in part.users if not packed_operands(user)]
            if others:
                raise self.context.error(
                    f"shares the component {part} with {others[0].target}",
                    "a use by operators of nm_sparse alone",
                )

    def _add_plain(self, node: Node) -> None:
        value, spec = node.meta.get("val"), self._specs.get(node.name)
        if not isinstance(value, torch.Tensor):
            raise self.context.error(
                f"is {type(value).__name__}", "a tensor; make other inputs constants"
            )
        kind = KINDS.get(spec.kind, "") if spec else ""
        if kind in ("buffer", "constant") and value.ndim == 0:
            self._add_number(node, spec)
            return
        if not kind:
            raise self.context.error(f"is {spec and spec.kind}", "a tensor")
        target = (spec.target if spec else None) or node.name
        self._add(node, Value("", tuple(self.context.shape()), self.context.dtype()),
                  Argument(target, kind, target, ""))  # fmt: skip

    def _add_number(self, node: Node, spec: Any) -> None:
        """A buffer of one element is a constant of the text."""
        state = {**self.program.constants, **self.program.state_dict}
        number = state[spec.target].item()
        dtype = self.context.dtype()
        self.context.values[node] = self.context.writer.filled([], dtype, number)

    def _add_weight(self, components: Tuple[Node, ...], spec: LinearSpec) -> None:
        self.context.node = components[0]
        if spec.torch_dtype not in TYPES or not spec.torch_dtype.is_floating_point:
            raise self.context.error(f"is of {spec.dtype}", "f16, bf16, f32 or f64")
        targets = [self._specs[part.name].target or part.name for part in components]
        alias = self.context.writer.alias(spec.encoding.mlir(), "weight")
        value = Value("", spec.shape, spec.dtype, alias)
        argument = describe_weight(targets, spec)
        self.sources.update(zip(argument.components.values(), targets))
        self._add(components[0], value, argument)

    def _add(self, node: Node, value: Value, argument: Argument) -> None:
        name = unique_name(argument.name, self._names)
        value = Value(f"%{name}", value.shape, value.dtype, value.encoding)
        self.context.values[node] = value
        self.values.append(value)
        self.arguments.append(replace(argument, name=name, type=value.type))

    def _add_symbols(self) -> None:
        """Which size of which argument each symbol of a dynamic size is."""
        writer = self.context.writer
        for value in self.values:
            for dim, size in enumerate(value.shape):
                if not isinstance(size, int) and size.is_Symbol:
                    if size not in writer.symbols:
                        writer.symbols[size] = writer.dimension(value, dim)
        for value in self.values:
            for dim, size in enumerate(value.shape):
                self._solve(value, dim, size)

    def _solve(self, value: Value, dim: int, size: Any) -> None:
        """A symbol of which an input has a multiple."""
        if isinstance(size, int) or size.free_symbols <= set(
            self.context.writer.symbols
        ):
            return
        factor, rest = size.as_coeff_Mul()
        if not rest.is_Symbol:
            raise ExportError(
                f"dimension {dim} of {value.name} has size {size}: legal is a dynamic "
                "dimension, a multiple of one, or an expression of those of others"
            )
        writer = self.context.writer
        writer.prologue.append(
            f"{(name := writer.fresh())} = arith.divui "
            f"{writer.dimension(value, dim)}, {writer.constant(int(factor), 'index')} "
            ": index"
        )
        writer.symbols[rest] = name

    def _call(self, node: Node) -> None:
        context, target = self.context, node.target
        if is_size(node) or _is_check(node):
            return
        if target is operator.getitem:
            place = node.args[1]
            context.values[node] = context.values[node.args[0]][place]
            return
        if packed_operands(node):
            context.values[node] = lower_packed(context, node)
            return
        if target not in LOWERINGS:
            raise context.error(
                "is not known",
                "an operator of docs/Export.md; rewrite the model without it, or "
                "export a part of it",
            )
        context.values[node] = LOWERINGS[target](context, node)

    def _output(self, node: Node) -> None:
        signature = self.program.graph_signature.output_specs
        for spec, argument in zip(signature, node.args[0]):  # type: ignore[arg-type]
            if spec.kind != OutputKind.USER_OUTPUT:
                raise self.context.error(
                    f"changes {spec.target} ({spec.kind.name})",
                    "a model that changes neither buffers nor inputs",
                )
            if argument is None:
                continue
            self.results.append(self.context.value(argument))

    def _text(self) -> str:
        writer = self.context.writer
        arguments = ",\n    ".join(f"{v.name}: {v.type}" for v in self.values)
        types = [value.type for value in self.results]
        result = types[0] if len(types) == 1 else f"({', '.join(types)})"
        names = ", ".join(value.name for value in self.results)
        lines = [*writer.prologue, *writer.lines]
        lines.append(f"return {names} : {', '.join(types)}" if types else "return")
        body = "\n".join(f"  {line}" for line in lines)
        aliases = "\n".join(f"{a} = {text}" for text, a in writer.aliases.items())
        return (
            f"{aliases}\n\nfunc.func @{self.name}(\n    {arguments})\n    -> {result} "
            f"{{\n{body}\n}}\n"
        )


def _is_check(node: Node) -> bool:
    """Whether a node only says what must hold of sizes, or computes a truth of them."""
    value: Optional[Any] = node.meta.get("val")
    if isinstance(value, (torch.SymBool, bool)):
        return True
    name = getattr(getattr(node.target, "_schema", None), "name", "")
    return name in (
        "aten::_assert_scalar",
        "aten::_assert_tensor_metadata",
        "aten::sym_constrain_range",
        "aten::sym_constrain_range_for_size",
    )

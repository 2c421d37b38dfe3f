# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of torch.export for importers that do not know packed weights.

An importer, such as IREE's or that of torch-mlir, takes operators of ATen. So each
product with a packed weight becomes one with a dense weight, which is an input of the
program. Once its text has reached linalg, the encoding goes to the argument that this
input has become: only the type of an argument needs one (docs/Input.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, Tuple

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from ..weight.spec import LinearSpec
from . import Exported, _drop_aliases
from .context import TYPES
from .dense_products import DECOMPOSITIONS, UNPACK
from .graph import KINDS, Argument, describe_weight, freeze_weights
from .imported_text import name_arguments
from .text import ExportError, tensor_type, unique_name


@dataclass(frozen=True)
class Importable:
    """A program for an importer, and what its text becomes.

    program:    of operators of ATen. All tensors are inputs, in one list: those of the
                model, then its parameters and buffers, then packed weights as dense
                ones, [outputs, inputs]. Buffers of rank 0 stay what they are.
    arguments:  what each of these inputs is, in order.
    results:    how many tensors it returns.
    """

    program: ExportedProgram
    arguments: Tuple[Argument, ...]
    results: int
    _state: Dict[str, Tensor] = field(repr=False, default_factory=dict)

    def encode(self, text: str, name: str = "main") -> Exported:
        """The model with encodings: as `export_mlir` makes it, for nm-compile, nm-run,
        `nm_sparse.compile` and IREE.

        text:  what an importer has made of `program`, lowered to linalg on tensors, as
               MLIR prints it. Its function takes what `program` takes, in this order.
        name:  of that function.

        Raises ExportError when there is no such function or its arguments are others.
        """
        text, names = name_arguments(text, name, self.arguments)
        given = zip(self.arguments, names)
        arguments = tuple(replace(argument, name=one) for argument, one in given)
        return Exported(text, arguments, self.results, self._state)


def to_importable(
    program: ExportedProgram,
    decompositions: Mapping[Any, Callable[..., Any]] = MappingProxyType({}),
) -> Importable:
    """Makes a program for an importer that does not know packed weights.

    program:         of `torch.export.export`, of a model whose layers with packed
                     weights are `NMLinear` or call the operators of nm_sparse. It stays
                     as it is.
    decompositions:  of operators of one's own that call these: the functions that they
                     are made of, by operator.

    Raises ExportError when a weight is computed, or used by other operators, too, or
    not of the type that it is multiplied with; when the program changes its buffers or
    inputs; and for inputs that are sizes.
    """
    table = {**decompositions, **DECOMPOSITIONS}
    with torch.no_grad():
        program = freeze_weights(program).run_decompositions(table)
        _drop_aliases(program.graph)
        program.graph.eliminate_dead_code()
    copy = _Copy(program)
    made = copy.run()
    state: Dict[str, Tensor] = {**program.constants, **program.state_dict}
    state.update({name: state[source] for name, source in copy.sources.items()})
    return Importable(made, tuple(copy.arguments), copy.results, state)


class _Copy:
    """A copy of a program whose tensors are inputs."""

    def __init__(self, program: ExportedProgram) -> None:
        self.program, self.graph = program, Graph()
        self.nodes: Dict[Node, Node] = {}  # of the program, in the copy
        self.specs: List[InputSpec] = []
        self.arguments: List[Argument] = []
        # Components of weights: the name in the program, by that in the model.
        self.sources: Dict[str, str] = {}
        self.results = 0
        nodes = list(program.graph.nodes)
        placeholders = [node for node in nodes if node.op == "placeholder"]
        self._given = dict(zip(placeholders, program.graph_signature.input_specs))
        self._unpacked = [node for node in nodes if node.target is UNPACK]
        self._others = [n for n in nodes if n.op != "placeholder"]
        self._names = {node.name for node in nodes}

    def run(self) -> ExportedProgram:
        parts = {part for node in self._unpacked for part in node.args[0]}
        plain = [node for node in self._given if node not in parts]
        for node in sorted(plain, key=self._rank):
            self._add_plain(node)
        known: Dict[Tuple[Any, ...], Node] = {}
        for node in self._unpacked:
            key = tuple(node.args[0])
            if key not in known:
                self._add_weight(node)
                known[key] = node
            elif known[key].args[1] != node.args[1]:
                raise ExportError(
                    f"the packed weight {key[0]} is read by two encodings: legal is one"
                )
            self.nodes[node] = self.nodes[known[key]]
        for node in self._others:
            if node not in self.nodes:
                copy = self.graph.node_copy(node, self.nodes.__getitem__)
                self.nodes[node] = copy
        return self._build()

    def _rank(self, node: Node) -> int:
        """The place among inputs. What is none comes first, as in torch's programs."""
        if self._given[node].kind == InputKind.USER_INPUT:
            return 1
        return 0 if node.meta["val"].ndim == 0 else 2

    def _add_plain(self, node: Node) -> None:
        spec, value = self._given[node], node.meta.get("val")
        is_given = spec.kind == InputKind.USER_INPUT
        if not is_given and not node.users:
            return
        copy = self.nodes[node] = self.graph.node_copy(node)
        copy.target = copy.name  # which is another one for words of Python
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise ExportError(
                f"the input {node.name} is a {type(value).__name__}: legal is a tensor "
                "or a constant; leave its size out of dynamic_shapes"
            )
        if not isinstance(value, Tensor) or (value.ndim == 0 and not is_given):
            self.specs.append(spec)
            return
        if value.dtype not in TYPES:
            legal = ", ".join(map(str, TYPES))
            raise ExportError(f"{node.name} is {value.dtype}: legal is {legal}")
        target = spec.target or node.name
        kind = tensor_type(value.shape, TYPES[value.dtype])
        self._add_input(copy, Argument(target, KINDS[spec.kind], target, kind))

    def _add_weight(self, node: Node) -> None:
        parts, spec = node.args[0], LinearSpec.parse(node.args[1])
        computed = [part for part in parts if part not in self._given]
        if computed:
            raise ExportError(
                f"the component {computed[0]} of a packed weight is computed: legal is "
                "a parameter or a buffer; export without torch.autocast"
            )
        targets = [self._given[part].target or part.name for part in parts]
        kind = tensor_type(spec.shape, spec.dtype, spec.encoding.mlir())
        argument = replace(describe_weight(targets, spec), type=kind)
        for name, part in zip(argument.components.values(), parts):
            others = [user for user in part.users if user.target is not UNPACK]
            if others:
                raise ExportError(
                    f"{name}, of a packed weight, is used by {others[0].target}: legal "
                    "are operators of nm_sparse alone"
                )
        self.sources.update(zip(argument.components.values(), targets))
        name = unique_name(argument.name, self._names)
        copy = self.nodes[node] = self.graph.placeholder(name)
        copy.meta["val"] = node.meta["val"]
        self._add_input(copy, argument)

    def _add_input(self, node: Node, argument: Argument) -> None:
        place = TensorArgument(name=node.name)
        self.specs.append(InputSpec(InputKind.USER_INPUT, place, None))
        self.arguments.append(argument)

    def _outputs(self) -> List[OutputSpec]:
        found = []
        given = self.program.graph_signature.output_specs
        for spec, node in zip(given, self._others[-1].args[0]):  # type: ignore[arg-type]
            if spec.kind != OutputKind.USER_OUTPUT:
                raise ExportError(
                    f"the program changes {spec.target} ({spec.kind.name}): legal is "
                    "one that changes neither buffers nor inputs"
                )
            if isinstance(spec.arg, TensorArgument):
                self.results += 1
                place = TensorArgument(name=self.nodes[node].name)
                spec = OutputSpec(spec.kind, place, None)
            found.append(spec)
        return found

    def _build(self) -> ExportedProgram:
        inputs = [one.arg for one in self.specs if one.kind == InputKind.USER_INPUT]
        outputs = self._outputs()
        whole = self.program.module_call_graph[0].signature
        assert whole is not None
        signature = ModuleCallSignature(
            inputs=inputs,
            outputs=[one.arg for one in outputs],
            in_spec=pytree.tree_flatten(((0,) * len(inputs), {}))[1],
            out_spec=whole.out_spec,
        )
        return ExportedProgram(
            self.program.graph_module,
            self.graph,
            ExportGraphSignature(self.specs, outputs),
            self.program.state_dict,
            self.program.range_constraints,
            [ModuleCallEntry("", signature)],
            constants=self.program.constants,
        )

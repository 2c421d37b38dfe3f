# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch models as MLIR text whose sparse weights have encodings.

`export_mlir` takes what `torch.export` takes. The text is `linalg` on tensors, as
docs/Input.md describes it: for nm-compile, nm-run and `nm_sparse.compile`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ...encoding import Packed
from ...files.tensor_file import PathLike
from ..weight.storage import from_storage
from ..weight.weight import PackedWeight
from .dense_products import PLAIN
from .graph import Argument, Walk, freeze_weights
from .iree import write_iree, write_parameters
from .text import ExportError

__all__ = ["Argument", "ExportError", "Exported", "export_mlir"]

# Operators that have a form of their own here, and stay whole.
_ALIASES = (torch.ops.aten.alias.default, torch.ops.aten.detach.default)
_WHOLE = (
    torch.ops.aten.linear.default,
    torch.ops.aten.silu.default,
    torch.ops.aten.gelu.default,
    torch.ops.aten._safe_softmax.default,
)


@dataclass(frozen=True)
class Exported:
    """A model as MLIR.

    text:       the module, with one function.
    arguments:  what each argument of the function is, in order.
    results:    how many tensors it returns: the tensors of the model's output, in the
                order of torch.utils._pytree.
    """

    text: str
    arguments: Tuple[Argument, ...]
    results: int
    _state: Dict[str, Tensor] = field(repr=False, default_factory=dict)
    _packed: Dict[str, Packed] = field(repr=False, default_factory=dict)

    @property
    def parameters(self) -> Dict[str, str]:
        """{argument: name in the model's state_dict} of all but inputs and packed
        weights, whose components `arguments` names."""
        kinds = ("parameter", "buffer", "constant")
        return {one.name: one.target for one in self.arguments if one.kind in kinds}

    def operands(self, *args: Any) -> List[Union[Tensor, Packed]]:
        """What `nm_sparse.compile(self.text)` is called with, in its order: tensors,
        and packed weights as they were when this was called first.

        args:  the inputs of the model, as for `torch.export`.

        Raises ExportError when there are more or fewer tensors than the function has
        inputs.
        """
        tensors = [x for x in pytree.tree_leaves(args) if isinstance(x, Tensor)]
        inputs = [one.name for one in self.arguments if one.kind == "input"]
        if len(tensors) != len(inputs):
            raise ExportError(
                f"{len(tensors)} tensors are given: legal are {len(inputs)}, for "
                f"{', '.join(inputs)}"
            )
        found: List[Union[Tensor, Packed]] = []
        given = iter(tensors)
        for one in self.arguments:
            if one.kind == "input":
                found.append(next(given))
            elif one.kind == "weight":
                found.append(self._weight(one))
            else:
                found.append(self._state[one.target].detach())
        return found

    def to_iree(self, path: PathLike, *options: str) -> Dict[str, Any]:
        """Writes the model as text for `iree-compile` (docs/IREE.md). The function
        takes the inputs alone: all else is a parameter, for `save_parameters`.

        options:  further ones of nm-compile, such as "--object", "cubin".

        Returns the manifest of the kernels. Raises CompileError where the compiler
        refuses the model or an option.
        """
        return write_iree(path, self.text, self.arguments, options)

    def save_parameters(self, path: PathLike, manifest: Mapping[str, Any]) -> None:
        """Writes the parameters of a model for IREE to a safetensors file: weights as
        the kernels of `manifest` read them, which `to_iree` returned. IREE reads files
        whose names end in .safetensors.

        Raises ExportError when the manifest is of another model.
        """
        write_parameters(path, manifest, self.arguments, self._read)

    def _read(self, argument: Argument) -> Union[Tensor, Packed]:
        """The value that the model has now for an argument, other than an input."""
        if argument.kind == "weight":
            return self._pack(argument)
        return self._state[argument.target]

    def _weight(self, argument: Argument) -> Packed:
        """The same object each time: a program keeps its copy on a GPU by it."""
        if argument.name not in self._packed:
            self._packed[argument.name] = self._pack(argument)
        return self._packed[argument.name]

    def _pack(self, argument: Argument) -> Packed:
        spec = argument.spec
        assert spec is not None
        stored = [self._state[name] for name in argument.components.values()]
        parts = dict(zip(spec.canonical.components, from_storage(stored, spec)))
        weight = PackedWeight.from_components(parts, spec.encoding, spec.shape)
        return weight.to_packed()


def _drop_aliases(graph: torch.fx.Graph) -> None:
    """Puts a parameter in the place of what is the same but for gradients."""
    for node in graph.nodes:
        if node.op == "call_function" and node.target in _ALIASES:
            (source,) = node.args
            if source.op == "placeholder":
                node.replace_all_uses_with(source)


def export_mlir(
    model: nn.Module,
    args: Sequence[Any],
    dynamic_shapes: Any = None,
    name: str = "main",
) -> Exported:
    """Exports a model to MLIR text.

    model:           in eval(); its layers with packed weights are `NMLinear` or call
                     the operators of nm_sparse.
    args:            example inputs, a tuple.
    dynamic_shapes:  as for `torch.export.export`: which sizes may differ.
    name:            of the function. It takes the inputs, then parameters and buffers,
                     then packed weights, each as a dense tensor with an encoding.

    Raises ExportError, which names node, operator, module and line, for an operator
    that has no form in MLIR here, and whatever torch.export raises.
    """
    if not re.fullmatch(r"[A-Za-z_][\w$.]*", name):
        raise ExportError(f"name is {name!r}: legal is a name of MLIR, such as 'main'")
    if isinstance(args, Tensor):
        raise ExportError("args is a tensor: legal is a tuple of inputs, such as (x,)")
    with torch.no_grad():
        program = torch.export.export(
            model, tuple(args), dynamic_shapes=dynamic_shapes, strict=False
        )
        program = freeze_weights(program)
        table = torch.export.default_decompositions()
        for operator in _WHOLE:
            table.pop(operator, None)
        table.update(PLAIN)
        program = program.run_decompositions(table)
        _drop_aliases(program.graph)
        program.graph.eliminate_dead_code()
    walk = Walk(program, name)
    text = walk.run()
    state: Dict[str, Tensor] = {**program.constants, **program.state_dict}
    state.update({name: state[source] for name, source in walk.sources.items()})
    return Exported(text, tuple(walk.arguments), len(walk.results), state)

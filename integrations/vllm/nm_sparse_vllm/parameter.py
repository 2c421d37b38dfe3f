# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters that load one rank's part of a packed weight.

vLLM's layers say which outputs or inputs a rank has, in numbers of those; here they
become slices of components.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Set, Tuple, Union

import torch
from torch import Tensor
from vllm.model_executor.layers.linear import (
    LinearBase,
    MergedColumnParallelLinear,
    QKVParallelLinear,
    ReplicatedLinear,
    RowParallelLinear,
)
from vllm.model_executor.parameter import BasevLLMParameter

from nm_sparse import Encoding, EncodingError, packed_shapes
from nm_sparse.encoding.slices import component_slices

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_SIGNLESS = {torch.uint16: torch.int16, torch.uint32: torch.int32}
ShardId = Union[int, str, Tuple[int, ...], None]


@dataclass(frozen=True)
class Part:
    """What a rank has of a layer of the checkpoint.

    number:      which of the layers that vLLM makes one of: 0 for q, 1 for k, ...
    shape:       [N, K] of the whole weight.
    dim:         what is sharded: 0 for outputs, 1 for inputs.
    begin, end:  the part.
    """

    number: int
    shape: Tuple[int, int]
    dim: int
    begin: int
    end: int


class LayerLoader:
    """What the parameters of a layer have in common.

    layer_loader:  the loader that the layer has for its parameters, a method of it.
    encoding:      of its weight.
    sizes:         outputs on this rank, of each layer that vLLM makes one of.
    inputs:        (on this rank, of the whole weight).
    prefix:        the name of the layer.
    """

    def __init__(
        self,
        layer_loader: Callable[..., None],
        encoding: Encoding,
        sizes: List[int],
        inputs: Tuple[int, int],
        prefix: str,
    ) -> None:
        self.layer_loader, self.encoding, self.prefix = layer_loader, encoding, prefix
        self.sizes, self.inputs = list(sizes), inputs

    @property
    def layer(self) -> LinearBase:
        return self.layer_loader.__self__  # type: ignore[attr-defined, no-any-return]

    def error(self, name: str, problem: str) -> EncodingError:
        return EncodingError(f"{self.prefix}.{name}: {problem}")

    def check(self) -> None:
        """Raises EncodingError unless each rank has whole panels and windows."""
        layer, (own, whole) = self.layer, self.inputs
        count = layer.tp_size
        is_row = isinstance(layer, RowParallelLinear)
        if count == 1 or isinstance(layer, ReplicatedLinear):
            return
        for number, size in enumerate(self.sizes):
            copies = 1
            if isinstance(layer, QKVParallelLinear) and number > 0:
                copies = layer.num_kv_head_replicas
            n = size if is_row else size * count // copies
            try:
                self.slices(
                    Part(number, (n, whole), int(is_row), 0, own if is_row else size)
                )
            except EncodingError as error:
                raise EncodingError(
                    f"{self.prefix} cannot be shared by {count} GPUs: {error}"
                ) from None

    def slices(self, part: Part) -> Any:
        """Those of each component, by name, that the part has."""
        e = self.encoding
        return component_slices(e, part.shape, part.dim, part.begin, part.end)

    def columns(self, name: str, number: int) -> slice:
        """Where a component of one of the layers lies among those of all."""
        widths = [self.shape(name, size)[-1] for size in self.sizes[: number + 1]]
        return slice(sum(widths[:-1]), sum(widths))

    def shape(self, name: str, outputs: int) -> Tuple[int, ...]:
        """Shape of a component on this rank, of so many outputs."""
        return packed_shapes(self.encoding, (outputs, self.inputs[0]))[name]

    def load(
        self, parameter: "PartParameter", loaded: Tensor, shard_id: ShardId = None
    ) -> None:
        """The loader of all parameters.

        loaded:    the tensor of the checkpoint.
        shard_id:  which of the layers that vLLM makes one of: "q", "k", "v" or a
                   number; several, or None for all, where they are one in the
                   checkpoint, too.
        """
        layer, whole = self.layer, self.inputs[1]
        is_merged = isinstance(layer, (MergedColumnParallelLinear, QKVParallelLinear))
        if isinstance(layer, ReplicatedLinear) or (
            is_merged and shard_id is None and layer.tp_size == 1
        ):
            self.sizes = [sum(self.sizes)]  # one weight, whatever it is made of
            parameter.resize(self)
            parameter.take(loaded, Part(0, (self.sizes[0], whole), 0, 0, self.sizes[0]))
        elif is_merged and not isinstance(shard_id, (int, str)):
            ids, sizes = _merged(layer, shard_id)
            shape, begin = (sum(sizes), whole), 0
            for number, (one, size) in enumerate(zip(ids, sizes)):
                part = Part(number, shape, 0, begin, begin + size)
                self.layer_loader(parameter, parameter.cut(loaded, part), one)
                begin += size
        elif shard_id is None:
            self.layer_loader(parameter, loaded)
        else:
            self.layer_loader(parameter, loaded, shard_id)


def _merged(
    layer: LinearBase, shard_id: Optional[Tuple[int, ...]]
) -> Tuple[List[Any], List[int]]:
    """Ids and outputs of the layers that are one in the checkpoint."""
    if isinstance(layer, QKVParallelLinear):
        heads = (layer.total_num_heads, *(layer.total_num_kv_heads,) * 2)
        widths = (layer.head_size, layer.head_size, layer.v_head_size)
        return ["q", "k", "v"], [n * width for n, width in zip(heads, widths)]
    ids = list(range(len(layer.output_sizes)) if shard_id is None else shard_id)
    return ids, [layer.output_sizes[one] for one in ids]


class PartParameter(BasevLLMParameter):
    """A tensor of a layer, of which this rank has a part.

    loader:  that of the layer.
    name:    of the tensor in the checkpoint, behind that of the layer.
    """

    def __init__(self, data: Tensor, loader: LayerLoader, name: str) -> None:
        super().__init__(data=data, weight_loader=loader.load)
        self.loader, self.name_in_layer = loader, name
        self.parts_loaded: Set[int] = set()

    def take(self, loaded: Tensor, part: Part) -> None:
        """Copies this rank's part of a tensor of the checkpoint.

        Raises EncodingError when the tensor does not fit, or cannot be cut there.
        """
        try:
            self.copy_part(self.cut(loaded, part), part)
        except EncodingError as error:
            raise self.loader.error(self.name_in_layer, str(error)) from None
        self.parts_loaded.add(part.number)

    def cut(self, loaded: Tensor, part: Part) -> Tensor:
        """The part of a tensor of the checkpoint."""
        raise NotImplementedError

    def copy_part(self, own: Tensor, part: Part) -> None:
        """Keeps what `cut` returns."""
        raise NotImplementedError

    def resize(self, loader: LayerLoader) -> None:
        """Makes room for layers that turned out to be one in the checkpoint."""

    # Layers of vLLM call these, with numbers of outputs on this rank.

    def load_column_parallel_weight(self, loaded_weight: Tensor) -> None:
        size = self.loader.sizes[0]
        self._take_outputs(loaded_weight, 0, self.tp_rank, size * self.tp_size)

    def load_merged_column_weight(self, loaded_weight: Tensor, **kwargs: Any) -> None:
        number = self._number(**kwargs)
        whole = kwargs["shard_size"] * self.tp_size
        self._take_outputs(loaded_weight, number, self.tp_rank, whole)

    def load_qkv_weight(self, loaded_weight: Tensor, **kwargs: Any) -> None:
        number, copies = self._number(**kwargs), 1
        if kwargs["shard_id"] != "q":
            copies = kwargs["num_heads"]  # ranks that have the same
        whole = kwargs["shard_size"] * self.tp_size // copies
        self._take_outputs(loaded_weight, number, self.tp_rank // copies, whole)

    def load_row_parallel_weight(self, loaded_weight: Tensor) -> None:
        own, whole = self.loader.inputs
        begin = self.tp_rank * own
        shape = (self.loader.sizes[0], whole)
        self.take(loaded_weight, Part(0, shape, 1, begin, begin + own))

    def _take_outputs(self, loaded: Tensor, number: int, at: int, whole: int) -> None:
        size, inputs = self.loader.sizes[number], self.loader.inputs[1]
        self.take(loaded, Part(number, (whole, inputs), 0, at * size, (at + 1) * size))

    def _number(self, shard_offset: int, shard_size: int, **kwargs: Any) -> int:
        """Which of the layers has these outputs."""
        sizes = self.loader.sizes
        for number, size in enumerate(sizes):
            if shard_offset == sum(sizes[:number]) and shard_size == size:
                return number
        raise self.loader.error(
            self.name_in_layer,
            f"vLLM asks for outputs {shard_offset} to {shard_offset + shard_size}: "
            f"legal are those of one of the layers that it has merged, {sizes}",
        )


class ComponentParameter(PartParameter):
    """A component of packed weights, side by side: docs/Encoding.md defines them."""

    def cut(self, loaded: Tensor, part: Part) -> Tensor:
        loaded = loaded.view(_SIGNLESS.get(loaded.dtype, loaded.dtype))
        legal = packed_shapes(self.loader.encoding, part.shape)[self.name_in_layer]
        if tuple(loaded.shape) != legal:
            raise EncodingError(
                f"the checkpoint has {list(loaded.shape)}: a weight {list(part.shape)} "
                f"of {self.loader.encoding} needs {list(legal)}"
            )
        # Floats become the type of the model, as those of dense weights do.
        is_number = self.dtype.is_floating_point and loaded.dtype in _FLOATS
        if loaded.dtype != self.dtype and not is_number:
            raise EncodingError(
                f"the checkpoint has {loaded.dtype}: legal is {self.dtype}"
                + (" or another float" if self.dtype.is_floating_point else "")
            )
        return loaded[self.loader.slices(part)[self.name_in_layer]]

    def copy_part(self, own: Tensor, part: Part) -> None:
        columns = self.loader.columns(self.name_in_layer, part.number)
        self.data[..., columns].copy_(own)

    def resize(self, loader: LayerLoader) -> None:
        shape = loader.shape(self.name_in_layer, loader.sizes[0])
        if tuple(self.shape) != shape:
            self.data = self.data.new_empty(shape)


class StateParameter(PartParameter):
    """What the checkpoint says of a weight, compared with what config.json says."""

    def cut(self, loaded: Tensor, part: Part) -> Tensor:
        try:
            stored = json.loads(bytes(loaded.cpu().tolist()).decode())
            found = Encoding(stored["encoding"]), tuple(stored["shape"])
        except (ValueError, TypeError, KeyError):
            raise EncodingError("the checkpoint has what no NMLinear wrote") from None
        if found != (self.loader.encoding, part.shape):
            raise EncodingError(
                f"the checkpoint has {found[0]} of shape {list(found[1])}: config.json "
                f"and the model say {self.loader.encoding} of {list(part.shape)}"
            )
        shape = list(part.shape)
        shape[part.dim] = part.end - part.begin
        text = json.dumps({"encoding": stored["encoding"], "shape": shape})
        return torch.tensor(list(text.encode()), dtype=torch.uint8)

    def copy_part(self, own: Tensor, part: Part) -> None:
        """Holds nothing."""

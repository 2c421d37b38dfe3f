# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers of vLLM with packed weights: `NMSparseLinearMethod`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import Parameter
from vllm.model_executor.layers.linear import (
    LinearMethodBase,
    register_weight_loader_v2_supported_method,
)

from nm_sparse import Encoding, EncodingError
from nm_sparse.torch import LinearSpec, NMLinear, PackedWeight, store_for_kernels_

from .parameter import (
    ComponentParameter,
    LayerLoader,
    PartParameter,
    StateParameter,
)

_FLOATS = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}
_STATE = "_extra_state"


@dataclass(frozen=True)
class Product:
    """One call of the operator, for some outputs of a layer.

    names:       attributes of the layer: the operands, in their order.
    spec:        what the operator is told.
    begin, end:  the outputs.
    """

    names: Tuple[str, ...]
    spec: str
    begin: int
    end: int


@register_weight_loader_v2_supported_method
class NMSparseLinearMethod(LinearMethodBase):
    """y = x W^T + bias with a packed W.

    encoding:  of W, and of each layer that vLLM has merged in it.
    prefix:    the name of the layer.
    """

    def __init__(self, encoding: Encoding, prefix: str) -> None:
        self.encoding, self.prefix = encoding, prefix

    def create_weights(
        self,
        layer: torch.nn.Module,
        input_size_per_partition: int,
        output_partition_sizes: List[int],
        input_size: int,
        output_size: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        """Parameters that load this rank's part of the canonical components.

        Raises EncodingError when a part would cut a panel or a window, or the type of
        the model is none that the operator takes.
        """
        if params_dtype not in _FLOATS:
            legal = ", ".join(str(one) for one in _FLOATS)
            raise EncodingError(
                f"{self.prefix}: the type is {params_dtype}: legal is {legal}"
            )
        loader = LayerLoader(
            extra_weight_attrs["weight_loader"],
            self.encoding,
            output_partition_sizes,
            (input_size_per_partition, input_size),
            self.prefix,
        )
        loader.check()
        spec = LinearSpec(self.encoding, (1, 1), _FLOATS[params_dtype])
        for name, (_, kind) in spec.components.items():
            shapes = [loader.shape(name, size) for size in output_partition_sizes]
            shape = (*shapes[0][:-1], sum(shape[-1] for shape in shapes))
            data = torch.empty(shape, dtype=kind)
            layer.register_parameter(
                name, ComponentParameter(data=data, loader=loader, name=name)
            )
        nothing = torch.empty(0, dtype=torch.uint8)
        state = StateParameter(data=nothing, loader=loader, name=_STATE)
        layer.register_parameter(_STATE, state)

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Turns what was loaded into what kernels read, and compiles them on a GPU.

        Raises EncodingError when a tensor was not loaded, or is damaged.
        """
        own = {
            name: parameter
            for name, parameter in layer.named_parameters(recurse=False)
            if isinstance(parameter, PartParameter)
        }
        if not own:
            return  # done before
        loader = own["values"].loader
        for name, parameter in own.items():
            missing = set(range(len(loader.sizes))) - parameter.parts_loaded
            if missing and name != _STATE:
                raise loader.error(
                    name,
                    f"the checkpoint lacks it for {sorted(missing)} of the "
                    f"{len(loader.sizes)} layers that are one in vLLM",
                )
        products: List[Product] = []
        operands: Dict[str, Tensor] = {}
        for numbers in _groups(loader):
            weight = _packed(own, loader, numbers)
            held = NMLinear.from_packed(weight).eval().requires_grad_(False)
            store_for_kernels_(held)
            parts = {f"packed_{len(operands) + i}": part.detach()
                     for i, part in enumerate(held.components())}  # fmt: skip
            operands.update(parts)
            begin = sum(loader.sizes[: numbers[0]])
            end = begin + weight.shape[0]
            products.append(Product(tuple(parts), held.spec, begin, end))
        for name in own:
            delattr(layer, name)
        for name, tensor in operands.items():
            layer.register_parameter(name, Parameter(tensor, requires_grad=False))
        layer.nm_sparse_products = tuple(products)

    def apply(
        self, layer: torch.nn.Module, x: Tensor, bias: Optional[Tensor] = None
    ) -> Tensor:
        """x: [..., K]; returns [..., N] of this rank, in the type of x."""
        results = []
        for product in layer.nm_sparse_products:
            weight = [getattr(layer, name) for name in product.names]
            part = None if bias is None else bias[product.begin : product.end]
            y = torch.ops.nm_sparse.linear(x, weight, part, product.spec)
            results.append(y)
        return results[0] if len(results) == 1 else torch.cat(results, dim=-1)


def _groups(loader: LayerLoader) -> List[List[int]]:
    """The layers that are one packed weight: only the last may end in a part of a
    panel."""
    groups: List[List[int]] = [[]]
    for number, size in enumerate(loader.sizes):
        groups[-1].append(number)
        if size % loader.encoding.block[1]:
            groups.append([])
    return [group for group in groups if group]


def _packed(
    own: Dict[str, PartParameter],
    loader: LayerLoader,
    numbers: List[int],
) -> PackedWeight:
    """The weight of layers that follow one another.

    Raises EncodingError when what was loaded is damaged."""
    parts: Dict[str, Tensor] = {}
    for name, parameter in own.items():
        if isinstance(parameter, ComponentParameter):
            columns = [loader.columns(name, number) for number in numbers]
            data = parameter.data[..., columns[0].start : columns[-1].stop]
            parts[name] = data.contiguous()
    sizes = [loader.sizes[number] for number in numbers]
    if loader.encoding.is_shuffled:
        offsets = [sum(sizes[:i]) for i in range(len(sizes))]
        each = parts["perm"].split(sizes)
        parts["perm"] = torch.cat([perm + at for perm, at in zip(each, offsets)])
    shape = (sum(sizes), loader.inputs[0])
    weight = PackedWeight.from_components(parts, loader.encoding, shape)
    try:
        weight.validate()  # kernels would read past damaged positions
    except EncodingError as error:
        raise EncodingError(f"{loader.prefix}: {error}") from None
    return weight

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers of a model of torch that can be tuned.

Layers have the programs that they are compiled to when they are called, so that what is
measured is what is looked up then.
"""

from __future__ import annotations

from typing import Any, Optional, Set

from torch import Tensor, nn

from ..encoding import Encoding
from ..files.contents import bar
from ..files.sparse_config import NARROW
from ..gated_mlp import gated_mlp_mlir
from ..interop.arrays import to_host
from ..layers.specs import LinearSpec
from ..pruning.detection import detect
from ..torch.layers.conv2d import NMConv2d
from ..torch.layers.conv_geometry import Geometry
from ..torch.layers.conv_kernels import reads_images
from ..torch.layers.convertible import geometry_of, matrix_of
from ..torch.layers.halved_mlp import HalvedMLP
from ..torch.layers.linear import NMLinear
from ..torch.layers.linear_state import PackedState
from ..torch.layers.mlp import GatedMLP
from ..torch.layers.scaled_linear import SAME
from ..torch.models.config import NMSparseConfig
from ..torch.prune.choices import Patterns, choose_layers, unfit
from ..torch.weight.spec import dtype_name
from ..torch.weight.weight import PackedWeight
from .tunable import FLOATS, Finder

IMAGES = (
    "its kernels read images in place, by a program for each size of them: tune that "
    "program, of which nm-compile --candidates lists the schedules"
)
NO_PATTERN = "its weight has no pattern: prune it, or say with `encoding` which it gets"


def add_model(
    finder: Finder, model: nn.Module, encoding: Optional[Encoding], progress: bool
) -> None:
    """The packed layers of a model, and the dense ones whose weights are pruned.

    encoding:  that dense layers get; None: the pattern that each one's zeros have.
    """
    fused: Set[nn.Module] = set()
    for name, module in model.named_modules():
        if isinstance(module, (GatedMLP, HalvedMLP)):
            _add_mlp(finder, name, module, fused)
    for name, module in model.named_modules():
        if isinstance(module, PackedState) and module not in fused:
            _add_packed(finder, name, module)
    # All that is asked of a config here is what stands in the way of any pattern.
    any_pattern = Patterns({"*": NMSparseConfig("2:4")})
    choices = choose_layers(model, any_pattern, must_fit=False)
    for choice in bar(choices, "weights", progress):
        if choice.reason:
            finder.skip(choice.name, choice.reason)
        else:
            _add_dense(finder, choice.name, choice.layer, encoding)


def _add_mlp(finder: Finder, name: str, mlp: Any, fused: Set[nn.Module]) -> None:
    """The program of an MLP whose layers are one operator; else they are layers."""
    if mlp.obstacle() is not None:
        return
    is_halved = isinstance(mlp, HalvedMLP)
    layers = [mlp.gate_up_proj] if is_halved else [mlp.gate_proj, mlp.up_proj]
    first = layers[0]
    n, k = first.linear_spec.shape
    dtype, down = first.linear_spec.dtype, None
    if dtype not in FLOATS:
        return  # `_add_packed` says so
    elements = _elements_of(first)
    if elements is not None:
        text = gated_mlp_mlir(
            k, n // 2 if is_halved else n, first.encoding.mlir(), elements,
            mlp.activation, result=dtype,
        )  # fmt: skip
        finder.add_program(name, text)
        # Eager calls multiply by both halves as one layer.
        fused.update([] if is_halved else layers)
        return
    if not is_halved and mlp.is_whole():
        down = mlp.down_proj.encoding.mlir()
        layers.append(mlp.down_proj)
    text = gated_mlp_mlir(
        k, n // 2 if is_halved else n, first.encoding.mlir(), dtype, mlp.activation,
        down=down, name="gated_mlp" if down is None else "mlp",
    )  # fmt: skip
    finder.add_program(name, text)
    fused.update(layers)


def _elements_of(layer: Any) -> Optional[str]:
    """As MLIR spells it, the type that a layer rounds its input to; None for others."""
    kind = getattr(layer, "activations", SAME)
    return None if kind == SAME else NARROW[kind]


def _add_packed(finder: Finder, name: str, layer: Any) -> None:
    if not isinstance(layer._parameters.get("weight"), PackedWeight):
        finder.skip(name, "its weight is sharded, or computed by a hook")
    elif isinstance(layer, NMConv2d):
        _add_matrix(finder, name, layer.encoding, layer.weight, layer, layer.geometry)
    elif not isinstance(layer, NMLinear):
        finder.skip(name, f"it is a {type(layer).__name__}: legal is an NMLinear")
    else:
        _add_matrix(finder, name, layer.encoding, layer.weight, layer, None)


def _add_dense(
    finder: Finder, name: str, layer: Any, encoding: Optional[Encoding]
) -> None:
    matrix = matrix_of(layer)
    if encoding is None:
        host = to_host(matrix)
        encoding = detect(host.array, host.dtype)
        if encoding is None:
            finder.skip(name, NO_PATTERN)
            return
    reason = unfit(layer, NMSparseConfig(encoding))
    if reason:
        finder.skip(name, reason)
    else:
        _add_matrix(finder, name, encoding, matrix, layer, geometry_of(layer))


def _add_matrix(
    finder: Finder,
    name: str,
    encoding: Encoding,
    weight: Tensor,
    layer: Any,
    geometry: Optional[Geometry],
) -> None:
    """A layer whose program is that of a linear layer.

    weight:    [N, K], packed or dense.
    geometry:  of a convolution.
    """
    dtype = dtype_name(weight.dtype)
    if dtype not in FLOATS:
        finder.skip(name, f"its type is {dtype}: legal is {', '.join(FLOATS)}")
        return
    if geometry is not None and not geometry.is_pointwise:
        if reads_images(encoding, dtype, layer.in_channels):
            finder.skip(name, IMAGES)
            return
    activation = getattr(layer, "activation", "none")
    n, k = weight.shape
    elements = _elements_of(layer)
    spec = LinearSpec(
        encoding.mlir(), int(n), int(k), elements or dtype, layer.bias is not None,
        activation, result=None if elements is None else dtype,
    )  # fmt: skip
    finder.add_linear(name, spec)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A convolution whose weight is packed: `NMConv2d`, in the place of `nn.Conv2d`."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Sequence, Union

import torch
from torch import Tensor, nn

from ...encoding import Encoding, EncodingError
from ..weight.masks import Score, prune_weight
from ..weight.shared_spec import with_activation
from ..weight.spec import ACTIVATIONS, NARROW, dtype_name, spec_texts
from ..weight.stored_forms import STORED
from ..weight.weight import PackedWeight, components_of
from . import conv_kernels  # noqa: F401  registers what runs on CUDA
from .conv_geometry import Geometry, as_kernel, as_matrix
from .convertible import conv1d_class
from .linear import ACTIVATION_MODULES, NMLinear
from .linear_state import PackedState


class NMConv2d(PackedState):
    """y = activation(conv(x, W) + b + residual) with a packed W of `encoding`.

    in_channels, out_channels:  C and N.
    geometry:    kernel, stride, zeros around the image and dilation, as `Geometry.of`
                 finds them for an `nn.Conv2d`; groups are not supported.
    encoding:    an Encoding or its text, such as "2:4", of the weight as a matrix
                 [N, kh * kw * C] whose columns go along the channels first: a window
                 has channels of one place where it divides their number.
    bias:        whether there is one.
    activation:  "none", "relu", "gelu", "gelu_tanh" or "silu", computed by the same
                 kernel.

    A new layer has a weight of zeros; `from_dense` makes one of a dense layer. The
    parameter `weight` is a `PackedWeight` [N, kh * kw * C], and a `state_dict` has its
    components, as that of `NMLinear`. Images are [B, C, H, W] or [C, H, W], and best
    `channels_last`, which kernels read as they are; the result then is, too.

    Raises EncodingError when encoding or activation do not fit.
    """

    weight: PackedWeight
    bias: Optional[nn.Parameter]
    # Texts of the `LinearSpec` by the form and the type of the weight.
    _specs: Dict[str, Dict[torch.dtype, str]]
    transposed = False
    groups = 1
    padding_mode = "zeros"
    elements = None  # of 8 bits with scales

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        geometry: Geometry,
        encoding: Union[Encoding, str],
        bias: bool = True,
        activation: str = "none",
        device: Any = None,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        rows, columns = geometry.kernel
        shape = (out_channels, rows * columns * in_channels)
        weight = PackedWeight.zeros(shape, encoding, dtype, device)
        zeros = torch.zeros(out_channels, dtype=dtype, device=device) if bias else None
        self._set(weight, zeros, geometry, activation)

    def _set(
        self,
        weight: PackedWeight,
        bias: Optional[Tensor],
        geometry: Geometry,
        activation: str,
    ) -> None:
        nn.Module.__init__(self)
        if activation not in ACTIVATIONS:
            raise EncodingError(
                f"activation is {activation!r}: legal is {', '.join(ACTIVATIONS)}"
            )
        if weight.dtype in NARROW or weight.has_scale:
            raise EncodingError(
                f"the weight has elements of {weight.values.dtype}: legal in "
                "convolutions are floats of 16 bits or more"
            )
        low, same = geometry.low_padding, geometry.same_padding
        if low is None and geometry.padding != same:
            raise EncodingError(
                f"padding is {list(geometry.padding)}: legal are as many zeros on "
                f"either side, or {list(same)}, which nn.Conv2d calls 'same'"
            )
        rows, columns = geometry.kernel
        self.out_features, self.in_features = weight.shape
        if self.in_features % (rows * columns):
            raise EncodingError(
                f"the weight has {self.in_features} columns: legal is a multiple of "
                f"the {rows} x {columns} pixels of the kernel"
            )
        self.in_channels = self.in_features // (rows * columns)
        self.out_channels = self.out_features
        self.geometry, self.activation = geometry, activation
        self.encoding = weight.encoding
        self.kernel_size, self.stride = geometry.kernel, geometry.stride
        self.dilation = geometry.dilation
        self.padding: Union[str, Sequence[int]] = "same" if low is None else low
        self._hold(weight, weight.storage == "canonical")
        self.register_parameter(
            "bias", None if bias is None else nn.Parameter(bias.detach())
        )

    def _hold(self, weight: PackedWeight, is_trained: bool) -> None:
        """Makes this the weight."""
        with torch.inference_mode(False):
            held = nn.Parameter(weight.detach(), requires_grad=is_trained)
        self.register_parameter("weight", held)
        shape, self._specs = (self.out_features, self.in_features), {}
        for storage in {"canonical", weight.storage}:
            own = weight.encoding, shape, "none", storage
            self._specs[storage] = spec_texts(*own)

    @classmethod
    def from_packed(
        cls,
        weight: PackedWeight,
        bias: Optional[Tensor],
        geometry: Geometry,
        activation: str = "none",
    ) -> "NMConv2d":
        """A layer with these tensors, which are not copied."""
        layer = cls.__new__(cls)
        layer._set(weight, bias, geometry, activation)
        return layer

    @classmethod
    def from_dense(
        cls,
        conv: nn.Conv2d,
        encoding: Union[Encoding, str],
        score: Score = "magnitude",
        prune: bool = True,
        activation: str = "none",
        perm: Optional[Tensor] = None,
    ) -> "NMConv2d":
        """The layer that keeps of `conv` what `encoding` allows.

        score, prune, perm:  as for `NMLinear.from_dense`, of the weight as a matrix.
        activation:          what follows the layer.

        Raises EncodingError when `conv` has groups or pads with other than zeros, and
        when encoding, scores or perm do not fit.
        """
        reason = unsupported(conv)
        if reason:
            raise EncodingError(f"the convolution cannot be packed: {reason}")
        weight = as_matrix(conv.weight.detach())
        if prune:
            weight, perm = prune_weight(weight, encoding, score, perm)
        packed = PackedWeight.from_dense(weight, encoding, perm)
        bias = None if conv.bias is None else conv.bias.detach().clone()
        layer = cls.from_packed(packed, bias, Geometry.of(conv), activation)
        return like(layer, conv)

    def to_dense(self) -> nn.Module:
        """An `nn.Conv2d` with the same weight and bias, and zeros where nothing is
        kept; followed by the activation in an `nn.Sequential` if there is one."""
        weight = as_kernel(self.weight.to_dense().detach(), self.kernel_size)
        conv = nn.Conv2d(
            self.in_channels,
            self.out_channels,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            bias=False,
            device="meta",
        )
        trained = self.weight.requires_grad
        conv.weight = nn.Parameter(weight.contiguous(), requires_grad=trained)
        if self.bias is not None:
            bias = self.bias.detach().clone()
            conv.bias = nn.Parameter(bias, requires_grad=self.bias.requires_grad)
        dense: nn.Module = conv
        if self.activation != "none":
            dense = nn.Sequential(conv, ACTIVATION_MODULES[self.activation]())
        return dense.train(self.training)

    @property
    def storage(self) -> str:
        """The form of the weight: "canonical", "bitmap" or "k_major"."""
        return self.weight.storage

    def store_(self, storage: str) -> "NMConv2d":
        """Stores the weight in another form, as `NMLinear.store_`. Returns the layer;
        raises EncodingError when its weight has no such form."""
        weight = self.weight.detach()
        if storage != weight.storage:
            is_trained = storage == "canonical" and self.weight.requires_grad
            with torch.inference_mode(False), torch.no_grad():
                self._hold(weight.stored(storage), is_trained)
        STORED.drop_expired()
        return self

    def components(self) -> List[Tensor]:
        """The components of the weight in their order."""
        return list(self.weight.components.values())

    def _identity(self) -> str:
        own = json.loads(super()._identity())
        return json.dumps({**own, "kernel": list(self.kernel_size)})

    def _difference(self, state: Any) -> Optional[str]:
        problem = super()._difference(state)
        if problem is not None:
            return problem
        kernel = json.loads(bytes(state.cpu().tolist()).decode()).get("kernel")
        if kernel == list(self.kernel_size):
            return None
        said = "a linear layer" if kernel is None else f"a kernel {kernel}"
        return (
            f"the checkpoint has {said}, the layer a kernel {list(self.kernel_size)}: "
            "make the layer as that of the checkpoint"
        )

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        """Images [B, C, H, W] or [C, H, W] as [B, N, P, Q] or [N, P, Q].

        residual:  of the shape of the result; added before the activation.
        """
        return self.convolve(x, residual, self.activation)

    def convolve(
        self, x: Tensor, residual: Optional[Tensor], activation: str
    ) -> Tensor:
        """As `forward`, with an activation in the place of the layer's own."""
        weight, is_single = self.weight, x.ndim == 3
        if is_single:
            x = x.unsqueeze(0)
            residual = None if residual is None else residual.unsqueeze(0)
        y = torch.ops.nm_sparse.conv2d(
            x,
            components_of(weight),
            self.bias,
            residual,
            self.geometry.kernel,
            self.geometry.stride,
            self.geometry.padding,
            self.geometry.dilation,
            with_activation(self._specs[weight.storage][weight.dtype], activation),
        )
        return y.squeeze(0) if is_single else y

    def extra_repr(self) -> str:
        text = str(self.encoding).replace(", dim = 1", "")
        parts = f"{self.in_channels}, {self.out_channels}, kernel_size="
        parts += f"{self.kernel_size}, stride={self.stride}"
        if any(self.geometry.padding):
            parts += f", padding={self.padding}"
        if self.dilation != (1, 1):
            parts += f", dilation={self.dilation}"
        parts += f", encoding='{text}', bias={self.bias is not None}"
        if self.activation != "none":
            parts += f", activation={self.activation}"
        return parts


PackedLayer = Union[NMLinear, NMConv2d]


def unsupported(conv: nn.Conv2d) -> str:
    """Why there is no packed layer of a convolution, whatever its pattern; "" where
    there is."""
    if conv.groups != 1:
        return f"it has {conv.groups} groups; there are kernels for one"
    if conv.padding_mode != "zeros":
        return f"it pads with {conv.padding_mode}, not with zeros"
    return ""


def patches_note(layer: nn.Module, encoding: Encoding) -> str:
    """Why a packed layer is slower than the dense one, whatever its size: it copies the
    patches of the images; "" of other layers."""
    if not isinstance(layer, nn.Conv2d) or Geometry.of(layer).is_pointwise:
        return ""
    dtype = dtype_name(layer.weight.dtype)
    if conv_kernels.reads_images(encoding, dtype, layer.in_channels):
        return ""
    rows, columns = layer.kernel_size
    return (
        f"kernels of {rows} x {columns} pixels and this pattern, of {dtype} and "
        f"{layer.in_channels} channels, copy patches of the images, which is no "
        "faster; blocks of 16 outputs and more do not, nor do single elements of f16 "
        "or bf16, as of 2:4, and a multiple of 8 channels"
    )


def like(layer: PackedLayer, dense: nn.Module) -> PackedLayer:
    """The layer, trained as the dense one was."""
    bias = dense.bias
    if not dense.weight.requires_grad:
        layer.weight.requires_grad_(False)
    if bias is not None and layer.bias is not None:
        layer.bias.requires_grad_(bias.requires_grad)
    return layer.train(dense.training)


def pack_layer(
    dense: nn.Module, weight: PackedWeight, bias: Optional[Tensor]
) -> PackedLayer:
    """The packed layer that takes the place of a dense one.

    weight:  that of the dense layer, as a matrix.
    bias:    None where it has none.
    """
    made: Any
    if isinstance(dense, nn.Conv2d):
        made = NMConv2d.from_packed(weight, bias, Geometry.of(dense))
    else:
        made = NMLinear.from_packed(weight, bias)
        made.dense_class = conv1d_class(dense)
    return like(made, dense)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer with a random weight on a GPU, its operands, and the right result."""

from __future__ import annotations

from typing import Any, List, Tuple

from ..encoding import Encoding
from ..layers.specs import LinearSpec
from ..pruning.prune import prune
from ..tensors.packed_tensor import pack
from .product import Spec
from .times import TYPES, dense_layers, draw

# The largest relative error of a result, by the type that it is rounded to.
TOLERANCES = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 1e-4}


class MeasuredLayer:
    """A layer with a weight that is drawn.

    packed:  the weight.
    dense:   the layer of torch, of several copies of it.

    Elements are drawn by `seed`; activations have other ones for each number of tokens.
    """

    def __init__(self, torch: Any, spec: Spec, seed: int) -> None:
        self.torch, self.spec, self.seed = torch, spec, seed
        encoding = Encoding.parse(spec.encoding)
        drawn = draw(torch, spec.shape, spec.inputs, spec.dtype, seed)
        weight = prune(drawn, encoding)
        self.packed = pack(weight, encoding)
        # [outputs, inputs], as the dense layer and the right result have it.
        self.weight = weight if encoding.dim == 1 else weight.T.contiguous()
        self.dense = dense_layers(torch, self.weight)

    def operands(self, tokens: int) -> Tuple[Any, List[Any], Any, Any]:
        """x, the arrays that the program takes between weight and result, y, and what
        y should be, in float64."""
        spec, torch = self.spec, self.torch
        x = self._draw_x(tokens)
        want = x.double() @ self.weight.double().T
        others: List[Any] = []
        if isinstance(spec, LinearSpec):
            from ..torch.layers.ops import activate

            if spec.bias:
                others.append(self._draw((spec.outputs,), spec.dtype, tokens))
                want = want + others[0].double()
            y = torch.empty(tokens, spec.outputs, dtype=x.dtype, device=x.device)
            return x, others, y, activate(want, spec.activation)
        if spec.addend is not None:
            others.append(self._draw((tokens, spec.outputs), spec.addend, tokens))
            want = want + others[0].double()
        y = torch.empty(
            tokens, spec.outputs, dtype=getattr(torch, TYPES[spec.result]),
            device=x.device,
        )  # fmt: skip
        if spec.y_turned:
            others = [one.T.contiguous() for one in others]
            y, want = y.T.contiguous(), want.T
        return x.T.contiguous() if spec.x_turned else x, others, y, want

    def dense_operands(self, tokens: int) -> Tuple[Any, Any]:
        """x and y of the dense layer."""
        x = self._draw_x(tokens)
        y = self.torch.empty(tokens, self.spec.outputs, dtype=x.dtype, device=x.device)
        return x, y

    def is_right(self, y: Any, want: Any) -> bool:
        """Whether a result is no further from the right one than rounding takes it."""
        error = float((y.double() - want).norm() / want.norm())
        kind = getattr(self.spec, "result", None) or self.spec.dtype
        return error <= TOLERANCES[kind]

    def _draw_x(self, tokens: int) -> Any:
        return self._draw((tokens, self.spec.inputs), self.spec.dtype, tokens)

    def _draw(self, shape: Tuple[int, ...], dtype: str, tokens: int) -> Any:
        return draw(self.torch, shape, 1, dtype, self.seed + tokens)

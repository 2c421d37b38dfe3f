# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the linear layers of a model become sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

import torch
from torch import Tensor

from ...encoding import Encoding, EncodingError
from ..layers.scaled_linear import SAME, check_quantization
from ..prune.choices import Patterns
from ..prune.obstacles import LAYER_DTYPES
from ..weight.spec import linear_encoding

# "magnitude"; or non-negative importances [N, K] of each layer, by its name; or a
# function of a weight that returns them.
ModelScore = Union[str, Mapping[str, Tensor], Callable[[Tensor], Tensor]]


@dataclass(frozen=True)
class NMSparseConfig:
    """What `sparsify_` makes of a linear layer.

    encoding:     the pattern, an Encoding or its text, such as
                  "8:32, block = [1, 128]": block is [along the inputs, along the
                  outputs].
    dtype:        element type of the packed weight and of the bias, a float type of 16
                  bits or more; None: as it is.
    score:        what is kept: "magnitude", a mapping from the names of layers to
                  importances [outputs, inputs], or a function of the weight that
                  returns them.
    keep_slower:  whether a layer becomes sparse, too, that is predicted to be slower
                  than the dense one for all of `tokens`, or takes no less memory.
    tokens:       numbers of tokens for which times are predicted.
    dense_copies: whether a layer that is predicted to be slower than the dense one for
                  some of `tokens`, but not for all, is to multiply as many tokens on a
                  GPU by a dense copy of its weight (`NMLinear.dense_from`): as fast as
                  dense, for the memory of both. With `keep_slower` there are none.
    decode_forms: whether a layer whose weight is stored otherwise for few tokens than
                  for many may hold both forms on a GPU, for the memory of both
                  (`NMLinear.decode_to`), where one token is predicted to gain enough.
    weights:      "e4m3" or "int8": what is kept is rounded to elements of 8 bits with
                  scales (`PackedWeight.quantize`); None: it is not.
    activations:  "same", or as `weights`: inputs of layers are rounded to such
                  elements, too, each token with a scale of its own (`NMLinear`).
    scales:       of weights: "output", one for each, or "tensor", one for all.

    Raises EncodingError when a field is none of these.
    """

    encoding: Union[Encoding, str]
    dtype: Optional[torch.dtype] = None
    score: ModelScore = "magnitude"
    keep_slower: bool = False
    tokens: Tuple[int, ...] = (1, 16, 512, 2048)
    dense_copies: bool = True
    weights: Optional[str] = None
    activations: str = SAME
    scales: str = "output"
    decode_forms: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", linear_encoding(self.encoding))
        object.__setattr__(self, "tokens", tuple(self.tokens))
        if self.dtype is not None and self.dtype not in LAYER_DTYPES:
            legal = ", ".join(str(dtype) for dtype in LAYER_DTYPES)
            raise EncodingError(f"dtype is {self.dtype}: legal is {legal}, or None")
        if isinstance(self.score, str) and self.score != "magnitude":
            raise EncodingError(
                f"score is {self.score!r}: legal is 'magnitude', a mapping from names "
                "of layers to importances, or a function of the weight"
            )
        if not all(isinstance(count, int) and count > 0 for count in self.tokens):
            raise EncodingError(f"tokens are {self.tokens}: legal are positive numbers")
        check_quantization(self.weights, self.activations, self.scales)
        if not isinstance(self.dense_copies, bool):
            raise EncodingError(
                f"dense_copies is {self.dense_copies!r}: legal is True or False; from "
                "how many tokens on a layer uses its copy is NMLinear.dense_from"
            )
        if not isinstance(self.decode_forms, bool):
            raise EncodingError(
                f"decode_forms is {self.decode_forms!r}: legal is True or False; up to "
                "how many tokens a layer uses its second form is NMLinear.decode_to"
            )

    @property
    def pattern(self) -> Encoding:
        """The encoding, with dim = 1."""
        return linear_encoding(self.encoding)

    @property
    def keep_larger(self) -> bool:
        """Whether a layer becomes sparse, too, that takes no less memory then."""
        return self.keep_slower

    @property
    def has_copies(self) -> bool:
        """Whether a layer may have a dense copy."""
        return self.dense_copies and not self.keep_slower

    @property
    def text(self) -> str:
        """The encoding, as short as it can be written."""
        return str(self.pattern).replace(", dim = 1", "")


# For all layers, or by patterns of their names.
Config = Union[NMSparseConfig, Encoding, str]
Configs = Union[Config, Mapping[str, Optional[Config]]]


def as_patterns(configs: Any) -> Patterns:
    """The configs by patterns of names; one alone is for all layers.

    Raises EncodingError for a text that is no encoding, and TypeError for what is no
    config.
    """
    if not isinstance(configs, Mapping):
        return Patterns({"*": _as_config(configs, "config")})
    found: Dict[str, Optional[NMSparseConfig]] = {}
    for pattern, config in configs.items():
        if not isinstance(pattern, str):
            raise TypeError(f"pattern is {pattern!r}: legal is a str")
        is_dense = config is None
        found[pattern] = None if is_dense else _as_config(config, f"{pattern!r}")
    return Patterns(found)


def _as_config(config: Any, what: str) -> NMSparseConfig:
    if isinstance(config, (str, Encoding)):
        return NMSparseConfig(config)
    if not isinstance(config, NMSparseConfig):
        raise TypeError(
            f"{what} is a {type(config).__name__}: legal is an NMSparseConfig, the "
            'text of an encoding such as "2:4", or a dict from patterns of names to '
            "these or None"
        )
    return config

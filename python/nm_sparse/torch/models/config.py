# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the linear layers of a model become sparse."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import Callable, Dict, Mapping, Optional, Tuple, Union

import torch
from torch import Tensor

from ...encoding import Encoding, EncodingError
from ..layers.spec import linear_encoding

# "magnitude"; or non-negative importances [N, K] of each layer, by its name; or a
# function of a weight that returns them.
ModelScore = Union[str, Mapping[str, Tensor], Callable[[Tensor], Tensor]]
# Types of layers; 8-bit weights need scales, which these layers do not have.
LAYER_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


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

    Raises EncodingError when a field is none of these.
    """

    encoding: Union[Encoding, str]
    dtype: Optional[torch.dtype] = None
    score: ModelScore = "magnitude"
    keep_slower: bool = False
    tokens: Tuple[int, ...] = (1, 16, 512, 2048)
    dense_copies: bool = True

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
        if not isinstance(self.dense_copies, bool):
            raise EncodingError(
                f"dense_copies is {self.dense_copies!r}: legal is True or False; from "
                "how many tokens on a layer uses its copy is NMLinear.dense_from"
            )

    @property
    def text(self) -> str:
        """The encoding, as short as it can be written."""
        return str(linear_encoding(self.encoding)).replace(", dim = 1", "")


Configs = Union[NMSparseConfig, Mapping[str, Optional[NMSparseConfig]]]


class Patterns:
    """Configs by the names of layers. The first pattern that matches a name decides,
    so that exceptions come first: {"lm_head": None, "*.mlp.*": a, "*": b}.

    Patterns are those of `fnmatch`, case-sensitive; None leaves the layer dense.
    """

    def __init__(self, configs: Configs) -> None:
        if isinstance(configs, NMSparseConfig):
            configs = {"*": configs}
        if not isinstance(configs, Mapping):
            raise TypeError(
                f"config is a {type(configs).__name__}: legal is an NMSparseConfig, or "
                "a dict from name patterns to NMSparseConfig or None"
            )
        for pattern, config in configs.items():
            if not isinstance(pattern, str):
                raise TypeError(f"pattern is {pattern!r}: legal is a str")
            if config is not None and not isinstance(config, NMSparseConfig):
                raise TypeError(
                    f"config of {pattern!r} is a {type(config).__name__}: legal is an "
                    "NMSparseConfig or None"
                )
        self._configs: Dict[str, Optional[NMSparseConfig]] = dict(configs)
        self.unused = list(self._configs)

    def find(self, name: str) -> Tuple[Optional[str], Optional[NMSparseConfig]]:
        """The pattern that decides about a name, and its config; (None, None) when no
        pattern matches."""
        for pattern, config in self._configs.items():
            if fnmatch.fnmatchcase(name, pattern):
                if pattern in self.unused:
                    self.unused.remove(pattern)
                return pattern, config
        return None, None

    def has_copies(self, name: str) -> bool:
        """Whether a layer may have a dense copy."""
        _, config = self.find(name)
        return config is not None and config.dense_copies and not config.keep_slower

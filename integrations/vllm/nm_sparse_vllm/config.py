# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which layers of a model are packed, as vLLM asks: `NMSparseConfig`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Optional

import torch
from vllm.model_executor.layers.quantization.base_config import (
    QuantizationConfig,
    QuantizeMethodBase,
)

from nm_sparse import Encoding
from nm_sparse.files.sparse_config import METHOD, SparseConfig
from nm_sparse.files.tensor_file import CheckpointError

__all__ = ["METHOD", "NMSparseConfig"]

# The linear layers of an expert, as models name them.
_EXPERTS = (("gate_proj", "up_proj", "down_proj"), ("w1", "w2", "w3"))


class NMSparseConfig(QuantizationConfig):
    """`quantization_config` of a checkpoint with packed layers.

    sparse:  what config.json says; names are those of the checkpoint's layers.
    """

    def __init__(self, sparse: SparseConfig) -> None:
        super().__init__()
        self.sparse = sparse
        self.is_head_tied = False

    def __repr__(self) -> str:
        return f"NMSparseConfig({self.sparse})"

    def get_name(self) -> str:
        return METHOD

    def get_supported_act_dtypes(self) -> List[torch.dtype]:
        return [torch.bfloat16, torch.float16, torch.float32]

    @classmethod
    def get_min_capability(cls) -> int:
        return 80

    @staticmethod
    def get_config_filenames() -> List[str]:
        return []  # config.json says it all

    @classmethod
    def from_config(cls, config: Dict[str, Any]) -> "NMSparseConfig":
        """That of `quantization_config` in config.json.

        Raises CheckpointError, a ValueError, which names the field, what it is and
        what is legal.
        """
        sparse = SparseConfig.parse(config)
        for name in ("scales", "activations"):
            value = getattr(sparse, name)
            if value is not None:
                raise CheckpointError(
                    f"quantization_config: {name} is {value!r}: legal is null, for "
                    "weights of f16 and bf16; convert the checkpoint to these"
                )
        return cls(sparse)

    def maybe_update_config(
        self, model_name: str, hf_config: Any = None, revision: Optional[str] = None
    ) -> None:
        self.is_head_tied = bool(getattr(hf_config, "tie_word_embeddings", False))

    def apply_vllm_mapper(self, hf_to_vllm_mapper: Any) -> None:
        """Renames layers as the model does."""
        layers = hf_to_vllm_mapper.apply_dict(dict(self.sparse.layers))
        self.sparse = replace(self.sparse, layers=layers)

    def checkpoint_names(self, prefix: str) -> List[str]:
        """The layers of the checkpoint that a layer of vLLM is made of, such as q, k
        and v of `qkv_proj`."""
        parent, _, name = prefix.rpartition(".")
        parts = self.packed_modules_mapping.get(name, [name])
        return [f"{parent}.{part}" if parent else part for part in parts]

    def encoding_of(self, prefix: str) -> Optional[Encoding]:
        """The encoding of a linear layer of vLLM; None where it is dense.

        Raises ValueError when the layers that vLLM makes one of differ.
        """
        found = {
            name: self.sparse.encoding_of(name)
            for name in self.checkpoint_names(prefix)
        }
        if len(set(found.values())) > 1:
            said = ", ".join(f"{n} is {e or 'dense'}" for n, e in found.items())
            raise ValueError(
                f"vLLM makes one layer, {prefix}, of layers that differ: {said}; legal "
                "is one encoding, or all dense; convert the model with layers that are "
                "alike"
            )
        return next(iter(found.values()))

    def get_quant_method(
        self, layer: torch.nn.Module, prefix: str
    ) -> Optional[QuantizeMethodBase]:
        """What multiplies by the weight of a layer; None, for that of vLLM, where the
        layer is not linear.

        Raises ValueError for layers that the checkpoint has packed, and that vLLM
        multiplies by its own kernels alone: experts and the head.
        """
        # Plugins are registered while vLLM is imported, and these import all of it.
        from vllm.model_executor.layers.fused_moe import RoutedExperts
        from vllm.model_executor.layers.linear import (
            LinearBase,
            UnquantizedLinearMethod,
        )
        from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

        from .linear import NMSparseLinearMethod

        if isinstance(layer, LinearBase):
            e = self.encoding_of(prefix)
            if e is None:
                return UnquantizedLinearMethod()
            return NMSparseLinearMethod(e, prefix)
        if isinstance(layer, RoutedExperts):
            self._check_experts(prefix)
        if isinstance(layer, ParallelLMHead) and not self.is_head_tied:
            self._check_dense(prefix, prefix)
        return None

    def _check_experts(self, prefix: str) -> None:
        packed = [
            [name for name in family if self.sparse.encoding_of(f"{prefix}.0.{name}")]
            for family in _EXPERTS
        ]
        if all(packed):  # whichever names the model has
            self._check_dense(f"{prefix}.0.{packed[0][0]}", f"{prefix}.*")

    def _check_dense(self, name: str, pattern: str) -> None:
        e = self.sparse.encoding_of(name)
        if e is not None:
            raise ValueError(
                f"{name} is {e}: legal is dense, since vLLM multiplies by it with "
                f'kernels of its own; convert the model with "{pattern}": null in '
                "layers"
            )

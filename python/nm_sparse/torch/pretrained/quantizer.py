# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The format in transformers' registry: its configuration, and how it is loaded."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import torch
from torch import nn
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from ...encoding import EncodingError
from ...files.packed_file import INPUT_SCALE
from ...files.sparse_config import METHOD, NARROW, SparseConfig
from ...files.tensor_file import CheckpointError
from ..layers.convertible import is_convertible, matrix_shape
from ..layers.linear_state import PackedState
from ..layers.sharding import is_sharded
from .headers import PackedHeaders
from .hooks import move_hooks
from .mapping import Names
from .parallel import TensorParallel
from .parts import PackedParts
from .registration import register
from .save import sparse_config
from .sharded import ShardedParts, gathered_state


class PackedQuantizationConfig(QuantizationConfigMixin):
    """`quantization_config` of a model with packed layers.

    sparse:  what it says, a `SparseConfig` or its fields.

    Raises CheckpointError where a field is not legal.
    """

    def __init__(
        self, sparse: Union[SparseConfig, Mapping[str, Any], None] = None, **fields: Any
    ) -> None:
        if not isinstance(sparse, SparseConfig):
            said = {"quant_method": METHOD, **(sparse or {}), **fields}
            sparse = SparseConfig.parse(said)
        self.quant_method = METHOD
        self.sparse = sparse

    @classmethod
    def from_dict(
        cls,
        config_dict: Mapping[str, Any],
        return_unused_kwargs: bool = False,
        **kwargs: Any,
    ) -> Any:
        config = cls(SparseConfig.parse(config_dict))
        return (config, kwargs) if return_unused_kwargs else config

    def to_dict(self) -> Dict[str, Any]:
        return self.sparse.to_dict()

    def __iter__(self) -> Any:
        yield from copy.deepcopy(self.to_dict()).items()


class PackedQuantizer(HfQuantizer):
    """Loads packed layers: on the meta device, dense layers make room for the tensors
    of packed ones, which transformers then sets like any others."""

    requires_calibration = False
    is_qat_trainable = True
    is_compileable = True
    is_trainable = True

    def __init__(self, quantization_config: Any, **kwargs: Any) -> None:
        super().__init__(quantization_config, **kwargs)
        self._places: List[Tuple[Union[PackedParts, ShardedParts], str]] = []
        if not self.pre_quantized:
            raise ValueError(
                "quantization_config is of nm_sparse, and the checkpoint is dense: "
                "legal is one with packed layers, which `python -m nm_sparse convert` "
                "makes; or load the model without it, and call sparsify_"
            )

    def is_serializable(self) -> bool:
        return True

    def get_state_dict_and_metadata(
        self, model: Any
    ) -> Tuple[Optional[Dict[str, Any]], Dict[str, str]]:
        """Called before a model is saved: says which layers are packed now. The state
        is None where the model can say it itself."""
        own = self.quantization_config.sparse
        found = sparse_config(model, own.provenance)
        if found is None:
            model.config.__dict__.pop("quantization_config", None)
        else:
            self.quantization_config = PackedQuantizationConfig(found)
            model.config.quantization_config = self.quantization_config
        return gathered_state(model), {}

    def _process_model_before_weight_loading(
        self, model: Any, checkpoint_files: Optional[List[str]] = None, **kwargs: Any
    ) -> None:
        """Replaces dense layers by `PackedParts`, and by `ShardedParts` where several
        processes share them.

        Raises CheckpointError where checkpoint, config.json and model do not fit."""
        shared = TensorParallel.of(model)
        sparse = self.quantization_config.sparse
        headers = PackedHeaders(checkpoint_files) if checkpoint_files else None
        if headers is not None:
            encodings = headers.check(sparse, Names(model))
        else:  # a state_dict, of which config.json alone tells
            encodings = {
                name: (name, e)
                for name, module in model.named_modules()
                if is_convertible(module) and (e := sparse.encoding_of(name))
            }
        keys = getattr(model, "all_tied_weights_keys", {})
        tied = {key.rpartition(".")[0] for key in keys}
        for layer, (said, e) in encodings.items():
            dense = model.get_submodule(layer)
            shape = headers.shape(said) if headers is not None else None
            _check_place(dense, layer, said, shape, layer in tied)
            given = dense, e, *_elements(headers, sparse, said)
            is_shared = shared is not None and shared.check(layer, said, dense, e)
            parts = ShardedParts.of(*given) if is_shared else PackedParts(*given)
            replace_module(model, dense, parts)
            self._places.append((parts, said))

    def _process_model_after_weight_loading(self, model: Any, **kwargs: Any) -> Any:
        """Makes packed layers of what is loaded."""
        for parts, said in self._places:
            if isinstance(parts, PackedParts) and parts.is_offloaded:
                continue
            missing = parts.missing()
            if missing:
                raise CheckpointError(f"{said}.{missing} is missing in the checkpoint")
            try:
                _finish(model, parts)
            except ValueError as error:
                raise CheckpointError(f"{said}: {error}") from None
        self._places = []
        return model

    def _dequantize(self, model: Any, dtype: Optional[torch.dtype] = None) -> Any:
        """With dense layers, whose weights are as they were but for their zeros.

        Raises EncodingError where several processes share a layer."""
        for name, module in model.named_modules():
            if isinstance(module, PackedState) and is_sharded(module.weight):
                raise EncodingError(
                    f"{name} is shared by several processes: legal is a model that is "
                    "whole; load it without tp_plan, then call dequantize()"
                )
        for module in list(model.modules()):
            if isinstance(module, PackedState):
                packed: Any = module
                dense = packed.to_dense()
                dense = dense if dtype is None else dense.to(dtype)
                replace_module(model, module, dense)
        return model


def _finish(model: nn.Module, parts: Union[PackedParts, ShardedParts]) -> None:
    """Puts the layer in the place of its parts, which are loaded."""
    if isinstance(parts, ShardedParts):
        parts.finish()  # in place, as its hooks know it
    else:
        made = parts.to_layer()
        replace_module(model, parts, made)
        move_hooks(parts, made)


def _check_place(
    dense: nn.Module,
    layer: str,
    said: str,
    shape: Optional[Tuple[int, ...]],
    is_tied: bool,
) -> None:
    """Raises CheckpointError where a layer of the model cannot be the packed one."""
    if not is_convertible(dense):
        raise CheckpointError(
            f"{said} is packed, and {layer} of the model is a {type(dense).__name__}: "
            "legal is nn.Linear, Conv1D of transformers or nn.Conv2d"
        )
    if is_tied:
        raise CheckpointError(
            f"{said} is packed, and the model's config ties {layer} to another weight: "
            "legal is tie_word_embeddings=false"
        )
    if shape is not None and shape != tuple(matrix_shape(dense)):
        raise CheckpointError(
            f"{said} has shape {list(shape)}: the model has {list(matrix_shape(dense))}"
        )


def _elements(
    headers: Optional[PackedHeaders], sparse: SparseConfig, said: str
) -> Tuple[Optional[str], Optional[str], bool]:
    """Type of the values of a layer where they have 8 bits, that of its inputs, and
    whether these have a scale."""
    if headers is None:
        elements = sparse.weights if sparse.weights in NARROW else None
        return elements, sparse.activations_of(said) if elements else None, False
    elements = headers.elements(said)
    if elements is None:
        return None, None, False
    has_input_scale = f"{said}.{INPUT_SCALE}" in headers.names
    return elements, sparse.activations_of(said), has_input_scale


def replace_module(model: nn.Module, old: nn.Module, new: nn.Module) -> None:
    """Wherever it is in the model."""
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if module is old:
            parent, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(parent), attribute, new)


register()

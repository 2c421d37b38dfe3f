# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tp_plan` makes of packed layers, checked before anything is sharded."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import transformers
from torch import nn

from ...encoding import Encoding, EncodingError
from ...encoding.slices import component_slices
from ...files.tensor_file import CheckpointError
from ..layers.convertible import matrix_shape

# Other ways to distribute a model, by their fields in `DistributedConfig`.
_OTHERS = ("pp_size", "fsdp_size", "dp_replicate_size", "ep_size")
_LEGAL = (
    "a colwise or rowwise style, or replicate; of outputs that are fused "
    "colwise_gather_output, and rowwise_split_input of the layer behind them"
)


class TensorParallel:
    """The tensor parallel plan of a model that is about to be loaded.

    size:  the number of processes that share each layer.
    """

    def __init__(self, size: int, plan: Dict[str, str]) -> None:
        """Raises CheckpointError where transformers shards in another way than by
        DTensors."""
        try:
            from transformers.distributed import parallel_utils, tensor_parallel
        except ImportError:
            raise CheckpointError(
                f"tp_plan is given, and transformers is {transformers.__version__}: "
                "legal for packed layers is one that shards by DTensors, such as 5.24"
            ) from None
        self.size, self._plan = size, plan
        self._find, self._styles = parallel_utils._get_parameter_plan, tensor_parallel

    @staticmethod
    def of(model: Any) -> Optional["TensorParallel"]:
        """That of a model; None where it is loaded whole.

        Raises CheckpointError where it is distributed in another way."""
        config = getattr(model.config, "distributed_config", None)
        if config is None:
            return None
        for name in _OTHERS:
            size = getattr(config, name, None) or 1
            if size > 1:
                raise CheckpointError(
                    f"{name} of distributed_config is {size}: legal for packed layers "
                    "is 1; use tp_size alone"
                )
        size = getattr(config, "tp_size", None) or 1
        if size == 1:
            return None
        own = getattr(config, "tp_plan", None)
        plan = {**(model.tp_plan or {}), **(own if isinstance(own, dict) else {})}
        return TensorParallel(size, plan)

    def check(self, layer: str, said: str, dense: nn.Module, e: Encoding) -> bool:
        """Whether the plan names a layer.

        layer, said:  its name in the model, and in the checkpoint.

        Raises CheckpointError where its packed form cannot be sharded so."""
        rule = self._find(f"{layer}.weight", self._plan)
        if rule is None:
            return False
        about = f"{said} is packed, and its rule in tp_plan is {rule!r}"
        dim = self._dim(rule)
        if dim == -1:
            raise CheckpointError(f"{about}: legal is {_LEGAL}")
        if not isinstance(dense, nn.Linear):
            raise CheckpointError(
                f"{about}, a {type(dense).__name__}: legal is an nn.Linear"
            )
        if dim is None:
            return True
        shape = matrix_shape(dense)
        try:
            for begin, end in _parts(shape[dim], self.size):
                component_slices(e, shape, dim, begin, end)
                if begin == end:
                    raise EncodingError(
                        f"some of {self.size} processes would have nothing of "
                        f"{shape[dim]} {('outputs', 'inputs')[dim]}"
                    )
        except EncodingError as error:
            raise CheckpointError(f"{about} for {self.size}: {error}") from None
        return True

    def _dim(self, rule: str) -> Optional[int]:
        """Which dimension of a weight a style shards: 0 outputs, 1 inputs, None none;
        -1 where it is not known, or more than one part of it belongs to a process."""
        styles = self._styles
        style = styles.ALL_PARALLEL_STYLES.get(rule)
        if isinstance(style, styles.ColwiseParallel):
            return 0
        if isinstance(style, styles.RowwiseParallel):
            return 1
        return None if type(style) is styles.TensorParallelLayer else -1


def _parts(size: int, count: int) -> Tuple[Tuple[int, int], ...]:
    """Begin and end of what each process has, as DTensor cuts it."""
    each = -(-size // count)
    return tuple((min(i * each, size), min((i + 1) * each, size)) for i in range(count))

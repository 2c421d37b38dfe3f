# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which parameter of a model of transformers a tensor of a checkpoint becomes.

Names differ: a checkpoint of a whole model is loaded into its base, old names become
new ones, and tensors of several experts one. Transformers itself is asked.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import (
    WeightConverter,
    WeightRenaming,
    rename_source_key,
)

from ...files.convert.actions import layer_name
from ..layers.convertible import is_convertible

JOINED = "transformers joins it with other tensors as {}, for which is no packed layer"


class Names:
    """Of a model on any device, before its layers are replaced.

    linear:  the names of its layers that packed ones can replace.
    """

    def __init__(self, model: Any) -> None:
        mapping = get_model_conversion_mapping(model)
        self._renamings = [one for one in mapping if isinstance(one, WeightRenaming)]
        self._converters = [one for one in mapping if isinstance(one, WeightConverter)]
        self._prefix = model.base_model_prefix
        self._state = dict.fromkeys(model.state_dict(), True)
        self.linear = {
            name
            for name, module in model.named_modules(remove_duplicate=False)
            if is_convertible(module)
        }

    def parameter(self, name: str) -> str:
        """The name in the model of a tensor in a checkpoint, which need not be there.

        Raises ValueError, saying why, where it becomes a part of another tensor."""
        key, joined = self._rename(name, self._state)
        if key not in self._state and name in self._state:
            return name
        if joined is not None:
            raise ValueError(JOINED.format(key))
        return key

    def _rename(self, name: str, state: Dict[str, bool]) -> Any:
        return rename_source_key(
            name, self._renamings, self._converters, self._prefix, state
        )

    def layer(self, name: str) -> Optional[str]:
        """The layer whose weight a weight `NAME.weight` is; None where the model has no
        such parameter.

        Raises ValueError, saying why, where a packed one could not be it."""
        key = self.parameter(name)
        if key not in self._state:
            return None
        # The tensors of a packed layer must be found by the same rules.
        layer, part = layer_name(key), "values"
        state = {**self._state, f"{layer}.{part}": True}
        state.pop(key)
        found, joined = self._rename(f"{layer_name(name)}.{part}", state)
        if found != f"{layer}.{part}" or joined is not None:
            raise ValueError(
                f"transformers calls it {key}, but would not call packed tensors so"
            )
        return layer

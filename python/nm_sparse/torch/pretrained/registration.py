# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the format known to transformers, as soon as that is imported and no sooner.

Importing transformers' registry takes seconds, which who has no use for it should not
wait. So where it is not there yet, its import is watched for: transformers asks the
registry at the first `from_pretrained`, and imports it before.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional, Sequence

from ...files.sparse_config import METHOD

REGISTRY = "transformers.quantizers.auto"


def register() -> None:
    """Registers the format where transformers' registry is imported, and else when it
    will be. Calling it again does nothing."""
    if REGISTRY in sys.modules:
        _register(sys.modules[REGISTRY])
    elif not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _register(registry: ModuleType) -> None:
    if METHOD in registry.AUTO_QUANTIZER_MAPPING:
        return
    from . import quantizer  # which registers at its end, if nothing has

    # It may also be what imports the registry, and be half there.
    is_there = hasattr(quantizer, "PackedQuantizer")
    if is_there and METHOD not in registry.AUTO_QUANTIZER_MAPPING:
        config = quantizer.PackedQuantizationConfig
        registry.register_quantization_config(METHOD)(config)
        registry.register_quantizer(METHOD)(quantizer.PackedQuantizer)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the registry as others do, and adds to what is done when it is loaded."""

    _is_asking = False

    def find_spec(
        self,
        fullname: str,
        path: Optional[Sequence[str]],
        target: Optional[ModuleType] = None,
    ) -> Optional[ModuleSpec]:
        if fullname != REGISTRY or self._is_asking:
            return None
        self._is_asking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_asking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    """Another loader, and the registration behind it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        created: Optional[ModuleType] = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _register(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # such as get_source, for tracebacks

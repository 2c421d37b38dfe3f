# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds layers whose weight is read outside of their forward, as `layer.weight @ x`.

Calibration never sees the inputs of such a product, and a kernel of the layer does not
compute it. `find_readers` looks at the sources of modules, `ReadWatch` at a run.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .linears import is_dense_linear
from .sources import HARMLESS, Path, Sources


def find_readers(model: nn.Module) -> Dict[nn.Module, str]:
    """The linear layers whose weight the sources of other modules read, and by whom.

    Modules of torch itself are known: attention reads its last layer; those that read
    others do so for speed, and call them where weights are packed.
    """
    sources = Sources()
    found: Dict[nn.Module, str] = {}
    for name, module in model.named_modules():
        kind, paths = type(module), {("out_proj",)}
        if not isinstance(module, nn.MultiheadAttention):
            paths = sources.weights_read(module)
        for path in sorted(paths):
            layer = _follow(module, path)
            if isinstance(layer, nn.Module) and is_dense_linear(layer):
                where = f"{kind.__name__} {name}" if name else kind.__name__
                found.setdefault(layer, where)
    return found


def _follow(module: nn.Module, path: Path) -> Optional[Any]:
    for attribute in path:
        if not isinstance(module, nn.Module):
            return None
        module = module._modules.get(attribute)  # type: ignore[assignment]
    return module


class ReadWatch(TorchFunctionMode):
    """Notes which weights functions of torch are given while their layer is not called.

    layers:  by name.
    found:   the functions that have read the weight of a layer, by its name.
    """

    def __init__(self, layers: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.layers = dict(layers)
        self.found: Dict[str, str] = {}
        self._names = {id(layer.weight): name for name, layer in layers.items()}
        self._depth = dict.fromkeys(layers, 0)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watches as long as the context lasts."""
        handles = []
        try:
            for name, layer in self.layers.items():
                enter, leave = self._steps(name)
                handles.append(layer.register_forward_pre_hook(enter, prepend=True))
                handles.append(layer.register_forward_hook(leave, always_call=True))
            with self:
                yield
        finally:
            for handle in handles:
                handle.remove()

    def _steps(self, name: str) -> Tuple[Callable[..., None], Callable[..., None]]:
        def enter(*_: Any) -> None:
            self._depth[name] += 1

        def leave(*_: Any) -> None:
            self._depth[name] -= 1

        return enter, leave

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if name_of(func) not in HARMLESS:
            for given in (*args, *kwargs.values()):
                for one in given if isinstance(given, (list, tuple)) else (given,):
                    self._note(one, func)
        return func(*args, **kwargs)

    def _note(self, given: Any, func: Any) -> None:
        name = self._names.get(id(given)) if isinstance(given, Tensor) else None
        if name is not None and not self._depth[name]:
            self.found.setdefault(name, name_of(func))


def name_of(func: Any) -> str:
    """That of a function; of the getter of an attribute that of the attribute."""
    name = getattr(func, "__name__", str(func))
    if name == "__get__":
        return getattr(getattr(func, "__self__", None), "__name__", name)
    return name

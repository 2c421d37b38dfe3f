# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fold_batch_norm_`: convolutions that do what the batch norms behind them did."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict

from torch import fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval
from torch.nn.utils.parametrize import is_parametrized

from ...encoding import EncodingError
from ..layers.conv2d import NMConv2d
from ..layers.linear_state import PackedState
from ..prune.calibration import call
from ..prune.linears import replace_modules
from ..prune.obstacles import HOOKS
from .trial import UseWatch, calls_of


def fold_batch_norm_(model: nn.Module, example: Any = None) -> Dict[str, str]:
    """Folds batch norms into the convolutions before them, in place, for inference.

    Each `nn.Conv2d` or `NMConv2d` whose result goes to one `nn.BatchNorm2d` and nowhere
    else gets the weight and the bias of both (`torch.nn.utils.fusion`), and an
    `nn.Identity` takes the place of the batch norm. The `state_dict` is that of another
    model then: save and load the model before. Call it before or after `sparsify_`,
    which counts the magnitudes of what it is given, and before `fuse_`.

    model:    in evaluation.
    example:  a batch, as for `Calibration`: images, a tuple of arguments, or a mapping
              of named ones. The model runs on it once, and what goes where is seen.
              None: `torch.fx` traces the model.

    Layers with hooks or parametrizations, shared ones, and batch norms that have no
    statistics stay. Returns the names of the batch norms by those of the convolutions
    that they are folded into. Raises EncodingError, and leaves the model as it was,
    when a batch norm is in training, or `torch.fx` cannot trace the model.
    """
    names = {module: name for name, module in model.named_modules()}
    trained = [n for m, n in names.items() if _is_norm(m) and m.training]
    if trained:
        raise EncodingError(
            f"{trained[0] or 'the model'} is in training: legal are batch norms whose "
            "statistics no longer change; call model.eval() first"
        )
    pairs = _traced(model) if example is None else _watched(model, example)
    pairs = {conv: norm for conv, norm in pairs.items() if _is_foldable(conv, norm)}
    others: Dict[nn.Module, nn.Module] = {}
    for conv, norm in pairs.items():
        others[conv] = _fold(conv, norm)
        others[norm] = nn.Identity().eval()
    replace_modules(model, others)
    return {names[conv]: names[norm] for conv, norm in pairs.items()}


class _Tracer(fx.Tracer):
    """Calls packed layers as a whole, as it does those of torch."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        is_packed = isinstance(m, PackedState)
        return is_packed or super().is_leaf_module(m, module_qualified_name)


def _is_norm(module: Any) -> bool:
    return type(module) is nn.BatchNorm2d


def _is_foldable(conv: nn.Module, norm: nn.Module) -> bool:
    has_statistics = norm.running_mean is not None and norm.running_var is not None
    return has_statistics and not any(
        is_parametrized(module)
        or "forward" in vars(module)
        or any(getattr(module, kind) for kind in HOOKS)
        or hasattr(module, "_hf_hook")
        for module in (conv, norm)
    )


def _is_conv(module: Any) -> bool:
    is_packed = type(module) is NMConv2d and module.activation == "none"
    return type(module) is nn.Conv2d or is_packed


def _fold(conv: Any, norm: Any) -> nn.Module:
    """A convolution that does what both do."""
    if type(conv) is nn.Conv2d:
        return fuse_conv_bn_eval(conv, norm)
    own = conv.weight
    fused = fuse_conv_bn_eval(conv.to_dense(), norm)
    perm = own.components.get("perm")
    layer = NMConv2d.from_dense(fused, own.encoding, prune=False, perm=perm)
    return layer.store_(own.storage)


def _traced(model: nn.Module) -> Dict[nn.Module, nn.Module]:
    """The batch norm behind each convolution, by the graph of `torch.fx`."""
    try:
        graph = _Tracer().trace(model)
    except Exception as error:
        raise EncodingError(
            f"torch.fx cannot trace the model ({error}): legal is an example of its "
            "arguments as well, such as fold_batch_norm_(model, images)"
        ) from error
    called: Counter = Counter()
    pairs = {}
    modules = dict(model.named_modules())
    for node in graph.nodes:
        if node.op != "call_module":
            continue
        module = modules[node.target]
        called[module] += 1
        source = node.args[0] if node.args else None
        if not _is_norm(module) or not isinstance(source, fx.Node):
            continue
        if source.op == "call_module" and len(source.users) == 1:
            conv = modules[source.target]
            if _is_conv(conv):
                pairs[conv] = module
    return {c: n for c, n in pairs.items() if called[c] == called[n] == 1}


def _watched(model: nn.Module, example: Any) -> Dict[nn.Module, nn.Module]:
    """The same, by a run."""
    layers = [m for m in model.modules() if _is_conv(m) or _is_norm(m)]
    watch = UseWatch()
    with calls_of(layers, watch.follow) as calls, watch:
        watch.count(call(model, example))
    made = {id(one.result): one.layer for one in calls if _is_conv(one.layer)}
    called = Counter(one.layer for one in calls)
    pairs = {}
    for one in calls:
        conv = made.get(id(one.x))
        if _is_norm(one.layer) and conv is not None and watch.uses(one.x) == 1:
            pairs[conv] = one.layer
    return {c: n for c, n in pairs.items() if called[c] == called[n] == 1}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of operators of `PackedWeight`: by which torch copies, moves, averages and
trains it, and what all others do.

An operator that keeps zeros zero acts on the values alone. Beside a packed weight of
the same pattern it takes that one's values, and of a dense tensor of the same shape
the elements at the positions that are kept. Weights with scales are read as dense
copies, and not changed.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from ...encoding import EncodingError
from .pack import gather_weight
from .storage import clear_padding
from .weight import HANDLERS, LIBRARY, PackedWeight, densify, packed_gradient

aten = torch.ops.aten


def implements(*operators: Any) -> Any:
    """Puts a function in the table for these operators."""

    def add(function: Any) -> Any:
        for operator in operators:
            HANDLERS[operator] = function
        return function

    return add


def _overloads(names: str) -> List[Any]:
    """All overloads of aten operators, by their names."""
    found = []
    for name in names.split():
        packet = getattr(aten, name, None)
        if packet is not None:  # which this release of torch has
            found += [getattr(packet, one) for one in packet.overloads()]
    return found


# Operators of one weight whose result has its pattern, also of several in a list.
_UNARY = "abs neg sqrt sign sgn square relu trunc round nan_to_num"
# The same of a weight and a number, a tensor of one element or another weight.
_SCALED = "mul div lerp addcmul addcdiv pow"
# In place, numbers change the elements that are kept, and no others.
_IN_PLACE = (
    _UNARY + " " + _SCALED + " add sub fill zero normal uniform clamp clamp_min "
    "clamp_max maximum minimum reciprocal exp trunc bernoulli exponential"
)
# Views of a part: of a weight they would be copies, and what is written to them lost.
_WINDOWS = "select diagonal unfold index narrow split_with_sizes unbind"
# Sums in which zeros do not count.
_SUMS = "_foreach_norm"
_NORMS = "linalg_vector_norm sum norm count_nonzero"


def same_pattern(a: PackedWeight, b: PackedWeight) -> bool:
    """Whether two weights keep the same positions."""
    if (a.encoding, a.matrix, a.storage) != (b.encoding, b.matrix, b.storage):
        return False
    for name in a._names[1:]:
        own, other = getattr(a, name), getattr(b, name)
        if own.untyped_storage()._cdata == other.untyped_storage()._cdata:
            continue
        if isinstance(own, FakeTensor) or own.is_meta or other.is_meta:
            continue
        if own.device != other.device or not torch.equal(own, other):
            return False
    return True


def values_like(weight: PackedWeight, other: Any, name: str = "the operator") -> Any:
    """What `other` has at the positions that `weight` keeps, if it is a tensor of the
    same shape; itself if it is a number, a tensor of one element or none."""
    if isinstance(other, PackedWeight):
        is_plain = not other.has_scale
        if is_plain and (other is weight or same_pattern(weight, other)):
            return other.values
        other = densify(other)
    if not isinstance(other, Tensor) or other.ndim == 0:
        return other
    if other.numel() == 1 and weight.numel() != 1:
        return other.reshape(())
    if other.shape != weight.shape:
        raise EncodingError(
            f"{name} has a packed weight {list(weight.shape)} and a tensor "
            f"{list(other.shape)}: legal is one of the same shape or of one element; "
            "use to_dense()"
        )
    own = weight.canonical()
    if own is not weight:
        raise EncodingError(
            f"{name} would change a weight that is stored as {weight.storage!r} by a "
            'dense tensor: store it as "canonical" first'
        )
    other = other.reshape(weight.matrix)
    return gather_weight(other, list(own.components.values()), own.encoding)


def with_values(weight: PackedWeight, values: Tensor) -> PackedWeight:
    """A weight of the same pattern with other values, which nothing else has."""
    made = weight.with_components({"values": values})
    _clear(made)
    return made


def _clear(weight: PackedWeight) -> None:
    if weight.storage == "k_major":  # kernels rely on zeros behind the kept rows
        clear_padding(weight.values, weight.spec)


def note_change(weight: Any) -> None:
    """Counts a change of the components, which below autograd torch does not; kernels
    that read another form of the weight look at it."""
    if isinstance(weight, PackedWeight):
        _clear(weight)
        for part in weight.components.values():
            torch.autograd.graph.increment_version(part)


def _is_plain(weight: Any) -> bool:
    """Whether it is a packed weight whose values are the numbers that it stands for."""
    return isinstance(weight, PackedWeight) and not weight.has_scale


def _on_values(func: Any, args: Any, kwargs: Any) -> Any:
    """The operator on the values; its result has the pattern of its first weight."""
    weight = args[0]
    name = func._schema.name
    is_elsewhere = not _is_plain(kwargs.get("out", weight))
    if is_elsewhere or not _is_plain(weight):
        return _dense(func, args, kwargs)
    rest = [values_like(weight, one, name) for one in args[1:]]
    more = {key: values_like(weight, one, name) for key, one in kwargs.items()}
    result = func(weight.values, *rest, **more)
    if func._schema.is_mutable:
        note_change(kwargs.get("out", weight))
        return kwargs.get("out", weight)
    return with_values(weight, result)


def _scaled(func: Any, args: Any, kwargs: Any) -> Any:
    """The same where all others are weights or numbers; a sum with a dense tensor is
    dense."""
    weight, name = args[0], func._schema.name
    others = [*args[1:], *kwargs.values()]
    tensors = [one for one in others if isinstance(one, Tensor)]
    is_number = all(one.numel() == 1 for one in tensors)
    is_packed = all(isinstance(one, PackedWeight) for one in tensors)
    is_product = name in ("aten::mul", "aten::div")
    if name == "aten::pow":
        is_number = isinstance(args[1], (int, float)) and args[1] > 0
        is_product = is_packed = False
    if isinstance(weight, PackedWeight) and (is_number or is_packed or is_product):
        if not (name == "aten::lerp" and len(tensors) and not is_packed):
            return _on_values(func, args, kwargs)
    return _dense(func, args, kwargs)


def _sum_of_two(func: Any, args: Any, kwargs: Any) -> Any:
    """Of two weights of one pattern; of others dense."""
    a, b = args[0], args[1]
    if isinstance(a, PackedWeight) and isinstance(b, PackedWeight):
        if not a.has_scale and same_pattern(a, b):
            return _on_values(func, args, kwargs)
    return _dense(func, args, kwargs)


def _foreach(func: Any, args: Any, kwargs: Any) -> Any:
    """Operators of lists: each list has values where the first one has weights."""
    name, first = func._schema.name, args[0]
    written = _written(func)
    if any(isinstance(one, PackedWeight) and one.has_scale for one in first):
        return _dense(func, args, kwargs)

    def item(weight: Any, one: Any, is_written: bool) -> Any:
        if not isinstance(weight, PackedWeight):
            return densify(one) if isinstance(one, PackedWeight) else one
        if is_written and isinstance(one, Tensor) and one.ndim > 0:
            if not isinstance(one, PackedWeight):
                raise _refusal(func, "would write a dense tensor beside a packed one")
        return values_like(weight, one, name)

    def column(one: Any, key: str) -> Any:
        if not isinstance(one, (list, tuple)) or len(one) != len(first):
            return one
        return [item(w, x, key in written) for w, x in zip(first, one)]

    keys = [argument.name for argument in func._schema.arguments]
    columns = [column(one, key) for one, key in zip(args, keys)]
    result = func(*columns, **{key: column(one, key) for key, one in kwargs.items()})
    if written:
        for key, one in (*zip(keys, args), *kwargs.items()):
            for each in one if key in written else ():
                note_change(each)
        return None if result is None else first
    if name in ("aten::_foreach_norm", "aten::_foreach_max"):
        return result
    return [
        with_values(w, x) if isinstance(w, PackedWeight) else x
        for w, x in zip(first, result)
    ]


def _norm(func: Any, args: Any, kwargs: Any) -> Any:
    """Over all elements; along a dimension it is computed by a dense copy."""
    weight = args[0]
    rest = [one for one in args[1:] if one is not None]
    if _is_plain(weight) and not any(
        isinstance(one, (list, tuple, bool)) and one != [] for one in rest
    ) and all(not isinstance(one, float) or one > 0 for one in rest):  # fmt: skip
        if not kwargs.get("dim") and not kwargs.get("keepdim"):
            return func(weight.values, *args[1:], **kwargs)
    return _dense(func, args, kwargs)


def _written(func: Any) -> List[str]:
    """The names of the arguments that an operator changes."""
    each = func._schema.arguments
    return [one.name for one in each if one.alias_info and one.alias_info.is_write]


def _is_window(func: Any) -> bool:
    """Whether an operator gives a part of a tensor, which might be written to."""
    returned = func._schema.returns
    is_view = bool(returned) and returned[0].alias_info is not None
    return is_view and func._schema.name.split("::")[1] in _WINDOWS


def _dense(func: Any, args: Any, kwargs: Any) -> Any:
    """Any other operator: on dense copies, if it changes no weight."""
    made_of = func.decompose(*args, **kwargs)  # which inference mode leaves to us
    if made_of is not NotImplemented:
        return made_of
    keys = [argument.name for argument in func._schema.arguments]
    given = {**dict(zip(keys, args)), **kwargs}
    if func.namespace in ("c10d", "_c10d_functional"):
        raise _refusal(func, "has no form for packed weights")
    for key in _written(func):
        leaves = pytree.tree_leaves(given.get(key))
        if any(isinstance(leaf, PackedWeight) and leaf.has_scale for leaf in leaves):
            raise _refusal(func, "would change a weight of 8 bits with a scale")
        if any(isinstance(leaf, PackedWeight) for leaf in leaves):
            raise _refusal(func, "would write past the pattern of a packed weight")
    if _is_window(func):
        raise _refusal(func, "gives a part that might be written to")

    def densified(one: Any) -> Any:
        return densify(one) if isinstance(one, PackedWeight) else one

    args, kwargs = pytree.tree_map(densified, (args, kwargs))
    return func(*args, **kwargs)


def _refusal(func: Any, reason: str) -> EncodingError:
    return EncodingError(
        f"{func._schema.name} {reason}: legal are operators that keep zeros zero; use "
        "to_dense(), change that, and pack it again by PackedWeight.from_dense"
    )


@implements(torch.ops.nm_sparse.components.default)
def _components(func: Any, args: Any, kwargs: Any) -> List[Tensor]:
    return [part.detach() for part in args[0].components.values()]


def _fill_table() -> None:
    HANDLERS[None] = _dense
    fused = "_fused_adam_ _fused_adamw_ _fused_sgd_ _fused_adagrad_"
    lists = [f"_foreach_{one}" for one in (_UNARY + " " + _SCALED).split()]
    lists += [f"_foreach_{one}_" for one in _IN_PLACE.split()]
    lists += ["_foreach_add", "_foreach_sub", "_foreach_copy_", "_foreach_maximum"]
    table: Dict[Any, Tuple[str, ...]] = {
        _on_values: (_UNARY, " ".join(f"{one}_" for one in _IN_PLACE.split())),
        _scaled: (_SCALED,),
        _sum_of_two: ("add sub maximum minimum",),
        _norm: (_NORMS,),
        _foreach: (" ".join(lists), fused, _SUMS),
    }
    for function, names in table.items():
        for overload in _overloads(" ".join(names)):
            HANDLERS.setdefault(overload, function)


def _unpacked(weight: Tensor) -> List[Tensor]:
    raise EncodingError(f"weight is a {type(weight).__name__}: legal is a PackedWeight")


def _save(ctx: Any, inputs: Tuple[Any, ...], output: List[Tensor]) -> None:
    ctx.names, ctx.own = inputs[0].__tensor_flatten__()
    ctx.save_for_backward(*output[1:])


def _gradient(ctx: Any, grads: Sequence[Optional[Tensor]]) -> Optional[Tensor]:
    return packed_gradient(ctx.own, ctx.names, ctx.saved_tensors, grads[0])


_fill_table()
LIBRARY.impl("components", _unpacked, "CompositeExplicitAutograd")
torch.library.register_autograd(
    "nm_sparse::components", _gradient, setup_context=_save, lib=LIBRARY
)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a part of a weight lies in its components: for shards of tensor parallel.

Windows and panels of the canonical form (docs/Encoding.md) do not depend on each
other. So a part of a weight that cuts neither has the components that are cut out of
those of the whole, with the same encoding.
"""

from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from . import Encoding, EncodingError, packed_shapes

# The most numbers of equal parts that an error lists.
_LISTED = 8
_SIDES = ("outputs", "inputs")


def slice_step(encoding: Encoding, dim: int) -> int:
    """Parts of a weight must begin and end at multiples of this many outputs (`dim`
    0: those of a panel) or inputs (`dim` 1: those of a window), or at its end.

    Raises EncodingError when `dim` is another one, and when the encoding is `free`.
    """
    if dim not in (0, 1):
        raise EncodingError(f"dim is {dim!r}: legal is 0 for outputs, 1 for inputs")
    if encoding.is_free:
        raise EncodingError(
            "encoding is free: its panels keep any number of blocks, so no fixed part "
            "of a component belongs to a part of the weight; slice the dense weight, "
            "then encode each part"
        )
    return encoding.block[1] if dim == 0 else encoding.m * encoding.block[0]


def equal_parts(encoding: Encoding, shape: Sequence[int], dim: int) -> List[int]:
    """Into how many equal parts a weight can be sliced, 1 first; at most 64.

    shape:  [N, K]: outputs, inputs, whatever the dim of the encoding.
    dim:    what is sliced: 0 for outputs, 1 for inputs.

    Raises EncodingError as `component_slices` does.
    """
    step, size = slice_step(encoding, dim), _sizes(shape)[dim]
    if dim == 0 and encoding.is_shuffled:
        return [1]
    return [1] + [n for n in range(2, 65) if size and size % (n * step) == 0]


def component_slices(
    encoding: Encoding, shape: Sequence[int], dim: int, begin: int, end: int
) -> Dict[str, Tuple[slice, ...]]:
    """The slices of each component, by name, that hold a part of a weight.

    encoding:    that of the whole weight and of the part.
    shape:       [N, K] of the whole weight: outputs, inputs, whatever the dim of the
                 encoding.
    dim:         what is sliced: 0 for outputs, 1 for inputs.
    begin, end:  the part is outputs or inputs `begin` to `end - 1`; 0 <= begin <=
                 end <= size.

    A component `x` of the part is `x[slices[name]]` of the whole: two slices, or one
    for `perm`. They are the components of a weight [end - begin, K] or [N, end -
    begin], canonical if those of the whole are.

    >>> component_slices(Encoding("8:32", block=(1, 128)), (512, 96), 0, 256, 512)
    {'values': (slice(0, 24, None), slice(256, 512, None)), \
'index': (slice(0, 24, None), slice(2, 4, None))}

    Raises EncodingError when the part is no range of the weight, when it cuts a panel
    or a window, and when it is a part of the outputs of a shuffled weight.
    """
    step, sizes = slice_step(encoding, dim), _sizes(shape)
    size = sizes[dim]
    if not 0 <= begin <= end <= size:
        raise EncodingError(
            f"{_SIDES[dim]} {begin} to {end} are no part of a weight {list(sizes)}: "
            f"legal is 0 <= begin <= end <= {size}"
        )
    if dim == 0 and encoding.is_shuffled and (begin, end) != (0, size):
        raise EncodingError(
            f"outputs {begin}:{end} of {size} of a shuffled weight lie in any of its "
            "panels: slice its inputs, or slice the dense weight and pack each part"
        )
    if any(place % step and place != size for place in (begin, end)):
        raise EncodingError(_cut(encoding, sizes, dim, begin, end))
    # A partial panel or window at the end of the weight is stored as a whole one.
    first, last, count = -(-begin // step), -(-end // step), -(-size // step)
    parts = {}
    whole = (sizes[1], sizes[0]) if encoding.dim == 0 else sizes
    for name, extents in packed_shapes(encoding, whole).items():
        slices = [slice(0, extent) for extent in extents]
        if name != "perm":
            # Components are in the order inputs, outputs.
            each = extents[1 - dim] // max(count, 1)
            slices[1 - dim] = slice(first * each, last * each)
        parts[name] = tuple(slices)
    return parts


def _sizes(shape: Sequence[int]) -> Tuple[int, int]:
    if len(shape) != 2:
        raise EncodingError(f"shape is {list(shape)}: legal is [outputs, inputs]")
    return int(shape[0]), int(shape[1])


def _cut(
    encoding: Encoding, sizes: Tuple[int, int], dim: int, begin: int, end: int
) -> str:
    """The error of a part that cuts a panel or a window."""
    step, size = slice_step(encoding, dim), sizes[dim]
    unit = ("a panel", "a window")[dim]
    parts = equal_parts(encoding, sizes, dim)
    listed = ", ".join(str(n) for n in parts[:_LISTED])
    more = " and more" if len(parts) > _LISTED else ""
    equal = (
        f"into {listed}{more} equal parts it can be sliced"
        if len(parts) > 1
        else "into equal parts it cannot be sliced"
    )
    return (
        f"{_SIDES[dim]} {begin}:{end} of {size} cut {unit} of {step} "
        f"({encoding.packed}): legal are multiples of {step}, and the end of the "
        f"weight; {equal}; for others, choose a smaller "
        f"{'bn' if dim == 0 else 'm or bk'}"
    )

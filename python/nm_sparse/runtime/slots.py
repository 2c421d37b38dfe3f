# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands for arguments: of a program one weight, of its kernels an array for each
component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from ..encoding import Packed


@dataclass(frozen=True)
class PreparedWeight:
    """A weight as the kernels of one function read it: see `Function.prepare`.

    arrays:  its components, in the order of the function's arguments.
    packed:  the weight in its canonical form, on the host, where it is known.
    """

    arrays: Tuple[Any, ...]
    packed: Optional[Packed]

    @property
    def nbytes(self) -> int:
        """Bytes of all components."""
        return sum(int(array.nbytes) for array in self.arrays)


@dataclass(frozen=True)
class Slot:
    """An argument of the function as its program declares it: one array, or the
    components of a packed weight."""

    numbers: Tuple[int, ...]
    weight: Optional[Dict[str, Any]] = None


def slots_of(function: Dict[str, Any]) -> List[Slot]:
    """The arguments of a function of the manifest, as its program declares them."""
    weights = {weight["number"]: weight for weight in function["weights"]}
    slots: List[Slot] = []
    seen: set = set()
    for number, argument in enumerate(function["arguments"]):
        if "weight" not in argument:
            slots.append(Slot((number,)))
            continue
        weight = weights[argument["weight"]]
        if weight["number"] in seen:
            continue
        seen.add(weight["number"])
        names = [int(one["argument"][3:]) for one in weight["components"]]
        slots.append(Slot(tuple(names), weight))
    return slots


def element_of(type_text: str) -> str:
    """The element type of `memref<?x4096xf16, ...>`; a number is of its own type."""
    if not type_text.startswith("memref<"):
        return type_text
    inside = type_text[len("memref<") :].rstrip(">").split(",")[0]
    return inside.rsplit("x", 1)[-1]

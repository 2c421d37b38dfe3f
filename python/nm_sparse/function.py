# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A function of a compiled program, called on arrays."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from .direct import DirectCall
from .encoding import Packed
from .library import Result, RuntimeFailure, last_error, library
from .operands import (
    HOST,
    NativeArrays,
    Operand,
    OperandError,
    allocator,
    as_view,
    current_stream,
    is_torch,
    open_operand,
)
from .oracle import Oracle
from .storage import canonical, store
from .transfer import as_numpy, give_back, place

if TYPE_CHECKING:
    from .program import Program

_ALIGNMENT = 16  # bytes, of what kernels read and write


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
class _Slot:
    """An argument of the function as its program declares it: one array, or the
    components of a packed weight."""

    numbers: Tuple[int, ...]
    weight: Optional[Dict[str, Any]] = None


def _slots(function: Dict[str, Any]) -> List[_Slot]:
    weights = {weight["number"]: weight for weight in function["weights"]}
    slots: List[_Slot] = []
    seen: set = set()
    for number, argument in enumerate(function["arguments"]):
        if "weight" not in argument:
            slots.append(_Slot((number,)))
            continue
        weight = weights[argument["weight"]]
        if weight["number"] in seen:
            continue
        seen.add(weight["number"])
        names = [int(one["argument"][3:]) for one in weight["components"]]
        slots.append(_Slot(tuple(names), weight))
    return slots


def _element(type_text: str) -> str:
    """The element type of `memref<?x4096xf16, ...>`."""
    inside = type_text[len("memref<") :].rstrip(">").split(",")[0]
    return inside.rsplit("x", 1)[-1]


class Function:
    """One function of a `Program`. Its arguments are those of the source, in their
    order: arrays, and for a weight with an encoding what `nm.pack` gives, or, on a
    GPU, what `prepare` makes of it.

    >>> import nm_sparse as nm  # doctest: +SKIP
    >>> program = nm.compile(spec)  # doctest: +SKIP
    >>> y = program(x, packed, out)  # doctest: +SKIP
    """

    def __init__(self, program: "Program", description: Dict[str, Any]) -> None:
        self.name: str = description["name"]
        self._program = program
        self._slots = _slots(description)
        self._types = [one["type"] for one in description["arguments"]]
        self._elements = [_element(text) for text in self._types]
        self._count = len(self._types)
        self._oracle: Optional[Oracle] = None
        self._number: Optional[int] = None
        self._direct: Optional[DirectCall] = None
        self._placed: Dict[Tuple[int, int], Tuple[Any, PreparedWeight]] = {}
        self.results_in: List[Optional[int]] = program.find_results(description)
        found = self.results_in
        self._writes_to_arguments = bool(found) and None not in found

    @property
    def weights(self) -> List[Dict[str, Any]]:
        """Its packed weights, as docs/Manifest.md describes them."""
        return [slot.weight for slot in self._slots if slot.weight is not None]

    def prepare(self, weight: Any, number: int = 0, like: Any = None) -> PreparedWeight:
        """A packed weight as the kernels read it.

        weight:  what `nm.pack` gives.
        number:  which of the function's weights it is.
        like:    an array on the GPU that the components are copied to; none: they
                 stay arrays of numpy.

        Raises EncodingError when it is of another shape, type or pattern.
        """
        packed = _get_packed(weight, self.name)
        arrays: Sequence[Any] = store(packed, self.weights[number])
        if like is not None:
            numbers = [s for s in self._slots if s.weight is not None][number].numbers
            elements = [self._elements[i] for i in numbers]
            arrays = [
                place(array, element, like) for array, element in zip(arrays, elements)
            ]
        return PreparedWeight(tuple(arrays), packed)

    def __call__(self, *arguments: Any, stream: Optional[int] = None) -> Any:
        """Calls the function; its result, or a tuple of several.

        Arrays on a GPU: launches on `stream` (an address; none: the current one of
        torch or cupy) and returns without waiting. Arrays of the host: the program
        runs on the CPU, without kernels. Where a result is written to an argument,
        as programs with a destination do, that array is returned.

        Raises OperandError for arguments that the function does not take, and
        RuntimeFailure for what the driver refuses.
        """
        if self._writes_to_arguments and len(arguments) == len(self._slots):
            result = self._call_directly(arguments, stream)
            if result is not None:
                return result
        if len(arguments) != len(self._slots):
            raise OperandError(
                f"@{self.name} takes {len(self._slots)} arguments, got {len(arguments)}"
            )
        opened = [
            None if slot.weight is not None else open_operand(argument, self._say(i))
            for i, (slot, argument) in enumerate(zip(self._slots, arguments))
        ]
        first = next((one for one in opened if one is not None), None)
        if first is None:
            raise OperandError(f"@{self.name} has no array that says where to run")
        for i, one in enumerate(opened):
            if one is not None and one.device != first.device:
                raise OperandError(
                    f"{self._say(i)} is on {_place_name(one.device)}, and others are "
                    f"on {_place_name(first.device)}: all must be in one place"
                )
        if first.device == HOST:
            results = self._run_on_host(arguments, opened)
        else:
            results = self._run_on_device(arguments, first, stream)
        return results[0] if len(results) == 1 else tuple(results)

    def _say(self, argument: int) -> str:
        return f"argument {argument} of @{self.name}"

    def _run_on_host(
        self, arguments: Sequence[Any], opened: Sequence[Optional[Operand]]
    ) -> List[Any]:
        if self._oracle is None:
            self._oracle = Oracle(self._program.source, self.name)
        arrays: List[np.ndarray] = []
        for slot, argument, one in zip(self._slots, arguments, opened):
            if slot.weight is not None:
                packed = _get_packed(argument, self.name)
                # Programs take free weights in the layouts of kernels alone.
                free = packed.encoding.is_free
                stored = store(packed, slot.weight) if free else canonical(packed)
                arrays.extend(stored)
            else:
                arrays.append(as_numpy(argument, one))
        results = []
        for found, value in zip(self.results_in, self._oracle(arrays)):
            target = None if found is None else self._find(found, arguments)
            results.append(give_back(value, target, arguments))
        return results

    def _find(self, number: int, arguments: Sequence[Any]) -> Any:
        """The argument that argument `number` of the manifest belongs to."""
        return next(
            argument
            for slot, argument in zip(self._slots, arguments)
            if slot.numbers == (number,)
        )

    def flatten(self, arguments: Sequence[Any]) -> List[Any]:
        """`arguments`, with prepared weights, as the kernels number them."""
        flat: List[Any] = [None] * self._count
        for slot, argument in zip(self._slots, arguments):
            weight = slot.weight is not None
            parts = argument.arrays if weight else (argument,)
            for number, part in zip(slot.numbers, parts):
                flat[number] = part
        return flat

    def _on_device(self, weight: Any, number: int, like: Any) -> PreparedWeight:
        """`weight` where `like` is; copied there once for each weight."""
        if isinstance(weight, PreparedWeight):
            if any(isinstance(array, np.ndarray) for array in weight.arrays):
                return self.prepare(weight, number, like)
            return weight
        device = open_operand(like, "an array").device
        key = (id(weight), device)
        found = self._placed.get(key)
        if found is None or found[0]() is not weight:
            prepared = self.prepare(weight, number, like)
            gone = weakref.ref(weight, lambda _: self._placed.pop(key, None))
            found = self._placed[key] = (gone, prepared)
        return found[1]

    def _get_number(self) -> int:
        if self._number is None:
            handle = self._program.handle
            number = library().nmsProgramFunction(handle, self.name.encode())
            if number < 0:
                raise RuntimeFailure(last_error())
            self._number = number
        return self._number

    @property
    def direct(self) -> DirectCall:
        """Launches on tensors of torch, of which each component of a weight is one:
        for who calls the function often, and finds results in arguments."""
        if self._direct is None:
            elements, handle = self._elements, self._program.handle
            self._direct = DirectCall(handle, self._get_number(), elements)
        return self._direct

    def _call_directly(self, arguments: Sequence[Any], stream: Optional[int]) -> Any:
        """The result of a call on tensors of torch on a GPU with a prepared weight; or
        None, with nothing launched."""
        flat: List[Any] = [None] * self._count
        device = HOST
        for slot, argument in zip(self._slots, arguments):
            if slot.weight is None:
                flat[slot.numbers[0]] = argument
                if device == HOST and is_torch(argument):
                    device = argument.get_device()
            elif type(argument) is PreparedWeight:
                for number, part in zip(slot.numbers, argument.arrays):
                    flat[number] = part
            else:
                return None
        if device == HOST or not self.direct(flat, device, stream):
            return None
        results = [flat[number] for number in self.results_in if number is not None]
        return results[0] if len(results) == 1 else tuple(results)

    def _run_on_device(
        self, arguments: Sequence[Any], first: Operand, stream: Optional[int]
    ) -> List[Any]:
        weights = iter(range(self._count))
        flat = self.flatten(
            [
                argument
                if slot.weight is None
                else self._on_device(argument, next(weights), first.owner)
                for slot, argument in zip(self._slots, arguments)
            ]
        )
        stream = current_stream(first) if stream is None else stream
        operands = [open_operand(a, self._say(i)) for i, a in enumerate(flat)]
        for i, operand in enumerate(operands):
            self._check(i, operand, first)
        native = NativeArrays(operands)
        lib, handle, number = library(), self._program.handle, self._get_number()
        set_device(first.device)
        size = lib.nmsProgramWorkspace(handle, number, native.arrays, native.count)
        if size < 0:
            raise OperandError(last_error())
        memory = allocator(first)(size) if size else None
        where = 0 if memory is None else open_operand(memory, "the workspace").address
        if lib.nmsProgramLaunch(
            handle, number, native.arrays, native.count, where, stream
        ):
            raise RuntimeFailure(last_error())
        return self._collect(native, flat, memory)

    def _check(self, number: int, operand: Operand, first: Operand) -> None:
        what = f"argument {number} of the kernels of @{self.name}"
        if not operand.fits(self._elements[number]):
            raise OperandError(
                f"{what} has elements of {operand.dtype}: legal is "
                f"{self._elements[number]}"
            )
        if operand.device != first.device:
            raise OperandError(
                f"{what} is on {_place_name(operand.device)}, and others are on "
                f"{_place_name(first.device)}"
            )
        if operand.address % _ALIGNMENT and 0 not in operand.sizes:
            raise OperandError(
                f"{what} begins at {operand.address:#x}: legal is a multiple of "
                f"{_ALIGNMENT} bytes; pass a copy"
            )

    def _collect(self, native: NativeArrays, flat: List[Any], memory: Any) -> List[Any]:
        lib, handle = library(), self._program.handle
        results = []
        for i in range(lib.nmsProgramResults(handle, self._get_number())):
            result = Result()
            if lib.nmsProgramResult(
                handle, self._number, native.arrays, native.count, i,
                ctypes.byref(result),
            ):  # fmt: skip
                raise RuntimeFailure(last_error())
            if result.argument >= 0:
                results.append(flat[result.argument])
                continue
            shape = tuple(result.sizes[: result.rank])
            strides = tuple(result.strides[: result.rank])
            element = self._program.element_of_kind(result.kind)
            results.append(as_view(memory, result.offset, shape, strides, element))
        return results


def _place_name(device: int) -> str:
    return "the host" if device == HOST else f"GPU {device}"


def _get_packed(weight: Any, function: str) -> Packed:
    """The canonical form of what stands for a weight."""
    packed = getattr(weight, "packed", weight)
    if isinstance(packed, Packed):
        return packed
    raise OperandError(
        f"a weight of @{function} is {type(weight).__name__}: legal is what nm.pack "
        "gives"
    )


def set_device(ordinal: int) -> None:
    """Makes `ordinal` the runtime's device on this thread; -1: the usual one."""
    library().nmsSetDevice(ordinal)

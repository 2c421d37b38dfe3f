# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A function of a compiled program, called on arrays."""

from __future__ import annotations

import ctypes
import functools
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ..bindings.library import (
    Result,
    RuntimeFailure,
    element_of_kind,
    last_error,
    library,
)
from ..direct import DirectCall, direct_call
from ..encoding import Encoding, EncodingError, Packed
from ..interop.operands import (
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
from ..interop.transfer import as_numpy, give_back, place
from ..packing.storage import canonical, check_kind, store
from .oracle import Oracle
from .placed import find_placed
from .slots import PreparedWeight, element_of, slots_of

if TYPE_CHECKING:
    from .program import Program

ALIGNMENT = 16  # bytes, of what kernels read and write


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
        self._slots = slots_of(description)
        self._types = [one["type"] for one in description["arguments"]]
        self._elements = [element_of(text) for text in self._types]
        self._count = len(self._types)
        self._oracle: Optional[Oracle] = None
        self._number: Optional[int] = None
        self.launch: Optional[DirectCall] = None  # once it has run on a GPU
        self._placed: Dict[Tuple[int, int, int], Tuple[Any, PreparedWeight]] = {}
        self.results_in: List[Optional[int]] = program.find_results(description)
        found = self.results_in
        self.writes_to_arguments = bool(found) and None not in found
        self._has_checks = program.has_checks(description)

    @property
    def weights(self) -> List[Dict[str, Any]]:
        """Its packed weights, as docs/Manifest.md describes them."""
        return [slot.weight for slot in self._slots if slot.weight is not None]

    def prepare(self, weight: Any, number: int = 0, like: Any = None) -> PreparedWeight:
        """A packed weight as the kernels read it.

        weight:  what `nm.pack` gives.
        number:  which of the function's weights it is.
        like:    an array on the GPU that the components are copied to, unless they
                 are there as the kernels read them; none: they stay arrays of numpy.

        Raises EncodingError when it is of another shape, type or pattern.
        """
        if like is not None:
            numbers = [s for s in self._slots if s.weight is not None][number].numbers
            elements = [self._elements[i] for i in numbers]
            placed = find_placed(weight, self.weights[number], elements, like)
            if placed is not None:
                return PreparedWeight(placed, None)
        packed = _get_packed(weight, self.name)
        arrays: Sequence[Any] = store(packed, self.weights[number])
        if like is not None:
            arrays = [
                place(array, element, like) for array, element in zip(arrays, elements)
            ]
        return PreparedWeight(tuple(arrays), packed)

    def __call__(self, *arguments: Any, stream: Optional[int] = None) -> Any:
        """Calls the function; its result, or a tuple of several.

        Arrays on a GPU: launches on `stream` (an address; none: the current one of
        torch or cupy) and returns without waiting, unless the program packs a weight:
        then it waits for the check. Arrays of the host: the program
        runs on the CPU, without kernels. Where a result is written to an argument,
        as programs with a destination do, that array is returned.

        Raises OperandError for arguments that the function does not take,
        EncodingError for a weight that breaks the pattern it is packed in, and
        RuntimeFailure for what the driver refuses.
        """
        if self.launch is not None:
            result = self.launch(stream, *arguments)
            if result is None and self._placed:
                result = self.launch(stream, *self._replace(arguments))
            if result is not None:
                return result
        self.check_count(arguments)
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
            if is_torch(first.owner):
                self.launch = self.direct
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def takes_weights(self) -> List[bool]:
        """Of each argument, whether it is a packed weight."""
        return [slot.weight is not None for slot in self._slots]

    def check_count(self, arguments: Sequence[Any]) -> None:
        """Raises OperandError unless there are as many as the function takes, and it
        takes arrays alone."""
        if len(arguments) != len(self._slots):
            raise OperandError(
                f"@{self.name} takes {len(self._slots)} arguments, got {len(arguments)}"
            )
        for i, text in enumerate(self._types):
            if not text.startswith("memref<"):
                raise OperandError(
                    f"argument {i} of the kernels of @{self.name} is a number, {text}: "
                    "legal in calls from Python are arrays; make it a constant of the "
                    "program"
                )

    def _say(self, argument: int) -> str:
        return f"argument {argument} of @{self.name}"

    def _run_on_host(
        self, arguments: Sequence[Any], opened: Sequence[Optional[Operand]]
    ) -> List[Any]:
        if self._oracle is None:
            self._oracle = Oracle(self._program.source, self.name)
        arrays: List[np.ndarray] = []
        for i, (slot, one) in enumerate(zip(self._slots, opened)):
            if one is None:
                packed = _get_packed(arguments[i], self.name)
                self._check_weight(packed, slot.weight)
                # Programs take free weights in the layouts of kernels alone.
                free = packed.encoding.is_free
                arrays.extend(store(packed, slot.weight) if free else canonical(packed))
            else:
                self.check_elements(slot.numbers[0], one, self._say(i))
                self._check_writable(slot.numbers[0], one, self._say(i))
                arrays.append(as_numpy(arguments[i], one))
        results = []
        for found, (value, element) in zip(self.results_in, self._oracle.run(arrays)):
            target = None if found is None else self._find(found, arguments)
            results.append(give_back(value, element, target, arguments))
        return results

    def _check_weight(self, packed: Packed, weight: Dict[str, Any]) -> None:
        """The CPU multiplies by the components as they are, and others may have their
        shapes, too."""
        check_kind(packed, weight)
        legal = {Encoding.parse(weight["encoding"]), *self._program.encodings}
        if packed.encoding not in legal:
            raise EncodingError(
                f"the weight is packed as {packed.encoding}: @{self.name} takes "
                f"{' or '.join(sorted(map(str, legal)))}"
            )

    def check_elements(self, number: int, operand: Operand, what: str) -> None:
        """Raises OperandError unless argument `number` of the kernels may be `operand`,
        as far as its elements tell; `what` is how an error calls it."""
        legal = self._elements[number]
        if not operand.fits(legal):
            raise OperandError(
                f"{what} has elements of {operand.dtype}: legal is {legal}; convert it"
            )

    def _check_writable(self, number: int, operand: Operand, what: str) -> None:
        if operand.is_read_only and number in self.results_in:
            raise OperandError(
                f"{what} is read-only, and a result is written to it: pass a copy"
            )

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
            if not any(isinstance(array, np.ndarray) for array in weight.arrays):
                return weight
        device = open_operand(like, "an array").device
        key = (id(weight), number, device)
        found = self._placed.get(key)
        if found is None or found[0]() is not weight:
            prepared = self.prepare(weight, number, like)
            # No reference to this function, which the weight would keep alive.
            forget = functools.partial(_forget, weakref.ref(self), key)
            found = self._placed[key] = (weakref.ref(weight, forget), prepared)
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
        """Launches on tensors of torch, for who calls the function often: see
        `nm_sparse.direct`. Declines all calls where results have no arguments that
        they are written to, or checks follow the launches."""
        if self.launch is None:
            slots = [
                slot.numbers if slot.weight is not None else slot.numbers[0]
                for slot in self._slots
            ]
            is_direct = self.writes_to_arguments and not self._has_checks
            results = self.results_in if is_direct else []
            self.launch = direct_call(
                self._program,
                self._get_number(),
                self._elements,
                slots,
                [slots.index(number) for number in results if number is not None],
            )
        return self.launch

    def _replace(self, arguments: Sequence[Any]) -> List[Any]:
        """The arguments, with weights as they were put on a GPU by an earlier call."""
        numbers = iter(range(len(arguments)))
        device = next((a.get_device() for a in arguments if is_torch(a)), HOST)
        found = []
        for slot, argument in zip(self._slots, arguments):
            known = None
            if slot.weight is not None:
                known = self._placed.get((id(argument), next(numbers), device))
            is_same = known is not None and known[0]() is argument
            found.append(known[1] if known is not None and is_same else argument)
        return found

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
        memory = None
        if size or not self.writes_to_arguments:
            memory = allocator(first, stream)(size)
        where = 0 if memory is None else open_operand(memory, "the workspace").address
        if lib.nmsProgramLaunch(
            handle, number, native.arrays, native.count, where, stream
        ):
            raise RuntimeFailure(last_error())
        if self._has_checks:
            native.check(handle, number, where, stream)
        return self._collect(native, flat, memory)

    def _check(self, number: int, operand: Operand, first: Operand) -> None:
        what = f"argument {number} of the kernels of @{self.name}"
        self.check_elements(number, operand, what)
        self._check_writable(number, operand, what)
        if operand.device != first.device:
            raise OperandError(
                f"{what} is on {_place_name(operand.device)}, and others are on "
                f"{_place_name(first.device)}"
            )
        if operand.address % ALIGNMENT and 0 not in operand.sizes:
            raise OperandError(
                f"{what} begins at {operand.address:#x}: legal is a multiple of "
                f"{ALIGNMENT} bytes; pass a copy"
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
            element = element_of_kind(result.kind)
            results.append(as_view(memory, result.offset, shape, strides, element))
        return results


def _forget(function: "weakref.ref[Function]", key: Any, weight: Any) -> None:
    """Drops what was made of a weight that is no more."""
    owner = function()
    if owner is not None:
        owner._placed.pop(key, None)


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

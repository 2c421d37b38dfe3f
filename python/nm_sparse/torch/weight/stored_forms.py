# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights as compiled kernels read them.

A program reads a weight in the packed form that its kernels want. Where the operands
have another one, the form is made once for each weight, and written anew, into the same
memory, when the weight has changed: CUDA graphs that were captured read it there.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from ...encoding import Encoding, EncodingError
from .levels import bits_of
from .pack import pack_weight, unpack_weight
from .scales import dequantize_parts
from .spec import LinearSpec
from .storage import from_storage, to_storage

_ALIGNMENT = 16  # bytes, of what kernels read
# The forms of layers by their layouts in docs/Encoding.md.
_FORMS = {
    **dict.fromkeys((1, 2, 7, 8), "canonical"),
    **dict.fromkeys((4, 6), "bitmap"),
    12: "k_major",
}
_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32}


def storage_of(layout: int) -> str:
    """The form of a weight of that layout, by its name.

    Raises EncodingError for a layout that layers do not have.
    """
    if layout not in _FORMS:
        raise EncodingError(
            f"kernels read layout {layout}, which layers do not have: legal are "
            f"{', '.join(map(str, sorted(_FORMS)))}"
        )
    return _FORMS[layout]


class StoredForm:
    """How kernels read a weight.

    spec:         of its layer. Of a weight with a scale kernels read the products,
                  unless this is `LinearSpec.unscaled`.
    description:  of the weight, in the manifest of a program.

    Raises EncodingError for a layout that layers do not have.
    """

    def __init__(self, spec: LinearSpec, description: Mapping[str, Any]) -> None:
        self.encoding = Encoding.parse(description["encoding"])
        self.names = [one["name"] for one in description["components"]]
        self.storage = storage_of(description["packed_layout"])
        self.spec = spec.of_weight

    @functools.cached_property
    def key(self) -> str:
        """What the form of a weight depends on; the activation is none of that."""
        weight = replace(self.spec, activation="none").text
        return f"{self.storage} {self.encoding.mlir()} {weight}"

    @functools.cached_property
    def has_own_encoding(self) -> bool:
        """Whether kernels read the weight by the encoding of the layer."""
        return self.encoding == self.spec.encoding

    def reads(self, storage: str) -> bool:
        """Whether weights of the layer that are stored so are what kernels read."""
        is_own = self.has_own_encoding and self.spec.elements is None
        return self.storage == storage and is_own

    def store(
        self, weight: Sequence[Tensor], storage: str = "canonical"
    ) -> List[Tensor]:
        """The components as the kernels read them.

        storage:  the form of `weight`.
        """
        spec = replace(self.spec, storage=storage)
        if not self.reads(storage):
            is_scaled = spec.elements is not None
            unpack = dequantize_parts if is_scaled else from_storage
            weight = self._convert(unpack(weight, spec))
        own = dict(storage=self.storage, encoding=self.encoding)
        spec = replace(self.spec.dequantized, **own)
        parts = dict(zip(spec.components, weight))
        return [as_operand(parts[name]) for name in self.names]

    def _convert(self, weight: Sequence[Tensor]) -> List[Tensor]:
        spec = self.spec.dequantized
        if not self.has_own_encoding:
            # All weights of the layer's encoding are of this one, too.
            plain = [bits_of(weight[0].contiguous()), *weight[1:]]
            dense = unpack_weight(plain, spec.encoding, spec.shape)
            other = pack_weight(dense.view(spec.torch_dtype), self.encoding)
            spec = LinearSpec(self.encoding, spec.shape, spec.dtype)
            weight = list(other.values())
        return to_storage(weight, spec, self.storage)


def as_operand(part: Tensor) -> Tensor:
    """A component as programs declare it: contiguous, where kernels can read it, and
    integers signed."""
    part = aligned(part.detach().contiguous())
    if part.dtype.is_floating_point:
        return part
    return part.view(_SIGNED[part.element_size()])


def aligned(x: Tensor) -> Tensor:
    """x, or a copy of it that begins where kernels can read."""
    return x if x.data_ptr() % _ALIGNMENT == 0 else x.clone()


# The state of the memory that each component is in.
_Version = List[Tuple[int, int]]
# Where a weight is: its memory, where it begins there, its storage, and how many
# components forms are made of, with or without a scale.
_Place = Tuple[int, int, str, int]


def _version(weight: Sequence[Tensor]) -> _Version:
    return [(part.data_ptr(), part._version) for part in weight]


def _place(weight: Sequence[Tensor], storage: str) -> Tuple[StorageWeakRef, _Place]:
    memory = StorageWeakRef(weight[0].untyped_storage())
    offset = weight[0].storage_offset()
    return memory, (memory.cdata, offset, storage, len(weight))


class _Form:
    """A weight as kernels read it.

    memory:   that the weight is in; a weak reference, which keeps its name from being
              used again.
    kernels:  that read it so.
    version:  the state of that when it was stored.
    parts:    what kernels read, always in the same memory, and of nothing else.
    readers:  streams of kernels that may read the parts.
    stream:   on which the parts were written last.
    written:  the event behind that, for other streams.
    """

    def __init__(
        self,
        memory: StorageWeakRef,
        parts: List[Tensor],
        kernels: Optional[StoredForm] = None,
    ) -> None:
        self.memory, self.parts, self.kernels = memory, parts, kernels
        self.version: _Version = []
        self.readers: Dict[int, Any] = {}
        self.stream: Any = None
        self.written: Any = None
        self._note_written()

    def _note_written(self) -> None:
        if self.parts[0].is_cuda:
            self.stream = torch.cuda.current_stream(self.parts[0].device)
            self.readers[self.stream.cuda_stream] = self.stream
            self.written = self.stream.record_event()

    def use(self) -> List[Tensor]:
        """The parts, for kernels on the current stream."""
        if self.written is not None:
            stream = torch.cuda.current_stream(self.parts[0].device)
            if stream.cuda_stream != self.stream.cuda_stream:
                stream.wait_event(self.written)
                self._keep_for(stream)
        return self.parts

    def _keep_for(self, stream: Any) -> None:
        """Says that the memory must not be used again before work on the stream."""
        if stream.cuda_stream not in self.readers:
            self.readers[stream.cuda_stream] = stream
            for part in self.parts:
                part.record_stream(stream)

    def write(self, parts: Sequence[Tensor]) -> None:
        """Puts others in the place of the parts, behind all kernels that read them."""
        if self.written is not None:
            stream = torch.cuda.current_stream(self.parts[0].device)
            for address, reader in list(self.readers.items()):
                if address != stream.cuda_stream:
                    stream.wait_event(reader.record_event())
            self._keep_for(stream)
        for part, new in zip(self.parts, parts):
            part.copy_(new)
        self._note_written()


def _is_captured(tensor: Tensor) -> bool:
    """Whether what is done with it now becomes part of a CUDA graph."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def _own(parts: Sequence[Tensor], weight: Sequence[Tensor]) -> List[Tensor]:
    """The parts, and copies of those that are components of the weight itself."""
    taken = {part.untyped_storage().data_ptr() for part in weight}
    return [
        part.clone() if part.untyped_storage().data_ptr() in taken else part
        for part in parts
    ]


def _wait_for_writers(weight: Sequence[Tensor], is_new: bool) -> None:
    """Waits for all work on the device, where a form is made that is kept: what writes
    the weight may be on a stream that the current one does not wait for. A weight that
    is trained gets new forms in each step, where that would take too long."""
    if weight[0].is_cuda and (is_new or not weight[0].requires_grad):
        torch.cuda.synchronize(weight[0].device)


class StoredForms:
    """Weights in the forms that kernels read, as long as their `values` live.

    A weight may have several: of several programs, and a dense one (`dense_copies.py`).
    """

    def __init__(self) -> None:
        # The forms of each weight, by the keys of their kernels.
        self._forms: Dict[_Place, Dict[str, _Form]] = {}
        self._lock = threading.Lock()  # of what writes forms

    def get(
        self,
        weight: Sequence[Tensor],
        kernels: StoredForm,
        storage: str = "canonical",
    ) -> List[Tensor]:
        """The components of `weight`, stored as `storage`, as `kernels` read them."""
        parts = [part.detach() for part in weight]
        if kernels.reads(storage):
            return [as_operand(part) for part in parts]
        # Inference tensors do not say when they change.
        if any(part.is_inference() for part in parts):
            return kernels.store(parts, storage)
        memory, place = _place(weight, storage)
        version = _version(weight)
        known = self._forms.get(place, {}).get(kernels.key)
        is_current = known is not None and known.version == version
        if _is_captured(parts[0]):
            # What is made now is there when the graph is replayed, and not before; a
            # weight that is trained may change in between. torch has waited for all
            # work before the capture.
            if known is not None and is_current and not weight[0].requires_grad:
                return known.parts
            return kernels.store(parts, storage)
        if known is None or not is_current:
            _wait_for_writers(weight, is_new=known is None)
            # Tensors made in inference mode could not be written again outside of it.
            with self._lock, torch.inference_mode(False), torch.no_grad():
                known = self._write(place, memory, version, parts, kernels, storage)
                if not weight[0].requires_grad:
                    self._write_others(place, version, parts)
        return known.use()

    def follow(self, weight: Sequence[Tensor], storage: str = "canonical") -> None:
        """Writes the forms of a weight that has changed anew, those that there are:
        graphs read them, also where the call at hand does not. Graphs of a weight that
        is trained make their own."""
        if weight[0].requires_grad or any(part.is_inference() for part in weight):
            return
        _, place = _place(weight, storage)
        forms, version = self._forms.get(place), _version(weight)
        if forms is None or _is_captured(weight[0]):
            return
        if any(form.version != version for form in list(forms.values())):
            _wait_for_writers(weight, is_new=False)
            parts = [part.detach() for part in weight]
            with self._lock, torch.inference_mode(False), torch.no_grad():
                self._write_others(place, version, parts)

    def has(self, weight: Sequence[Tensor], storage: str = "canonical") -> bool:
        """Whether there are forms of a weight."""
        return bool(self._forms.get(_place(weight, storage)[1]))

    def drop(
        self, weight: Sequence[Tensor], kernels: StoredForm, storage: str = "canonical"
    ) -> None:
        """Gives back the memory of a form, which no graph must read any more."""
        with self._lock:
            self._forms.get(_place(weight, storage)[1], {}).pop(kernels.key, None)

    def _write(
        self,
        place: _Place,
        memory: StorageWeakRef,
        version: _Version,
        weight: Sequence[Tensor],
        kernels: StoredForm,
        storage: str,
    ) -> _Form:
        """The form of a weight in its present version, by the thread with the lock."""
        self._drop()
        known = self._forms.get(place, {}).get(kernels.key)
        if known is not None and known.version == version:
            return known  # another thread was first
        if known is None:
            parts = _own(kernels.store(weight, storage), weight)
            known = _Form(memory, parts, kernels)
            known.version = version
            self._forms.setdefault(place, {})[kernels.key] = known
        else:
            known.write(kernels.store(weight, storage))
            known.version = version
        return known

    def _write_others(
        self, place: _Place, version: _Version, weight: Sequence[Tensor]
    ) -> None:
        """Brings all forms of a weight to its present version."""
        for form in list(self._forms.get(place, {}).values()):
            if form.version != version and form.kernels is not None:
                form.write(form.kernels.store(weight, place[2]))
                form.version = version

    def forget(self, values: Tensor) -> None:
        """Gives back the forms of a weight whose memory was written without its
        version's changing."""
        place = StorageWeakRef(values.untyped_storage()).cdata
        with self._lock:
            for key in [one for one in self._forms if one[0] == place]:
                del self._forms[key]

    def drop_expired(self) -> None:
        """Gives back the memory of forms whose weights are gone."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        for place, forms in list(self._forms.items()):
            if all(form.memory.expired() for form in forms.values()):
                del self._forms[place]


# Those of all weights. Graphs that torch has recorded know the components alone, so
# forms are found by the memory of these; they are given back with it.
STORED = StoredForms()


def forget_forms(values: Tensor) -> None:
    """Has the forms of a weight made anew whose values are in this memory."""
    STORED.forget(values)

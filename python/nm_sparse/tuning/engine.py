# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tuner of the library, through ctypes: `nm_sparse-c/Tuner.h`."""

from __future__ import annotations

import json
import threading
from ctypes import byref, c_int64
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Dict, Iterator, Optional, Sequence, Union

from ..bindings import library as native
from ..compiler import CompileError

# Held while a search of this process runs: there is one recording of launches.
_running = threading.Lock()


@dataclass(frozen=True)
class Search:
    """How products are measured; the fields of NmSparseTuneOptions."""

    database: str = ""
    candidates: int = 12
    neighbours: int = 4
    sample_ms: int = 400
    seed: int = 0
    minutes: Optional[float] = None
    lock: str = ""
    emulates: bool = False


class Engine:
    """Products of programs, and the search for their schedules.

    gpu:        that kernels are for.
    objective:  time, energy or edp.
    tokens:     to tune for; none: those that programs for any number have kernels for.

    Raises ValueError for one that is not legal.
    """

    def __init__(self, gpu: str, objective: str, tokens: Sequence[int]) -> None:
        self._library = native.library()
        numbers = (c_int64 * len(tokens))(*tokens)
        self._tuner: Optional[int] = self._library.nmSparseTunerCreate(
            gpu.encode(), objective.encode(), numbers, len(tokens)
        )
        if not self._tuner:
            raise ValueError(native.last_error())

    def __del__(self) -> None:
        if getattr(self, "_tuner", None):
            self._library.nmSparseTunerDestroy(self._tuner)

    def add(self, program: str, label: str, is_of_model: bool) -> None:
        """Adds the products of MLIR text. Raises CompileError."""
        text = program.encode()
        if self._library.nmSparseTunerAdd(
            self._tuner, text, len(text), label.encode(), is_of_model
        ):
            raise CompileError(native.last_error())

    def list(self) -> Dict[str, Any]:
        """The products and those that are skipped, as nmSparseTunerList has them."""
        found: Dict[str, Any] = json.loads(self._library.nmSparseTunerList(self._tuner))
        return found

    def run(self, search: Search) -> Iterator[Dict[str, Any]]:
        """The findings, one for each product, in the form of NmSparseTuned. The search
        is in a thread of its own, which waits until it is asked for the next one, and
        ends where nobody does. Raises ValueError for an option that is not legal,
        and RuntimeError for an error of the device or the database."""
        options = _options(search)
        if not _running.acquire(blocking=False):
            raise RuntimeError(
                "another search of this process has not ended: go on with it, or close "
                "it, first"
            )
        found: SimpleQueue[Union[str, Exception, None]] = SimpleQueue()
        asked, enough = threading.Semaphore(0), threading.Event()

        @native.TUNED
        def report(text: bytes, _context: Any) -> int:
            found.put(text.decode())
            # Nothing is measured that nobody asks for: launches of the caller would
            # become part of what is timed.
            while not asked.acquire(timeout=0.2):
                if not threading.main_thread().is_alive():
                    return 1
            return int(enough.is_set())

        def work() -> None:
            try:
                if self._library.nmSparseTunerRun(
                    self._tuner, byref(options), report, None
                ):
                    found.put(RuntimeError(native.last_error()))
            finally:
                if search.emulates:
                    native.note_emulator()
                _running.release()
                found.put(None)

        thread = threading.Thread(target=work, name="nm_sparse tuner")
        thread.start()
        try:
            while (one := found.get()) is not None:
                if isinstance(one, Exception):
                    raise one
                yield json.loads(one)
                asked.release()
        finally:
            enough.set()
            asked.release()
            thread.join()


def _options(search: Search) -> native.TuneOptions:
    for name, least in (("candidates", 1), ("neighbours", 0), ("sample_ms", 1)):
        value = getattr(search, name)
        if value < least:
            raise ValueError(f"{name} is {value}: legal are {least} and more")
    if search.minutes is not None and not search.minutes >= 0:
        raise ValueError(f"minutes is {search.minutes}: legal are 0 and more")
    if not 0 <= search.seed < 1 << 64:
        raise ValueError(f"seed is {search.seed}: legal are 0 to {(1 << 64) - 1}")
    return native.TuneOptions(
        search.database.encode(),
        search.lock.encode(),
        search.candidates,
        search.neighbours,
        search.sample_ms,
        search.seed,
        -1.0 if search.minutes is None else search.minutes,
        search.emulates,
    )

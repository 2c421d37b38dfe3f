# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs, compiled: kernels, how to launch them, and what the compiler says."""

from __future__ import annotations

import json
import re
import threading
from functools import cached_property, lru_cache
from typing import Any, Dict, FrozenSet, List, Optional, Protocol, Sequence, Union

from .. import compiler
from ..bindings.library import (
    RuntimeFailure,
    device_chip,
    device_gpu,
    last_error,
    library,
)
from ..compiler import CompileError
from ..encoding import Encoding
from ..encoding.encoding_text import PREFIX
from . import cache, databases
from .function import Function, PreparedWeight

DEFAULT_CHIP = "sm_90a"
_KERNELS, _MANIFEST = "kernels", "manifest"
# Encodings that a program declares.
_ENCODING = re.compile(re.escape(PREFIX) + r"\s*<[^<>]*>")


class Spec(Protocol):
    """A layer that stands for a program, such as `LinearSpec`."""

    def mlir(self) -> str: ...


class Program:
    """What `compile` makes.

    source:    the MLIR text.
    chip:      what it is compiled for.
    ptx:       text of the kernels.
    manifest:  how to launch them (docs/Manifest.md); manifest_text is its JSON.
    arguments: what the compiler was told, as options of nm-compile.
    warnings:  what the compiler warned of, a line each; may be empty.

    Calling it calls its first function; `program["name"]` is another one. See
    `Function` for arguments and results.
    """

    def __init__(
        self,
        source: str,
        chip: str,
        arguments: Sequence[str],
        made: Dict[str, str],
    ) -> None:
        self.source = source
        self.chip = chip
        self.ptx = made[_KERNELS]
        self.manifest_text = made[_MANIFEST]
        self.manifest: Dict[str, Any] = json.loads(self.manifest_text)
        self.warnings = made["warnings"]
        self.arguments = list(arguments)
        self._handle: Optional[int] = None
        self._library: Any = None
        self._lock = threading.Lock()
        by_name = {one["name"]: one for one in self.manifest["functions"]}
        self._by_name = by_name
        chosen = {
            case["function"]
            for one in by_name.values()
            for case in one.get("cases", ())
        }
        self.functions: Dict[str, Function] = {
            name: Function(self, one)
            for name, one in by_name.items()
            if name not in chosen
        }
        self._first = next(iter(self.functions.values()))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.nmsProgramDestroy(self._handle)

    def __getitem__(self, name: str) -> Function:
        """Raises KeyError with the names that there are."""
        if name not in self.functions:
            raise KeyError(
                f"no function @{name}; there are {', '.join(self.functions)}"
            )
        return self.functions[name]

    def __call__(self, *arguments: Any, stream: Optional[int] = None) -> Any:
        """As `Function.__call__` of the first function."""
        first = self._first
        if first.launch is not None:  # of an earlier call: all that this one needs
            result = first.launch(stream, *arguments)
            if result is not None:
                return result
        return first(*arguments, stream=stream)

    def prepare(self, weight: Any, number: int = 0, like: Any = None) -> Any:
        """As `Function.prepare` of the first function."""
        return self._first.prepare(weight, number, like)

    @property
    def handle(self) -> int:
        """The NmsProgram of the library."""
        with self._lock:
            if self._handle is None:
                manifest = self.manifest_text.encode()
                image = self.ptx.encode()
                self._library = library()
                handle = self._library.nmsProgramCreate(
                    manifest, len(manifest), image, len(image)
                )
                if not handle:
                    raise RuntimeFailure(last_error())
                self._handle = handle
            return self._handle

    @cached_property
    def encodings(self) -> FrozenSet[Encoding]:
        """Those that the source spells out."""
        return frozenset(
            Encoding.parse(text) for text in _ENCODING.findall(self.source)
        )

    def explain(self) -> str:
        """What each stage of the compiler did, and which schedules it compared."""
        arguments = [*self.arguments, "--explain"]
        return compiler.run(arguments, self.source, (_KERNELS, _MANIFEST)).text

    def advise(self, tokens: Sequence[int] = ()) -> List[Dict[str, Any]]:
        """How this pattern compares with others, for each weight: predicted times by
        numbers of tokens (docs/Advise.md, as JSON)."""
        advice = []
        for weight in self._first.weights:
            dim = Encoding.parse(weight["encoding"]).dim
            shape = weight["shape"][-2:]
            inputs, outputs = shape if dim == len(weight["shape"]) - 2 else shape[::-1]
            kind = weight["element_type"]
            advice.append(advise(outputs, inputs, kind, tokens, chip=self.chip))
        return advice

    def has_checks(self, function: Dict[str, Any]) -> bool:
        """Whether calls wait for checks of the data, behind the launches."""
        return any("checks" in one for one in self._kinds(function))

    def _kinds(self, function: Dict[str, Any]) -> List[Dict[str, Any]]:
        """What a function selects between, or itself."""
        cases = function.get("cases", ())
        return [self._by_name[case["function"]] for case in cases] or [function]

    def find_results(self, function: Dict[str, Any]) -> List[Optional[int]]:
        """For each result the argument that it is written to, or None."""
        found = [
            [
                int(result["buffer"][3:])
                if result["buffer"].startswith("arg") and "offset" not in result
                else None
                for result in one["results"]
            ]
            for one in self._kinds(function)
        ]
        return [places[0] if len(set(places)) == 1 else None for places in zip(*found)]


def _make(
    text: str, arguments: Sequence[str], options: Sequence[str]
) -> Dict[str, str]:
    output = compiler.run(arguments, text, (_KERNELS, _MANIFEST))
    try:
        made = {name: data.decode() for name, data in output.files.items()}
    except UnicodeDecodeError:
        made = {}
    if not {_KERNELS, _MANIFEST} <= made.keys():
        raise CompileError(
            f"options are {list(options)}: legal are those that leave PTX and manifest "
            "to be made; for others call nm_sparse.compiler.run",
            2,
        )
    return {**made, "warnings": output.warnings}


def compile(
    source: Union[str, Spec],
    chip: Optional[str] = None,
    gpu: Optional[str] = None,
    tokens: Sequence[int] = (),
    objective: str = "time",
    options: Sequence[str] = (),
    use_cache: bool = True,
    tuned: Union[None, databases.PathLike, Sequence[databases.PathLike]] = None,
) -> Program:
    """Compiles MLIR text, or a layer, to kernels.

    source:     text whose weights have encodings (docs/Input.md), or a spec.
    chip:       sm_80 to sm_120a; none: that of GPU 0, or sm_90a without one.
    gpu:        whose measured rates choose kernels: h100 or h200.
    tokens:     numbers of tokens to compile for; none: as many kernels as any
                number needs to be fast.
    objective:  time, energy or edp.
    options:    further ones of nm-compile, such as "--storage=canonical"; none that
                name files to write, or another form than PTX.
    use_cache:  whether the result may come from disk, and is kept there.
    tuned:      databases of measured schedules (docs/Tuning.md), or one; an empty
                list: none at all; None: those that NM_SPARSE_TUNED names, and where
                that is not set the one of the package for `gpu`, if it has one.

    Raises CompileError with the compiler's message, and LibraryNotFoundError.
    """
    text = source if isinstance(source, str) else source.mlir()
    if chip is None and gpu is None:
        chip, gpu = device_chip(), device_gpu()
        gpu = gpu if chip == DEFAULT_CHIP else None
    chip = chip or DEFAULT_CHIP
    arguments = ["-", "-o", _KERNELS, "--manifest", _MANIFEST, f"--chip={chip}"]
    arguments += [f"--gpu={gpu}"] if gpu else []
    arguments += [f"--tokens={','.join(map(str, tokens))}"] if tokens else []
    arguments += [f"--objective={objective}", *options]
    named = databases.choose(tuned, options, gpu)
    arguments += [f"--tuned={database}" for database in named]
    if tuned is not None and not named:
        arguments.append("--tuned=")
    # The contents of a file of --bind may change.
    use_cache = use_cache and not any(
        option.lstrip("-").startswith(("bind", "tuned")) for option in options
    )
    contents = [databases.digest(database) for database in named] if use_cache else []
    key = ""
    if use_cache:
        key = cache.key(cache.compiler_key(), text, [*arguments, *contents])
    made = cache.read(key) if use_cache else None
    if made is None or not {_KERNELS, _MANIFEST, "warnings"} <= made.keys():
        made = _make(text, arguments, options)
        if use_cache:
            cache.write(key, made)
    return Program(text, chip, arguments, made)


@lru_cache(maxsize=1024)
def _advise(arguments: tuple, contents: tuple) -> str:
    del contents  # of the databases that the arguments name: other ones, other times
    return compiler.run(arguments, files=("-",)).files["-"].decode()


def advise(
    outputs: int,
    inputs: int,
    dtype: str = "f16",
    tokens: Sequence[int] = (),
    patterns: Sequence[str] = (),
    chip: Optional[str] = None,
    gpu: Optional[str] = None,
    options: Sequence[str] = (),
    tuned: Union[None, databases.PathLike, Sequence[databases.PathLike]] = None,
) -> Dict[str, Any]:
    """Predicted times of a layer with various patterns, and dense.

    outputs, inputs:  of the weight.
    dtype:     f16, bf16, f32, i8, f8E4M3FN or f8E5M2.
    tokens:    numbers of tokens to predict for; none: usual ones.
    patterns:  texts such as "8:32, block = [1, 64]"; none: usual ones.
    chip, gpu: that times are predicted for; none: an H200.
    options:   further ones of nm-compile, such as "--storage=bitmap".
    tuned:     databases of measured schedules, as `compile` has them.

    Returns the JSON of docs/Advise.md: where a database has the layer, what was
    measured is there beside what is predicted. Raises CompileError.
    """
    arguments = ["--advise", f"--shape=K={inputs},N={outputs}", f"--type={dtype}"]
    arguments += [f"--chip={chip}"] if chip else []
    arguments += [f"--gpu={gpu}"] if gpu else []
    arguments += [f"--tokens={','.join(map(str, tokens))}"] if tokens else []
    arguments += [f"--pattern={pattern}" for pattern in patterns]
    arguments += options
    # Times of no GPU that is named are those of an H200.
    if gpu is None and chip in (None, DEFAULT_CHIP):
        gpu = "h200"
    named = databases.choose(tuned, options, gpu)
    arguments += [f"--tuned={database}" for database in named] or (
        ["--tuned="] if tuned is not None else []
    )
    contents = tuple(databases.digest(database) for database in named)
    return json.loads(_advise((*arguments, "--json=-"), contents))


__all__ = ["CompileError", "PreparedWeight", "Program", "advise", "compile"]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `quantization_config` in a model's config.json says of its packed layers.

docs/Checkpoints.md describes the fields. Names are those of layers in the checkpoint, a
weight's name without its `.weight`.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from ..encoding import Encoding, EncodingError
from .tensor_file import CheckpointError

METHOD = "nm_sparse"
VERSION = 1
FIELDS = (
    "quant_method",
    "version",
    "encoding",
    "layers",
    "weights",
    "activations",
    "scales",
    "provenance",
)
# Element types of packed values; those of 8 bits have scales, one for each output.
FLOATS = ("f16", "bf16", "f32", "f64")
NARROW = {"e4m3": "f8E4M3FN", "int8": "i8"}  # as MLIR spells them
SCALES = ("output",)


@dataclass(frozen=True)
class SparseConfig:
    """Which layers of a checkpoint are packed, and how.

    encoding:    of the linear layers that `layers` does not name; None: they are dense.
    layers:      exceptions, from patterns of names (`fnmatch`) to encodings, or None
                 for dense. Of several that match a name, one without stars decides, or
                 that with most characters beside them.
    weights:     element type of the packed values, one of `WEIGHTS`; None where layers
                 differ.
    activations: element type that inputs of layers with such elements are rounded to,
                 or that by patterns of names as in `layers`; None: they are not.
    scales:      "output" where values of 8 bits have them, else None.
    provenance:  free text by key: what made the checkpoint, of what, by which method.
    """

    encoding: Optional[Encoding] = None
    layers: Mapping[str, Optional[Encoding]] = field(default_factory=dict)
    weights: Optional[str] = None
    activations: Union[str, Mapping[str, Optional[str]], None] = None
    scales: Optional[str] = None
    provenance: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(fields: Mapping[str, Any]) -> "SparseConfig":
        """That of the fields of `quantization_config`.

        Raises CheckpointError, which names the field, what it is and what is legal.
        """
        _check_version(fields)
        unknown = [name for name in fields if name not in FIELDS]
        if unknown:
            _fail(unknown[0], "is there", f"one of {', '.join(FIELDS)}")
        layers = fields.get("layers", {})
        if not isinstance(layers, Mapping):
            _fail("layers", f"is {layers!r}", "an object of encodings by name pattern")
        provenance = fields.get("provenance", {})
        if not isinstance(provenance, Mapping) or not all(
            isinstance(text, str) for text in provenance.values()
        ):
            _fail("provenance", f"is {provenance!r}", "an object of texts")
        _check_choice("weights", fields.get("weights"), (*FLOATS, *NARROW))
        _check_choice("scales", fields.get("scales"), SCALES)
        _check_activations(fields.get("activations"))
        if fields.get("weights") in NARROW and fields.get("scales") is None:
            _fail("scales", "is null", f"'output' for weights of {fields['weights']}")
        return SparseConfig(
            _encoding("encoding", fields.get("encoding")),
            {key: _encoding(f"layers[{key!r}]", layers[key]) for key in layers},
            fields.get("weights"),
            fields.get("activations"),
            fields.get("scales"),
            dict(provenance),
        )

    def to_dict(self) -> Dict[str, Any]:
        """The fields, for JSON; `parse` reads them."""
        return {
            "quant_method": METHOD,
            "version": VERSION,
            "encoding": encoding_text(self.encoding),
            "layers": {key: encoding_text(e) for key, e in self.layers.items()},
            "weights": self.weights,
            "activations": dict(self.activations)
            if isinstance(self.activations, Mapping)
            else self.activations,
            "scales": self.scales,
            "provenance": dict(self.provenance),
        }

    def encoding_of(self, name: str) -> Optional[Encoding]:
        """The encoding of a linear layer; None where it is dense."""
        return _find(self.layers, name, self.encoding)

    def activations_of(self, name: str) -> Optional[str]:
        """The type that inputs of a packed layer are rounded to; None for none."""
        if isinstance(self.activations, Mapping):
            return _find(self.activations, name, None)
        return self.activations

    @staticmethod
    def of_layers(
        encodings: Mapping[str, Optional[Encoding]],
        activations: Optional[Mapping[str, Optional[str]]] = None,
        **more: Any,
    ) -> "SparseConfig":
        """The shortest that says this of all linear layers of a model, by name.

        activations:  of the packed ones, by name; None: of none."""
        most, layers = _shortest(encodings)
        said: Any = None
        if activations:
            default, others = _shortest(activations)
            said = {**others, "*": default} if others else default
        return SparseConfig(most, layers, activations=said, **more)


def _find(patterns: Mapping[str, Any], name: str, default: Any) -> Any:
    """What the closest pattern says that matches a name: that with most characters
    beside stars. Files that others write again keep no order."""
    matching = [one for one in patterns if fnmatch.fnmatchcase(name, one)]
    return patterns[min(matching, key=_distance)] if matching else default


def _distance(pattern: str) -> Tuple[bool, int, str]:
    """The less, the closer."""
    literal = re.sub(r"\[[^\]]*\]", "x", pattern)
    is_exact = not re.search(r"[*?]", literal)
    return not is_exact, -len(re.sub(r"[*?]", "", literal)), pattern


def _shortest(values: Mapping[str, Any]) -> Tuple[Any, Dict[str, Any]]:
    """What most names have, and the rest by few patterns."""
    counts = Counter(values.values())
    most = max(counts, key=lambda one: (counts[one], str(one))) if counts else None
    left = {name: value for name, value in values.items() if value != most}
    patterns: Dict[str, Any] = {}
    for name, value in left.items():
        # Layers of one name in all blocks are one pattern, if they are alike.
        group = _without_numbers(name)
        same = [one for one in values if _without_numbers(one) == group]
        alike = len(same) > 1 and all(values[one] == value for one in same)
        patterns[group if alike else _escape(name)] = value
    if all(_find(patterns, name, most) == value for name, value in values.items()):
        return most, patterns
    return most, {_escape(name): value for name, value in left.items()}


def _without_numbers(name: str) -> str:
    """`name` with a star in the place of each number."""
    parts = name.split(".")
    return ".".join("*" if one.isdecimal() else _escape(one) for one in parts)


def _escape(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def encoding_text(e: Optional[Encoding]) -> Optional[str]:
    """As short as it can be written, for a weight [outputs, inputs]."""
    return None if e is None else str(e).replace(", dim = 1", "")


def weight_encoding(text: str) -> Encoding:
    """The encoding of a weight [outputs, inputs] that a text says.

    Raises EncodingError where it is none, and for `free`, which has no layers."""
    e = replace(Encoding(text), dim=1)
    if e.is_free:
        raise EncodingError("encoding is free: legal are n:m levels, such as 2:4")
    return e


def _encoding(name: str, text: Any) -> Optional[Encoding]:
    if text is None:
        return None
    if not isinstance(text, str):
        _fail(name, f"is {text!r}", "the text of an encoding, such as '2:4', or null")
    try:
        return weight_encoding(text)
    except EncodingError as error:
        raise CheckpointError(f"quantization_config: {name}: {error}") from None


def _check_version(fields: Mapping[str, Any]) -> None:
    if fields.get("quant_method") != METHOD:
        _fail("quant_method", f"is {fields.get('quant_method')!r}", repr(METHOD))
    version = fields.get("version")
    if type(version) is not int or version < 1:
        _fail("version", f"is {version!r}", f"{VERSION}")
    if version > VERSION:
        raise CheckpointError(
            f"quantization_config: version is {version}: this nm_sparse reads up to "
            f"{VERSION}; install a newer one"
        )


def _check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    if value is not None and value not in choices:
        legal: List[str] = [repr(one) for one in choices]
        _fail(name, f"is {value!r}", ", ".join([*legal, "null"]))


def _check_activations(value: Any) -> None:
    if not isinstance(value, Mapping):
        _check_choice("activations", value, NARROW)
        return
    for pattern, kind in value.items():
        _check_choice(f"activations[{pattern!r}]", kind, NARROW)


def _fail(name: str, found: str, legal: str) -> None:
    raise CheckpointError(f"quantization_config: {name} {found}: legal is {legal}")

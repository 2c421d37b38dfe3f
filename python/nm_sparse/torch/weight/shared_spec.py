# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What several linear layers of one input are: a list of `LinearSpec`, as text."""

from __future__ import annotations

import functools
import json
from typing import Optional, Sequence, Tuple

from ...encoding import EncodingError
from .spec import LinearSpec


def shared_text(specs: Sequence[LinearSpec]) -> str:
    """A JSON array of the layers, the same for equal ones."""
    return f"[{','.join(spec.text for spec in specs)}]"


@functools.lru_cache(maxsize=4096)
def parse_shared(text: str) -> Tuple[LinearSpec, ...]:
    """The layers whose `shared_text` this is. Raises EncodingError when it is none."""
    try:
        fields = json.loads(text)
        if not isinstance(fields, list) or not fields:
            raise ValueError
        texts = [json.dumps(one, separators=(",", ":")) for one in fields]
    except ValueError:
        raise EncodingError(
            f"spec is {text!r}: legal is a JSON array of the texts of LinearSpec"
        ) from None
    return tuple(LinearSpec.parse(one) for one in texts)


def whole_text(gate: str, down: str, activation: str) -> str:
    """The `shared_text` of the specs of a gated MLP, by their texts, that of the gate
    without activation. It only joins text, as `with_activation`."""
    return f"[{with_activation(gate, activation)},{down}]"


def with_dense_from(text: str, dense_from: Optional[int]) -> str:
    """The text of a spec without `dense_from`, with this one, or with none. It only
    joins text, as `with_activation`."""
    if dense_from is None:
        return text
    return f'{text[:-1]},"dense_from":{dense_from}}}'


def with_decode_to(text: str, decode_to: Optional[int]) -> str:
    """The text of a spec without `decode_to` and `tokens`, with this `decode_to`, or
    with none. It only joins text, as `with_activation`."""
    if decode_to is None:
        return text
    return f'{text[:-1]},"decode_to":{decode_to}}}'


def with_tokens(text: str, tokens: int) -> str:
    """The text of a spec without `tokens`, with this number. It only joins text, as
    `with_activation`."""
    return f'{text[:-1]},"tokens":{tokens}}}'


def with_activation(text: str, activation: str) -> str:
    """The text of a spec without activation, with this one. It only replaces text, so
    that graphs may be traced through it."""
    return text.replace('"activation":"none"', f'"activation":"{activation}"')

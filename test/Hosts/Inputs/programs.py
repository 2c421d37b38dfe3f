# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of more than a layer, drawn at random by seed: what surrounds a product,
what starts a sum, several results, chains, batches and convolutions.
"""

from typing import List, Optional, Sequence

import numpy as np
from layers import FAMILIES, draw_encoding
from program_builder import TOKENS, Numbers, Program, Value

from nm_sparse import Encoding

# Names that C or the code around the launches uses, too.
NAMES = "x copy launch p0 grid0 stream buffer0 result0 sizes int y bytes status".split()


def draw_any_encoding(rng: np.random.Generator, dim: int, element: str) -> Encoding:
    choice = int(rng.integers(8))
    if choice in (1, 2) and element in ("i8", "f8E4M3FN"):
        choice = 0  # These are stored as bitmaps, which those have not.
    if choice == 0:
        return Encoding.parse(f"free, dim = {dim}")
    if choice == 1:
        return Encoding.parse(f"free, block = [1, 32], dim = {dim}")
    if choice == 2:
        return Encoding.parse(f"2:4, block = [1, 8], dim = {dim}, order = shuffled")
    families = list(FAMILIES)
    return draw_encoding(rng, families[rng.integers(len(families))], dim)


def put_in_order(encoding: Encoding) -> Encoding:
    """For a product whose result another one reads: not all of these take one that is
    shuffled."""
    if encoding.is_shuffled:
        return Encoding(n=2, m=4, dim=encoding.dim)
    return encoding


def draw_features(rng: np.random.Generator) -> int:
    features = 32 * int(rng.integers(1, 7))
    return features + int(rng.integers(1, 31)) if rng.random() < 0.25 else features


def draw_element(rng: np.random.Generator) -> str:
    return str(rng.choice(["f16", "f16", "bf16", "f32", "i8", "f8E4M3FN"]))


def draw_x(p: Program, element: str, *sizes: int) -> Value:
    return p.take(sizes, element, f"%{NAMES[p.rng.integers(len(NAMES))]}")


def make_layer(p: Program) -> None:
    """A product with all that may follow it; the sum may start from an argument."""
    rng = p.rng
    element = draw_element(rng)
    x = draw_x(p, element, p.tokens, draw_features(rng))
    outputs = draw_features(rng)
    init = None
    if rng.random() < 0.3:
        init = p.take((p.tokens, outputs), "i32" if element == "i8" else "f32")
    y = p.multiply(
        x, outputs, draw_any_encoding(rng, int(rng.integers(2)), element), init
    )
    if element != "i8" and init is None:
        y = p.add_epilogue(y)
    p.results = [p.transpose(y) if rng.random() < 0.2 else y]


def make_two_results(p: Program) -> None:
    """Two products of the same activations, of which a sum may be in place."""
    rng = p.rng
    x = draw_x(p, "f16", p.tokens, draw_features(rng))
    outputs = draw_features(rng)
    init = p.take((p.tokens, outputs), "f32") if rng.random() < 0.5 else None
    y = p.multiply(
        x, outputs, draw_any_encoding(rng, int(rng.integers(2)), "f16"), init
    )
    z = p.multiply(
        x, draw_features(rng), draw_any_encoding(rng, int(rng.integers(2)), "f16")
    )
    p.results = [y, p.add_epilogue(z)]
    if rng.random() < 0.5:
        p.results.reverse()


def make_gated(p: Program) -> None:
    """relu(x G) * (x U), and the product with D of that."""
    rng = p.rng
    x = draw_x(p, "f16", p.tokens, draw_features(rng))
    hidden = draw_features(rng)
    encoding = put_in_order(draw_any_encoding(rng, 1, "f16"))
    gate, up = p.multiply(x, hidden, encoding), p.multiply(x, hidden, encoding)
    h = p.map(
        [gate, up],
        "    %r = arith.maximumf %a, %zero : f32\n"
        "    %p = arith.mulf %r, %b : f32\n"
        "    %to = arith.truncf %p : f32 to f16",
        "f16",
        lambda g, u: (np.maximum(g, 0) * u).astype(np.float16).astype(np.float64),
    )
    p.results = [p.multiply(h, draw_features(rng), draw_any_encoding(rng, 1, "f16"))]


def make_chain(p: Program) -> None:
    """Layers in a row, whose activations lie in buffers; one may be a result, too."""
    rng = p.rng
    element = str(rng.choice(["f16", "bf16"]))
    value = draw_x(p, element, p.tokens, draw_features(rng))
    count = int(rng.integers(2, 4))
    for layer in range(count):
        encoding = draw_any_encoding(rng, int(rng.integers(2)), element)
        if layer + 1 < count:
            encoding = put_in_order(encoding)
        y = p.multiply(value, draw_features(rng), encoding)
        if rng.random() < 0.6:
            y = p.add_epilogue(y)
        if layer + 1 < count:
            value = p.narrow(y, element)
            if rng.random() < 0.3:
                p.results.append(value)
    p.results.append(y)


def make_batches(p: Program) -> None:
    rng = p.rng
    element = str(rng.choice(["f16", "f32"]))
    x = draw_x(p, element, int(rng.integers(1, 4)), p.tokens, draw_features(rng))
    dim = int(rng.integers(1, 3))
    y = p.multiply(x, draw_features(rng), Encoding(n=2, m=4, dim=dim))
    p.results = [y]


def make_convolution(p: Program) -> None:
    """NHWC, of a window of 1, 2 or 3, without zeros around the image."""
    rng = p.rng
    side, window = int(rng.integers(4, 7)), int(rng.integers(1, 4))
    channels, outputs = 16 * int(rng.integers(1, 5)), 32 * int(rng.integers(1, 3))
    p.tokens = TOKENS
    x = draw_x(p, "f16", TOKENS, side, side, channels)
    sizes = (window, window, channels, outputs)
    weight = p.take_weight(Encoding(n=2, m=4), sizes, "f16")
    w, kind = weight.name.split("|")
    out = side - window + 1
    init = p.zeros((TOKENS, out, out, outputs), "f32")
    name = p.new()
    p.add(
        f"{name} = linalg.conv_2d_nhwc_hwcf ins({x.name}, {w} : {x.type}, {kind}) "
        f"outs({init.name} : {init.type}) -> {init.type}"
    )

    def compute(a: Numbers) -> np.ndarray:
        image, w = x.compute(a), weight.compute(a).reshape(sizes)
        return sum(
            image[:, r : r + out, s : s + out] @ w[r, s]
            for r in range(window)
            for s in range(window)
        )

    p.results = [Value(name, init.sizes, "f32", compute)]


KINDS = {
    "layer": make_layer,
    "two_results": make_two_results,
    "gated": make_gated,
    "chain": make_chain,
    "batches": make_batches,
    "convolution": make_convolution,
}


def draw(seed: int, count: int, kinds: Sequence[str] = ()) -> List[Program]:
    programs = []
    names = list(kinds or KINDS)
    for number in range(count):
        # A program does not depend on how many there are.
        rng = np.random.default_rng((seed, number))
        kind = names[number % len(names)]
        tokens = TOKENS if rng.random() < 0.7 else int(rng.integers(1, 40))
        program = Program(f"{kind}{number}", tokens, rng)
        KINDS[kind](program)
        programs.append(program)
    return programs


def check(found: np.ndarray, wanted: np.ndarray, element: str) -> Optional[str]:
    """Describes the error of a result; None if there is none."""
    if found.shape != wanted.shape:
        return f"the shape is {found.shape}, not {wanted.shape}"
    found = np.asarray(found).astype(np.float64)
    # Sums in float32, of what tensor cores take: f32 as TF32; rounded in between.
    bound = 0 if element == "i32" else 2e-2 * (1 + np.abs(wanted).max(initial=0))
    wrong = ~(np.abs(found - wanted) <= bound)
    return f"{wrong.sum()} of {wrong.size} elements are wrong" if wrong.any() else None

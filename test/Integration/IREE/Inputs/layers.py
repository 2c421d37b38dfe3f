# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers of all storages, and what they compute, for another compiler.

Usage: layers.py write OUT_DIR
       layers.py check OUT_DIR PROGRAM.vmfb

`write` makes OUT_DIR/layers.mlir, a function for each layer, and the arguments and the
result of each, packed and multiplied in numpy. `check` calls the functions of a program
that IREE compiled, and compares.
"""

import pathlib
import sys
from dataclasses import dataclass
from typing import Dict

import numpy as np

ROOT = pathlib.Path(__file__).parents[4]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python/tests/support")]

from bitmap_oracle import pack_bitmap  # noqa: E402
from free_bitmap_oracle import pack_free_bitmap  # noqa: E402
from ragged_oracle import pack_ragged  # noqa: E402

from nm_sparse import Encoding, Level, encode, innermost_weight  # noqa: E402
from nm_sparse.reference import prune  # noqa: E402

TYPES = {"f16": np.float16, "f32": np.float32, "i8": np.int8}
TOLERANCE = 1e-6
OUTPUT_ORDER = [7, 2, 5, 0, 1, 6, 3, 4]  # of shuffled outputs, eight by eight


@dataclass(frozen=True)
class Layer:
    name: str
    encoding: Encoding
    shape: tuple  # tokens, outputs, contraction; first a batch, if any
    element: str = "f16"
    bitmap: bool = False

    @property
    def result(self) -> str:
        return "i32" if self.element == "i8" else "f32"

    def draw(self, rng: np.random.Generator, *shape: int) -> np.ndarray:
        if self.element == "i8":
            return rng.integers(-9, 10, shape, np.int8)
        return rng.standard_normal(shape).astype(TYPES[self.element])

    @property
    def perm(self):
        """The order of the outputs of a shuffled weight, else none."""
        if not self.encoding.is_shuffled:
            return None
        places = np.arange(self.shape[-2])
        whole = len(places) // 8 * 8
        turned = places[:whole].reshape(-1, 8)[:, OUTPUT_ORDER].ravel()
        perm = np.concatenate([turned, places[whole:]]).astype(np.uint32)
        batch = self.shape[:-3]
        return np.broadcast_to(perm, (*batch, len(perm))).copy()

    def make_weight(self, rng: np.random.Generator) -> np.ndarray:
        """A weight with the pattern: of a free one, panels keep 0 to all blocks."""
        *batch, _, n, k = self.shape
        e = self.encoding.packed if self.encoding.is_shuffled else self.encoding
        is_turned = e.dim == len(batch) + 1
        dense = self.draw(rng, *batch, *((n, k) if is_turned else (k, n)))
        if not e.is_free:
            weight = prune(dense, e)
        else:
            bk, bn = e.block
            blocks = (-(-k // bk), -(-n // bn))
            kept = rng.random((*batch, *blocks)) < rng.random((*batch, 1, blocks[1]))
            kept[..., 0] = False
            kept = kept.repeat(bk, axis=-2).repeat(bn, axis=-1)[..., :k, :n]
            weight = dense * (np.swapaxes(kept, -1, -2) if is_turned else kept)
        if self.perm is None:
            return weight
        shuffled = np.zeros_like(weight)
        outputs = len(batch) if is_turned else len(batch) + 1
        np.put_along_axis(
            shuffled,
            np.expand_dims(self.perm, 2 * len(batch) + 1 - outputs).astype(int),
            weight,
            outputs,
        )
        return shuffled

    def pack(self, weight: np.ndarray) -> Dict[str, np.ndarray]:
        e = self.encoding
        if e.is_free and e.block == (1, 1):
            return dict(zip(("values", "bits"), pack_free_bitmap(e, weight)))
        packed = encode(weight, e, **({} if self.perm is None else {"perm": self.perm}))
        if e.is_free:
            return pack_ragged(packed)
        if not self.bitmap:
            return packed.components
        parts = dict(packed.components)
        inner, k, n = innermost_weight(e, self.shape[-1], self.shape[-2])
        own = parts.pop("inner_index" if e.inner else "index")
        values, bits = pack_bitmap(inner, parts.pop("values"), own, k=k, n=n)
        return {"values": values, **parts, "bits": bits}

    def draw_tokens(self, rng: np.random.Generator) -> np.ndarray:
        *batch, m, _, k = self.shape
        return self.draw(rng, *batch, m, k)

    def multiply(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """In float64, which is exact for i8."""
        wide = weight.astype(np.float64)
        is_turned = self.encoding.dim == weight.ndim - 1
        return x.astype(np.float64) @ (np.swapaxes(wide, -1, -2) if is_turned else wide)

    def write_function(self, parts: Dict[str, np.ndarray]) -> str:
        """The layer as it is declared or, as bitmaps, with its components."""
        *batch, m, n, k = self.shape
        lead = "".join(f"{size}x" for size in batch)
        x, y = (
            f"tensor<{lead}?x{s}>"
            for s in (f"{k}x{self.element}", f"{n}x{self.result}")
        )
        sizes = (n, k) if self.encoding.dim == len(batch) + 1 else (k, n)
        b = "b, " if batch else ""
        encoding = f"#nm_sparse.encoding<{self.encoding}>"
        loops = f"({b}m, n, k)"
        w_map = f"({b}n, k)" if sizes == (n, k) else f"({b}k, n)"
        if self.bitmap:
            w_map = f"({b}k, n)"
        maps = ", ".join(
            f"affine_map<{loops} -> {dims}>"
            for dims in (f"({b}m, k)", w_map, f"({b}m, n)")
        )
        if not self.bitmap:
            w = f"tensor<{lead}{sizes[0]}x{sizes[1]}x{self.element}, {encoding}>"
            arguments = f"%x: {x}, %w: {w}, %init: {y}"
            op = "batch_matmul" if batch else "matmul"
            product = (
                f"linalg.{op} indexing_maps = [{maps}]\n"
                f"      ins(%x, %w : {x}, {w}) outs(%init : {y}) -> {y}"
            )
        else:
            types = [type_of(part) for part in parts.values()]
            names = ["%v", "%i", "%ii"][: len(types)]
            arguments = ", ".join(
                f"{name}: {t}"
                for name, t in zip(["%x", *names, "%init"], [x, *types, y])
            )
            product = (
                f"nm_sparse.matmul {encoding}\n"
                f"      storage = #nm_sparse.bitmap<{encoding}>"
                f" indexing_maps = [{maps}]\n"
                f"      ins(%x, {', '.join(names)} : {x}, {', '.join(types)})"
                f" outs(%init : {y}) -> {y}"
            )
        return (
            f"func.func @{self.name}({arguments}) -> {y} {{\n"
            f"  %y = {product}\n  return %y : {y}\n}}\n"
        )


class Convolution(Layer):
    """A kernel of 3 x 3, with stride 2 along columns: tokens are 2 x 5 x 4 outputs."""

    IMAGE = (2, 7, 9)

    @property
    def channels(self) -> int:
        return self.shape[-1] // 9

    def draw_tokens(self, rng: np.random.Generator) -> np.ndarray:
        return self.draw(rng, *self.IMAGE, self.channels)

    def multiply(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        places = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
        patches = np.moveaxis(places[:, :, ::2], 3, -1)  # batch, rows, columns, 3, 3, c
        return super().multiply(patches.reshape(2, 5, 4, self.shape[-1]), weight)

    def write_function(self, parts: Dict[str, np.ndarray]) -> str:
        _, n, _ = self.shape
        encoding = f"#nm_sparse.encoding<{self.encoding}>"
        x = f"tensor<?x7x9x{self.channels}x{self.element}>"
        w = f"tensor<{n}x3x3x{self.channels}x{self.element}, {encoding}>"
        y = f"tensor<?x5x4x{n}xf32>"
        return (
            f"func.func @{self.name}(%x: {x}, %w: {w}, %init: {y}) -> {y} {{\n"
            "  %y = linalg.conv_2d_nhwc_fhwc {dilations = dense<1> : vector<2xi64>,"
            " strides = dense<[1, 2]> : vector<2xi64>}\n"
            f"      ins(%x, %w : {x}, {w}) outs(%init : {y}) -> {y}\n"
            f"  return %y : {y}\n}}\n"
        )


def type_of(array: np.ndarray) -> str:
    element = (
        f"f{array.itemsize * 8}"
        if array.dtype.kind == "f"
        else f"i{array.itemsize * 8}"
    )
    return f"tensor<{'x'.join(map(str, array.shape))}x{element}>"


E = Encoding
LAYERS = [
    Layer("two_four", E(n=2, m=4), (3, 40, 66)),
    Layer("vector_wise", E(n=8, m=32, block=(1, 16), dim=1), (5, 40, 100)),
    Layer("half", E(n=8, m=16, block=(1, 4)), (1, 33, 64), "f32"),
    Layer("block_wise", E(n=2, m=5, block=(3, 6)), (4, 20, 47), "f32"),
    Layer("wide_index", E(n=3, m=300, block=(1, 8)), (2, 16, 700), "f32"),
    Layer("bytes", E(n=1, m=4, block=(2, 4), dim=1), (6, 18, 30), "i8"),
    Layer("levels", E(n=4, m=10, block=(1, 32), inner=Level(2, 4)), (3, 40, 58)),
    Layer("batch", E(n=2, m=4, block=(1, 4), dim=2), (3, 5, 18, 21), "f32"),
    Layer("shuffled", E(n=2, m=4, block=(1, 8), dim=1, order="shuffled"), (3, 42, 50)),
    Convolution("convolution", E(n=2, m=4, block=(4, 8), dim=1), (40, 16, 72), "f32"),
    Layer("bitmap_two_four", E(n=2, m=4), (3, 40, 66), bitmap=True),
    Layer(
        "bitmap_vector_wise",
        E(n=8, m=32, block=(1, 16), dim=1),
        (2, 40, 100),
        bitmap=True,
    ),
    Layer("bitmap_half", E(n=8, m=16, block=(1, 4)), (2, 33, 70), "f32", bitmap=True),
    Layer("bitmap_words", E(n=4, m=9), (2, 33, 150), bitmap=True),
    Layer(
        "bitmap_levels",
        E(n=4, m=10, block=(1, 32), inner=Level(2, 4)),
        (3, 40, 130),
        bitmap=True,
    ),
    Layer("bitmap_batch", E(n=2, m=4, dim=2), (3, 5, 18, 70), "f32", bitmap=True),
    Layer("free", E.free(), (4, 50, 300)),
    Layer("free_batch", E.free(dim=2), (2, 4, 33, 70), "f32"),
    Layer("ragged", E.free(block=(1, 16)), (4, 40, 300)),
    Layer("ragged_blocks", E.free(block=(4, 8), dim=1), (3, 44, 150), "f32"),
    Layer("ragged_batch", E.free(block=(1, 8), dim=1), (3, 4, 20, 90), "f32"),
    Layer(
        "ragged_shuffled", E.free(block=(1, 8), dim=1, order="shuffled"), (2, 42, 50)
    ),
]


def write(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    functions = []
    for layer in LAYERS:
        weight = layer.make_weight(rng)
        parts = layer.pack(weight)
        x = layer.draw_tokens(rng)
        y = layer.multiply(x, weight)
        init = np.zeros(y.shape, np.int32 if layer.result == "i32" else np.float32)
        functions.append(layer.write_function(parts))
        arrays = [x, *parts.values(), init]
        # IREE knows signless integers as signed ones.
        arrays = [
            a.view(f"i{a.itemsize}") if a.dtype.kind == "u" else a for a in arrays
        ]
        named = {f"a{i}": array for i, array in enumerate(arrays)}
        np.savez(folder / f"{layer.name}.npz", y=y, **named)
    (folder / "layers.mlir").write_text("\n".join(functions))


def check(folder: pathlib.Path, program: str) -> None:
    import iree.runtime

    module = iree.runtime.load_vm_flatbuffer_file(program, driver="local-task")
    wrong = 0
    for layer in LAYERS:
        data = np.load(folder / f"{layer.name}.npz")
        arguments = [data[f"a{i}"] for i in range(len(data.files) - 1)]
        y = module[layer.name](*arguments).to_host().astype(np.float64)
        error = np.linalg.norm(y - data["y"]) / np.linalg.norm(data["y"])
        ok = y.shape == data["y"].shape and error <= TOLERANCE
        wrong += not ok
        print(f"{layer.name}: error {error:.1e}: {'right' if ok else 'WRONG'}")
    print(f"{len(LAYERS)} layers, {wrong} wrong")


if sys.argv[1] == "write":
    write(pathlib.Path(sys.argv[2]))
else:
    check(pathlib.Path(sys.argv[2]), sys.argv[3])

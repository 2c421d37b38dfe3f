#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers of 8 bits on a GPU: sparse ones with scales beside dense ones of torch.

usage: fp8_layers.py --json OUT [--pattern P] [--elements E] [--shapes KxN...]
                     [--tokens N...] [--drawn N] [--seed S] [--layers N]
                     [--check-only] [--no-check] [--tiny]

First everything is compared with products in f32 or f64 of what elements and scales
stand for: quantization of x by its kernel and by operators of torch, single layers of
drawn sizes with bias and activation, layers of one input, a gated MLP, dense copies,
gradients, CUDA graphs, torch.compile. Then each layer is timed for each number of
tokens, all rows in turn, as CUDA graphs over several weights, which are more than the
L2 cache holds:

    bf16            dense, torch.nn.functional.linear
    fp8             dense, compiled quantization of x for each token, and
                    torch._scaled_mm with scales of tokens and outputs
    fp8 product     that without the quantization
    bf16 sparse     NMLinear of bf16
    sparse          NMLinear of elements with activations, compiled
    sparse static   the same with one scale for all tokens of x
    sparse product  nm_sparse::scaled_linear alone
    sparse features, sparse product features   the same of elements that are stored
                    feature-major, where products of the pattern read them so
    sparse eager    the layer without torch.compile: two kernels, x stored as it asks
    quantize        of x alone, compiled

--layers is how many single layers are drawn, each of which compiles three programs.
With --elements int8 the dense product is torch._int_mm with scales behind it. --tiny
checks the script on the CPU, without times that mean anything.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import statistics
import time
from typing import Any, Callable, Dict, List, Sequence, Tuple

import torch
import torch.nn.functional as F
from cuda_graphs import capture, microseconds
from torch import Tensor, nn

from nm_sparse.bindings import library
from nm_sparse.torch import (
    GatedMLP,
    NMLinear,
    quantize_tokens,
    shared_linear,
    store_for_kernels_,
)
from nm_sparse.torch.layers.feature_major import asks_feature_major
from nm_sparse.torch.layers.ops import activate
from nm_sparse.torch.weight.quantize import quantize_by_operators
from nm_sparse.torch.weight.scales import LARGEST, to_elements
from nm_sparse.torch.weight.spec import ELEMENTS

SHAPES = ((4096, 4096), (4096, 14336), (14336, 4096))
TOKENS = (1, 8, 32, 256, 2048)
COLD = 96 << 20  # bytes of weights that are gone through in turn
# Relative to the largest output: bf16, and the sums of tensor cores for f8.
TOLERANCE = 1e-2
# The same where results in between are rounded to elements: a bit may decide.
TWICE = 5e-2
ELEMENT_TYPES = {"e4m3": torch.float8_e4m3fn, "int8": torch.int8}
# Errors that were found: the script says all of them at the end.
WRONG: List[str] = []


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def make_layer(k: int, n: int, options: argparse.Namespace, **more: Any) -> NMLinear:
    own = dict(elements=options.elements, activations=options.elements)
    bias = more.pop("bias", False)
    dtype = more.pop("dtype", torch.bfloat16)
    linear = nn.Linear(k, n, bias=bias, dtype=dtype, device=device())
    return NMLinear.from_dense(linear, options.pattern, **{**own, **more}).eval()


def rounded(x: Tensor, elements: str, scale: Any = None) -> Tensor:
    """What x is rounded to, by the definition, in f64. Scales, and what is rounded, are
    f32: a bit of these may decide which of two elements it is."""
    limit = LARGEST[ELEMENTS[elements]]
    wide = x.detach().float()
    if scale is None:
        scale = wide.abs().amax(-1, keepdim=True).clamp(min=1e-12) * (1 / limit)
    y = (wide * scale.float().reciprocal()).clamp(-limit, limit)
    y = y.round() if elements == "int8" else y.to(torch.float8_e4m3fn)
    return y.double() * scale.double()


def wanted(x: Tensor, layer: NMLinear, activation: str = "") -> Tensor:
    scale = None if layer.input_scale is None else layer.input_scale.double()
    dense = layer.weight.canonical().to(torch.float64).to_dense()
    bias = None if layer.bias is None else layer.bias.detach().double()
    y = F.linear(rounded(x, layer.activations, scale), dense, bias)
    return activate(y, activation or layer.activation)


def check(
    what: str, found: Tensor, expected: Tensor, tolerance: float = TOLERANCE
) -> float:
    error = float((found.double() - expected).abs().max() / expected.abs().max())
    print(f"  {what}: {error:.2e}", flush=True)
    if not error < tolerance:
        WRONG.append(f"{what}: error {error:.2e}")
    return error


def check_quantization(options: argparse.Namespace) -> None:
    """The kernel of eager calls is compared with operators of torch, bit for bit."""
    for tokens, k in ((1, 33), (5, 4096), (3, 14336), (33, 4096), (1100, 512)):
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            x = torch.randn(tokens, k, dtype=dtype, device=device())
            x *= torch.logspace(-3, 2, tokens, device=device())[:, None].to(dtype)
            x[0, : k // 2] = 0
            for scale in (None, torch.tensor(0.01, device=device())):
                found = quantize_tokens(x, options.elements, scale)
                stored = quantize_tokens(x, options.elements, scale, True)
                plain = quantize_by_operators(x, ELEMENTS[options.elements], scale)
                for one, other in zip((*found, *stored), (*plain, *plain)):
                    same = one.float() == other.float()
                    if not bool(same.all()):
                        count = int((~same).sum())
                        said = f"{tokens} x {k} of {dtype}, scale {scale}"
                        WRONG.append(f"quantization, {said}: {count} differ")
    print("  quantization compared", flush=True)


def divided(x: Tensor, elements: str) -> Tuple[Tensor, Tensor]:
    """Quantization of rows as users of torch write it, for torch.compile."""
    limit = LARGEST[ELEMENTS[elements]]
    numbers = x.float()
    scale = numbers.abs().amax(-1, keepdim=True).clamp(min=1e-12) / limit
    y = (numbers / scale).clamp(-limit, limit)
    y = y.round() if elements == "int8" else y
    return y.to(ELEMENT_TYPES[elements]), scale


def check_layers(options: argparse.Namespace) -> None:
    draw = random.Random(options.seed)
    kinds = ("none", "relu", "gelu", "gelu_tanh", "silu")
    dtypes = (torch.bfloat16, torch.float16, torch.float32)
    for number in range(4 if options.tiny else options.layers):
        n, k = draw.randint(1, 700), draw.randint(1, 900)
        if draw.random() < 0.5:
            n, k = 16 * (n // 16 + 1), 16 * (k // 16 + 1)
        tokens = draw.choice((1, 2, draw.randint(3, 64), draw.randint(65, 700)))
        own = dict(bias=draw.random() < 0.5, activation=draw.choice(kinds))
        layer = make_layer(k, n, options, dtype=draw.choice(dtypes), **own)
        if draw.random() < 0.3:
            layer.set_input_scale(3.0 / LARGEST[ELEMENTS[options.elements]])
        x = torch.randn(tokens, k, dtype=layer.weight.dtype, device=device())
        said = f"{number}: {tokens} x {k} x {n}, {layer.activation}, {x.dtype}"
        with torch.no_grad():
            check(said, layer(x), wanted(x, layer))
            layer.dense_from = 1
            check(f"{said}, dense copy", layer(x), wanted(x, layer))
            layer.dense_from = None
            layer.activations = "same"
            dense = layer.weight.to_dense().double()
            bias = None if layer.bias is None else layer.bias.double()
            y = activate(F.linear(x.double(), dense, bias), layer.activation)
            check(f"{said}, same", layer(x), y)
            layer.activations = options.elements


def check_modules(options: argparse.Namespace) -> None:
    """What shares its input, is compiled, trained, and replayed."""
    size, inside = (64, 128) if options.tiny else (1024, 2816)
    qkv = [make_layer(size, n, options) for n in (size, size // 4, size // 4)]
    gate, up = (make_layer(size, inside, options) for _ in range(2))
    down = make_layer(inside, size, options)
    mlp, norm = GatedMLP(gate, up, down), nn.RMSNorm(size, device=device())
    norm = norm.to(torch.bfloat16)
    for tokens in (1, 40, 600):
        x = torch.randn(tokens, size, dtype=torch.bfloat16, device=device())
        with torch.no_grad():
            for y, layer in zip(shared_linear(x, qkv), qkv):
                check(f"q, k, v of {tokens}", y, wanted(x, layer))
            y = (wanted(x, gate, "silu") * wanted(x, up)).to(x.dtype)
            check(f"gated MLP of {tokens}", mlp(x), wanted(y, down), TWICE)
            run = torch.compile(lambda x: mlp(norm(x)), fullgraph=True, dynamic=False)
            expected = mlp(norm(x)).double()
            check(f"compiled MLP of {tokens}", run(x), expected, TWICE)
            graph = capture(lambda: mlp(x))  # noqa: B023
            check(f"captured MLP of {tokens}", graph(), mlp(x).double(), TWICE)
            for layer in (gate, up, down):
                layer.store_("bitmap")
            check(f"bitmaps of {tokens}", mlp(x), wanted(y, down), TWICE)
            for layer in (gate, up, down):
                layer.store_("canonical")
    x = torch.randn(33, size, dtype=torch.bfloat16, device=device())
    x.requires_grad_()
    qkv[0](x).sum().backward()
    dense = qkv[0].weight.to_dense().double()
    check("gradient", x.grad, dense.sum(0).expand(x.shape))


def dense_product(
    rows: Tensor, x_scale: Tensor, weight: Tensor, scale: Tensor
) -> Tensor:
    """Of elements and scales, by torch, in bf16."""
    if not rows.is_cuda:
        return ((rows.float() @ weight.float().t()) * x_scale * scale).bfloat16()
    if rows.dtype == torch.int8:
        few = max(0, 32 - len(rows))
        sums = torch._int_mm(F.pad(rows, (0, 0, 0, few)), weight.t())[: len(rows)]
        return (sums * x_scale * scale).bfloat16()
    return torch._scaled_mm(
        rows,
        weight.t(),
        scale_a=x_scale,
        scale_b=scale[None],
        out_dtype=torch.bfloat16,
        use_fast_accum=True,
    )


class Case:
    """A layer of one size: functions of x, each over several weights in turn."""

    def __init__(self, k: int, n: int, options: argparse.Namespace) -> None:
        self.options, self.shape = options, (k, n)
        self.count = 2 if options.tiny else max(2, -(-COLD // (k * n // 2)))
        self.layers = [make_layer(k, n, options) for _ in range(self.count)]
        self.static = [self._with_scale(layer) for layer in self.layers]
        # All weights of bf16, sparse and dense, would be too many.
        few = self.count if options.tiny else max(2, -(-COLD // (2 * k * n)))
        plain = dict(elements=None, activations="same")
        self.wide = [make_layer(k, n, options, **plain) for _ in range(few)]
        self.dense = [layer.weight.to_dense().detach() for layer in self.wide]
        if device() == "cuda":
            store_for_kernels_(nn.ModuleList([*self.layers, *self.static, *self.wide]))
        kind = ELEMENTS[options.elements]
        unscaled = [layer.weight.canonical() for layer in self.layers]
        self.narrow = [
            (to_elements(w.to_dense().float() / w.scale[:, None], kind), w.scale)
            for w in unscaled
        ]

    @staticmethod
    def _with_scale(layer: NMLinear) -> NMLinear:
        """A layer of the same weight."""
        own = NMLinear.from_packed(layer.weight.detach(), activations=layer.activations)
        own.set_input_scale(4.0 / LARGEST[ELEMENTS[layer.activations]])
        return own

    def functions(self, x: Tensor) -> Dict[str, Callable[[], Any]]:
        kind = self.options.elements
        x8, x_scale = quantize_tokens(x, kind)
        compile_ = functools.partial(torch.compile, fullgraph=True, dynamic=False)

        product = torch.ops.nm_sparse.scaled_linear
        spec, parts = self.layers[0].spec, [one.operands() for one in self.layers]
        input_scale = self.static[0].input_scale

        def dense8(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
            return dense_product(*divided(x, kind), weight, scale)

        # As layers are compiled, but once for all weights of a size.
        def sparse8(x: Tensor, weight: List[Tensor], scale: Any = None) -> Tensor:
            return product(*quantize_tokens(x, kind, scale), weight, None, spec)

        def features8(x: Tensor, weight: List[Tensor]) -> Tensor:
            return product(*quantize_tokens(x, kind, None, True), weight, None, spec)

        rounding = compile_(lambda x: quantize_tokens(x, kind))
        more: Dict[str, Callable[[], Any]] = {}
        if asks_feature_major(x, self.layers[:1], [spec]) or self.options.tiny:
            features = quantize_tokens(x, kind, None, True)
            by_features = compile_(features8)
            more["sparse features"] = lambda: [by_features(x, one) for one in parts]
            more["sparse product features"] = lambda: [
                product(*features, one, None, spec) for one in parts
            ]
        dense8, sparse8 = compile_(dense8), compile_(sparse8)
        return {
            "bf16": lambda: [F.linear(x, w) for w in self.dense],
            "fp8": lambda: [dense8(x, *one) for one in self.narrow],
            "fp8 product": lambda: [
                dense_product(x8, x_scale, *one) for one in self.narrow
            ],
            "bf16 sparse": lambda: [layer(x) for layer in self.wide],
            "sparse": lambda: [sparse8(x, weight) for weight in parts],
            "sparse static": lambda: [sparse8(x, one, input_scale) for one in parts],
            "sparse product": lambda: [
                product(x8, x_scale, weight, None, spec) for weight in parts
            ],
            "sparse eager": lambda: [layer(x) for layer in self.layers],
            "quantize": lambda: [rounding(x) for _ in range(self.count)],
            **more,
        }

    def times(self, tokens: int) -> Dict[str, Any]:
        k, n = self.shape
        x = torch.randn(tokens, k, dtype=torch.bfloat16, device=device())
        functions = self.functions(x)
        errors = {}
        for name in functions:
            if name.startswith("bf16") or name == "quantize":
                continue
            layer = (self.static if name == "sparse static" else self.layers)[0]
            errors[name] = check(f"{name}, {tokens} x {k} x {n}", functions[name]()[0],
                                 wanted(x, layer))  # fmt: skip
        graphs = {name: capture(run) for name, run in functions.items()}
        seconds = 0.001 if self.options.tiny else self.options.seconds
        found: Dict[str, List[float]] = {name: [] for name in graphs}
        for _ in range(self.options.repeats):
            for name, run in graphs.items():
                found[name].append(microseconds(run, seconds))
        counts = {"bf16": len(self.dense), "bf16 sparse": len(self.wide)}
        times = {
            name: round(statistics.median(each) / counts.get(name, self.count), 2)
            for name, each in found.items()
        }
        host = self.host(x)
        return {"k": k, "n": n, "tokens": tokens, "us": times, "host_us": host,
                "errors": errors}  # fmt: skip

    def host(self, x: Tensor) -> float:
        """Microseconds of an eager call for the host."""
        layer, times = self.layers[0], []
        for _ in range(5):
            if x.is_cuda:
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(50):
                layer(x)
            times.append((time.perf_counter() - start) / 50 * 1e6)
        return round(min(times), 1)


def parse_shape(text: str) -> Tuple[int, int]:
    k, _, n = text.partition("x")
    return int(k), int(n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--pattern", default="2:4")
    parser.add_argument("--elements", default="e4m3", choices=tuple(ELEMENTS))
    parser.add_argument("--shapes", type=parse_shape, nargs="+", default=SHAPES)
    parser.add_argument("--tokens", type=int, nargs="+", default=TOKENS)
    parser.add_argument("--drawn", type=int, default=2)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.02)
    parser.add_argument("--check-only", action="store_true")
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch._dynamo.config.recompile_limit = 256
    draw = random.Random(options.seed)
    shapes: Sequence[Tuple[int, int]] = ((64, 96),) if options.tiny else options.shapes
    counts = [*options.tokens, *(draw.randint(1, 4096) for _ in range(options.drawn))]
    about: Dict[str, Any] = {
        "gpu": torch.cuda.get_device_name() if device() == "cuda" else "none",
        "torch": torch.__version__,
        "library": library.version() if library.available() else "none",
        "options": vars(options),
        "rows": [],
    }
    if not options.no_check:
        check_quantization(options)
        check_layers(options)
        check_modules(options)
    for shape in () if options.check_only else shapes:
        with torch.no_grad():
            case = Case(*shape, options)
            for tokens in (3, 40) if options.tiny else counts:
                row = case.times(tokens)
                about["rows"].append(row)
                print(row, flush=True)
                with open(options.json, "w", encoding="utf-8") as file:
                    json.dump(about, file, indent=1)
                    file.write("\n")
        del case
        if device() == "cuda":
            torch.cuda.empty_cache()
    about["wrong"] = WRONG
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(about, file, indent=1)
        file.write("\n")
    if WRONG:
        raise SystemExit("wrong:\n  " + "\n  ".join(WRONG))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A convolution of NHWC images as an MLIR program, with what is behind it."""

from __future__ import annotations

from typing import List, Sequence, Tuple

from ..encoding import EncodingError
from .activation_text import activation_steps
from .layer_text import DTYPES, Typed, attribute, check_sizes, widen

_IDENTITY = "affine_map<(b, p, q, f) -> (b, p, q, f)>"
_OUTPUTS = "affine_map<(b, p, q, f) -> (f)>"


def conv2d_mlir(
    image: Sequence[int],
    outputs: int,
    kernel: Sequence[int],
    encoding: str,
    *,
    stride: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0, 0, 0),
    dilation: Sequence[int] = (1, 1),
    dtype: str = "f16",
    bias: bool = False,
    residual: bool = False,
    activation: str = "none",
    has_out: bool = True,
    name: str = "conv2d",
) -> str:
    """Text of a program with one function, for any number of images.

    image:       height, width and channels C.
    kernel:      rows and columns, as stride and dilation.
    encoding:    text of the encoding of the weight as a matrix [outputs, rows x columns
                 x C], which contracts dimension 1.
    padding:     zeros above, below, left and right of the image.
    dtype:       element type of images, weight, bias and result: f16, bf16 or f32; sums
                 are f32.
    residual:    whether something of the shape of the result is added before the
                 activation.
    activation:  none, relu, silu, gelu or gelu_tanh.
    has_out:     whether the result is written to an array that the function is given.
                 No program that transposes its result does so.
    name:        of the function. It takes the images [B, H, W, C], the weight [outputs,
                 rows, columns, C], bias and residual if there are, and the array for
                 the result [B, P, Q, outputs].

    Raises EncodingError when the encoding is none of such a weight, a size is below 1,
    type or activation is another one, or the kernel does not fit into an image.
    """
    height, width, channels = image
    if dtype not in DTYPES:
        raise EncodingError(f"dtype is {dtype!r}: legal is {', '.join(DTYPES)}")
    check_sizes(height=height, width=width, channels=channels, outputs=outputs)
    padded = (height + padding[0] + padding[1], width + padding[2] + padding[3])
    pixels = [
        (size - step * (count - 1) - 1) // by + 1
        for size, count, by, step in zip(padded, kernel, stride, dilation)
    ]
    if min(pixels) < 1:
        raise EncodingError(
            f"an image of {height} x {width} pixels is smaller than the kernel with "
            f"{list(padding)} zeros around it: legal are larger ones"
        )
    x: Typed = ("%x", _tensor("?", *image, dtype))
    weight = ("%w", f"tensor<{outputs}x{kernel[0]}x{kernel[1]}x{channels}x{dtype}, #w>")
    wide, y = (_tensor("?", *pixels, outputs, kind) for kind in ("f32", dtype))
    addends = [("%bias", f"tensor<{outputs}x{dtype}>")] if bias else []
    addends += [("%residual", y)] if residual else []
    read, lines = _padded(x, padded, padding, dtype)
    lines += [
        "%zero = arith.constant 0.0 : f32",
        "%first = arith.constant 0 : index",
        f"%b = tensor.dim %x, %first : {x[1]}",
        f"%empty = tensor.empty(%b) : {wide}",
        f"%init = linalg.fill ins(%zero : f32) outs(%empty : {wide}) -> {wide}",
        "%product = linalg.conv_2d_nhwc_fhwc {"
        f"strides = dense<[{stride[0]}, {stride[1]}]> : tensor<2xi64>, "
        f"dilations = dense<[{dilation[0]}, {dilation[1]}]> : tensor<2xi64>}}",
        f"    ins({read[0]}, %w : {read[1]}, {weight[1]}) "
        f"outs(%init : {wide}) -> {wide}",
        *([] if has_out else [f"%out = tensor.empty(%b) : {y}"]),
        *_behind(wide, addends, y, activation, dtype),
    ]
    arguments = [x, weight, *addends, *([("%out", y)] if has_out else [])]
    body = "\n".join(f"  {line}" for line in [*lines, f"return %y : {y}"])
    return (
        f"#w = {attribute(encoding)}\n"
        f"func.func @{name}({', '.join(f'{v}: {kind}' for v, kind in arguments)})\n"
        f"    -> {y} {{\n{body}\n}}\n"
    )


def _tensor(*parts: object) -> str:
    return f"tensor<{'x'.join(map(str, parts))}>"


def _padded(
    x: Typed, sizes: Sequence[int], padding: Sequence[int], dtype: str
) -> Tuple[Typed, List[str]]:
    """The images with zeros around them, and the lines that make them."""
    if not any(padding):
        return x, []
    channels = x[1].split("x")[3]
    kind = _tensor("?", *sizes, channels, dtype)
    top, bottom, left, right = padding
    return ("%padded", kind), [
        f"%border = arith.constant 0.0 : {dtype}",
        f"%padded = tensor.pad %x low[0, {top}, {left}, 0] "
        f"high[0, {bottom}, {right}, 0] {{",
        "^bb0(%i0: index, %i1: index, %i2: index, %i3: index):",
        f"  tensor.yield %border : {dtype}",
        f"}} : {x[1]} to {kind}",
    ]


def _behind(
    wide: str, addends: Sequence[Typed], y: str, activation: str, dtype: str
) -> List[str]:
    """Bias, residual, activation and rounding."""
    maps = [_IDENTITY, *(_IDENTITY if kind == y else _OUTPUTS for _, kind in addends)]
    arguments = ["%i0: f32"]
    body: List[str] = []
    value = "%i0"
    for at, _ in enumerate(addends, 1):
        arguments.append(f"%i{at}: {dtype}")
        more, addend = widen(f"%l{at}", f"%i{at}", dtype)
        body += [*more, f"%s{at} = arith.addf {value}, {addend} : f32"]
        value = f"%s{at}"
    steps, value = activation_steps(activation, value, "%a_")
    body += steps
    if dtype != "f32":
        body.append(f"%short = arith.truncf {value} : f32 to {dtype}")
        value = "%short"
    inputs = [("%product", wide), *addends]
    return [
        f"%y = linalg.generic {{indexing_maps = [{', '.join([*maps, _IDENTITY])}],",
        '    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}',
        f"    ins({', '.join(v for v, _ in inputs)} : "
        f"{', '.join(kind for _, kind in inputs)}) outs(%out : {y}) {{",
        f"^bb0({', '.join([*arguments, f'%o: {dtype}'])}):",
        *(f"  {line}" for line in body),
        f"  linalg.yield {value} : {dtype}",
        f"}} -> {y}",
    ]

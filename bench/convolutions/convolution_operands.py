# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operands of a convolution that convolutions.py measures, and those of cuDNN."""

import math
import sys

from convolution_layers import PATTERNS, ROOT
from convolutions_text import LAYOUTS

WANTED_BYTES, MOST_SETS = 160 << 20, 16


class Layer:
    """Operands of one layer: several images, and the pruned weight both ways."""

    def __init__(self, torch, conv, density, components, seed):
        import numpy

        sys.path.append(str(ROOT / "python/tests/support"))
        from bitmap_oracle import pack_bitmap

        from nm_sparse import Encoding
        from nm_sparse.reference import encode, prune

        self.torch, self.conv = torch, conv
        torch.manual_seed(seed)
        self.image_order, weight_order, self.result_order = LAYOUTS[conv.layout]
        dim = 1 if weight_order.startswith("f") else 0
        kept, window, *block = PATTERNS[density]
        encoding = Encoding(kept, window, tuple(block), dim)
        sizes = conv.sizes() | {"h": conv.height, "w": conv.width}
        rows = conv.channels * conv.kernel[0] * conv.kernel[1]
        generator = numpy.random.default_rng(seed)
        scale = 1 / math.sqrt(rows * kept / window)
        shape = (conv.outputs, rows) if dim == 1 else (rows, conv.outputs)
        weight = generator.standard_normal(shape, numpy.float32)
        weight = prune((weight * scale).astype(numpy.float16), encoding)
        packed = encode(weight, encoding).components
        if "bits" in components:
            outputs = weight.shape[1 - dim]
            packed = dict(
                zip(components, pack_bitmap(encoding, **packed, k=rows, n=outputs))
            )
            packed["bits"] = packed["bits"].view(numpy.int32)
        self.packed = [torch.from_numpy(packed[name]).cuda() for name in components]
        weight = torch.from_numpy(weight).cuda()
        weight = weight.reshape([sizes[letter] for letter in weight_order])
        self.weight = weight.permute(
            [weight_order.index(letter) for letter in "fcrs"]
        ).contiguous()
        image = conv.batch * conv.channels * conv.height * conv.width
        result = conv.batch * conv.outputs * sizes["p"] * sizes["q"]
        self.sets = max(1, min(MOST_SETS, -(-WANTED_BYTES // (2 * (image + result)))))
        self.images = [
            torch.randn(
                [sizes[letter] for letter in self.image_order],
                device="cuda",
                dtype=torch.float16,
            )
            for _ in range(self.sets)
        ]

    def convolve(self, image, weight):
        conv = self.conv
        return self.torch.nn.functional.conv2d(
            image, weight, stride=conv.strides, padding=conv.low
        )

    def others(self, epilogue):
        """The operands of the epilogue: a bias, and a residual."""
        shape = [self.conv.sizes()[letter] for letter in self.result_order]
        if epilogue == "cast":
            return []
        self.torch.manual_seed(2)
        bias = self.torch.randn(self.conv.outputs, device="cuda")
        if epilogue == "relu":
            return [bias]
        return [bias, self.torch.randn(shape, device="cuda").half()]

    def finish(self, want, epilogue, others):
        """The epilogue of a convolution of another precision."""
        if epilogue == "cast":
            return want
        want = want + others[0].to(want.dtype).reshape(1, -1, 1, 1)
        if epilogue == "residual":
            other = self.arrange(others[1], self.result_order, "bfpq")
            want = want + other[: len(want)].to(want.dtype)
        return want.relu()

    @staticmethod
    def arrange(tensor, order, wanted):
        """`tensor` with its dimensions in another order."""
        return tensor.permute([order.index(letter) for letter in wanted])

    def check(self, result, epilogue, others):
        """Relative error against float32, and of two images against float64."""
        image = self.arrange(self.images[0], self.image_order, "bchw")
        own = self.arrange(result, self.result_order, "bfpq")
        want = self.convolve(image.float().contiguous(), self.weight.float())
        want = self.finish(want, epilogue, others)
        errors = [((own.float() - want).norm() / want.norm()).item()]
        want = self.convolve(image[:2].double().contiguous(), self.weight.double())
        want = self.finish(want, epilogue, others)
        errors.append(((own[:2].double() - want).norm() / want.norm()).item())
        return max(errors) if all(map(math.isfinite, errors)) else math.inf

    def dense(self, is_nhwc, epilogue="cast"):
        """Calls of cuDNN, one for each image; with its own fused epilogue."""
        torch = self.torch
        form = torch.channels_last if is_nhwc else torch.contiguous_format
        weight = self.weight.contiguous(memory_format=form)
        results = [None] * self.sets
        others = [other.half() for other in self.others(epilogue)]
        if epilogue == "residual":
            others[1] = self.arrange(others[1], self.result_order, "bfpq")
            others[1] = others[1].contiguous(memory_format=form)
        geometry = self.conv.strides, self.conv.low, (1, 1), 1

        def call(i, image):
            def run():
                if epilogue == "cast":
                    results[i] = self.convolve(image, weight)
                elif epilogue == "relu":
                    results[i] = torch.cudnn_convolution_relu(
                        image, weight, others[0], *geometry
                    )
                else:
                    results[i] = torch.cudnn_convolution_add_relu(
                        image, weight, others[1], 1.0, others[0], *geometry
                    )

            return run

        calls = []
        for i, image in enumerate(self.images):
            image = self.arrange(image, self.image_order, "bchw")
            image = image.contiguous(memory_format=form)
            calls.append(call(i, image))
            calls[-1]()
        return calls

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of products and the products of a block, as text and in PyTorch."""

SIZE = 4096
HIDDEN = 14336
HEADS = 1024  # outputs for keys and for values
LENGTH = 20  # products of a chain
PATTERNS = {
    "two_of_four": "2:4",
    "eight_of_sixteen": "8:16, block = [1, 32]",
    "panels": "8:32, block = [1, 128]",
}
# Inputs and outputs of weights: four for a chain, more than L2 holds, and those of a
# block of Llama-3-8B.
CHAIN = [(SIZE, SIZE)] * 4
BLOCK = [
    *[(SIZE, SIZE), (SIZE, HEADS), (SIZE, HEADS), (SIZE, SIZE)],
    *[(SIZE, HIDDEN), (SIZE, HIDDEN), (HIDDEN, SIZE)],
]


class Text:
    """A function of products whose results are rounded to f16."""

    def __init__(self, pattern: str, weights: list):
        self.weights = weights
        self.lines = [f"#w = #nm_sparse.encoding<{pattern}>"]
        self.lines += ["#id = affine_map<(m, n) -> (m, n)>"]
        arguments = "".join(f", %w{i}: {self.weight(i)}" for i, _ in enumerate(weights))
        self.head = f"(%x: {self.type(SIZE)}{arguments})"
        self.body = [
            "  %c0 = arith.constant 0 : index",
            "  %zero = arith.constant 0.0 : f32",
            "  %one = arith.constant 1.0 : f32",
            f"  %m = tensor.dim %x, %c0 : {self.type(SIZE)}",
        ]
        self.count = 0

    def type(self, size: int, element: str = "f16") -> str:
        return f"tensor<?x{size}x{element}>"

    def weight(self, i: int) -> str:
        inputs, outputs = self.weights[i]
        return f"tensor<{inputs}x{outputs}xf16, #w>"

    def sum(self, x: str, i: int) -> str:
        """A product in f32."""
        inputs, outputs = self.weights[i]
        n, t = self.count, self.type(outputs, "f32")
        self.count += 1
        self.body += [
            f"  %e{n} = tensor.empty(%m) : {t}",
            f"  %f{n} = linalg.fill ins(%zero : f32) outs(%e{n} : {t}) -> {t}",
            f"  %s{n} = linalg.matmul ins({x}, %w{i} : {self.type(inputs)},",
            f"      {self.weight(i)}) outs(%f{n} : {t}) -> {t}",
        ]
        return f"%s{n}"

    def map(self, sums: list, size: int, lines: list) -> str:
        """f16 of `lines`, which compute %r of %a and perhaps %b."""
        n, t, s = self.count, self.type(size), self.type(size, "f32")
        self.count += 1
        names = ["%a: f32", "%b: f32"][: len(sums)]
        self.body += [
            f"  %h{n} = tensor.empty(%m) : {t}",
            f"  %y{n} = linalg.generic {{indexing_maps = ["
            + ", ".join(["#id"] * (len(sums) + 1))
            + '], iterator_types = ["parallel", "parallel"]}',
            f"      ins({', '.join(sums)} : {', '.join([s] * len(sums))})"
            f" outs(%h{n} : {t}) {{",
            f"  ^bb0({', '.join(names)}, %o: f16):",
            *("    " + line for line in lines),
            "    %c = arith.truncf %r : f32 to f16",
            "    linalg.yield %c : f16",
            f"  }} -> {t}",
        ]
        return f"%y{n}"

    def product(self, x: str, i: int) -> str:
        one = "%r = arith.mulf %a, %one : f32"
        return self.map([self.sum(x, i)], self.weights[i][1], [one])

    def finish(self, results: list, sizes: list) -> str:
        types = ", ".join(self.type(size) for size in sizes)
        end = f"  return {', '.join(results)} : {types}"
        head = f"func.func @run{self.head} -> ({types}) {{"
        return "\n".join([*self.lines, head, *self.body, end, "}", ""])


def write_chain(pattern: str) -> str:
    text = Text(pattern, CHAIN)
    y = "%x"
    for i in range(LENGTH):
        y = text.product(y, i % len(CHAIN))
    return text.finish([y], [SIZE])


def write_block(pattern: str) -> str:
    text = Text(pattern, BLOCK)
    q, k, v = (text.product("%x", i) for i in range(3))
    o = text.product(q, 3)
    silu = [
        "%n = arith.negf %a : f32",
        "%x1 = math.exp %n : f32",
        "%d = arith.addf %x1, %one : f32",
        "%g = arith.divf %a, %d : f32",
        "%r = arith.mulf %g, %b : f32",
    ]
    hidden = text.map([text.sum(o, 4), text.sum(o, 5)], HIDDEN, silu)
    y = text.product(hidden, 6)
    return text.finish([y, k, v], [SIZE, HEADS, HEADS])


def compute_chain(x, dense):
    """In higher precision, but for the f16 between products."""
    for i in range(LENGTH):
        x = (x.float() @ dense[i % len(dense)].float()).half()
    return [x]


def compute_block(x, dense):
    import torch

    wide = [w.float() for w in dense]
    q, k, v = ((x.float() @ w).half() for w in wide[:3])
    o = (q.float() @ wide[3]).half().float()
    hidden = (torch.nn.functional.silu(o @ wide[4]) * (o @ wide[5])).half()
    return [(hidden.float() @ wide[6]).half(), k, v]


CASES = {
    **{
        name: (write_chain, compute_chain, pattern, CHAIN)
        for name, pattern in PATTERNS.items()
    },
    "block_two_of_four": (write_block, compute_block, "2:4", BLOCK),
    "block_panels": (write_block, compute_block, PATTERNS["panels"], BLOCK),
}

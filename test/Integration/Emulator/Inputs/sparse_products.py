#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of one sparse product of tensor cores each, for every shape, type,
selector and order of B that wgmma_sp and mma_sp emit, and what a GPU makes of them.

usage: sparse_products.py write OUT_DIR [--device D] [--sample N --seed S]
       sparse_products.py compare OUT_DIR RESULTS.json
       sparse_products.py record OUT_DIR RESULTS.json --report REPORT.json --driver D

`write` makes, for each product, the module that `nm-run --lowered` takes, and
`list.txt` for `nm-run --batch`, whose results lie beside it; all products, or so
many of each instruction, type, selector and order of B, drawn from a seed. `compare`
says which results differ, in their digest, from those of a GPU, which `record`
writes with what `nm-run --json` says of its run. Both compare with the exact product
as well.
"""

import argparse
import hashlib
import json
import pathlib
import random
import struct
import sys
from typing import NamedTuple

from sparse_kernel import TEXTS
from sparse_operands import ELEMENTS, Operands


class Product(NamedTuple):
    instruction: str
    type: str
    columns: int
    selector: int
    transposed: bool = False

    @property
    def name(self):
        order = "-transposed" if self.transposed else ""
        return f"{self.instruction}-{self.type}-n{self.columns}-s{self.selector}{order}"

    @property
    def element(self):
        return ELEMENTS[self.type]

    @property
    def rows(self):
        return 64 if self.instruction == "wgmma" else 16


def products():
    """All of them. There is no other selector and order of B for 8 bits."""
    for type_, element in ELEMENTS.items():
        is_wide = element.bits == 16
        for columns in range(8, 257, 8):
            if type_ == "s8" and columns % 16 and columns > 24:
                continue
            for selector in range(1 + is_wide):
                for transposed in (False, True)[: 1 + is_wide]:
                    yield Product("wgmma", type_, columns, selector, transposed)
        if element.sum == "s32" or is_wide:
            for selector in range(1 + is_wide):
                yield Product("mma", type_, 8, selector)


def sample(count, seed):
    """So many products of each instruction, type, selector and order of B."""
    kinds = {}
    for product in products():
        kinds.setdefault(product._replace(columns=0), []).append(product)
    rng = random.Random(seed)
    for kind in kinds.values():
        yield from rng.sample(kind, min(count, len(kind)))


def draw(product):
    """Its operands, and what else is drawn for its kernel, of its name."""
    rng = random.Random(product.name)
    return Operands(rng, product.element, product.rows, product.columns), rng


def digest(words):
    return hashlib.sha256(struct.pack(f"<{len(words)}I", *words)).hexdigest()[:16]


def read_result(path):
    """The words of a file of numpy."""
    data = path.read_bytes()
    begin = 10 + int.from_bytes(data[8:10], "little")
    return struct.unpack(f"<{(len(data) - begin) // 4}I", data[begin:])


SIGNATURE = """\
func.func @product() -> tensor<{0}xi32> {{
  %zero = arith.constant dense<0> : tensor<{0}xi32>
  return %zero : tensor<{0}xi32>
}}
"""


def write(out, device, chosen):
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for product in chosen:
        operands, rng = draw(product)
        text = TEXTS[product.instruction](product, operands, rng)
        lowered = out / f"{product.name}.lowered.mlir"
        lowered.write_text(text, encoding="utf-8")
        source = out / f"{product.name}.mlir"
        source.write_text(SIGNATURE.format(product.rows * product.columns), "utf-8")
        lines.append(
            f"{source.name} --device {device} --lowered {lowered.name} "
            f"--output {product.name}"
        )
    (out / "list.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} products in {out}")


def find_results(out):
    """(product, words of its result or None) for each in the list."""
    by_name = {product.name: product for product in products()}
    for line in (out / "list.txt").read_text("utf-8").splitlines():
        product = by_name[pathlib.Path(line.split()[0]).stem]
        path = out / f"{product.name}.0.npy"
        yield product, read_result(path) if path.exists() else None


def check(out, recorded=None):
    """The digests of all results, and of each that is not what it must be, lines on
    why."""
    digests, errors = {}, {}
    for product, words in find_results(out):
        name, wrong = product.name, []
        if words is None:
            errors[name] = ["has no result"]
            continue
        operands, _ = draw(product)
        exact = operands.accumulators(operands.multiply())
        digests[name] = digest(words)
        others = sum(a != b for a, b in zip(words, exact))
        if others:
            wrong.append(f"{others} of {len(words)} sums are not the exact ones")
        if recorded is not None and digests[name] != recorded.get(name):
            wrong.append(
                f"the digest is {digests[name]}, that of the GPU's result "
                f"{recorded.get(name)}"
            )
        if wrong:
            errors[name] = wrong
    return digests, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    writing, comparing, recording = map(
        commands.add_parser, ("write", "compare", "record")
    )
    for command in (writing, comparing, recording):
        command.add_argument("out", type=pathlib.Path)
    writing.add_argument("--device", default="emulate")
    writing.add_argument("--sample", type=int)
    writing.add_argument("--seed", type=int, default=1)
    for command in (comparing, recording):
        command.add_argument("results", type=pathlib.Path)
    recording.add_argument("--report", type=pathlib.Path, required=True)
    recording.add_argument("--driver", required=True)
    arguments = parser.parse_args()
    if arguments.command == "write":
        count = arguments.sample
        chosen = sample(count, arguments.seed) if count else products()
        write(arguments.out, arguments.device, chosen)
        return 0
    recorded = None
    if arguments.command == "compare":
        recorded = json.loads(arguments.results.read_text("utf-8"))["digests"]
    digests, errors = check(arguments.out, recorded)
    for name, wrong in errors.items():
        print(*(f"{name}: {line}" for line in wrong), sep="\n")
    if arguments.command == "record":
        report = json.loads(arguments.report.read_text("utf-8"))
        results = {
            "gpu": report["runs"][0]["gpu"],
            "driver": arguments.driver,
            "commit": report["commit"],
            "digests": digests,
        }
        arguments.results.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    count = len(digests.keys() | errors.keys())
    print(f"{count - len(errors)} of {count} results are as expected")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())

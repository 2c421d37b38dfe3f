#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Says whether registers of metadata keep their values until sparse products of
warpgroups are over, in SASS as `nvdisasm -c` and `cuobjdump -sass` print it.

Tensor cores read metadata when they come to a product, and ptxas takes its
registers for free as soon as the product is issued. So on no path from a product to
a wait for it may an instruction write the register that it names as metadata.

usage: metadata_registers.py LISTING...

Status 1 when a register is overwritten, when no wait comes behind a product, or when
a listing has no sparse product.
"""

import pathlib
import re
import sys

from sass import REGISTER, parse

SPARSE = re.compile(r"[A-Z]GMMA\.(?:\w+\.)*SP\b")
GROUP = re.compile(r"\bgsb\d")  # Only the last product of a group has it.
MOST_GROUPS = 8


def find_metadata(product):
    """The register: of the list of operands the last one."""
    registers = [REGISTER.match(operand) for operand in product.operands]
    return [int(match[1]) for match in registers if match][-1]


def ends_group(instruction):
    return bool("GMMA" in instruction.opcode and GROUP.search(instruction.text))


def check_product(function, number):
    """Lines on what is wrong with the product of this number."""
    product = function.instructions[number]
    register, errors, seen = find_metadata(product), [], set()

    def describe(instruction, what):
        return f"{function.name}, {instruction.address}: {instruction.text}: {what}"

    # Groups that ended since the product was issued, its own among them.
    rest = [(to, int(ends_group(product))) for to in function.successors[number]]
    while rest:
        state = rest.pop()
        if state in seen:
            continue
        seen.add(state)
        at, groups = state
        instruction = function.instructions[at]
        if instruction.opcode.startswith("WARPGROUP.DEPBAR"):
            if groups > int(instruction.operands[-1], 16):
                continue
        elif register in instruction.find_results():
            what = f"writes R{register}, the metadata of the product at "
            errors.append(describe(instruction, what + product.address))
            continue
        if not function.successors[at]:
            what = f"no wait came for the product at {product.address}"
            errors.append(describe(instruction, what))
        groups = min(groups + ends_group(instruction), MOST_GROUPS)
        rest += [(to, groups) for to in function.successors[at]]
    return list(dict.fromkeys(errors))


def check(text):
    """How many sparse products a listing has, and what is wrong with them."""
    count, errors = 0, []
    for function in parse(text):
        for number, instruction in enumerate(function.instructions):
            if SPARSE.match(instruction.opcode):
                count += 1
                errors += check_product(function, number)
    return count, errors


def report(name, text):
    """Prints it; whether all is well."""
    count, errors = check(text)
    if not count:
        errors = ["has no sparse product"]
    for error in errors:
        print(f"FAILED {name}: {error}")
    if not errors:
        print(f"{name}: {count} sparse products keep their metadata")
    return not errors


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    results = [
        report(path, pathlib.Path(path).read_text("utf-8")) for path in sys.argv[1:]
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

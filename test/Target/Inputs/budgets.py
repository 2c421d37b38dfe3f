# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernels of each family may use: registers, spills and shared memory
as ptxas and the launch have them, the instructions of their inner loops, and the
FFMAs that wait for a bank of the register file.

usage: budgets.py PTXAS [--table FILE] [--update] [--only TEXT]

Without --update, a kernel that uses more than the table says is a failure, named
with both numbers. --update measures anew and writes the table; the difference
belongs into the review of the change.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "Pipelines" / "Inputs"))
import cases  # noqa: E402
from budget_kernels import KERNELS  # noqa: E402

TABLE = pathlib.Path(__file__).parents[1] / "budgets.json"

PRODUCTS = ("wgmma.mma_async", "mma.sync", "mma.sp", "fma.rn.f32")
COPIES = ("cp.async.cg", "cp.async.ca", "cp.async.bulk")


def loops(ptx):
    """The instructions of each loop, as opcodes, smallest loop first: from a
    label to a later jump to it."""
    labels, opcodes, jumps = {}, [], []
    ptx = re.sub(r"//.*", "", ptx)
    for statement in re.split(r"[;\n](?=\s*(?:[@$\w}]|$))", ptx):
        statement = statement.strip().lstrip("{} \t\n")
        label = re.match(r"(\$\w+):\s*", statement)
        while label:
            labels[label[1]] = len(opcodes)
            statement = statement[label.end() :]
            label = re.match(r"(\$\w+):\s*", statement)
        match = re.match(r"(?:@!?%p\d+\s+)?([a-z][\w.:]*)(.*)", statement, re.S)
        if not match:
            continue
        if match[1].startswith("bra"):
            jumps.append((len(opcodes), match[2].strip().rstrip(";")))
        opcodes.append(match[1])
    ranges = [(labels[to], at + 1) for at, to in jumps if labels.get(to, at + 1) <= at]
    found = [opcodes[start:end] for start, end in ranges]
    return sorted(found, key=len)


def count(opcodes, prefixes):
    return sum(opcode.startswith(prefixes) for opcode in opcodes)


def longest_store_block(ptx):
    """The instructions, between labels and jumps, of the block that has most
    16-byte stores, or else most transpositions: the epilogue of a tile that
    exists as a whole."""
    ptx = re.sub(r"//.*", "", ptx)
    blocks = re.split(r"\n\$\w+:|\bbra(?:\.uni)?\b[^\n]*;", ptx)
    block = max(
        blocks, key=lambda text: (text.count("st.global.v"), text.count("movmatrix"))
    )
    return len(re.findall(r";\s*$", block, re.M))


def find(found, prefixes):
    """The smallest loop that has most instructions with these prefixes."""
    return max(found, key=lambda loop: (count(loop, prefixes), -len(loop)), default=[])


def code_sections(cubin):
    """The machine code of each function of an ELF file."""
    (start,) = struct.unpack_from("<Q", cubin, 40)
    size, number, names = struct.unpack_from("<3H", cubin, 58)
    headers = [
        struct.unpack_from("<2I4Q", cubin, start + i * size) for i in range(number)
    ]
    for name, _, _, _, offset, length in headers:
        at = headers[names][4] + name
        if cubin[at : at + 6] == b".text.":
            yield cubin[offset : offset + length]


def bank_conflicts(cubin):
    """FFMAs that read two registers of one bank. Registers of even and of odd
    number are in two banks, each of which gives one a cycle. What an operand slot
    was told to keep it has for each bank, until it reads another of that bank."""
    conflicts = 0
    for code in code_sections(cubin):
        kept = {}
        for low, high in struct.iter_unpack("<2Q", code):
            if low & 0xFFF != 0x223:  # FFMA of three registers
                continue
            reads = [0, 0]
            for slot, register in enumerate((low >> 24, low >> 32, high)):
                register &= 0xFF
                bank = slot, register % 2
                reads[register % 2] += kept.get(bank) != register
                kept[bank] = register if high >> (58 + slot) & 1 else None
            conflicts += max(reads) > 1
    return conflicts


def measure(case, ptxas):
    with tempfile.TemporaryDirectory() as folder:
        ptx, manifest = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.json")
        cubin = os.path.join(folder, "k")
        # The token-major kernels, not a transposition and others.
        command = ["nm-compile", "-", "-o", ptx, "--tokens=2048"]
        command += ["--manifest", manifest]
        command += ["--layout", "keep", "--chip", case.chip]
        subprocess.run(command, input=cases.text(case), text=True, check=True)
        report = subprocess.run(
            [ptxas, "-v", f"-arch={case.chip}", ptx, "-o", cubin],
            capture_output=True,
            text=True,
            check=True,
        ).stderr
        source = pathlib.Path(ptx).read_text("utf-8")
        launches = pathlib.Path(manifest).read_text("utf-8")
        conflicts = bank_conflicts(pathlib.Path(cubin).read_bytes())

    def number(pattern, said):
        return sum(int(value) for value in re.findall(pattern, said))

    found = loops(source)
    product = next((name for name in PRODUCTS if count(find(found, name), name)), "?")
    multiplies, copies = find(found, product), find(found, COPIES)
    # Registers are given out in groups of eight. The kernel has more of them than
    # the one before it that aligns rows.
    registers = max(map(int, re.findall(r"Used (\d+) registers", report)))
    return {
        "registers": (registers + 7) // 8 * 8,
        "spill_bytes": number(r"(\d+) bytes spill (?:stores|loads)", report),
        "shared_bytes": number(r"(\d+) bytes smem", report)
        + number(r'"dynamic_shared_memory": "(\d+)"', launches),
        # ptxas says so when it makes wgmma wait where the kernel does not.
        "serialized_products": len(re.findall("serialized|is injected", report)),
        "products": count(multiplies, product),
        "product_loop": len(multiplies),
        "product_loop_loads": count(
            multiplies, ("ldmatrix", "ld.shared", "ld.volatile.shared")
        ),
        "copies": count(copies, COPIES),
        "copy_loop": len(copies),
        "epilogue": longest_store_block(source),
        **({"bank_conflicts": conflicts} if product == "fma.rn.f32" else {}),
    }


def compare(name, allowed, used):
    """Lines on what `used` has too much of. Fewer products in a loop are as
    wrong as more: the loop is then another one."""
    lines = []
    for what, value in used.items():
        limit = allowed.get(what)
        if limit is None or value > limit or (what == "products" and value != limit):
            lines.append(f"FAILED {name}: {what} is {value}, the budget is {limit}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ptxas")
    parser.add_argument("--table", type=pathlib.Path, default=TABLE)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", default="", help="names that hold this text")
    arguments = parser.parse_args()
    kernels = {name: case for name, case in KERNELS.items() if arguments.only in name}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        measured = dict(
            zip(
                kernels,
                pool.map(lambda case: measure(case, arguments.ptxas), kernels.values()),
            )
        )
    table = json.loads(arguments.table.read_text()) if arguments.table.exists() else {}
    if arguments.update:
        table = {**table, **measured}
        lines = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(table[name])}"
            for name in KERNELS
            if name in table
        )
        arguments.table.write_text("{\n" + lines + "\n}\n")
        return 0
    failures = []
    for name, used in measured.items():
        failures += compare(name, table.get(name, {}), used)
    print("\n".join(failures))
    failed = len({line.split(":")[0] for line in failures})
    print(f"{len(measured) - failed} of {len(measured)} within their budgets")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

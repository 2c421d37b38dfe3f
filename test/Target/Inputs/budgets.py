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
from cases import Case, schedule, text  # noqa: E402

TABLE = pathlib.Path(__file__).parents[1] / "budgets.json"
FEATURE = {"x_feature_major": True, "y_feature_major": True}


def wgmma(tile, warps=(1, 8), stages=4, **roles):
    return schedule("wgmma", tile, warps, stages, **roles)


def expand(tile, warps, stages, **roles):
    return schedule(
        "wgmma_expand", tile, warps, stages, 1, "bulk", "bulk", 4, tma=True, **roles
    )


def segments(tile, warps, stages, grid):
    return (
        f"#nm_sparse.schedule<tile = {list(tile)}, "
        f"product = wgmma_expand<warps = {warps}, segments = true>, "
        "transfers = {x = bulk, values = bulk, index = bulk}, "
        f"pipeline = ring<stages = {stages}, producers = 4>, grid = {grid}>"
    )


def panel_dot(tokens, outputs, rows, warps, shares):
    return (
        f"#nm_sparse.schedule<tile = [{tokens}, {outputs}, {rows}], "
        f"product = panel_dot<warps = {warps}, shares = {shares}>, "
        "transfers = {x = direct, values = direct, index = direct}, "
        "pipeline = sequential>"
    )


def mma_expand(tokens, outputs, rows, warps, shares):
    return (
        f"#nm_sparse.schedule<tile = [{tokens}, {outputs}, {rows}], "
        f"product = mma_expand<warps = {warps}, shares = {shares}>, "
        "transfers = {x = direct, values = direct, index = direct}, "
        "pipeline = sequential>"
    )


GATHER = schedule("simt", (128, 64, 2), (2, 2), 3)
WHOLE_WINDOWS = schedule("simt", (64, 128, 1), (1, 4), 3, 1, "copy")
PRODUCERS = schedule("simt", (256, 128, 1), (2, 4), 4, 1, "copy", producers=4)
MMA = schedule("mma", (128, 128, 4), (2, 2), 3)
MMA_WHOLE_WINDOWS = schedule("mma", (128, 128, 4), (2, 4), 4, 1, "copy")
KERNELS = {
    "simt, gather": Case("f32", 12, 32, 32, schedule=GATHER, **FEATURE),
    "simt, copy": Case("f32", 16, 32, 32, schedule=WHOLE_WINDOWS, **FEATURE),
    "simt, producers": Case("f32", 16, 32, 32, schedule=PRODUCERS, **FEATURE),
    "simt, token-major": Case("f32", 16, 32, 32, schedule=WHOLE_WINDOWS),
    "simt, GELU": Case("f32", 12, 32, 32, schedule=GATHER, epilogue="gelu"),
    "panel_dot": Case(
        "f16", 8, 32, 32, tokens=1, schedule=panel_dot(1, 256, 128, 16, 16)
    ),
    "panel_dot, groups": Case(
        "bf16", 8, 16, 32, tokens=2, schedule=panel_dot(2, 64, 256, 8, 32)
    ),
    "panel_dot, 8 tokens": Case(
        "f16", 16, 32, 128, tokens=8, schedule=panel_dot(8, 256, 64, 8, 8)
    ),
    **{
        f"mma_expand, {name}": Case(
            element,
            n,
            m,
            1,
            tokens=tile[0],
            schedule=mma_expand(*tile, 8, shares),
            **layout,
        )
        for name, element, n, m, tile, shares, layout in (
            ("8 tokens", "f16", 8, 16, (8, 64, 128), 4, {}),
            ("16 tokens, feature-major", "bf16", 8, 16, (16, 64, 128), 4, FEATURE),
            ("long windows", "f16", 16, 32, (16, 128, 128), 2, {}),
            ("64 tokens", "f16", 4, 16, (64, 256, 32), 1, {}),
        )
    },
    "mma": Case("f16", 16, 32, 128, schedule=MMA, **FEATURE),
    "mma, token-major": Case("bf16", 16, 32, 128, schedule=MMA_WHOLE_WINDOWS),
    "mma, GELU": Case("f16", 16, 32, 128, schedule=MMA, epilogue="gelu", **FEATURE),
    **{
        f"mma, persistent, values by TMA{name}": Case(
            element,
            n,
            32,
            128,
            schedule=schedule(
                "mma",
                (256, 128, windows),
                (4, 2),
                4,
                producers=4,
                persistent=True,
                tma=True,
            ),
            epilogue=epilogue,
            **FEATURE,
        )
        for name, element, n, windows, epilogue in (
            ("", "f16", 16, 4, "cast"),
            (", GELU", "bf16", 8, 8, "gelu"),
        )
    },
    "wgmma": Case("f16", 16, 32, 256, schedule=wgmma((128, 256, 4)), **FEATURE),
    "wgmma, producers": Case(
        "f16", 16, 32, 256, schedule=wgmma((128, 256, 4), producers=4), **FEATURE
    ),
    "wgmma, producers, L = 128, GELU": Case(
        "bf16",
        8,
        32,
        128,
        schedule=wgmma((256, 128, 8), (2, 4), producers=4),
        epilogue="gelu",
        **FEATURE,
    ),
    "wgmma, values by TMA": Case(
        "f16",
        16,
        32,
        256,
        schedule=wgmma((128, 256, 4), producers=4, tma=True),
        **FEATURE,
    ),
    "wgmma, persistent, values by TMA": Case(
        "f16",
        16,
        32,
        256,
        schedule=wgmma((128, 256, 4), producers=4, persistent=True, tma=True),
        **FEATURE,
    ),
    "wgmma, persistent, values by TMA, token-major result": Case(
        "f16",
        16,
        32,
        256,
        schedule=wgmma((128, 256, 4), producers=4, persistent=True, tma=True),
        x_feature_major=True,
    ),
    "wgmma, persistent, values by TMA, L = 128, GELU": Case(
        "f16",
        8,
        32,
        128,
        schedule=wgmma((256, 128, 8), (2, 4), producers=4, persistent=True, tma=True),
        epilogue="gelu",
        **FEATURE,
    ),
    **{
        f"wgmma, persistent, values by TMA, {epilogue}{result}": Case(
            "f16",
            16,
            32,
            256,
            schedule=wgmma((128, 256, 4), producers=4, persistent=True, tma=True),
            epilogue=epilogue,
            x_feature_major=True,
            y_feature_major=not result,
        )
        for epilogue in ("gelu", "residual")
        for result in ("", ", token-major result")
    },
    **{
        f"wgmma, persistent, values by TMA, tokens by panel, {epilogue}": Case(
            element,
            n,
            32,
            256,
            schedule=wgmma(
                (128, 256, windows),
                (2, 4),
                stages,
                producers=4,
                persistent=True,
                tma=True,
            ),
            epilogue=epilogue,
            **FEATURE,
        )
        for epilogue, element, n, windows, stages in (
            ("cast", "f16", 12, 8, 3),
            ("gelu", "bf16", 16, 4, 4),
        )
    },
    "wgmma, persistent": Case(
        "f16",
        16,
        32,
        256,
        schedule=wgmma((128, 256, 4), producers=4, persistent=True),
        **FEATURE,
    ),
    "wgmma, persistent, L = 128": Case(
        "bf16",
        8,
        32,
        128,
        schedule=wgmma((256, 128, 8), (2, 4), producers=4, persistent=True),
        **FEATURE,
    ),
    **{
        f"wgmma_expand, {name}": Case(element, n, m, 1, schedule=how, **layout)
        for name, element, n, m, how, layout in (
            (
                "persistent",
                "f16",
                8,
                16,
                expand((256, 128, 4), 8, 5, persistent=True),
                {},
            ),
            (
                "stream-K, feature-major",
                "bf16",
                16,
                32,
                expand((256, 128, 2), 8, 4, stream_k=True, persistent=True),
                FEATURE,
            ),
            ("few tokens", "f16", 4, 16, expand((16, 448, 4), 28, 5), {}),
            ("64 tokens", "f16", 2, 4, expand((64, 256, 16), 16, 5), {}),
            (
                "segments",
                "f16",
                8,
                16,
                segments((256, 128, 32), 8, 4, "persistent"),
                FEATURE,
            ),
            (
                "segments, stream-K",
                "bf16",
                16,
                32,
                segments((128, 256, 64), 8, 2, "persistent<stream_k = true>"),
                FEATURE,
            ),
            (
                "segments, 64 tokens",
                "f16",
                4,
                16,
                segments((64, 256, 32), 16, 3, "flat"),
                FEATURE,
            ),
        )
    },
}

PRODUCTS = ("wgmma.mma_async", "mma.sync", "fma.rn.f32")
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
        command += ["--layout", "keep"]
        subprocess.run(command, input=text(case), text=True, check=True)
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

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SASS as `nvdisasm -c` and `cuobjdump -sass` print it: functions, which registers
an instruction writes, and which instructions may come next."""

import re
from typing import NamedTuple

LINE = re.compile(
    r"^\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<guard>@!?U?P\w+\s+)?"
    r"(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>[^;]*);"
)
LABEL = re.compile(r"^\s*(?P<name>[.$\w]+):\s*$")
SECTION = re.compile(r"^\s*(?:\.section\s+\.text\.([^,\s]+)|Function : (\S+))")
TARGET = re.compile(r"`\(([^)]+)\)|\b(0x[0-9a-f]+)\b")
REGISTER = re.compile(r"R(\d+)\b")
PREDICATE = re.compile(r"U?P(\d+|T)$")

# Opcodes, up to the first dot, that have no result, or none but predicates, uniform
# registers and memory.
NO_RESULT = set(
    "ISETP FSETP DSETP HSETP2 PLOP3 UISETP ST STG STS STL STSM RED REDG REDAS LDGSTS "
    "STAS BAR BRA BRX BREAK BSSY BSYNC CALL CCTL DEPBAR ERRBAR EXIT FENCE JMP "
    "LDGDEPBAR MEMBAR NANOSLEEP NOP PREFETCH RET R2UR WARPGROUP WARPSYNC YIELD".split()
)
BRANCHES = ("BRA", "CALL", "JMP")


class Instruction(NamedTuple):
    address: str
    is_guarded: bool
    opcode: str
    operands: list
    text: str

    @property
    def base(self):
        return self.opcode.split(".")[0]

    @property
    def modifiers(self):
        return self.opcode.split(".")[1:]

    def find_targets(self):
        """Labels and addresses among the operands."""
        found = TARGET.findall(" ".join(self.operands))
        return [name or int(address, 16) for name, address in found]

    def count_results(self):
        """How many registers it writes, from its first result on."""
        base, modifiers = self.base, set(self.modifiers)
        if base.endswith("GMMA"):
            shape = re.search(r"\.64x(\d+)x", self.opcode)
            return int(shape[1]) // 2
        if base.endswith("MMA") or "128" in modifiers or base in ("LDSM", "MOVM"):
            return 4
        is_double = re.match(r"D(ADD|MUL|FMA|MNMX)$", base)
        is_wide = modifiers & {"64", "WIDE", "TRANS64", "F64"}
        if is_double or is_wide or (base == "CS2R" and "32" not in modifiers):
            return 2
        return 1

    def find_results(self):
        """The registers that it writes. Of an opcode that is not known, the first
        operand that is a register, or behind predicates."""
        if self.base in NO_RESULT:
            return range(0)
        operand = next((o for o in self.operands if not PREDICATE.match(o)), "")
        match = REGISTER.match(operand)
        if not match:
            return range(0)
        return range(int(match[1]), int(match[1]) + self.count_results())


class Function:
    def __init__(self, name):
        self.name, self.instructions = name, []
        self.labels = {}  # of a name or an address, the number of an instruction

    def link(self):
        """Finds `successors`, of each instruction those that may come next. Where
        BSYNC leads to is what the BSSY of its barrier says that came last."""
        count = len(self.instructions)
        self.successors = [set() for _ in range(count)]
        said = [set() for _ in range(count)]  # (barrier, label)
        rest = list(range(count))
        while rest:
            number = rest.pop()
            instruction, after = self.instructions[number], said[number]
            if instruction.base == "BSSY":
                barrier, label = instruction.operands[0], *instruction.find_targets()
                after = {pair for pair in after if pair[0] != barrier}
                after.add((barrier, label))
            self.successors[number] = self.find_successors(number, after)
            for following in self.successors[number]:
                if not after <= said[following]:
                    said[following] |= after
                    rest.append(following)

    def find_successors(self, number, said):
        instruction = self.instructions[number]
        base, following, goes_on = instruction.base, [], True
        if base == "BRX":
            raise ValueError(
                f"{instruction.text} at {instruction.address} may lead "
                "anywhere; only jumps to labels are followed"
            )
        if base in BRANCHES or "COLLECTIVE" in instruction.modifiers:
            following = instruction.find_targets()
            is_divergent = {"DIV", "CONV"} & set(instruction.modifiers)
            is_jump = base in ("BRA", "JMP") and len(instruction.operands) == 1
            goes_on = not is_jump or bool(is_divergent)
        elif base == "BSYNC":
            barrier = instruction.operands[0]
            following = [label for other, label in said if other == barrier]
            goes_on = not following
        elif base in ("EXIT", "RET"):
            goes_on = False
        numbers = {self.labels[to] for to in following}
        if goes_on or instruction.is_guarded:
            numbers.add(number + 1)
        return {to for to in numbers if to < len(self.instructions)}


def parse(text):
    """The functions of a listing."""
    functions = []
    for line in text.splitlines():
        section = SECTION.match(line)
        if section:
            functions.append(Function(section[1] or section[2]))
        if not functions:
            continue
        function = functions[-1]
        label, found = LABEL.match(line), LINE.match(line)
        if label:
            function.labels[label["name"]] = len(function.instructions)
        if found:
            function.labels[int(found["address"], 16)] = len(function.instructions)
            operands = found["operands"].strip()
            function.instructions.append(
                Instruction(
                    found["address"],
                    bool(found["guard"]),
                    found["opcode"],
                    [operand.strip() for operand in operands.split(",")],
                    f"{found['guard'] or ''}{found['opcode']} {operands}".strip(),
                )
            )
    for function in functions:
        function.link()
    return functions

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches the kernel of a lowered module twice on the same buffers, its result
spoiled in between: what the first launch leaves in a workspace must serve the
second one.

usage: launch_twice.py [--keep-counter N] < LOWERED > TWICE

With --keep-counter, the Nth reset of a counter is left out of the kernel.
"""

import argparse
import re
import sys

# Not that of the kernel before it that aligns rows.
LAUNCH = re.compile(
    r"( *)(%\w+) = gpu\.launch_func async \[(%\w+)\]( @\w+::@\w+_kernel .*)"
)
RESULT = re.compile(
    r" gpu\.memcpy async \[%\w+\] %alloc\w*, (%\w+) : (memref<\S*x(\w+)>)"
)
# Behind the fence of the thread that finds the other part.
RESET = re.compile(
    r"memory\.barrier <gpu>\n.*getelementptr.*\n( *llvm\.store.*i32.*\n)"
)


def launch_twice(text):
    buffer, type_, element = RESULT.findall(text)[-1]
    launches = LAUNCH.findall(text)
    assert len(launches) == 1, f"{len(launches)} launches"

    def repeat(match):
        indent, last, before, rest = match.groups()
        lines = [
            f"%spoiled = arith.constant -77.0 : {element}",
            f"%first = gpu.launch_func async [{before}]{rest}",
            f"%between = gpu.memset async [%first] {buffer}, %spoiled"
            f" : {type_}, {element}",
            f"{last} = gpu.launch_func async [%between]{rest}",
        ]
        return "\n".join(indent + line for line in lines)

    return LAUNCH.sub(repeat, text)


def keep_counter(text, number):
    resets = list(RESET.finditer(text))
    assert len(resets) == 2, f"{len(resets)} resets"
    start, end = resets[number].span(1)
    return text[:start] + text[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep-counter", type=int, metavar="N")
    arguments = parser.parse_args()
    text = launch_twice(sys.stdin.read())
    if arguments.keep_counter is not None:
        text = keep_counter(text, arguments.keep_counter)
    print(text, end="")


if __name__ == "__main__":
    main()

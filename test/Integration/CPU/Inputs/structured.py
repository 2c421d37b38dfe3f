# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of random patterns, shapes, layouts and types, unpacked by loops and by
structured operations. Some weights are constants, which are also stored as bitmaps.

Usage: structured.py write OUT_DIR
       structured.py compare OUT_DIR

`write` makes the programs, and OUT_DIR/list.txt, which nm-run reads. `compare` wants
the results of a product to be equal, bit for bit: the weights are, and the sums have
one order.
"""

import concurrent.futures
import pathlib
import random
import subprocess
import sys

TYPES = ["f16", "f32", "bf16", "i8", "f8E4M3FN", "f8E5M2"]
KINDS = ["one level", "two levels", "free", "ragged"]
CASES = 48
FRONT = ["--convert-linalg-to-nm-sparse", "--nm-sparse-materialize-encodings"]
BITMAP = "--nm-sparse-select-storage=storage=bitmap"
STRUCTURED = "--convert-nm-sparse-to-linalg=structured"


def draw_levels(rng, kind):
    """The levels of an encoding, the rows of its window, and if bitmaps hold it."""
    if kind == "free":
        return "free", 16, False
    bk, bn = rng.choice([1, 1, 2, 3, 4]), rng.choice([1, 2, 5, 8, 32])
    if kind == "ragged":
        return f"free, block = [{bk}, {max(bn, 2)}]", 8 * bk, False
    m = rng.choice([2, 4, 7, 16, 32])
    n = rng.randint(1, min(m, 12))
    if kind == "one level":
        return f"{n}:{m}, block = [{bk}, {bn}]", m * bk, True
    # An inner window is what the outer level keeps of one of its own.
    inner = rng.choice([j for j in range(1, n * bk + 1) if n * bk % j == 0])
    rows = rng.choice([i for i in range(1, bk + 1) if inner % i == 0 and bk % i == 0])
    rows, blocks = (bk, n) if bk % rows else (rows, n * bk // rows)
    columns = rng.choice([j for j in range(1, bn + 1) if bn % j == 0])
    kept = rng.randint(1, blocks)
    levels = (
        f"[{n}:{m}, block = [{bk}, {bn}]], "
        f"[{kept}:{blocks}, block = [{rows}, {columns}]]"
    )
    return levels, m * bk, bn % 32 == 0


def draw_elements(rng, sizes, element):
    """The elements of a constant, which look as the parser wants them."""
    if not sizes:
        return str(rng.randint(-9, 9) * (1 if element == "i8" else 0.125))
    parts = (draw_elements(rng, sizes[1:], element) for _ in range(sizes[0]))
    return f"[{', '.join(parts)}]"


def draw_program(rng, number):
    """A product, its number of tokens, and if its weight is also stored as bitmaps."""
    kind, element = KINDS[number % len(KINDS)], TYPES[number % len(TYPES)]
    levels, window, is_bitmap = draw_levels(rng, kind)
    is_batch, is_turned = rng.random() < 0.25, rng.random() < 0.5
    is_shuffled = kind != "free" and rng.random() < 0.3
    n, k = rng.randint(1, 70), rng.randint(1, min(3 * window + 5, 700))
    is_feature_major = not is_batch and rng.random() < 0.4
    result = "i32" if element == "i8" else rng.choice(["f32", element])
    dim = int(is_batch) + int(is_turned)
    order = ", order = shuffled" if is_shuffled else ""
    encoding = f"#nm_sparse.encoding<{levels}, dim = {dim}{order}>"
    lead, b = ("3x", "b, ") if is_batch else ("", "")
    turn = reversed if is_feature_major else iter
    x = f"tensor<{lead}{'x'.join(turn(['?', str(k)]))}x{element}>"
    y = f"tensor<{lead}{'x'.join(turn(['?', str(n)]))}x{result}>"
    sizes = [3] * is_batch + ([n, k] if is_turned else [k, n])
    dense = f"tensor<{'x'.join(map(str, sizes))}x{element}>"
    w = f"{dense[:-1]}, {encoding}>"
    maps = ", ".join(
        f"affine_map<({b}m, n, k) -> ({b}{', '.join(dims)})>"
        for dims in (
            turn(["m", "k"]),
            ("n", "k") if is_turned else ("k", "n"),
            turn(["m", "n"]),
        )
    )
    op = "batch_matmul" if is_batch else "matmul"
    is_bitmap = is_bitmap and not is_shuffled
    argument, constant = f", %w: {w}", ""
    if is_bitmap:
        elements = draw_elements(rng, sizes, element)
        argument, constant = (
            "",
            (
                f"  %c = arith.constant dense<{elements}> : {dense}\n"
                f"  %w = nm_sparse.prune {encoding} %c : {dense} to {w}\n"
            ),
        )
    text = f"""\
func.func @f(%x: {x}{argument}, %init: {y}) -> {y} {{
{constant}  %y = linalg.{op} indexing_maps = [{maps}]
      ins(%x, %w : {x}, {w}) outs(%init : {y}) -> {y}
  return %y : {y}
}}
"""
    return text, rng.randint(1, 6), is_bitmap


def lower(source, passes, target):
    subprocess.run(["nm-opt", source, *passes, "-o", target], check=True)


def write_case(folder, number):
    """The lines of nm-run for a product."""
    rng = random.Random(number)
    text, tokens, is_bitmap = draw_program(rng, number)
    source = folder / f"{number}.mlir"
    source.write_text(text)
    forms = {"loops": FRONT, "structured": [*FRONT, STRUCTURED]}
    if is_bitmap:
        forms["bitmap"] = [*FRONT, BITMAP, STRUCTURED]
    flags = f"--device cpu --size {tokens} --seed {number} --density 30"
    lines = []
    for form, passes in forms.items():
        program = folder / f"{number}.{form}.mlir"
        lower(source, passes, program)
        output = folder / f"{number}.{form}"
        lines.append(f'"{program}" {flags} --output "{output}"')
    return lines


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        lines = list(pool.map(lambda number: write_case(folder, number), range(CASES)))
    (folder / "list.txt").write_text("\n".join(sum(lines, [])) + "\n")
    print(sum(len(own) == 3 for own in lines), "products with bitmaps")


def compare(folder):
    wrong = 0
    for number in range(CASES):
        expected = (folder / f"{number}.loops.0.npy").read_bytes()
        for other in folder.glob(f"{number}.*.0.npy"):
            if other.read_bytes() != expected:
                wrong += 1
                print(f"{other.name} differs: WRONG")
    print(f"{CASES} products, {wrong} wrong")


{"write": write, "compare": compare}[sys.argv[1]](pathlib.Path(sys.argv[2]))

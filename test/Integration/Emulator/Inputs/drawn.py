# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of layers that were drawn from a seed, for `nm-run --batch`."""

from families import text


def write(out, drawn):
    """Writes a file for each (name, case, tokens, seed, flags) and `list.txt`."""
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, case, tokens, seed, flags in drawn:
        path = out / f"{name}.mlir"
        path.write_text(text(case), encoding="utf-8")
        lines.append(f"{path} --check --size m={tokens} --seed {seed} {flags}")
    (out / "list.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} kernels in {out}")

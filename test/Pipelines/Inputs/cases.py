# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse layers as MLIR text, and what ptxas says of the kernels they become.

Used by the tests that compile many shapes and patterns: a case is data, so a
test can draw cases from a seed and name the ones that fail.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import tempfile


@dataclasses.dataclass
class Case:
    element: str = "f16"
    n: int = 8
    m: int = 32
    panel: int = 128
    block_k: int = dataclasses.field(default=1, kw_only=True)
    free: bool = dataclasses.field(default=False, kw_only=True)  # instead of n:m
    inner: str = dataclasses.field(default="", kw_only=True)  # such as 2:4
    shuffled: bool = dataclasses.field(default=False, kw_only=True)
    tokens: int | None = None  # None: dynamic
    k: int = 4096
    outputs: int = 4096
    dim: int = 0  # 1: the weight is outputs x inputs
    x_feature_major: bool = False
    y_feature_major: bool = False
    batch: int = 0
    shared_weight: bool = False
    epilogue: str = "none"  # none, cast, relu, gelu, residual
    schedule: str = ""
    chip: str = "sm_90a"

    def __str__(self):
        blocks = f"L={self.panel}"
        if self.block_k != 1:
            blocks = f"{self.block_k}x{self.panel}"
        pattern = "free" if self.free else f"{self.n}:{self.m}"
        if self.inner:
            pattern += f", {self.inner} inside,"
        if self.shuffled:
            pattern += " shuffled"
        shown = [f"{self.element} {pattern} {blocks}"]
        tokens = "?" if self.tokens is None else self.tokens
        shown.append(f"{tokens}x{self.k}x{self.outputs}")
        defaults = Case()
        for name in (
            "dim",
            "x_feature_major",
            "y_feature_major",
            "batch",
            "shared_weight",
            "epilogue",
            "schedule",
            "chip",
        ):
            if getattr(self, name) != getattr(defaults, name):
                shown.append(f"{name}={getattr(self, name)}")
        return " ".join(shown)


def schedule(
    kind,
    tile,
    warps,
    stages=3,
    split_k=1,
    x="gather",
    index="resident",
    producers=0,
    persistent=False,
    tma=False,
    stream_k=False,
    rows=None,
):
    """The text of a schedule whose tile is (tokens, outputs, windows): those are
    kept rows once the pattern is known (with_rows). Or (tokens, outputs) and the
    kept rows themselves, which a table finds."""
    tokens, outputs, *windows = tile
    step = rows or f"{windows[0]} windows"
    index = "rows" if rows else index
    pipeline = f"async_groups<stages = {stages}>"
    if producers:
        pipeline = f"ring<stages = {stages}, producers = {producers}>"
    grid = "persistent" if persistent else "flat"
    warps = warps if isinstance(warps, int) else list(warps)
    if stream_k:
        grid += "<stream_k = true>"
    elif split_k > 1:
        grid += f"<split_k = {split_k}>"
    return (
        f"#nm_tile.schedule<tile = [{tokens}, {outputs}, {step}], "
        f"product = {kind}<warps = {warps}>, "
        f"transfers = {{x = {x}, values = {'bulk' if tma else 'copy'}, "
        f"index = {index}}}, pipeline = {pipeline}, grid = {grid}>"
    )


def fields_of(text):
    """What stands in the angle brackets of the text of a schedule; of none, nothing."""
    return text.removeprefix("#nm_tile.schedule<").removesuffix(">")


def with_rows(text, kept):
    """`text` of a schedule with kept rows in place of windows of `kept` rows."""
    return re.sub(r"(\d+) windows", lambda found: str(int(found[1]) * kept), text)


GELU = """
    %half = arith.constant 0.5 : f32
    %rsqrt2 = arith.constant 0.70710678 : f32
    %one = arith.constant 1.0 : f32
    %scaled = arith.mulf %sum, %rsqrt2 : f32
    %erf = math.erf %scaled : f32
    %erf1 = arith.addf %erf, %one : f32
    %halved = arith.mulf %sum, %half : f32
    %activated = arith.mulf %halved, %erf1 : f32"""
RELU = """
    %zf = arith.constant 0.0 : f32
    %activated = arith.maximumf %sum, %zf : f32"""


def text(case, name="f"):
    """The MLIR module of one case: a product, or another layer that writes itself."""
    if not isinstance(case, Case):
        return case.text()
    m = "?" if case.tokens is None else str(case.tokens)
    k, n, t = str(case.k), str(case.outputs), case.element
    batched = case.batch > 0
    loops = "(b, m, n, k)" if batched else "(m, n, k)"
    lead = ["b"] if batched else []
    extent = {"m": m, "n": n, "k": k, "b": str(case.batch)}
    x_dims = lead + (["k", "m"] if case.x_feature_major else ["m", "k"])
    w_lead = lead if not case.shared_weight else []
    w_dims = w_lead + (["n", "k"] if case.dim else ["k", "n"])
    y_dims = lead + (["n", "m"] if case.y_feature_major else ["m", "n"])

    def tensor(dims, element, encoding=""):
        return f"tensor<{'x'.join(extent[d] for d in dims)}x{element}{encoding}>"

    def affine(dims, of):
        return f"affine_map<{of} -> ({', '.join(dims)})>"

    dim = case.dim + (1 if w_lead else 0)
    pattern = "free" if case.free else f"{case.n}:{case.m}"
    parts = [pattern, f"block = [{case.block_k}, {case.panel}]"]
    if case.inner:
        parts = [f"[{', '.join(parts)}]", f"[{case.inner}]"]
    if dim:
        parts.append(f"dim = {dim}")
    if case.shuffled:
        parts.append("order = shuffled")
    encoding = f"#nm_sparse.encoding<{', '.join(parts)}>"
    x, w = tensor(x_dims, t), tensor(w_dims, t, ", #w")
    y32, y = tensor(y_dims, "f32"), tensor(y_dims, t)
    m_at = x_dims.index("m")
    size = "%m" if m == "?" else ""
    kept = case.n * case.block_k
    attributes = (
        f" attrs = {{nm_sparse.config = {with_rows(case.schedule, kept)}}}"
        if case.schedule
        else ""
    )
    kinds = {"b": "parallel", "m": "parallel", "n": "parallel", "k": "reduction"}
    iterators = ", ".join(f'"{kinds[d]}"' for d in lead + ["m", "n", "k"])
    lines = [f"#w = {encoding}"]
    fused = case.epilogue != "none"
    combined = case.epilogue not in ("none", "cast")
    result = y if fused else y32
    arguments = [f"%x: {x}", f"%w: {w}"]
    if combined:
        arguments += [f"%bias: tensor<{n}xf32>", f"%residual: {y}"]
    lines.append(f"func.func @{name}({', '.join(arguments)}) -> {result} {{")
    lines.append("  %zero = arith.constant 0.0 : f32")
    if size:
        lines.append(f"  %at = arith.constant {m_at} : index")
        lines.append(f"  %m = tensor.dim %x, %at : {x}")
    lines.append(f"  %empty = tensor.empty({size}) : {y32}")
    lines.append(
        f"  %init = linalg.fill ins(%zero : f32) outs(%empty : {y32}) -> {y32}"
    )
    maps = ", ".join(affine(d, loops) for d in (x_dims, w_dims, y_dims))
    lines.append(f"""  %y = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = [{iterators}]}}
      ins(%x, %w : {x}, {w}) outs(%init : {y32}){attributes} {{
  ^bb0(%a: {t}, %b: {t}, %c: f32):""")
    if t == "f32":
        lines.append("    %p = arith.mulf %a, %b : f32")
    else:
        lines.append(f"    %a32 = arith.extf %a : {t} to f32")
        lines.append(f"    %b32 = arith.extf %b : {t} to f32")
        lines.append("    %p = arith.mulf %a32, %b32 : f32")
    lines.append(f"""    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }} -> {y32}""")
    if case.epilogue == "cast":
        of = "(b, m, n)" if batched else "(m, n)"
        maps = ", ".join([affine(y_dims, of)] * 2)
        parallel = ", ".join(['"parallel"'] * len(y_dims))
        lines.append(f"""  %out = tensor.empty({size}) : {y}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{parallel}]}}
      ins(%y : {y32}) outs(%out : {y}) {{
  ^bb0(%v: f32, %o: {t}):
    %cast = arith.truncf %v : f32 to {t}
    linalg.yield %cast : {t}
  }} -> {y}
  return %r : {y}
}}""")
    elif combined:
        of = "(b, m, n)" if batched else "(m, n)"
        maps = ", ".join(affine(d, of) for d in (y_dims, ["n"], y_dims, y_dims))
        parallel = ", ".join(['"parallel"'] * len(y_dims))
        lines.append(f"  %out = tensor.empty({size}) : {y}")
        lines.append(f"""  %r = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = [{parallel}]}}
      ins(%y, %bias, %residual : {y32}, tensor<{n}xf32>, {y})
      outs(%out : {y}) {{
  ^bb0(%v: f32, %bv: f32, %rv: {t}, %o: {t}):
    %sum = arith.addf %v, %bv : f32""")
        if case.epilogue == "gelu":
            lines.append(GELU)
        elif case.epilogue == "relu":
            lines.append(RELU)
        elif t == "f32":
            lines.append("    %activated = arith.addf %sum, %rv : f32")
        else:
            lines.append(f"    %wide = arith.extf %rv : {t} to f32")
            lines.append("    %activated = arith.addf %sum, %wide : f32")
        if t == "f32":
            lines.append("    linalg.yield %activated : f32")
        else:
            lines.append(f"    %cast = arith.truncf %activated : f32 to {t}")
            lines.append(f"    linalg.yield %cast : {t}")
        lines.append(f"  }} -> {y}\n  return %r : {y}\n}}")
    else:
        lines.append(f"  return %y : {y32}\n}}")
    return "\n".join(lines) + "\n"


@dataclasses.dataclass
class Outcome:
    ok: bool
    message: str = ""
    spills: int = 0
    registers: int = 0


def assemble(ptx, chip, ptxas):
    """What ptxas says of PTX text."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.ptx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ptx)
        done = subprocess.run(
            [ptxas, "-v", f"-arch={chip}", "-o", os.path.join(folder, "k.o"), path],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        return Outcome(False, f"ptxas: {done.stderr.strip()[:400]}")
    spills = sum(
        int(v) for v in re.findall(r"(\d+) bytes spill (?:stores|loads)", done.stderr)
    )
    used = [int(v) for v in re.findall(r"Used (\d+) registers", done.stderr)]
    return Outcome(
        spills == 0,
        f"{spills} bytes spilled" if spills else "",
        spills,
        max(used, default=0),
    )


def compile_text(source, chip="sm_90a", ptxas=None, tool="nm-compile", emit="ptx"):
    """Compiles MLIR text for 2048 tokens; with `ptxas`, its kernels too."""
    done = subprocess.run(
        [tool, "-", "-o", "-", f"--chip={chip}", f"--emit={emit}", "--tokens=2048"],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return Outcome(False, f"exit {done.returncode}: {done.stderr.strip()[:600]}")
    if "unrealized_conversion_cast" in done.stdout:
        return Outcome(False, "an unconverted cast is left")
    if emit == "ptx" and ".entry" not in done.stdout:
        return Outcome(False, "no kernel")
    if ptxas and emit == "ptx":
        return assemble(done.stdout, chip, ptxas)
    return Outcome(True)

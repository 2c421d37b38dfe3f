# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Databases without a GPU: what nm-compile lists stands in for what was measured."""

import json

from nm_sparse import compiler
from nm_sparse.runtime.program import compile

MEASURED = dict(us=1.0, spread=0.0, dense_us=0.0, compiler="", driver="")


def storage_options(storage):
    """Options of nm-compile for kernels that read weights in this form."""
    return [f"--storage={storage.partition('<')[0].removeprefix('#nm_sparse.')}"]


def list_products(text, tokens=(), options=(), count=1, gpu="h200"):
    """What `nm-compile --candidates` says of a program, without any database."""
    arguments = ["-", "-o", "-", f"--gpu={gpu}", f"--candidates={count}", "--tuned="]
    arguments += [f"--tokens={','.join(map(str, tokens))}"] if tokens else []
    return json.loads(compiler.run([*arguments, *options], text).text)


def write_entries(path, entries):
    path.write_text("".join(json.dumps(one) + "\n" for one in entries))


def compile_with(text, entry, path, options=(), **more):
    """The program by a database of one entry, and whether that was taken."""
    write_entries(path, [entry])
    program = compile(
        text, gpu=entry["gpu"], tokens=[entry["tokens"]], options=options,
        tuned=[path], use_cache=False, **more,
    )  # fmt: skip
    taken = [one["schedule"] for one in program.manifest["products"]]
    return program, entry["schedule"] in taken and "ignores" not in program.warnings


def other_schedules(products, text, path):
    """Writes a database with another schedule than the model's for each product of a
    program, where there is one, as if it had been measured, far faster than any is
    predicted to be. Returns the schedules."""
    entries = []
    for product in products:
        problem, options = product.problem, storage_options(product.storage)
        listed = next(
            one["candidates"]
            for one in list_products(text, [product.tokens], options, 4)
            if one["tuning"].items() >= problem.items()
        )
        ranked = sorted(listed, key=lambda one: one["predicted_us"])
        firsts = {one["family"]: one for one in reversed(ranked)}
        known = {
            one["schedule"]: one for one in [*ranked[:2], *firsts.values(), *ranked]
        }
        for one in reversed([*known.values()][:4]):
            us = one["predicted_us"] / 1e3
            entry = {"version": 1, **problem, "schedule": one["schedule"], **MEASURED}
            entry["us"] = us
            if compile_with(text, entry, path, options)[1]:
                entries.append(entry)
                break
        else:
            raise AssertionError(f"no schedule of {problem} is legal")
    write_entries(path, entries)
    return [one["schedule"] for one in entries]

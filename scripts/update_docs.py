#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fills the generated parts of the documentation from what the tools print.

A generated part lies between the lines `<!-- generated: NAME -->` and
`<!-- end: NAME -->`; never edit it by hand. NAME is a key of GENERATORS.

Usage: update_docs.py [--check | --force] [--bin FOLDER] [PAGE...]
  --check  change nothing; exit with 1 and a diff when a part is out of date
  --force  also renew what only differs in times and the like
  --bin    where nm-compile and nm-run are; default build/bin

Times, error figures and the registers that ptxas reports differ from machine to
machine: a part that differs in nothing else counts as up to date.
"""

import argparse
import difflib
import functools
import platform
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import doc_results
import doc_sparse
import python_reference
import result_readers

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "pages")]
import element_wise  # noqa: E402
import energy_page  # noqa: E402
import models_page  # noqa: E402
import one_token  # noqa: E402
import plots  # noqa: E402
import random_layers  # noqa: E402
import report  # noqa: E402
import storage_page  # noqa: E402
import tuned_layers  # noqa: E402
from walk_lines import select  # noqa: E402

PAGES = [
    "README.md", "bench/results/README.md",
    *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")),
]  # fmt: skip
EXAMPLE = "examples/linear.mlir"
ADVISE = "--advise --shape K=4096,N=14336 --tokens 1,2048"
SWEEP = "test/tools/Inputs/clocks.json"
WALK = "docs/programs/walk.mlir"

# The differences between machines, for the comparison.
NOISE = [
    (r"takes \d+ ms of CPU time on .*", ""),
    (r" *[\d.]+ ms", " ms"),
    (r"CTAs in [\d.]+ s", "CTAs"),
    (r"(relative|absolute) error [\d.e+-]+", r"\1 error"),
    (r"\n  (\w+: \d+ )?registers.*", ""),
    (r"%(c\d+)_\d+\b", r"%\1"),
    (r"%(?!c\d)[\w#:+]+", "%"),  # names of values and PTX registers
]


def run(folder, *command):
    path = Path(folder) / command[0]
    if not path.exists():
        sys.exit(f"update_docs.py: {path} does not exist; build it first")
    result = subprocess.run(
        [path, *command[1:]], cwd=ROOT, capture_output=True, text=True
    )
    if result.returncode:
        sys.exit(f"update_docs.py: {' '.join(command)}: {result.stderr.strip()}")
    return result.stdout


def cpu():
    """The name of this machine's processor."""
    try:
        text = Path("/proc/cpuinfo").read_text()
        return re.search(r"^model name\s*: *(.*)$", text, re.M)[1]
    except (OSError, TypeError):
        return platform.machine()


def fenced(text, language=""):
    return f"```{language}\n{text.rstrip()}\n```"


def console(command, output):
    return fenced(f"$ {command}\n{output}", "console")


def code_of(path):
    """A file without its leading comment."""
    text = (ROOT / path).read_text("utf-8")
    return re.sub(r"\A(//.*\n|\n)*", "", text)


class Generators:
    """One method for each kind of generated part."""

    def __init__(self, folder, write=True):
        self.folder = folder
        self.write = write  # figures, too
        self.tool = functools.partial(run, folder)

    def example(self, _):
        return fenced(code_of(EXAMPLE), "mlir")

    def explain(self, file):
        with tempfile.TemporaryDirectory() as scratch:
            arguments = ["-o", f"{scratch}/ptx", "--tokens", "2048", "--explain"]
            text = self.tool("nm-compile", file, *arguments)
        # Trailing blanks are how an empty list of changes is printed.
        return "\n".join(line.rstrip() for line in text.splitlines())

    def compile(self, _):
        command = f"nm-compile {EXAMPLE} -o linear.ptx --tokens 2048 --explain"
        return console(command, self.explain(EXAMPLE))

    def compiletime(self, _):
        times = []
        with tempfile.TemporaryDirectory() as scratch:
            # A check compares no times.
            for _ in range(3 if self.write else 1):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                arguments = ["-o", f"{scratch}/ptx", "--tokens", "2048"]
                self.tool("nm-compile", EXAMPLE, *arguments)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                times.append(
                    after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                )
        return f"It takes {1000 * min(times):.0f} ms of CPU time on {cpu()}."

    def run(self, _):
        arguments = [EXAMPLE, "--size", "m=8", "--device", "emulate", "--check"]
        return console("nm-run " + " ".join(arguments), self.tool("nm-run", *arguments))

    def advise(self, _):
        command = ["nm-compile", *ADVISE.split()]
        return console(" ".join(command), self.tool(*command))

    def recommend(self, _):
        arguments = [EXAMPLE, "--tokens", "512", "--recommend", "--clocks", SWEEP]
        command = ["nm-compile", *arguments]
        return console(" ".join(command), self.tool(*command))

    def support(self, _):
        return self.tool("nm-compile", "--print-support").strip()

    def emulated(self, _):
        return self.tool("nm-run", "--print-emulated").strip()

    def input(self, path):
        return fenced(code_of(path or WALK), "mlir")

    def counts(self, _):
        return fenced(self.explain(WALK))

    def stage(self, name):
        # One kernel is enough to follow, but where there are several.
        tokens = "auto" if name == "specialize" else "2048"
        arguments = ["-o", "-", "--emit", name, "--tokens", tokens]
        text = self.tool("nm-compile", WALK, *arguments)
        return fenced(select(text, name), "" if name == "ptx" else "mlir")

    def walk(self, page, name):
        """What docs/programs/PAGE.mlir has become after a stage."""
        program = f"docs/programs/{page}.mlir"
        text = self.tool("nm-compile", program, "-o", "-", "--emit", name)
        shown = select(text, f"{page} {name}")
        return fenced(shown, "" if name == "ptx" else "mlir")

    def decode(self, name):
        return self.walk("decode", name)

    def sparse(self, name):
        return self.walk("sparse", name)

    def levels(self, name):
        return self.walk("levels", name)

    def shuffled(self, name):
        return self.walk("shuffled", name)

    def speed(self, part):
        only = doc_results.SUMMARY if part == "summary" else None
        return doc_results.headline(ROOT / "bench/results", only)

    def emulator(self, _):
        return doc_results.emulator(ROOT / "bench/results")

    def attribute(self, name):
        """What the definition of an attribute says of it, without the list of its
        C++ parameters."""
        pages = sorted((Path(self.folder).parent / "docs").glob("*Attrs.md"))
        found = re.search(
            rf"^### {name}\n\n_(.*?)_\n\n(?:Syntax: .*?\n\n)?(.*?)\n*^###",
            "".join(page.read_text("utf-8") + "\n###\n" for page in pages),
            re.M | re.S,
        )
        if not found:
            raise SystemExit(f"update_docs.py: no attribute {name} is documented")
        return f"{found[1]}.\n\n{found[2].strip()}"

    def performance(self, what):
        pages = {**random_layers.PAGES, **one_token.PAGES, **element_wise.PAGES}
        pages |= {**doc_sparse.PAGES, **storage_page.PAGES, **tuned_layers.PAGES}
        return pages[what]() if what else report.page()

    def energy(self, what):
        """A table of docs/Energy.md."""
        if what == "choice":
            return energy_page.choice(self.folder)
        return getattr(energy_page, what)()

    def models(self, what):
        """A table of docs/Models.md."""
        return models_page.GENERATORS[what]()

    def energyexplained(self, _):
        """What --explain says of a product, for an H100."""
        with tempfile.TemporaryDirectory() as scratch:
            arguments = [EXAMPLE, "--gpu", "h100", "--tokens", "2048", "--explain"]
            text = self.tool("nm-compile", *arguments, "-o", f"{scratch}/ptx")
        lines = text.splitlines()
        first = next(i for i, t in enumerate(lines) if "the dense product takes" in t)
        command = "nm-compile " + " ".join(arguments) + " -o linear.ptx"
        shown = [line[:110].rstrip() for line in lines[first : first + 5]]
        return console(command, "\n".join(shown))

    def python(self, package):
        """The reference of a package of docs/Python.md."""
        return python_reference.page(package)

    def figure(self, name):
        return plots.make(name, ROOT / "docs/images", write=self.write)

    def readers(self, _):
        """Who reads the files of bench/results."""
        return result_readers.page(ROOT)

    def results(self, _):
        return doc_results.everything(ROOT / "bench/results")


def comparable(text):
    for pattern, replacement in NOISE:
        text = re.sub(pattern, replacement, text)
    return text


def update(text, generators, force):
    """The page with every generated part made anew, or as it is when that would
    change nothing of substance."""

    def replace(match):
        name = match[1]
        kind, _, argument = name.partition(" ")
        new = getattr(generators, kind)(argument)
        return f"<!-- generated: {name} -->\n{new}\n<!-- end: {name} -->"

    new = re.sub(
        r"<!-- generated: (.*?) -->.*?<!-- end: \1 -->", replace, text, flags=re.S
    )
    return text if not force and comparable(new) == comparable(text) else new


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--bin", default=str(ROOT / "build/bin"))
    parser.add_argument("pages", nargs="*", default=PAGES)
    arguments = parser.parse_args()
    generators = Generators(arguments.bin, not arguments.check)
    stale = 0
    for page in arguments.pages:
        path = ROOT / page
        old = path.read_text("utf-8")
        new = update(old, generators, arguments.force)
        if new == old:
            continue
        stale += 1
        if arguments.check:
            sides = [comparable(text).splitlines() for text in (old, new)]
            names = [page, "as the tools print it"]
            print("\n".join(difflib.unified_diff(*sides, *names, "", "", 1, "")))
        else:
            path.write_text(new, "utf-8")
            print(f"{page}: updated")
    if arguments.check and stale:
        sys.exit("update_docs.py: out of date; run `make docs`")


if __name__ == "__main__":
    main()

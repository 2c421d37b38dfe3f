#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what folders include, link and import with docs/Architecture.md.

usage: check_arrows.py [FOLDER]

An arrow is an #include, or a library in LINK_LIBS, that leads from one folder of
lib and include/nm_sparse to another, or an import from one folder of
python/nm_sparse to another. Each must stand in a table, whose rows lead from low to
high. Names circles between folders as well, folders with too many files and files
with too many lines. Looks at FOLDER (default: this repository). Status 1 when
something is found.
"""

import ast
import collections
import fnmatch
import os
import pathlib
import re
import sys

from check_lengths import LIMIT as MOST_LINES
from check_lengths import find_long_files

PAGE = "docs/Architecture.md"
TOPS = ("lib", "include/nm_sparse")
ENDINGS = (".cpp", ".h", ".td", ".def")
PACKAGE = "nm_sparse"
# Where folders have a limit of files, with what counts as one.
COUNTED = {
    **{top: ENDINGS for top in TOPS},
    "python": (".py", ".c", ".h"),
    "bench": (".py", ".c", ".cu"),
    "scripts": (".py", ".sh"),
}
MOST_FILES = 30

# `line` of `file` leads from the folder of `file` to the file or folder `target`.
Arrow = collections.namedtuple("Arrow", "file line target")


def get_folder(path):
    """The folder below lib, or include/nm_sparse, that `path` is in: GPU/Math.

    A header in include/nm_sparse itself is the whole of its folder: InitAll.h. So is
    a module at the top of the Python package: nm_sparse/direct.
    """
    if path.startswith(f"python/{PACKAGE}/"):
        folder, name = os.path.split(path[len("python/") :])
        return folder if folder != PACKAGE else f"{folder}/{name.split('.')[0]}"
    for top in TOPS:
        if path.startswith(top + "/"):
            name = path[len(top) + 1 :]
            return os.path.dirname(name) or name.split(".")[0]
    return None


class Table:
    """The rows of the page: a folder, or `Folder/*` for each one in Folder."""

    def __init__(self, root):
        self.rows = {}
        self.offences = []
        lines = (root / PAGE).read_text().splitlines()
        for number, line in enumerate(lines, 1):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not line.startswith("| `") or len(cells) < 2:
                continue
            name = cells[0].strip("`")
            allowed = re.findall(r"`([^`]+)`", cells[1])
            for other in allowed:
                if other not in self.rows:
                    self.offences.append(
                        f"{PAGE}:{number}: the row of {name} names {other}, which is "
                        "in no row above it: a folder may use those below it alone"
                    )
            self.rows[name] = allowed

    def find(self, folder):
        """The row of `folder`: its own, or that of the nearest folder around it."""
        while folder:
            if folder in self.rows:
                return folder
            for name in self.rows:
                deep = name.count("/") == folder.count("/")
                if deep and fnmatch.fnmatch(folder, name):
                    return name
            folder = os.path.dirname(folder)
        return None

    def get_unit(self, folder):
        """What stands for itself in `folder`: the folder that its row speaks of."""
        row = self.find(folder)
        if row is None:
            return folder
        depth = row.count("/") + 1
        return "/".join(folder.split("/")[:depth])


def find_sources(root):
    for top in TOPS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in ENDINGS and path.is_file():
                yield path.relative_to(root).as_posix()


def resolve(root, path, name):
    """The file of ours that `path` includes as `name`, or None."""
    if name.startswith("nm_sparse/"):
        # The build makes a few headers that lie in no folder, such as Version.h.
        found = "include/" + name
        is_made = name.count("/") == 1 and not (root / found).exists()
        return None if is_made else found
    folder = os.path.dirname(path)
    while folder and folder not in TOPS:
        found = os.path.normpath(os.path.join(folder, name))
        if (root / found).exists():
            return found
        folder = os.path.dirname(folder)
    return None


def find_includes(root):
    for path in find_sources(root):
        lines = (root / path).read_text().splitlines()
        for number, line in enumerate(lines, 1):
            match = re.match(r'\s*#?\s*include "([^"]+)"', line)
            target = resolve(root, path, match[1]) if match else None
            if target:
                yield Arrow(path, number, target)


class Modules:
    """The modules of the Python package, by name, and what they import of it."""

    def __init__(self, root):
        self.root, self.paths = root, {}
        for path in sorted((root / "python" / PACKAGE).rglob("*.py")):
            words = path.relative_to(root / "python").with_suffix("").parts
            words = words[:-1] if words[-1] == "__init__" else words
            self.paths[".".join(words)] = path.relative_to(root).as_posix()

    def find_imports(self):
        for name, path in self.paths.items():
            is_package = path.endswith("/__init__.py")
            package = name if is_package else name.rpartition(".")[0]
            for node in ast.walk(ast.parse((self.root / path).read_text())):
                for target in self.find_targets(node, package):
                    if self.paths[target] != path:
                        yield Arrow(path, node.lineno, self.paths[target])

    def find_targets(self, node, package):
        """The modules that a statement imports, in a module of `package`."""
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            words = package.split(".")[: package.count(".") + 2 - node.level]
            base = words if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            # An imported name is a module of the package, or a name in it.
            names = [f"{base}.{one.name}" for one in node.names]
            names = [name if name in self.paths else base for name in names]
        else:
            names = []
        return sorted({name for name in names if name in self.paths})


def read_commands(path):
    """The words of each command of a CMakeLists.txt, with their lines."""
    text = re.sub(r"#[^\n]*", "", path.read_text())
    for match in re.finditer(r"^\s*(\w+)\s*\(([^)]*)\)", text, re.MULTILINE):
        words = []
        for word in re.finditer(r"\S+", match[2]):
            line = text.count("\n", 0, match.start(2) + word.start()) + 1
            words.append((word[0], line))
        yield match[1], words


class Libraries:
    """The targets of lib: which folders their sources are in, what they link."""

    def __init__(self, root):
        self.folders = {}
        self.links = []
        for path in sorted((root / "lib").rglob("CMakeLists.txt")):
            name = path.relative_to(root).as_posix()
            for command, words in read_commands(path):
                if command in ("add_library", "nm_sparse_add_library") and words:
                    self.add(name, words)

    def add(self, path, words):
        target, part, sources = words[0][0], "", []
        here = os.path.dirname(path)
        for word, line in words[1:]:
            if re.fullmatch("[A-Z_]+", word):
                part = word
            elif part == "LINK_LIBS":
                self.links.append((path, line, target, word))
            elif word.endswith(".cpp") and "$" not in word:
                sources.append(os.path.normpath(os.path.join(here, word)))
        folders = {get_folder(source) for source in sources}
        self.folders[target] = sorted(folders - {None}) or [get_folder(path)]

    def find_arrows(self):
        """(file, line, folder, library, folder of the library) of each link."""
        for path, line, target, library in self.links:
            for folder in self.folders[target]:
                for other in self.folders.get(library, []):
                    yield path, line, folder, library, other


def explain(table, unit, other):
    row = table.find(unit)
    if row is None:
        return f"{unit} has no row in {PAGE}: give it one"
    legal = ", ".join(table.rows[row]) or "nothing"
    return f"{unit} may use {legal}, and not {other}: see the table in {PAGE}"


def is_allowed(table, folder, other):
    unit, target = table.get_unit(folder), table.get_unit(other)
    if unit == target:
        return True
    row = table.find(folder)
    return row is not None and table.find(other) in table.rows[row]


def check_arrows(root, table, includes):
    for arrow in includes:
        folder, other = get_folder(arrow.file), get_folder(arrow.target)
        if not is_allowed(table, folder, other):
            why = explain(table, table.get_unit(folder), table.get_unit(other))
            verb = "imports" if arrow.file.endswith(".py") else "includes"
            yield f"{arrow.file}:{arrow.line}: {verb} {arrow.target}; {why}"
    seen = set()
    for path, line, folder, library, other in Libraries(root).find_arrows():
        unit, target = table.get_unit(folder), table.get_unit(other)
        if is_allowed(table, folder, other) or (path, line, unit, target) in seen:
            continue
        seen.add((path, line, unit, target))
        why = explain(table, unit, target)
        yield f"{path}:{line}: {unit} links {library}; {why}"


def find_components(graph):
    """The sets of nodes that reach each other, by Tarjan's algorithm."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            start = stack.index(node)
            found.append(stack[start:])
            del stack[start:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def find_circle(graph, nodes):
    """The shortest way from one of `nodes`, and back to it."""
    start = min(nodes)
    ways = collections.deque([[start]])
    seen = set()
    while ways:
        way = ways.popleft()
        for other in sorted(graph[way[-1]]):
            if other == start:
                return way + [start]
            if other in nodes and other not in seen:
                seen.add(other)
                ways.append(way + [other])
    return []


def check_circles(includes):
    graph = collections.defaultdict(dict)
    for arrow in includes:
        node, other = get_folder(arrow.file), get_folder(arrow.target)
        if node != other:
            graph[node].setdefault(other, arrow)
    for nodes in find_components(graph):
        if len(nodes) == 1:
            continue
        way = find_circle(graph, set(nodes))
        arrows = [graph[node][other] for node, other in zip(way, way[1:])]
        places = ", ".join(f"{arrow.file}:{arrow.line}" for arrow in arrows)
        yield (
            f"{arrows[0].file}:{arrows[0].line}: a circle of folders: "
            f"{' -> '.join(way)} ({places}): move what they share below them"
        )


def check_sizes(root):
    counts = collections.Counter()
    for top, endings in COUNTED.items():
        for path in (root / top).rglob("*"):
            if path.suffix in endings and path.is_file():
                counts[path.parent.relative_to(root).as_posix()] += 1
    for folder, files in sorted(counts.items()):
        if files > MOST_FILES:
            yield (
                f"{folder}:1: {files} files, legal are {MOST_FILES}: give what "
                "belongs together a folder in it"
            )
    for path, lines in find_long_files(root):
        yield (
            f"{path}:{MOST_LINES + 1}: {lines} lines, legal are {MOST_LINES}: give "
            "one of its ideas a file"
        )


def check(root):
    table = Table(root)
    includes = [*find_includes(root), *Modules(root).find_imports()]
    yield from table.offences
    yield from check_arrows(root, table, includes)
    yield from check_circles(includes)
    yield from check_sizes(root)


def main(arguments):
    if len(arguments) > 1:
        sys.exit("usage: check_arrows.py [FOLDER]")
    root = pathlib.Path(__file__).resolve().parent.parent
    if arguments:
        root = pathlib.Path(arguments[0])
    offences = list(check(root))
    print("\n".join(offences), end="\n" if offences else "")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

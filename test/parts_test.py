# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A lit format that leaves out tests of parts that this build does not have: folders
of lib/Products, lib/Transfers and lib/Dialect/NMSparse/Storages."""

import re
from pathlib import Path

import lit.formats
import lit.Test


def names_of(folder):
    """The names in text of what a folder defines: `copy` and `staged` of Copy."""
    text = (folder / f"{folder.name}.td").read_text(encoding="utf-8")
    return re.findall(r'NM\w+_Attr<"\w+", "(\w+)"', text)


def missing_names(source_root, kind, built):
    """The names that folders of lib/KIND define which are not among `built`."""
    folders = (Path(source_root) / "lib" / kind).iterdir()
    known = [one for one in folders if (one / f"{one.name}.td").exists()]
    return sorted(
        name for one in known if one.name not in built for name in names_of(one)
    )


class PartsTest(lit.formats.ShTest):
    """A shell test, unsupported where its text names a part that is missing."""

    def __init__(self, execute_external, products, transfers, storages):
        super().__init__(execute_external)
        self.parts = [
            *((rf"product = {one}\b|#nm_tile\.{one}\b", one) for one in products),
            *((rf"\b(x|values|index) = {one}\b", one) for one in transfers),
            *((rf"#nm_sparse\.{one}\b|storage={one}\b", one) for one in storages),
        ]
        # Free weights have no canonical form.
        if storages:
            self.parts.append((r"encoding<free\b", " and ".join(storages)))
        # The default of a schedule that names no transfers.
        defaults = {"gather", "copy", "resident"}.intersection(transfers)
        if defaults:
            schedule = r"#nm_tile\.schedule<(?![^>]*transfers)"
            self.parts.append((schedule, " and ".join(sorted(defaults))))

    def execute(self, test, lit_config):
        if self.parts:
            with open(test.getSourcePath(), encoding="utf-8") as source:
                text = source.read()
            for pattern, name in self.parts:
                if re.search(pattern, text):
                    return lit.Test.Result(
                        lit.Test.UNSUPPORTED, f"this build has no {name}"
                    )
        return super().execute(test, lit_config)

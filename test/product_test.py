# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A lit format that leaves out tests of products that this build does not have."""

import os
import re

import lit.formats
import lit.Test


def mnemonic_of(product):
    """The name in schedules of a folder of lib/Products: wgmma_sp of WgmmaSp."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", product).lower()


def missing_products(source_root, built):
    """The mnemonics of the products in the source that are not among `built`."""
    folder = os.path.join(source_root, "lib", "Products")
    known = {
        entry.name
        for entry in os.scandir(folder)
        if os.path.exists(os.path.join(entry.path, entry.name + ".td"))
    }
    return sorted(mnemonic_of(product) for product in known - set(built))


class ProductTest(lit.formats.ShTest):
    """A shell test, unsupported where its text names a product in `missing`."""

    def __init__(self, execute_external, missing):
        super().__init__(execute_external)
        self.missing = missing

    def execute(self, test, lit_config):
        if self.missing:
            with open(test.getSourcePath(), encoding="utf-8") as source:
                text = source.read()
            for product in self.missing:
                if re.search(rf"product = {product}\b|#nm_tile\.{product}\b", text):
                    return lit.Test.Result(
                        lit.Test.UNSUPPORTED, f"this build has no product {product}"
                    )
        return super().execute(test, lit_config)

#!/usr/bin/env bash
# Builds the compiler with a few products only and runs the tests that need no
# others, to show that a product can be left out: that nothing but its folder and
# its line in NM_SPARSE_PRODUCTS knows it.
# Usage: check_products.sh [PRODUCT...]; default Simt Mma

source "$(dirname "$0")/common.sh"
[ $# -gt 0 ] || set -- Simt Mma
list=$(IFS=';'; echo "$*")
dir=$root/build-products

scripts/bootstrap.sh
say "building with the products $*"
cmake --preset dev -B "$dir" -DNM_SPARSE_PRODUCTS="$list" --log-level=WARNING
ninja -C "$dir" nm-opt nm-test-opt nm-test-run nm-test-tensor nm-compile nm-run nm-translate

say "lit"
"$(command -v "lit-$llvm" || command -v lit)" -sv "$dir/test/Dialect" "$dir/test/Products" \
  "$dir/test/Conversion"

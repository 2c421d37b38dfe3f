#!/usr/bin/env bash
# Builds the compiler with a few products and transfers only and runs the tests that
# need no others, to show that each can be left out: that nothing but its folder and
# its line in NM_SPARSE_PRODUCTS or NM_SPARSE_TRANSFERS knows it.
# Usage: check_products.sh [PRODUCT... [-- TRANSFER...]]; default Simt Mma -- Copy Resident

source "$(dirname "$0")/common.sh"
products=() transfers=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  products+=("$1")
  shift
done
[ $# -eq 0 ] || shift
transfers=("$@")
[ ${#products[@]} -gt 0 ] || products=(Simt Mma)
[ ${#transfers[@]} -gt 0 ] || transfers=(Copy Resident)
join() { local IFS=';'; echo "$*"; }
dir=$root/build-products

scripts/bootstrap.sh
say "building with the products ${products[*]} and the transfers ${transfers[*]}"
cmake --preset dev -B "$dir" -DNM_SPARSE_PRODUCTS="$(join "${products[@]}")" \
  -DNM_SPARSE_TRANSFERS="$(join "${transfers[@]}")" --log-level=WARNING
ninja -C "$dir" nm-opt nm-test-opt nm-test-run nm-test-tensor nm-compile nm-run nm-translate

say "lit"
"$(command -v "lit-$llvm" || command -v lit)" -sv "$dir/test/Dialect" "$dir/test/Products" \
  "$dir/test/Transfers" "$dir/test/Conversion"

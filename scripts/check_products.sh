#!/usr/bin/env bash
# Builds the compiler with a few products, transfers and storages only and runs the
# tests that need no others, to show that each can be left out: that nothing but its
# folder and its line in NM_SPARSE_PRODUCTS, NM_SPARSE_TRANSFERS or NM_SPARSE_STORAGES
# knows it.
# Usage: check_products.sh [PRODUCT... [-- TRANSFER... [-- STORAGE...]]]; default
# Simt Mma -- Copy Resident -- Bitmap, beside the canonical form.
# NM_PARTS_DIR is the folder to build in, build-products by default. A build of all
# parts has most of what is needed; it has all parts again in the end, not yet built.

source "$(dirname "$0")/common.sh"
products=() transfers=() storages=()
axis=products
for part in "$@"; do
  case $axis:$part in
  products:--) axis=transfers ;;
  transfers:--) axis=storages ;;
  products:*) products+=("$part") ;;
  transfers:*) transfers+=("$part") ;;
  storages:*) storages+=("$part") ;;
  esac
done
[ ${#products[@]} -gt 0 ] || products=(Simt Mma)
[ ${#transfers[@]} -gt 0 ] || transfers=(Copy Resident)
[ ${#storages[@]} -gt 0 ] || storages=(Bitmap)
join() { local IFS=';'; echo "$*"; }
dir=${NM_PARTS_DIR:-$root/build-products}

scripts/bootstrap.sh
say "building with the products ${products[*]}, the transfers ${transfers[*]} and the storages ${storages[*]}"
cmake --preset dev -B "$dir" -DNM_SPARSE_PRODUCTS="$(join "${products[@]}")" \
  -DNM_SPARSE_TRANSFERS="$(join "${transfers[@]}")" \
  -DNM_SPARSE_STORAGES="$(join "${storages[@]}")" --log-level=WARNING
ninja -C "$dir" nm-opt nm-test-opt nm-test-run nm-test-tensor nm-compile nm-run nm-translate

restore() {
  cmake -U 'NM_SPARSE_PRODUCTS' -U 'NM_SPARSE_TRANSFERS' -U 'NM_SPARSE_STORAGES' \
    "$dir" --log-level=WARNING >/dev/null
}
[ -z "${NM_PARTS_DIR:-}" ] || trap restore EXIT

say "lit"
"$(command -v "lit-$llvm" || command -v lit)" -sv "$dir/test/Dialect" "$dir/test/Products" \
  "$dir/test/Transfers" "$dir/test/Conversion"

//===- DotNumerics.cpp - how the tensor core of each chip adds -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of Hopper are measured: they give the bits of every result that
// bench/tensor_core_numerics.cu printed on an H200. The other rows are taken
// from the publications that DotProduct.h names, and are not compared with a
// GPU here.
//
//===----------------------------------------------------------------------===//

#include "Ops/Matrix/DotProduct.h"
#include <algorithm>

namespace mlir::nm_sparse::emulator {

namespace {

struct NumericsEntry {
  unsigned minChip; ///< For this chip and later ones.
  bool isWarpgroup;
  unsigned bits; ///< Width of a factor.
  DotNumerics numerics;
};

/// The last entry that fits holds.
constexpr NumericsEntry numericsTable[] = {
    // Published: Volta, Turing, Ampere, Ada.
    {70, false, 16, {4, 23, 23}},
    {75, false, 16, {8, 24, 23}},
    {80, false, 32, {4, 24, 23}},
    {89, false, 8, {16, 13, 13}},
    // Measured: Hopper.
    {90, false, 32, {8, 25, 23}},
    {90, false, 16, {16, 25, 23}},
    {90, false, 8, {16, 25, 23, /*isConverted=*/true}},
    {90, true, 32, {8, 25, 23}},
    {90, true, 16, {16, 25, 23}},
    {90, true, 8, {32, 13, 13}},
    // Published: Blackwell, with 16 and 32 bits as Hopper.
    {100, false, 8, {32, 25, 23}},
};

} // namespace

DotNumerics getDotNumerics(StringRef chip, bool isWarpgroup, ElementType factor,
                           unsigned depth) {
  unsigned number = 0;
  chip.consume_front("sm_");
  if (chip.consumeInteger(10, number))
    number = 90;
  DotNumerics numerics{16, 25, 23};
  for (const NumericsEntry &entry : numericsTable)
    if (number >= entry.minChip && entry.isWarpgroup == isWarpgroup &&
        entry.bits == getBits(factor))
      numerics = entry.numerics;
  numerics.block =
      std::min(numerics.block, numerics.isConverted ? depth / 2 : depth);
  return numerics;
}

} // namespace mlir::nm_sparse::emulator

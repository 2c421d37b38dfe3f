//===- WarpProduct.h - mma.sync and mma.sp.sync -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The product of one warp over plain arrays of registers, as the PTX ISA lays
// matrices out over the lanes. A register has 32 bits; those of a lane are
// consecutive, and an f64 takes two.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_WARPPRODUCT_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_WARPPRODUCT_H

#include "Ops/Matrix/DotProduct.h"
#include <string>

namespace mlir::nm_sparse::emulator {

/// The types of a product.
struct ProductTypes {
  ElementType a, b, accumulator;
  bool saturate = false; ///< Integer sums saturate; else they wrap.

  /// Elements of A and B in a register.
  unsigned getPerRegister() const { return 32 / getBits(a); }
  unsigned getAccumulatorsPerRegister() const {
    return 32 / getBits(accumulator);
  }
};

/// How 2:4 (tf32: 1:2) sparsity of A is described.
struct Sparsity {
  bool isSparse = false;
  bool isOrdered = false; ///< Indices must increase.
};

struct WarpProduct {
  unsigned m, n, k; ///< `k` counts the zeros of a sparse A.
  ProductTypes types;
  Sparsity sparsity;
  DotNumerics numerics;

  /// Elements of A that are kept in a row.
  unsigned getDepth() const { return sparsity.isSparse ? k / 2 : k; }
  unsigned countA() const;
  unsigned countB() const;
  unsigned countAccumulators() const;
  /// Describes the product if no PTX instruction has it; else empty.
  std::string verify() const;
};

/// Where a lane holds an element of A or, with `column` and `row` exchanged, of
/// B: for element `index` of its registers, of which each holds `perRegister`.
struct FragmentPosition {
  unsigned row, column;
};
FragmentPosition getFactorPosition(unsigned lane, unsigned index,
                                   unsigned perRegister, unsigned rows);
/// The same of an accumulator in `columns` columns, beginning with the first 8.
FragmentPosition getAccumulatorPosition(unsigned lane, unsigned index,
                                        unsigned rows);

/// For each kept element of the 16 rows of A the column it has in the full A.
/// `metadata` are the registers of the 32 lanes. What is wrong, empty when
/// nothing is.
std::string decodeMetadata(ElementType type, unsigned k, bool isOrdered,
                           const uint32_t *metadata, uint32_t selector,
                           uint8_t *selected);

/// Adds a * b to the accumulators. What is wrong with the metadata, empty when
/// nothing is.
std::string runWarpProduct(const WarpProduct &product, const uint32_t *a,
                           const uint32_t *b, uint32_t *accumulators,
                           const uint32_t *metadata = nullptr,
                           uint32_t selector = 0);

/// One accumulator as a number and back.
float loadAccumulator(ElementType type, const uint32_t *registers,
                      unsigned index);
void storeAccumulator(ElementType type, uint32_t *registers, unsigned index,
                      float value);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_WARPPRODUCT_H

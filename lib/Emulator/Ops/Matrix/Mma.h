//===- Mma.h - operands of mma.sync -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_MMA_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_MMA_H

#include "Machine/Machine.h"
#include "Ops/Matrix/WarpProduct.h"

namespace mlir::nm_sparse::emulator {

/// Positions of the operands of one op. The result is contiguous.
struct ProductOperands {
  unsigned a, countA, b, countB, c, countC;
  unsigned metadata = 0, selector = 0;
  unsigned wordsPerOperand = 1; ///< 32-bit words in an operand.
};

/// Waits for the other threads of the warp; the last one computes.
void runWarpProduct(Thread &thread, const WarpProduct &product,
                    const ProductOperands &operands, Values values,
                    Values results);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_MMA_H

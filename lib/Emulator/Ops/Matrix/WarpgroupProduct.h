//===- WarpgroupProduct.h - wgmma.mma_async ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The product of one warpgroup, dense or 2:4 sparse, with A in registers or in
// shared memory. It is executed when it is issued; the order of its shared
// reads is that of an agent of the warpgroup (WarpgroupTable.h).
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_WARPGROUPPRODUCT_H
#define NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_WARPGROUPPRODUCT_H

#include "Machine/Collective.h"
#include "Ops/Matrix/WarpProduct.h"

namespace mlir::nm_sparse::emulator {

struct WarpgroupProduct {
  unsigned n, k; ///< `k` counts the zeros of a sparse A.
  ProductTypes types;
  Sparsity sparsity;
  bool negateA = false, negateB = false;
  /// M-major A, N-major B; 16-bit types alone.
  bool transposeA = false, transposeB = false;
  bool isRegisterA = false;

  static constexpr unsigned m = 64;
  /// Elements of A that are kept in a row.
  unsigned getDepth() const { return sparsity.isSparse ? k / 2 : k; }
  /// 32-bit registers of one thread.
  unsigned countA() const { return getDepth() * getBits(types.a) / 64; }
  unsigned countAccumulators() const {
    return n / 2 / types.getAccumulatorsPerRegister();
  }
  /// Describes the product if no PTX instruction has it; else empty.
  std::string verify() const;
};

/// The operands of all 128 threads; the registers of one are consecutive.
struct WarpgroupOperands {
  uint64_t descriptorA = 0, descriptorB = 0;
  const uint32_t *a = nullptr; ///< Null: descriptorA.
  const uint32_t *metadata = nullptr;
  uint32_t selector = 0;
  bool accumulate = true; ///< Else the accumulators start at zero.
  uint32_t *accumulators = nullptr;
};

/// Matrices in shared memory are read in pieces of so many bytes.
constexpr unsigned matrixPieceBytes = 16;
/// Returns the piece at a shared address.
using ReadPiece = llvm::function_ref<const char *(uint32_t address)>;

/// The arithmetic. What is wrong with descriptors or metadata, empty when
/// nothing is.
std::string multiplyWarpgroup(const WarpgroupProduct &product,
                              const DotNumerics &numerics,
                              const WarpgroupOperands &operands,
                              ReadPiece readPiece);

/// The contribution of one thread to a product.
struct WarpgroupArrival {
  uint64_t descriptorA = 0, descriptorB = 0;
  uint32_t a[4] = {}; ///< Where A is in registers.
  uint32_t metadata = 0, selector = 0;
  bool accumulate = true;
  uint32_t *accumulators = nullptr;
};

/// Waits for the other threads of the warpgroup; the last one computes.
void runWarpgroupProduct(Thread &thread, const WarpgroupProduct &product,
                         WarpgroupArrival &arrival);

} // namespace mlir::nm_sparse::emulator

#endif // NM_SPARSE_LIB_EMULATOR_OPS_MATRIX_WARPGROUPPRODUCT_H

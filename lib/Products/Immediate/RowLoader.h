//===- RowLoader.h - rows of activations at known places --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_PRODUCTS_IMMEDIATE_ROWLOADER_H
#define NM_SPARSE_LIB_PRODUCTS_IMMEDIATE_ROWLOADER_H

#include "nm_sparse/Conversion/TileToThreads/ThreadLayout.h"

namespace mlir::nm_sparse {

/// Reads what a lane needs of a row of activations: those of its tokens. Code
/// that multiplies asks for rows by number and knows nothing else of where they
/// lie.
class RowLoader {
public:
  /// Emits what all rows share at the builder's insertion point.
  static std::unique_ptr<RowLoader> create(OpBuilder &b, TileMatmulOp op,
                                           const ThreadLayout &layout);
  virtual ~RowLoader() = default;

  /// The order in which `rows` rows are best read.
  virtual SmallVector<int64_t> getOrder(int64_t rows) const {
    return llvm::to_vector(llvm::seq(rows));
  }
  /// Starts a section of code in which nothing of a section before is seen.
  virtual void startSection() {}
  /// The activations of row `row`, in f32, where the builder is now.
  virtual SmallVector<Value> load(int64_t row) = 0;

protected:
  RowLoader(OpBuilder &b, TileMatmulOp op);
  /// An f32 of an activation.
  Value extend(Value activation) const;

  OpBuilder &b;
  Location loc;
  IndexMath math;
  Type element;
};

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_PRODUCTS_IMMEDIATE_ROWLOADER_H

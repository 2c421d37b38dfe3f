//===- Epilogue.h - what follows a product in its kernel --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_EPILOGUE_H
#define NM_SPARSE_ANALYSIS_EPILOGUE_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// The work for each element of a result.
struct Epilogue {
  int64_t writtenBytes = 2;
  int64_t readBytes = 0; ///< From tensors of the result's shape.
  int64_t instructions = 0;
  /// Rows of a caller's tensor that is read begin at multiples of so many
  /// bytes; those of the program's own at 16 and more.
  int64_t alignment = 16;
};

/// Returns true if consecutive tokens are neighbours in the result of `op` and
/// of the elementwise ops that are its only consumers.
bool isWrittenFeatureMajor(MatmulOp op);

/// Returns true if warps can transpose the tiles that a product writes as
/// `writes` tensors with elements of `bits` bits; `reads` says if it reads
/// other tensors of their shape. Those are stored in the order of the result.
inline bool canBeTransposed(int64_t writes, unsigned bits, bool reads) {
  return writes == 1 && bits == 16 && !reads;
}

/// Returns true if warps can transpose the result of `op` and of the
/// elementwise ops that are its only consumers.
bool canBeTransposed(MatmulOp op);

/// Returns the work for each element of the result of `op` and of the
/// elementwise ops that are its only consumers. `dynamicExtent` stands for
/// unknown sizes.
Epilogue getEpilogue(MatmulOp op, int64_t dynamicExtent);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_EPILOGUE_H

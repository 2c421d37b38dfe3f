//===- Epilogue.h - what follows a product in its kernel --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_ANALYSIS_EPILOGUE_H
#define NM_SPARSE_ANALYSIS_EPILOGUE_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// What is done for each element of a result.
struct Epilogue {
  int64_t writtenBytes = 2;
  int64_t readBytes = 0; ///< Of tensors of the result's shape.
  int64_t instructions = 0;
  /// Rows of a caller's tensor that is read begin at multiples of so many
  /// bytes; those of the program's own at 16 and more.
  int64_t alignment = 16;
};

/// Whether consecutive tokens are neighbours in what `op`, and the elementwise
/// ops that alone consume its result, compute.
bool isWrittenFeatureMajor(MatmulOp op);

/// Whether warps can transpose the tiles that a product writes as `writes`
/// tensors with elements of `bits` bits, where it `reads` other tensors of
/// their shape or does not. What is read lies in the order in which it is
/// written.
inline bool canBeTransposed(int64_t writes, unsigned bits, bool reads) {
  return writes == 1 && bits == 16 && !reads;
}

/// Whether warps can transpose what `op`, and the elementwise ops that alone
/// consume its result, compute.
bool canBeTransposed(MatmulOp op);

/// What is done for each element that `op`, and the elementwise ops that alone
/// consume its result, compute. `dynamicExtent` stands for sizes that are not
/// known.
Epilogue getEpilogue(MatmulOp op, int64_t dynamicExtent);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_ANALYSIS_EPILOGUE_H

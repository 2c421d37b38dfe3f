//===- ConstantWeight.h - weights that the compiler knows -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_CONSTANTWEIGHT_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_CONSTANTWEIGHT_H

#include "nm_sparse/Dialect/NMSparse/Utils/Packing.h"

namespace mlir::nm_sparse {

/// The encoding of a K x N weight with free elements.
EncodingAttr getFreeEncoding(MLIRContext *context);

/// The data of the components of the weight of `op` if all are constants, maybe
/// behind casts of their type; otherwise, and for ragged panels, none.
PackedConstant findConstantWeight(MatmulOp op);

/// Elements of `values` other than +0.
int64_t countElements(DenseElementsAttr values);

/// A weight of K x N elements, row by row.
struct DenseWeight {
  int64_t rows, outputs;
  Type element;
  SmallVector<char, 0> bytes;

  /// That of a constant of rank 2.
  static DenseWeight get(DenseElementsAttr constant);

  /// The bits of an element.
  uint64_t getBits(int64_t row, int64_t output) const;
  /// An element of a float type of at most 32 bits.
  float get(int64_t row, int64_t output) const;
};

/// Unpacks bitmaps of free elements, `values` and `bits` without batches, to a
/// weight of `rows` rows and of all outputs that the bits stand for.
FailureOr<DenseWeight>
unpackFreeBitmap(DenseElementsAttr values, DenseElementsAttr bits, int64_t rows,
                 function_ref<InFlightDiagnostic()> emitError);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_CONSTANTWEIGHT_H

//===- Packing.h - pack, prune and unpack constants -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The canonical packed layout of docs/Encoding.md, applied at compile time to
// the data of constants.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_PACKING_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_PACKING_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"

namespace mlir::nm_sparse {

/// Values and index of a packed constant.
using PackedConstant = std::pair<DenseElementsAttr, DenseElementsAttr>;

/// Packs `weight`. When it breaks the pattern or is no kind of constant that
/// can be read, the error names window and panel, or the attribute.
FailureOr<PackedConstant>
packConstant(ElementsAttr weight, EncodingAttr encoding,
             function_ref<InFlightDiagnostic()> emitError);

/// Zeroes all but the `n` blocks of largest sum of squares in each window and
/// panel; of equals the smaller position stays, and a NaN counts as infinite.
/// The result has type `resultType`.
FailureOr<DenseElementsAttr>
pruneConstant(ElementsAttr weight, EncodingAttr encoding,
              RankedTensorType resultType,
              function_ref<InFlightDiagnostic()> emitError);

/// The float constant `data` in f64, as a constant of type `resultType`.
FailureOr<DenseElementsAttr>
convertToDouble(ElementsAttr data, ShapedType resultType,
                function_ref<InFlightDiagnostic()> emitError);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_PACKING_H

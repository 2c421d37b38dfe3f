//===- Packing.h - pack, prune and unpack constants -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and makes the data of constants; the runtime library does the work.
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_UTILS_PACKING_H
#define NM_SPARSE_DIALECT_NMSPARSE_UTILS_PACKING_H

#include "nm_sparse/Dialect/NMSparse/IR/PackSpec.h"

namespace mlir::nm_sparse {

/// The components of a packed constant.
using PackedConstant = SmallVector<DenseElementsAttr>;

/// Packs `weight`. When it breaks the pattern or is no kind of constant that
/// can be read, the error names window and panel, or the attribute.
FailureOr<PackedConstant>
packConstant(ElementsAttr weight, WeightStorageInterface form,
             function_ref<InFlightDiagnostic()> emitError);

/// The weight of `op`, whose components are `canonical`, stored as `form`.
/// Positions that are not legal, and a weight that breaks the pattern of
/// `form`, are an error.
FailureOr<PackedConstant>
storeConstant(ArrayRef<DenseElementsAttr> canonical, MatmulOp op,
              WeightStorageInterface form,
              function_ref<InFlightDiagnostic()> emitError);

/// The canonical form of the weight of `op`, whose components are `canonical`,
/// under `pattern`. A weight that does not embed in it is an error that names
/// window and panel.
FailureOr<PackedConstant>
repackConstant(ArrayRef<DenseElementsAttr> canonical, MatmulOp op,
               const SparsityLevel &pattern,
               function_ref<InFlightDiagnostic()> emitError);

/// Sets the elements that the pattern does not keep to zero (nmsPrune). The
/// result has type `resultType`.
FailureOr<DenseElementsAttr>
pruneConstant(ElementsAttr weight, EncodingAttr encoding, double density,
              RankedTensorType resultType,
              function_ref<InFlightDiagnostic()> emitError);

/// The float constant `data` in f64, as a constant of type `resultType`.
FailureOr<DenseElementsAttr>
convertToDouble(ElementsAttr data, ShapedType resultType,
                function_ref<InFlightDiagnostic()> emitError);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_UTILS_PACKING_H

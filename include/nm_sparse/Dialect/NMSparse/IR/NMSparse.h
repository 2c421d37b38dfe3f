//===- NMSparse.h - the nm_sparse dialect, attributes, ops ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_IR_NMSPARSE_H
#define NM_SPARSE_DIALECT_NMSPARSE_IR_NMSPARSE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/IndexingMapOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

#include "nm_sparse/Dialect/NMSparse/IR/WeightStorage.h"

#include "nm_sparse/Dialect/NMSparse/IR/WeightStorage.h.inc"

namespace mlir::nm_sparse {
class EncodingAttr;
} // namespace mlir::nm_sparse

#include "nm_sparse/Dialect/NMSparse/IR/MatmulConfig.h.inc"

#define GET_ATTRDEF_CLASSES
#include "nm_sparse/Dialect/NMSparse/IR/NMSparseAttrs.h.inc"

// The dialect's discardable attributes name the attribute classes.
#include "nm_sparse/Dialect/NMSparse/IR/NMSparseDialect.h.inc"

#define GET_OP_CLASSES
#include "nm_sparse/Dialect/NMSparse/IR/NMSparseOps.h.inc"

namespace mlir::nm_sparse {

/// Returns the encoding of `type` if it is a ranked tensor that carries one,
/// otherwise null.
EncodingAttr getEncoding(Type type);

/// `type` without an nm_sparse encoding.
RankedTensorType stripEncoding(RankedTensorType type);

/// Returns the weight of a convolution, which has rank 4, as a matrix. Its
/// outputs are the first dimension or, if `dim` is 0, the last one; the other
/// dimensions form one contraction, in their order. Other types are returned
/// unchanged.
RankedTensorType flattenWeight(RankedTensorType weight);

/// Returns the number of tokens to decide for in `op` if it is dynamic: the
/// `nm_sparse.tokens` of the function that `op` is or is in, or `otherwise`
/// without it.
int64_t getExpectedTokens(Operation *op, int64_t otherwise);

/// Extents of a weight and of the packed form of its outer level.
struct PackedShape {
  int64_t batch;   ///< 0 when the weight has no batch dimension.
  int64_t k;       ///< Contraction size.
  int64_t outputs; ///< Output size.
  int64_t windows; ///< ceil(k / window rows).
  int64_t panels;  ///< ceil(outputs / bn).
};

/// Extents of a weight of static shape `weight` under `encoding`.
PackedShape getPackedShape(RankedTensorType weight, EncodingAttr encoding);

/// Returns the component of a shuffled weight that says where its outputs
/// belong.
WeightComponent getPermComponent(RankedTensorType weight,
                                 EncodingAttr encoding);

/// Types of the `values` and `index` that hold `weight`.
std::pair<RankedTensorType, RankedTensorType>
getPackedTypes(RankedTensorType weight, EncodingAttr encoding);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_IR_NMSPARSE_H

//===- PackSpec.h - weights as the packing library sees them ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_DIALECT_NMSPARSE_IR_PACKSPEC_H
#define NM_SPARSE_DIALECT_NMSPARSE_IR_PACKSPEC_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Packing/Packing.h"

namespace mlir::nm_sparse {

/// Returns the runtime's number for an element type, if it knows that type.
std::optional<int32_t> getRuntimeKind(Type type);

/// Returns the runtime's description of a row-major weight of type `weight`.
NmsPackSpec getPackSpec(RankedTensorType weight, EncodingAttr encoding);

/// Components of static shape, zero at first.
SmallVector<PackedComponent>
allocateComponents(ArrayRef<WeightComponent> components);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_DIALECT_NMSPARSE_IR_PACKSPEC_H

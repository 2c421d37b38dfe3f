//===- PackedInputs.h - random weights that have a pattern ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NM_SPARSE_LIB_EXECUTION_INPUTS_PACKEDINPUTS_H
#define NM_SPARSE_LIB_EXECUTION_INPUTS_PACKEDINPUTS_H

#include "nm_sparse/Dialect/NMSparse/IR/NMSparse.h"
#include "nm_sparse/Execution/Host/CompiledModule.h"

namespace mlir::nm_sparse {

/// The data of a component, of a weight whose elements have kind `valuesKind`.
HostArray makeArray(ComponentRole role, int32_t valuesKind,
                    const PackedComponent &component);

/// Prunes `dense` to the pattern, a free one to `density` percent, and appends
/// its components to `packed`.
llvm::Error packWeight(HostArray &dense, RankedTensorType type,
                       EncodingAttr encoding, int64_t density, uint64_t seed,
                       std::vector<Argument> &packed);

} // namespace mlir::nm_sparse

#endif // NM_SPARSE_LIB_EXECUTION_INPUTS_PACKEDINPUTS_H

//===- CanonicalPacking.cpp - dense weights to the canonical form ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Dialect/NMSparse/IR/PackSpec.h"

using namespace mlir;
using namespace mlir::nm_sparse;

FailureOr<SmallVector<PackedComponent>>
EncodingAttr::pack(RankedTensorType weight, ArrayRef<char> dense,
                   function_ref<InFlightDiagnostic()> emitError) const {
  SmallVector<PackedComponent> packed =
      allocateComponents(getComponents(weight));
  SmallVector<void *> arrays = llvm::map_to_vector(
      packed, [](PackedComponent &of) -> void * { return of.data.data(); });
  NmsPackSpec spec = getPackSpec(weight, *this);
  bool isShuffled = getOrder() == OutputOrder::Shuffled;
  if (isShuffled
          ? nmsPackShuffled(&spec, /*isGiven=*/0, dense.data(), arrays.data(),
                            static_cast<uint32_t *>(arrays.back()))
          : nmsPack(&spec, dense.data(), arrays.data()))
    return emitError() << nmsLastError();
  return packed;
}

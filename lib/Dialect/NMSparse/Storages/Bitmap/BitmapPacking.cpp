//===- BitmapPacking.cpp - dense weights to bitmaps -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/Storages/StorageAttrs.h"

#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Dialect/NMSparse/IR/PackSpec.h"

using namespace mlir;
using namespace mlir::nm_sparse;

static uint32_t *getWords(PackedComponent &component) {
  return reinterpret_cast<uint32_t *>(component.data.data());
}

/// The bitmaps of `dense`, whose data says how many values it keeps.
static FailureOr<SmallVector<PackedComponent>>
packFree(RankedTensorType weight, ArrayRef<char> dense, const NmsPackSpec &spec,
         SmallVector<WeightComponent> components,
         function_ref<InFlightDiagnostic()> emitError) {
  int64_t size = nmsCountFreeBitmap(&spec, dense.data());
  if (size < 0)
    return emitError() << nmsLastError();
  components.front().type =
      RankedTensorType::get({size}, weight.getElementType());
  SmallVector<PackedComponent> packed = allocateComponents(components);
  if (nmsPackFreeBitmap(&spec, dense.data(), packed.front().data.data(),
                        getWords(packed.back())))
    return emitError() << nmsLastError();
  return packed;
}

FailureOr<SmallVector<PackedComponent>>
BitmapAttr::pack(RankedTensorType weight, ArrayRef<char> dense,
                 function_ref<InFlightDiagnostic()> emitError) const {
  NmsPackSpec spec = getPackSpec(weight, getEncoding());
  if (getEncoding().isFree())
    return packFree(weight, dense, spec, getComponents(weight), emitError);
  // The canonical form says which elements are kept. With two levels, the index
  // of the outer one stays as it is.
  FailureOr<SmallVector<PackedComponent>> packed =
      getEncoding().pack(weight, dense, emitError);
  if (failed(packed))
    return failure();
  SmallVector<PackedComponent> stored =
      allocateComponents(getComponents(weight));
  if (nmsInnermostSpec(&spec, &spec) ||
      nmsPackBitmap(&spec, packed->front().data.data(),
                    packed->back().data.data(), stored.front().data.data(),
                    getWords(stored.back())))
    return emitError() << nmsLastError();
  packed->front() = std::move(stored.front());
  packed->back() = std::move(stored.back());
  return packed;
}

//===- RaggedPacking.cpp - dense weights to ragged panels -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/NMSparse/Storages/StorageAttrs.h"

#include "nm_sparse/Base/Error.h"
#include "nm_sparse/Dialect/NMSparse/IR/PackSpec.h"

using namespace mlir;
using namespace mlir::nm_sparse;

/// Puts the outputs of `dense` in order, of which `perm` and a spec are filled
/// in.
static FailureOr<SmallVector<char, 0>>
putInOrder(ArrayRef<char> dense, NmsPackSpec &spec, uint32_t *perm,
           function_ref<InFlightDiagnostic()> emitError) {
  NmsPackSpec weight = spec;
  SmallVector<char, 0> ordered(dense.size());
  if (nmsFindOrder(&weight, dense.data(), perm) ||
      nmsPutInOrder(&weight, perm, dense.data(), ordered.data()) ||
      nmsOrderedSpec(&weight, &spec))
    return emitError() << nmsLastError();
  return ordered;
}

FailureOr<SmallVector<PackedComponent>>
RaggedAttr::pack(RankedTensorType weight, ArrayRef<char> dense,
                 function_ref<InFlightDiagnostic()> emitError) const {
  NmsPackSpec spec = getPackSpec(weight, getEncoding());
  SmallVector<char, 0> ordered;
  SmallVector<uint32_t, 0> perm;
  if (getEncoding().getOrder() == OutputOrder::Shuffled) {
    perm.resize(spec.batch * spec.outputs);
    FailureOr<SmallVector<char, 0>> found =
        putInOrder(dense, spec, perm.data(), emitError);
    if (failed(found))
      return failure();
    ordered = std::move(*found);
    dense = ordered;
  }
  int64_t size = nmsCountRagged(&spec, getRows(), dense.data());
  if (size < 0)
    return emitError() << nmsLastError();
  SmallVector<WeightComponent> components = getComponents(weight);
  auto setRows = [&](WeightComponent &component, int64_t rows) {
    SmallVector<int64_t> shape(component.type.getShape());
    shape.front() = rows;
    component.type = component.type.clone(shape);
  };
  setRows(components[0], size);
  setRows(components[1], size / getBlockRows());
  SmallVector<PackedComponent> packed = allocateComponents(components);
  auto words = [&](unsigned component) {
    return reinterpret_cast<uint32_t *>(packed[component].data.data());
  };
  if (nmsPackRagged(&spec, getRows(), dense.data(), packed.front().data.data(),
                    words(1), words(2)))
    return emitError() << nmsLastError();
  if (!perm.empty())
    llvm::copy(perm, words(3));
  return packed;
}
